"""The rule types. To add one, write a class in a module here and list it in TABLE.

No code outside this package compares the names of rules. Ask the rule type instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from webhook.policy.rules.prohibitions import Blocked, CanAdd, CanEdit, Locked
from webhook.policy.rules.requirements import (
    ComputedDefault,
    Maximum,
    Minimum,
    OnGrid,
    Options,
    Required,
)
from webhook.policy.rules.rule_type import RuleType

TABLE: Mapping[str, RuleType] = {
    rule.name: rule
    for rule in (
        CanEdit(),
        Blocked(),
        CanAdd(),
        Locked(),
        Required(),
        Minimum(),
        Maximum(),
        OnGrid(),
        Options(),
        ComputedDefault(),
    )
}


@cache
def rules_for(value_type: str) -> frozenset[str]:
    """Return the rules that values of a type accept."""
    return frozenset(name for name, rule in TABLE.items() if value_type in rule.value_types)


def restricts(arguments: Mapping[str, Any]) -> bool:
    """Whether a rules object can reject anything."""
    return any(TABLE[name].restricts(argument) for name, argument in arguments.items())
