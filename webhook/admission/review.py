"""AdmissionReview v1: parses a review into a request, and writes a decision as a response."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, assert_never

import orjson

from webhook.admission import names, timeouts
from webhook.decision.messages import (
    MOST_VIOLATIONS,
    NOTE,
    faults_of,
    place,
    problem_text,
    refusal,
    refusal_of,
    violation_text,
    warning_text,
)
from webhook.devices.configs import find_repeated_keys
from webhook.devices.kinds import GROUP
from webhook.documents import texts
from webhook.documents.json_text import replace_no_characters
from webhook.documents.problem import Problem
from webhook.evaluation.outcome import Allowed, Decision, Denied, Violation, Warning, outcome_of
from webhook.evaluation.request import Request, Stage, go_on
from webhook.evaluation.state import AGAIN

VERSION = "admission.k8s.io/v1"
KIND = "AdmissionReview"
OPERATIONS = ("CREATE", "UPDATE", "DELETE", "CONNECT")

# kube-apiserver cuts warnings above 256 characters and drops what exceeds 4,096 in all, those of
# other webhooks included; its advice is 120 for one.
LONGEST_WARNING = 120
MOST_WARNINGS = 20
LONGEST_ANNOTATION = 2_000

# Go writes a review's uid first, so it can be found in a body that is only partly read.
UID = re.compile(rb'"request"\s*:\s*\{\s*"uid"\s*:\s*"([0-9A-Za-z-]{1,64})"')
UID_WITHIN = 4_096
PARAMETERS = b'"parameters"'


@dataclass(frozen=True, slots=True)
class ReviewFault:
    """Why a review is not evaluated. `code` goes into the response.

    A fault that `denies` is a response to a valid review, with HTTP 200. Any other fault is sent
    with `code` as the HTTP status, so that the caller's failure policy decides.
    """

    uid: str
    code: int
    message: str
    reason: str
    denies: bool = False

    @property
    def http_status(self) -> int:
        """The HTTP status of the response."""
        return 200 if self.denies else self.code


# The API server shows webhooks every update as a whole object with UpdateOptions, patches included,
# so that a value which it has filled in anew cannot be told from one that a patch has set. These
# managers send patches that leave out what they do not change. Others count as sending the object
# whole, which excuses nothing that the server does not fill in.
PATCHERS = frozenset(
    {"kubectl-edit", "kubectl-patch", "kubectl-set", "kubectl-rollout", "kubectl-scale"}
)


class Malformed(Exception):  # noqa: N818 - it never leaves this module
    """The envelope does not conform to AdmissionReview v1."""


def find_uid(body: bytes | bytearray) -> str:
    """Return the uid near the beginning of a body that is not decoded, else ""."""
    found = UID.search(body, 0, UID_WITHIN)
    return found[1].decode() if found else ""


def parse_review(
    body: bytes, stage: Stage, call: Callable[[], None] = go_on
) -> Request | ReviewFault:
    """Return the request in an AdmissionReview v1, or the fault to respond with. Never raises.

    `call` becomes its `go_on`.
    """
    try:
        try:
            review = orjson.loads(body)
        except ValueError:  # opaque parameters come as the bytes that their author sent
            body = replace_no_characters(body)
            review = orjson.loads(body)
    except (ValueError, RecursionError, MemoryError) as error:
        if "depth" in str(error) or "recursion" in str(error).lower():
            return nested_too_deep(find_uid(body))
        return malformed_fault(find_uid(body), f"the body is not JSON ({texts.cut(str(error))})")
    inner = review.get("request") if isinstance(review, dict) else None
    uid = inner.get("uid") if isinstance(inner, dict) else None
    echo = uid if isinstance(uid, str) and names.is_uid(uid) else ""
    try:
        request = request_of(envelope(review), stage, call, is_small=len(body) <= timeouts.SMALL)
    except Malformed as error:
        return malformed_fault(echo, str(error))
    except DeepError:
        return nested_too_deep(echo)
    if request.group == GROUP and PARAMETERS in body:
        return replace(request, repeated_keys=tuple(find_repeated_keys(body)))
    return request


class DeepError(Exception):
    """An object is nested deeper than the budget."""


def envelope(review: Any) -> dict[str, Any]:
    """Return the `request` of a review of the supported version. Raises Malformed."""
    if not isinstance(review, dict):
        raise Malformed(f"the body is {type_name(review)}, not an {KIND}")
    version, kind = review.get("apiVersion"), review.get("kind")
    if kind != KIND:
        raise Malformed(f"kind is {shorten_value(kind)}; send an {KIND} of {VERSION}")
    if version != VERSION:
        fix = "set admissionReviewVersions to [v1] in the webhook configuration"
        raise Malformed(
            f"apiVersion is {shorten_value(version)}, and only {VERSION} is supported; {fix}"
        )
    asked: dict[str, Any] = mapping(review, "request", required=True)
    return asked


def request_of(
    asked: dict[str, Any],
    stage: Stage,
    call: Callable[[], None] = go_on,
    *,
    is_small: bool = False,
) -> Request:
    """Return the request for the decision. Raises Malformed or DeepError."""
    uid = text(asked, "uid")
    if not uid:
        raise Malformed("request.uid is missing, so nothing could be answered")
    if not names.is_uid(uid):
        raise Malformed(f"request.uid is {shorten_value(uid)}; a uid has letters, digits and -")
    operation = text(asked, "operation")
    if operation not in OPERATIONS:
        raise Malformed(f"request.operation is {shorten_value(operation)}, not one of {OPERATIONS}")
    group, version, kind = triple(asked, "kind", "kind")
    resource_group, resource_version, resource = triple(asked, "resource", "resource")
    body = mapping(asked, "object", required=operation in ("CREATE", "UPDATE"), absent=None)
    old = mapping(asked, "oldObject", absent=None)
    if timeouts.too_deep(timeouts.without_texts(body), timeouts.without_texts(old)):
        raise DeepError
    # The name of what is created is the object's own, which the API server has not checked yet.
    name = text(asked, "name")
    if operation != "CREATE" and not names.is_name(name):
        raise Malformed(f"request.name is {shorten_value(name)}, which no object can have")
    options, user = mapping(asked, "options"), mapping(asked, "userInfo")
    claims = mapping(user, "extra")
    return Request(
        group=group,
        version=version,
        kind=kind,
        operation=operation,
        object=body,
        old=old,
        uid=uid,
        resource=resource,
        resource_group=resource_group,
        resource_version=resource_version,
        subresource=label(asked, "subResource"),
        namespace=label(asked, "namespace"),
        name=name or own_name(body),
        user=text(user, "username"),
        groups=texts_at(user, "groups"),
        extra={key: texts_at(claims, key) for key in claims},
        field_manager=text(options, "fieldManager"),
        replaces=operation == "UPDATE" and text(options, "fieldManager") not in PATCHERS,
        dry_run=asked.get("dryRun") is True,
        stage=stage,
        go_on=call,
        is_small=is_small,
    )


def own_name(body: dict[str, Any] | None) -> str:
    """Return the name inside an object, for requests without one. With generateName it is ""."""
    metadata = body.get("metadata") if body else None
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return name if isinstance(name, str) else ""


def mapping(parent: dict[str, Any], key: str, *, required: bool = False, absent: Any = ()) -> Any:
    """Return the object at `key`. If absent or null: an empty one, or `absent` if given."""
    value = parent.get(key)
    if isinstance(value, dict):
        return value
    if value is not None or required:
        raise Malformed(f"{path_of(key)} is {type_name(value)}, not an object")
    return {} if absent == () else absent


def text(parent: dict[str, Any], key: str) -> str:
    """Return the text at `key`, "" if absent or null."""
    value = parent.get(key)
    if isinstance(value, str):
        return value
    if value is not None:
        raise Malformed(f"{path_of(key)} is {type_name(value)}, not text")
    return ""


def label(parent: dict[str, Any], key: str) -> str:
    """Return the text at `key`, which is "" or a name without dots."""
    value = text(parent, key)
    if value and not names.is_label(value):
        raise Malformed(f"{path_of(key)} is {shorten_value(value)}, which is no name in Kubernetes")
    return value


def texts_at(parent: dict[str, Any], key: str) -> tuple[str, ...]:
    """Return the list of texts at `key`, () if absent or null."""
    value = parent.get(key)
    if value is None:
        return ()
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return tuple(value)
    raise Malformed(f"{path_of(key)} is not a list of texts")


def triple(parent: dict[str, Any], key: str, last: str) -> tuple[str, str, str]:
    """Return group, version and kind (or resource). The core group is ""."""
    found = mapping(parent, key, required=True)
    group, version, name = text(found, "group"), text(found, "version"), text(found, last)
    if not version or not name:
        raise Malformed(f"{path_of(key)} names no version or no {last}")
    if not names.is_type(group, version, name, last):
        found = shorten_value(f"{name}.{version}.{group}")
        raise Malformed(f"{path_of(key)} is {found}, which no API server has")
    return group, version, name


NESTED = {
    "username": "userInfo.username",
    "groups": "userInfo.groups",
    "extra": "userInfo.extra",
    "fieldManager": "options.fieldManager",
}


def path_of(key: str) -> str:
    """Return the path of a key of the envelope, for messages."""
    return key if key == "request" else f"request.{NESTED.get(key, key)}"


def type_name(value: Any) -> str:
    """Return the name of a JSON type, for messages."""
    names = {
        dict: "an object",
        list: "a list",
        str: "text",
        bool: "a boolean",
        type(None): "absent",
    }
    return names.get(type(value), "a number")


def shorten_value(value: Any) -> str:
    """Return a value of the envelope, shortened and cleaned."""
    return texts.show_value(value) if isinstance(value, str) else type_name(value)


def malformed_fault(uid: str, why: str) -> ReviewFault:
    """Return the fault for a body that is not an AdmissionReview v1."""
    return ReviewFault(uid, 400, f"podgate cannot read this review: {why}", "malformed")


def nested_too_deep(uid: str) -> ReviewFault:
    """The fault for an object beyond the depth budget: a denial wherever it can be addressed."""
    message = refusal([TOO_DEEP])
    return ReviewFault(uid, 403 if uid else 400, message, TOO_DEEP.reason, denies=bool(uid))


TOO_DEEP = Violation(
    "",
    (),
    None,
    f"it is nested deeper than {timeouts.MAX_DEPTH} levels",
    "too-deep",
    "too-deep",
    None,
)


TOO_MANY_VALUES = Violation(
    "",
    (),
    None,
    f"it would take more than {timeouts.DECODED_LIMIT >> 20} MiB of memory, its old version included",
    "too-many-values",
    "too-many-values",
    None,
)


def too_large(uid: str, limit: int) -> ReviewFault:
    """The fault for a body beyond the size budget."""
    message = f"the review is larger than {limit:,} bytes, which is the most that is read"
    return ReviewFault(uid, 413, message, "too-large")


def too_many_values(uid: str) -> ReviewFault:
    """The fault for a body of too many small values: a denial wherever it can be addressed."""
    message = refusal([TOO_MANY_VALUES])
    reason = TOO_MANY_VALUES.reason
    return ReviewFault(uid, 403 if uid else 413, message, reason, denies=bool(uid))


def no_room(uid: str) -> ReviewFault:
    """The fault for a body that there is no memory for at the moment."""
    reported = "podgate is overloaded: the reviews in memory have reached the limit of bytes"
    return ReviewFault(uid, 503, reported, "no-room")


def waited_too_long(uid: str, seconds: float) -> ReviewFault:
    """The fault for a request whose caller has given up, or is about to."""
    message = f"podgate is overloaded: this review waited {seconds:.1f} s and was not evaluated"
    return ReviewFault(uid, 503, message, "deadline")


def overdue(uid: str, seconds: float) -> ReviewFault:
    """The fault for a request that was not finished while its caller waits."""
    message = f"podgate did not finish within {seconds:.1f} s, so this review was not evaluated"
    return ReviewFault(uid, 503, message, "overdue")


def not_ready(uid: str, why: str) -> ReviewFault:
    """Return the fault while there is no catalog to decide by."""
    return ReviewFault(uid, 503, f"podgate is not ready: {why}", "not-ready")


def respond(request: Request, decision: Decision, generation: int | None = None) -> bytes:
    """The AdmissionReview that answers `request` with `decision`.

    `generation` names the catalog that judged. A patch in the validating pass is a bug, ValueError:
    the API server would refuse it, and the object was judged good only with it.
    """
    response: dict[str, Any] = {"uid": request.uid}
    match decision:
        case Allowed():
            response["allowed"] = True
            if decision.patch:
                if request.stage is not Stage.MUTATE:
                    raise ValueError("a decision of the validating pass carries a patch")
                encoded = orjson.dumps(list(decision.patch))
                response["patchType"] = "JSONPatch"
                response["patch"] = base64.b64encode(encoded).decode()
        case Denied():
            response["allowed"] = False
            problems = decision.problems
            response["status"] = faulty(problems) if problems else denial(decision)
        case _:
            assert_never(decision)
    if decision.warnings:
        response["warnings"] = warning_lines(decision.warnings)
    response["auditAnnotations"] = audit_annotations(decision, generation)
    return pack(response)


def denial(decision: Denied) -> dict[str, Any]:
    """The status of a refusal: everything in `message`, and again as causes for machines."""
    violations = decision.violations
    reported = violations[:MOST_VIOLATIONS]
    lines = [violation_text(each) for each in reported]
    causes = [
        {"reason": each.reason, "message": line, "field": cause_field(each)}
        for each, line in zip(reported, lines, strict=True)
    ]
    message = refusal_of(lines, len(violations))
    if decision.completed and any(each.fix != AGAIN for each in violations):
        message = f"{message}\n{NOTE}"
    return failure(403, "Forbidden", message, causes)


def faulty(problems: Sequence[Problem]) -> dict[str, Any]:
    """The status of a refusal of a document of ours."""
    reported = [replace(each, origin="", line=0) for each in problems[:MOST_VIOLATIONS]]
    lines = [problem_text(each).removeprefix(": ") for each in reported]
    causes = [
        {"reason": each.reason, "message": line, "field": each.path}
        for each, line in zip(reported, lines, strict=True)
    ]
    return failure(403, "Forbidden", faults_of(lines, len(problems)), causes)


def cause_field(violation: Violation) -> str:
    """The JSON path of a cause, or the policy field when it concerns the whole object."""
    return place(violation.path) if violation.path else violation.field


def failure(
    code: int, reason: str, message: str, causes: Sequence[dict[str, str]] = ()
) -> dict[str, Any]:
    """Return a meta/v1 Status for a denial."""
    status: dict[str, Any] = {"status": "Failure", "code": code, "reason": reason}
    status["message"] = message
    if causes:
        status["details"] = {"causes": list(causes)}
    return status


def warning_lines(warnings: Sequence[Warning]) -> list[str]:
    """At most MOST_WARNINGS lines of at most LONGEST_WARNING characters, the same one once."""
    lines = list(dict.fromkeys(warning_text(each, LONGEST_WARNING) for each in warnings))
    if len(lines) <= MOST_WARNINGS:
        return lines
    kept = lines[: MOST_WARNINGS - 1]
    return [*kept, f"podgate: and {len(lines) - len(kept)} more warnings"]


def audit_annotations(decision: Decision, generation: int | None) -> dict[str, str]:
    """Return audit annotations: names and paths, never a value. The API server prefixes their keys."""
    match decision:
        case Allowed():
            kept = {"decision": outcome_of(decision)}
            if decision.not_evaluated:
                kept["reason"] = decision.not_evaluated
            if decision.changes:
                names = ", ".join(dict.fromkeys(each.field for each in decision.changes))
                kept["changes"] = shorten_annotation(f"{len(decision.changes)}: {names}")
        case Denied():
            kept = {"decision": "denied"}
            kept["policies"] = shorten_annotation(", ".join(policies(decision.violations)))
            kept["rules"] = shorten_annotation("; ".join(map(rule_at, decision.violations)))
        case _:
            assert_never(decision)
    if decision.excused:
        reported = (f"{each.exception}: {rule_at(each.violation)}" for each in decision.excused)
        kept["excused"] = shorten_annotation("; ".join(reported))
    if decision.audit:
        kept["audit"] = shorten_annotation("; ".join(map(rule_at, decision.audit)))
    if generation is not None:
        kept["catalog"] = str(generation)
    return kept


def policies(violations: Iterable[Violation]) -> list[str]:
    """The names of the policies that refused, each once, in order."""
    return list(dict.fromkeys(each.source.policy for each in violations if each.source))


def rule_at(violation: Violation) -> str:
    """Return `policy:rule at path`, or the reason alone if no policy is involved."""
    policy = f"{violation.source.policy}:" if violation.source else ""
    return f"{policy}{violation.rule or violation.reason} at {place(violation.path)}"


def shorten_annotation(value: str) -> str:
    """An annotation's value on one line, cut where the audit log should not grow further."""
    return texts.cut(value, LONGEST_ANNOTATION)


def fault_response(fault: ReviewFault) -> bytes:
    """Return the response to a review that is not evaluated, with its uid if known."""
    causes = [{"reason": fault.reason, "message": fault.message, "field": ""}]
    status = failure(fault.code, REASONS.get(fault.code, "BadRequest"), fault.message, causes)
    return pack({"uid": fault.uid, "allowed": False, "status": status})


REASONS = {
    400: "BadRequest",
    403: "Forbidden",
    413: "RequestEntityTooLarge",
    500: "InternalError",
    503: "ServiceUnavailable",
}


def internal_error_response(uid: str) -> bytes:
    """The answer when evaluation failed by our own fault: it names no detail of the object."""
    message = f"podgate failed to evaluate this review; its log has the stack under uid {uid}"
    return fault_response(ReviewFault(uid, 500, message, "internal"))


def pack(response: dict[str, Any]) -> bytes:
    """A response in its envelope."""
    return orjson.dumps({"apiVersion": VERSION, "kind": KIND, "response": response})
