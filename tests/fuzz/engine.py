"""Makes attempts by seed and index, and sends them the way that reviews of an API server go."""

from __future__ import annotations

import copy
import functools
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

import orjson

from tests.fuzz import numbers, places
from tests.fuzz.breaches import APP, BREACHES
from tests.fuzz.disguises import (
    DISGUISES,
    HARMLESS,
    Attempt,
    chosen,
    container_at,
    pod_of,
)
from tests.fuzz.kinds import every
from tests.fuzz.places import Place
from tests.fuzz.reviews import Outcome, decision, patched, reasons, rules, send
from tests.fuzz.ways import Breach, Way
from webhook.catalog.catalog import Catalog
from webhook.evaluation.outcome import Allowed, Decision, Denied
from webhook.evaluation.request import Stage

RESOURCES = {
    "limits": {"cpu": "500m", "memory": "256Mi"},
    "requests": {"cpu": "500m", "memory": "256Mi"},
}
EXPLICIT = {
    "readOnlyRootFilesystem": True,
    "allowPrivilegeEscalation": False,
    "runAsNonRoot": True,
}
RUN_NOTHING = {
    "ClusterServingRuntime",
    "JobTemplate",
    "LLMInferenceServiceConfig",
    "PodTemplate",
    "SandboxTemplate",
    "ServingRuntime",
}
"""Kinds that others refer to: how many pods come of them is said there."""
OPEN = Breach("", {"rules": {"security": {"privileged": {"canEdit": False}}}}, ())
"""What is put where a schema says nothing: a pod that no definition knows."""


def plain_container(name: str, offers: frozenset[str]) -> dict[str, Any]:
    """A compliant container with what its list takes."""
    body: dict[str, Any] = {"name": name}
    if "image" in offers:
        body["image"] = APP
    if "imagePullPolicy" in offers:
        body["imagePullPolicy"] = "Always"
    if {"resources.limits", "resources.requests"} <= offers:
        body["resources"] = copy.deepcopy(RESOURCES)
    return body


def control(place: Place) -> Any:
    """A compliant object of the kind with pods in the place."""
    document = place.document()
    numbers.limit(place.kind, document)
    numbers.pull(place.kind, document)
    node = places.at(document, place.slot)
    if place.what == "open":
        return document
    pod = node.setdefault("spec", {}) if place.what == "template" else node
    for key, offers in place.containers.items():
        if key == "":
            for name, value in plain_container("main", offers).items():
                if name != "name":
                    pod[name] = value
        elif key == "containers":
            pod[key] = [plain_container("main", offers), plain_container("side", offers)]
        elif key == "initContainers":
            pod[key] = [plain_container("init", offers), plain_container("proxy", offers)]
            if place.what == "template":
                pod[key][1]["restartPolicy"] = "Always"
        else:
            pod["containers"] = [plain_container("main", frozenset(places.ALL_CONTAINER))]
            pod[key] = [plain_container("debug", offers), plain_container("debug-2", offers)]
            for each in pod[key]:  # nobody completes what comes by a subresource
                each["securityContext"] = dict(EXPLICIT)
    return document


class Bases:
    """Compliant objects by place and policy, completed as the mutating pass completes them."""

    def __init__(self) -> None:
        self.known: dict[tuple[Place, str], bytes] = {}
        self.refused: dict[tuple[str, str, str], str] = {}

    def of(self, place: Place, text: str, found: Catalog) -> Any:
        """The completed object, None where the plain one is refused."""
        key = (place, text)
        if key not in self.known:
            self.known[key] = orjson.dumps(self.complete(place, text, found))
        return orjson.loads(self.known[key])

    def complete(self, place: Place, text: str, found: Catalog) -> Any:
        """Both passes over a compliant object; why it is refused is kept."""
        start = control(place)
        attempt = Attempt(place, OPEN, WAYS_OF_OPEN[0], ("", 0), start, start)
        if place.subresource:
            attempt.subresource = place.subresource
            attempt.old = copy.deepcopy(start)
            del pod_of(place, attempt.old)["ephemeralContainers"]
        first = decision(attempt, Stage.MUTATE, found)
        last: Decision = first
        if isinstance(first, Allowed):
            attempt = patched(attempt, first)
            last = decision(attempt, Stage.VALIDATE, found)
        if isinstance(last, Denied):
            self.refused[place.kind, place.where, text] = reasons(last)
            return None
        return attempt.object


def open_pod(case: bool) -> Mapping[str, Any]:
    """A privileged pod, perhaps with keys in another letter case."""
    bad = {"name": "a", "command": ["a"], "securityContext": {"privileged": True}}
    if not case:
        return {"containers": [{**bad, "name": "b", "securityContext": {}}, {**bad, "image": APP}]}
    return {"a": [{"Spec": {"InitContainers": [{**bad, "Image": APP}]}}]}


WAYS_OF_OPEN = (
    Way("plain", "", lambda node, _: node.update(open_pod(False))),
    Way("letter-case", "", lambda node, _: node.update(open_pod(True))),
)


def every_breach() -> tuple[Breach, ...]:
    """The rules of pods, and the numbers beside them."""
    return (*BREACHES, *numbers.breaches())


@dataclass(slots=True)
class Generator:
    """Attempts by seed and index; what is dear to make is made once."""

    seed: int
    bases: Bases = field(default_factory=Bases)
    places: tuple[Place, ...] = field(default_factory=every)
    breaches: tuple[Breach, ...] = field(default_factory=every_breach)

    def attempt(self, index: int) -> tuple[Attempt, Catalog] | None:
        """The attempt of an index; None where no compliant object of the draw exists."""
        random = Random(self.seed << 40 | index)
        for _ in range(20):
            drawn = self.draw(random)
            if drawn is not None:
                return drawn
        return None

    def draw(self, random: Random) -> tuple[Attempt, Catalog] | None:
        """One draw of place, rule, way and disguises."""
        place = random.choice(self.places)
        if place.what == "open":
            breach, way, target = OPEN, random.choice(WAYS_OF_OPEN), ("", 0)
        else:
            options = usable(place, self.breaches)
            if not options:
                return None
            breach, way = random.choice(random.choice(options))
            target = target_of(place, breach, way, random)
        text = body_of(breach)
        found = rules(text)
        base = self.bases.of(place, text, found)
        if base is None or (breach.holds is not None and not breach.holds(pod_of(place, base))):
            return None  # where another part of the object is the one that is completed
        again = self.bases.of(place, text, found)
        attempt = Attempt(place, breach, way, target, base, again)
        attempt.subresource = place.subresource
        if random.random() < CONTROLS:
            return self.harmless(attempt, random), found
        node = places.at(attempt.object, place.slot)
        if way.of_workload:
            node = attempt.object
        elif place.what != "open" and not way.of_pod:
            node = container_at(attempt, attempt.object, target)
        elif place.what != "open":
            node = pod_of(place, attempt.object)
        way.apply(node, random)
        if place.subresource:
            attempt.old = copy.deepcopy(base)
            del pod_of(place, attempt.old)["ephemeralContainers"]
            names = [each for each in chosen(random) if each in OF_SUBRESOURCES]
        elif place.what == "open":
            names = [each for each in chosen(random) if each in OF_ANYTHING]
        else:
            names = list(chosen(random))
        attempt.disguises = [each for each in names if DISGUISES[each](attempt, random)]
        return attempt, found

    def harmless(self, attempt: Attempt, random: Random) -> Attempt:
        """The compliant object itself, with disguises that leave it so."""
        attempt.harmless = True
        names = [each for each in chosen(random) if each in HARMLESS]
        if "update" in names and "main-container" in names:
            names.remove("main-container")  # what is locked would have to move
        if attempt.subresource:
            attempt.old = copy.deepcopy(attempt.base)
            del pod_of(attempt.place, attempt.old)["ephemeralContainers"]
            names = [each for each in names if each in OF_SUBRESOURCES]
        attempt.disguises = [each for each in names if DISGUISES[each](attempt, random)]
        return attempt


CONTROLS = 0.03
"""The share of compliant objects, which have to be let in."""
OF_SUBRESOURCES = ("forged-owner", "forged-user", "last-applied", "managed-fields", "dry-run")
OF_ANYTHING = (*OF_SUBRESOURCES, "generate-name", "update", "wrapped", "exclude")


PER_POLICY = 8
"""Rules that one policy has: more would make each decision slower, fewer more plans to compile."""


@functools.cache
def body_of(breach: Breach) -> str:
    """The policy that a breach is tried under, as JSON: its own rule among others."""
    return next(
        (text for text, members in policies() if breach in members), json.dumps(OPEN.policy)
    )


@functools.cache
def policies() -> tuple[tuple[str, tuple[Breach, ...]], ...]:
    """The rules of all breaches in few policies, none of which states a field twice."""
    groups: list[tuple[dict[str, Any], list[Breach]]] = []
    for breach in every_breach():
        for merged, members in groups:
            alike = beside_pods(breach) == beside_pods(members[0])
            if (
                alike
                and len(members) < PER_POLICY
                and not any(same(breach, each) for each in members)
            ):
                merge(merged, breach.policy)
                members.append(breach)
                break
        else:
            groups.append((copy.deepcopy(dict(breach.policy)), [breach]))
    return tuple((json.dumps(merged), tuple(members)) for merged, members in groups)


def beside_pods(breach: Breach) -> bool:
    """Whether a rule is about a number of the workload; the kinds that have it are others."""
    return any(way.of_workload for way in breach.ways)


def same(one: Breach, other: Breach) -> bool:
    """Whether two rules are about one field or its items."""
    return one.field.startswith(other.field) or other.field.startswith(one.field)


def merge(into: dict[str, Any], more: Mapping[str, Any]) -> None:
    """Add the sections of one policy to another."""
    for key, value in more.items():
        if isinstance(into.get(key), dict):
            merge(into[key], value)
        else:
            into[key] = copy.deepcopy(value)


@functools.cache
def usable(place: Place, breaches: tuple[Breach, ...]) -> list[list[tuple[Breach, Way]]]:
    """The breaches that a place can carry, by breach, each with its ways."""
    found = [
        [(breach, way) for way in breach.ways if carries(place, breach, way)] for breach in breaches
    ]
    return [each for each in found if each]


NONE: frozenset[str] = frozenset()
CONTEXT = "securityContext.readOnlyRootFilesystem"


def carries(place: Place, breach: Breach, way: Way) -> bool:
    """Whether the place's schema offers what a way needs."""
    if way.of_workload:
        return numbers.can_state(place, breach.field)
    if breach.field.startswith("total.") and runs_nothing(place):
        return False
    if breach.holds is not None:
        if place.kind.endswith(" JobFlow"):
            return False  # what goes over a template may leave out what that has
        if breach.field == "imagePullPolicy" and numbers.always_pulls(place.kind):
            return False  # wrapped objects are decided as the operator will complete them
        return not place.subresource and {"env", CONTEXT} <= place.containers.get(
            "containers", NONE
        )
    if way.of_pod:
        return way.needs in place.pod
    return bool(lists_of(place, breach, way))


def runs_nothing(place: Place) -> bool:
    """Whether no pod comes of a place as the object is: others say how many, or nobody does."""
    by_others = place.kind.rpartition(" ")[2] in RUN_NOTHING
    return by_others or place.where.endswith(("worker", "workerSpec", "tasks[].template"))


def lists_of(place: Place, breach: Breach, way: Way) -> list[str]:
    """The lists of containers that a way can be tried in."""
    return [
        key
        for key, offers in place.containers.items()
        if key in breach.lists and way.needs in offers
    ]


def target_of(place: Place, breach: Breach, way: Way, random: Random) -> tuple[str, int]:
    """The container that is changed."""
    if way.of_pod or way.of_workload:
        return "", 0
    key = random.choice(lists_of(place, breach, way))
    return key, 0 if key == "" else random.randrange(2)


def outcomes(generator: Generator, indices: Iterable[int]) -> Iterator[tuple[int, Outcome]]:
    """What comes of each index."""
    for index in indices:
        drawn = generator.attempt(index)
        if drawn is not None:
            yield index, send(*drawn)
