"""Who sends a request, and what treatment semantics §6 gives: children, owned objects, subresources."""

from __future__ import annotations

from collections.abc import Iterator

from webhook.core.catalog import Catalog
from webhook.core.decide import body_changed, controller_of
from webhook.core.request import Request, Treatment
from webhook.core.workload.profile import Profile


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


def is_merged(request: Request, catalog: Catalog, owner: tuple[str, str]) -> bool:
    """Whether the object is the first with a whole pod spec below a workload that lacks some.

    That is what its controller makes at once; what is made of that in turn has been judged.
    """
    if request.operation != "CREATE":
        return False
    if catalog.definition(request.group, request.kind, request.version) is None:
        return False
    return any(
        component.children == "merged"
        for each in catalog.definitions.get(owner, ())
        for component in each.profile.components.values()
    )


def treatment(request: Request, catalog: Catalog) -> Treatment:
    """EXEMPT or CHILD for what controllers make, UNPATCHED for owned objects and subresources."""
    if request.subresource:
        return Treatment.UNPATCHED
    owner = controller_of(request.object)
    if owner is None:
        return Treatment.FULL
    if is_child_of_controller(request, catalog, owner):
        return Treatment.CHILD if is_merged(request, catalog, owner) else Treatment.EXEMPT
    # A Pod may be completed like any other; what controllers compare with a template may not.
    return Treatment.FULL if (request.group, request.kind) == ("", "Pod") else Treatment.UNPATCHED
