"""Checks of policies. To add one, write a class in the file of its subject and list it here.

A check is a `documents.problem.Check`. Its ids are the stable reasons.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from webhook.documents.problem import Check, Problem
from webhook.policy.body import Draft
from webhook.policy.checks import (
    companions,
    conflicts,
    defaults,
    items,
    policy_set,
    rules,
    settings,
    storage,
    unenforceable,
    workload_types,
)
from webhook.policy.checks.level import Level
from webhook.policy.checks.meeting import PolicySet
from webhook.policy.checks.settings import PolicyHere, Settings
from webhook.policy.combine import GUARDED
from webhook.policy.policy import Asset, Policy

OF_LEVELS: tuple[Check[Level], ...] = (
    rules.MinimumAboveMaximum(),
    rules.BoundBeyondRange(),
    rules.ImpossibleRequired(),
    rules.BlockedBesideRules(),
    rules.MaximumOffGrid(),
    defaults.DefaultOutsideRules(),
    defaults.ValueOutOfRange(),
    defaults.BadName(),
    defaults.DefaultsOutOfOrder(),
    defaults.DefaultFromCycle(),
    companions.IncompleteDefault(),
    companions.ExclusiveDefaults(),
    items.ExcludedAndLocked(),
    items.ExclusiveAttributes(),
    items.AttributeOutOfPlace(),
    items.IncompleteLockedItem(),
    items.IncompleteItem(),
    storage.VolumesClash(),
    storage.MixedPropagation(),
)
"""Checks of one policy, level by level."""
OF_DRAFTS: tuple[Check[Draft], ...] = (
    workload_types.NoBoundType(),
    workload_types.SomeTypesOnly(),
    unenforceable.NotEnforceable(),
    unenforceable.OutdatedField(),
)
"""Checks of one policy as a whole."""
OF_SETS: tuple[Check[PolicySet], ...] = (
    policy_set.ImposedAssets(),
    conflicts.Conflict(),
    policy_set.LockedWithoutItem(),
    policy_set.CombinedPolicies(),
)
"""Checks of all policies and assets against one another."""
OF_SETTINGS: tuple[Check[PolicyHere], ...] = (
    settings.NeedsSettings(),
    settings.BlindWithoutSettings(),
    settings.ClaimCreated(),
    settings.ClaimNotCreated(),
)
"""Checks of one policy against the settings of the installation."""


def check_policy(draft: Draft) -> Iterator[Problem]:
    """Return every problem within one policy. A problem of several levels is reported once."""
    reported: set[tuple[str, str]] = set()
    for name in draft.levels():
        level = Level(draft, name)
        for check in OF_LEVELS:
            for each in check.run(level):
                if (each.reason, each.path) not in reported:
                    reported.add((each.reason, each.path))
                    yield each
    for check_of_draft in OF_DRAFTS:
        yield from check_of_draft.run(draft)


def check_together(
    policies: Sequence[Policy], assets: Mapping[str, Asset], combination: str = GUARDED
) -> tuple[Problem, ...]:
    """Return every problem between documents. Each path and reason is reported once."""
    subject = PolicySet(policies, assets, combination)
    found = [each for check in OF_SETS for each in check.run(subject)]
    unique = {(each.origin, each.path, each.line, each.reason, each.found): each for each in found}
    return tuple(sorted(unique.values(), key=lambda each: (each.origin, each.line, each.column)))


def check_settings(
    policies: Iterable[Policy], assets: Mapping[str, Asset], settings: Settings
) -> tuple[Problem, ...]:
    """Return every problem between policies and the settings, in order of the policies."""
    subjects = [PolicyHere(each, assets, settings) for each in policies]
    found = (each for one in subjects for check in OF_SETTINGS for each in check.run(one))
    return tuple(dict.fromkeys(found))


def meanings() -> dict[str, str]:
    """Return every reason of a check with its meaning."""
    tables: tuple[tuple[Check[Any], ...], ...] = (OF_LEVELS, OF_DRAFTS, OF_SETS, OF_SETTINGS)
    return {
        reason: each for table in tables for check in table for reason, each in check.ids.items()
    }
