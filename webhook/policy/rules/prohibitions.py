"""Rules on what a user may set or add."""

from __future__ import annotations

from typing import Any

from webhook.policy.rules.rule_type import Prohibition, Sentence
from webhook.policy.values import ITEMIZED, SCALARS


class CanEdit(Prohibition):
    """Allows only the default, or no value if there is none."""

    name = "canEdit"
    meaning = (
        "false: a user's value must equal the default; without a default no value may be given"
    )
    value_types = SCALARS
    fixes_default = True
    forbids = False
    sentence = Sentence(
        "{value} differs from the required value {allowed}",
        "Remove it, or write the required value.",
        bare="{key} is missing or differs from the required value",
        lone="{value} is set, but no value may be chosen here",
        lone_fix="Remove it.",
    )


class Blocked(Prohibition):
    """Allows no value, not even the default."""

    name = "blocked"
    meaning = "true: no value may be given at all, the default's repetition included"
    value_types = SCALARS - {"object"}
    forbids = True
    sentence = Sentence(
        "{value} is set, but this must stay unset", "Remove it.", bare="{key} must stay unset"
    )

    def claims(self, argument: Any) -> bool:
        return self.prohibits(argument)


class CanAdd(Prohibition):
    """Allows no items other than those of the policy."""

    name = "canAdd"
    meaning = "false: only items whose key is among the default or imposed items"
    value_types = ITEMIZED
    of_items = True
    forbids = False
    sentence = Sentence(
        "item {key} may not be added; the policy allows {allowed}",
        "Remove the item.",
        bare="item {key} may not be added",
        lone="item {key} may not be added",
    )

    def locks_item(self, argument: Any, key: str) -> bool:
        return self.prohibits(argument)


class Locked(Prohibition):
    """Requires items of the policy, unchanged."""

    name = "locked"
    argument = "keys"
    meaning = "the named items must be present and unchanged"
    value_types = ITEMIZED
    of_items = True
    adds_up = True
    sentence = Sentence(
        "item {key} is {value}, but it is locked as {allowed}",
        "Remove the item; the policy adds it.",
        bare="item {key} is locked, but it is missing or differs from the policy",
        lone="item {key} is locked, but its {value} differs from the policy",
    )

    def prohibits(self, argument: Any) -> bool:
        return bool(argument)

    def locks_item(self, argument: Any, key: str) -> bool:
        return key in argument
