"""The rules of the server-default table, read into functions over plain documents."""

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
from webhook.objects import path as pointer
from webhook.objects.path import ABSENT

Steps = tuple[str, ...]
"""A place by keys; EACH stands for every item of a list."""

Parent = dict[str, Any]
Read = Callable[[Parent, Any], Any]
"""What a rule reads in the object around its place, or else in the whole document."""

EACH = "[]"
STEP = re.compile(r'\.?([A-Za-z_][A-Za-z0-9_-]*)|\.?\["((?:[^"\\]|\\.)*)"\]|(\[\])')
FORMS = ("value", "copyFrom", "rule")


@dataclass(frozen=True, slots=True)
class Rule:
    """One default: what is put `at` a place, where `holds` is true and nothing stands there yet.

    `make` returns None for nothing. `constant` is what it always returns, None if that varies;
    `usual` says whether the rule acts when the keys that decide are absent, `near` whether it
    needs no more than the object around its place.
    """

    at: Steps
    make: Read
    holds: Read | None = None
    empty_too: bool = False
    constant: Any = None
    usual: bool = True
    near: bool = True

    def value(self, parent: Parent, document: Any) -> Any:
        """What the server would put into `parent` if nothing stood there; None for nothing."""
        if self.holds is not None and not self.holds(parent, document):
            return None
        return self.make(parent, document)

    def addition(self, parent: Parent, document: Any) -> Any:
        """What the server puts into `parent` under the last key of `at`, None for nothing."""
        present = parent.get(self.at[-1])
        if present is not None and (present or not self.empty_too):
            return None
        value = self.value(parent, document)
        # An empty value of another type is a mistake of the user, which the server refuses.
        return value if present is None or type(present) is type(value) else None


def steps(text: str) -> Steps:
    """The steps of a path such as `a.b[]["k.e/y"]`; ValueError for other text."""
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
    """One rule of the table without calculation; `scope` leads to where it is at home.

    Paths of `at` begin at `top`. Raises ValueError with a clear text.
    """
    rule = members(data, "a rule", {"path", *FORMS, "emptyToo", "when", "image", "values"})
    path = text(rule, "path")
    at = (*scope, *steps(path))
    if sum(form in rule for form in FORMS) != 1 or at[-1] == EACH:
        raise ValueError(f"the rule for {path} needs a key at its end, and one of value, copyFrom")
    holds, usual, close = _condition(rule.get("when"), path, top)
    if "value" in rule:
        if (constant := rule["value"]) is None:
            raise ValueError(f"the value for {path} is null")
        empty_too = rule.get("emptyToo") is True
        return Rule(at, _constant(constant), holds, empty_too, constant, usual, close)
    if "rule" in rule:
        return Rule(at, _pull_policy(rule, path), holds, empty_too=True, usual=usual, near=close)
    source = members(rule["copyFrom"], f"copyFrom of {path}", {"sibling", "at"})
    make, near = _reader(source, path, top)
    empty_too = rule.get("emptyToo") is True
    return Rule(at, _copied(make), holds, empty_too, None, usual, near and close)


def calculation(data: Any) -> Calculation | None:
    """The calculation that a rule of the table names; None for other rules."""
    name = data.get("rule") if isinstance(data, dict) else None
    if name is None or name == "image-tag":
        return None
    if name not in CALCULATIONS:
        raise ValueError(f"no such rule: {json.dumps(name)}")
    return CALCULATIONS[name]


def members(data: Any, what: str, known: set[str] | None = None) -> Mapping[str, Any]:
    """`data` as a map whose keys are `known`; ValueError that names `what` if it is none."""
    if not isinstance(data, dict) or not all(isinstance(key, str) for key in data):
        raise ValueError(f"{what} is not a map")
    if known is not None and (strange := sorted(set(data) - known)):
        raise ValueError(f"{what} has unknown keys: {', '.join(strange)}")
    return data


def text(data: Mapping[str, Any], key: str) -> str:
    """The text under `key`; ValueError when there is none."""
    value = data.get(key)
    if not isinstance(value, str) or not value:
        raise ValueError(f"{key} is not text: {value!r}")
    return value


def items(data: Mapping[str, Any], key: str) -> list[Any]:
    """The list under `key`; ValueError when there is none."""
    value = data.get(key)
    if type(value) is not list:
        raise ValueError(f"{key} is not a list: {value!r}")
    return value


def fresh(value: Any) -> Any:
    """`value`, copied if it could be changed."""
    return copy.deepcopy(value) if type(value) is dict or type(value) is list else value


def _constant(value: Any) -> Read:
    return lambda parent, document: fresh(value)


def _copied(read: Read) -> Read:
    def make(parent: Parent, document: Any) -> Any:
        # Copying what is empty adds nothing: the server leaves that away.
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
    """What reads the key or path that `source` names, and whether it is a key beside."""
    if "sibling" in source:
        key = text(source, "sibling")
        return (lambda parent, document: parent.get(key)), True
    if "at" not in source:
        raise ValueError(f"sibling or at is missing for {path}")
    place = (*top, *steps(text(source, "at")))

    def read(parent: Parent, document: Any) -> Any:
        value = pointer.read(document, place)
        return None if value is ABSENT else value

    return read, False


def _condition(when: Any, path: str, top: Steps) -> tuple[Read | None, bool, bool]:
    """What tells whether the rule acts, whether it does on absent keys, whether all is near."""
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

    def holds(parent: Parent, document: Any) -> bool:
        found = read(parent, document)
        found = None if found == "" else found
        # Compared with types: 1 is no true.
        return wanted is any(type(one) is type(found) and one == found for one in listed)

    return holds, (None in listed) is wanted, near


def _alone(parent: Parent, only: frozenset[str]) -> bool:
    return all(key in only or value is None for key, value in parent.items())
