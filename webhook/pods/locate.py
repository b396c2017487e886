"""Locates the pods of an object, including those of further definitions of its kind."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from webhook.interface.profile import Profile
from webhook.objects.path import Path
from webhook.pods.definition import Definition
from webhook.pods.fragment_locations import TakenPaths, locate_fragments
from webhook.pods.location import (
    MAX_LOCATIONS,
    FragmentPods,
    PodLocation,
    check_keys,
    too_many,
    wrong_type,
)
from webhook.pods.matching import matches
from webhook.pods.shared_claims import with_shared_claims
from webhook.pods.whole import locate_component


def locate(
    definition: Definition, document: Any, pods: FragmentPods | None = None
) -> list[PodLocation]:
    """Return every pod location of the document, in order. Raises LocationError.

    Pods in fragments are added to `pods`, which all copies of a review's object share.
    """
    pods = [] if pods is None else pods
    found = own_locations(definition, document, pods)
    if definition.others:
        for number in range(len(definition.others)):
            add_locations(definition, number, document, found, pods)
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
    definition: Definition, document: Any, pods: FragmentPods, taken: TakenPaths | None = None
) -> list[PodLocation]:
    """Return the locations of one definition alone, without fragments that are taken."""
    found: list[PodLocation] = []
    for plan in definition.plans:
        before = len(found)
        if plan.specs:
            locate_fragments(plan, document, found, pods, taken)
        else:
            locate_component(plan, document, found)
        if plan.profile.stands_in_for:
            inherit_roles(definition, plan.profile.stands_in_for, found, before)
    return found


def add_locations(
    definition: Definition,
    number: int,
    document: Any,
    found: list[PodLocation],
    pods: FragmentPods,
) -> list[PodLocation]:
    """Append the locations that only one of the other definitions knows, and return them.

    A known location is kept, and gets further containers of its pods.
    """
    other = definition.others[number]
    known = {identity(each): index for index, each in enumerate(found)}
    new = []
    for each in own_locations(other, document, pods, TakenPaths(found)):
        index = known.get(identity(each))
        if index is not None:
            extra = dict(found[index].extra) | dict(each.extra)
            found[index] = replace(found[index], extra=tuple(extra.items()))
            continue
        instance = instance_beside(definition, number, each.component, each.instance)
        new.append(each if instance == each.instance else replace(each, instance=instance))
    found += new
    return new


def identity(location: PodLocation) -> Path | tuple[str, str]:
    """Return what identifies a pod: its path, or its name if it is in fragments."""
    if location.fragments is None:
        return location.spec_path
    return f"{location.component}/{location.instance}", "spec"


def instance_beside(definition: Definition, number: int, component: str, instance: str) -> str:
    """Return an instance's name that is unique among components of this name in all definitions."""
    before = (definition, *definition.others[:number])
    if any(each.interface.component(component) for each in before):
        return f"{instance}#{number + 2}"
    return instance


def claim_templates(profile: Profile, document: Any) -> tuple[tuple[Path, dict[str, Any]], ...]:
    """Return the claim templates of the workload with their paths, without disabled ones."""
    found = []
    for path, value, _ in matches(profile.claim_templates, document):
        if value is not None and path is not None:
            if value.__class__ is not dict:
                raise wrong_type(path, "a claim template", value)
            if value.get("enabled") is not False:
                found.append((path, value))
    return tuple(found)


def inherit_roles(definition: Definition, name: str, found: list[PodLocation], first: int) -> None:
    """Add the roles of component `name` to the locations from `first` on, except for its own instances."""
    own = {each.instance for each in found[:first] if each.component == name}
    other = definition.profile.component(name).roles("")
    found[first:] = [
        each if each.instance in own else replace(each, roles=(*other, *each.roles))
        for each in found[first:]
    ]
