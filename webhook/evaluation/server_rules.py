"""Parses the rules of the server-default table into functions over plain documents."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from webhook.evaluation.server_calculations import (
    CALCULATIONS,
    IMAGE_CLASSES,
    Calculation,
    image_class,
)
from webhook.objects.path import ABSENT, read

Steps = tuple[str, ...]
"""A path by keys. EACH means every item of a list."""

Parent = dict[str, Any]
Read = Callable[[Parent, Any], Any]
"""Reads a value from the object around the path of a rule, or from the whole document."""

EACH = "[]"
STEP = re.compile(r'\.?([A-Za-z_][A-Za-z0-9_-]*)|\.?\["((?:[^"\\]|\\.)*)"\]|(\[\])')
FORMS = ("value", "copyFrom", "rule")


@dataclass(frozen=True, slots=True)
class Rule:
    """One default: the value for `at`, if `applies` is true and the value is absent.

    `make` returns the value, None for nothing. `constant` is the value if it never varies, else
    None. `usual` says whether the rule applies when the keys that decide are absent, `near` whether
    it reads only the object around its path.
    """

    at: Steps
    make: Read
    applies: Read | None = None
    empty_too: bool = False
    constant: Any = None
    usual: bool = True
    near: bool = True

    def value(self, parent: Parent, document: Any) -> Any:
        """Return the server's value in `parent` if it is absent, None for nothing."""
        if self.applies is not None and not self.applies(parent, document):
            return None
        return self.make(parent, document)

    def addition(self, parent: Parent, document: Any) -> Any:
        """Return the value that the server sets in `parent` for the last key of `at`, None for nothing."""
        present = parent.get(self.at[-1])
        if present is not None and (present or not self.empty_too):
            return None
        value = self.value(parent, document)
        # An empty value of another type is an error of the user, which the server rejects.
        return value if present is None or type(present) is type(value) else None


def steps(text: str) -> Steps:
    """Return the steps of a path such as `a.b[]["k.e/y"]`. Raises ValueError for other text."""
    found: list[str] = []
    end = 0
    while end < len(text):
        match = STEP.match(text, end)
        if match is None or (not found and match[3]):
            raise ValueError(f"not a path of the server-default table: {json.dumps(text)}")
        key = json.loads(f'"{match[2]}"') if match[2] is not None else match[1]
        found.append(EACH if match[3] else key)
        end = match.end()
    return tuple(found)


def parse(data: Any, scope: Steps, top: Steps) -> Rule:
    """Parse one rule of the table without calculation. `scope` is the path that its path starts from.

    Paths in `at` start at `top`. Raises ValueError with a clear text.
    """
    rule = members(data, "a rule", {"path", *FORMS, "emptyToo", "when", "image", "values"})
    path = text(rule, "path")
    at = (*scope, *steps(path))
    if sum(form in rule for form in FORMS) != 1 or at[-1] == EACH:
        raise ValueError(f"the rule for {path} needs a key at its end, and one of value, copyFrom")
    applies, usual, close = _condition(rule.get("when"), path, top)
    if "value" in rule:
        if (constant := rule["value"]) is None:
            raise ValueError(f"the value for {path} is null")
        empty_too = rule.get("emptyToo") is True
        return Rule(at, _constant(constant), applies, empty_too, constant, usual, close)
    if "rule" in rule:
        return Rule(at, _pull_policy(rule, path), applies, empty_too=True, usual=usual, near=close)
    source = members(rule["copyFrom"], f"copyFrom of {path}", {"sibling", "at"})
    make, near = _reader(source, path, top)
    empty_too = rule.get("emptyToo") is True
    return Rule(at, _copy_when_read(make), applies, empty_too, None, usual, near and close)


def calculation(data: Any) -> Calculation | None:
    """Return the calculation that a rule of the table names, None for other rules."""
    name = data.get("rule") if isinstance(data, dict) else None
    if name is None or name == "image-tag":
        return None
    if name not in CALCULATIONS:
        raise ValueError(f"no such rule: {json.dumps(name)}")
    return CALCULATIONS[name]


def members(data: Any, what: str, known: set[str] | None = None) -> Mapping[str, Any]:
    """Return `data` as a map with only `known` keys. Raises ValueError that names `what`."""
    if not isinstance(data, dict) or not all(isinstance(key, str) for key in data):
        raise ValueError(f"{what} is not a map")
    if known is not None and (strange := sorted(set(data) - known)):
        raise ValueError(f"{what} has unknown keys: {', '.join(strange)}")
    return data


def text(data: Mapping[str, Any], key: str) -> str:
    """Return the text under `key`. Raises ValueError if there is none."""
    value = data.get(key)
    if not isinstance(value, str) or not value:
        raise ValueError(f"{key} is not text: {value!r}")
    return value


def items(data: Mapping[str, Any], key: str) -> list[Any]:
    """Return the list under `key`. Raises ValueError if there is none."""
    value = data.get(key)
    if type(value) is not list:
        raise ValueError(f"{key} is not a list: {value!r}")
    return value


def fresh(value: Any) -> Any:
    """Return `value`, copied if it is mutable."""
    return copy.deepcopy(value) if type(value) is dict or type(value) is list else value


def _constant(value: Any) -> Read:
    return lambda parent, document: fresh(value)


def _copy_when_read(read: Read) -> Read:
    def make(parent: Parent, document: Any) -> Any:
        # The server does not copy empty values.
        return fresh(read(parent, document)) or None

    return make


def _pull_policy(rule: Mapping[str, Any], path: str) -> Read:
    image = text(rule, "image")
    values = members(rule.get("values"), f"values of {path}")
    if wanting := [name for name in IMAGE_CLASSES if not isinstance(values.get(name), str)]:
        raise ValueError(f"the rule for {path} has no value for: {', '.join(wanting)}")

    def make(parent: Parent, document: Any) -> Any:
        reference = parent.get(image)
        if type(reference) is not str:
            return values["unparsable"] if reference is None else None
        return values[image_class(reference)]

    return make


def _reader(source: Mapping[str, Any], path: str, top: Steps) -> tuple[Read, bool]:
    """Return a function that reads the key or path in `source`, and whether it is a sibling."""
    if "sibling" in source:
        key = text(source, "sibling")
        return (lambda parent, document: parent.get(key)), True
    if "at" not in source:
        raise ValueError(f"sibling or at is missing for {path}")
    source_path = (*top, *steps(text(source, "at")))

    def read_there(parent: Parent, document: Any) -> Any:
        value = read(document, source_path)
        return None if value is ABSENT else value

    return read_there, False


def _condition(when: Any, path: str, top: Steps) -> tuple[Read | None, bool, bool]:
    """Return the condition of a rule, whether it holds for absent keys, and whether it is near."""
    if when is None:
        return None, True, True
    what = f"when of {path}"
    condition = members(when, what, {"sibling", "at", "in", "notIn", "only"})
    if "only" in condition:
        only = frozenset(items(condition, "only"))
        return (lambda parent, document: _alone(parent, only)), True, True
    if ("in" in condition) == ("notIn" in condition):
        raise ValueError(f"{what} needs either in or notIn")
    wanted = "in" in condition
    listed = items(condition, "in" if wanted else "notIn")
    read, near = _reader(condition, path, top)

    def applies(parent: Parent, document: Any) -> bool:
        found = read(parent, document)
        found = None if found == "" else found
        # Compare types too: 1 is not true.
        return wanted is any(type(one) is type(found) and one == found for one in listed)

    return applies, (None in listed) is wanted, near


def _alone(parent: Parent, only: frozenset[str]) -> bool:
    return all(key in only or value is None for key, value in parent.items())
