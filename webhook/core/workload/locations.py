"""Pod locations: every place of a pod spec in one workload, with its metadata and roles."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, make_dataclass
from typing import Any, Final

from webhook.core.pointer import Path, display
from webhook.core.workload.interface import Component, Interface
from webhook.core.workload.profile import (
    Children,
    ComponentProfile,
    MainConvention,
    Profile,
    without_profile,
)
from webhook.core.workload.query import Match, Program, QueryError
from webhook.core.workload.query_pairing import paired
from webhook.core.workload.typed import sort

MAX_LOCATIONS: Final = 1000


class LocationError(Exception):
    """The object's pods cannot be told: where, a stable reason, and a sentence for people."""

    def __init__(self, path: Path, reason: str, text: str) -> None:
        super().__init__(text)
        self.path = path
        self.reason = reason
        self.text = text


@dataclass(frozen=True, slots=True)
class PodLocation:
    """One place of a pod spec.

    `place` is the template, or the spec where the kind has no templates; `metadata` and `spec` are
    the document's own maps, {} where the document has none yet. `metadata_path` is None where the
    kind has no place for pod metadata. `extra` are containers outside that run in these pods.
    """

    component: str
    instance: str
    roles: tuple[str, ...]
    place: Path
    metadata_path: Path | None
    spec_path: Path
    metadata: dict[str, Any]
    spec: dict[str, Any]
    extra: tuple[tuple[Path, dict[str, Any]], ...]
    main: MainConvention
    children: Children


# A frozen dataclass takes seven times as long to make as its equal that is not frozen; a location
# is made as the latter, of the same slots, and frozen by changing its class.
THAWED: Final[Any] = make_dataclass(
    "Thawed", [(each.name, Any) for each in fields(PodLocation)], slots=True
)
SPEC: Final[Path] = ("spec",)
METADATA: Final[Path] = ("metadata",)


class Plan:
    """How one component's pods are found: its programs and what its profile says."""

    __slots__ = ("component", "extras", "ids", "metadata", "places", "profile", "roles", "template")

    def __init__(
        self, component: Component, profile: ComponentProfile, extras: tuple[Program, ...]
    ) -> None:
        self.component = component.name
        self.places = component.places
        self.template = component.template is not None
        self.metadata = component.metadata
        self.ids = component.ids
        self.profile = profile
        self.extras = extras
        # Most components have one role whatever the instance is called.
        self.roles = None if profile.by_instance else profile.roles("")


class Definition:
    """A resource interface with its profile, ready to locate; `others` add their locations.

    Without a profile every component is a worker and the whole object is walked for coverage.
    """

    __slots__ = ("interface", "others", "plans", "profile", "profiled")

    def __init__(
        self,
        interface: Interface,
        profile: Profile | None = None,
        others: tuple[Definition, ...] = (),
    ) -> None:
        self.interface = interface
        self.profiled = profile is not None
        self.profile = profile or without_profile(interface)
        self.others = others
        self.plans = tuple(
            Plan(
                component,
                self.profile.component(component.name),
                tuple(
                    each.place
                    for each in self.profile.extra_containers
                    if each.component == component.name
                ),
            )
            for component in interface.components
            if component.form
        )

    def __repr__(self) -> str:
        return f"Definition({self.interface.kind}.{self.interface.group or 'core'})"

    @property
    def versions(self) -> tuple[str, ...]:
        """The API versions that this definition is for."""
        return self.profile.versions

    @property
    def everyone(self) -> Iterator[Definition]:
        """This definition and those whose locations are added."""
        yield self
        yield from self.others


def union(definitions: Sequence[Definition]) -> Definition:
    """Several definitions of one kind as one: the first decides, the others add locations."""
    first, *rest = definitions
    return Definition(
        first.interface, first.profile if first.profiled else None, (*first.others, *rest)
    )


def locate(definition: Definition, document: Any) -> list[PodLocation]:
    """Every pod location of the document, in its order; raises LocationError."""
    found: list[PodLocation] = []
    for plan in definition.plans:
        locate_component(plan, document, found)
    if definition.others:
        seen = {each.spec_path for each in found}
        for other in definition.others:
            for each in locate(other, document):
                if each.spec_path not in seen:
                    seen.add(each.spec_path)
                    found.append(each)
    if len(found) > MAX_LOCATIONS:
        raise too_many(len(found))
    return found


def too_many(count: int) -> LocationError:
    """The budget of one object is exceeded."""
    text = f"{count} pod locations; one object may have {MAX_LOCATIONS}"
    return LocationError((), "too-many-locations", text)


def locate_component(plan: Plan, document: Any, found: list[PodLocation]) -> None:
    """Append the locations of one component."""
    pairs = instances(plan, document)
    if len(pairs) > MAX_LOCATIONS:
        raise too_many(len(pairs))
    beside = metadata_beside(plan, document) if plan.metadata is not None else None
    extra = extra_containers(plan, document) if plan.extras else ()
    if extra and not pairs:
        text = f"{display(extra[0][0])} is a container of {plan.component}, which has no pod"
        raise LocationError(extra[0][0], "container-without-pod", text)
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
        )
        location.__class__ = frozen
        found.append(location)
        # A container outside the templates runs once; it is judged with the first pod.
        extra = ()


NOWHERE: Final[tuple[Path | None, Any]] = (None, None)


def instances(plan: Plan, document: Any) -> list[tuple[str, Match]]:
    """The component's pods by instance; unnamed ones are numbered when there are several."""
    places = plan.places
    if places is None:
        text = f"pods of {plan.component} are in fragments, which this version does not locate"
        raise LocationError((), "fragments-not-located", text)
    try:
        if plan.ids is not None:
            return paired(places, plan.ids, document)
        given = [each for each in places.matches_or_none(document) if each.value is not None]
    except QueryError as error:
        raise failed(places, document, error) from error
    if len(given) < 2:
        return [("", each) for each in given]
    return [(str(index), each) for index, each in enumerate(given)]


def failed(places: Program, document: Any, error: QueryError) -> LocationError:
    """Whether the pods or their ids could not be read."""
    reason = "instance-ids"
    try:
        places.matches_or_none(document)
    except QueryError:
        reason = "path-failed"
    return LocationError((), reason, str(error))


def metadata_beside(plan: Plan, document: Any) -> dict[Any, tuple[Path | None, Any]]:
    """The metadata that stand beside pod specs, by the elements that both were found in."""
    found = matches((plan.metadata,) if plan.metadata else (), document)
    return {each.bindings: (each.path, each.value) for each in found}


def extra_containers(plan: Plan, document: Any) -> tuple[tuple[Path, dict[str, Any]], ...]:
    """The containers outside the templates that run in this component's pods."""
    found = []
    for each in matches(plan.extras, document):
        if each.value is None or each.path is None:
            continue
        if each.value.__class__ is not dict:
            raise wrong_type(each.path, "a container", each.value)
        found.append((each.path, each.value))
    return tuple(found)


def matches(programs: Iterable[Program], document: Any) -> list[Match]:
    """What the programs find in the document, null values included; raises LocationError."""
    try:
        return [each for program in programs for each in program.matches_or_none(document)]
    except QueryError as error:
        raise LocationError((), "path-failed", str(error)) from error


def map_at(path: Path, what: str, value: Any) -> dict[str, Any]:
    """{} for what is absent; anything else that is no map has no business there."""
    if value is None:
        return {}
    raise wrong_type(path, what, value)


def wrong_type(path: Path, what: str, value: Any) -> LocationError:
    """The place holds something else than Kubernetes allows there."""
    text = f"{display(path)} must be {what}, found {sort(value)}"
    return LocationError(path, "wrong-type", text)
