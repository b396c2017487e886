"""Finds what a policy says of things that no native object carries, or that have gone out of use."""

from __future__ import annotations

from webhook.objects.path import Path
from webhook.policy.body import Draft
from webhook.policy.body_items import EXCLUDE
from webhook.policy.row import NOTHING, Binding, Field
from webhook.policy.table import TABLE

SAID = ("default", "rule", "item", "attribute")
POLICY_ONLY = frozenset({EXCLUDE, "name", "description"})
"""Attributes that mean something to the policy itself, or to people who read it."""
OUTDATED = {
    "compute.migProfile": ("bound compute.gpuDevicesRequest instead, which counts MIG devices too"),
}
KEPT = "podgate only writes it to a label or annotation; something else has to act on it"
LOST = "remove it, unless another platform reads this policy too"


def check(draft: Draft) -> None:
    """Tell each such field and attribute once, where it is first named."""
    told: set[str] = set()
    for (kind, _, leaf, _), path in draft.places.items():
        if kind not in SAID or leaf in told:
            continue
        told.add(leaf)
        tell(draft, leaf, path)


def tell(draft: Draft, leaf: str, path: Path) -> None:
    """The warning of one leaf, if it deserves one."""
    if leaf in OUTDATED:
        draft.report.warn(path, "outdated-field", leaf, OUTDATED[leaf])
    elif leaf in TABLE.fields:
        row = TABLE.fields[leaf]
        if row.binding is Binding.NOTHING:
            draft.report.warn(path, "not-enforceable", leaf, LOST if is_lost(row) else KEPT)
    elif leaf in TABLE.attributes:
        row, attribute = TABLE.attributes[leaf]
        carried = attribute.native or attribute.name in POLICY_ONLY
        if not carried and row.binding is not Binding.NOTHING:
            draft.report.warn(path, "not-enforceable", leaf, LOST)


def is_lost(row: Field) -> bool:
    """Whether not even a label or annotation keeps the field."""
    return row.shape == NOTHING
