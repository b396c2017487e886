"""Fields of GPU forms: the form in use, MIG profiles, and the handler of all forms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from webhook.evaluation.state import Evaluation
from webhook.fields.gpu.annotations import FRACTION, MEMORY
from webhook.fields.gpu.form_field import GpuFormField
from webhook.fields.gpu.limits import GpuLimitField
from webhook.fields.gpu.parts import GpuAmount, requests
from webhook.fields.gpu.requests import GpuPartField, PortionField
from webhook.fields.gpu.use import MIG, MIG_MARK, GpuUse
from webhook.fields.handler import FieldSource, PodHandler
from webhook.objects.path import Path
from webhook.pods.pod_view import PodView
from webhook.policy.row import GPU_FORM, Field

TYPES = {FRACTION: "portion", MEMORY: "memory", MIG: "migProfile"}


class GpuTypeField(GpuFormField):
    """compute.gpuRequestType: follows from the forms in use, writes nothing by itself."""

    __slots__ = ()

    def find_values(self, view: PodView, ev: Evaluation, use: GpuUse) -> list[GpuAmount]:
        """Return the names of the forms in use."""
        return self.stated_values(view)

    def stated_values(self, view: PodView) -> list[GpuAmount]:
        """Return the names of the forms in use, with the first path of each."""
        found = []
        for form in (FRACTION, MEMORY):
            asked = requests(view, form, self.defaults.unit)
            found += [GpuAmount(each.path, TYPES[form], form) for each in asked[:1]]
        profiles = self.counter.profiles(view)
        return found + [GpuAmount(path, TYPES[MIG], MIG) for path, _ in profiles[:1]]

    def fill(self, view: PodView, ev: Evaluation) -> None:
        """Write nothing: the field only selects among the other defaults."""


class MigField(GpuFormField):
    """compute.migProfile: the profile of the MIG resource in use."""

    __slots__ = ()

    def find_values(self, view: PodView, ev: Evaluation, use: GpuUse) -> list[GpuAmount]:
        """Return every profile in use."""
        return self.stated_values(view)

    def stated_values(self, view: PodView) -> list[GpuAmount]:
        """Return every profile in use, once per container."""
        found: dict[Any, GpuAmount] = {}
        for path, profile in self.counter.profiles(view):
            key = "/".join(str(step) for step in (*path[:-2], profile))
            found.setdefault(key, GpuAmount(path, profile, f"{profile} {len(found)}"))
        return list(found.values())

    def unset(self, view: PodView) -> Path:
        """Return the path for a default."""
        return self.place_of(view, self.counter.names)

    def fill(self, view: PodView, ev: Evaluation) -> None:
        """Write one device of the profile on the main container, if no form is in use."""
        choice = self.all_defaults().choice(view, ev)
        if choice is not None and choice.owner == self.row.path:
            self.write_devices(view, ev, choice, f"nvidia.com{MIG_MARK}{choice.value}")


TABLE: dict[tuple[str, ...], type[GpuFormField]] = {
    ("type",): GpuTypeField,
    ("mig",): MigField,
    ("portion", "request"): PortionField,
    ("memory", "request"): GpuPartField,
    ("portion", "limit"): GpuLimitField,
    ("memory", "limit"): GpuLimitField,
}


class GpuFormHandler(PodHandler):
    """Parts of GPUs, MIG profiles, and the form itself."""

    name = GPU_FORM

    def compile(self, source: FieldSource) -> GpuFormField:
        """The field of the form that the row names."""
        at = tuple(str(step) for step in source.row.at)
        return TABLE[at](source.row, source.leaf, source.config, source.effective)

    def pod_paths(self, row: Field) -> Sequence[Path]:
        """Where a pod template has the field."""
        return [("metadata", "annotations")]
