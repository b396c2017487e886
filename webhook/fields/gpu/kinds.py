"""compute.gpuRequestType and compute.migProfile: words that follow from the GPU form in use."""

from __future__ import annotations

from typing import Any

from webhook.evaluation.state import Evaluation
from webhook.fields.gpu.annotations import FRACTION, MEMORY
from webhook.fields.gpu.form_field import GpuFormField
from webhook.fields.gpu.parts import Found, requests
from webhook.fields.gpu.use import MIG, MIG_MARK, GpuUse
from webhook.objects.path import Path
from webhook.pods.pod_view import PodView

TYPES = {FRACTION: "portion", MEMORY: "memory", MIG: "migProfile"}


class GpuTypeField(GpuFormField):
    """compute.gpuRequestType: follows from the forms in use, writes nothing by itself."""

    __slots__ = ()

    def asked(self, view: PodView, ev: Evaluation, use: GpuUse) -> list[Found]:
        """The words of the forms in use."""
        return self.stated_values(view)

    def stated_values(self, view: PodView) -> list[Found]:
        """The words of the forms in use, where each begins."""
        found = []
        for form in (FRACTION, MEMORY):
            asked = requests(view, form, self.defaults.unit)
            found += [Found(each.path, TYPES[form], form) for each in asked[:1]]
        profiles = self.counter.profiles(view)
        return found + [Found(path, TYPES[MIG], MIG) for path, _ in profiles[:1]]

    def fill(self, view: PodView, ev: Evaluation) -> None:
        """Nothing by itself: it selects among the other defaults."""


class MigField(GpuFormField):
    """compute.migProfile: the profile of the MIG resource in use."""

    __slots__ = ()

    def asked(self, view: PodView, ev: Evaluation, use: GpuUse) -> list[Found]:
        """Every profile in use."""
        return self.stated_values(view)

    def stated_values(self, view: PodView) -> list[Found]:
        """Every profile in use once per container."""
        found: dict[Any, Found] = {}
        for path, profile in self.counter.profiles(view):
            key = "/".join(str(step) for step in (*path[:-2], profile))
            found.setdefault(key, Found(path, profile, f"{profile} {len(found)}"))
        return list(found.values())

    def unset(self, view: PodView) -> Path:
        """Where a default would go."""
        return self.place(view)

    def fill(self, view: PodView, ev: Evaluation) -> None:
        """One device of the profile on the main container, where no form is in use."""
        choice = self.all_defaults().choice(view, ev)
        if choice is not None and choice.owner == self.field.path:
            self.write_devices(view, ev, choice, f"nvidia.com{MIG_MARK}{choice.value}")
