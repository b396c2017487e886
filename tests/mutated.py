"""Documents broken in many ways by a fixed seed, for commands that must bear whatever is given."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any, NamedTuple

import yaml

Way = Callable[[random.Random, list[str]], str]
TreeWay = Callable[[random.Random, Any], Any]
VALUES = (
    "null", "[]", "{}", '""', "0", "-1", "1e400", "9" * 400, ".inf", ".nan", "0644", "on", "1_0",
    "'4GB'", "[[[]]]", "{a: {b: []}}", "*a", "&a [*a]", "&a {b: *a}", "!!binary aGk=", "!!python/x y",
    "2026-01-01", "'\\ud800'", '"\\ud800"', "18446744073709551616", "-9223372036854775809", "{? [a] : b}",
    "<<", "|", "{{ .Values.a }}", "true", "'${{ a }}'", "[null]", "{null: null}", "'" + "x" * 5000 + "'",
    "1" + "0" * 5000, "[" + "a, " * 20_000 + "a]", '"\\0\\e[2J\\u202e"',
)  # fmt: skip
"""What is written in the place of values."""
JSON_VALUES: tuple[Any, ...] = (
    None, [], {}, "", 0, -1, 1, 0.5, -0.0, True, False, "a", "1", "-1Gi", "1e400", "\ud800", "a\x00b",
    "\u202e", "x" * 5000, 10**18, 2**63, -(2**63) - 1, 2**64, 10**400, 1e308, float("inf"), float("nan"),
    [None], [[]], [{}], {"": ""}, {"a": None}, {"name": None}, [{"name": 1}], [{"name": "a"}, {"name": "a"}],
    {"instances": {}}, {"matchLabels": 1}, "2026-01-01", ".spec", ".a[] | error", "{{ .Values.a }}", "null",
    [1, "a", None, {}], {"1": {"2": {"3": []}}},
)  # fmt: skip
"""What is written in the place of values of a document that stays readable."""
KEYS = ("1", "null", "true", "1.5", "2026-01-01", "? [a]", "<<", "''", "a" * 300, '"\\u202e"', "~")
LAUGHS = "\n".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9) if n else 'ha'}]" for n in range(12)
)


def pick(random_: random.Random, lines: list[str]) -> int:
    """A line."""
    return random_.randrange(len(lines)) if lines else 0


def other_value(random_: random.Random, lines: list[str]) -> str:
    """A value of another type, or one that is none."""
    at = pick(random_, lines)
    key, sign, _ = lines[at].partition(": ")
    lines[at] = f"{key}{sign or ': '}{random_.choice(VALUES)}"
    return "\n".join(lines)


def truncated(random_: random.Random, lines: list[str]) -> str:
    """The beginning."""
    text = "\n".join(lines)
    return text[: random_.randrange(len(text) + 1)]


def without_line(random_: random.Random, lines: list[str]) -> str:
    """One line less."""
    del lines[pick(random_, lines)]
    return "\n".join(lines)


def line_twice(random_: random.Random, lines: list[str]) -> str:
    """A key that is there twice."""
    at = pick(random_, lines)
    return "\n".join([*lines[: at + 1], lines[at], *lines[at + 1 :]])


def other_nesting(random_: random.Random, lines: list[str]) -> str:
    """A line further in, or further out."""
    at = pick(random_, lines)
    lines[at] = random_.choice(["  ", "    ", "\t", "- "]) + lines[at].lstrip(
        random_.choice(["", " "])
    )
    return "\n".join(lines)


def moved_line(random_: random.Random, lines: list[str]) -> str:
    """A line in another place."""
    line = lines.pop(pick(random_, lines))
    lines.insert(pick(random_, lines), line)
    return "\n".join(lines)


def nested_deep(random_: random.Random, lines: list[str]) -> str:
    """A value below many others."""
    at, depth = pick(random_, lines), random_.choice([50, 150, 250, 3000])
    lines[at] = f"{lines[at].partition(': ')[0]}: {'[' * depth}{']' * depth}"
    return "\n".join(lines)


def split(random_: random.Random, lines: list[str]) -> str:
    """Two documents, neither of them whole."""
    at = pick(random_, lines)
    return "\n".join([*lines[:at], "---", *lines[at:]])


def other_key(random_: random.Random, lines: list[str]) -> str:
    """A key that is no text, or hardly one."""
    at = pick(random_, lines)
    pad = " " * (len(lines[at]) - len(lines[at].lstrip()))
    lines.insert(at, f"{pad}{random_.choice(KEYS)}: {random_.choice(VALUES)}")
    return "\n".join(lines)


def many_aliases(random_: random.Random, lines: list[str]) -> str:
    """Few lines that mean billions of values."""
    return "\n".join([LAUGHS, *lines] if random_.random() < 0.5 else [*lines, LAUGHS])


def other_breaks(random_: random.Random, lines: list[str]) -> str:
    """Other ends of lines, some of them stray."""
    sign = random_.choice(["\r\n", "\r", "\x85", "\u2028", "\t\n", "\n\n"])
    return sign.join(lines)


WAYS: tuple[Way, ...] = (
    other_value, other_value, other_value, truncated, without_line, line_twice, other_nesting,
    moved_line, nested_deep, split, other_key, other_breaks,
)  # fmt: skip
SELDOM: Way = many_aliases
"""Reading it to its bound takes two seconds."""
RARE = 0.0005
ENCODINGS = ("utf-16", "utf-32", "latin-1", "utf-8-sig", "cp037")
STRAY = (b"\x00", b"\xff", b"\x1b[2J", b"\xed\xa0\x80")


# Ways to break a document that stays readable. Each gets a container and a key in it.


def places_in(tree: Any) -> list[tuple[Any, Any]]:
    """Every value of a document, as its container and its key there."""
    found: list[tuple[Any, Any]] = []
    open_: list[Any] = [tree]
    while open_:
        each = open_.pop()
        keys = each if isinstance(each, dict) else range(len(each))
        for key in keys:
            found.append((each, key))
            if isinstance(each[key], (dict, list)):
                open_.append(each[key])
    return found


def value_of_another_type(random_: random.Random, at: Any, key: Any) -> None:
    """A value that does not belong there."""
    at[key] = copy.deepcopy(random_.choice(JSON_VALUES))


def removed(random_: random.Random, at: Any, key: Any) -> None:
    """A value that is not there."""
    del at[key]


def renamed(random_: random.Random, at: Any, key: Any) -> None:
    """A key with another name, or an item that is there twice."""
    if isinstance(at, dict):
        at[random_.choice(["", "a", f"{key}s", str(key).upper(), "name", "\ud800", "$patch"])] = (
            at.pop(key)
        )
    else:
        at.append(copy.deepcopy(at[key]))


def wrapped(random_: random.Random, at: Any, key: Any) -> None:
    """A list where a map belongs, or the other way round; sometimes many of them."""
    for _ in range(random_.choice([1, 1, 1, 2, 90, 110, 190])):
        at[key] = [at[key]] if random_.random() < 0.5 else {"a": at[key]}


def opened(random_: random.Random, at: Any, key: Any) -> None:
    """What is in a list or a map, in its place."""
    inner = at[key]
    if isinstance(inner, dict) and inner:
        at[key] = inner[next(iter(inner))]
    elif isinstance(inner, list) and inner:
        at[key] = inner[0]
    else:
        at[key] = str(inner)


def emptied(random_: random.Random, at: Any, key: Any) -> None:
    """Null in the place of everything in a map or list."""
    for each in list(at) if isinstance(at, dict) else range(len(at)):
        at[each] = None


def exchanged(random_: random.Random, at: Any, key: Any) -> None:
    """Two values, each in the other's place."""
    other = random_.choice(list(at) if isinstance(at, dict) else range(len(at)))
    at[key], at[other] = at[other], at[key]


TREE_WAYS = (
    value_of_another_type, value_of_another_type, value_of_another_type, removed, renamed, wrapped,
    opened, emptied, exchanged,
)  # fmt: skip


def broken_tree(random_: random.Random, tree: Any) -> tuple[list[str], Any]:
    """A copy of a map with a few of its values broken, and how."""
    tree = copy.deepcopy(tree)
    names = []
    for _ in range(random_.choice([1, 1, 1, 2, 3, 5])):
        places = places_in(tree)
        if not places:
            break
        way = random_.choice(TREE_WAYS)
        names.append(way.__name__)
        way(random_, *random_.choice(places))
    return names, tree


@lru_cache(maxsize=4096)
def trees_of(text: str) -> tuple[Any, ...]:
    """The maps in a text, none where it is no YAML."""
    try:
        found = list(yaml.load_all(text, Loader=yaml.CSafeLoader))
    except (yaml.YAMLError, ValueError, RecursionError):
        return ()
    return tuple(each for each in found if isinstance(each, dict))


class Mutant(NamedTuple):
    """One broken text. `name` says how it came about; `whole`: its bytes are UTF-8 text."""

    name: str
    data: bytes
    whole: bool


def mutants(texts: Sequence[str], count: int, seed: int) -> Iterator[Mutant]:
    """So many broken texts; the same for one seed."""
    random_ = random.Random(seed)
    for number in range(count):
        text = random_.choice(texts)
        trees = trees_of(text) if random_.random() < 0.5 else ()
        if trees:
            names, tree = broken_tree(random_, random_.choice(trees))
            yield Mutant(f"{number:05}-{'-'.join(names)}", as_text(random_, tree), whole=True)
            continue
        lines, names = text.splitlines(), []
        for _ in range(random_.choice([1, 1, 1, 2, 4])):
            way = random_.choice(WAYS) if random_.random() > RARE else SELDOM
            names.append(way.__name__)
            lines = way(random_, lines or [""]).split("\n")
        yield encoded(random_, f"{number:05}-{'-'.join(names)}", "\n".join(lines) + "\n")


def as_text(random_: random.Random, tree: Any) -> bytes:
    """A document as JSON on one line, or as YAML."""
    text = json.dumps(tree, default=str)
    if random_.random() < 0.3:
        with suppress(yaml.YAMLError, RecursionError, UnicodeEncodeError):
            text = yaml.dump(tree, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True)
    return text.encode("utf-8", "replace") + b"\n"


def encoded(random_: random.Random, name: str, text: str) -> Mutant:
    """A text as bytes, now and then in another encoding or with bytes that are no text."""
    encoding = random_.choice(ENCODINGS) if random_.random() < 0.05 else "utf-8"
    data, whole = text.encode(encoding, "replace"), encoding == "utf-8"
    if random_.random() < 0.02:
        at = random_.randrange(len(data) + 1)
        data, whole = data[:at] + random_.choice(STRAY) + data[at:], False
    return Mutant(f"{name}-{encoding}", data, whole)


def objects(trees: Sequence[Any], count: int, seed: int) -> Iterator[tuple[str, Any]]:
    """So many broken objects, as a server might give them; the same for one seed."""
    random_ = random.Random(seed)
    for number in range(count):
        names, tree = broken_tree(random_, random_.choice(trees))
        yield f"{number:05}-{'-'.join(names)}", tree
