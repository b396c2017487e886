"""compute.gpuDevicesRequest: GPUs of a pod in every form, whole devices, MIG, fractions, claims."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Any

from webhook.core import quantity
from webhook.core.evaluation import Evaluation, ratchets
from webhook.core.policy.combine import Leaf
from webhook.core.policy.fields import Field
from webhook.core.workload.bindings.scalar import ScalarRules, reader, rules_of
from webhook.core.workload.bindings.totals import effective_total
from webhook.core.workload.podspec import Container, PodView

FRACTION_MARKS = ("gpu-fraction", "gpu-memory")
FRACTION_DEVICES = "gpu-fraction-num-devices"
DRA_EXTENDED = "deviceclass.resource.kubernetes.io/"


class GpuUse:
    """What one pod asks for: a count in devices, forms in use, and whether it has no bound."""

    __slots__ = ("count", "forms", "unbounded")

    def __init__(self) -> None:
        self.count = 0
        self.forms: set[str] = set()
        self.unbounded = ""


def devices_of(container: Container, names: tuple[str, ...]) -> dict[str, int]:
    """Whole devices by resource name: limits or requests, the larger of the two (plain units)."""
    found: dict[str, int] = {}
    resources = container.body.get("resources")
    for part in ("limits", "requests"):
        held = resources.get(part) if isinstance(resources, dict) else None
        for name, native in held.items() if isinstance(held, dict) else ():
            if name.startswith(DRA_EXTENDED) or any(fnmatchcase(name, each) for each in names):
                try:
                    amount = quantity.parse(native)
                except ValueError:
                    continue
                found[name] = max(found.get(name, 0), -(-amount // quantity.NANO))
    return found


def count_claim(requests: Any, classes: tuple[str, ...]) -> tuple[int, bool]:
    """GPUs of a claim's device requests; True when one asks for all devices of a class."""
    total, unbounded = 0, False
    for each in requests if isinstance(requests, list) else ():
        body = each if isinstance(each, dict) else {}
        options = [body.get("exactly", body), *(body.get("firstAvailable") or ())]
        counts = [0]
        for option in options:
            if isinstance(option, dict) and option.get("deviceClassName") in classes:
                if option.get("allocationMode") == "All":
                    unbounded = True
                count = option.get("count", 1)
                counts.append(count if isinstance(count, int) else 1)
        total += max(counts)
    return total, unbounded


class GpuField:
    """The GPU count of a pod; every rule looks at the pod's total over all forms."""

    __slots__ = ("at", "classes", "field", "names", "rules")

    def __init__(
        self, field: Field, leaf: Leaf, names: tuple[str, ...], classes: tuple[str, ...]
    ) -> None:
        self.field = field
        self.rules: ScalarRules = rules_of(field, leaf)
        self.at = field.at
        self.names = names
        self.classes = classes

    def use(self, view: PodView, ev: Evaluation) -> GpuUse:
        """What the pod asks for in every form."""
        use = GpuUse()

        def whole(container: Container) -> int:
            devices = devices_of(container, self.names)
            for name, amount in devices.items():
                if amount:
                    use.forms.add("mig" if "/mig-" in name else "whole")
            return sum(devices.values())

        use.count = effective_total(view, whole)
        self.add_fraction(view, use)
        self.add_claims(view, ev, use)
        return use

    def add_fraction(self, view: PodView, use: GpuUse) -> None:
        """A fraction or an amount of GPU memory counts its devices, one without a number."""
        annotations = view.metadata.get("annotations")
        if not isinstance(annotations, dict):
            return
        forms = [mark for mark in FRACTION_MARKS if annotations.get(mark)]
        if forms:
            use.forms.update(forms)
            devices = str(annotations.get(FRACTION_DEVICES, "1"))
            use.count += int(devices) if devices.isdecimal() else 1

    def add_claims(self, view: PodView, ev: Evaluation, use: GpuUse) -> None:
        """Claims count through what they refer to; what cannot be seen has no bound."""
        claims = view.spec.get("resourceClaims")
        for claim in claims if isinstance(claims, list) else ():
            if not isinstance(claim, dict):
                continue
            kind, name = "ResourceClaim", claim.get("resourceClaimName")
            if claim.get("resourceClaimTemplateName"):
                kind, name = "ResourceClaimTemplate", claim["resourceClaimTemplateName"]
            spec = ev.references.claims.get((kind, ev.request.namespace, str(name)))
            if spec is None:
                use.unbounded = use.unbounded or f"{kind} {name}"
                continue
            devices = spec.get("devices") if isinstance(spec, dict) else None
            requests = devices.get("requests") if isinstance(devices, dict) else None
            count, unbounded = count_claim(requests, self.classes)
            if count:
                use.forms.add("claim")
            if unbounded:
                use.unbounded = use.unbounded or f"{kind} {name}"
            use.count += count

    def place(self, view: PodView) -> Any:
        """Where the total is reported: the container with GPUs, else the main one, else the pod."""
        for container in view.everyone:
            resources = reader(("resources",))(container.body)
            for part in ("limits", "requests"):
                held = resources.get(part) if isinstance(resources, dict) else None
                for name in held if isinstance(held, dict) else ():
                    if any(fnmatchcase(name, each) for each in self.names):
                        return (*container.path, "resources", part, name)
        return (*view.main.path, *self.at) if view.main is not None else view.spec_path

    def before(self, view: PodView, ev: Evaluation) -> GpuUse | None:
        """The same before the update."""
        return self.use(view.old, ev) if view.old is not None else None

    def intent(self, view: PodView, ev: Evaluation) -> None:
        """canEdit and blocked compare the pod's total."""
        rules = self.rules
        if not rules.prohibitions:
            return
        use = self.use(view, ev)
        if not use.forms and not use.unbounded:
            return
        before = self.before(view, ev)
        same = before is not None and (before.count, before.forms, before.unbounded) == (
            use.count,
            use.forms,
            use.unbounded,
        )
        equal = rules.default is not None and not use.unbounded and use.count == rules.default.value
        for each in rules.prohibitions:
            repeated = equal and (each.rule == "canEdit" or ev.final_object)
            if repeated or (same and ratchets(each)):
                continue
            allowed = (
                rules.show(rules.default.value)
                if rules.default and each.rule == "canEdit"
                else None
            )
            ev.violate(self.field.path, self.place(view), self.shown(use), allowed, each)

    def shown(self, use: GpuUse) -> str:
        """The total for people."""
        return f"no bound ({use.unbounded})" if use.unbounded else str(use.count)

    def fill(self, view: PodView, ev: Evaluation) -> None:
        """Write limit and request on the main container, only when no GPU form is in use."""
        main, default = view.main, self.rules.default
        if main is None or default is None:
            return
        use = self.use(view, ev)
        if use.forms or use.unbounded or self.stated(view):
            return
        before = self.before(view, ev)
        value = None if default is None else default.value
        kept = "default"
        if before is not None and before.forms == {"whole"} and self.rules.allows(before.count):
            old = view.old_container(main)
            path = (*old.path, *self.at) if old is not None else ()
            if old is not None and not ev.intent.shown_before(path):
                value, kept = before.count, "kept"
        path = (*main.path, *self.at)
        if not value or not ev.can_write(path):
            return
        source = default.source if default is not None else None
        name = str(self.at[-1])
        ev.write(self.field.path, path, str(value), kept, source)
        ev.write(
            self.field.path, (*main.path, "resources", "requests", name), str(value), kept, source
        )

    def stated(self, view: PodView) -> bool:
        """Whether the user names a GPU resource at all, if only with 0."""
        return any(devices_of(each, self.names) for each in view.everyone)

    def final(self, view: PodView, ev: Evaluation) -> None:
        """min, max, step and required on the pod's total."""
        rules = self.rules
        if not rules.final and not rules.required:
            return
        use, before = self.use(view, ev), self.before(view, ev)
        path = self.place(view)
        if not use.forms and not use.unbounded and not self.stated(view):
            rules.judge_required(ev, path, unchanged=before is not None and not before.forms)
            return
        for each, holds in rules.final:
            if use.unbounded:
                if each.rule == "max" and not (before and before.unbounded and ratchets(each)):
                    ev.violate(
                        self.field.path,
                        path,
                        self.shown(use),
                        rules.show_argument(each),
                        each,
                        reason="unbounded",
                    )
                continue
            if holds(use.count, each.argument):
                continue
            if before is not None and ratchets(each) and self.no_further(each.rule, use, before):
                continue
            ev.violate(self.field.path, path, str(use.count), rules.show_argument(each), each)

    def no_further(self, rule: str, use: GpuUse, before: GpuUse) -> bool:
        """Whether an update does not move the total further from the rule."""
        if rule == "max":
            return use.count <= before.count
        if rule == "min":
            return use.count >= before.count
        return use.count == before.count

    def current(self, view: PodView, ev: Evaluation) -> Any:
        """The native count that the main container has now; None when unset."""
        return None if view.main is None else ev.now((*view.main.path, *self.at))
