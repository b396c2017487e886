"""Controllers that an installation trusts to change fields of workloads: users, kinds, fields.

- name: kueue
  users: ["system:serviceaccount:kueue-system:kueue-controller-manager"]
  kinds: [{group: batch, kind: Job}]
  subresource: scale      # or resize; absent: the object itself
  fields: [.spec.suspend, '.metadata.annotations["a/b"]', '.spec.sets[].replicas']
  podFields: [.spec.nodeSelector, .metadata.labels]   # in each of the workload's pods

An update is trusted if it changes nothing else. For a scale, `kinds` are the scaled kinds, or Scale
of autoscaling for everything that scales.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal

from webhook.documents.problem import Problem
from webhook.documents.source import SourceDocument
from webhook.evaluation.request import KEPT_BY_SERVER, Request
from webhook.objects.path import Path, display
from webhook.pods.definition import Definition
from webhook.pods.locate import locate
from webhook.pods.location import LocationError

EACH: Final = "[]"
STEP: Final = re.compile(r'\.([A-Za-z0-9_-]+)|(\[\])|\["([^"\\]+)"\]')
KEYS: Final = ("name", "users", "kinds", "subresource", "fields", "podFields")
SUBRESOURCES: Final = ("", "scale", "resize")
PLACES: Final = {
    "fields": "in the object, such as .spec.suspend",
    "podFields": "in a pod, such as .spec.nodeSelector",
}

Steps = tuple[str | int, ...]
Kind = tuple[str, str]


@dataclass(frozen=True, slots=True)
class TrustedMutator:
    """One controller. `fields` are paths of the object, `pod_fields` of each pod in it."""

    name: str
    users: frozenset[str]
    kinds: frozenset[Kind]
    subresource: Literal["", "scale", "resize"] = ""
    fields: tuple[Steps, ...] = ()
    pod_fields: tuple[Steps, ...] = ()


@dataclass(frozen=True, slots=True)
class TrustedMutators:
    """An installation's list. An empty one trusts nobody."""

    entries: tuple[TrustedMutator, ...] = ()

    def trusts(self, request: Request, definition: Definition | None) -> bool:
        """Return whether a trusted user changes only fields that the list allows.

        `definition` is the definition of the object, or of the scaled object. Without one there are
        no pods.
        """
        if request.operation != "UPDATE" or not isinstance(request.old, dict):
            return False
        kinds = {(request.group, request.kind)}
        if definition is not None and request.subresource == "scale":
            kinds.add((definition.interface.group, definition.interface.kind))
        matching = [
            each
            for each in self.entries
            if request.user in each.users
            and request.subresource == each.subresource
            and not kinds.isdisjoint(each.kinds)
        ]
        if not matching or not isinstance(request.object, dict):
            return False
        try:
            return remainder(request.object, matching, definition) == remainder(
                request.old, matching, definition
            )
        except LocationError:
            return False


def remainder(
    document: dict[str, Any], matching: Iterable[TrustedMutator], definition: Definition | None
) -> dict[str, Any]:
    """Return a copy of the object without the paths that may differ."""
    paths = [steps for each in matching for steps in each.fields]
    pod_fields = [steps for each in matching for steps in each.pod_fields]
    if pod_fields and definition is not None:
        paths += find_pod_field_paths(document, definition, pod_fields)
    left = copy.deepcopy(document)
    for steps in (*paths, *(("metadata", key) for key in KEPT_BY_SERVER)):
        remove_path(left, steps)
    return left


def find_pod_field_paths(
    document: Any, definition: Definition, fields: Iterable[Steps]
) -> Iterator[Steps]:
    """Yield the paths of pod fields in the object. A pod in fragments has none."""
    for location in locate(definition, document):
        bases = {"spec": location.spec_path, "metadata": location.metadata_path}
        for first, *rest in fields:
            base = bases.get(str(first))
            if base is not None and location.fragments is None:
                yield (*base, *rest)


def remove_path(node: Any, steps: Steps) -> bool:
    """Remove a path, and maps that become empty. Return whether `node` becomes an empty map."""
    first, rest = steps[0], steps[1:]
    if isinstance(node, list):
        for index, item in enumerate(node):
            if first in (EACH, index):
                remove_path(item, rest)
        return False
    if not isinstance(node, dict) or first not in node:
        return False
    if not rest or remove_path(node[first], rest):
        del node[first]
    return not node


def parse_trusted(document: SourceDocument) -> tuple[TrustedMutators, tuple[Problem, ...]]:
    """Return the list in a document, and all its problems."""
    problems = list(faults(document))
    if problems:
        return TrustedMutators(), tuple(problems)
    return TrustedMutators(tuple(map(mutator_of, document.data))), ()


def mutator_of(entry: dict[str, Any]) -> TrustedMutator:
    """Convert an entry without faults."""
    return TrustedMutator(
        str(entry["name"]),
        frozenset(entry["users"]),
        frozenset((each.get("group", ""), each["kind"]) for each in entry["kinds"]),
        entry.get("subresource", ""),
        tuple(filter(None, map(steps_of, entry.get("fields", ())))),
        tuple(filter(None, map(steps_of, entry.get("podFields", ())))),
    )


def steps_of(text: Any) -> Steps | None:
    """Return the steps of a path. None if it is invalid, names a whole section, or ends in a list."""
    if not isinstance(text, str):
        return None
    found = list(STEP.finditer(text))
    if "".join(each[0] for each in found) != text or not text.startswith("."):
        return None
    steps = tuple(each[1] or each[2] or each[3] for each in found)
    return steps if (len(steps) > 1 or steps == ("status",)) and steps[-1] != EACH else None


def faults(document: SourceDocument) -> Iterator[Problem]:
    """Yield every problem of the document, with its path."""

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
    """Yield key, finding and fix for each problem of one entry."""
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
    """Return whether a value is a list that is not empty and whose items are all `right`."""
    return isinstance(value, list) and bool(value) and all(map(right, value))


def exact(user: Any) -> bool:
    """Return whether a value is the whole name of one user that has to authenticate."""
    if not isinstance(user, str) or user in ("", "system:anonymous"):
        return False
    return not set(user) & set("* \t\n")


def is_kind(value: Any) -> bool:
    """Return whether a value names one kind."""
    return (
        isinstance(value, dict)
        and set(value) <= {"group", "kind"}
        and isinstance(value.get("group", ""), str)
        and isinstance(value.get("kind"), str)
        and "*" not in (value.get("group", ""), value["kind"])
    )
