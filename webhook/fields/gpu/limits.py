"""compute.gpuPortionLimit and gpuMemoryLimit: how far a part of a GPU may grow."""

from __future__ import annotations

from typing import Any

from webhook.evaluation.installation import Vocabulary
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
from webhook.fields.gpu.parts import UNITS, Found, gpu_container, limits, requests, variables
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

    def __init__(self, field: Field, leaf: Leaf, words: Vocabulary, effective: Effective) -> None:
        super().__init__(field, leaf, words, effective)
        self.form = FRACTION if field.at[0] == "portion" else MEMORY

    def stated_values(self, view: PodView) -> list[Found]:
        """The variables and annotations that limit this form."""
        return limits(view, self.form, self.defaults.unit)

    def asked(self, view: PodView, ev: Evaluation, use: GpuUse) -> list[Found]:
        """The variables and annotations that limit this form."""
        found = self.stated_values(view)
        return found if self.form == FRACTION else self.rounded(found, UNITS[self.defaults.unit])

    def wanted(self) -> str:
        """What an author is asked to write."""
        return "a share such as 0.5" if self.form == FRACTION else "a quantity such as 8Gi"

    def unset(self, view: PodView) -> Path:
        """Where a default would go."""
        container = gpu_container(view)
        if self.words.gpu_limit == "annotation" or container is None:
            return annotation_path(view, KEYS[self.form])
        return (*container.path, "env")

    def violate_form(
        self, view: PodView, ev: Evaluation, use: GpuUse, before: GpuUse | None
    ) -> None:
        """A limit forces no form: without the form it has nothing to bound."""

    def judge(self, view: PodView, ev: Evaluation, use: GpuUse) -> None:
        """Final rules; `required` is asked of pods that have a part of a GPU in this form."""
        stated = self.stated_values(view)
        if self.form in use.forms or stated:
            super().judge(view, ev, use)
        if not stated and is_fixed(self.rules):
            self.judge_fixed(view, ev)
        judge_order(view, ev, self.form, self.defaults.unit)

    def judge_fixed(self, view: PodView, ev: Evaluation) -> None:
        """A request above a limit that is fixed and was not written for that reason."""
        default, request = self.rules.default, self.request(view, ev)
        if default is None or request is None or request <= default.value:
            return
        if view.old is not None and not self.stated_values(view.old):
            old = requests(view.old, self.form, self.defaults.unit)
            if old == requests(view, self.form, self.defaults.unit):
                return
        self.refuse_request(view, ev, default.value, request)

    def fill(self, view: PodView, ev: Evaluation) -> None:
        """Write the limit of the user's part of a GPU, or of the one that comes by default."""
        rules = self.rules
        request = self.request(view, ev)
        if rules.default is None or request is None or self.taken(view):
            return
        before = self.limit_before(view)
        wanted = rules.wanted(ev, self.unset(view), None, None, before)
        if wanted is None:
            return
        why, native = wanted
        value = rules.default.value if why == "default" else rules.read(native)
        value = self.reconciled(view, ev, value, request)
        if value is not None:
            self.write(view, ev, value, why)

    def request(self, view: PodView, ev: Evaluation) -> Any:
        """The request in this form, the user's or the default's; None where there is none.

        One that is still to be computed stands as 0: the order is judged when both are there.
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

    def taken(self, view: PodView) -> bool:
        """Whether a limit is stated already, if only in the other form."""
        if self.stated_values(view):
            return True
        return self.words.gpu_limit == "env" and any(True for _ in variables(view))

    def limit_before(self, view: PodView) -> tuple[Path, Any] | None:
        """The limit of the same pod before the update."""
        if view.old is None:
            return None
        found = self.stated_values(view.old)
        return (found[0].path, found[0].native) if found else (self.unset(view.old), None)

    def reconciled(self, view: PodView, ev: Evaluation, value: Any, request: Any) -> Any:
        """The limit, raised to a request above it when the rules permit that, else refused."""
        if request < value:
            return value
        if self.words.gpu_limit == "annotation":
            # The scheduler wants an annotated limit above the request; without one the request is
            # the limit.
            return None if self.permits(request) else self.refuse_request(view, ev, value, request)
        if request == value:
            return value
        if self.permits(request):
            shown = self.rules.show(value) or "", self.rules.show(request) or ""
            ev.warn("limit-raised", self.field.path, self.unset(view), *shown)
            return request
        return self.refuse_request(view, ev, value, request)

    def permits(self, value: Any) -> bool:
        """Whether today's rules allow a limit of this value."""
        return self.rules.allows(self.text(value))

    def refuse_request(self, view: PodView, ev: Evaluation, value: Any, request: Any) -> Any:
        """Record a request above the limit that is fixed."""
        if request > value:
            default = self.rules.default
            ev.violate(
                self.field.path,
                self.unset(view),
                self.rules.show(request),
                self.rules.show(value),
                None,
                reason="request-exceeds-limit",
                source=default.source if default is not None else None,
            )
        return None

    def text(self, value: Any) -> str:
        """A share as a decimal, memory as a quantity."""
        default = self.rules.default
        if default is not None and default.value == value:
            raw = default.raw if default.raw is not None else None
            if self.form == MEMORY and isinstance(raw, str):
                return raw
        return self.rules.show(value) or "" if self.form == FRACTION else quantity.render(value)

    def write(self, view: PodView, ev: Evaluation, value: Any, why: str) -> None:
        """The limit as the installation wants it: a variable of the container, or an annotation."""
        default, path = self.rules.default, self.unset(view)
        source = default.source if default is not None else None
        if path[-1] != "env":
            text = self.text(value)
            if self.form == MEMORY:
                text = str(-(-value // UNITS[self.defaults.unit]))
            if view.location.metadata_path is None:
                ev.warn("unmapped-default", self.field.path, path)
            elif ev.can_write(path):
                ev.write(self.field.path, path, text, why, source)
            return
        if ev.can_write(path):
            entry = {"name": LIMIT_VARIABLE, "value": self.text(value)}
            held = ev.now(path)
            ev.draft.append(path, entry)
            index = len(held) if isinstance(held, list) else 0
            ev.note_item(self.field, (*path, index), entry, why, source)


def judge_order(view: PodView, ev: Evaluation, form: str, unit: str) -> None:
    """A limit below the request: the pod would never start."""
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
    """A share or an amount of memory in nano units; None for what cannot be read."""
    try:
        return quantity.parse_decimal(native) if form == FRACTION else quantity.parse(native)
    except ValueError:
        return None
