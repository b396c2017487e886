"""The base class of rule types, so that no other code compares rules by name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from webhook.policy.values import Codec

INTENT, FINAL, DEFAULT = "intent", "final", "default"
Form = Literal["prohibition", "presence", "bound", "membership", "default-source"]
ArgumentForm = Literal["boolean", "value", "number", "options", "keys", "source"]
Holds = Callable[[Any, Any], bool]
"""Whether a value meets the argument of a rule."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """The message of a violation, and what to do.

    `bare` is used if the value is secret or absent, `lone` if there is a value but no allowed one.
    Both fall back to `message`. Parameters: {value} {allowed} {key}.
    """

    message: str
    fix: str
    bare: str = ""
    lone: str = ""
    lone_fix: str = ""


class RuleType(ABC):
    """One rule. Rule types are stateless, with one instance in the table of this package.

    Combining scopes uses `claims`, `constrains`, `prohibits` and `locks_item`. Field handlers use
    the other members. `argument` is the form of the rule's argument in a policy: `boolean`;
    `value` (of the field's type); `number` (exact, in the field's unit); `options` (a set);
    `keys` (of items); `source` (another field and a factor).
    """

    name: ClassVar[str]
    form: ClassVar[Form]
    stage: ClassVar[str]
    argument: ClassVar[ArgumentForm]
    meaning: ClassVar[str]
    value_types: ClassVar[frozenset[str]]
    sentence: ClassVar[Sentence | None] = None
    of_items: ClassVar[bool] = False
    """Whether the rule restricts items by their keys, not a value."""
    fixes_default: ClassVar[bool] = False
    """Whether the rule allows only the default."""
    requires_value: ClassVar[bool] = False
    is_minimum: ClassVar[bool] = False
    is_maximum: ClassVar[bool] = False
    adds_up: ClassVar[bool] = False
    """Whether arguments of several policies apply together, so that different ones do not conflict."""

    @property
    def is_ordered(self) -> bool:
        """Whether the rule is a minimum or a maximum."""
        return self.is_minimum or self.is_maximum

    def prohibits(self, argument: Any) -> bool:
        """Whether the rule forbids editing, adding or setting."""
        return False

    def constrains(self, argument: Any) -> bool:
        """Whether the rule can reject or compute anything."""
        return argument is not False

    def restricts(self, argument: Any) -> bool:
        """Whether the rule can reject anything."""
        return self.stage != DEFAULT and self.constrains(argument)

    def claims(self, argument: Any) -> bool:
        """Whether a scope with this rule counts as setting the rules of the leaf."""
        return True

    def locks_item(self, argument: Any, key: str) -> bool:
        """Whether the rule forbids narrower scopes to set an item with this key."""
        return False

    def check_of(self, *, elements: bool) -> Holds | None:
        """Return the check of a value, or of every element of it. None: no value is checked."""
        return None

    def complete(self, argument: Any, beside: Mapping[str, Any]) -> Any:
        """Return the argument, completed from the other arguments of the rules object."""
        return argument

    def is_no_further(self, value: Any, old: Any) -> bool:
        """Whether a value that breaks the rule is no further from it than the old one."""
        return bool(value == old)

    def show(self, argument: Any, codec: Codec, *, secret: bool = False) -> str:
        """Show what the rule allows. `secret` hides values of secret fields, if they could be."""
        return codec.show(argument)


class Prohibition(RuleType):
    """A rule on what a user can set, evaluated on what the user wrote."""

    form = "prohibition"
    stage = INTENT
    argument: ClassVar[ArgumentForm] = "boolean"
    forbids: ClassVar[bool]
    """The argument that forbids. The other one lifts a prohibition of the system scope."""

    def prohibits(self, argument: Any) -> bool:
        return argument is self.forbids

    def constrains(self, argument: Any) -> bool:
        return self.prohibits(argument)


class ValueRule(RuleType):
    """A rule on a value, evaluated on the object after defaults."""

    stage = FINAL

    @staticmethod
    @abstractmethod
    def allows(value: Any, argument: Any) -> bool:
        """Whether a value meets the argument."""

    def check_of(self, *, elements: bool) -> Holds:
        return self.allows


class BoundRule(ValueRule):
    """A rule on numbers and amounts."""

    form = "bound"
    argument: ClassVar[ArgumentForm] = "value"
