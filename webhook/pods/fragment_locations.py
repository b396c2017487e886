"""Locates pods that a workload has in fragments, leaving out fragments that other pods have."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, Protocol

from webhook.interface.fragment import FragmentSpec
from webhook.interface.profile import MainConvention
from webhook.jq.pair import matches_within, pair_values
from webhook.jq.path import QueryError
from webhook.objects.path import Path
from webhook.pods.assemble import Found, FragmentPod, found_in, fragment_pod_at
from webhook.pods.component_plan import ComponentPlan
from webhook.pods.location import FragmentPods, LocationError, PodLocation, wrong_type

CONTAINER_LISTS: Final = frozenset({"containers", "initContainers", "ephemeralContainers"})


class Location(Protocol):
    """The attributes of a pod location that are read."""

    @property
    def spec_path(self) -> Path: ...
    @property
    def metadata_path(self) -> Path | None: ...
    @property
    def extra(self) -> tuple[tuple[Path, object], ...]: ...
    @property
    def fragments(self) -> FragmentPod | None: ...


class TakenPaths:
    """The paths of pods that have been located."""

    __slots__ = ("around", "fragments", "whole")

    def __init__(self, locations: Iterable[Location]) -> None:
        self.whole: set[Path] = set()
        self.fragments: set[Path] = set()
        for each in locations:
            if each.fragments is not None:
                self.fragments.update(one.path for one in each.fragments.fragments if one.path)
                continue
            self.whole.add(each.spec_path)
            self.whole.update(path for path, _ in each.extra)
            if each.metadata_path is not None:
                self.whole.add(each.metadata_path)
        self.around = {path[:size] for path in self.fragments for size in range(len(path) + 1)}

    def is_taken(self, path: Path) -> bool:
        """Return whether a path is in a known pod, or is, contains or is inside a fragment of one."""
        heads = {path[:length] for length in range(len(path) + 1)}
        if not heads.isdisjoint(self.whole) or not heads.isdisjoint(self.fragments):
            return True
        return path in self.around


def makes_container(spec: FragmentSpec) -> bool:
    """Return whether a fragment is a container, a list of containers, or an image: a pod needs one."""
    section, *rest = spec.pod
    if section != "spec" or not rest or rest[0] not in CONTAINER_LISTS:
        return False
    return len(rest) <= 2 or rest[2:] == ["image"]


def locate_fragments(
    plan: ComponentPlan,
    document: Any,
    found: list[PodLocation],
    pods: FragmentPods,
    taken: TakenPaths | None = None,
) -> None:
    """Append the pods of a component that are in fragments, also to `pods`."""
    try:
        named = (
            [(name, each.bindings) for name, each in pair_values(plan.ids, plan.ids, document)]
            if plan.ids is not None
            else [("", ())]
        )
        for instance, bindings in named:
            free = plan.specs if taken is None else not_taken(plan, document, bindings, taken)
            given = found_in(free, document, bindings)
            fragments = fragment_pod_at(free, plan.assembler, bindings, given)
            if fragments is not None:
                found.append(build_location(plan, instance, fragments, given, len(pods)))
                pods.append(fragments)
    except QueryError as error:
        raise LocationError((), "path-failed", str(error)) from error


def not_taken(
    plan: ComponentPlan, document: Any, bindings: tuple[Path, ...], taken: TakenPaths
) -> tuple[FragmentSpec, ...]:
    """Return the specs whose fragments no pod has yet; () if none of them makes a container."""
    free = tuple(
        spec
        for spec in plan.specs
        if not any(
            each.path is not None and taken.is_taken(each.path)
            for each in matches_within(spec.place, document, bindings)
        )
    )
    if len(free) == len(plan.specs) or any(makes_container(each) for each in free):
        return free
    return ()


def build_location(
    plan: ComponentPlan, instance: str, fragments: FragmentPod, given: Sequence[Found], number: int
) -> PodLocation:
    """Return the location of a pod in fragments. Its paths begin with its number."""
    pod = fragments.settle(given)
    for path, what, value in fragments.refused:
        raise wrong_type(path, what, value)
    profile = plan.profile
    return PodLocation(
        plan.component,
        instance,
        plan.roles or profile.roles(instance),
        fragments.root,
        (number, "metadata"),
        (number, "spec"),
        pod["metadata"],
        pod["spec"],
        (),
        MainConvention(index=0),
        profile.children,
        fragments,
    )
