"""A list of trusted mutators as an installation writes it: read, or told what is wrong with it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from webhook.documents.problem import Problem
from webhook.documents.source import SourceDocument
from webhook.evaluation.trusted_mutators import EACH, Steps, TrustedMutator, TrustedMutators
from webhook.objects.path import Path, display

STEP: Final = re.compile(r'\.([A-Za-z0-9_-]+)|(\[\])|\["([^"\\]+)"\]')
KEYS: Final = ("name", "users", "kinds", "subresource", "fields", "podFields")
SUBRESOURCES: Final = ("", "scale", "resize")
PLACES: Final = {
    "fields": "in the object, such as .spec.suspend",
    "podFields": "in a pod, such as .spec.nodeSelector",
}


def parse_trusted(document: SourceDocument) -> tuple[TrustedMutators, tuple[Problem, ...]]:
    """The list of a document, and everything that is wrong with it."""
    problems = list(faults(document))
    if problems:
        return TrustedMutators(), tuple(problems)
    return TrustedMutators(tuple(map(mutator_of, document.data))), ()


def mutator_of(entry: dict[str, Any]) -> TrustedMutator:
    """An entry without faults."""
    return TrustedMutator(
        str(entry["name"]),
        frozenset(entry["users"]),
        frozenset((each.get("group", ""), each["kind"]) for each in entry["kinds"]),
        entry.get("subresource", ""),
        tuple(filter(None, map(steps_of, entry.get("fields", ())))),
        tuple(filter(None, map(steps_of, entry.get("podFields", ())))),
    )


def steps_of(text: Any) -> Steps | None:
    """The steps of a place; None for what is none, names a whole part, or ends in a list."""
    if not isinstance(text, str):
        return None
    found = list(STEP.finditer(text))
    if "".join(each[0] for each in found) != text or not text.startswith("."):
        return None
    steps = tuple(each[1] or each[2] or each[3] for each in found)
    return steps if (len(steps) > 1 or steps == ("status",)) and steps[-1] != EACH else None


def faults(document: SourceDocument) -> Iterator[Problem]:
    """Every problem of such a document, with its place."""

    def problem(path: Path, found: str, fix: str) -> Problem:
        line, column = document.position(path)
        shown = display(path) if path else ""
        return Problem(document.origin, shown, found, fix, "trusted-mutators", line, column)

    if not isinstance(document.data, list):
        yield problem((), "no list of trusted mutators", "write a list, `- name: …` each")
        return
    for index, each in enumerate(document.data):
        if not isinstance(each, dict) or not set(each) <= set(KEYS):
            yield problem((index,), "an unknown member", f"write {', '.join(KEYS)}")
            continue
        for key, found, fix in faults_of(each):
            yield problem((index, key), found, fix)


def faults_of(entry: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Key, finding and fix for all that is wrong with one entry."""
    if not isinstance(entry.get("name"), str) or not entry["name"]:
        yield "name", "no name", "write what the controller is called"
    if not all_are(exact, entry.get("users")):
        yield "users", "no exact user names", "write whole user names, without * or spaces"
    if not all_are(is_kind, entry.get("kinds")):
        yield "kinds", "no list of kinds", "write {group: …, kind: …} for each kind"
    if entry.get("subresource", "") not in SUBRESOURCES:
        yield "subresource", "no such subresource", "write scale or resize, or leave it out"
    for key, where in PLACES.items():
        listed = entry.get(key, [])
        if not isinstance(listed, list):
            yield key, "no list", "write a list of paths"
            continue
        for text in listed:
            steps = steps_of(text)
            if steps is None or (key == "podFields" and steps[0] not in ("spec", "metadata")):
                yield key, f"{str(text)[:80]} is no single field", f"write a path {where}"
    if not entry.get("fields") and not entry.get("podFields"):
        yield "fields", "no fields", "write the fields that may change"


def all_are(right: Callable[[Any], bool], value: Any) -> bool:
    """Whether something is a list that holds anything, and only what is right."""
    return isinstance(value, list) and bool(value) and all(map(right, value))


def exact(user: Any) -> bool:
    """Whether something is one user's whole name, and one that somebody has to log in for."""
    if not isinstance(user, str) or user in ("", "system:anonymous"):
        return False
    return not set(user) & set("* \t\n")


def is_kind(value: Any) -> bool:
    """Whether something names one kind."""
    return (
        isinstance(value, dict)
        and set(value) <= {"group", "kind"}
        and isinstance(value.get("group", ""), str)
        and isinstance(value.get("kind"), str)
        and "*" not in (value.get("group", ""), value["kind"])
    )
