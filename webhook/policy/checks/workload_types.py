"""Finds what no workload type, or only some, that a policy is for can carry."""

from __future__ import annotations

from webhook.objects.path import Path
from webhook.policy.body import Draft
from webhook.policy.policy import role_level
from webhook.policy.report import Report
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
    """Whether only some types carry a field: those without a place in every pod are."""
    return row.binding in LIMITED or row.shape == SERVING_PORT


def check(draft: Draft, types: frozenset[str] | None) -> None:
    """Tell what the bound types cannot carry; without bound types there is nothing to tell."""
    if not types:
        return
    report, dead = draft.report, set()
    for (kind, level, _, word), path in sorted(draft.places.items(), key=lambda one: one[0]):
        if kind == "level" and level in ROLE_TYPES:
            if not types & ROLE_TYPES[level]:
                dead.add(level)
                tell(report, path, f"{level.removeprefix('role:')}:", types, ROLE_TYPES[level])
        elif kind == "imposed" and word:
            tell(report, path, "an imposed asset", types, ASSET_TYPES)
    for (kind, level, leaf, _), path in draft.places.items():
        if kind == "leaf" and level not in dead and is_limited(TABLE.fields[leaf]):
            tell(report, path, leaf, types, frozenset(TABLE.fields[leaf].types))


def tell(
    report: Report, path: Path, what: str, types: frozenset[str], carriers: frozenset[str]
) -> None:
    """An error when none of the types can carry it, a note when some cannot."""
    if not types & carriers:
        fix = f"remove it; only {', '.join(sorted(carriers))} have it"
        report.error(path, "no-bound-type", f"{what} for {', '.join(sorted(types))}", fix)
    elif types - carriers:
        missing = ", ".join(sorted(types - carriers))
        fix = f"leave {missing} out of the policy, or accept that it has no effect there"
        report.warn(path, "some-types-only", f"{what} for {missing}", fix)
