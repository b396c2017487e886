"""compute.gpuDevicesRequest: GPUs of a pod in every form, whole devices, MIG, fractions, claims."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import Any

from webhook.core import quantity
from webhook.core.policy.combine import Leaf
from webhook.core.policy.fields import Field
from webhook.core.workload.bindings.scalar import ScalarRules, reader, rules_of
from webhook.core.workload.bindings.totals import effective_total
from webhook.core.workload.evaluation import Evaluation, ratchets
from webhook.core.workload.podspec import Container, PodView

FRACTION_MARKS = ("gpu-fraction", "gpu-memory")
FRACTION_DEVICES = "gpu-fraction-num-devices"
# Newer keys of the scheduler, for one container each; a limit alone asks for nothing.
PER_CONTAINER = re.compile(r"(?:kai\.scheduler|nvidia\.com)/container\.(.+?)\.gpu-.*(?<!\.limit)")
DRA_EXTENDED = "deviceclass.resource.kubernetes.io/"
VISIBLE = "NVIDIA_VISIBLE_DEVICES"
NOTHING_VISIBLE = ("", "void", "none")
EXCLUSIVE = ("gpu-fraction", "gpu-memory", "whole", "mig")
NAMES_KEPT = 1024


class GpuUse:
    """What one pod asks for: a count in devices, forms in use, and whether it has no bound."""

    __slots__ = ("count", "forms", "unbounded")

    def __init__(self) -> None:
        self.count = 0
        self.forms: set[str] = set()
        self.unbounded = ""


class GpuNames:
    """Which resource names are GPUs: by the installation's patterns, or by their device class."""

    __slots__ = ("classes", "known", "patterns")

    def __init__(self, patterns: tuple[str, ...], classes: tuple[str, ...]) -> None:
        self.patterns = patterns
        self.classes = classes
        self.known = {"cpu": False, "memory": False}

    def __contains__(self, name: str) -> bool:
        found = self.known.get(name)
        if found is None:
            if name.startswith(DRA_EXTENDED):
                found = name.removeprefix(DRA_EXTENDED) in self.classes
            else:
                found = any(fnmatchcase(name, each) for each in self.patterns)
            # Users choose names; what they choose must not grow without bound.
            if len(self.known) < NAMES_KEPT:
                self.known[name] = found
        return found


def devices_of(container: Container, names: GpuNames) -> dict[str, int]:
    """Whole devices by resource name: limits or requests, the larger of the two (plain units)."""
    found: dict[str, int] = {}
    resources = container.body.get("resources")
    if not isinstance(resources, dict):
        return found
    for part in ("limits", "requests"):
        held = resources.get(part)
        for name, native in held.items() if isinstance(held, dict) else ():
            if name in names:
                try:
                    amount = quantity.parse(native)
                except ValueError:
                    continue
                found[name] = max(found.get(name, 0), -(-amount // quantity.NANO), 0)
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


def sees_devices(container: Container) -> bool:
    """Whether the container names devices to its runtime, which grants them without a request."""
    entries = container.body.get("env")
    for each in entries if isinstance(entries, list) else ():
        if not isinstance(each, dict) or each.get("name") != VISIBLE:
            continue
        if each.get("valueFrom") or (each.get("value") or "") not in NOTHING_VISIBLE:
            return True
    return False


class GpuField:
    """The GPU count of a pod; every rule looks at the pod's total over all forms."""

    __slots__ = ("at", "classes", "field", "names", "rules")

    def __init__(
        self, field: Field, leaf: Leaf, names: tuple[str, ...], classes: tuple[str, ...]
    ) -> None:
        self.field = field
        self.rules: ScalarRules = rules_of(field, leaf)
        self.at = field.at
        self.names = GpuNames(names, classes)
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
        if any(sees_devices(container) for container in view.everyone):
            use.unbounded = use.unbounded or f"variable {VISIBLE}"
        return use

    def add_fraction(self, view: PodView, use: GpuUse) -> None:
        """A fraction or an amount of GPU memory counts its devices, one without a number."""
        annotations = view.metadata.get("annotations")
        if not isinstance(annotations, dict):
            return
        forms = [mark for mark in FRACTION_MARKS if annotations.get(mark)]
        if forms:
            use.forms.update(forms)
            devices = str(annotations.get(FRACTION_DEVICES) or "1")
            if re.fullmatch(r"[+-]?[0-9]{1,9}", devices):
                use.count += max(int(devices), 1)
            else:
                use.unbounded = f"annotation {FRACTION_DEVICES}"
            return
        named = {match[1] for name in annotations if (match := PER_CONTAINER.fullmatch(str(name)))}
        if named:
            use.forms.add("gpu-memory")
            use.count += len(named)

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
                    if name in self.names:
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
        if not use.forms and not use.unbounded and not self.stated(view):
            return
        before = self.before(view, ev)
        same = before is not None and (before.count, before.forms, before.unbounded) == (
            use.count,
            use.forms,
            use.unbounded,
        )
        # A default is whole devices: as many in another form are another choice.
        equal = not use.unbounded and use.forms <= {"whole"} and rules.default is not None
        equal = equal and use.count == rules.default.value  # type: ignore[union-attr]
        for each in rules.prohibitions:
            repeated = equal and (
                each.rule == "canEdit" or ev.final_object or not ev.intent.shown(self.place(view))
            )
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
        """min, max, step and required on the pod's total; forms that exclude each other."""
        rules = self.rules
        use = self.use(view, ev)
        self.judge_forms(view, ev, use)
        absent = not use.forms and not use.unbounded and not self.stated(view)
        if absent and not rules.required:
            return
        if not (absent or use.unbounded) and all(
            holds(use.count, each.argument) for each, holds in rules.final
        ):
            return
        before, path = self.before(view, ev), self.place(view)
        if absent:
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
                        key=use.unbounded,
                    )
                continue
            if holds(use.count, each.argument):
                continue
            if before is not None and ratchets(each) and self.no_further(each.rule, use, before):
                continue
            ev.violate(self.field.path, path, str(use.count), rules.show_argument(each), each)

    def judge_forms(self, view: PodView, ev: Evaluation, use: GpuUse) -> None:
        """Fractions beside whole devices, or beside memory, are refused by the scheduler later."""
        used = [form for form in EXCLUSIVE if form in use.forms]
        if len(used) < 2 or used == ["whole", "mig"]:
            return
        before = self.before(view, ev)
        if before is not None and before.forms == use.forms:
            return
        rules = (*self.rules.prohibitions, *(each for each, _ in self.rules.final))
        source = next((each.source for each in rules), None)
        ev.violate(
            self.field.path,
            self.place(view),
            ", ".join(used),
            None,
            None,
            reason="two-gpu-forms",
            source=source,
        )

    def no_further(self, rule: str, use: GpuUse, before: GpuUse) -> bool:
        """Whether an update does not move the total further from the rule."""
        if rule == "max":
            return bool(before.unbounded) or use.count <= before.count
        if rule == "min":
            return use.count >= before.count
        return use.count == before.count

    def current(self, view: PodView, ev: Evaluation) -> Any:
        """The native count that the main container has now; None when unset."""
        return None if view.main is None else ev.now((*view.main.path, *self.at))
