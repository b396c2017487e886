"""Controllers that change fields of workloads by an installation's word: exact user, kinds, fields.

    - name: kueue
      users: ["system:serviceaccount:kueue-system:kueue-controller-manager"]
      kinds: [{group: batch, kind: Job}]
      subresource: scale      # or resize; absent: the object itself
      fields: [.spec.suspend, '.metadata.annotations["a/b"]', '.spec.sets[].replicas']
      podFields: [.spec.nodeSelector, .metadata.labels]   # in each of the workload's pods

Trusted is an update that changes nothing else. Of a scale `kinds` are what is scaled, or Scale of
autoscaling for everything that scales.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal

from webhook.evaluation.request import Request
from webhook.objects.path import Assembled
from webhook.pods.definition import Definition
from webhook.pods.locate import locate
from webhook.pods.location import LocationError

EACH: Final = "[]"
# The server writes these with every update, after the mutating pass has seen the object.
KEPT_BY_SERVER: Final = tuple(
    ("metadata", key) for key in ("managedFields", "resourceVersion", "generation")
)

Steps = tuple[str | int, ...]
Kind = tuple[str, str]


@dataclass(frozen=True, slots=True)
class TrustedMutator:
    """One controller. `fields` are places of the object, `pod_fields` of each pod in it."""

    name: str
    users: frozenset[str]
    kinds: frozenset[Kind]
    subresource: Literal["", "scale", "resize"] = ""
    fields: tuple[Steps, ...] = ()
    pod_fields: tuple[Steps, ...] = ()


@dataclass(frozen=True, slots=True)
class TrustedMutators:
    """An installation's list; empty, it trusts nobody."""

    entries: tuple[TrustedMutator, ...] = ()

    def trusts(self, request: Request, definition: Definition | None) -> bool:
        """Whether somebody of the list changes what the list allows and nothing else.

        `definition` is that of the object, or of what is scaled; without one there are no pods.
        """
        if request.operation != "UPDATE" or not isinstance(request.old, dict):
            return False
        kinds = {(request.group, request.kind)}
        if definition is not None and request.subresource == "scale":
            kinds.add((definition.interface.group, definition.interface.kind))
        meant = [
            each
            for each in self.entries
            if request.user in each.users
            and request.subresource == each.subresource
            and not kinds.isdisjoint(each.kinds)
        ]
        if not meant or not isinstance(request.object, dict):
            return False
        try:
            return remainder(request.object, meant, definition) == remainder(
                request.old, meant, definition
            )
        except LocationError:
            return False


def remainder(
    document: dict[str, Any], meant: Iterable[TrustedMutator], definition: Definition | None
) -> dict[str, Any]:
    """A copy of the object without the places that may differ."""
    places = [steps for each in meant for steps in each.fields]
    pod_fields = [steps for each in meant for steps in each.pod_fields]
    if pod_fields and definition is not None:
        places += places_in_pods(document, definition, pod_fields)
    left = copy.deepcopy(document)
    for steps in (*places, *KEPT_BY_SERVER):
        take_out(left, steps)
    return left


def places_in_pods(
    document: Any, definition: Definition, fields: Iterable[Steps]
) -> Iterator[Steps]:
    """The fields of pods as places of the object; a pod that is stated in pieces has none."""
    for location in locate(definition, document):
        bases = {"spec": location.spec_path, "metadata": location.metadata_path}
        for first, *rest in fields:
            base = bases.get(str(first))
            if base is not None and not (base and isinstance(base[0], Assembled)):
                yield (*base, *rest)


def take_out(node: Any, steps: Steps) -> bool:
    """Remove a place, and maps that only held it; whether `node` is an empty map by that."""
    first, rest = steps[0], steps[1:]
    if isinstance(node, list):
        for index, item in enumerate(node):
            if first in (EACH, index):
                take_out(item, rest)
        return False
    if not isinstance(node, dict) or first not in node:
        return False
    if not rest or take_out(node[first], rest):
        del node[first]
    return not node
