"""Checks by access reviews which owners of injected content the webhook may not read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from webhook.catalog.catalog import Catalog
from webhook.catalog.watched_documents import Key
from webhook.documents.enclosed import origin_of
from webhook.documents.problem import Problem

Json = dict[str, Any]
Kind = tuple[str, str]
MOST_KINDS: Final = 200
ACCOUNT: Final = "system:serviceaccount:"
REVIEWS: Final = "/apis/authorization.k8s.io/v1"
FIX: Final = (
    "give a ClusterRole with `get` on it the label podgate.dev/aggregate-to-owners: 'true', or set"
    " unreadableOwner to warn"
)


def owners_of(catalog: Catalog) -> dict[Kind, str]:
    """The kinds that podgate reads as owners, with their plural names; at most MOST_KINDS.

    Empty if the settings allow what cannot be compared.
    """
    if catalog.config.unreadable_owner != "deny":
        return {}
    listed = {kind for each in catalog.config.controllers.entries for kind in each.kinds}
    found = {
        kind: each.profile.resource
        for kind, several in sorted(catalog.definitions.items())
        for each in several
        if each.profile.resource and (each.profile.controllers or kind in listed)
    }
    return dict(list(found.items())[:MOST_KINDS])


def review_of(group: str, resource: str, user: str) -> tuple[str, Json]:
    """Return the path and body of an access review for a resource.

    Without a user, the review is about the account that sends it.
    """
    spec: Json = {"resourceAttributes": {"verb": "get", "group": group, "resource": resource}}
    kind = "SelfSubjectAccessReview"
    if user:
        kind, spec["user"], spec["groups"] = "SubjectAccessReview", user, groups_of(user)
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": kind, "spec": spec}
    return f"{REVIEWS}/{kind.lower()}s", body


def groups_of(user: str) -> list[str]:
    """The groups that the API server adds to such a user."""
    own = []
    if user.startswith(ACCOUNT):
        namespace = user.removeprefix(ACCOUNT).partition(":")[0]
        own = ["system:serviceaccounts", f"system:serviceaccounts:{namespace}"]
    return [*own, "system:authenticated"]


def text_of(kind: Kind) -> str:
    """The message for the status and the log."""
    group, name = kind
    return (
        f"podgate may not read {name}{f'.{group}' if group else ''}: what violates a policy in objects"
        " that its controller makes is refused without reading their owner"
    )


def notes_on(
    unreadable: Iterable[Kind], catalog: Catalog, keys: Iterable[Key]
) -> Mapping[Key, tuple[Problem, ...]]:
    """The problems for the status of each document that defines such a kind."""
    by_origin = {origin_of(key): key for key in keys}
    kinds, found = set(unreadable), dict[Key, tuple[Problem, ...]]()
    for each in catalog.statuses:
        stated = each.document
        key = by_origin.get(stated.document.origin)
        if key is not None and stated.key in kinds:
            origin, text = stated.document.origin, text_of(stated.key)
            problem = Problem(origin, "spec", text, FIX, "owner-forbidden", severity="warning")
            found[key] = (*found.get(key, ()), problem)
    return found
