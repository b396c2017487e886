"""Finds the paths of workload fields in an object: paths of the profile, replicas."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from webhook.evaluation.server_defaults import KindDefaults
from webhook.evaluation.state import Evaluation
from webhook.fields.notation import PathValue
from webhook.interface.profile import FieldPlaces, Profile, ScaleOf
from webhook.jq.path import Match, Program
from webhook.objects.path import ABSENT, Path, read
from webhook.pods.definition import Definition
from webhook.pods.matching import matches
from webhook.pods.operator_defaults import is_zero
from webhook.pods.replicas import Scale
from webhook.pods.roles import set_in

Locate = Callable[[Evaluation, Any], Sequence[PathValue]]


def locate_nothing(ev: Evaluation, document: Any) -> list[PathValue]:
    """Return no paths, for fields that the kind lacks."""
    return []


def locate_common_path(at: Path) -> Locate:
    """Locate the path of a field that all kinds have in common."""

    def locate(ev: Evaluation, document: Any) -> list[PathValue]:
        value = read(document, at)
        return [PathValue(at, None if value is ABSENT or value == "" else value, "common")]

    return locate


def locate_paths(paths: FieldPlaces, profile: Profile) -> Locate:
    """Return a function that locates a field for rules. A 0 that the operator replaces is unset."""
    if paths.first_counts:
        return first_of(paths.places, paths.places)
    return without_zeros(locate_programs(paths.places), paths.places, profile)


def without_zeros(locate: Locate, programs: Sequence[Program], profile: Profile) -> Locate:
    """Return a function that locates a field, where a 0 that the operator replaces counts as unset."""
    replaced = {each.place.text for each in profile.shadow_defaults if each.zero_too}
    if not replaced or not {each.text for each in programs} <= replaced:
        return locate
    return lambda ev, document: [
        each._replace(value=None) if is_zero(each.value) else each for each in locate(ev, document)
    ]


def locate_writes(paths: FieldPlaces, definition: Definition) -> Locate:
    """Return a function that locates the paths for a default, none if the object forbids it."""
    locate = (
        first_of(paths.places, paths.write) if paths.first_counts else locate_programs(paths.write)
    )
    locate = without_zeros(locate, paths.write, definition.profile)
    lists = any(program.iterators for program in paths.write)

    def allowed(ev: Evaluation, document: Any) -> Sequence[PathValue]:
        found = locate(ev, document)
        if paths.only_with is not None:
            where = elements_with(paths.only_with, document)
            found = [each for each in found if within(each, where, lists=lists)]
        if paths.absent_is_unlimited is not None:
            absent = absent_components(ev.definition, document)
            found = [each for each in found if not is_of_absent(each.path, absent)]
        if paths.not_with is None:
            return found
        where = elements_with(paths.not_with, document)
        return [
            # A value there also decides on this field.
            each._replace(value=True)
            if each.value is None and within(each, where, lists=lists)
            else each
            for each in found
        ]

    return allowed


def locate_unlimited(paths: FieldPlaces, definition: Definition) -> Locate:
    """Return a function that locates paths without a limit, where the operator applies none either."""
    locate, rule = (
        locate_paths(paths, definition.profile),
        paths.absent_is_unlimited,
    )
    if rule is None:
        return locate_nothing

    def unlimited(ev: Evaluation, document: Any) -> list[PathValue]:
        found = [each for each in locate(ev, document) if rule.even_if_set or each.value is None]
        if found and rule.needs_parent:
            found = [each for each in found if type(read(document, each.path[:-1])) is dict]
        if found and rule.only_with is not None:
            where, lists = (
                elements_with(rule.only_with, document),
                rule.only_with.iterators,
            )
            found = [each for each in found if within(each, where, lists=bool(lists))]
        absent = absent_components(ev.definition, document) if found else ()
        return [each for each in found if not is_of_absent(each.path, absent)]

    return unlimited


def absent_components(definition: Definition, document: Any) -> list[Path]:
    """Return the paths of components that the object does not have."""
    programs = [each.places for each in definition.interface.components if each.places is not None]
    return [
        each.path
        for each in matches(programs, document)
        if each.path is not None and each.value is None
    ]


def is_of_absent(path: Path, absent: Sequence[Path]) -> bool:
    """Return whether a field at the path would be the only value of an absent component."""
    return any(path[: len(each)] == each for each in absent)


def elements_with(program: Program, document: Any) -> list[Path]:
    """Return the elements in which a path is set, () for the whole object. False counts as unset."""
    found = matches((program,), document)
    return [(each.bindings or ((),))[-1] for each in found if each.value not in (None, False)]


def within(path_value: PathValue, elements: Sequence[Path], *, lists: bool) -> bool:
    """Return whether a path is in one of the elements. A path in no list belongs to each."""
    return any(not lists or path_value.path[: len(each)] == each for each in elements)


def element_key(document: Any, bindings: tuple[Path, ...]) -> str:
    """Return the key of a list element across updates: its name, else its index."""
    names = []
    for binding in bindings:
        element = read(document, binding)
        name = (
            element.get("name") or element.get("groupName") if isinstance(element, dict) else None
        )
        names.append(str(name or binding[-1]))
    return "/".join(names)


def locate_programs(programs: Sequence[Program]) -> Locate:
    """Return a function that locates the paths of several programs, in order."""

    def locate(ev: Evaluation, document: Any) -> list[PathValue]:
        return [
            PathValue(
                match.path, match.value, f"{program.text}|{element_key(document, match.bindings)}"
            )
            for program in programs
            for match in matches((program,), document)
            if match.path is not None
        ]

    return locate


def first_of(programs: Sequence[Program], write: Sequence[Program]) -> Locate:
    """Return a function that locates one path per element: the first that is set, else to write."""
    texts = {each.text for each in write}

    def locate(ev: Evaluation, document: Any) -> list[PathValue]:
        found: dict[tuple[Path, ...], Match] = {}
        empty: dict[tuple[Path, ...], Match] = {}
        for program in programs:
            for match in matches((program,), document):
                if match.value is not None:
                    found.setdefault(match.bindings, match)
                elif program.text in texts:
                    empty.setdefault(match.bindings, match)
        return [
            PathValue(match.path, match.value, element_key(document, bindings))
            for bindings, match in {**empty, **found}.items()
            if match.path is not None
        ]

    return locate


def find_shadow_default(definition: Definition, server: KindDefaults, paths: FieldPlaces) -> Any:
    """Return the value that the server, the CRD or the operator fills in for a field, else None."""
    programs = list(paths.places)
    if paths.scale_of is not None:
        programs += filter(None, [replicas_of(definition, paths.scale_of)])
    texts = {each.text for each in programs}
    for default in definition.profile.shadow_defaults:
        if default.place.text in texts and default.same_as is None:
            return default.value
    values = (server.workload(each.text) for each in programs if each.is_plain)
    return next((each for each in values if each is not None), None)


def replicas_of(definition: Definition, of: ScaleOf) -> Program | None:
    """Return the program for a component's replicas, None without one."""
    for component in definition.interface.components:
        if component.name == of.component:
            return component.replicas
    return None


def choose_scales(scales: Sequence[Scale], of: ScaleOf) -> list[Scale]:
    """Return the scales of a component, or of one of its instances."""
    return [
        each
        for each in scales
        if each.component == of.component
        and (of.instance is None or each.instance.casefold() == of.instance.casefold())
    ]


def sum_of_scales(of: ScaleOf) -> Locate:
    """Return a function for the sum of a component's replicas, 0 without an instance."""

    def locate(ev: Evaluation, document: Any) -> list[PathValue]:
        scales = choose_scales(ev.scales(document), of)
        total = sum(max(each.replicas or 0, each.minimum or 0) for each in scales)
        path = next((each.place for each in scales), ())
        silent = all(each.path is not None and now(document, each.path) is None for each in scales)
        return [PathValue(path, total, "sum", computed=silent, added_up=len(scales))]

    return locate


def now(document: Any, path: Path) -> Any:
    """Return the value at a path, None if absent."""
    value = read(document, path)
    return None if value is ABSENT else value


def scale_writes(definition: Definition, of: ScaleOf) -> Locate | None:
    """Return a function for the paths that replicas are written to, for a plain path or one instance."""
    program = replicas_of(definition, of)
    if of.instance is None and (program is None or not program.is_plain):
        return None

    def locate(ev: Evaluation, document: Any) -> list[PathValue]:
        if of.instance is None:
            return list(locate_programs((program,))(ev, document)) if program is not None else []
        return [
            PathValue(each.path, now(document, each.path), each.instance)
            for each in choose_scales(ev.scales(document), of)
            if each.path is not None
        ]

    return locate


def locate_scale_maxima(definition: Definition, component: str, roles: tuple[str, ...]) -> Locate:
    """Return a function for the largest number of each instance of a component with these roles."""
    profile = definition.profile.component(component)

    def locate(ev: Evaluation, document: Any) -> list[PathValue]:
        leaders = set_in(profile.leader_with, document) if profile.leader_with else set()
        return [
            PathValue(each.most_at, each.most, f"{component}/{each.instance}".rstrip("/"))
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
