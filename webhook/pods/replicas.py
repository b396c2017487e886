"""The numbers of replicas of a workload, per component and instance."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final

from webhook.documents.read_model import shown, sort
from webhook.interface.interface import Component
from webhook.interface.profile import Groups, ScaleOf, ScaleRules
from webhook.jq.pair import matches_by_element, paired
from webhook.jq.path import Match, Program, QueryError
from webhook.objects.path import Path, display
from webhook.pods.definition import Definition
from webhook.pods.locate import add_locations, instance_beside, own_locations
from webhook.pods.location import LocationError
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
        """The most that it can become: operators raise to the minimum, autoscalers further."""
        counts = [n for n in (self.replicas, self.minimum, self.maximum) if n is not None]
        return max(counts) if counts else None

    @property
    def most_at(self) -> Path:
        """Where the number is that decides on the most: the maximum's place, else the instance's."""
        decides = self.maximum is not None and self.maximum == self.most
        further = self.maximum not in (self.replicas, self.minimum)
        return self.limited_at if decides and further and self.limited_at else self.place


def read_scales(definition: Definition, document: Any) -> list[Scale]:
    """The scale of every instance whose component states one; raises LocationError."""
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
    """The scales of pods that only one of the other definitions knows."""
    located = own_locations(definition, document)
    for number, other in enumerate(definition.others):
        added = {each.component for each in add_locations(definition, number, document, located)}
        for each in read_scales(other, document) if added else ():
            if each.component in added:
                name = instance_beside(definition, number, each.component, each.instance)
                yield replace(each, instance=name)


def has_pods(component: Component, document: Any) -> bool:
    """Whether the object has the component; one that is absent has no scale without limits."""
    places = (component.places,) if component.places is not None else ()
    return not places or any(each.value is not None for each in matches(places, document))


def scales_of(component: Component, rules: ScaleRules, document: Any) -> Iterable[Scale]:
    """The scales of one component."""
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
            scale = multiplied(scale, group)
        yield scale


def groups_of(rows: Iterable[Groups], document: Any) -> dict[str, list[Scale]]:
    """How often the groups of an object make each instance that they list."""
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


def multiplied(scale: Scale, group: Scale) -> Scale:
    """The scale of an instance that a group makes several times.

    Each bound is a product of the largest numbers that go with it, so that none is below replicas.
    """
    ours, its = largest(scale.replicas, scale.minimum), largest(group.replicas, group.minimum)
    low = None if scale.minimum is None and group.minimum is None else capped(ours * its)
    high = None
    if scale.maximum is not None or group.maximum is not None:
        high = capped(largest(ours, scale.maximum) * largest(its, group.maximum))
    return replace(
        scale,
        replicas=scale.replicas and capped(largest(scale.replicas) * largest(group.replicas)),
        # No place has the product.
        path=None,
        minimum=low,
        maximum=high,
        limited_at=scale.limited_at if group.maximum is None else group.limited_at,
    )


def largest(*numbers: int | None) -> int:
    """The largest of the numbers that are stated, 0 at least."""
    return max(0, *(each or 0 for each in numbers))


def capped(number: int) -> int:
    """A product that stays small however many groups list an instance."""
    return min(number, UNLIMITED)


def place_of(component: Component, bindings: Bindings) -> Path:
    """Where an instance is; what jq gives has numbers for elements, which are no places."""
    numbered = component.ids is not None and component.ids.by_number
    return () if numbered or not bindings else bindings[-1]


NOTHING: tuple[int | None, Path | None] = (None, None)


def elements(
    component: Component,
    document: Any,
    numbers: Iterable[dict[Bindings, tuple[int | None, Path | None]]],
) -> list[tuple[str, Bindings]]:
    """The instances of a component with the elements that they are."""
    if component.ids is not None:
        try:
            return [
                (name, match.bindings)
                for name, match in paired(component.ids, component.ids, document)
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
    """What a scale path gives for each element, null included."""
    if program is None:
        return {}
    try:
        if program.elementwise or ids is None:
            found = matches_by_element(program, document)
        else:
            found = [match for _, match in paired(program, ids, document)]
    except QueryError as error:
        raise LocationError((), "path-failed", str(error)) from error
    return {each.bindings: (whole(each, program), each.path) for each in found}


def number_in(value: Any) -> Any:
    """The number that a text states, as upstream reads annotations; any other value unchanged."""
    if isinstance(value, str) and NUMBER.fullmatch(value) and int(value) in INT32:
        return int(value)
    return value


def whole(match: Match, program: Program) -> int | None:
    """The number of a match, which may be text; None for null. Raises LocationError."""
    value = number_in(match.value)
    if value is None:
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        path = match.path or ()
        place = display(path) if path else program.text
        found = f"`{shown(value)}`" if isinstance(value, (str, int, float)) else sort(value)
        text = f"{place} must be a whole number, found {found}"
        raise LocationError(path, "not-a-number", text)
    return value


def first(program: Program, document: Any) -> tuple[int | None, Path | None]:
    """The number that a bound of the profile gives, and its place."""
    found = matches((program,), document)
    return (whole(found[0], program), found[0].path) if found else NOTHING


def found_at(program: Program, document: Any) -> Path | None:
    """The place of the first value that a program finds; None where it finds none."""
    found = (each for each in matches((program,), document) if each.value is not None)
    return next((each.path or () for each in found), None)


def holds(program: Program | None, document: Any) -> bool:
    """Whether the place that a bound depends on is true; without such a place it holds."""
    if program is None:
        return True
    return any(each.value is True for each in matches((program,), document))


def finds(programs: Iterable[Program], document: Any) -> bool:
    """Whether one of the places that decide on the scale has a value."""
    return any(each.value is not None for each in matches(programs, document))


def total(scales: Iterable[Scale], of: ScaleOf) -> int | None:
    """The replicas of a component, or of one of its instances; None if one of them is unknown."""
    wanted = of.instance.casefold() if of.instance is not None else None
    numbers = [
        each.replicas
        for each in scales
        if each.component == of.component and wanted in (None, each.instance.casefold())
    ]
    known = [each for each in numbers if each is not None]
    return sum(known) if len(known) == len(numbers) else None
