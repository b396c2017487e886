"""The input of a decision: one object, as the API server or the command line sends it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from webhook.evaluation.outcome import Allowed, Decision, Excuser
from webhook.objects.path import Path

Immutable = tuple[Path, tuple[Path, ...]]
"""A path that updates may not change, with the paths below it that they may."""
KEPT_BY_SERVER: Final = frozenset({"managedFields", "resourceVersion", "generation"})
"""Metadata that the API server writes with every update."""


class Stage(Enum):
    """The pass of the request: `mutate` may write, `validate` only evaluates the final object.

    DOCUMENTS is for requests about policies and definitions themselves.
    """

    MUTATE = "mutate"
    VALIDATE = "validate"
    DOCUMENTS = "documents"


class RequestClass(Enum):
    """How a request is evaluated: FULL, or less, as semantics §6 defines for its sender.

    OWNED is an object whose author sets an owner reference to a controller without being that
    controller. It is evaluated like any other, but gets required values only, because the
    controller may compare it with a template. UNPATCHED objects are evaluated and never written:
    subresources, mirror pods, and objects that a trusted controller makes of a kind without a
    definition. EXEMPT objects pass: children that an exempt controller makes. For TRUSTED senders
    only final rules apply. CHILD is the first object with a whole pod spec that a controller makes
    of a workload that does not set all of it: rules of safety, images and amounts apply, under the
    policies of its owner. DERIVED is an exact copy that a controller makes of evaluated pods: the
    validating pass evaluates only what others have injected since.
    """

    FULL = "full"
    OWNED = "owned"
    UNPATCHED = "unpatched"
    TRUSTED = "trusted"
    EXEMPT = "exempt"
    CHILD = "child"
    DERIVED = "derived"


@dataclass(frozen=True, slots=True)
class ObjectRead:
    """The result of one lookup. `object` is None if it is gone, or if reading it is `forbidden`."""

    object: Any = None
    forbidden: bool = False


class Overdue(Exception):  # noqa: N818 - it names a state of the request
    """The work on a request was cancelled: nobody waits for its response any more."""


def go_on() -> None:
    """Do nothing. A request that can be cancelled has another function, which raises Overdue."""


@dataclass(frozen=True, slots=True)
class Within:
    """The outer request of a wrapped object, and the path of the wrapped object in it.

    `old_path` is its path in the old object and `old_raw` the value there, None for both if it is
    new. `filled` are paths in it that the schema of the outer object fills in. `pod_sets` are paths
    of pod templates in it, with the number of pods that the outer object sets for each;
    `old_pod_sets` are those before the update. `immutable` are paths in it that updates of the
    outer object may not change.
    """

    around: Request
    path: Path
    old_path: Path | None = None
    old_raw: Any = None
    filled: frozenset[Path] = frozenset()
    pod_sets: tuple[tuple[Path, int], ...] = ()
    old_pod_sets: tuple[tuple[Path, int], ...] = ()
    immutable: tuple[Immutable, ...] = ()


@dataclass(frozen=True, slots=True)
class Request:
    """One object to decide on. `object` and `old` are plain JSON and are never changed.

    `raw` is the object as its author wrote it. It is known offline only, and is the intent there.
    `replaces` means that the whole object may have been sent (PUT, server-side apply), so that the
    server filled in missing values again. `extra` are further claims of the user. `time` is the
    time of the request in Kubernetes' format. `excused_by` are the exceptions for its object.
    `within` is set for a wrapped object; `raw` is then its value in the outer object. `go_on` is
    called before each step of the decision, and raises Overdue if the request was cancelled.
    `is_small` means that it was too short for its object to exceed the budget of entries. `objects`
    are the objects that an earlier decision on this request needed, by API path. `repeated_keys` are
    the paths of parameters in which the review has a key twice.
    """

    group: str
    version: str
    kind: str
    operation: str
    object: Any
    old: Any = None
    raw: Any = None
    uid: str = ""
    resource: str = ""
    resource_group: str = ""
    resource_version: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    user: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    field_manager: str = ""
    replaces: bool = False
    dry_run: bool = False
    stage: Stage = Stage.MUTATE
    request_class: RequestClass = RequestClass.FULL
    namespace_labels: Mapping[str, str] = field(default_factory=dict)
    time: str = ""
    excused_by: tuple[Excuser, ...] = ()
    within: Within | None = None
    go_on: Callable[[], None] = field(default=go_on, compare=False, repr=False)
    objects: Mapping[str, ObjectRead] = field(default_factory=dict)
    is_small: bool = False
    repeated_keys: tuple[Path, ...] = ()

    @property
    def outermost(self) -> Request:
        """The request as it was sent: this one, or the outermost one of a wrapped object."""
        found = self
        while found.within is not None:
            found = found.within.around
        return found


def is_rewriting(request: Request, decision: Decision | None) -> bool:
    """Return whether an update removes what podgate wrote, and podgate's patch restores the old object.

    An operator that compares its objects with a template sends such updates again and again,
    because none of them changes anything. An update that also changes something else does not
    count.
    """
    return (
        isinstance(decision, Allowed)
        and bool(decision.patch)
        and request.stage is Stage.MUTATE
        and request.operation == "UPDATE"
        and not request.dry_run
        and isinstance(request.old, dict)
        and essence(decision.object) == essence(request.old)
    )


def essence(document: Any) -> Any:
    """Return an object without its status and without the metadata that the server writes."""
    metadata = document.get("metadata")
    if not isinstance(metadata, dict):
        return document
    kept = {key: each for key, each in metadata.items() if key not in KEPT_BY_SERVER}
    return {**document, "metadata": kept, "status": None}
