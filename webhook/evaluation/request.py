"""The question put to the decision: one object, as the API server or the command line brings it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from webhook.evaluation.outcome import Excuser
from webhook.objects.path import Path

Immutable = tuple[Path, tuple[Path, ...]]
"""A place that updates may not change, with the places below it that they may."""


class Stage(Enum):
    """Which pass asks: mutate may write, validate only judges the final object.

    DOCUMENTS is asked about policies and definitions themselves.
    """

    MUTATE = "mutate"
    VALIDATE = "validate"
    DOCUMENTS = "documents"


class Treatment(Enum):
    """What is done with the request: FULL, or a lesser form that semantics §6 gives its sender.

    OWNED is an object whose author refers to a controller and is none: it is evaluated like any
    other and gets required values only, as the controller may compare it with a template.
    UNPATCHED objects are evaluated and never written (subresources, mirror pods, and what a trusted
    controller makes of a kind without a definition);
    EXEMPT ones pass (children that an exempt controller makes); TRUSTED senders meet final rules
    only. CHILD is the first object with a whole pod spec that a controller makes of a workload that
    does not state it all: rules of safety, of images and of amounts hold, by its owner's policies.
    DERIVED is what a controller makes verbatim of pods that were evaluated: the validating pass
    evaluates what others have injected since.
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
    """What one look-up found; `object` is None where it has gone, or where reading it is `forbidden`."""

    object: Any = None
    forbidden: bool = False


class Overdue(Exception):  # noqa: N818 - it names a state of the request
    """Work on a request was called off: nobody waits for its answer any more."""


def go_on() -> None:
    """Let the work go on; a request that may be called off has another one, which raises Overdue."""


@dataclass(frozen=True, slots=True)
class Within:
    """Where an object is wrapped: the request on the object around it, and its place in there.

    `old_path` is its place in the old object and `old_raw` what stood there, None for both where it
    is new. `filled` are places of it that
    the schema of the object around fills in. `pod_sets` are places of pod templates in it, with the
    number of pods that the object around states for each; `old_pod_sets` those before the update.
    `immutable` are places of it that updates of the object around may not change.
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
    """One object to decide on; `object` and `old` are plain JSON and are never changed.

    `raw` is the object as its author wrote it, known offline only; there it is the intent.
    `replaces` says that the whole object may have been sent (PUT, server-side apply), so that the
    server filled in anew what was left out. `extra` are further claims of the user. `time` is the
    moment of the request as Kubernetes writes one, `excused_by` are the exceptions for its object.
    `within` is set for an object that is wrapped in another; `raw` is then what stands there.
    `go_on` is called before each step of the decision, and raises Overdue where it is called off.
    `is_small` says that it was too short for its object to exceed the budget of entries.
    `objects` are the objects that an earlier decision on this request needed, by path in the API.
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
    treatment: Treatment = Treatment.FULL
    namespace_labels: Mapping[str, str] = field(default_factory=dict)
    time: str = ""
    excused_by: tuple[Excuser, ...] = ()
    within: Within | None = None
    go_on: Callable[[], None] = field(default=go_on, compare=False, repr=False)
    objects: Mapping[str, ObjectRead] = field(default_factory=dict)
    is_small: bool = False

    @property
    def outermost(self) -> Request:
        """The request as it was sent: this one, or that on the object around all."""
        found = self
        while found.within is not None:
            found = found.within.around
        return found
