"""Old faults, one for each class, put back for a test: a generator that misses one proves nothing.

Where one function was mended, that function is replaced. Else `forgive` drops violations that an
older reading did not report, and `hide` takes from an object what it did not see.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests.fuzz import reviews
from tests.fuzz.breaches import APP
from tests.fuzz.disguises import LAST_APPLIED
from webhook.admission import judge
from webhook.admission.request_class import classify_request
from webhook.decision import decide
from webhook.decision.owners import controller_of
from webhook.evaluation.outcome import Allowed, Decision, Denied, Violation
from webhook.evaluation.request import Request, RequestClass, Stage
from webhook.objects import quantity
from webhook.objects.path import ABSENT, Path, read
from webhook.pods import coverage

Plant = Callable[[pytest.MonkeyPatch], None]
LISTS = ("containers", "initContainers", "ephemeralContainers")


def forgive(patch: pytest.MonkeyPatch, old: Callable[[Request, Violation], bool]) -> None:
    """Drop violations that the old fault did not report."""
    present = reviews.decide_review

    def faulty(request: Request, *rest: Any) -> Decision:
        decision = present(request, *rest)
        if not isinstance(decision, Denied):
            return decision
        left = tuple(each for each in decision.violations if not old(request, each))
        return replace(decision, violations=left) if left else Allowed(request.object)

    patch.setattr(reviews, "decide_review", faulty)


def hide(patch: pytest.MonkeyPatch, change: Callable[[Any], None]) -> None:
    """Show the decision an object without what the old fault did not see."""
    present = reviews.decide_review

    def faulty(request: Request, *rest: Any) -> Decision:
        seen = copy.deepcopy(request.object)
        for node in nodes(seen):
            change(node)
        if seen == request.object:
            return present(request, *rest)
        decision = present(replace(request, object=seen), *rest)
        return decision if isinstance(decision, Denied) else Allowed(request.object)

    patch.setattr(reviews, "decide_review", faulty)


def exempt(patch: pytest.MonkeyPatch, old: Callable[[Request], bool]) -> None:
    """Exempt whom the old fault exempted."""

    def faulty(request: Request, *rest: Any) -> RequestClass:
        return RequestClass.EXEMPT if old(request) else classify_request(request, *rest)

    patch.setattr(judge, "classify_request", faulty)


def nodes(value: Any) -> Iterator[dict[str, Any]]:
    """Every map in an object, the inner ones first."""
    if isinstance(value, dict):
        for each in list(value.values()):
            yield from nodes(each)
        yield value
    elif isinstance(value, list):
        for each in value:
            yield from nodes(each)


def annotations(request: Request) -> dict[str, str]:
    """The annotations of an object."""
    found: dict[str, str] = request.object["metadata"].get("annotations") or {}
    return found


def read_as(patch: pytest.MonkeyPatch, reads: Callable[[str], bool]) -> None:
    """Count an amount as nothing unless it is read."""
    present = quantity.parse

    def faulty(value: Any) -> int:
        try:
            return present(value) if not isinstance(value, str) or reads(value) else 0
        except ValueError:
            return 0

    patch.setattr(quantity, "parse", faulty)


def amounts(patch: pytest.MonkeyPatch) -> None:
    """A1: long texts and large exponents were not read, and counted as nothing."""
    read_as(patch, lambda text: len(text) <= 256 and "4294967296" not in text)


def unreadable(patch: pytest.MonkeyPatch) -> None:
    """A1: what is no amount counted as nothing."""
    read_as(patch, lambda _: True)


def pod_level(patch: pytest.MonkeyPatch) -> None:
    """A9: a value of the pod counted for the containers that take it only."""
    forgive(
        patch, lambda _, each: "securityContext" in each.path and not set(LISTS) & set(each.path)
    )


def claim_template(patch: pytest.MonkeyPatch) -> None:
    """A5: claim templates were no volumes."""
    hide(patch, lambda node: node.pop("volumeClaimTemplates", None))


def letter_case(patch: pytest.MonkeyPatch) -> None:
    """Keys were compared exactly where no schema prunes the others."""
    present = coverage.looks_like

    def faulty(node: dict[Any, Any]) -> coverage.What | None:
        return present({key: value for key, value in node.items() if key[:1].islower()})

    patch.setattr(coverage, "looks_like", faulty)


def null(patch: pytest.MonkeyPatch) -> None:
    """A map with a null in it was taken for empty."""

    def change(node: dict[str, Any]) -> None:
        if node.get("securityContext") and None in node["securityContext"].values():
            del node["securityContext"]

    hide(patch, change)


def empty(patch: pytest.MonkeyPatch) -> None:
    """A volume whose source is empty was taken for none."""

    def change(node: dict[str, Any]) -> None:
        if isinstance(node.get("volumes"), list):
            node["volumes"] = [each for each in node["volumes"] if {} not in each.values()]

    hide(patch, change)


def repeated(patch: pytest.MonkeyPatch) -> None:
    """The first variable of a name counted, and the program sees the last."""

    def change(node: dict[str, Any]) -> None:
        if isinstance(node.get("env"), list):
            node["env"] = [*{each["name"]: each for each in reversed(node["env"])}.values()]

    hide(patch, change)


def generate_name(patch: pytest.MonkeyPatch) -> None:
    """An object without a name was nobody's."""
    exempt(patch, lambda request: not request.name)


def forged_owner(patch: pytest.MonkeyPatch) -> None:
    """An owner reference alone made a child."""
    exempt(patch, lambda request: controller_of(request.object) is not None)


def forged_user(patch: pytest.MonkeyPatch) -> None:
    """A4: any name of the control plane's form was a controller's."""
    exempt(patch, lambda request: request.user.startswith("system:"))


def dry_run(patch: pytest.MonkeyPatch) -> None:
    """Nobody looked at what is only tried."""
    exempt(patch, lambda request: request.dry_run)


def last_applied(patch: pytest.MonkeyPatch) -> None:
    """What the annotation leaves out was not the user's."""
    forgive(patch, lambda request, _: annotations(request).get(LAST_APPLIED) in ("{}", "null"))


def managed_fields(patch: pytest.MonkeyPatch) -> None:
    """What another manager claims was that manager's."""
    forgive(
        patch,
        lambda request, _: any(
            each["manager"] == "kubelet"
            for each in request.object["metadata"].get("managedFields") or ()
        ),
    )


def exclude(patch: pytest.MonkeyPatch) -> None:
    """The annotation left out whatever it names."""
    forgive(patch, lambda request, each: f'"{each.field}"' in annotations(request).get(EXCLUDE, ""))


EXCLUDE = "podgate.dev/exclude"


def main_container(patch: pytest.MonkeyPatch) -> None:
    """Rules applied to the container that the user names."""

    def old(request: Request, each: Violation) -> bool:
        index = next((at for at, step in enumerate(each.path) if step == "containers"), None)
        if index is None or "default-container" not in str(annotations(request)):
            return False
        return read(request.object, (*each.path[: index + 2], "name")) != "side"

    forgive(patch, old)


def update(patch: pytest.MonkeyPatch) -> None:
    """An update of a compliant object was compliant."""
    patch.setattr(decide, "is_unchanged", lambda *_: True)


def held_before(request: Request, each: Violation, path: Path) -> bool:
    """Whether the old object has the same value at a path."""
    now = read(request.object, each.path)
    return now not in (ABSENT, None) and read(request.old, path) == now


def moved(patch: pytest.MonkeyPatch) -> None:
    """What some container had before, any of them might have."""

    def old(request: Request, each: Violation) -> bool:
        if request.old is None:
            return False
        swapped = (
            tuple(1 - step if at == place else step for at, step in enumerate(each.path))
            for place, step in enumerate(each.path)
            if step in (0, 1) and not isinstance(step, str)
        )
        return any(held_before(request, each, path) for path in swapped)

    forgive(patch, old)


def same_place(request: Request, each: Violation) -> bool:
    """Whether the old object has the same value at the same place."""
    return request.old is not None and held_before(request, each, each.path)


def renamed(patch: pytest.MonkeyPatch) -> None:
    """Containers were compared by their numbers."""
    forgive(patch, same_place)


def touched(patch: pytest.MonkeyPatch) -> None:
    """What was there before could stay, whatever else the container does now."""
    forgive(patch, same_place)


def grown(patch: pytest.MonkeyPatch) -> None:
    """Who had too much could take more."""

    def old(request: Request, each: Violation) -> bool:
        before = read(request.old, each.path) if request.old is not None else None
        return each.reason == "max" and before not in (ABSENT, None)

    forgive(patch, old)


def nothing_beside(patch: pytest.MonkeyPatch) -> None:
    """A pod with a null list in it was not read further."""

    def change(node: dict[str, Any]) -> None:
        if "containers" in node and None in (node.get("volumes", 0), node.get("tolerations", 0)):
            node["containers"] = [{"name": "main", "image": APP, "imagePullPolicy": "Always"}]
            node.pop("initContainers", None)

    hide(patch, change)


def reordered(patch: pytest.MonkeyPatch) -> None:
    """Who comes first in an object was looked at: its metadata."""
    forgive(patch, lambda request, _: next(iter(request.object)) not in ("apiVersion", "metadata"))


def wrapped(patch: pytest.MonkeyPatch) -> None:
    """What an object wraps was not evaluated."""
    patch.setattr(decide, "decide_with_wrapped", decide.decide_alone)


def left_out(patch: pytest.MonkeyPatch) -> None:
    """A4: nobody completed what is said to be a controller's, and nobody missed anything."""
    forgive(
        patch,
        lambda request, each: (
            request.user.startswith("system:")
            and controller_of(request.object) is not None
            and each.reason in ("locked", "canEdit")
        ),
    )
    present = reviews.decide_review

    def faulty(request: Request, *rest: Any) -> Decision:
        made = request.user.startswith("system:") and controller_of(request.object) is not None
        return present(replace(request, stage=Stage.VALIDATE) if made else request, *rest)

    patch.setattr(reviews, "decide_review", faulty)


PLANTS: dict[str, Plant] = {
    "amounts": amounts,
    "claim-template": claim_template,
    "dry-run": dry_run,
    "empty": empty,
    "exclude": exclude,
    "forged-owner": forged_owner,
    "forged-user": forged_user,
    "generate-name": generate_name,
    "grown": grown,
    "last-applied": last_applied,
    "left-out": left_out,
    "letter-case": letter_case,
    "main-container": main_container,
    "managed-fields": managed_fields,
    "moved": moved,
    "nothing-beside": nothing_beside,
    "null": null,
    "pod-level": pod_level,
    "renamed": renamed,
    "reordered": reordered,
    "repeated": repeated,
    "touched": touched,
    "unreadable": unreadable,
    "update": update,
    "wrapped": wrapped,
}
