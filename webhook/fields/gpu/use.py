"""Counts the GPUs that a pod requests, over whole devices, MIG, parts and claims."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Hashable
from fnmatch import fnmatchcase
from fractions import Fraction
from typing import Any, Final, NamedTuple

from webhook.devices.claim_view import ClaimView
from webhook.devices.classes import DeviceClasses, Same, device_classes_of
from webhook.devices.counting import count_devices
from webhook.devices.kinds import CHANNEL_TYPES
from webhook.evaluation.installation import InstallationConfig
from webhook.evaluation.references import References
from webhook.evaluation.state import Evaluation
from webhook.fields.devices.pod_claims import claims_of
from webhook.fields.gpu.annotations import (
    DEVICES,
    FRACTION,
    MEMORY,
    annotation_path,
    annotations_of,
)
from webhook.fields.totals import effective_total
from webhook.objects import quantity
from webhook.objects.lookup import frozen
from webhook.objects.path import LONGEST_KEPT, Path
from webhook.pods.pod_view import Container, PodView, may_name

WHOLE, MIG, CLAIM = "whole", "mig", "claim"
PARTS: Final = (FRACTION, MEMORY)
# Any newer key for one container, known or not, requests a GPU, except limits and modes.
ASKING = re.compile(
    r"(?:kai\.scheduler|nvidia\.com)/container\.(?P<container>.+?)\.gpu-.*(?<!\.limit)(?<!\.mode)"
)
MIG_MARK = "/mig-"
VISIBLE = "NVIDIA_VISIBLE_DEVICES"
NOTHING_VISIBLE = ("", "void", "none")
NAMES_KEPT = 1024


# The count of an unreadable amount: more than any rule allows.
UNREADABLE: Final = quantity.LARGEST // quantity.NANO


class Unread(NamedTuple):
    """An unreadable amount: its path and its value."""

    path: Path
    native: Any


class SharedCount(NamedTuple):
    """Devices of a claim that several pods share. `once`: all pods of the workload share one."""

    devices: int
    once: bool


class GpuUse:
    """The request of one pod: a count of devices, the forms in use, and unbounded sources.

    `count` is the certain part. `sources` are names of unbounded sources, by what identifies each
    across an update or in another pod; `unknown` are the keys of claims that nobody knows. `shared`
    are devices of claims that other pods share, by the claim's path or its kind and name; `count`
    includes them. `unread` are unreadable amounts, by the same keys as `sources`.
    """

    __slots__ = ("count", "forms", "shared", "sources", "unknown", "unread")

    def __init__(self) -> None:
        self.count = 0
        self.forms: set[str] = set()
        self.sources: dict[Hashable, str] = {}
        self.unknown: set[Hashable] = set()
        self.unread: dict[str, Unread] = {}
        self.shared: dict[Hashable, SharedCount] = {}

    def add_unread(self, key: str, path: Path, native: Any) -> None:
        """Note an unreadable amount."""
        self.unread[key] = Unread(path, native)
        self.sources[key] = key

    @property
    def unbounded_source(self) -> str:
        """The name of the first unbounded source, "" for none."""
        return next(iter(self.sources.values()), "")

    @property
    def unshared(self) -> int:
        """The devices that no other pod has."""
        if not self.shared:
            return self.count
        return self.count - sum(each.devices for each in self.shared.values())

    def is_no_more(self, other: GpuUse) -> bool:
        """Return whether neither the count nor the unbounded sources exceed those of another pod.

        Two unbounded amounts are equal. But a request takes devices that a variable only exposes.
        """
        return (
            self.count <= other.count
            and self.sources.keys() <= other.sources.keys()
            and self.unread.keys() == other.unread.keys()
            and not self.newly_unread(other)
        )

    @property
    def none(self) -> bool:
        """Whether nothing is requested in any form."""
        return not self.forms and not self.unbounded_source

    def like(self, other: GpuUse | None) -> bool:
        """Return whether another pod requests the same in the same forms."""
        return (
            other is not None
            and (self.count, self.forms, self.sources) == (other.count, other.forms, other.sources)
            and not self.newly_unread(other)
        )

    def newly_unread(self, before: GpuUse | None) -> list[Unread]:
        """Return the unreadable amounts that are new in this update."""
        return new_among(self.unread, before.unread if before is not None else {})

    def show(self) -> str:
        """Return the total, for messages."""
        return f"no bound ({self.unbounded_source})" if self.unbounded_source else str(self.count)


def new_among(now: dict[str, Unread], before: dict[str, Unread]) -> list[Unread]:
    """Return the unreadable amounts that differ from before."""
    return [
        each for key, each in now.items() if key not in before or before[key].native != each.native
    ]


class GpuNames:
    """Knows which resource names are counted: by patterns, or as those of a counted device class."""

    __slots__ = ("classes", "counts", "known", "patterns")

    def __init__(
        self, patterns: tuple[str, ...], classes: DeviceClasses, counts: Callable[[str], bool]
    ) -> None:
        self.patterns = patterns
        self.classes = classes
        self.counts = counts
        self.known = {"cpu": False, "memory": False}

    def among(self, held: Any) -> list[str]:
        """Return the counted names in a map of amounts, none for other types."""
        if not isinstance(held, dict):
            return []
        known = self.known
        return [name for name in held if known.get(name, True) and name in self]

    def __contains__(self, name: object) -> bool:
        if not isinstance(name, str):
            return False
        found = self.known.get(name)
        if found is None:
            found = any(fnmatchcase(name, each) for each in self.patterns)
            if not found:
                device_class = self.classes.class_of_resource(name)
                found = device_class is not None and self.counts(device_class)
            # Users choose the names, so the cache must be bounded.
            if len(self.known) < NAMES_KEPT and len(name) <= LONGEST_KEPT:
                self.known[name] = found
        return found


def devices_of(container: Container, names: GpuNames, use: GpuUse | None = None) -> dict[str, int]:
    """Return whole devices by resource name: limits or requests, the larger one (plain units).

    An unreadable amount counts as UNREADABLE, and is noted in `use`.
    """
    found: dict[str, int] = {}
    resources = container.body.get("resources")
    if not isinstance(resources, dict):
        return found
    for part in ("limits", "requests"):
        held: Any = resources.get(part)
        for name in names.among(held):
            native = held[name]
            try:
                amount = -(-quantity.parse(native) // quantity.NANO) if native is not None else 0
            except ValueError:
                amount = UNREADABLE
                if use is not None:
                    key = f"{part} of {name} in {container.name or container.list}"
                    use.add_unread(key, (*container.path, "resources", part, name), native)
            found[name] = max(found.get(name, 0), amount, 0)
    return found


def sees_devices(container: Container) -> bool:
    """Return whether the container exposes devices by variables, which need no request."""
    return bool(visible_devices(container))


def visible_devices(container: Container) -> list[dict[str, Any]]:
    """Yield the variables of a container that expose devices."""
    entries = container.body.get("env")
    if not isinstance(entries, list) or not may_name(entries, VISIBLE):
        return []
    named = (each for each in entries if each.__class__ is dict and each.get("name") == VISIBLE)
    return [
        each
        for each in named
        if each.get("valueFrom") or (each.get("value") or "") not in NOTHING_VISIBLE
    ]


def resource_paths(view: PodView, names: GpuNames) -> list[tuple[Path, str]]:
    """Yield every path of a GPU resource with its name, limits before requests."""
    found: list[tuple[Path, str]] = []
    for container in view.everyone:
        resources = container.body.get("resources")
        for part in ("limits", "requests"):
            held = resources.get(part) if isinstance(resources, dict) else None
            known = names.among(held)
            found += [((*container.path, "resources", part, name), name) for name in known]
    return found


class DeviceCounter:
    """Counts the devices that pods get through device classes, by claim or as a resource.

    `names` are those of the settings alone. `latest` are those of the newest DeviceClasses of the
    cluster, with their briefs.
    """

    __slots__ = ("config", "latest", "names")

    def __init__(self, config: InstallationConfig) -> None:
        self.config = config
        self.names = self.find_names(device_classes_of(References(), config))
        self.latest: tuple[Any, GpuNames] = None, self.names

    def find_names(self, classes: DeviceClasses) -> GpuNames:
        """Return the resource names and classes that count."""
        return GpuNames((), classes, lambda name: not classes.types_of(name) <= CHANNEL_TYPES)

    def names_in(self, ev: Evaluation) -> GpuNames:
        """Return the names with the DeviceClasses of the review."""
        briefs, names = self.latest
        if ev.references.device_classes is not briefs:
            names = self.find_names(device_classes_of(ev.references, self.config))
            self.latest = ev.references.device_classes, names
        return names

    def use(self, view: PodView, ev: Evaluation) -> GpuUse:
        """Return the request of the pod. It is counted once for all fields of this counter."""
        key, version = type(self), ev.draft.version
        known = view.kept.get(key)
        if known is None or known[0] != version:
            known = view.kept[key] = (version, self.count(view, ev))
        use: GpuUse = known[1]
        return use

    def count(self, view: PodView, ev: Evaluation) -> GpuUse:
        """Count the request of the pod."""
        use, names = GpuUse(), self.names_in(ev)

        amounts: dict[str, dict[int, int]] = {}
        for container in view.everyone:
            if container.list == "ephemeralContainers":
                continue
            for name, amount in devices_of(container, names, use).items():
                if amount:
                    use.forms.add(MIG if MIG_MARK in name else WHOLE)
                    amounts.setdefault(name, {})[id(container)] = amount

        def total(held: dict[int, int]) -> int:
            return effective_total(view, lambda each: held.get(id(each), 0))

        # A pod keeps the largest amount of each resource. What an init container had of one is not
        # what a later container gets of another.
        use.count = sum(total(each) for each in amounts.values())
        self.add_claims(view, ev, use)
        return use

    def add_claims(self, view: PodView, ev: Evaluation, use: GpuUse) -> None:
        """Count claims by the objects that they refer to. Unknown ones are unbounded."""
        claims = view.spec.get("resourceClaims")
        if not claims and not view.location.shared:
            return
        for index, each in enumerate(claims if isinstance(claims, list) else ()):
            if not isinstance(each, dict):
                use.add_unread(f"claim {index}", (*view.spec_path, "resourceClaims", index), each)
        for claim in claims_of(view, ev):
            count, unbounded = 0, True
            if claim.view is None:
                use.unknown.add(claim.key)
            else:
                count, unbounded = self.count_claim(claim.view, ev)
            if count:
                use.forms.add(CLAIM)
            if unbounded:
                use.sources[claim.key] = claim.name
            if claim.shared_by is not None:
                use.shared[claim.shared_by] = SharedCount(count, claim.once)
            use.count += count

    def count_claim(self, claim: ClaimView, ev: Evaluation) -> tuple[int, bool]:
        """Return the devices of a claim, and whether their number has no bound."""
        counts = self.names_in(ev).counts
        return ev.once((type(self), Same(claim)), lambda: count_devices(claim, counts))


class GpuCounter(DeviceCounter):
    """Counts the GPUs of pods in every form, with an installation's names."""

    __slots__ = ()

    def find_names(self, classes: DeviceClasses) -> GpuNames:
        """Return the names of GPUs."""
        return GpuNames(self.config.gpu_resources, classes, classes.is_gpu)

    def count(self, view: PodView, ev: Evaluation) -> GpuUse:
        """Count the request of the pod in every form."""
        use = super().count(view, ev)
        add_gpu_parts(view, use)
        for container in view.everyone:
            if visible := visible_devices(container):
                key = (container.list, container.name, frozen(visible))
                use.sources[key] = f"variable {VISIBLE}"
        return use

    def names_gpus(self, view: PodView, ev: Evaluation) -> bool:
        """Return whether the user names a GPU resource, even with 0."""
        names = self.names_in(ev)
        return any(devices_of(each, names) for each in view.everyone)

    def profiles(self, view: PodView) -> list[tuple[Path, str]]:
        """Yield the MIG profiles in use with their paths."""
        asked = {
            name
            for each in view.everyone
            for name, amount in devices_of(each, self.names).items()
            if amount and MIG_MARK in name
        }
        if not asked:
            return []
        return [
            (path, name.partition(MIG_MARK)[2])
            for path, name in resource_paths(view, self.names)
            if name in asked
        ]


def add_gpu_parts(view: PodView, use: GpuUse) -> None:
    """Count the devices of a share or an amount of GPU memory, one if there is no number."""
    annotations = annotations_of(view)
    if not annotations:
        return

    def number(key: str, read: Callable[[Any], int]) -> int:
        try:
            return max(read(annotations[key]), 1)
        except ValueError:
            use.add_unread(f"annotation {key}", annotation_path(view, key), annotations[key])
            return UNREADABLE

    forms = [mark for mark in PARTS if annotations.get(mark) not in ("", None)]
    devices = 0
    if forms:
        use.forms.update(forms)
        devices = number(DEVICES, read_count) if annotations.get(DEVICES) not in ("", None) else 1
        devices *= number(FRACTION, read_share) if FRACTION in forms else 1
    named: dict[str, int] = {}
    for key in annotations:
        match = ASKING.fullmatch(key) if isinstance(key, str) else None
        if match is not None:
            form = FRACTION if ".gpu-memory.portion." in key else MEMORY
            use.forms.add(form)
            each = number(key, read_share) if form == FRACTION else 1
            named[match["container"]] = max(named.get(match["container"], 1), each)
    use.count += max(devices, sum(named.values()))


def read_count(native: Any) -> int:
    """Return the number of devices in an annotation. Raises ValueError."""
    text = str(native)
    if not re.fullmatch(r"[+-]?[0-9]{1,9}", text, re.ASCII):
        raise ValueError(DEVICES)
    return int(text)


def read_share(native: Any) -> int:
    """Return the devices of a share, a part of one being one. Raises ValueError."""
    return math.ceil(Fraction(quantity.parse_decimal(native)) / quantity.NANO)


def counter_of(config: InstallationConfig) -> GpuCounter:
    """The counter of an installation's names."""
    return GpuCounter(config)
