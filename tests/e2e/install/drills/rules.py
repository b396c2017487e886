"""What podgate must make of an object: the oracle of the drills, which shares no code with podgate."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tests.e2e.objects import Json, essence, pods_in

MARK = "DRILL"
"""The variable that the policy of the drills gives to the first container of a pod."""
REVISION = "deployment.kubernetes.io/revision"


@dataclass(frozen=True, slots=True)
class Rules:
    """What holds at a time: the value of the variable and the images that pass.

    Without a `mark` nothing is governed: objects stay as they came, and nothing is refused.
    """

    mark: str = ""
    images: frozenset[str] = frozenset()

    def refuses(self, wanted: Json) -> str:
        """The field whose rule an object breaks, "" for none."""
        if not self.mark:
            return ""
        for _, _, spec in pods_in(wanted):
            for each in containers_of(spec):
                if each["image"] not in self.images:
                    return "image"
                if (each.get("securityContext") or {}).get("privileged"):
                    return "security.privileged"
        return ""

    def completed(self, wanted: Json) -> Json:
        """The object that must be stored of one that passes."""
        found: Json = copy.deepcopy(wanted)
        for _, _, spec in pods_in(found) if self.mark else ():
            complete(spec["containers"][0], self.mark)
            # The shipped policy's; the server fills in the same, but not for custom kinds.
            spec.setdefault("terminationGracePeriodSeconds", 30)
        return found


def containers_of(spec: Json) -> list[Any]:
    """The containers of a pod, those that run first included."""
    return [*(spec.get("initContainers") or ()), *spec["containers"]]


def complete(container: Json, mark: str) -> None:
    """Put the drills' variable before the others, unless it is there."""
    variables = container.get("env", [])
    if MARK not in {each["name"] for each in variables}:
        container["env"] = [{"name": MARK, "value": mark}, *variables]


def plain(stored: Json) -> Json:
    """A stored object without what servers and controllers make up."""
    found = essence(stored)
    notes = found["metadata"].get("annotations", {})
    notes.pop(REVISION, None)
    if not notes:
        found["metadata"].pop("annotations", None)
    return found


def wrong(wanted: Json, stored: Json | None, told: str, accepted: Iterable[Rules]) -> str:
    """What is wrong with an answer, "" when some rules that may hold by now explain it.

    `wanted` is what would be stored without podgate, `stored` what was, None where it was refused
    with the text `told`.
    """
    rules = tuple(accepted)
    if stored is None:
        reasons = {each.refuses(wanted) for each in rules} - {""}
        if any(f"- {each} at " in told for each in reasons):
            return ""
        return f"refused: {told}"
    broken = [each.refuses(wanted) for each in rules]
    if "" not in broken:
        return f"allowed, and breaks {broken[0]}"
    found = plain(stored)
    if any(found == each.completed(wanted) for each in rules):
        return ""
    return f"stored otherwise than it must be: {found}"
