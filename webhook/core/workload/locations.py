"""Pod locations: every place of a pod spec in one workload, with its metadata and roles."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, make_dataclass, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook.core.pointer import Path, display
from webhook.core.workload.foreign import ForeignProgram
from webhook.core.workload.interface import Component, Interface
from webhook.core.workload.parts import (
    BEHIND,
    UPSTREAM,
    Part,
    PodParts,
    matches_in,
    parts_of,
    step_of,
)
from webhook.core.workload.profile import (
    Children,
    ComponentProfile,
    ExtraContainer,
    MainConvention,
    Profile,
    without_profile,
)
from webhook.core.workload.query import Match, Program, QueryError
from webhook.core.workload.query_pairing import paired
from webhook.core.workload.taken import Taken, makes_container
from webhook.core.workload.typed import sort

if TYPE_CHECKING:
    from webhook.core.workload.proof import Proof

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
    `parts` are the pieces of a pod that the object does not state as a whole, `claims` the
    templates of claims that the workload brings along.
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
    parts: PodParts | None = None
    claims: tuple[tuple[Path, dict[str, Any]], ...] = ()


# A frozen dataclass takes seven times as long to make as its equal that is not frozen; a location
# is made as the latter, of the same slots, and frozen by changing its class.
THAWED: Final[Any] = make_dataclass(
    "Thawed", [(each.name, Any) for each in fields(PodLocation)], slots=True
)
SPEC: Final[Path] = ("spec",)
METADATA: Final[Path] = ("metadata",)


class Plan:
    """How one component's pods are found: its programs and what its profile says."""

    __slots__ = (
        "alone",
        "component",
        "extras",
        "ids",
        "metadata",
        "parts",
        "places",
        "profile",
        "roles",
        "template",
        "varies",
    )

    def __init__(
        self,
        component: Component,
        profile: ComponentProfile,
        extras: tuple[ExtraContainer, ...],
        parts: tuple[Part, ...] = (),
    ) -> None:
        self.parts = parts
        self.component = component.name
        self.places = component.places
        self.template = component.template is not None
        self.metadata = component.metadata
        self.ids = component.ids
        self.profile = profile
        self.extras = extras
        # Where a template would be that the object need not have.
        places = component.places if profile.without_template else None
        plain = places is not None and places.is_plain
        self.alone = places.matches({})[0].path if places is not None and plain else None
        # Most components have one role whatever the instance is called.
        self.roles = None if profile.by_instance else profile.roles("")
        main = profile.main
        self.varies = bool(
            main.with_ports
            or main.named_at
            or profile.merged_with
            or profile.leader_with
            or any(each.main for each in extras)
            or (self.places is not None and any(each.place.iterators for each in extras))
        )


class Definition:
    """A resource interface with its profile, ready to locate; `others` add their locations.

    `versions` are the API versions that it is for, all of the profile's unless stated.
    Without a profile every component is a worker and the whole object is walked for coverage.
    `proofs` are what is known by the CRD's schema, by version.
    """

    __slots__ = (
        "embedded",
        "foreign",
        "interface",
        "others",
        "plans",
        "pods_elsewhere",
        "profile",
        "profiled",
        "proofs",
        "versions",
    )

    def __init__(
        self,
        interface: Interface,
        profile: Profile | None = None,
        others: tuple[Definition, ...] = (),
        versions: tuple[str, ...] = (),
    ) -> None:
        self.interface = interface
        self.profiled = profile is not None
        self.profile = (profile or without_profile(interface)).of_version(interface.version)
        self.others = others
        self.embedded = tuple(part for each in self.everyone for part in each.profile.embedded)
        self.proofs: dict[str, Proof] = {}
        self.foreign: tuple[ForeignProgram, ...] = tuple(
            program
            for each in (interface, *(other.interface for other in others))
            for component in each.components
            for program in component.foreign
        )
        # Of several definitions that differ in their versions, each set has its own union.
        self.versions = versions or self.profile.versions
        self.plans = tuple(
            Plan(
                component,
                self.profile.component(component.name),
                tuple(
                    each
                    for each in self.profile.extra_containers
                    if each.component == component.name
                ),
                pod_parts(component, self.profile),
            )
            for component in interface.components
            if component.form
        )
        self.pods_elsewhere = any(each.has_pods_elsewhere for each in self.everyone)

    def __repr__(self) -> str:
        return f"Definition({self.interface.kind}.{self.interface.group or 'core'})"

    def proof(self, document: Any) -> Proof | None:
        """What the schema of a document's version proves; None where no CRD is known."""
        if not self.proofs or not isinstance(document, dict):
            return None
        return self.proofs.get(str(document.get("apiVersion")).rpartition("/")[2])

    @property
    def has_pods_elsewhere(self) -> bool:
        """Whether this definition alone knows of pods that an object may not state, or not whole."""
        profile = self.profile
        return bool(
            profile.references
            or profile.pod_texts
            or any(each.children == "merged" for each in profile.components.values())
            or any(each.merged_with for each in profile.components.values())
        )

    @property
    def only_wraps(self) -> bool:
        """Whether objects of this kind have no pods of their own, only those of wrapped objects."""
        return bool(self.embedded) and not any(each.plans for each in self.everyone)

    @property
    def everyone(self) -> Iterator[Definition]:
        """This definition and those whose locations are added."""
        yield self
        yield from self.others


def pod_parts(component: Component, profile: Profile) -> tuple[Part, ...]:
    """The pieces of a component's pods: the profile's, and those that only the interface has."""
    if component.form != "fragments":
        return ()
    own = profile.pod_parts.get(component.name, ())
    named = {part.pod for part in own}
    others = (
        Part(UPSTREAM[name], program)
        for name, program in component.fragments.items()
        if UPSTREAM[name] not in named
    )
    # A pod's first container comes before those that are put behind it, an item before its parts.
    return tuple(
        sorted((*others, *own), key=lambda each: (each.form in BEHIND, each.form != "item"))
    )


def union(definitions: Sequence[Definition], versions: tuple[str, ...] = ()) -> Definition:
    """Several definitions of one kind as one: the first decides, the others add locations."""
    first, *rest = definitions
    return Definition(
        first.interface,
        first.profile if first.profiled else None,
        (*first.others, *rest),
        versions,
    )


def locate(definition: Definition, document: Any) -> list[PodLocation]:
    """Every pod location of the document, in its order; raises LocationError."""
    found = own_locations(definition, document)
    if definition.others:
        for number in range(len(definition.others)):
            add_locations(definition, number, document, found)
    if len(found) > MAX_LOCATIONS:
        raise too_many(len(found))
    if definition.profile.claim_templates:
        claims = claim_templates(definition.profile, document)
        if claims:
            found = [replace(each, claims=claims) for each in found]
    return found


def own_locations(
    definition: Definition, document: Any, taken: Taken | None = None
) -> list[PodLocation]:
    """The locations of one definition alone, without pieces that are taken."""
    found: list[PodLocation] = []
    for plan in definition.plans:
        before = len(found)
        if plan.parts:
            locate_parts(plan, document, found, taken)
        else:
            locate_component(plan, document, found)
        if plan.profile.stands_in_for:
            stand_in(definition, plan.profile.stands_in_for, found, before)
    return found


def add_locations(
    definition: Definition, number: int, document: Any, found: list[PodLocation]
) -> list[PodLocation]:
    """Append what one of the others knows beside; those that are new.

    A place that is known keeps what is known of it and takes on further containers of its pods.
    """
    other = definition.others[number]
    known = {each.spec_path: index for index, each in enumerate(found)}
    new = []
    for each in own_locations(other, document, Taken(found)):
        index = known.get(each.spec_path)
        if index is not None:
            extra = dict(found[index].extra)
            extra.update((path, value) for path, value in each.extra if path not in extra)
            found[index] = replace(found[index], extra=tuple(extra.items()))
            continue
        instance = instance_beside(definition, number, each.component, each.instance)
        new.append(each if instance == each.instance else replace(each, instance=instance))
    found += new
    return new


def instance_beside(definition: Definition, number: int, component: str, instance: str) -> str:
    """An instance's name that no component of the same name in another definition has."""
    before = (definition, *definition.others[:number])
    if any(each.interface.component(component) for each in before):
        return f"{instance}#{number + 2}"
    return instance


def claim_templates(profile: Profile, document: Any) -> tuple[tuple[Path, dict[str, Any]], ...]:
    """The claim templates of the workload, each with its place."""
    found = []
    for path, value, _ in matches(profile.claim_templates, document):
        if value is not None and path is not None:
            if value.__class__ is not dict:
                raise wrong_type(path, "a claim template", value)
            found.append((path, value))
    return tuple(found)


def stand_in(definition: Definition, name: str, found: list[PodLocation], first: int) -> None:
    """Give the locations from `first` on the roles of a component without the same instance."""
    own = {each.instance for each in found[:first] if each.component == name}
    other = definition.profile.component(name).roles("")
    found[first:] = [
        each if each.instance in own else replace(each, roles=(*other, *each.roles))
        for each in found[first:]
    ]


def too_many(count: int) -> LocationError:
    """The budget of one object is exceeded."""
    text = f"{count} pod locations; one object may have {MAX_LOCATIONS}"
    return LocationError((), "too-many-locations", text)


def locate_parts(
    plan: Plan, document: Any, found: list[PodLocation], taken: Taken | None = None
) -> None:
    """Append the pods of a component that are stated piece by piece."""
    try:
        named = (
            [(name, each.bindings) for name, each in paired(plan.ids, plan.ids, document)]
            if plan.ids is not None
            else [("", ())]
        )
        for instance, bindings in named:
            free = plan.parts if taken is None else not_taken(plan, document, bindings, taken)
            parts = parts_of(free, document, bindings)
            if parts is not None:
                found.append(assembled(plan, instance, parts, document))
    except QueryError as error:
        raise LocationError((), "path-failed", str(error)) from error


def not_taken(
    plan: Plan, document: Any, bindings: tuple[Path, ...], taken: Taken
) -> tuple[Part, ...]:
    """The pieces of a pod that no pod has yet; none when only such are left as make no container."""
    free = tuple(
        part
        for part in plan.parts
        if not any(
            each.path is not None and taken.holds(each.path)
            for each in matches_in(part, document, bindings)
        )
    )
    if len(free) == len(plan.parts) or any(makes_container(each) for each in free):
        return free
    return ()


def assembled(plan: Plan, instance: str, parts: PodParts, document: Any) -> PodLocation:
    """The location of a pod in pieces; its paths begin with a step that knows them."""
    pod = parts.settle(document)
    for place, what, value in parts.refused:
        raise wrong_type(place, what, value)
    step = step_of(f"{plan.component}/{instance}", parts)
    profile = plan.profile
    return PodLocation(
        plan.component,
        instance,
        plan.roles or profile.roles(instance),
        parts.root,
        (step, "metadata"),
        (step, "spec"),
        pod["metadata"],
        pod["spec"],
        (),
        MainConvention(index=0),
        profile.children,
        parts,
    )


def locate_component(plan: Plan, document: Any, found: list[PodLocation]) -> None:
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
        )
        location.__class__ = frozen
        found.append(location)
        extra = ()
    if plan.varies:
        bound = [bindings for _, (_, _, bindings) in pairs]
        found[first:] = varied(plan, document, found[first:], bound, extras)


class Extra(NamedTuple):
    """A container outside the templates; `bindings` are the elements that it is in."""

    path: Path
    value: dict[str, Any]
    bindings: tuple[Path, ...]
    main: bool


def extras_of(bound: Sequence[tuple[Path, ...]], extras: Sequence[Extra]) -> list[list[Extra]]:
    """The containers of each pod: those of its own element, all others with the first one."""
    return [
        [each for each in extras if each.bindings == own or (not at and each.bindings not in bound)]
        for at, own in enumerate(bound)
    ]


def varied(
    plan: Plan,
    document: Any,
    locations: Sequence[PodLocation],
    bound: Sequence[tuple[Path, ...]],
    extras: Sequence[Extra],
) -> list[PodLocation]:
    """What the object decides: roles, each pod's extra and main containers, merged children."""
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
    """The elements in which a place has a value."""
    found = matches((place,) if place is not None else (), document)
    return {each.bindings for each in found if each.value is not None}


def main_of(
    main: MainConvention, location: PodLocation, extras: Sequence[Extra], document: Any
) -> MainConvention:
    """The main container's rule for one pod: a place, a name or an index."""
    place = next((each.path for each in extras if each.main), None)
    if main.named_at is not None:
        named = next((each.value for each in matches((main.named_at,), document)), None)
        main = replace(main, name=named if isinstance(named, str) and named else main.name)
    elif main.with_ports:
        main = replace(main, index=first_with_ports(location.spec))
    return replace(main, place=place)


def first_with_ports(spec: dict[str, Any]) -> int | None:
    """The index of the first container that has ports."""
    listed = spec.get("containers")
    for index, each in enumerate(listed if isinstance(listed, list) else ()):
        if isinstance(each, dict) and each.get("ports"):
            return index
    return None


NOWHERE: Final[tuple[Path | None, Any]] = (None, None)


def instances(plan: Plan, document: Any) -> list[tuple[str, Match]]:
    """The component's pods by instance; unnamed ones are numbered when there are several."""
    places = plan.places
    assert places is not None  # pods in pieces are located otherwise
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


def extra_containers(plan: Plan, document: Any) -> list[Extra]:
    """The containers outside the templates that run in this component's pods."""
    found = []
    for extra in plan.extras:
        for path, value, bindings in matches((extra.place,), document):
            if value is None or path is None:
                continue
            if value.__class__ is not dict:
                raise wrong_type(path, "a container", value)
            found.append(Extra(path, value, bindings, extra.main))
    return found


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
