"""Reads `defaultFrom`: the field that a default is computed from, under any of its names."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from webhook.objects import quantity
from webhook.objects.path import Path
from webhook.policy.leaves import LEAF_NAMES, LeafType, leaf_type
from webhook.policy.names import Found, Names, members, warn_of_spelling
from webhook.policy.policy import EVERYWHERE, ROLES, DefaultFrom, role_level
from webhook.policy.report import Report, show_value
from webhook.policy.row import SERVING_PORT, WORKLOAD, Binding, Field
from webhook.policy.values import NUMBERS, NUMERIC

ROLE_WORDS = {role: role for role in ROLES} | {f"{role}spec": role for role in ROLES}


def read(
    report: Report,
    level: str,
    leaf: LeafType,
    raw: Any,
    path: Path,
    names: Names = LEAF_NAMES,
) -> DefaultFrom | None:
    """Read the canonical source of a computed default and its exact factor."""
    if not isinstance(raw, dict):
        report.wrong_type(path, raw, "{field: …, factor: …}")
        return None
    given = members(report, raw, path, ("field", "factor"))
    factor = read_factor(report, given["factor"]) if "factor" in given else Fraction(1)
    if "field" not in given:
        report.error(path, "missing-value", "defaultFrom without field", "write field: …")
        return None
    source = read_field(report, level, leaf, given["field"], names)
    return None if source is None or factor is None else DefaultFrom(source, factor)


def read_factor(report: Report, found: Found) -> Fraction | None:
    """Read a decimal number above zero, exactly."""
    text = report.document.text(found.path)
    try:
        factor = Fraction(quantity.parse_decimal(found.raw if text is None else text))
    except ValueError:
        report.wrong_type(found.path, found.raw, "a decimal number such as 0.5")
        return None
    if factor <= 0:
        report.error(found.path, "bad-factor", show_value(found.raw), "write a number above 0")
        return None
    return factor / quantity.NANO


def read_field(
    report: Report, level: str, leaf: LeafType, found: Found, names: Names
) -> str | None:
    """Read the canonical path of the source. None if a default of `leaf` cannot come from it."""
    if not isinstance(found.raw, str):
        report.wrong_type(found.path, found.raw, "the name of a field")
        return None
    role, name = without_role(found.raw)
    source, spelled = resolve(leaf, name, names)
    if source is None:
        meant = names.suggest("", name)
        fix = f"did you mean {meant}?" if meant else "name a field, such as compute.cpuCoreLimit"
        report.error(found.path, "default-from-unknown", show_value(found.raw), fix)
        return None
    if source != spelled:
        warn_of_spelling(report, found.path, found.raw, source)
    fault = find_fault(level, role, leaf, leaf_type(source))
    if fault:
        report.error(found.path, fault[0], show_value(found.raw), fault[1])
        return None
    return source


def without_role(name: str) -> tuple[str, str]:
    """Split a role prefix off a name: worker.compute.cpuCoreLimit has the prefix worker."""
    first, _, rest = name.partition(".")
    role = ROLE_WORDS.get(first.lower(), "")
    return (role, rest) if role and rest else ("", name)


def resolve(leaf: LeafType, name: str, names: Names = LEAF_NAMES) -> tuple[str | None, str]:
    """Return the canonical path of `name`, and the spelling that was found.

    The source of an attribute is searched in the same item first. The source of a field is first
    searched by its full name, then in the same section.
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


NOT_OF_PODS = (
    Binding.WORKLOAD,
    Binding.NOTHING,
    Binding.REQUEST,
    Binding.CONFIG,
    Binding.DOMAIN,
)


def is_pod_field(row: Field) -> bool:
    """Whether a field belongs to each pod, not to the workload as a whole."""
    return row.binding not in NOT_OF_PODS and row.shape != SERVING_PORT


def is_near(one: Field, other: Field) -> bool:
    """Whether both are fields of a pod, or both of the workload."""
    return (is_pod_field(one) and is_pod_field(other)) or one.shape == other.shape == WORKLOAD


def find_fault(level: str, role: str, leaf: LeafType, source: LeafType) -> tuple[str, str] | None:
    """Return reason and fix if `leaf` cannot be computed from `source`."""
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
        whose = "pods" if is_pod_field(leaf.row) else "the workload as a whole"
        return "default-from-elsewhere", f"name a field of {whose}"
    if source.value not in NUMERIC or (leaf.value in NUMBERS) != (source.value in NUMBERS):
        wanted = "a number" if leaf.value in NUMBERS else "a quantity"
        return "default-from-type", f"name a field whose value is {wanted}"
    return None
