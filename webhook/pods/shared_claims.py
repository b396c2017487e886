"""Reads claims that a workload defines outside its pods: devices that several pods share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Final

from webhook.interface.profile import Profile, SharedClaims
from webhook.jq.path import Match
from webhook.objects.path import Path
from webhook.pods.location import LocationError, PodLocation, SharedClaim, wrong_type
from webhook.pods.matching import matches

MOST: Final = 256


def with_shared_claims(
    profile: Profile, document: Any, found: list[PodLocation]
) -> list[PodLocation]:
    """Return the locations with the claims that each of their pods gets. Raises LocationError."""
    stated = [each for row in profile.shared_claims for each in read(row, document)]
    if not stated:
        return found
    if len(stated) > MOST:
        text = f"{len(stated)} shared claims; one object may have {MOST}"
        raise LocationError((), "too-many-locations", text)
    return [
        replace(each, shared=tuple(claim for claim, only in stated if gets(each, claim, only)))
        for each in found
    ]


def read(row: SharedClaims, document: Any) -> Iterator[tuple[SharedClaim, list[set[str]]]]:
    """Yield the claims of one row, each with lists of instances. An instance on all lists gets it."""
    templates: dict[str, list[Any]] = {}
    for each in matches(row.templates, document):
        if each.path is not None and each.value is not None:
            body = a_map(each.path, each.value)
            templates.setdefault(str(body.get("name")), []).append(body.get("templateSpec"))
    only = [names_by_holder(matches((each,), document)) for each in row.only_for]
    for each in matches(row.claims, document):
        if each.path is None or each.value is None:
            continue
        body = a_map(each.path, each.value)
        name, namespace = str(body.get("name")), str(body.get("namespace") or "")
        # Grove first looks for the template in the object, unless a namespace is given.
        given = None if namespace else templates.get(name)
        holders = [each.bindings[:depth] for depth in range(len(each.bindings) + 1)]
        lists = [listed[holder] for listed in only for holder in holders if holder in listed]
        yield SharedClaim(each.path, name, namespace, given), lists


def names_by_holder(listed: Iterable[Match]) -> dict[tuple[Path, ...], set[str]]:
    """Return listed names by the list elements that contain them."""
    found: dict[tuple[Path, ...], set[str]] = {}
    for each in listed:
        found.setdefault(each.bindings[:-1], set()).add(str(each.value))
    return found


def gets(location: PodLocation, claim: SharedClaim, only: list[set[str]]) -> bool:
    """Return whether the pods of a location get a claim. Claims of other list elements do not count."""
    if not all(location.instance in names for names in only):
        return False
    for ours, its in zip(location.spec_path, claim.path, strict=False):
        if ours != its:
            return not (isinstance(ours, int) and isinstance(its, int))
    return True


def a_map(path: Path, value: Any) -> dict[str, Any]:
    """Return a value that must be a map. Raises LocationError."""
    if isinstance(value, dict):
        return value
    raise wrong_type(path, "a map", value)
