"""Reads what an object sets for its pods outside their specs: roles, extra containers, children."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from webhook.interface.profile import MainConvention
from webhook.jq.path import Program
from webhook.objects.path import Path
from webhook.pods.component_plan import ComponentPlan
from webhook.pods.location import PodLocation, wrong_type
from webhook.pods.matching import matches


class Extra(NamedTuple):
    """A container outside the templates. `bindings` are the list elements that contain it."""

    path: Path
    value: dict[str, Any]
    bindings: tuple[Path, ...]
    main: bool


def extras_of(bound: Sequence[tuple[Path, ...]], extras: Sequence[Extra]) -> list[list[Extra]]:
    """Return the extra containers of each pod: those of its own element, all others with the first."""
    known = set(bound)
    held: dict[tuple[Path, ...], list[Extra]] = {}
    for each in extras if bound else ():
        held.setdefault(each.bindings if each.bindings in known else bound[0], []).append(each)
    return [held.get(own, []) for own in bound]


def apply_object(
    plan: ComponentPlan,
    document: Any,
    locations: Sequence[PodLocation],
    bound: Sequence[tuple[Path, ...]],
    extras: Sequence[Extra],
) -> list[PodLocation]:
    """Apply what the object decides: roles, each pod's extra and main containers, merged children."""
    profile = plan.profile
    merged = bool(set_in(profile.merged_with, document))
    leaders = set_in(profile.leader_with, document)
    found = []
    for location, own, around in zip(locations, bound, extras_of(bound, extras), strict=True):
        found.append(
            replace(
                location,
                roles=("leader",) if own in leaders else location.roles,
                extra=tuple((each.path, each.value) for each in around),
                main=main_of(profile.main, location, around, document),
                children="merged" if merged else location.children,
            )
        )
    return found


def set_in(place: Program | None, document: Any) -> set[tuple[Path, ...]]:
    """Return the elements in which a path has a value."""
    found = matches((place,) if place is not None else (), document)
    return {each.bindings for each in found if each.value is not None}


def main_of(
    main: MainConvention, location: PodLocation, extras: Sequence[Extra], document: Any
) -> MainConvention:
    """Return the main container's rule for one pod: a path, a name or an index."""
    place = next((each.path for each in extras if each.main), None)
    if main.named_at is not None:
        named = next((each.value for each in matches((main.named_at,), document)), None)
        main = replace(main, name=named if isinstance(named, str) and named else main.name)
    elif main.with_ports:
        main = replace(main, index=first_with_ports(location.spec))
    return replace(main, place=place)


def first_with_ports(spec: dict[str, Any]) -> int | None:
    """Return the index of the first container that has ports."""
    listed = spec.get("containers")
    for index, each in enumerate(listed if isinstance(listed, list) else ()):
        if isinstance(each, dict) and each.get("ports"):
            return index
    return None


def extra_containers(plan: ComponentPlan, document: Any) -> list[Extra]:
    """Return the containers outside the templates that run in this component's pods."""
    found = []
    for extra in plan.extras:
        for path, value, bindings in matches((extra.place,), document):
            if value is None or path is None:
                continue
            if value.__class__ is not dict:
                raise wrong_type(path, "a container", value)
            found.append(Extra(path, value, bindings, extra.main))
    return found
