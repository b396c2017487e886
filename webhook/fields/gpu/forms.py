"""TABLE of fields of parts of GPUs and of MIG profiles: which binding each row has."""

from __future__ import annotations

from webhook.evaluation.installation import Vocabulary
from webhook.fields.gpu.annotations import is_gpu_annotation
from webhook.fields.gpu.form_field import GpuFormField
from webhook.fields.gpu.kinds import GpuTypeField, MigField
from webhook.fields.gpu.limits import GpuLimitField
from webhook.fields.gpu.requests import PartField, PortionField
from webhook.policy.combine import Effective, Leaf
from webhook.policy.row import Field

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
