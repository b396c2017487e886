"""Every pod location of an object, those of further definitions of its kind included."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from webhook.interface.profile import Profile
from webhook.objects.path import Path
from webhook.pods.assembled import locate_parts
from webhook.pods.definition import Definition
from webhook.pods.located import Taken
from webhook.pods.location import MAX_LOCATIONS, PodLocation, check_keys, too_many, wrong_type
from webhook.pods.matching import matches
from webhook.pods.shared_claims import with_shared_claims
from webhook.pods.whole import locate_component


def locate(definition: Definition, document: Any) -> list[PodLocation]:
    """Every pod location of the document, in its order; raises LocationError."""
    found = own_locations(definition, document)
    if definition.others:
        for number in range(len(definition.others)):
            add_locations(definition, number, document, found)
    if len(found) > MAX_LOCATIONS:
        raise too_many(len(found))
    for each in found:
        check_keys(each.spec_path)
        for path, _ in each.extra:
            check_keys(path)
    if definition.profile.claim_templates:
        claims = claim_templates(definition.profile, document)
        if claims:
            found = [replace(each, claims=claims) for each in found]
    if definition.profile.shared_claims:
        found = with_shared_claims(definition.profile, document, found)
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
            extra = dict(found[index].extra) | dict(each.extra)
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
    """The claim templates of the workload, each with its place; one that is switched off is none."""
    found = []
    for path, value, _ in matches(profile.claim_templates, document):
        if value is not None and path is not None:
            if value.__class__ is not dict:
                raise wrong_type(path, "a claim template", value)
            if value.get("enabled") is not False:
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
