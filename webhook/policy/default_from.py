"""Reads `defaultFrom`: the field that a default is computed from, found by any of its names."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from webhook.objects import quantity
from webhook.objects.path import Path
from webhook.policy import values
from webhook.policy.leaves import LEAF_NAMES, LeafType, leaf_type
from webhook.policy.names import Found, Names, members, respelled
from webhook.policy.policy import EVERYWHERE, ROLES, DefaultFrom, role_level
from webhook.policy.report import Report, shown
from webhook.policy.row import SERVING_PORT, WORKLOAD, Binding, Field

NUMBERS = frozenset({"integer", "number"})
ROLE_WORDS = {role: role for role in ROLES} | {f"{role}spec": role for role in ROLES}


def read(
    report: Report,
    level: str,
    leaf: LeafType,
    raw: Any,
    path: Path,
    names: Names = LEAF_NAMES,
) -> DefaultFrom | None:
    """The canonical source of a computed default and its exact factor."""
    if not isinstance(raw, dict):
        report.wrong_type(path, raw, "{field: …, factor: …}")
        return None
    parts = members(report, raw, path, ("field", "factor"))
    factor = read_factor(report, parts["factor"]) if "factor" in parts else Fraction(1)
    if "field" not in parts:
        report.error(path, "missing-value", "defaultFrom without field", "write field: …")
        return None
    source = read_field(report, level, leaf, parts["field"], names)
    return None if source is None or factor is None else DefaultFrom(source, factor)


def read_factor(report: Report, found: Found) -> Fraction | None:
    """A decimal number above zero, exact."""
    text = report.document.text(found.path)
    try:
        factor = Fraction(quantity.parse_decimal(found.raw if text is None else text))
    except ValueError:
        report.wrong_type(found.path, found.raw, "a decimal number such as 0.5")
        return None
    if factor <= 0:
        report.error(found.path, "bad-factor", shown(found.raw), "write a number above 0")
        return None
    return factor / quantity.NANO


def read_field(
    report: Report, level: str, leaf: LeafType, found: Found, names: Names
) -> str | None:
    """The canonical path of the source, if a default of `leaf` can be computed from it."""
    if not isinstance(found.raw, str):
        report.wrong_type(found.path, found.raw, "the name of a field")
        return None
    role, name = without_role(found.raw)
    source, spelled = resolve(leaf, name, names)
    if source is None:
        meant = names.suggest("", name)
        fix = f"did you mean {meant}?" if meant else "name a field, such as compute.cpuCoreLimit"
        report.error(found.path, "default-from-unknown", shown(found.raw), fix)
        return None
    if source != spelled:
        respelled(report, found.path, found.raw, source)
    fault = unfit(level, role, leaf, leaf_type(source))
    if fault:
        report.error(found.path, fault[0], shown(found.raw), fault[1])
        return None
    return source


def without_role(name: str) -> tuple[str, str]:
    """A role prefix, such as the worker of worker.compute.cpuCoreLimit, and the rest."""
    first, _, rest = name.partition(".")
    role = ROLE_WORDS.get(first.lower(), "")
    return (role, rest) if role and rest else ("", name)


def resolve(leaf: LeafType, name: str, names: Names = LEAF_NAMES) -> tuple[str | None, str]:
    """The canonical path that `name` stands for, and the spelling it was found by.

    Attributes look at the same item first; fields are looked up absolutely, then in the section.
    """
    plain = name.replace(".attributes.", ".").replace(".instances.", ".")
    candidates = [plain]
    if leaf.is_attribute:
        candidates.insert(0, f"{leaf.row.path}.{plain}")
    elif leaf.row.section != "root":
        candidates.append(f"{leaf.row.section}.{plain}")
    for spelled in candidates:
        folded = spelled.lower()
        source = names.leaves.get(folded) or names.aliases.get(folded)
        if source is not None:
            return source, spelled
    return None, plain


def of_pods(row: Field) -> bool:
    """Whether a field is one of each pod, and not of the workload as a whole."""
    return row.binding not in (Binding.WORKLOAD, Binding.NOTHING) and row.shape != SERVING_PORT


def is_near(one: Field, other: Field) -> bool:
    """Whether both are fields of a pod, or both of the workload, so that one can follow the other."""
    return (of_pods(one) and of_pods(other)) or one.shape == other.shape == WORKLOAD


def unfit(level: str, role: str, leaf: LeafType, source: LeafType) -> tuple[str, str] | None:
    """Reason and fix when `leaf` cannot be computed from `source`."""
    if source.path == leaf.path:
        return "default-from-self", "name another field"
    if role and level != role_level(role):
        where = "outside all roles" if level == EVERYWHERE else "below another role"
        return "default-from-elsewhere", f"this rule is {where}: write the field without {role}."
    if leaf.is_attribute != source.is_attribute or (
        leaf.is_attribute and leaf.row.path != source.row.path
    ):
        return "default-from-elsewhere", "an item's default is computed from the same item only"
    if leaf.row.section != source.row.section and not is_near(leaf.row, source.row):
        whose = "pods" if of_pods(leaf.row) else "the workload as a whole"
        return "default-from-elsewhere", f"name a field of {whose}"
    numeric = "defaultFrom" in values.TABLE[source.value].rules
    if not numeric or (leaf.value in NUMBERS) != (source.value in NUMBERS):
        wanted = "a number" if leaf.value in NUMBERS else "a quantity"
        return "default-from-type", f"name a field whose value is {wanted}"
    return None
