"""AdmissionReview in and out: what is read, what is refused with which words, what is answered."""

import base64
import re
from pathlib import Path
from typing import Any

import jsonpatch
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.admission import review, timeouts
from webhook.admission.review import ReviewFault
from webhook.decision.messages import warning_text
from webhook.documents.problem import Source
from webhook.evaluation.outcome import Allowed, Change, Denied, Violation, Warning
from webhook.evaluation.request import Request, Stage

UID = "215e849f-c56a-4894-b019-c6ac32a1d2bf"
SOURCE = Source("gpu-limits", "cluster", message="Ask the platform team")


def asked(**changes: Any) -> dict[str, Any]:
    """A request as the API server sends it, with changes; a value of ... takes the key out."""
    request: dict[str, Any] = {
        "uid": UID,
        "kind": {"group": "apps", "version": "v1", "kind": "Deployment"},
        "resource": {"group": "apps", "version": "v1", "resource": "deployments"},
        "namespace": "team-a",
        "operation": "CREATE",
        "userInfo": {"username": "alice", "groups": ["dev", "system:authenticated"]},
        "object": {"metadata": {"name": "web"}, "spec": {"replicas": 1}},
        "oldObject": None,
        "dryRun": False,
        "options": {"kind": "CreateOptions", "fieldManager": "kubectl"},
    }
    request |= changes
    return {name: value for name, value in request.items() if value is not ...}


def body(request: Any, **changes: Any) -> bytes:
    """A whole review as bytes."""
    whole = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}
    return orjson.dumps(whole | changes)


def parsed(data: bytes) -> Request:
    """The request of a good review."""
    request = review.parse_review(data, Stage.MUTATE)
    assert isinstance(request, Request), request
    return request


def fault(data: bytes) -> ReviewFault:
    """The fault of a bad review."""
    found = review.parse_review(data, Stage.VALIDATE)
    assert isinstance(found, ReviewFault)
    return found


def response(data: bytes) -> dict[str, Any]:
    """The response inside an answer, whose envelope is as the API server insists."""
    answer = orjson.loads(data)
    assert answer["apiVersion"] == "admission.k8s.io/v1"
    assert answer["kind"] == "AdmissionReview"
    return answer["response"]  # type: ignore[no-any-return]


def broken(number: int = 0, **changes: Any) -> Violation:
    """A violation."""
    facts: dict[str, Any] = {
        "field": "compute.gpuDevicesRequest",
        "path": ("spec", "containers", number, "resources", "limits", "nvidia.com/gpu"),
        "value": "8",
        "allowed": "4",
        "rule": "max",
        "reason": "max",
        "source": SOURCE,
    }
    return Violation(**(facts | changes))


def test_a_review_becomes_a_request_with_everything_the_decision_reads() -> None:
    request = parsed(body(asked(subResource="scale", dryRun=True, name="web-1")))
    assert (request.group, request.version, request.kind) == ("apps", "v1", "Deployment")
    assert request.resource == "deployments"
    assert (request.resource_group, request.resource_version) == ("apps", "v1")
    assert (request.uid, request.operation, request.namespace) == (UID, "CREATE", "team-a")
    assert (request.subresource, request.name, request.dry_run) == ("scale", "web-1", True)
    assert (request.user, request.groups) == ("alice", ("dev", "system:authenticated"))
    assert (request.field_manager, request.stage) == ("kubectl", Stage.MUTATE)
    assert request.object["spec"] == {"replicas": 1}
    assert request.old is None
    assert not request.replaces


def test_patches_of_kubectl_are_told_from_whole_objects_by_their_manager() -> None:
    update = asked(operation="UPDATE", oldObject={}, options={"kind": "UpdateOptions"})
    assert parsed(body(update)).replaces
    for manager, replaces in {
        "kubectl-replace": True,
        "kubectl-client-side-apply": True,
        "gitops": True,
        "kubectl-edit": False,
        "kubectl-patch": False,
        "kubectl-set": False,
    }.items():
        update["options"] = {"kind": "UpdateOptions", "fieldManager": manager}
        assert parsed(body(update)).replaces is replaces


def test_every_recorded_review_is_read(upstream_data: Path) -> None:
    for path in (upstream_data / "reviews").glob("*.json"):
        data = path.read_bytes()
        request = parsed(data)
        original = orjson.loads(data)["request"]
        assert request.uid == original["uid"] == review.find_uid(data)
        assert request.object == original["object"]
        assert request.kind == original["kind"]["kind"]


def test_a_name_missing_from_the_request_is_taken_from_the_object() -> None:
    assert parsed(body(asked())).name == "web"
    assert parsed(body(asked(object={"metadata": {"generateName": "web-"}}))).name == ""
    assert parsed(body(asked(object={"metadata": 7}))).name == ""


@pytest.mark.parametrize("operation", ["DELETE", "CONNECT"])
def test_only_deleting_and_connecting_need_no_object(operation: str) -> None:
    assert parsed(body(asked(operation=operation, object=None))).object is None
    assert parsed(body(asked(operation=operation, object=...))).object is None
    assert "request.object is absent" in fault(body(asked(operation="UPDATE", object=None))).message


@pytest.mark.parametrize(
    "change, told",
    [
        ({"kind": {"group": "apps", "kind": "Deployment"}}, "request.kind names no version"),
        ({"kind": "Deployment"}, "request.kind is text, not an object"),
        ({"kind": ...}, "request.kind is absent"),
        ({"resource": {"version": "v1"}}, "request.resource names no version or no resource"),
        ({"operation": "GET"}, "request.operation is GET"),
        ({"operation": 3}, "request.operation is a number"),
        ({"object": []}, "request.object is a list"),
        ({"oldObject": "x"}, "request.oldObject is text"),
        ({"namespace": {}}, "request.namespace is an object"),
        ({"userInfo": {"groups": ["a", 1]}}, "request.userInfo.groups is not a list of texts"),
        ({"userInfo": {"username": True}}, "request.userInfo.username is a boolean"),
        ({"options": 1}, "request.options is a number"),
    ],
)
def test_a_malformed_request_is_answered_with_its_uid(change: dict[str, Any], told: str) -> None:
    found = fault(body(asked(**change)))
    assert told in found.message
    assert (found.uid, found.code, found.http_status, found.reason) == (UID, 400, 400, "malformed")
    answer = response(review.fault_response(found))
    assert answer["uid"] == UID
    assert answer["allowed"] is False
    assert answer["status"]["code"] == 400


def test_a_review_without_uid_cannot_be_answered_to_anybody() -> None:
    for uid in (..., "", None, 5):
        found = fault(body(asked(uid=uid)))
        assert found.uid == ""
        assert "request.uid" in found.message


def test_any_version_but_v1_is_refused_by_naming_v1() -> None:
    for version in ("admission.k8s.io/v1beta1", "v1", "", None, 7):
        found = fault(body(asked(), apiVersion=version))
        assert "only admission.k8s.io/v1 is supported" in found.message
        assert (found.uid, found.code) == (UID, 400)


def test_another_kind_and_other_json_are_told_what_to_send() -> None:
    assert "send an AdmissionReview" in fault(body(asked(), kind="ConversionReview")).message
    assert "the body is a list" in fault(b"[]").message
    assert "the body is absent" in fault(b"null").message
    assert "request is absent" in fault(body(None)).message


@pytest.mark.parametrize("data", [b"", b"{", b"\xff\xfe", b'{"a":NaN}', b"[1]x"])
def test_what_is_not_json_is_a_fault(data: bytes) -> None:
    found = fault(data)
    assert "not JSON" in found.message
    assert (found.uid, found.code) == ("", 400)


def test_broken_json_is_answered_with_the_uid_at_its_beginning() -> None:
    found = fault(b'{"kind":"AdmissionReview","request":{"uid":"%s","kind":{{{' % UID.encode())
    assert found.uid == UID


def nest(depth: int, kind: str) -> Any:
    """A value of `depth` levels."""
    value: Any = [] if kind == "list" else {}
    for _ in range(depth - 1):
        value = [value] if kind == "list" else {"a": value}
    return value


@pytest.mark.parametrize("kind", ["list", "map"])
def test_the_depth_limit_is_exact(kind: str) -> None:
    assert not timeouts.too_deep({"a": nest(timeouts.MAX_DEPTH - 1, kind)})
    assert timeouts.too_deep({"a": nest(timeouts.MAX_DEPTH, kind)})
    assert not timeouts.too_deep(None, {"a": nest(timeouts.MAX_DEPTH - 1, kind)})
    assert timeouts.too_deep(None, {"a": nest(timeouts.MAX_DEPTH, kind)})


@pytest.mark.parametrize("depth", [200, 900, 1_020, 1_030, 10_000, 200_000])
def test_deep_objects_are_denied_at_any_depth_with_one_text(depth: int) -> None:
    opened, closed = b'{"a":' * depth, b"}" * depth
    data = body(asked(object={"deep": "HERE"})).replace(b'"HERE"', opened + b"1" + closed)
    found = fault(data)
    assert (found.uid, found.code, found.reason) == (UID, 403, "too-deep")
    assert found.denies
    assert found.http_status == 200
    answer = response(review.fault_response(found))
    assert answer["status"]["details"]["causes"][0]["reason"] == "too-deep"
    assert "100 levels" in answer["status"]["message"]


def test_depth_elsewhere_than_in_the_objects_is_no_matter() -> None:
    parsed(body(asked(options={"kind": "CreateOptions", "x": nest(120, "map")})))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**62), 2**62) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(
    st.dictionaries(
        st.sampled_from(
            [
                "uid",
                "kind",
                "resource",
                "operation",
                "object",
                "oldObject",
                "options",
                "userInfo",
                "name",
                "namespace",
                "subResource",
                "dryRun",
            ]
        ),
        json_values,
    )
)
def test_no_envelope_makes_it_raise(changes: dict[str, Any]) -> None:
    try:
        data = body(asked(**changes))
    except TypeError:  # lone surrogates cannot be sent either
        return
    found = review.parse_review(data, Stage.MUTATE)
    if isinstance(found, ReviewFault):
        response(review.fault_response(found))


@given(st.binary(max_size=60))
def test_no_bytes_make_it_raise(data: bytes) -> None:
    assert isinstance(review.parse_review(data, Stage.MUTATE), ReviewFault)


def test_a_patch_travels_in_base64_and_applies() -> None:
    request = parsed(body(asked()))
    patch = ({"op": "add", "path": "/metadata/labels", "value": {"a/b": "ü"}},)
    changed = request.object | {"metadata": {"name": "web", "labels": {"a/b": "ü"}}}
    answer = response(review.respond(request, Allowed(changed, patch)))
    assert answer["uid"] == UID
    assert answer["allowed"] is True
    assert answer["patchType"] == "JSONPatch"
    sent = base64.b64decode(answer["patch"], validate=True)
    assert jsonpatch.apply_patch(request.object, sent.decode()) == changed


def test_without_operations_there_is_neither_patch_nor_patch_type() -> None:
    answer = response(review.respond(parsed(body(asked())), Allowed({})))
    assert "patch" not in answer
    assert "patchType" not in answer
    assert "warnings" not in answer
    assert answer["auditAnnotations"] == {"decision": "allowed"}


def test_a_patch_while_validating_is_a_bug() -> None:
    request = review.parse_review(body(asked()), Stage.VALIDATE)
    assert isinstance(request, Request)
    with pytest.raises(ValueError, match="validating"):
        review.respond(request, Allowed({}, ({"op": "remove", "path": "/a"},)))


def test_a_refusal_says_everything_twice_for_people_and_for_machines() -> None:
    violations = (broken(0), broken(1, reason="options", value="3", allowed="1, 2"))
    answer = response(review.respond(parsed(body(asked())), Denied(violations)))
    status = answer["status"]
    assert answer["allowed"] is False
    assert (status["code"], status["reason"], status["status"]) == (403, "Forbidden", "Failure")
    assert status["message"].splitlines()[0] == "podgate refused this object: 2 rules are broken"
    causes = status["details"]["causes"]
    assert [each["reason"] for each in causes] == ["max", "options"]
    assert causes[0]["field"] == 'spec.containers[0].resources.limits["nvidia.com/gpu"]'
    for cause in causes:
        assert f"- {cause['message']}" in status["message"].splitlines()


def test_beyond_fifty_violations_are_counted_only() -> None:
    answer = response(review.respond(parsed(body(asked())), Denied(tuple(map(broken, range(60))))))
    assert len(answer["status"]["details"]["causes"]) == 50
    lines = answer["status"]["message"].splitlines()
    assert len(lines) == 52
    assert lines[-1] == "and 10 more"


def test_the_audit_log_gets_names_and_places_and_no_values() -> None:
    change = Change("image", ("spec", "image"), "TOPSECRET", "default", SOURCE)
    allowed = Allowed({}, changes=(change, change), audit=(broken(),))
    kept = response(review.respond(parsed(body(asked())), allowed, 7))["auditAnnotations"]
    assert kept["decision"] == "allowed"
    assert kept["changes"] == "2: image"
    assert kept["catalog"] == "7"
    assert kept["audit"].startswith("gpu-limits:max at spec.containers[0]")
    denied = Denied((broken(value="TOPSECRET"), broken(1, source=None)))
    other = response(review.respond(parsed(body(asked())), denied, 7))["auditAnnotations"]
    assert (other["decision"], other["policies"]) == ("denied", "gpu-limits")
    assert "TOPSECRET" not in str(kept) + str(other)
    for key in (*kept, *other):
        assert re.fullmatch(r"[a-z]+", key)


def test_warnings_stay_within_what_the_api_server_passes_on() -> None:
    place = ("spec", *("x" * 30 for _ in range(20)))
    many = tuple(Warning("absent-limit", f"f{n}", place, source=SOURCE) for n in range(100))
    lines = response(review.respond(parsed(body(asked())), Allowed({}, warnings=many)))["warnings"]
    assert len(lines) == review.MOST_WARNINGS
    assert all(len(line) <= 120 for line in lines)
    assert sum(map(len, lines)) <= 4_096
    assert lines[-1] == "podgate: and 81 more warnings"


def test_the_same_warning_is_given_once() -> None:
    twice = (Warning("image-decides", "f", ()), Warning("image-decides", "f", ()))
    lines = response(review.respond(parsed(body(asked())), Allowed({}, warnings=twice)))["warnings"]
    assert lines == [warning_text(twice[0])]


@pytest.mark.parametrize(
    "found, code",
    [
        (review.too_large(UID, 7), 413),
        (review.waited_too_long(UID, 2.0), 503),
        (review.overdue(UID, 2.0), 503),
        (review.no_room(UID), 503),
        (review.not_ready(UID, "no catalog"), 503),
    ],
)
def test_faults_of_ours_leave_the_verdict_to_the_failure_policy(
    found: ReviewFault, code: int
) -> None:
    assert found.http_status == code
    answer = response(review.fault_response(found))
    assert (answer["uid"], answer["allowed"], answer["status"]["code"]) == (UID, False, code)


def test_a_failure_of_ours_names_the_uid_to_look_for() -> None:
    answer = response(review.internal_error_response(UID))
    assert answer["uid"] == UID
    assert answer["status"]["code"] == 500
    assert UID in answer["status"]["message"]


@pytest.mark.parametrize(
    "query, seconds",
    [
        (b"timeout=10s", 10),
        (b"timeout=1m0s", 30),
        (b"timeout=500ms", 0.5),
        (b"a=b&timeout=2.5s&c=d", 2.5),
        (b"timeout=", 30),
        (b"timeout=-1s", 30),
        (b"timeout=1s1", 30),
        (b"", 30),
        (b"xtimeout=1s", 30),
        (b"timeout=0s", 30),
        (b"timeout=" + b"0" * 62 + b"1s", 1),
        (b"timeout=" + b"0" * 63 + b"1s", 30),
        (b"timeout=" + b"9" * 16_000, 30),
    ],
)
def test_the_callers_patience_is_read_from_the_query(query: bytes, seconds: float) -> None:
    assert timeouts.timeout_of(query) == seconds


SPLIT = "a HTTP/1.1\r\nHost: b\r\n\r\nDELETE /api/v1/namespaces/b"


@pytest.mark.parametrize(
    "bad", [SPLIT, "../b", "A", "a_b", "a" * 64, "a.b", "a%2fb", "-a", "ä", "a\n"]
)
@pytest.mark.parametrize("key", ["namespace", "subResource"])
def test_a_name_that_no_api_server_sends_is_malformed(key: str, bad: str) -> None:
    found = fault(body(asked(**{key: bad})))
    assert (found.http_status, found.reason) == (400, "malformed")
    assert f"request.{key}" in found.message
    assert "\r" not in found.message
    assert len(found.message) < 400


@pytest.mark.parametrize("bad", [SPLIT, "a/b", "..", "a%2fb", "a\nb"])
def test_a_changed_object_has_a_name_that_a_path_can_have(bad: str) -> None:
    found = fault(body(asked(name=bad, operation="UPDATE")))
    assert "request.name" in found.message
    # What is created may have any: the API server refuses it after the webhooks.
    assert parsed(body(asked(name=bad))).name == bad


@pytest.mark.parametrize(
    "key, change",
    [
        ("kind", {"group": "a b"}),
        ("kind", {"group": "A"}),
        ("kind", {"version": SPLIT}),
        ("kind", {"kind": "Pod\n"}),
        ("kind", {"kind": "P" * 64}),
        ("resource", {"resource": "pods/../secrets"}),
        ("resource", {"group": "a." * 200 + "b"}),
        ("resource", {"version": "v1?x=y"}),
    ],
)
def test_a_kind_or_resource_that_no_api_server_has_is_malformed(
    key: str, change: dict[str, str]
) -> None:
    given = {"group": "", "version": "v1", "kind": "Pod", "resource": "pods"} | change
    found = fault(body(asked(**{key: given})))
    assert f"request.{key}" in found.message


@pytest.mark.parametrize("bad", ["u" * 65, "a b", "a\r\nb", "ü", '"'])
def test_a_uid_that_no_api_server_sends_is_malformed(bad: str) -> None:
    assert fault(body(asked(uid=bad))).uid == ""
