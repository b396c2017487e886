"""TABLE of value types: how a policy value is read, compared and shown."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from webhook.objects import quantity

ITEMIZED = frozenset({"itemized"})
NUMBERS = frozenset({"integer", "number"})
NUMERIC = NUMBERS | {"quantity"}
SCALARS = NUMERIC | {"boolean", "string", "array", "object"}

Number = int | Fraction


@dataclass(frozen=True, slots=True)
class Codec:
    """How one notation is turned into a comparable value and back.

    `parse(raw, text)` reads a policy value (`text` is its source text when YAML changed it), `read`
    a native one; both raise ValueError. `write(value, raw)` gives the native form, `show` a text.
    """

    parse: Callable[[Any, str | None], Any]
    read: Callable[[Any], Any]
    write: Callable[[Any, Any], Any]
    show: Callable[[Any], str]


@dataclass(frozen=True, slots=True)
class ValueType:
    """One row: the type's codec, and what the author should write, for messages."""

    name: str
    codec: Codec
    wanted: str


def plain_text(raw: Any, text: str | None) -> str:
    """The text an author meant: YAML scalars keep their source text (0644, on, 22:30)."""
    if text is not None:
        return text
    if isinstance(raw, str):
        return raw
    if isinstance(raw, bool):
        return "true" if raw else "false"
    if isinstance(raw, int | float):
        return str(raw)
    raise ValueError("text")


def parse_boolean(raw: Any, text: str | None) -> bool:
    """true or false, also quoted; YAML's yes and on are refused with the word to write."""
    if isinstance(raw, bool):
        return raw
    if raw in ("true", "false"):
        return bool(raw == "true")
    raise ValueError("true or false")


def read_boolean(raw: Any) -> bool:
    """A native boolean; annotations carry it as text."""
    if isinstance(raw, bool):
        return raw
    if raw in ("true", "false"):
        return bool(raw == "true")
    raise ValueError("true or false")


def read_text(raw: Any) -> str:
    """A native string."""
    if isinstance(raw, str):
        return raw
    raise ValueError("text")


def parse_integer(raw: Any, text: str | None) -> int:
    """A whole number of 64 bit, also quoted."""
    if isinstance(raw, str) and re.fullmatch(r"[+-]?[0-9]{1,19}", raw):
        raw = int(raw)
    if isinstance(raw, int) and not isinstance(raw, bool) and -(2**63) <= raw < 2**63:
        return raw
    if isinstance(raw, float) and raw.is_integer() and abs(raw) < 2**53:
        return int(raw)
    raise ValueError("a whole number")


def read_integer(raw: Any) -> int:
    """A native whole number (annotations carry it as text)."""
    return parse_integer(raw, None)


def parse_number(raw: Any, text: str | None) -> Number:
    """A decimal number in nano units, exact; a policy may not write a quantity suffix here."""
    return quantity.parse_decimal(text if text is not None else raw)


def parse_quantity(raw: Any, text: str | None) -> int:
    """A Kubernetes quantity in nano units; bare numbers are plain units."""
    return quantity.parse_written(text if text is not None else raw)


def read_quantity(raw: Any) -> int:
    """A native quantity in nano units."""
    return quantity.parse(raw)


def read_whole_quantity(raw: Any) -> int:
    """A native quantity that is a whole number."""
    whole, rest = divmod(quantity.parse(raw), quantity.NANO)
    if rest:
        raise ValueError("a whole number such as 4")
    return whole


def parse_array(raw: Any, text: str | None) -> tuple[str, ...]:
    """A list of texts, in order."""
    if not isinstance(raw, list):
        raise ValueError("a list of texts")  # noqa: TRY004 - one error type for every codec
    return tuple(plain_text(element, None) for element in raw)


def read_array(raw: Any) -> tuple[str, ...]:
    """A native list of strings, in order."""
    return parse_array(raw, None)


def capability(name: str) -> str:
    """CAP_NET_ADMIN and net_admin are NET_ADMIN."""
    upper = name.upper()
    return upper[4:] if upper.startswith("CAP_") else upper


def parse_capabilities(raw: Any, text: str | None) -> frozenset[str]:
    """Linux capabilities as a set of canonical names."""
    return frozenset(capability(name) for name in parse_array(raw, text))


def parse_names(raw: Any, text: str | None) -> frozenset[str]:
    """A list of texts as a set."""
    return frozenset(parse_array(raw, text))


FILE_MODES = re.compile(r"0?[0-7]{3}")


def parse_file_mode(raw: Any, text: str | None) -> str:
    """The mode of a file as octal text with a leading zero; a native one is a plain number."""
    written = plain_text(raw, text)
    if not FILE_MODES.fullmatch(written):
        raise ValueError("an octal file mode such as 0644")
    return f"0{int(written, 8):03o}"


def read_file_mode(raw: Any) -> str:
    """A native mode, 420 for 0644."""
    return f"0{read_integer(raw):03o}"


def parse_group_ids(raw: Any, text: str | None) -> frozenset[int]:
    """Group ids of one text, such as 100,200 (older documents write 100;200)."""
    parts = re.split(r"[,;]", plain_text(raw, text))
    if not all(re.fullmatch(r"\s*\d{1,10}\s*", each) for each in parts):
        raise ValueError("group ids such as '100,200'")
    return frozenset(int(each) for each in parts)


def read_group_ids(raw: Any) -> frozenset[int]:
    """A native list of group ids."""
    if not isinstance(raw, list):
        raise ValueError("a list of group ids")  # noqa: TRY004 - one error type for every codec
    return frozenset(read_integer(each) for each in raw)


def canonical_terms(raw: Any) -> Any:
    """Sort node selector terms. Their order has no meaning."""
    terms = raw.get("nodeSelectorTerms") if isinstance(raw, dict) else None
    if not isinstance(terms, list) or set(raw) != {"nodeSelectorTerms"}:
        raise ValueError("{nodeSelectorTerms: [{matchExpressions: [{key, operator, values}]}]}")
    return tuple(sorted((canonical_term(each) for each in terms), key=repr))


def canonical_term(term: Any) -> Any:
    """One term: its expressions and fields, each with its values in order."""
    if not isinstance(term, dict) or not set(term) <= {"matchExpressions", "matchFields"}:
        raise ValueError("terms of matchExpressions")
    return tuple(
        (part, tuple(sorted((canonical_expression(each) for each in term[part] or ()), key=repr)))
        for part in sorted(term)
        if isinstance(term[part], list)
    )


def canonical_expression(expression: Any) -> Any:
    """One expression: key, operator, values."""
    if not isinstance(expression, dict):
        raise ValueError("expressions of {key, operator, values}")  # noqa: TRY004 - as above
    values = expression.get("values")
    if values is not None and not isinstance(values, list):
        raise ValueError("a list of values")
    return (
        str(expression.get("key")),
        str(expression.get("operator")),
        tuple(sorted(str(each) for each in values or ())),
    )


def parse_node_terms(raw: Any, text: str | None) -> Any:
    """A required node affinity in canonical order, compared as one value."""
    return canonical_terms(raw)


def parse_protocol(raw: Any, text: str | None) -> str:
    """http or grpc."""
    return plain_text(raw, text)


def read_protocol(raw: Any) -> str:
    """The name of a port: h2c means grpc, anything else http."""
    return "grpc" if read_text(raw) == "h2c" else "http"


def parse_command(raw: Any, text: str | None) -> tuple[str, ...]:
    """Split a command line like a POSIX shell. A list of tokens is returned unchanged."""
    if isinstance(raw, list):
        return parse_array(raw, None)
    try:
        return tuple(shlex.split(plain_text(raw, text)))
    except ValueError as error:
        raise ValueError(f"a command line with closed quotes ({error})") from error


def parse_object(raw: Any, text: str | None) -> Any:
    """An object, compared as one value."""
    if isinstance(raw, dict):
        return raw
    raise ValueError("an object")


def show_text(value: Any) -> str:
    """Return text in quotes, with JSON escapes for control characters."""
    return json.dumps(value, ensure_ascii=False)


def show_names(value: Any) -> str:
    """A set or list of names."""
    names = sorted(value) if isinstance(value, frozenset) else list(value)
    return "[" + ", ".join(names) + "]"


def show_number(value: Number) -> str:
    """Nano units as a plain decimal."""
    if isinstance(value, Fraction):
        return str(float(value / quantity.NANO))
    whole, rest = divmod(abs(value), quantity.NANO)
    tail = f".{rest:09d}".rstrip("0").rstrip(".")
    return f"{'-' if value < 0 else ''}{whole}{tail}"


def _same(value: Any, raw: Any) -> Any:
    return value


BOOLEAN = Codec(parse_boolean, read_boolean, _same, lambda value: "true" if value else "false")
STRING = Codec(plain_text, read_text, _same, show_text)
INTEGER = Codec(parse_integer, read_integer, _same, str)
WHOLE_QUANTITY = Codec(parse_integer, read_whole_quantity, lambda value, raw: str(value), str)
NUMBER = Codec(
    parse_number, lambda raw: quantity.parse_decimal(raw), lambda value, raw: raw, show_number
)
CORES = Codec(
    parse_number, read_quantity, lambda value, raw: quantity.render_cores(value), show_number
)
QUANTITY = Codec(
    parse_quantity,
    read_quantity,
    lambda value, raw: str(raw) if raw is not None else quantity.render(value),
    quantity.render,
)
ARRAY = Codec(parse_array, read_array, lambda value, raw: list(value), show_names)
OBJECT = Codec(parse_object, lambda raw: parse_object(raw, None), lambda value, raw: raw, show_text)
CAPABILITIES = Codec(
    parse_capabilities,
    lambda raw: parse_capabilities(raw, None),
    lambda value, raw: [capability(name) for name in raw],
    show_names,
)
COMMAND = Codec(
    parse_command,
    lambda raw: parse_array(raw, None),
    lambda value, raw: list(value),
    lambda value: "(not shown)",
)
NAMES = Codec(
    parse_names, lambda raw: parse_names(raw, None), lambda value, raw: sorted(value), show_names
)
ORDERED = ARRAY
AMOUNT_TEXT = Codec(
    parse_quantity,
    read_quantity,
    lambda value, raw: str(raw) if raw is not None else quantity.render(value),
    quantity.render,
)
FILE_MODE = Codec(parse_file_mode, read_file_mode, lambda value, raw: int(value, 8), show_text)
GROUP_IDS = Codec(
    parse_group_ids,
    read_group_ids,
    lambda value, raw: sorted(value),
    lambda value: ",".join(str(each) for each in sorted(value)),
)
NODE_TERMS = Codec(
    parse_node_terms,
    lambda raw: canonical_terms(raw),
    lambda value, raw: raw,
    lambda value: "; ".join(
        " and ".join(
            f"{key} {operator} {' '.join(held)}".rstrip()
            for _, expressions in term
            for key, operator, held in expressions
        )
        for term in value
    ),
)
PORT_PROTOCOL = Codec(
    parse_protocol,
    read_protocol,
    lambda value, raw: "h2c" if value == "grpc" else "http1",
    show_text,
)

TABLE: dict[str, ValueType] = {
    row.name: row
    for row in (
        ValueType("boolean", BOOLEAN, "true or false"),
        ValueType("string", STRING, "text"),
        ValueType("integer", INTEGER, "a whole number such as 4"),
        ValueType("number", NUMBER, "a decimal number such as 0.5"),
        ValueType(
            "quantity",
            QUANTITY,
            "a quantity such as 500M or 4Gi",
        ),
        ValueType("array", ARRAY, "a list such as [a, b]"),
        ValueType("object", OBJECT, "an object"),
        ValueType("itemized", OBJECT, "instances and attributes"),
    )
}
