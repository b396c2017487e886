"""Converts native values of item attributes to the form in policies, and back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from webhook.policy.row import Attribute


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A native value that its attribute's type cannot parse, or that is elsewhere.

    Rules refuse it as invalid: otherwise hiding a value would bypass them.
    """

    raw: Any
    wanted: str = ""


def comparable(attribute: Attribute, raw: Any) -> Any:
    """Return a native value in the form of a policy's default, Unreadable if that is not possible."""
    if isinstance(raw, Unreadable):
        return raw
    try:
        return attribute.reading().read(raw)
    except (ValueError, TypeError, AttributeError):
        return Unreadable(raw)


def to_native(attribute: Attribute, value: Any, raw: Any) -> Any:
    """Return the native form of a policy's value. `raw` is the policy's text."""
    return attribute.reading().write(value, raw)
