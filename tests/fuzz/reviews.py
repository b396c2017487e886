"""Sends attempts through both passes, as the bytes that an API server sends."""

from __future__ import annotations

import copy
import functools
import json
from dataclasses import dataclass

import jsonpatch
import orjson

from tests.building import catalog, policy
from tests.fuzz.disguises import NAMESPACE, Attempt, pod_of
from webhook.admission.judge import decide_review
from webhook.admission.review import ReviewFault, parse_review
from webhook.catalog.catalog import Catalog
from webhook.decision.messages import place
from webhook.evaluation.outcome import Allowed, Decision, Denied
from webhook.evaluation.references import References
from webhook.evaluation.request import Stage

REFERENCES = References()
UNCOVERED = "uncovered"


@dataclass(slots=True)
class Outcome:
    """What came of an attempt: how it got in, or why it was refused.

    `masked`: refused, but not for what it breaks; `over`: compliant, and refused all the same.
    """

    attempt: Attempt
    admitted: str = ""
    masked: str = ""
    over: str = ""


@functools.cache
def rules(text: str) -> Catalog:
    """The catalog of one policy beside the shipped documents, as its JSON."""
    return catalog(policy("", **json.loads(text)))


def review(attempt: Attempt) -> bytes:
    """The AdmissionReview as an API server sends it."""
    document = attempt.object
    group, _, version = document["apiVersion"].rpartition("/")
    kind = document["kind"]
    metadata = document.get("metadata") or {}
    return orjson.dumps(
        {
            "apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview",
            "request": {
                "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
                "kind": {"group": group, "version": version, "kind": kind},
                "resource": {"group": group, "version": version, "resource": f"{kind.lower()}s"},
                "subResource": attempt.subresource or None,
                "name": metadata.get("name", ""),
                "namespace": "" if attempt.place.cluster else NAMESPACE,
                "operation": attempt.operation,
                "userInfo": {"username": attempt.user, "groups": list(attempt.groups)},
                "object": document,
                "oldObject": attempt.old,
                "dryRun": attempt.dry_run,
                "options": {"fieldManager": attempt.manager},
            },
        }
    )


def decision(attempt: Attempt, stage: Stage, found: Catalog) -> Decision:
    """What one pass says of an attempt."""
    request = parse_review(review(attempt), stage)
    assert not isinstance(request, ReviewFault), request
    return decide_review(request, found, REFERENCES)


def patched(attempt: Attempt, answer: Allowed) -> Attempt:
    """The attempt as the mutating pass leaves it, by a JSON patch library of somebody else."""
    after = copy.copy(attempt)
    if answer.patch:
        after.object = jsonpatch.apply_patch(
            attempt.object, orjson.loads(orjson.dumps(answer.patch))
        )
    return after


def send(attempt: Attempt, found: Catalog) -> Outcome:
    """Both passes; the validating one also alone, as after a mutating pass that was skipped."""
    first = decision(attempt, Stage.MUTATE, found)
    if isinstance(first, Allowed):
        written = patched(attempt, first)
        last = decision(written, Stage.VALIDATE, found)
        if isinstance(last, Allowed):
            if attempt.harmless:
                return Outcome(attempt)
            if not is_completed(written):
                return Outcome(attempt, admitted="both passes")
        first = last
    if attempt.harmless:
        assert isinstance(first, Denied)
        return Outcome(attempt, over=reasons(first))
    alone = decision(attempt, Stage.VALIDATE, found)
    if isinstance(alone, Allowed):
        return Outcome(attempt, admitted="the validating pass")
    wanted = attempt.breach.field
    for each in alone.violations:
        if each.reason == UNCOVERED or related(each.field, wanted):
            return Outcome(attempt)
    return Outcome(attempt, masked=reasons(alone))


def is_completed(attempt: Attempt) -> bool:
    """Whether the rule is one that podgate may meet by writing, and the pod meets it now."""
    if attempt.breach.holds is None:
        return False
    document = attempt.object
    while document["kind"] == "AppWrapper":
        document = document["spec"]["components"][0]["template"]
    return attempt.breach.holds(pod_of(attempt.place, document))


def reasons(refusal: Denied) -> str:
    """Field, reason and place of each violation, on one line."""
    return "; ".join(
        f"{each.field} {each.reason} at {place(each.path)}" for each in refusal.violations
    )


def related(found: str, wanted: str) -> bool:
    """Whether a violation is of the field that the attempt breaks, or of one around it."""
    return bool(found) and (found.startswith(wanted) or wanted.startswith(found))
