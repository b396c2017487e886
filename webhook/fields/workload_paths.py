"""Where the fields of a workload as a whole are in an object: paths of the profile, replicas."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from webhook.evaluation.server_defaults import KindDefaults
from webhook.evaluation.state import Evaluation
from webhook.fields.notation import Place
from webhook.interface.profile import FieldPlaces, Profile, ScaleOf
from webhook.jq.path import Match, Program
from webhook.objects.path import ABSENT, Path, read
from webhook.pods.definition import Definition
from webhook.pods.matching import matches
from webhook.pods.operator_defaults import is_zero
from webhook.pods.replicas import Scale
from webhook.pods.roles import set_in

Locate = Callable[[Evaluation, Any], Sequence[Place]]


def nowhere(ev: Evaluation, document: Any) -> list[Place]:
    """The places of what the kind does not have."""
    return []


def place_of_every_kind(at: Path) -> Locate:
    """The one place of a field that all kinds have in common."""

    def locate(ev: Evaluation, document: Any) -> list[Place]:
        value = read(document, at)
        return [Place(at, None if value is ABSENT or value == "" else value, "common")]

    return locate


def places_in(held: FieldPlaces, profile: Profile) -> Locate:
    """Return the places of a field that rules look at; a 0 that the operator replaces is unset."""
    if held.first_counts:
        return first_of(held.places, held.places)
    return without_zeros(places_of(held.places), held.places, profile)


def without_zeros(locate: Locate, programs: Sequence[Program], profile: Profile) -> Locate:
    """Return a field's places, where a 0 that the operator replaces counts as unset."""
    replaced = {each.place.text for each in profile.shadow_defaults if each.zero_too}
    if not replaced or not {each.text for each in programs} <= replaced:
        return locate
    return lambda ev, document: [
        each._replace(value=None) if is_zero(each.value) else each for each in locate(ev, document)
    ]


def writes_in(held: FieldPlaces, definition: Definition) -> Locate:
    """The places that a default of a field goes to, none while the object forbids it."""
    locate = first_of(held.places, held.write) if held.first_counts else places_of(held.write)
    locate = without_zeros(locate, held.write, definition.profile)
    lists = any(program.iterators for program in held.write)

    def allowed(ev: Evaluation, document: Any) -> Sequence[Place]:
        found = locate(ev, document)
        if held.only_with is not None:
            where = elements_with(held.only_with, document)
            found = [each for each in found if within(each, where, lists=lists)]
        if held.absent_is_unlimited is not None:
            absent = absent_components(definition, document)
            found = [each for each in found if not is_of_absent(each.path, absent)]
        if held.not_with is None:
            return found
        where = elements_with(held.not_with, document)
        return [
            # What stands there is the user's word on this field too.
            each._replace(value=True)
            if each.value is None and within(each, where, lists=lists)
            else each
            for each in found
        ]

    return allowed


def unlimited_in(held: FieldPlaces, definition: Definition) -> Locate:
    """The places where the object sets no limit, and the operator then has none."""
    locate, said = places_in(held, definition.profile), held.absent_is_unlimited
    if said is None:
        return nowhere

    def unlimited(ev: Evaluation, document: Any) -> list[Place]:
        found = [each for each in locate(ev, document) if said.even_if_set or each.value is None]
        if found and said.needs_parent:
            found = [each for each in found if type(read(document, each.path[:-1])) is dict]
        if found and said.only_with is not None:
            where, lists = elements_with(said.only_with, document), said.only_with.iterators
            found = [each for each in found if within(each, where, lists=bool(lists))]
        absent = absent_components(definition, document) if found else ()
        return [each for each in found if not is_of_absent(each.path, absent)]

    return unlimited


def absent_components(definition: Definition, document: Any) -> list[Path]:
    """Where pods of components would be that the object does not have."""
    places = [each.places for each in definition.interface.components if each.places is not None]
    return [
        each.path
        for each in matches(places, document)
        if each.path is not None and each.value is None
    ]


def is_of_absent(path: Path, absent: Sequence[Path]) -> bool:
    """Whether a field at the path would be the only thing that an absent component has."""
    return any(path[: len(each)] == each for each in absent)


def elements_with(program: Program, document: Any) -> list[Path]:
    """The elements, () for the whole object, where a place is set; an empty object is, false not."""
    found = matches((program,), document)
    return [(each.bindings or ((),))[-1] for each in found if each.value not in (None, False)]


def within(place: Place, elements: Sequence[Path], *, lists: bool) -> bool:
    """Whether a place is in one of the elements; one that is in no list belongs to each."""
    return any(not lists or place.path[: len(each)] == each for each in elements)


def element_key(document: Any, bindings: tuple[Path, ...]) -> str:
    """What names a list element across updates: its name, else its index."""
    parts = []
    for binding in bindings:
        element = read(document, binding)
        name = (
            element.get("name") or element.get("groupName") if isinstance(element, dict) else None
        )
        parts.append(str(name or binding[-1]))
    return "/".join(parts)


def places_of(programs: Sequence[Program]) -> Locate:
    """Concrete places of several programs, in order."""

    def locate(ev: Evaluation, document: Any) -> list[Place]:
        return [
            Place(
                match.path, match.value, f"{program.text}|{element_key(document, match.bindings)}"
            )
            for program in programs
            for match in matches((program,), document)
            if match.path is not None
        ]

    return locate


def first_of(programs: Sequence[Program], write: Sequence[Program]) -> Locate:
    """One place for each element: the first that is set, else the first of those to write."""
    texts = {each.text for each in write}

    def locate(ev: Evaluation, document: Any) -> list[Place]:
        found: dict[tuple[Path, ...], Match] = {}
        empty: dict[tuple[Path, ...], Match] = {}
        for program in programs:
            for match in matches((program,), document):
                if match.value is not None:
                    found.setdefault(match.bindings, match)
                elif program.text in texts:
                    empty.setdefault(match.bindings, match)
        return [
            Place(match.path, match.value, element_key(document, bindings))
            for bindings, match in {**empty, **found}.items()
            if match.path is not None
        ]

    return locate


def shadow(definition: Definition, server: KindDefaults, held: FieldPlaces) -> Any:
    """What the server, the CRD or the operator would fill in at a field's place; else None."""
    programs = list(held.places)
    if held.scale_of is not None:
        programs += filter(None, [replicas_of(definition, held.scale_of)])
    texts = {each.text for each in programs}
    for default in definition.profile.shadow_defaults:
        if default.place.text in texts and default.same_as is None:
            return default.value
    values = (server.workload(each.text) for each in programs if each.is_plain)
    return next((each for each in values if each is not None), None)


def replicas_of(definition: Definition, of: ScaleOf) -> Program | None:
    """The place of a component's replicas, where the definition names one."""
    for component in definition.interface.components:
        if component.name == of.component:
            return component.replicas
    return None


def chosen(scales: Sequence[Scale], of: ScaleOf) -> list[Scale]:
    """The scales of a component, or of one of its instances."""
    return [
        each
        for each in scales
        if each.component == of.component
        and (of.instance is None or each.instance.casefold() == of.instance.casefold())
    ]


def sum_of_scales(of: ScaleOf) -> Locate:
    """The sum of a component's replicas as one place; its value 0 when it has no instance."""

    def locate(ev: Evaluation, document: Any) -> list[Place]:
        scales = chosen(ev.scales(document), of)
        total = sum(max(each.replicas or 0, each.minimum or 0) for each in scales)
        path = next((each.place for each in scales), ())
        silent = all(each.path is not None and now(document, each.path) is None for each in scales)
        return [Place(path, total, "sum", computed=silent, added_up=len(scales))]

    return locate


def now(document: Any, path: Path) -> Any:
    """The value at a path; None when absent."""
    value = read(document, path)
    return None if value is ABSENT else value


def scale_writes(definition: Definition, of: ScaleOf) -> Locate | None:
    """Where the replicas are written, when one plain place or one instance has them."""
    program = replicas_of(definition, of)
    if of.instance is None and (program is None or not program.is_plain):
        return None

    def locate(ev: Evaluation, document: Any) -> list[Place]:
        if of.instance is None:
            return list(places_of((program,))(ev, document)) if program is not None else []
        return [
            Place(each.path, now(document, each.path), each.instance)
            for each in chosen(ev.scales(document), of)
            if each.path is not None
        ]

    return locate


def scale_places(definition: Definition, component: str, roles: tuple[str, ...]) -> Locate:
    """The most that each instance of a component with these roles can become."""
    profile = definition.profile.component(component)

    def locate(ev: Evaluation, document: Any) -> list[Place]:
        leaders = set_in(profile.leader_with, document) if profile.leader_with else set()
        return [
            Place(each.most_at, each.most, f"{component}/{each.instance}".rstrip("/"))
            for each in ev.scales(document)
            if each.component == component
            and (("leader",) if leads(each, leaders) else profile.roles(each.instance)) == roles
        ]

    return locate


def leads(scale: Scale, leaders: set[tuple[Path, ...]]) -> bool:
    """Whether an instance is one of the elements whose role is leader."""
    return any(
        all(scale.place[: len(element)] == element for element in elements) for elements in leaders
    )
