"""Finds intermediate kinds that nobody has defined: what is made from them was not evaluated."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from webhook.catalog.definition_order import KindName, Stated
from webhook.documents.problem import Problem
from webhook.interface.profile import Profile
from webhook.interface.profile_build import SPEC
from webhook.objects.path import display

REASON = "intermediate-kind"
FIX = "give a ResourceInterface for it, with a WorkloadProfile where its pods have roles"


def with_gaps(
    profiles: Iterable[Stated[Profile]], defined: Collection[KindName]
) -> tuple[list[Stated[Profile]], list[Problem]]:
    """The profiles, those with a gap marked so that their children are merged; a warning for each.

    A tenant who edits an object of an undefined kind meets no rule, and its controller passes the
    pods on. So the pods are evaluated, whatever the profile says of its components.
    """
    found, problems = [], []
    for stated in profiles:
        marked = mark(stated.value, defined)
        found.append(stated if marked is stated.value else replace(stated, value=marked))
        several = (marked, *marked.others.values())
        missing = {kind for each in several for kind in each.undefined_kinds}
        problems += [gap(stated, kind) for kind in sorted(missing)]
    return found, problems


def mark(profile: Profile, defined: Collection[KindName]) -> Profile:
    """The profile with the intermediate kinds that have no definition, version by version."""
    others = {version: mark(each, defined) for version, each in profile.others.items()}
    missing = frozenset(each for each in profile.intermediate_kinds if each not in defined)
    if not missing and all(others[version] is each for version, each in profile.others.items()):
        return profile
    return replace(profile, undefined_kinds=missing, others=others)


def gap(stated: Stated[Profile], kind: KindName) -> Problem:
    """The warning about one kind."""
    path = (*SPEC, "intermediateKinds")
    line, column = stated.document.position(path)
    name = ".".join(filter(None, reversed(kind)))
    told = f"{name} has no definition, so its pods are evaluated as if children were merged"
    origin = stated.document.origin
    return Problem(origin, display(path), told, FIX, REASON, line, column, severity="warning")
