"""Chooses the GPU form of a policy's defaults in one pod. Defaults of other forms are left out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from webhook.documents.problem import Source
from webhook.evaluation.installation import InstallationConfig
from webhook.evaluation.state import Evaluation
from webhook.fields.gpu.annotations import FRACTION, MEMORY, annotation_path
from webhook.fields.gpu.parts import requests
from webhook.fields.gpu.use import MIG, WHOLE, GpuCounter, GpuUse, counter_of, devices_of
from webhook.fields.scalar import INVALID, ScalarRules, rules_of
from webhook.objects import quantity
from webhook.pods.pod_view import PodView
from webhook.policy.combine import Effective, EffectiveDefault, Leaf
from webhook.policy.table import TABLE

COUNT: Final = "compute.gpuDevicesRequest"
PORTION: Final = "compute.gpuPortionRequest"
GPU_MEMORY: Final = "compute.gpuMemoryRequest"
PROFILE: Final = "compute.migProfile"
TYPE: Final = "compute.gpuRequestType"
WHOLE_NAME: Final = "nvidia.com/gpu"
OWNERS: Final = {WHOLE: COUNT, FRACTION: PORTION, MEMORY: GPU_MEMORY, MIG: PROFILE}


@dataclass(frozen=True, slots=True)
class Choice:
    """The form of the defaults: its field, the value in the field's notation, and the number of devices.

    `value` is a count, nano units or a profile, None while it is not computed yet. `dropped` means
    that a default of several devices is left out, because no form supports it.
    """

    form: str
    owner: str
    value: Any
    devices: int
    why: str = "default"
    source: Source | None = None
    dropped: bool = False


class GpuDefaults:
    """The GPU defaults of one component together."""

    __slots__ = ("counter", "rules", "several", "unit")

    def __init__(self, effective: Effective, config: InstallationConfig) -> None:
        self.counter: GpuCounter = counter_of(config)
        self.several = config.several_devices
        self.unit = config.gpu_memory_unit
        self.rules: dict[str, ScalarRules] = {
            path: rules_of(TABLE.fields[path], effective.get(path, Leaf(path)))
            for path in (COUNT, PORTION, GPU_MEMORY, PROFILE, TYPE)
        }

    def with_own(self, path: str, rules: ScalarRules) -> GpuDefaults:
        """Return the defaults with the current rules of one field, including a computed default."""
        if self.rules.get(path, rules) is rules:
            return self
        found = object.__new__(GpuDefaults)
        found.counter, found.several, found.unit = self.counter, self.several, self.unit
        found.rules = {**self.rules, path: rules}
        return found

    def default(self, path: str) -> EffectiveDefault | None:
        """Return the effective default of one of the fields. 0 requests nothing."""
        found = self.rules[path].default
        return found if found is not None and found.value else None

    def prefer(self) -> Choice | None:
        """Return the result of the defaults in a pod that requests nothing itself."""
        found = self.by_type()
        count = self.default(COUNT)
        if found is None or count is None:
            return found
        # False where the number itself is the choice, which is then the count already.
        fixed = is_fixed(self.rules[COUNT]) and not is_fixed(self.rules[found.owner])
        if fixed and found.devices != count.value:
            return self.whole(count.value, COUNT, count)
        return found

    def by_type(self) -> Choice | None:
        """Return the form that the defaults name most closely: share, memory, profile, whole devices."""
        kind, count = self.default(TYPE), self.default(COUNT)
        wanted = kind.value if kind is not None else ""
        if wanted != "memory" and self.expects(PORTION):
            portion = self.default(PORTION)
            if portion is None or portion.value < quantity.NANO:
                return self.part(FRACTION, PORTION)
            return self.whole(portion.value // quantity.NANO, PORTION, portion)
        if wanted != "portion" and self.expects(GPU_MEMORY):
            return self.part(MEMORY, GPU_MEMORY)
        profile = self.default(PROFILE)
        if profile is not None:
            return Choice(MIG, PROFILE, profile.value, 1, source=profile.source)
        return self.whole(count.value, COUNT, count) if count is not None else None

    def expects(self, path: str) -> bool:
        """Return whether a field has a default, or may get a computed one."""
        return self.default(path) is not None or bool(self.rules[path].computed)

    def whole(self, number: int, owner: str, default: EffectiveDefault) -> Choice:
        """So many whole devices."""
        return Choice(WHOLE, owner, number, number, source=default.source)

    def part(self, form: str, owner: str) -> Choice:
        """Return a part of one device, or of several if the installation's scheduler supports it."""
        default, count = self.default(owner), self.default(COUNT)
        number = count.value if count is not None else 1
        devices = number if self.several else 1
        return Choice(
            form,
            owner,
            default.value if default is not None else None,
            devices,
            source=default.source if default is not None else None,
            dropped=number > devices,
        )

    def choice(self, view: PodView, ev: Evaluation) -> Choice | None:
        """Return what to write into a pod, None if the user's form or no default applies."""
        if not self.counter.use(view, ev).none or self.counter.names_gpus(view, ev):
            return None
        return self.keep(view, ev) or self.prefer()

    def keep(self, view: PodView, ev: Evaluation) -> Choice | None:
        """Return the pod's defaults before the update, if they still satisfy the rules."""
        if view.old is None:
            return None
        before = self.counter.use(view.old, ev)
        if len(before.forms) != 1 or before.unbounded_source:
            return None
        (form,) = before.forms
        owner = OWNERS.get(form, "")
        if not owner or not self.expects(owner):
            return None
        value = self.kept_value(view, ev, form, before)
        if value is None:
            return None
        return Choice(form, owner, value, before.count, "kept", source_of(self.rules[owner]))

    def kept_value(self, view: PodView, ev: Evaluation, form: str, before: GpuUse) -> Any:
        """Return the old value in the field's notation, None if it is the user's or breaks a rule."""
        old, rules = view.old, self.rules[OWNERS[form]]
        assert old is not None
        native: Any
        if form in (FRACTION, MEMORY):
            asked = requests(old, form, self.unit)
            path = annotation_path(old, form)
            if len(asked) != 1 or asked[0].path != path:
                return None
            native = asked[0].native
        elif form == MIG:
            profiles = self.counter.profiles(old)
            path, native = profiles[0]
            if before.count != 1:
                return None
        else:
            main = view.main and view.old_container(view.main)
            held = devices_of(main, self.counter.names) if main else {}
            if main is None or held != {WHOLE_NAME: before.count}:
                return None
            path, native = (*main.path, "resources", "limits", WHOLE_NAME), before.count
        if not rules.allows(native) or ev.intent.was_written_by_user(path):
            return None
        value = rules.read(native)
        return None if value is INVALID else value


def is_fixed(rules: ScalarRules) -> bool:
    """Return whether no value other than the default is allowed."""
    return any(each.type.fixes_default for each in rules.prohibitions)


def source_of(rules: ScalarRules) -> Source | None:
    """Return the source of the default."""
    return rules.default.source if rules.default is not None else None
