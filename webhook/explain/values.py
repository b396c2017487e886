"""Converts values and arguments of policies to JSON, in the authors' notation."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from webhook.explain.model import Setting
from webhook.policy.combine import Constraint, Leaf
from webhook.policy.policy import Default, DefaultFrom
from webhook.policy.rules.prohibitions import Locked
from webhook.policy.rules.requirements import Options, Step
from webhook.policy.table import TABLE


def default_of(leaf: Leaf) -> Setting | None:
    """Return the default in force, with the value as written, None for a secret one."""
    default = leaf.default
    if default is None:
        return None
    return Setting("default", default_value(leaf.path, default.value, default.raw), default.source)


def default_value(path: str, value: Any, raw: Any) -> Any:
    """Return a default as JSON, in the author's notation if there is one."""
    if TABLE.owner(path).secret:
        return None
    return TABLE.leaf_codec(path).show(value) if raw is None else raw


def attributes_of(attributes: Mapping[str, Default], *, secret: bool) -> dict[str, Any]:
    """Return an item's attributes. In secret fields only the name has a value."""
    return {
        name: None if secret and name != "name" else each.value if each.raw is None else each.raw
        for name, each in attributes.items()
    }


def rule_setting(path: str, constraint: Constraint) -> Setting:
    """Return a rule with its argument as JSON: true, false, a text, or a list of texts."""
    return Setting(constraint.rule, argument_of(path, constraint), constraint.source)


def argument_of(path: str, constraint: Constraint) -> Any:
    """Return a rule's argument, None if it contains a value of a secret field."""
    argument, codec = constraint.argument, TABLE.leaf_codec(path)
    if isinstance(argument, bool):
        return argument
    if isinstance(argument, DefaultFrom):
        return f"{argument.field} x {factor_text(argument.factor)}"
    if isinstance(constraint.type, Locked):
        return sorted(argument)
    if TABLE.owner(path).secret:
        return None
    if isinstance(argument, Step):
        return f"{codec.show(argument.distance)}, counted from {codec.show(argument.anchor)}"
    if isinstance(constraint.type, Options):
        return sorted(each if isinstance(each, str) else codec.show(each) for each in argument)
    return codec.show(argument)


def factor_text(factor: Fraction) -> str:
    """Return a factor as a decimal."""
    return str(factor.numerator) if factor.denominator == 1 else str(float(factor))
