"""Native values of item attributes in the form in which policies hold theirs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from webhook.policy.row import Attribute


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A native value that its attribute's type cannot be read from, or that stands elsewhere.

    Rules refuse it as invalid: whoever could hide a value would go round them.
    """

    raw: Any
    wanted: str = ""


def comparable(attribute: Attribute, raw: Any) -> Any:
    """A native value as a policy's default of the attribute is held; Unreadable if it is none."""
    if isinstance(raw, Unreadable):
        return raw
    try:
        return attribute.reading().read(raw)
    except (ValueError, TypeError, AttributeError):
        return Unreadable(raw)


def written(attribute: Attribute, value: Any, raw: Any) -> Any:
    """The native form of a policy's value; `raw` is how the policy wrote it."""
    return attribute.reading().write(value, raw)
