"""compute.gpuPortionLimit and gpuMemoryLimit: how far a part of a GPU may grow."""

from __future__ import annotations

from typing import Any

from webhook.evaluation.installation import InstallationConfig
from webhook.evaluation.state import Evaluation
from webhook.fields.gpu.annotations import (
    FRACTION,
    FRACTION_LIMIT,
    LIMIT_VARIABLE,
    MEMORY,
    MEMORY_LIMIT,
    annotation_path,
)
from webhook.fields.gpu.defaults import is_fixed
from webhook.fields.gpu.form_field import GpuFormField
from webhook.fields.gpu.parts import UNITS, GpuAmount, gpu_container, limits, requests, variables
from webhook.fields.gpu.use import GpuUse
from webhook.fields.scalar import INVALID
from webhook.objects import quantity
from webhook.objects.path import Path
from webhook.pods.pod_view import PodView
from webhook.policy.combine import Effective, Leaf
from webhook.policy.row import Field

LIMITS = {FRACTION: "compute.gpuPortionLimit", MEMORY: "compute.gpuMemoryLimit"}
KEYS = {FRACTION: FRACTION_LIMIT, MEMORY: MEMORY_LIMIT}


class GpuLimitField(GpuFormField):
    """The upper bound of a share, or of memory, as a variable or an annotation."""

    __slots__ = ("form",)

    def __init__(
        self, row: Field, leaf: Leaf, config: InstallationConfig, effective: Effective
    ) -> None:
        super().__init__(row, leaf, config, effective)
        self.form = FRACTION if row.at[0] == "portion" else MEMORY

    def stated_values(self, view: PodView) -> list[GpuAmount]:
        """The variables and annotations that limit this form."""
        return limits(view, self.form, self.defaults.unit)

    def find_values(self, view: PodView, ev: Evaluation, use: GpuUse) -> list[GpuAmount]:
        """The variables and annotations that limit this form."""
        found = self.stated_values(view)
        return (
            found if self.form == FRACTION else self.round_amounts(found, UNITS[self.defaults.unit])
        )

    def expected_form(self) -> str:
        """Return the expected form, for messages."""
        return "a share such as 0.5" if self.form == FRACTION else "a quantity such as 8Gi"

    def unset(self, view: PodView) -> Path:
        """Return the path for a default."""
        container = gpu_container(view)
        if self.config.gpu_limit == "annotation" or container is None:
            return annotation_path(view, KEYS[self.form])
        return (*container.path, "env")

    def violate_form(
        self, view: PodView, ev: Evaluation, use: GpuUse, before: GpuUse | None
    ) -> None:
        """Do nothing: a limit requires no form, and without its form it has nothing to limit."""

    def check_rules(self, view: PodView, ev: Evaluation, use: GpuUse) -> None:
        """Check final rules. `required` applies to pods with a part of a GPU in this form."""
        stated = self.stated_values(view)
        if self.form in use.forms or stated:
            super().check_rules(view, ev, use)
        if not stated and is_fixed(self.rules):
            self.check_fixed(view, ev)
        check_order(view, ev, self.form, self.defaults.unit)

    def check_fixed(self, view: PodView, ev: Evaluation) -> None:
        """Report a request above a locked limit that was not written for that reason."""
        default, request = self.rules.default, self.request(view, ev)
        if default is None or request is None or request <= default.value:
            return
        if view.old is not None and not self.stated_values(view.old):
            old = requests(view.old, self.form, self.defaults.unit)
            if old == requests(view, self.form, self.defaults.unit):
                return
        self.refuse_request(view, ev, default.value, request)

    def fill(self, view: PodView, ev: Evaluation) -> None:
        """Write the limit of the user's part of a GPU, or of the default part."""
        rules = self.rules
        request = self.request(view, ev)
        if rules.default is None or request is None or self.has_limit(view):
            return
        before = self.limit_before(view)
        wanted = rules.choose_value(ev, self.unset(view), None, None, before)
        if wanted is None:
            return
        why, native = wanted
        value = rules.default.value if why == "default" else rules.read(native)
        value = self.reconcile(view, ev, value, request)
        if value is not None:
            self.write(view, ev, value, why)

    def request(self, view: PodView, ev: Evaluation) -> Any:
        """Return the request in this form, the user's or the default's, None without one.

        A request that is not computed yet is 0. The order is checked when both are known.
        """
        use = self.use(view, ev)
        if use.none:
            choice = self.all_defaults().choice(view, ev)
            if choice is None or choice.form != self.form:
                return None
            if choice.value is not None:
                return choice.value
            view = self.now(view, ev)
        elif use.forms != {self.form}:
            return None
        asked = requests(view, self.form, self.defaults.unit)
        value = self.rules.read(asked[0].native) if asked else 0
        return None if value is INVALID else value

    def has_limit(self, view: PodView) -> bool:
        """Return whether a limit is set, even in the other form."""
        if self.stated_values(view):
            return True
        return self.config.gpu_limit == "env" and any(True for _ in variables(view))

    def limit_before(self, view: PodView) -> tuple[Path, Any] | None:
        """The limit of the same pod before the update."""
        if view.old is None:
            return None
        found = self.stated_values(view.old)
        return (found[0].path, found[0].native) if found else (self.unset(view.old), None)

    def reconcile(self, view: PodView, ev: Evaluation, value: Any, request: Any) -> Any:
        """Return the limit, raised to the request if the rules permit it, else report a violation."""
        if request < value:
            return value
        if self.config.gpu_limit == "annotation":
            # The scheduler requires an annotated limit above the request; without one the request is
            # the limit.
            return None if self.permits(request) else self.refuse_request(view, ev, value, request)
        if request == value:
            return value
        if self.permits(request):
            shown = self.rules.show(value) or "", self.rules.show(request) or ""
            ev.warn("limit-raised", self.row.path, self.unset(view), *shown)
            return request
        return self.refuse_request(view, ev, value, request)

    def permits(self, value: Any) -> bool:
        """Return whether the current rules allow a limit of this value."""
        return self.rules.allows(self.text(value))

    def refuse_request(self, view: PodView, ev: Evaluation, value: Any, request: Any) -> Any:
        """Report a request above the locked limit."""
        if request > value:
            default = self.rules.default
            ev.violate(
                self.row.path,
                self.unset(view),
                self.rules.show(request),
                self.rules.show(value),
                None,
                reason="request-exceeds-limit",
                source=default.source if default is not None else None,
            )
        return None

    def text(self, value: Any) -> str:
        """Return a share as a decimal, memory as a quantity."""
        default = self.rules.default
        if default is not None and default.value == value:
            raw = default.raw if default.raw is not None else None
            if self.form == MEMORY and isinstance(raw, str):
                return raw
        return self.rules.show(value) or "" if self.form == FRACTION else quantity.render(value)

    def write(self, view: PodView, ev: Evaluation, value: Any, why: str) -> None:
        """Write the limit as the settings require: a variable of the container, or an annotation."""
        default, path = self.rules.default, self.unset(view)
        source = default.source if default is not None else None
        if path[-1] != "env":
            text = self.text(value)
            if self.form == MEMORY:
                text = str(-(-value // UNITS[self.defaults.unit]))
            if view.location.metadata_path is None:
                ev.warn("unmapped-default", self.row.path, path)
            elif ev.can_write(path):
                ev.write(self.row.path, path, text, why, source)
            return
        if ev.can_write(path):
            entry = {"name": LIMIT_VARIABLE, "value": self.text(value)}
            held = ev.now(path)
            ev.append(path, entry)
            index = len(held) if isinstance(held, list) else 0
            ev.note_item(self.row, (*path, index), entry, why, source)


def check_order(view: PodView, ev: Evaluation, form: str, unit: str) -> None:
    """Report a limit below the request, with which the pod would never start."""
    asked = requests(view, form, unit)
    bounds = limits(view, form, unit) if asked else []
    if not bounds:
        return
    if view.old is not None:
        old = requests(view.old, form, unit), limits(view.old, form, unit)
        if [each.native for each in (*asked, *bounds)] == [e.native for e in (*old[0], *old[1])]:
            return
    request = amount(asked[0].native, form)
    for each in bounds:
        limit = amount(each.native, form)
        if request is None or limit is None or limit >= request:
            continue
        ev.violate(
            LIMITS[form],
            each.path,
            str(asked[0].native),
            str(each.native),
            None,
            reason="request-exceeds-limit",
        )


def amount(native: Any, form: str) -> Any:
    """Return a share or an amount of memory in nano units, None if unreadable."""
    try:
        return quantity.parse_decimal(native) if form == FRACTION else quantity.parse(native)
    except ValueError:
        return None
