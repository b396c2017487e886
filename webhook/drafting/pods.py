"""Drafts the components of a kind: the paths of pods in its schema, and containers outside them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from webhook.drafting.fragments import draft_fragments, row
from webhook.interface.crd_schema import (
    EACH,
    Schema,
    Spot,
    Steps,
    expression,
    is_whole_container,
    node_at,
    spots,
)
from webhook.interface.schema_places import properties

NEUTRAL = frozenset({"spec", "template", "podTemplate", "podTemplateSpec", "podSpec"})
ENDINGS = re.compile(r"(?:Group|Replica|Pod)?(?:Specs?|Templates?|Options)$")
LISTS = frozenset({"containers", "initContainers"})
MASTERS = ("head", "master", "launcher", "driver", "chief", "submitter")


class Extra(NamedTuple):
    """A container outside a component's pods that runs in them: its path, its row, and the reason."""

    steps: Steps
    row: dict[str, Any]
    why: str


@dataclass(slots=True)
class Pods:
    """One drafted component: its path, its form, and other members of its pods.

    `paths` is the body of specDefinition; `fragments` and `extras` are for the profile.
    """

    name: str
    steps: Steps
    node: Schema
    form: str
    paths: dict[str, Any]
    why: str
    fragments: list[dict[str, Any]] = field(default_factory=list)
    extras: list[Extra] = field(default_factory=list)

    @property
    def role(self) -> str:
        """Return the role that the name suggests."""
        if "leader" in self.name:
            return "leader"
        return "master" if any(word in self.name for word in MASTERS) else "worker"


@dataclass(slots=True)
class Places:
    """The pods in a schema: components, and subtrees that the schema leaves open."""

    pods: list[Pods]
    open: list[Steps]

    def above(self, pods: Pods) -> int:
        """Return the number of steps to the pod in fragments around this one, 0 if there is none."""
        around = [each for each in self.pods if each.form == "pieces"]
        depths = [len(each.steps) for each in around if is_inside(pods.steps, each.steps)]
        return max(depths, default=0)


def why_pod(spot: Spot) -> str:
    """Return why a path is drafted as a pod, and what to do if it is not one."""
    if spot.what == "pod template" or not set(properties(spot.node)) <= LISTS:
        return f"the schema has a {spot.what} here"
    return (
        "the schema has a list of containers here, and nothing else of a pod. If these are none, "
        "remove the component, here and in the profile, and write in the profile's spec "
        f"notPods: [{{place: '{expression(spot.steps)}', reason: what it is}}]"
    )


def places(schema: Schema) -> Places:
    """Draft every path of the schema as a component, a container of one, or an open subtree."""
    found = spots(schema)
    made = ComponentBuilder(schema)
    for spot in found:
        if spot.what in {"pod template", "pod spec"}:
            made.add_pod(spot)
    for spot in found:
        if spot.what in {"container", "pieces"}:
            made.add_container(spot)
    made.pods.sort(
        key=lambda each: next(at for at, spot in enumerate(found) if spot.steps == each.steps)
    )
    return Places(made.pods, [spot.steps for spot in found if spot.what == "open"])


class ComponentBuilder:
    """Builds components from paths, each with a unique name."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.pods: list[Pods] = []

    def add_pod(self, spot: Spot) -> None:
        """Add a component for a pod template or a pod spec."""
        if spot.what == "pod template":
            paths = {"podTemplateSpecPath": expression(spot.steps)}
        else:
            paths = {"podSpecPath": expression(spot.steps)}
            if metadata := self.metadata_of(spot):
                paths["metadataPath"] = expression(metadata)
        self.add(spot, spot.what, paths, why_pod(spot))

    def metadata_of(self, spot: Spot) -> Steps | None:
        """Return the path of the metadata of a pod spec: inside it, or next to it."""
        if {"labels", "annotations"} & set(properties(spot.node)):
            return spot.steps
        parent = spot.steps[:-1]
        beside = node_at(self.schema, (*parent, "metadata"))
        return (*parent, "metadata") if parent and beside.get("type") == "object" else None

    def add_container(self, spot: Spot) -> None:
        """Add a container to a known pod, or as a pod of its own."""
        if (holder := self.listed_in(spot)) is not None:
            key = spot.steps[-2]
            pod = ".spec.initContainers" if "init" in key.casefold() else ".spec.containers"
            holder.fragments.append(row(holder.name, pod, spot.steps[:-1], "containers"))
        elif spot.what == "container" and (owner := self.owner_of(spot)) is not None:
            within, why = owner
            extra: dict[str, Any] = {"component": within.name, "place": expression(spot.steps)}
            around = within.form == "pod spec" and is_inside(spot.steps, within.steps)
            if around and not needs_own(within):
                extra["main"] = True
            within.extras.append(Extra(spot.steps, extra, why))
        else:
            self.add_alone(spot)

    def add_alone(self, spot: Spot) -> None:
        """Add a component whose pods are a container or fragments in the schema."""
        if spot.what == "container" and is_whole_container(spot.node):
            paths = {"containerPath": expression(spot.steps)}
            made = self.add(spot, "container", {}, "a container that is in no pod")
        else:
            made = self.add(spot, "pieces", {}, "an image beside other keys of a container")
            paths, made.fragments = draft_fragments(made.name, spot)
        made.paths = {"fragmentedPodSpecDefinition": paths}

    def listed_in(self, spot: Spot) -> Pods | None:
        """Return the component in fragments that this list of additional containers belongs to."""
        if len(spot.steps) < 2 or spot.steps[-1] not in EACH:
            return None
        around = [
            each
            for each in self.pods
            if each.form == "pieces"
            and is_inside(spot.steps, each.steps)
            and not EACH & set(spot.steps[len(each.steps) : -1])
        ]
        return max(around, key=lambda each: len(each.steps), default=None)

    def owner_of(self, spot: Spot) -> tuple[Pods, str] | None:
        """Return the pod of a container: the one around it, or a required one next to it."""
        whole = [each for each in self.pods if each.form in {"pod template", "pod spec"}]
        around = [each for each in whole if is_inside(spot.steps, each.steps)]
        if around:
            return max(around, key=lambda each: len(each.steps)), "it is in this pod"
        beside = [each for each in whole if self.comes_with(each.steps, spot.steps)]
        if not beside:
            return None
        nearest = max(beside, key=lambda each: len(common(each.steps, spot.steps)))
        return (
            nearest,
            "a guess: the nearest pod that is always there; name the pod that it belongs to",
        )

    def comes_with(self, pod: Steps, steps: Steps) -> bool:
        """Whether the pod must be present if there is a value at `steps`."""
        shared = common(pod, steps)
        if EACH & {*pod[len(shared) :], *steps[len(shared) :]}:
            return False
        node = node_at(self.schema, shared)
        for step in pod[len(shared) :]:
            required = node.get("required")
            if not isinstance(required, list) or step not in required:
                return False
            node = node_at(node, (step,))
        return True

    def add(self, spot: Spot, form: str, paths: dict[str, Any], why: str) -> Pods:
        """Add a component with a unique name."""
        made = Pods(self.name_of(spot.steps), spot.steps, spot.node, form, paths, why)
        self.pods.append(made)
        return made

    def name_of(self, steps: Steps) -> str:
        """Return a name for the component at a path, from its last keys."""
        words = [word for step in steps if step not in EACH | NEUTRAL for word in [kebab(step)]]
        taken = {each.name for each in self.pods}
        for count in range(1, len(words) + 1):
            name = "-".join(words[-count:])
            if name not in taken:
                return name
        base = "-".join(words) or "pods"
        numbered = [base, *(f"{base}-{number}" for number in range(2, len(taken) + 3))]
        return next(name for name in numbered if name not in taken)


def kebab(step: str) -> str:
    """Shorten a key for a name: headGroupSpec becomes head."""
    short = ENDINGS.sub("", step) or step
    text = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", short).lower()
    return re.sub(r"[^a-z0-9-]+", "-", text).strip("-") or "pods"


def is_inside(steps: Steps, holder: Steps) -> bool:
    """Whether a path is below another one."""
    return len(steps) > len(holder) and steps[: len(holder)] == holder


def common(one: Steps, other: Steps) -> Steps:
    """Return the common first steps of two paths."""
    count = 0
    while count < min(len(one), len(other)) and one[count] == other[count]:
        count += 1
    return one[:count]


def needs_own(pod: Pods) -> bool:
    """Whether a pod spec requires containers."""
    required = pod.node.get("required")
    return isinstance(required, list) and "containers" in required
