"""The server's defaults by the shipped table, and what a broken table says."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import REPOSITORY
from webhook.evaluation import server_rules
from webhook.evaluation.server_calculations import image_class
from webhook.evaluation.server_defaults import KindDefaults, ServerDefaults
from webhook.objects import quantity

TABLE = yaml.safe_load((REPOSITORY / "policies/server-defaults/1.37.yaml").read_text("utf-8"))
DEFAULTS = ServerDefaults.parse(TABLE)
POD = DEFAULTS.kind("", "Pod")
DEPLOYMENT = DEFAULTS.kind("apps", "Deployment")
STATEFUL_SET = DEFAULTS.kind("apps", "StatefulSet")
JOB = DEFAULTS.kind("batch", "Job")
KINDS = sorted(DEFAULTS.kinds)
SHA = "0123456789abcdef" * 4
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def pod(**spec: Any) -> dict[str, Any]:
    return {"kind": "Pod", "spec": spec}


def container(**body: Any) -> Any:
    return POD.apply(pod(containers=[body]))["spec"]["containers"][0]


def test_the_table_names_its_server_and_every_built_in_kind() -> None:
    assert DEFAULTS.version.startswith("v1.37.")
    assert all(kind.built_in for kind in DEFAULTS.kinds.values())
    assert DEFAULTS.kind("batch", "CronJob") is DEFAULTS.kind("batch", "CronJob")


def test_a_kind_that_is_not_built_in_has_no_defaults() -> None:
    kind = DEFAULTS.kind("kubeflow.org", "PyTorchJob")
    document: Any = {"spec": {"containers": [{}]}}
    assert not kind.built_in
    assert kind.apply(document) is document
    assert kind.container(("imagePullPolicy",)) is None
    assert kind.pod(("dnsPolicy",)) is None
    assert kind.workload(".spec.replicas") is None
    assert not KindDefaults().built_in


@pytest.mark.parametrize(
    "reference, expected",
    [
        ("nginx", "untagged"),
        ("host:5000/team/app", "untagged"),
        ("nginx:latest", "latest"),
        ("[::1]:5000/a:latest", "latest"),
        ("Team/app:latest", "latest"),
        ("nginx:Latest", "tagged"),
        ("index.docker.io/nginx:1", "tagged"),
        (f"nginx@sha256:{SHA}", "digest"),
        (f"nginx:1@sha256:{SHA}", "taggedDigest"),
        (f"nginx:latest@sha256:{SHA}", "latestDigest"),
        (f"nginx:latest@sha256:{SHA.upper()}", "unparsable"),
        (f"nginx:latest@md5:{SHA}", "unparsable"),
        ("Team/App:latest", "unparsable"),
        ("nginx:", "unparsable"),
        ("nginx:latest\n", "unparsable"),
        ("", "unparsable"),
        (SHA, "unparsable"),
        (f"{SHA}:latest", "latest"),
        ("b" * 247, "untagged"),
        ("b" * 248, "unparsable"),
        ("b" * 5000, "unparsable"),
        (f"{'b.' * 1000}b/a:latest", "latest"),
    ],
)
def test_images_are_read_as_the_server_reads_them(reference: str, expected: str) -> None:
    assert image_class(reference) == expected


@pytest.mark.parametrize(
    "body, expected",
    [
        ({"image": "a"}, "Always"),
        ({"image": "a:1"}, "IfNotPresent"),
        ({"image": "a", "imagePullPolicy": ""}, "Always"),
        ({"image": "a", "imagePullPolicy": "Never"}, "Never"),
        ({"image": "a", "imagePullPolicy": 0}, 0),
        ({}, "IfNotPresent"),
        ({"image": 5}, None),
    ],
)
def test_the_pull_policy_follows_the_image(body: dict[str, Any], expected: Any) -> None:
    assert container(**body).get("imagePullPolicy") == expected


def test_a_container_place_tells_its_default_for_each_container() -> None:
    policy = DEPLOYMENT.container(("imagePullPolicy",))
    assert policy is not None
    assert policy({"image": "a:latest", "imagePullPolicy": "Never"}) == "Always"
    path = DEPLOYMENT.container(("terminationMessagePath",))
    assert path is not None
    assert path({}) == "/dev/termination-log"
    assert DEPLOYMENT.container(("command",)) is None


def test_a_place_inside_a_container_has_a_default_where_its_object_was_sent() -> None:
    failures = POD.container(("livenessProbe", "failureThreshold"))
    assert failures is not None
    assert failures({"livenessProbe": {"failureThreshold": 5}}) == 3
    assert failures({"livenessProbe": None}) is None
    assert failures({}) is None
    protocol = POD.container(("ports", 0, "protocol"))
    assert protocol is not None
    assert protocol({"ports": [{"containerPort": 1}]}) == "TCP"


def test_what_depends_on_the_pod_is_no_default_of_a_container() -> None:
    assert POD.container(("ports", 0, "hostPort")) is None


def test_a_container_place_with_conditions_tells_what_holds() -> None:
    rules = [
        {"path": "containers[].tty", "value": "A", "when": {"sibling": "name", "in": ["a"]}},
        {"path": "containers[].tty", "value": "B", "when": {"sibling": "name", "notIn": ["a"]}},
        {"path": "containers[].stdin", "copyFrom": {"sibling": "tty"}},
    ]
    kind = ServerDefaults.parse({**TABLE, "podSpec": rules}).kind("apps", "Deployment")
    tell, copied = kind.container(("tty",)), kind.container(("stdin",))
    assert tell is not None
    assert copied is not None
    assert [tell({"name": name}) for name in ("a", "b", "", None)] == ["A", "B", "B", "B"]
    assert [copied({"tty": value}) for value in (1, "", None)] == [1, None, None]
    never = ServerDefaults.parse({**TABLE, "podSpec": rules[:1]}).kind("apps", "Deployment")
    tell = never.container(("tty",))
    assert tell is not None
    assert tell({}) is None
    assert never.pod(("containers", 0, "tty")) is None


def test_only_pods_take_requests_from_limits() -> None:
    assert DEPLOYMENT.container(("resources", "requests", "cpu")) is None
    request = POD.container(("resources", "requests", "cpu"))
    assert request is not None
    assert request({"resources": {"limits": {"cpu": 2}}}) == 2
    assert request({"resources": {"limits": {"memory": "1Gi"}}}) is None
    assert request({}) is None


def test_places_of_the_pod_have_constants() -> None:
    assert DEPLOYMENT.pod(("terminationGracePeriodSeconds",)) == 30
    assert DEPLOYMENT.pod(("enableServiceLinks",)) is None
    assert POD.pod(("enableServiceLinks",)) is True
    assert POD.pod(("serviceAccountName",)) is None
    assert POD.pod(("volumes", 3, "secret", "defaultMode")) == 420


def test_places_of_the_workload_have_the_constant_of_the_usual_case() -> None:
    assert JOB.workload(".spec.backoffLimit") == 6
    assert JOB.workload(".spec.podReplacementPolicy") == "TerminatingOrFailed"
    assert DEPLOYMENT.workload('.spec["strategy"].type') == "RollingUpdate"
    assert DEPLOYMENT.workload(".spec.template.spec.restartPolicy") == "Always"
    assert JOB.workload(".metadata.labels") is None
    assert JOB.workload(".spec.backoffLimit // 3") is None
    assert JOB.workload("") is None


def test_constants_are_copies() -> None:
    POD.pod(("securityContext",))["runAsUser"] = 0
    assert POD.pod(("securityContext",)) == {}
    POD.apply(pod())["spec"]["securityContext"]["runAsUser"] = 0
    assert POD.apply(pod())["spec"]["securityContext"] == {}


def test_a_minimal_deployment_becomes_what_the_server_makes_of_it() -> None:
    body = {"name": "a", "image": "a:1"}
    sent = {"spec": {"template": {"spec": {"containers": [body], "initContainers": [body]}}}}
    full = {
        **body,
        "imagePullPolicy": "IfNotPresent",
        "resources": {},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
    }
    spec = {
        "containers": [full],
        "initContainers": [full],
        "dnsPolicy": "ClusterFirst",
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "securityContext": {},
        "terminationGracePeriodSeconds": 30,
    }
    assert DEPLOYMENT.apply(sent)["spec"] == {
        "progressDeadlineSeconds": 600,
        "replicas": 1,
        "revisionHistoryLimit": 10,
        "strategy": {
            "type": "RollingUpdate",
            "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"},
        },
        "template": {"spec": spec},
    }


@pytest.mark.parametrize(
    "sent, expected",
    [
        ({"type": "Recreate"}, {"type": "Recreate"}),
        ({"type": ""}, {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}),
        (
            {"rollingUpdate": {"maxSurge": 2}},
            {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 2}},
        ),
    ],
)
def test_conditions_look_at_what_was_sent(sent: Any, expected: Any) -> None:
    table = copy.deepcopy(TABLE)
    for rule in table["kinds"]["apps/Deployment"]["rules"]:
        if rule["path"].endswith("rollingUpdate"):
            rule["value"] = {"maxSurge": 1}
    kind = ServerDefaults.parse(table).kind("apps", "Deployment")
    strategy = kind.apply({"spec": {"strategy": sent}})["spec"]["strategy"]
    strategy.get("rollingUpdate", {}).pop("maxUnavailable", None)
    assert strategy == expected


@pytest.mark.parametrize(
    "sent, expected",
    [
        ({}, {"backoffLimit": 6, "completions": 1, "parallelism": 1}),
        ({"backoffLimitPerIndex": 0}, {"backoffLimit": 2147483647}),
        ({"parallelism": 2}, {"completions": None, "parallelism": 2}),
        ({"parallelism": None}, {"completions": 1, "parallelism": 1}),
        ({"podFailurePolicy": {}}, {"podReplacementPolicy": "Failed"}),
    ],
)
def test_a_job_is_filled_by_what_else_it_has(sent: Any, expected: Any) -> None:
    spec = JOB.apply({"spec": sent})["spec"]
    assert {key: spec.get(key) for key in expected} == expected


def test_a_job_takes_the_labels_of_its_template() -> None:
    labels = {"a": "b"}
    sent = {"metadata": {"labels": {}}, "spec": {"template": {"metadata": {"labels": labels}}}}
    got = JOB.apply(sent)
    assert got["metadata"]["labels"] == labels
    assert got["metadata"]["labels"] is not labels
    assert JOB.apply({"metadata": {}, "spec": {}})["metadata"] == {}


def test_a_volume_of_nothing_is_an_empty_directory() -> None:
    volumes = [{"name": "a"}, {"name": "b", "secret": {}}, {"name": "c", "emptyDir": None}]
    assert POD.apply(pod(volumes=volumes))["spec"]["volumes"] == [
        {"name": "a", "emptyDir": {}},
        {"name": "b", "secret": {"defaultMode": 420}},
        {"name": "c", "emptyDir": {}},
    ]


def test_ports_take_the_port_of_the_host_network() -> None:
    body = {"ports": [{"containerPort": 80}, {"containerPort": 81, "hostPort": 8}]}
    sent = pod(hostNetwork=True, containers=[body])
    ports = POD.apply(sent)["spec"]["containers"][0]["ports"]
    assert [port["hostPort"] for port in ports] == [80, 8]
    assert "hostPort" not in container(**body)["ports"][0]


def test_either_name_of_the_service_account_gives_the_other() -> None:
    assert POD.apply(pod(serviceAccount="a"))["spec"]["serviceAccountName"] == "a"
    got = POD.apply(pod(serviceAccountName="a", serviceAccount=""))
    assert got["spec"]["serviceAccount"] == "a"


def test_limits_become_requests_of_a_pod_and_keep_their_text() -> None:
    resources = {"limits": {"cpu": 0.5, "memory": "1024Mi"}, "requests": {"cpu": "1m"}}
    got = container(resources=resources)["resources"]
    assert got == {**resources, "requests": {"cpu": "1m", "memory": "1024Mi"}}
    odd = {"limits": {"cpu": "1"}, "requests": "none"}
    assert container(resources=odd)["resources"] == odd


def resources_of(resources: Any, containers: Any, init: Any = ()) -> Any:
    """The pod-level requests and limits, given those of containers, as numbers."""
    sent = pod(
        resources=resources,
        containers=[{"resources": one} for one in containers],
        initContainers=[{"restartPolicy": policy, "resources": one} for policy, one in init],
    )
    got = POD.apply(sent)["spec"]["resources"]
    return {
        part: {name: quantity.parse(amount) / quantity.NANO for name, amount in amounts.items()}
        for part, amounts in got.items()
    }


def cpu(amount: Any) -> Any:
    return {"requests": {"cpu": amount}}


def test_pod_level_requests_are_the_containers_effective_sum() -> None:
    init = [("Always", cpu("1")), (None, cpu("3")), ("Always", cpu("500m"))]
    got = resources_of({"limits": {"cpu": "8", "memory": "1k"}}, [cpu("100m"), cpu("1")], init)
    assert got["requests"] == {"cpu": 4, "memory": 1000}
    got = resources_of({"limits": {"cpu": "8"}}, [cpu("9"), cpu("1")], init)
    assert got["requests"] == {"cpu": 11.5}


def test_pod_level_requests_need_pod_level_limits() -> None:
    assert resources_of({"requests": {"memory": 1}}, [cpu("1")]) == {"requests": {"memory": 1}}


def test_pod_level_huge_pages_are_those_of_the_containers() -> None:
    huge = {"limits": {"hugepages-2Mi": 4, "example.com/gpu": 1}}
    got = resources_of({"requests": {"cpu": "1"}}, [huge, huge])
    assert got == {
        "limits": {"hugepages-2Mi": 8},
        "requests": {"cpu": 1, "hugepages-2Mi": 8},
    }
    kept = {"limits": {"cpu": 1}, "requests": {"cpu": 1, "hugepages-2Mi": 2}}
    assert resources_of(kept, [huge]) == kept


def test_amounts_that_are_none_are_not_counted() -> None:
    got = resources_of({"limits": {"cpu": "8", "example.com/gpu": 1}}, [cpu("much"), cpu("1")])
    assert got["requests"] == {"cpu": 8}
    odd = POD.apply(pod(resources={"limits": {"cpu": "8"}}, containers=[None, 5]))["spec"]
    assert odd["resources"]["requests"] == {"cpu": "8"}


def test_what_did_not_change_is_shared() -> None:
    sent = pod(containers=[{"image": "a", "command": ["a"]}], affinity={})
    before = copy.deepcopy(sent)
    got = POD.apply(sent)
    assert sent == before
    assert got is not sent
    assert got["spec"]["affinity"] is sent["spec"]["affinity"]
    assert got["spec"]["containers"][0]["command"] is sent["spec"]["containers"][0]["command"]
    assert POD.apply(got) is got


def test_recorded_objects_are_what_the_table_makes_of_what_users_applied(
    upstream_data: Path,
) -> None:
    compared = 0
    for path in sorted(upstream_data.joinpath("reviews").glob("*-create-*.json")):
        request = json.loads(path.read_text("utf-8"))["request"]
        kind = DEFAULTS.kind(request["kind"]["group"], request["kind"]["kind"])
        shown = request["object"]
        notes = (shown or {}).get("metadata", {}).get("annotations", {})
        if kind.built_in and kind is not POD and LAST_APPLIED in notes:
            compared += 1
            # Amounts are respelled by the server; here only what is missing counts.
            ours, theirs = places(kind.apply(json.loads(notes[LAST_APPLIED]))), places(shown)
            assert {one for one in theirs - ours if not GENERATED.match(one)} == set(), path.name
    assert compared > 5


GENERATED = re.compile(
    r"/status|/metadata/(creationTimestamp|generation|managedFields|uid)|/spec/template/metadata"
    r"|/metadata/annotations/kubectl"
)


def places(value: Any, path: str = "") -> set[str]:
    """Every place of a document."""
    found = {path}
    if isinstance(value, dict | list):
        for key, one in value.items() if isinstance(value, dict) else enumerate(value):
            found |= places(one, f"{path}/{key}")
    return found


KEYS = sorted(
    {
        step
        for kind in DEFAULTS.kinds.values()
        for place in kind.rules_by_path
        for step in place
        if step != server_rules.EACH
    }
    | {"image", "limits", "requests", "cpu", "hugepages-2Mi", "name", "restartPolicy"}
)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-1, 3),
    st.floats(),
    st.sampled_from(["", "a", "Always", "RollingUpdate", "1", "1Gi", "a:latest", "9" * 300]),
)
GARBAGE = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.one_of(st.sampled_from(KEYS), st.integers(0, 1)), inner, max_size=4),
    ),
    max_leaves=12,
)


@st.composite
def objects(draw: st.DrawFn) -> tuple[KindDefaults, Any]:
    """A kind, and a document with garbage or structure at places of its table."""
    kind = DEFAULTS.kinds[draw(st.sampled_from(KINDS))]
    places = [*kind.rules_by_path, (*kind.spec_path, "resources", "limits")]
    amounts = [
        (*kind.spec_path, *start, "resources", part, name)
        for start in ((), ("containers", server_rules.EACH), ("initContainers", server_rules.EACH))
        for part in ("limits", "requests")
        for name in ("cpu", "hugepages-2Mi")
    ]
    document: Any = {}
    for place in draw(st.lists(st.sampled_from([*places, *amounts]), max_size=12)):
        document = planted(document, place, draw(GARBAGE))
    return kind, document


def planted(found: Any, place: tuple[str, ...], value: Any) -> Any:
    """`found` with `value` at `place`, whatever stands in the way."""
    if not place:
        return value
    if place[0] == server_rules.EACH:
        items = found if isinstance(found, list) else []
        return [*items, planted(items[0] if items else {}, place[1:], value)]
    held = found if isinstance(found, dict) else {}
    return {**held, place[0]: planted(held.get(place[0], {}), place[1:], value)}


@given(objects())
def test_garbage_is_left_alone_and_a_second_time_adds_nothing(
    given_object: tuple[KindDefaults, Any],
) -> None:
    kind, document = given_object
    before = repr(document)
    once = kind.apply(document)
    assert repr(kind.apply(once)) == repr(once)
    assert repr(document) == before


@given(GARBAGE, st.sampled_from(KINDS))
def test_any_document_is_taken(document: Any, name: str) -> None:
    kind = DEFAULTS.kinds[name]
    once = kind.apply({"spec": document})
    assert repr(kind.apply(once)) == repr(once)
    assert isinstance(document, dict) or kind.apply(document) is document


@given(GARBAGE)
def test_any_container_is_taken(body: Any) -> None:
    body = body if isinstance(body, dict) else {"image": body, "livenessProbe": body}
    for at in (
        ("imagePullPolicy",),
        ("livenessProbe", "periodSeconds"),
        ("ports", 0, "protocol"),
        ("resources", "requests", "cpu"),
    ):
        tell = POD.container(at)
        assert tell is not None
        tell(body)


RULES: dict[str, Any] = {
    "a rule is not a map": 5,
    "a rule has unknown keys: vaule": {"path": "a", "vaule": 1},
    "path is not text: None": {"value": 1},
    'not a path of the server-default table: "a..b"': {"path": "a..b", "value": 1},
    'not a path of the server-default table: "[].b"': {"path": "[].b", "value": 1},
    "the rule for a[] needs a key at its end": {"path": "a[]", "value": 1},
    "the rule for a needs": {"path": "a"},
    "the value for a is null": {"path": "a", "value": None},
    "copyFrom of a is not a map": {"path": "a", "copyFrom": "b"},
    "sibling or at is missing for a": {"path": "a", "copyFrom": {}},
    'no such rule: "magic"': {"path": "a", "rule": "magic"},
    "values of a is not a map": {"path": "a", "rule": "image-tag", "image": "image"},
    "the rule for a has no value for: untagged": {
        "path": "a",
        "rule": "image-tag",
        "image": "image",
        "values": {},
    },
    "when of a is not a map": {"path": "a", "value": 1, "when": "b"},
    "when of a needs either in or notIn": {"path": "a", "value": 1, "when": {"sibling": "b"}},
    "in is not a list": {"path": "a", "value": 1, "when": {"sibling": "b", "in": 1}},
}


@pytest.mark.parametrize("said", RULES)
def test_a_broken_rule_is_refused(said: str) -> None:
    table = {**TABLE, "podSpec": [RULES[said]]}
    with pytest.raises(ValueError, match=re.escape(f"the server-default table: {said}")):
        ServerDefaults.parse(table)


@pytest.mark.parametrize(
    "table, said",
    [
        (None, "what was given is not a map"),
        ({}, "kinds is not a map"),
        ({**TABLE, "server": 1.37}, "server is not text: 1.37"),
        ({**TABLE, "podSpec": {}}, "podSpec is not a list: {}"),
        ({**TABLE, "kinds": {"Pod": {"podSpec": 1}}}, "podSpec is not text: 1"),
    ],
)
def test_a_broken_table_is_refused(table: Any, said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(f"the server-default table: {said}")):
        ServerDefaults.parse(table)
