"""Reads the numbers of replicas of a workload, per component and instance."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final

from webhook.documents.read_model import show_value, sort
from webhook.interface.interface import Component
from webhook.interface.profile import Groups, ScaleOf, ScaleRules
from webhook.jq.pair import matches_by_element, pair_values
from webhook.jq.path import Match, Program, QueryError
from webhook.objects.path import Path, display
from webhook.pods.definition import Definition
from webhook.pods.locate import add_locations, instance_beside, own_locations
from webhook.pods.location import FragmentPods, LocationError
from webhook.pods.matching import matches

Bindings = tuple[Path, ...]
UNLIMITED: Final = 2**31 - 1
NUMBER: Final = re.compile(r"[+-]?0*[0-9]{1,10}", re.ASCII)
INT32: Final = range(-(2**31), 2**31)


@dataclass(slots=True)
class Scale:
    """The replicas of one instance.

    `replicas` is None when neither the object nor the profile says a number. `path` is where it
    can be written, None for a computed one; it is there too when the object states none. `minimum`
    and `maximum` bound it: an operator raises replicas to the minimum, an autoscaler up to the
    maximum, which is None while nothing scales the instance. `place` is where the instance is,
    `limited_at` where the maximum is or would be, or what keeps one away.
    """

    component: str
    instance: str
    replicas: int | None
    path: Path | None
    minimum: int | None
    maximum: int | None
    place: Path = field(default=(), compare=False)
    limited_at: Path | None = field(default=None, compare=False)

    @property
    def most(self) -> int | None:
        """The largest number that it can reach: operators raise to the minimum, autoscalers further."""
        counts = [n for n in (self.replicas, self.minimum, self.maximum) if n is not None]
        return max(counts) if counts else None

    @property
    def most_at(self) -> Path:
        """The path of the number that decides the largest one: the maximum's, else the instance's."""
        decides = self.maximum is not None and self.maximum == self.most
        further = self.maximum not in (self.replicas, self.minimum)
        return self.limited_at if decides and further and self.limited_at else self.place


def read_scales(definition: Definition, document: Any) -> list[Scale]:
    """Return the scale of every instance whose component defines one. Raises LocationError."""
    found: list[Scale] = []
    for component in definition.interface.components:
        rules = definition.profile.component(component.name).scale
        if component.scales or rules.absent is not None:
            if rules.unlimited and not has_pods(component, document):
                continue
            found.extend(scales_of(component, rules, document))
    if definition.others:
        found.extend(scales_beside(definition, document))
    return found


def scales_beside(definition: Definition, document: Any) -> Iterator[Scale]:
    """Yield the scales of pods that only other definitions know."""
    pods: FragmentPods = []
    located = own_locations(definition, document, pods)
    for number, other in enumerate(definition.others):
        beside = add_locations(definition, number, document, located, pods)
        added = {each.component for each in beside}
        for each in read_scales(other, document) if added else ():
            if each.component in added:
                name = instance_beside(definition, number, each.component, each.instance)
                yield replace(each, instance=name)


def has_pods(component: Component, document: Any) -> bool:
    """Return whether the object has the component. An absent one has no scale without limits."""
    places = (component.places,) if component.places is not None else ()
    return not places or any(each.value is not None for each in matches(places, document))


def scales_of(component: Component, rules: ScaleRules, document: Any) -> Iterable[Scale]:
    """Yield the scales of one component."""
    replicas = by_element(component.replicas, component.ids, document)
    minimum = by_element(component.minimum, component.ids, document)
    scaled = holds(rules.maximum_only_with, document)
    maximum = by_element(component.maximum if scaled else None, component.ids, document)
    groups = groups_of(rules.groups, document)
    for instance, bindings in elements(component, document, (replicas, minimum, maximum)):
        number, path = replicas.get(bindings, (None, None))
        low, (high, at) = minimum.get(bindings, NOTHING)[0], maximum.get(bindings, NOTHING)
        if rules.instance in (None, instance.casefold()):
            low = first(rules.minimum, document)[0] if rules.minimum else low
            high, at = first(rules.maximum, document) if scaled and rules.maximum else (high, at)
        if rules.unlimited and scaled:
            high = high or UNLIMITED
        if (
            rules.unlimited_while
            and (opened := found_at(rules.unlimited_while, document)) is not None
        ):
            high, at = UNLIMITED, opened
        if rules.none_while and finds(rules.none_while, document):
            number, low, high = 0, None, None
        scale = Scale(
            component.name,
            instance,
            rules.absent_of.get(instance.casefold(), rules.absent) if number is None else number,
            path,
            low,
            high,
            path or place_of(component, bindings),
            at,
        )
        for group in groups.get(instance, ()):
            scale = multiply(scale, group)
        yield scale


def groups_of(rows: Iterable[Groups], document: Any) -> dict[str, list[Scale]]:
    """Return the scales of the groups that list each instance."""
    found: dict[str, list[Scale]] = {}
    for row in rows:
        replicas, minimum, maximum = (
            by_element(each, None, document) for each in (row.replicas, row.minimum, row.maximum)
        )
        lists: dict[Bindings, dict[str, None]] = {}
        for listed in matches((row.lists,), document):
            lists.setdefault(listed.bindings[:-1], {})[str(listed.value)] = None
        for holder, names in lists.items():
            number, path = replicas.get(holder, NOTHING)
            number = row.absent if number is None else number
            low, (high, at) = minimum.get(holder, NOTHING)[0], maximum.get(holder, NOTHING)
            for name in names:
                group = Scale("", name, number, path, low, high, limited_at=at)
                found.setdefault(name, []).append(group)
    return found


def multiply(scale: Scale, group: Scale) -> Scale:
    """Return the scale of an instance that a group makes several times.

    Each bound is a product of the largest numbers that belong to it, so none is below the replicas.
    """
    ours, its = largest(scale.replicas, scale.minimum), largest(group.replicas, group.minimum)
    low = None if scale.minimum is None and group.minimum is None else cap(ours * its)
    high = None
    if scale.maximum is not None or group.maximum is not None:
        high = cap(largest(ours, scale.maximum) * largest(its, group.maximum))
    return replace(
        scale,
        replicas=scale.replicas and cap(largest(scale.replicas) * largest(group.replicas)),
        # No path contains the product.
        path=None,
        minimum=low,
        maximum=high,
        limited_at=scale.limited_at if group.maximum is None else group.limited_at,
    )


def largest(*numbers: int | None) -> int:
    """Return the largest of the numbers that are set, at least 0."""
    return max(0, *(each or 0 for each in numbers))


def cap(number: int) -> int:
    """Limit a product, however many groups list an instance."""
    return min(number, UNLIMITED)


def place_of(component: Component, bindings: Bindings) -> Path:
    """Return the path of an instance. With jq, elements are numbers, not paths."""
    numbered = next(component.foreign, None) is not None
    return () if numbered or not bindings else bindings[-1]


NOTHING: tuple[int | None, Path | None] = (None, None)


def elements(
    component: Component,
    document: Any,
    numbers: Iterable[dict[Bindings, tuple[int | None, Path | None]]],
) -> list[tuple[str, Bindings]]:
    """Return the instances of a component with their elements."""
    if component.ids is not None:
        try:
            return [
                (name, match.bindings)
                for name, match in pair_values(component.ids, component.ids, document)
            ]
        except QueryError as error:
            raise LocationError((), "instance-ids", str(error)) from error
    found = list(dict.fromkeys(each for number in numbers for each in number)) or [()]
    if len(found) == 1:
        return [("", found[0])]
    return [(str(index), each) for index, each in enumerate(found)]


def by_element(
    program: Program | None, ids: Program | None, document: Any
) -> dict[Bindings, tuple[int | None, Path | None]]:
    """Return the number and path that a scale program finds for each element, including nulls."""
    if program is None:
        return {}
    try:
        if program.elementwise or ids is None:
            found = matches_by_element(program, document)
        else:
            found = [match for _, match in pair_values(program, ids, document)]
    except QueryError as error:
        raise LocationError((), "path-failed", str(error)) from error
    return {each.bindings: (whole(each, program), each.path) for each in found}


def number_in(value: Any) -> Any:
    """Return the number in a text, as upstream reads annotations. Other values are unchanged."""
    if isinstance(value, str) and NUMBER.fullmatch(value) and int(value) in INT32:
        return int(value)
    return value


def whole(match: Match, program: Program) -> int | None:
    """Return the number of a match, which may be text; None for null. Raises LocationError."""
    value = number_in(match.value)
    if value is None:
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        path = match.path or ()
        place = display(path) if path else program.text
        found = f"`{show_value(value)}`" if isinstance(value, (str, int, float)) else sort(value)
        text = f"{place} must be a whole number, found {found}"
        raise LocationError(path, "not-a-number", text)
    return value


def first(program: Program, document: Any) -> tuple[int | None, Path | None]:
    """Return the number and path that a bound of the profile finds."""
    found = matches((program,), document)
    return (whole(found[0], program), found[0].path) if found else NOTHING


def found_at(program: Program, document: Any) -> Path | None:
    """Return the path of the first value that a program finds, None if it finds none."""
    found = (each for each in matches((program,), document) if each.value is not None)
    return next((each.path or () for each in found), None)


def holds(program: Program | None, document: Any) -> bool:
    """Return whether the condition of a bound is true. A bound without a condition applies."""
    if program is None:
        return True
    return any(each.value is True for each in matches((program,), document))


def finds(programs: Iterable[Program], document: Any) -> bool:
    """Return whether one of the paths that decide on the scale has a value."""
    return any(each.value is not None for each in matches(programs, document))


def total(scales: Iterable[Scale], of: ScaleOf) -> int | None:
    """Return the replicas of a component or of one of its instances, None if one is unknown."""
    wanted = of.instance.casefold() if of.instance is not None else None
    numbers = [
        each.replicas
        for each in scales
        if each.component == of.component and wanted in (None, each.instance.casefold())
    ]
    known = [each for each in numbers if each is not None]
    return sum(known) if len(known) == len(numbers) else None
