"""TABLE of fields of parts of GPUs and of MIG profiles: which binding each row has."""

from __future__ import annotations

from webhook.core.policy.combine import Effective, Leaf
from webhook.core.policy.row import Field
from webhook.core.workload.bindings.gpu_annotations import is_gpu_annotation
from webhook.core.workload.bindings.gpu_form_field import GpuFormField
from webhook.core.workload.bindings.gpu_kinds import GpuTypeField, MigField
from webhook.core.workload.bindings.gpu_limits import GpuLimitField
from webhook.core.workload.bindings.gpu_requests import PartField, PortionField
from webhook.core.workload.vocabulary import Vocabulary

__all__ = ["gpu_form", "is_gpu_annotation"]

TABLE: dict[tuple[str, ...], type[GpuFormField]] = {
    ("type",): GpuTypeField,
    ("mig",): MigField,
    ("portion", "request"): PortionField,
    ("memory", "request"): PartField,
    ("portion", "limit"): GpuLimitField,
    ("memory", "limit"): GpuLimitField,
}


def gpu_form(row: Field, leaf: Leaf, words: Vocabulary, effective: Effective) -> GpuFormField:
    """The binding of one row of shape gpu-form."""
    at = tuple(str(step) for step in row.at)
    return TABLE[at](row, leaf, words, effective)
