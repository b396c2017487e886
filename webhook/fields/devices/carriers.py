"""Which kinds with devices have a field, and the claims in them."""

from __future__ import annotations

from typing import Any, Final

from webhook.devices.claim_view import ClaimView, read_claim, read_configs
from webhook.devices.classes import device_classes_of
from webhook.devices.kinds import CLAIM, CLASS, DOMAIN, KINDS, TEMPLATE
from webhook.evaluation.installation import InstallationConfig
from webhook.evaluation.references import References
from webhook.evaluation.state import Evaluation
from webhook.fields.devices.values import Claim, native_of
from webhook.fields.handler import MAPPED, UNMAPPED, Support
from webhook.objects.path import Path
from webhook.pods.definition import Definition
from webhook.policy.row import GPU, Binding, Field

NOT_OF_CLASSES: Final = frozenset({"devices.configKinds"})
NOT_OF_CLAIMS: Final = frozenset(
    {"devices.forms", "devices.perPod", "devices.computeDomain.numNodes"}
)


NOT_OF_PODS: Final = frozenset(
    {"devices.configKinds", "devices.perClaim", "devices.computeDomain.numNodes"}
)


def carries(row: Field, group: str, kind: str) -> bool:
    """Return whether objects of a kind with devices have a field. Other kinds have none here."""
    if (group, kind) not in KINDS:
        return False
    if kind == DOMAIN:
        return row.binding is Binding.DOMAIN
    if kind == CLASS:
        return row.binding is Binding.CONFIG and row.path not in NOT_OF_CLASSES
    if kind not in (CLAIM, TEMPLATE):
        return False
    return (row.section == "devices" or row.shape == GPU) and row.path not in NOT_OF_CLAIMS


def support_of(row: Field, definition: Definition) -> Support:
    """Return whether a kind with devices has a field."""
    group, kind = definition.interface.group, definition.interface.kind
    if carries(row, group, kind):
        return MAPPED, ""
    return UNMAPPED, f"{kind} does not have it"


def claim_of(kind: str, document: Any, ev: Evaluation, config: InstallationConfig) -> Claim:
    """Return the claim of a copy of the object, which is read once for all fields."""
    version = ev.draft.version if document is ev.draft.document else 0
    key = ("claim", id(document), version)
    return ev.once(key, lambda: read_object(kind, document, ev.references, config))


def read_object(
    kind: str, document: Any, references: References, config: InstallationConfig
) -> Claim:
    """Return the claim of a claim or template, with what its values depend on.

    A device class counts as a claim with its configurations alone.
    """
    classes = device_classes_of(references, config)
    if kind == CLASS:
        configs = read_configs(native_of(document, ("spec", "config")), ("spec",))
        return Claim(ClaimView(("spec",), configs=configs), classes, of_class=True)
    path: Path = ("spec", "spec") if kind == TEMPLATE else ("spec",)
    return Claim(read_claim(native_of(document, path), path), classes)
