"""Who sends a request, and what treatment semantics §6 gives: children, owned objects, subresources."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from webhook.core.catalog import Catalog
from webhook.core.decide import body_changed
from webhook.core.pointer import read
from webhook.core.request import Request, Treatment
from webhook.core.workload.profile import Profile


def controller_of(document: Any) -> tuple[str, str] | None:
    """The group and kind of the owner with `controller: true`; None when nobody controls it."""
    owners = read(document, ("metadata", "ownerReferences"))
    for owner in owners if isinstance(owners, list) else ():
        if isinstance(owner, dict) and owner.get("controller") is True:
            return str(owner.get("apiVersion", "")).rpartition("/")[0], str(owner.get("kind", ""))
    return None


def profiles_of_owner(catalog: Catalog, owner: tuple[str, str]) -> Iterator[Profile]:
    """The profiles of the owner's own kind, and those that name it as an intermediate kind."""
    for (group, kind), definitions in catalog.definitions.items():
        for each in definitions:
            if (group, kind) == owner or owner in each.profile.intermediate_kinds:
                yield each.profile


def is_child_of_controller(request: Request, catalog: Catalog, owner: tuple[str, str]) -> bool:
    """CREATE and metadata updates by an exact user name that the owner's profile lists.

    Never an owner reference alone, which anybody can write, and never a subresource.
    """
    if request.subresource:
        return False
    if request.operation == "UPDATE" and body_changed(request):
        return False
    return any(request.user in profile.controllers for profile in profiles_of_owner(catalog, owner))


def treatment(request: Request, catalog: Catalog) -> Treatment:
    """EXEMPT for children that controllers make, UNPATCHED for owned objects and subresources."""
    if request.subresource:
        return Treatment.UNPATCHED
    owner = controller_of(request.object)
    if owner is None:
        return Treatment.FULL
    if is_child_of_controller(request, catalog, owner):
        return Treatment.EXEMPT
    # A Pod may be completed like any other; what controllers compare with a template may not.
    return Treatment.FULL if (request.group, request.kind) == ("", "Pod") else Treatment.UNPATCHED
