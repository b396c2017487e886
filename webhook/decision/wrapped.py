"""Finds wrapped objects, and builds the request for each as if it were sent on its own.

The controller of an object that wraps others (an AppWrapper) creates them later, and its requests
are exempt. So they are evaluated with the object around them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from webhook.catalog.catalog import Catalog
from webhook.decision.immutable import find_immutable_paths, immutable_paths_below
from webhook.decision.pods import MOST_CONTAINERS, MOST_ENTRIES, TOO_MANY, entries
from webhook.documents.read_model import sort
from webhook.evaluation.outcome import Violation, Warning
from webhook.evaluation.request import Request, Within
from webhook.evaluation.state import Evaluation
from webhook.jq.external import Facts
from webhook.objects.path import Path
from webhook.pods.coverage import pods_in
from webhook.pods.definition import Definition
from webhook.pods.locate import locate
from webhook.pods.location import MAX_LOCATIONS, LocationError
from webhook.pods.operator_defaults import find_filled_paths
from webhook.pods.pod_view import MalformedPod, pod_view
from webhook.pods.wrapped_locations import Embedding, embeddings, pod_sets_in, with_pod_templates

MOST_DEEP: Final = 5


@dataclass(frozen=True, slots=True)
class Wrapped:
    """An object in another, at `path`. `request` is None if it cannot be evaluated."""

    path: Path
    body: Any
    request: Request | None
    faults: tuple[Violation, ...] = ()
    warnings: tuple[Warning, ...] = ()


def wrapped_objects(request: Request, definition: Definition, catalog: Catalog) -> list[Wrapped]:
    """Return the objects that one wraps, each with the same one before the update.

    Raises LocationError if their paths cannot be read.
    """
    updating = request.operation == "UPDATE" and request.old is not None
    before = name_objects(embeddings(definition, request.old)) if updating else {}
    now = name_objects(embeddings(definition, request.object))
    around = Around(request, definition, now.values(), before.values())
    return [
        build_wrapped(request, definition, catalog, each, before.get(key), around)
        for key, each in now.items()
    ]


class Around:
    """What an object contains about those that it wraps, read once for all of them."""

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
        self.immutable = find_immutable_paths(request, definition, request.object)


def name_objects(found: Sequence[Embedding]) -> dict[tuple[Any, ...], Embedding]:
    """Return the objects by path, kind and name, and their order among those of one name."""
    counts: Counter[tuple[Any, ...]] = Counter()
    result = {}
    for each in found:
        key = (each.embedded.place.text, *identity(each.body))
        result[*key, counts[key]] = each
        counts[key] += 1
    return result


def identity(body: Any) -> tuple[str, str, str]:
    """Return the version, kind and name of a value that should be an object."""
    if not isinstance(body, dict):
        return "", "", ""
    metadata = body.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    name = metadata.get("name") or metadata.get("generateName") or ""
    return str(body.get("apiVersion")), str(body.get("kind")), str(name)


def build_wrapped(
    request: Request,
    definition: Definition,
    catalog: Catalog,
    found: Embedding,
    before: Embedding | None,
    around: Around,
) -> Wrapped:
    """Build one wrapped object with its faults. Objects that an update leaves alone have none."""
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
        warning = Warning("wrapped-kind", "", path, (f"{name}/{version}",))
        return Wrapped(path, body, None, tuple(faults), (warning,))
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
    """Return the request on a wrapped object as if it were sent on its own.

    It is evaluated with the server defaults that it will get when it is created. Its values come
    from its author, except those that the schema of the outer object filled in.
    """
    body = found.body
    group, _, version = body["apiVersion"].rpartition("/")
    return replace(
        request,
        group=group,
        version=version,
        kind=body["kind"],
        operation="CREATE" if before is None else request.operation,
        object=catalog.complete(own, body),
        old=None if before is None else catalog.complete(own, before.body),
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
            immutable_paths_below(around.immutable, found.path),
        ),
    )


def facts_for(request: Request, facts: Facts) -> Facts:
    """Return the facts with those of a wrapped object, which are known for its raw form."""
    within = request.within
    if within is None:
        return facts
    new, old = facts.of(request.raw), facts.of(within.old_raw)
    return Facts((*facts.known, (request.object, new), (request.old, old)))


def locate_pod_sets(ev: Evaluation) -> None:
    """Locate the pod sets too that only the object around a wrapped one names.

    Raises LocationError if the pods of the object cannot be located.
    """
    within = ev.request.within
    if within is not None and within.pod_sets:
        paths = tuple(path for path, _ in within.pod_sets)
        ev.locate_by(with_pod_templates(ev.definition, ev.request.object, paths))


def filled_in(
    definition: Definition, document: Any, paths: Collection[Path]
) -> dict[Path, list[Path]]:
    """Return the paths in each wrapped object that the schema of the outer object fills in."""
    found: dict[Path, list[Path]] = {}
    for path in find_filled_paths(definition.profile, document):
        for size in range(len(path) + 1):
            if path[:size] in paths:
                found.setdefault(path[:size], []).append(path[size:])
    return found


# Faults of wrapped objects


def misshapen(body: Any, path: Path) -> Violation | None:
    """Return a violation if a value is not a Kubernetes object."""
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
    """Return the violation for a value of a wrong type."""
    return Violation("", path, None, text, "wrong-type", "wrong-type", None)


def too_deep_inside(request: Request, path: Path) -> Violation | None:
    """Return a violation if more objects are nested than podgate follows."""
    depth, within = 1, request.within
    while within is not None:
        depth, within = depth + 1, within.around.within
    if depth <= MOST_DEEP:
        return None
    text = f"it is wrapped in {depth} others; at most {MOST_DEEP} are followed"
    return Violation("", path, None, text, "too-deep", "too-deep", None)


def other_namespace(request: Request, body: dict[str, Any], path: Path) -> Iterator[Violation]:
    """Yield a violation for a wrapped object in another namespace, where other policies apply."""
    stated = (body.get("metadata") or {}).get("namespace")
    if stated in (None, "", request.namespace):
        return
    at = (*path, "metadata", "namespace")
    reason = "other-namespace"
    yield Violation("", at, str(stated), request.namespace or "none", reason, reason, None)


def hidden(body: Any, path: Path) -> list[Violation]:
    """Return violations for containers in an object of a kind that should have none."""
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
    """Turn a location error of an object, or of one inside it, into a violation."""
    return Violation("", (*path, *error.path), None, error.text, error.reason, error.reason, None)


def over_budget(
    request: Request, definition: Definition, catalog: Catalog, facts: Facts | None
) -> Violation | None:
    """Return a violation if an object exceeds a budget together with all that it wraps."""
    objects = locations = containers = listed = 0
    if facts is not None:
        definition = definition.with_results(facts.results(request.object))
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
            continue  # reported when the object is evaluated
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
