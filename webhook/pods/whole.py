"""Locates the pods of a component that has whole pod specs."""

from __future__ import annotations

from dataclasses import fields, make_dataclass
from typing import Any, Final

from webhook.jq.pair import pair_values
from webhook.jq.path import Match, Program, QueryError
from webhook.objects.path import Path, display
from webhook.pods.component_plan import ComponentPlan
from webhook.pods.location import (
    MAX_LOCATIONS,
    LocationError,
    PodLocation,
    map_at,
    too_many,
    wrong_type,
)
from webhook.pods.matching import matches
from webhook.pods.roles import apply_object, extra_containers

# A frozen dataclass takes seven times as long to make as its equal that is not frozen; a location
# is made as the latter, of the same slots, and frozen by changing its class.
THAWED: Final[Any] = make_dataclass(
    "Thawed", [(each.name, Any) for each in fields(PodLocation)], slots=True
)
SPEC: Final[Path] = ("spec",)
METADATA: Final[Path] = ("metadata",)
NOWHERE: Final[tuple[Path | None, Any]] = (None, None)


def locate_component(plan: ComponentPlan, document: Any, found: list[PodLocation]) -> None:
    """Append the locations of one component."""
    pairs = instances(plan, document)
    if len(pairs) > MAX_LOCATIONS:
        raise too_many(len(pairs))
    beside = metadata_beside(plan, document) if plan.metadata is not None else None
    extras = extra_containers(plan, document) if plan.extras else []
    if extras and not pairs and plan.alone is not None:
        pairs = [("", Match(plan.alone, {}, ()))]
    if extras and not pairs:
        path = extras[0].path
        text = f"{display(path)} is a container of {plan.component}, which has no pod"
        raise LocationError(path, "container-without-pod", text)
    # A container outside the templates runs once; it is judged with the first pod.
    extra = tuple((each.path, each.value) for each in extras)
    first = len(found)
    profile, thawed, frozen = plan.profile, THAWED, PodLocation
    name, roles, main, children = plan.component, plan.roles, profile.main, profile.children
    is_template, what = plan.template, "a pod template" if plan.template else "a pod spec"
    metadata_path: Path | None
    for instance, (place, value, bindings) in pairs:
        assert place is not None  # the paths of pods are checked at load to name places
        if value.__class__ is not dict:
            raise wrong_type(place, what, value)
        if is_template:
            spec_path, metadata_path = place + SPEC, place + METADATA
            spec, metadata = value.get("spec"), value.get("metadata")
        else:
            spec_path, spec = place, value
            metadata_path, metadata = beside.get(bindings, NOWHERE) if beside else NOWHERE
        if spec.__class__ is not dict:
            spec = map_at(spec_path, "a pod spec", spec)
        if metadata.__class__ is not dict:
            metadata = map_at(metadata_path or (), "pod metadata", metadata)
        location = thawed(
            name,
            instance,
            roles or profile.roles(instance),
            place,
            metadata_path,
            spec_path,
            metadata,
            spec,
            extra,
            main,
            children,
            None,
            (),
            (),
        )
        location.__class__ = frozen
        found.append(location)
        extra = ()
    if plan.varies:
        bound = [bindings for _, (_, _, bindings) in pairs]
        found[first:] = apply_object(plan, document, found[first:], bound, extras)


def instances(plan: ComponentPlan, document: Any) -> list[tuple[str, Match]]:
    """Return the component's pods by instance. Unnamed ones are numbered if there are several."""
    places = plan.places
    assert places is not None  # pods in pieces are located otherwise
    try:
        if plan.ids is not None:
            return pair_values(places, plan.ids, document)
        given = [each for each in places.matches_or_none(document) if each.value is not None]
    except QueryError as error:
        raise location_error(places, document, error) from error
    if len(given) < 2:
        return [("", each) for each in given]
    return [(str(index), each) for index, each in enumerate(given)]


def location_error(places: Program, document: Any, error: QueryError) -> LocationError:
    """Return the error for pods, or ids of pods, that could not be read."""
    reason = "instance-ids"
    try:
        places.matches_or_none(document)
    except QueryError:
        reason = "path-failed"
    return LocationError((), reason, str(error))


def metadata_beside(plan: ComponentPlan, document: Any) -> dict[Any, tuple[Path | None, Any]]:
    """Return the metadata beside pod specs, by the list elements that contain both."""
    found = matches((plan.metadata,) if plan.metadata else (), document)
    return {each.bindings: (each.path, each.value) for each in found}
