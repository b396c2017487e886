"""Finds wrapped objects, and asks of each what would be asked if it were sent by itself.

An object that wraps others (an AppWrapper) hands them to the API server later, by a controller whom
nobody asks any more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from webhook.catalog.catalog import Catalog
from webhook.catalog.plan import Plan
from webhook.decision.immutable import immutable_below, immutable_places
from webhook.decision.pods import MOST_CONTAINERS, MOST_ENTRIES, TOO_MANY, entries
from webhook.documents.read_model import sort
from webhook.evaluation.outcome import Violation, Warning
from webhook.evaluation.request import Request, Within
from webhook.jq.external import Facts
from webhook.objects.path import Path
from webhook.pods.coverage import pods_in
from webhook.pods.definition import Definition
from webhook.pods.locate import locate
from webhook.pods.location import MAX_LOCATIONS, LocationError
from webhook.pods.operator_defaults import places_filled
from webhook.pods.pod_view import MalformedPod, pod_view
from webhook.pods.wrapped_locations import Embedding, embeddings, pod_sets_in, with_pod_templates

MOST_DEEP: Final = 5


@dataclass(frozen=True, slots=True)
class Wrapped:
    """An object in another, at `path`: what to decide on, None where it cannot be, and its faults."""

    path: Path
    body: Any
    request: Request | None
    faults: tuple[Violation, ...] = ()
    warnings: tuple[Warning, ...] = ()


def wrapped_objects(request: Request, definition: Definition, catalog: Catalog) -> list[Wrapped]:
    """The objects that one wraps, each beside the same one before the update.

    Raises LocationError when their places cannot be read.
    """
    updating = request.operation == "UPDATE" and request.old is not None
    before = named(embeddings(definition, request.old)) if updating else {}
    now = named(embeddings(definition, request.object))
    around = Around(request, definition, now.values(), before.values())
    return [
        wrapped(request, definition, catalog, each, before.get(key), around)
        for key, each in now.items()
    ]


class Around:
    """What an object says of those that it wraps, read once for all of them."""

    __slots__ = ("filled", "immutable", "old_pod_sets", "pod_sets")

    def __init__(
        self,
        request: Request,
        definition: Definition,
        found: Collection[Embedding],
        before: Collection[Embedding],
    ) -> None:
        self.filled = filled_in(definition, request.object, {each.path for each in found})
        self.pod_sets = pod_sets_in(found, request.object)
        self.old_pod_sets = pod_sets_in(before, request.old)
        self.immutable = immutable_places(request, definition, request.object)


def named(found: Sequence[Embedding]) -> dict[tuple[Any, ...], Embedding]:
    """Objects by what tells them: kind and name, and their order among those of one name."""
    seen: Counter[tuple[Any, ...]] = Counter()
    result = {}
    for each in found:
        key = (each.embedded.place.text, *identity(each.body))
        result[*key, seen[key]] = each
        seen[key] += 1
    return result


def identity(body: Any) -> tuple[str, str, str]:
    """The version, kind and name of what should be an object."""
    if not isinstance(body, dict):
        return "", "", ""
    metadata = body.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    name = metadata.get("name") or metadata.get("generateName") or ""
    return str(body.get("apiVersion")), str(body.get("kind")), str(name)


def wrapped(
    request: Request,
    definition: Definition,
    catalog: Catalog,
    found: Embedding,
    before: Embedding | None,
    around: Around,
) -> Wrapped:
    """One object with what is wrong with it as a wrapped one; what an update leaves is excused."""
    body, path = found.body, found.path
    same = before is not None and before.body == body
    fault = misshapen(body, path) or too_deep_inside(request, path)
    if fault is not None:
        return Wrapped(path, body, None, () if same else (fault,))
    faults = [] if same else list(other_namespace(request, body, path))
    group, _, version = body["apiVersion"].rpartition("/")
    own = catalog.definition(group, body["kind"], version)
    if own is not None:
        asked = request_of(request, catalog, own, found, before, around)
        return Wrapped(path, body, asked, tuple(faults))
    if (group, body["kind"]) in found.embedded.podless:
        faults += [] if same else hidden(body, path)
        return Wrapped(path, body, None, tuple(faults))
    if same:
        return Wrapped(path, body, None, tuple(faults))
    name = f"{body['kind']}.{group}" if group else body["kind"]
    if definition.profile.uncovered == "warn":
        told = Warning("wrapped-kind", "", path, (f"{name}/{version}",))
        return Wrapped(path, body, None, tuple(faults), (told,))
    unknown = Violation("", path, f"{name}/{version}", None, "uncovered", "wrapped-kind", None)
    return Wrapped(path, body, None, (*faults, unknown))


def request_of(
    request: Request,
    catalog: Catalog,
    own: Definition,
    found: Embedding,
    before: Embedding | None,
    around: Around,
) -> Request:
    """The request on a wrapped object as if it were sent by itself.

    It is judged as the API server will complete it once it is made, which it has not been yet: what
    stands in it is the author's, except what the schema of the object around filled in.
    """
    body = found.body
    group, _, version = body["apiVersion"].rpartition("/")
    return replace(
        request,
        group=group,
        version=version,
        kind=body["kind"],
        operation="CREATE" if before is None else request.operation,
        object=catalog.completed(own, body),
        old=None if before is None else catalog.completed(own, before.body),
        raw=body,
        resource="",
        resource_group="",
        resource_version="",
        name=identity(body)[2],
        replaces=True,
        within=Within(
            request,
            found.path,
            None if before is None else before.path,
            None if before is None else before.body,
            frozenset(around.filled.get(found.path, ())),
            tuple(around.pod_sets.get(found.path, ())),
            () if before is None else tuple(around.old_pod_sets.get(before.path, ())),
            immutable_below(around.immutable, found.path),
        ),
    )


def facts_for(request: Request, facts: Facts) -> Facts:
    """The facts with those of a wrapped object, which were asked for what stands in the one around."""
    within = request.within
    if within is None:
        return facts
    new, old = facts.of(request.raw), facts.of(within.old_raw)
    return Facts((*facts.known, (request.object, new), (request.old, old)))


def with_pod_sets(plan: Plan, request: Request) -> Plan:
    """The plan with pods that the object around a wrapped one tells of, where nobody else does.

    Raises LocationError when the pods of the object cannot be told.
    """
    within = request.within
    if within is None or not within.pod_sets:
        return plan
    paths = tuple(path for path, _ in within.pod_sets)
    definition = with_pod_templates(plan.definition, request.object, paths)
    return plan if definition is plan.definition else replace(plan, definition=definition)


def filled_in(
    definition: Definition, document: Any, paths: Collection[Path]
) -> dict[Path, list[Path]]:
    """The places of wrapped objects, by their own, that the schema of the one around fills in."""
    found: dict[Path, list[Path]] = {}
    for path in places_filled(definition.profile, document):
        for size in range(len(path) + 1):
            if path[:size] in paths:
                found.setdefault(path[:size], []).append(path[size:])
    return found


# What a wrapped object may not be


def misshapen(body: Any, path: Path) -> Violation | None:
    """What stands there is no object of Kubernetes."""
    if not isinstance(body, dict):
        return unreadable(path, f"it must be a whole object, found {sort(body)}")
    for key in ("apiVersion", "kind"):
        if not isinstance(body.get(key), str) or not body[key]:
            return unreadable(path, f"it must be a whole object, and has no {key}")
    metadata = body.get("metadata")
    if metadata is not None and not isinstance(metadata, dict):
        return unreadable((*path, "metadata"), f"it must be metadata, found {sort(metadata)}")
    return None


def unreadable(path: Path, text: str) -> Violation:
    """A place that holds something else than belongs there."""
    return Violation("", path, None, text, "wrong-type", "wrong-type", None)


def too_deep_inside(request: Request, path: Path) -> Violation | None:
    """More objects inside one another than are followed."""
    depth, within = 1, request.within
    while within is not None:
        depth, within = depth + 1, within.around.within
    if depth <= MOST_DEEP:
        return None
    text = f"it is wrapped in {depth} others; at most {MOST_DEEP} are followed"
    return Violation("", path, None, text, "too-deep", "too-deep", None)


def other_namespace(request: Request, body: dict[str, Any], path: Path) -> Iterator[Violation]:
    """A wrapped object that goes to a namespace where other policies hold."""
    stated = (body.get("metadata") or {}).get("namespace")
    if stated in (None, "", request.namespace):
        return
    at = (*path, "metadata", "namespace")
    reason = "other-namespace"
    yield Violation("", at, str(stated), request.namespace or "none", reason, reason, None)


def hidden(body: Any, path: Path) -> list[Violation]:
    """Containers in an object of a kind that should have none."""
    try:
        found = list(pods_in(body))
    except LocationError as error:
        return [fault_at(error, path)]
    key = str(body["kind"])
    return [
        Violation("", (*path, *at), what, None, "uncovered", "uncovered", None, key)
        for at, what in found
    ]


def fault_at(error: LocationError, path: Path = ()) -> Violation:
    """What could not be told of an object, or of one inside it, as a violation."""
    return Violation("", (*path, *error.path), None, error.text, error.reason, error.reason, None)


def over_budget(request: Request, definition: Definition, catalog: Catalog) -> Violation | None:
    """The budgets of one object count over all that it wraps."""
    objects = locations = containers = listed = 0
    left = [(definition, request.object, 0)]
    while left:
        known, document, depth = left.pop()
        objects += 1
        if objects > MAX_LOCATIONS:
            text = f"more than {MAX_LOCATIONS} objects; one object may wrap as many"
            return Violation("", (), None, text, "too-many-locations", "too-many-locations", None)
        try:
            pods = locate(known, document)
            locations += len(pods)
            views = [pod_view(each) for each in pods]
            containers += sum(len(each.everyone) for each in views)
            listed += sum(map(entries, views))
            inside = embeddings(known, document) if depth < MOST_DEEP else []
        except (LocationError, MalformedPod):
            continue  # told where the object is judged
        for each in inside:
            if misshapen(each.body, each.path) is None:
                group, _, version = each.body["apiVersion"].rpartition("/")
                own = catalog.definition(group, each.body["kind"], version)
                left += [(own, each.body, depth + 1)] if own is not None else []
    if locations > MAX_LOCATIONS:
        text = f"{locations} pod locations; one object may have {MAX_LOCATIONS}"
        return Violation("", (), None, text, "too-many-locations", "too-many-locations", None)
    if containers > MOST_CONTAINERS:
        text = f"{containers} containers; one object may have {MOST_CONTAINERS}"
        return Violation("", (), None, text, "too-many-containers", "too-many-containers", None)
    if listed > MOST_ENTRIES:
        return Violation("", (), None, TOO_MANY, "too-many-entries", "too-many-entries", None)
    return None
