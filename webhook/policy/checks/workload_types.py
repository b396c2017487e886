"""Checks of fields that none or only some of a policy's workload types can carry."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from webhook.documents.problem import Problem
from webhook.objects.path import Path
from webhook.policy.body import Draft
from webhook.policy.policy import role_level
from webhook.policy.row import ALL_TYPES, SERVING_PORT, Binding, Field
from webhook.policy.table import TABLE

ROLE_TYPES = {
    role_level("master"): frozenset({"distributed"}),
    role_level("leader"): frozenset({"distributedInference"}),
    role_level("worker"): frozenset({"distributed", "distributedInference"}),
}
ASSET_TYPES = frozenset(ALL_TYPES) - {"nimService"}
LIMITED = (Binding.WORKLOAD, Binding.NOTHING)


def is_limited(row: Field) -> bool:
    """Whether only some types carry a field, because it is not part of every pod."""
    return row.binding in LIMITED or row.shape == SERVING_PORT


Use = tuple[Path, str, frozenset[str]]
"""A path in a policy, what it is about, and the workload types that can carry that."""


class NoBoundType:
    """None of the policy's types can carry the field."""

    ids: ClassVar = {
        "no-bound-type": "No workload type that the policy is for can carry the field."
    }
    severity = "error"

    def run(self, draft: Draft) -> Iterator[Problem]:
        for path, what, carriers in uses(draft):
            if draft.types and not draft.types & carriers:
                found = f"{what} for {', '.join(sorted(draft.types))}"
                fix = f"remove it; only {', '.join(sorted(carriers))} have it"
                yield draft.report.found_by(self, path, found, fix)


class SomeTypesOnly:
    """Some of the policy's types cannot carry the field."""

    ids: ClassVar = {
        "some-types-only": "Only some of the workload types that the policy is for can carry it."
    }
    severity = "warning"

    def run(self, draft: Draft) -> Iterator[Problem]:
        for path, what, carriers in uses(draft):
            if draft.types and draft.types & carriers and draft.types - carriers:
                missing = ", ".join(sorted(draft.types - carriers))
                fix = f"leave {missing} out of the policy, or accept that it has no effect there"
                yield draft.report.found_by(self, path, f"{what} for {missing}", fix)


def uses(draft: Draft) -> Iterator[Use]:
    """Return the entries that not every type can carry. A role without any type is returned alone."""
    types, dead = draft.types or frozenset(), set()
    for (kind, level, _, word), path in sorted(draft.paths.items(), key=lambda one: one[0]):
        if kind == "level" and level in ROLE_TYPES:
            if not types & ROLE_TYPES[level]:
                dead.add(level)
            yield path, f"{level.removeprefix('role:')}:", ROLE_TYPES[level]
        elif kind == "imposed" and word:
            yield path, "an imposed asset", ASSET_TYPES
    for (kind, level, leaf, _), path in draft.paths.items():
        if kind == "leaf" and level not in dead and is_limited(TABLE.fields[leaf]):
            yield path, leaf, frozenset(TABLE.fields[leaf].types)
