"""What people of a soak make: sorts of objects, and the objects that are there."""

from __future__ import annotations

import copy
import itertools
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

import yaml

from tests.e2e.gate import MANIFESTS
from tests.e2e.objects import Json, at
from tests.e2e.operators.cases import PRIVILEGED, Case

PLAIN = "soak"
"""The namespace of the kinds that every cluster has."""


@dataclass(frozen=True, slots=True)
class Sort:
    """One kind of object in a namespace.

    `pod` is the dotted place of the pod spec that people edit, "" where it is not to be changed.
    `replicas` are what people scale to. `broken`, `breaks`, `rule`, `mains`, `added`, `without` and
    `restless` are as in operators' cases. `most` is how many of it there may be at a time.
    """

    resource: str
    space: str
    document: Json
    broken: str
    breaks: Mapping[str, Any] = field(default_factory=lambda: PRIVILEGED)
    rule: str = "security.privileged"
    pod: str = ""
    replicas: tuple[int, ...] = ()
    mains: tuple[str, ...] = ("main",)
    added: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    restless: bool = False
    restarts: bool = False
    most: int = 6

    def path(self, name: str = "") -> str:
        """Where the API server has the objects, or one of them."""
        version = self.document["apiVersion"]
        root = f"/apis/{version}" if "/" in version else f"/api/{version}"
        place = f"{root}/namespaces/{self.space}/{self.resource.partition('.')[0]}"
        return f"{place}/{name}" if name else place

    def named(self, name: str) -> Json:
        """A document of this sort; what its own name is told in labels and selectors goes along."""
        document = renamed(self.document, self.document["metadata"]["name"], name)
        document["metadata"]["namespace"] = self.space
        return document

    def spoilt(self, name: str) -> Json:
        """A document that breaks a rule."""
        document = self.named(name)
        place: Any = at(document, self.broken)
        place.update(self.breaks)
        return document


@dataclass(slots=True)
class Thing:
    """One object; whoever holds the lock works on it. `server` tells how it is applied."""

    sort: Sort
    name: str
    server: bool
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def target(self) -> str:
        """What kubectl calls it."""
        return f"{self.sort.resource}/{self.name}"

    @property
    def document(self) -> Json:
        """Its manifest."""
        return self.sort.named(self.name)


@dataclass(slots=True)
class Pool:
    """The objects that are there, for all people together."""

    sorts: list[Sort]
    things: list[Thing] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=itertools.count)
    lock: threading.Lock = field(default_factory=threading.Lock)
    ended: dict[tuple[str, str], float] = field(default_factory=dict)
    """When objects were deleted, by namespace and name: seconds since 1970."""

    def name(self, prefix: str) -> str:
        """A name that was never used."""
        with self.lock:
            return f"{prefix}-{next(self.numbers)}"

    def reserve(self, random: Random, server: bool) -> Thing | None:
        """An object to be made, locked, of a sort that there may be more of; None when all is full."""
        name = self.name("it")
        with self.lock:
            counts = {id(sort): 0 for sort in self.sorts}
            for thing in self.things:
                counts[id(thing.sort)] += 1
            room = [sort for sort in self.sorts if counts[id(sort)] < sort.most]
            if not room:
                return None
            thing = Thing(random.choice(room), name, server)
            thing.lock.acquire()
            self.things.append(thing)
            return thing

    def borrow(self, random: Random) -> Thing | None:
        """An object that nobody works on, locked; None when there is none."""
        with self.lock:
            order = random.sample(self.things, len(self.things))
            return next((each for each in order if each.lock.acquire(blocking=False)), None)

    def drop(self, thing: Thing) -> None:
        """It is there no more."""
        with self.lock:
            self.things.remove(thing)


def renamed(document: Json, old: str, new: str) -> Json:
    """A copy with the object's own name, and labels that tell it, replaced."""
    found = copy.deepcopy(document)
    found["metadata"]["name"] = new
    for place in ("metadata.labels", "spec.selector.matchLabels", "spec.template.metadata.labels"):
        labels = at(found, place)
        if isinstance(labels, dict) and labels.get("app") == old:
            labels["app"] = new
    return found


def plain() -> list[Sort]:
    """The kinds that every cluster has."""
    deployment, cronjob = manifest("deployment"), manifest("cronjob")
    stateful = copy.deepcopy(deployment)
    stateful.update(kind="StatefulSet")
    stateful["spec"]["serviceName"] = "none"
    inner = "spec.template.spec"
    nightly = "spec.jobTemplate.spec.template.spec"
    first = f"{inner}.containers.0"
    scales = (1, 2, 3)
    return [
        Sort(
            "deployments.apps", PLAIN, deployment, first, pod=inner, replicas=scales, restarts=True
        ),
        Sort(
            "statefulsets.apps", PLAIN, stateful, first, pod=inner, replicas=scales, restarts=True
        ),
        Sort("cronjobs.batch", PLAIN, cronjob, f"{nightly}.containers.0", pod=nightly),
        Sort("jobs.batch", PLAIN, manifest("job"), first),
        Sort("pods", PLAIN, manifest("pod"), "spec.containers.0"),
    ]


def of_case(case: Case) -> Sort:
    """The sort of an operator's case, in a namespace of its own."""
    return Sort(
        case.resource,
        f"{PLAIN}-{case.name}",
        case.document,
        case.broken,
        case.breaks,
        case.rule,
        replicas=(case.scaled[0] - 1, case.scaled[0]) if case.scaled else (),
        mains=case.mains,
        added=case.added,
        without=case.without,
        restless=case.restless,
        most=2,
    )


def manifest(name: str) -> Json:
    """One document of the manifests that all end-to-end tests use."""
    return dict(yaml.safe_load((MANIFESTS / f"{name}.yaml").read_text("utf-8")))
