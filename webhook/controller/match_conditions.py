"""The match conditions of the webhooks: which requests the API server need not send.

They follow from definitions, never from policies (docs/decisions/0028). An error in an expression rejects or
skips the request, so each expression is total: it reads optional members by `?`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from webhook.admission.request_class import profiles_of_owner
from webhook.catalog.catalog import Catalog
from webhook.pods.definition import Definition
from webhook.pods.members_read import members_read

Definitions = Mapping[tuple[str, str], tuple[Definition, ...]]
Condition = dict[str, str]
Kind = tuple[str, str]

UNCHANGED, UNCHANGED_POD, CHILD = "changes-something", "changes-something-of-a-pod", "not-a-child"
ROLLOUT = "not-a-rollout"
FROM_DEFINITIONS: Final = frozenset({UNCHANGED, CHILD, ROLLOUT})
"""The conditions that may be added only when every process uses the same definitions."""
PROBE_LABEL = "podgate.dev/probe"

IS_UPDATE = (
    "request.operation == 'UPDATE' && request.?subResource.orValue('') == ''"
    " && object != null && oldObject != null"
)
MOST, LONGEST = 100, 320
"""Members of an object or owners, and characters of an owner's kind, that an expression reads at most."""
OWNERS = "object.?metadata.?ownerReferences.orValue([])"
OWNER_KIND, OWNER_VERSION = "owner.?kind.orValue('')", "owner.?apiVersion.orValue('')"
SAME_BODY = (
    f"size(object) <= {MOST} && size(oldObject) <= {MOST} && "
    "object.all(key, key in ['metadata', 'status'] || key in oldObject && object[key] == oldObject[key])"
    " && oldObject.all(key, key == 'status' || key in object)"
)
ONLY_REPLICAS = (
    "request.kind.kind == 'ReplicaSet' && request.kind.?group.orValue('') == 'apps'"
    f" && size(object) <= {MOST} && size(oldObject) <= {MOST} && "
    "object.all(key, key in ['apiVersion', 'kind', 'metadata', 'spec', 'status'])"
    " && type(object.?spec.orValue('')) == map && type(oldObject.?spec.orValue('')) == map"
    f" && size(object.spec) <= {MOST} && size(oldObject.spec) <= {MOST} && "
    "object.spec.all(key, key in ['replicas', 'minReadySeconds', 'selector', 'template'])"
    " && object.spec.?template.orValue({}) == oldObject.spec.?template.orValue({})"
)
"""True where a ReplicaSet keeps its pods, whatever their number: a rollout scales one up, one down."""
NOT_FOR_VALIDATION = (
    "!(request.?dryRun.orValue(false) && request.operation == 'CREATE'"
    f" && object.?metadata.?labels[?'{PROBE_LABEL}'].orValue('') == 'validate')"
)
"""False for a dry run that tests validation alone. A dry run stores nothing, so other users cannot
bypass podgate with this label."""


@dataclass(frozen=True, slots=True)
class Skips:
    """The requests to skip: updates that change nothing, if `unchanged`; children of `senders`.

    `read` has, by kind, the paths outside the body that definitions read.
    """

    unchanged: bool = True
    senders: Mapping[str, frozenset[Kind]] = field(default_factory=dict)
    read: Mapping[Kind, frozenset[tuple[str, str]]] = field(default_factory=dict)


def skips_of(definitions: Definitions, *, strict: bool = False) -> Skips:
    """Return which requests these definitions allow to skip.

    `strict`: a policy has `existing: strict`. Then updates that change nothing are sent too, except
    those of Pods: otherwise nobody could delete a Pod while podgate is down.
    """
    read = {
        kind: frozenset().union(*map(members_read, found)) for kind, found in definitions.items()
    }
    return Skips(
        not strict, senders_of(definitions), {kind: found for kind, found in read.items() if found}
    )


def senders_of(definitions: Definitions) -> dict[str, frozenset[Kind]]:
    """Return, by the user name of each listed controller, the kinds whose children it makes."""
    catalog = Catalog(definitions=definitions)
    owners = set(definitions)
    for found in definitions.values():
        owners.update(kind for each in found for kind in each.profile.intermediate_kinds)
    senders: dict[str, set[Kind]] = {}
    for owner in owners:
        for profile in profiles_of_owner(catalog, owner):
            for user in profile.controllers:
                senders.setdefault(user, set()).add(owner)
    return {user: frozenset(kinds) for user, kinds in sorted(senders.items())}


def conditions(
    skips: Skips, kinds: Iterable[Kind], break_glass: Iterable[str], *, mutating: bool
) -> list[Condition]:
    """Return the match conditions of one webhook for these kinds, the cheapest first."""
    found = []
    groups = ", ".join(json.dumps(each) for each in sorted(break_glass))
    if groups:
        text = f"!request.?userInfo.?groups.orValue([]).exists(each, each in [{groups}])"
        found.append({"name": "not-break-glass", "expression": text})
    if mutating:
        found.append({"name": "not-a-probe-of-validation", "expression": NOT_FOR_VALIDATION})
    kinds = sorted(kinds)
    if skips.unchanged:
        found.append({"name": UNCHANGED, "expression": changes(skips.read, kinds)})
    elif ("", "Pod") in kinds:
        found.append({"name": UNCHANGED_POD, "expression": changes(skips.read, [("", "Pod")])})
    if skips.senders and mutating:
        made = f"(request.operation == 'CREATE' || request.kind.kind != 'Pod') && {child(skips.senders)}"
        found.append({"name": CHILD, "expression": f"!({made})"})
    elif skips.senders:
        rolled = f"{IS_UPDATE} && {ONLY_REPLICAS} && {child(skips.senders)}"
        found.append({"name": ROLLOUT, "expression": f"!({rolled})"})
    return found


def changes(read: Mapping[Kind, frozenset[tuple[str, str]]], kinds: list[Kind]) -> str:
    """Return the expression that is false for an update without a change at any path that is read.

    Rules, coverage and steering labels can read the whole body, labels, annotations, and other
    paths that a definition names.
    """
    parts = [
        IS_UPDATE,
        SAME_BODY,
        *(same(("metadata", member)) for member in ("labels", "annotations")),
    ]
    if kinds == [("", "Pod")]:
        parts.insert(0, is_kind(("", "Pod")))
    for kind in kinds:
        if kind in read:
            beside = " && ".join(same(path) for path in sorted(read[kind]))
            parts.append(f"(!({is_kind(kind)}) || {beside})")
    return f"!({' && '.join(parts)})"


def same(path: tuple[str, str]) -> str:
    """Return the expression that compares one member before and after, all of it for ""."""
    part, member = path
    below = f".?{part}.?{member}" if member else f".?{part}"
    return f"object{below}.orValue({{}}) == oldObject{below}.orValue({{}})"


def is_kind(kind: Kind) -> str:
    """Return the expression that is true for one kind."""
    group, name = map(json.dumps, kind)
    return f"request.kind.kind == {name} && request.kind.?group.orValue('') == {group}"


def child(senders: Mapping[str, frozenset[Kind]]) -> str:
    """Return the expression that is true for objects that a listed controller makes or updates.

    podgate never patches these. The validating webhook evaluates them, except in a rollout. A
    controller's update of a Pod's spec does not count.
    """
    rows = (
        f"{json.dumps(user)}: [{', '.join(json.dumps(owner_key(*kind)) for kind in sorted(kinds))}]"
        for user, kinds in senders.items()
    )
    return (
        "request.?subResource.orValue('') == ''"
        f" && type({OWNERS}) == list && size({OWNERS}) <= {MOST} && {OWNERS}.exists(owner,"
        " owner.?controller.orValue(false) == true"
        f" && size({OWNER_KIND}) <= {LONGEST} && size({OWNER_VERSION}) <= {LONGEST}"
        f" && {OWNER_KIND} + '.' + ({OWNER_VERSION}.contains('/') ? {OWNER_VERSION}.split('/')[0] : '')"
        f" in {{{', '.join(rows)}}}[?request.?userInfo.?username.orValue('')].orValue([]))"
    )


def owner_key(group: str, kind: str) -> str:
    """Return how the expression writes the kind of an owner."""
    return f"{kind}.{group}"
