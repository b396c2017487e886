"""Checks of fields that no native object carries, and of outdated fields."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from webhook.documents.problem import Problem
from webhook.objects.path import Path
from webhook.policy.body import Draft
from webhook.policy.body_items import EXCLUDE
from webhook.policy.row import NOTHING, Binding
from webhook.policy.table import TABLE

SETTING = ("default", "rule", "item", "attribute")
POLICY_ONLY = frozenset({EXCLUDE, "name", "description"})
"""Attributes for the policy itself, or for its readers."""
OUTDATED = {
    "compute.migProfile": ("bound compute.gpuDevicesRequest instead, which counts MIG devices too"),
}
KEPT = "podgate only writes it to a label or annotation; something else has to act on it"
LOST = "remove it, unless another platform reads this policy too"


class NotEnforceable:
    """Warns of a field or attribute that nothing carries, once, at its first path."""

    ids: ClassVar = {"not-enforceable": "No Kubernetes object has it, so it cannot be enforced."}
    severity = "warning"

    def run(self, draft: Draft) -> Iterator[Problem]:
        for leaf, path in named_leaves(draft):
            fix = what_is_lost(leaf)
            if fix and leaf not in OUTDATED:
                yield draft.report.found_by(self, path, leaf, fix)


class OutdatedField:
    """Warns of an outdated field, once, at its first path."""

    ids: ClassVar = {"outdated-field": "The field has left the language; it is still read."}
    severity = "warning"

    def run(self, draft: Draft) -> Iterator[Problem]:
        for leaf, path in named_leaves(draft):
            if leaf in OUTDATED:
                yield draft.report.found_by(self, path, leaf, OUTDATED[leaf])


def named_leaves(draft: Draft) -> Iterator[tuple[str, Path]]:
    """Return every leaf that a policy sets or restricts, with its first path."""
    seen: set[str] = set()
    for (kind, _, leaf, _), path in draft.paths.items():
        if kind in SETTING and leaf not in seen:
            seen.add(leaf)
            yield leaf, path


def what_is_lost(leaf: str) -> str:
    """Return what to do about a leaf that nothing carries, else ""."""
    if leaf in TABLE.fields:
        row = TABLE.fields[leaf]
        if row.binding is not Binding.NOTHING:
            return ""
        # A field of the shape NOTHING is not written to a label or annotation either.
        return LOST if row.shape == NOTHING else KEPT
    if leaf not in TABLE.attributes:
        return ""
    row, attribute = TABLE.attributes[leaf]
    carried = attribute.native or attribute.name in POLICY_ONLY
    return "" if carried or row.binding is Binding.NOTHING else LOST
