"""Fields of the workload as a whole: notations, places that depend on others, roles."""

from __future__ import annotations

import copy
import json
from fractions import Fraction
from typing import Any, get_args

import pytest

from tests import building
from tests.decision.test_scale import scaled
from tests.definitions import shipped
from webhook.catalog.plan import compile_plan, component_roles
from webhook.decision.decide import decide
from webhook.evaluation.outcome import Allowed, Denied
from webhook.evaluation.references import References
from webhook.evaluation.request import Request
from webhook.fields import notation
from webhook.fields.notation import PathValue, form_of
from webhook.interface.profile import Notation as Written
from webhook.policy import values
from webhook.policy.combine import STRICTEST
from webhook.policy.table import TABLE

KIND = {"group": "models.example.com", "version": "v1", "kind": "Model"}
INTERFACE = {
    "apiVersion": "optimization.nvidia.com/v1alpha1",
    "kind": "ResourceInterface",
    "metadata": {"name": "model.models.example.com"},
    "spec": {
        "structureDefinition": {
            "rootComponent": {
                "name": "server",
                "kind": KIND,
                "statusDefinition": {"statusMappings": {}},
                "specDefinition": {"podTemplateSpecPath": ".spec.template"},
                "scaleDefinition": {"replicasPath": ".spec.replicas"},
            }
        }
    },
}
MODES = ("readWriteOnce", "readOnlyMany", "readWriteMany")
CLAIM = "modelStore.pvc.claimInfo.accessModes"
FIELDS: dict[str, Any] = {
    "servingPort.exposeExternally": {
        "places": [".spec.ingress.enabled", ".spec.router.ingress", ".spec.router.gateway"],
        "write": ".spec.ingress.enabled",
        "as": "anyTrue",
    },
    "servingPort.exposedProtocol": {
        "places": [".spec.gateway.httpRoutesEnabled", ".spec.gateway.grpcRoutesEnabled"],
        "write": [".spec.gateway.httpRoutesEnabled", ".spec.gateway.grpcRoutesEnabled"],
        "onlyWith": ".spec.gateway",
        "as": "enabledRoute",
    },
    "replicas": {"places": [".spec.replicas"], "notWith": ".spec.scale.enabled"},
    **{
        f"{CLAIM}.{mode}": {
            "places": [".spec.mode"],
            "as": f"accessMode:{mode[0].upper()}{mode[1:]}",
        }
        for mode in MODES
    },
}
PROFILE = {
    "apiVersion": "podgate.dev/v1alpha1",
    "kind": "WorkloadProfile",
    "metadata": {"name": "model.models.example.com"},
    "spec": {
        "group": KIND["group"],
        "kind": KIND["kind"],
        "versions": [KIND["version"]],
        "resource": "models",
        "workloadType": "nimService",
        "components": {"server": {"role": "worker"}},
        "fields": FIELDS,
    },
}


def judged(policy: str, **spec: Any) -> Any:
    """The decision on a new Model with this spec."""
    pod = building.template(building.pod_spec(terminationGracePeriodSeconds=30))
    model = building.shell("models.example.com/v1", "Model", {"template": pod, **spec})
    catalog = building.catalog(copy.deepcopy(INTERFACE), copy.deepcopy(PROFILE), policy)
    request = Request(**KIND, operation="CREATE", namespace="team", object=model)
    return decide(request, catalog, References())


def changes(decision: Any) -> dict[str, Any]:
    """What was written, by place below the spec."""
    assert isinstance(decision, Allowed), decision
    return {".".join(map(str, each.path[1:])): each.value for each in decision.changes}


def violated(decision: Any) -> list[tuple[str, str]]:
    """Fields and rules that are broken."""
    assert isinstance(decision, Denied), decision
    return [(each.field, each.rule) for each in decision.violations]


def warned(decision: Any) -> list[tuple[str, str]]:
    """What is told without a refusal."""
    return [(each.field, each.reason) for each in decision.warnings]


def test_every_word_of_the_schema_has_a_notation() -> None:
    assert set(get_args(Written)) == set(notation.TABLE)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30s", 30),
        ("1m30s", 90),
        ("1.5h", 5400),
        ("1h1m1s", 3661),
        ("1500ms", Fraction(3, 2)),
        ("0", 0),
        ("-5s", -5),
        (".5m", 30),
    ],
)
def test_durations_are_exact(text: str, seconds: Any) -> None:
    assert notation.parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "30", "s", "1 m", "1m30", "1d", "٣s", 30, None, [], "1s" * 40]
)
def test_what_is_no_duration(text: Any) -> None:
    with pytest.raises(ValueError, match="duration"):
        notation.parse_duration(text)


@pytest.mark.parametrize(
    ("codec", "words", "value", "native"),
    [
        (values.INTEGER, ["text"], 3, "3"),
        (values.BOOLEAN, ["text"], True, "true"),
        (values.INTEGER, ["duration"], 90, "90s"),
        (values.INTEGER, ["plusOne"], 3, 4),
        (values.INTEGER, ["text", "unlimitedZero"], 0, "0"),
        (values.BOOLEAN, ["clusterLocal"], True, "cluster-local"),
        (values.BOOLEAN, ["accessMode:ReadWriteMany"], True, "ReadWriteMany"),
        (values.STRING, ["metricName"], "throughput", "rps"),
        (values.STRING, ["metricName"], "cpu", "cpu"),
        (values.BOOLEAN, ["anyTrue"], False, False),
    ],
)
def test_notations_read_what_they_write(
    codec: values.Codec, words: list[str], value: Any, native: Any
) -> None:
    form = form_of(codec, words)
    assert form.codec.write(value, value) == native
    assert form.codec.read(native) == value


def test_a_number_without_source_text_is_written_from_its_value() -> None:
    nano = values.NUMBER.parse("62.5", None)
    assert form_of(values.NUMBER, ["text"]).codec.write(nano, None) == "62.5"


@pytest.mark.parametrize(
    ("rules", "action"),
    [
        ([], None),
        (7, None),
        ([None, 7, {"onPodConditions": 7}, {"onPodConditions": [7]}], None),
        ([{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}], "Ignore"),
        ([{"action": "FailJob", "onPodConditions": [{"type": "Other"}]}], None),
        (
            [
                {
                    "action": "FailJob",
                    "onPodConditions": [{"type": "DisruptionTarget", "status": "False"}],
                }
            ],
            None,
        ),
    ],
)
def test_the_first_rule_on_disruptions_counts(rules: Any, action: str | None) -> None:
    assert notation.disruption_action(rules) == action


def test_one_of_several_switches_is_enough() -> None:
    path_values = [PathValue(("a",), False), PathValue(("b",), {}), PathValue(("c",), None)]
    assert notation.any_true(path_values) == [path_values[1]]
    assert notation.any_true([path_values[0], path_values[2]]) == [path_values[0]]
    assert notation.any_true([path_values[2]]) == [path_values[2]]


EXPOSED = "servingPort.exposeExternally"


@pytest.mark.parametrize(
    "spec",
    [{"ingress": {"enabled": True}}, {"router": {"gateway": {}}}, {"router": {"ingress": {}}}],
)
def test_exposure_by_any_switch_breaks_a_fixed_false(spec: dict[str, Any]) -> None:
    policy = """
        defaults: {servingPort: {exposeExternally: false}}
        rules: {servingPort: {exposeExternally: {canEdit: false}}}
    """
    assert violated(judged(policy, **spec)) == [(EXPOSED, "canEdit")]
    assert changes(judged(policy, ingress={"enabled": False})) == {}


def test_exposure_by_another_switch_needs_no_default() -> None:
    policy = "{defaults: {servingPort: {exposeExternally: true}}}"
    assert changes(judged(policy)) == {"ingress.enabled": True}
    assert changes(judged(policy, router={"gateway": {}})) == {}
    assert changes(judged(policy, ingress={"enabled": False})) == {}


def test_the_protocol_is_the_route_that_is_on() -> None:
    policy = """
        defaults: {servingPort: {exposedProtocol: grpc}}
        rules: {servingPort: {exposedProtocol: {options: [grpc]}}}
    """
    assert changes(judged(policy, gateway={})) == {
        "gateway.grpcRoutesEnabled": True,
        "gateway.httpRoutesEnabled": False,
    }
    assert changes(judged(policy, gateway={"grpcRoutesEnabled": True})) == {}
    both = {"grpcRoutesEnabled": True, "httpRoutesEnabled": True}
    assert violated(judged(policy, gateway=both)) == [("servingPort.exposedProtocol", "options")]
    told = judged(policy)
    assert changes(told) == {}
    assert ("servingPort.exposedProtocol", "forbidden-default") in warned(told)


def modes(body: str) -> str:
    """A policy on access modes."""
    return f"{{rules: {{modelStore: {{pvc: {{claimInfo: {{accessModes: {{{body}}}}}}}}}}}}}"


@pytest.mark.parametrize("rule", ["canEdit: false", "blocked: true"])
def test_a_forbidden_access_mode_leaves_the_others(rule: str) -> None:
    policy = modes(f"readWriteMany: {{{rule}}}")
    assert changes(judged(policy, mode="ReadWriteOnce")) == {}
    assert violated(judged(policy, mode="ReadWriteMany")) == [
        (f"{CLAIM}.readWriteMany", rule.partition(":")[0])
    ]


def test_an_access_mode_is_written_once() -> None:
    said = "{readWriteOnce: true, readWriteMany: false}"
    body = f"{{defaults: {{modelStore: {{pvc: {{claimInfo: {{accessModes: {said}}}}}}}}}}}"
    assert changes(judged(body)) == {"mode": "ReadWriteOnce"}
    assert changes(judged(body, mode="ReadOnlyMany")) == {}


def test_a_fixed_access_mode() -> None:
    body = (
        "{defaults: {modelStore: {pvc: {claimInfo: {accessModes: {readWriteOnce: true}}}}}, "
        + modes("readWriteOnce: {canEdit: false}")[1:]
    )
    assert violated(judged(body, mode="ReadOnlyMany")) == [(f"{CLAIM}.readWriteOnce", "canEdit")]


def test_no_default_beside_what_replaces_it() -> None:
    policy = "{defaults: {replicas: 2}}"
    assert changes(judged(policy)) == {"replicas": 2}
    assert changes(judged(policy, scale={"enabled": False})) == {"replicas": 2}
    assert changes(judged(policy, scale={"enabled": True})) == {}
    assert changes(judged(policy, replicas=0)) == {}


def test_what_nothing_carries_is_told_once_and_refuses_nothing() -> None:
    policy = (
        "{defaults: {modelStore: {pvc: {path: /models}}}, "
        "rules: {modelStore: {pvc: {path: {canEdit: false, required: true, options: [/models]}}}}}"
    )
    decision = judged(policy)
    assert changes(decision) == {}
    assert warned(decision) == [("modelStore.pvc.path", "not-enforceable")]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "leaderworkerset.leaderworkerset.x-k8s.io",
            [("leader", ("leader",)), ("worker", ("worker",)), ("worker", ("leader", "worker"))],
        ),
        ("deployment.apps", [("deployment", ("worker",))]),
    ],
)
def test_all_roles_are_known_in_advance(name: str, expected: list[Any]) -> None:
    assert component_roles(shipped(name)) == expected


def test_a_predictor_may_lead() -> None:
    definition = shipped("inferenceservice.serving.kserve.io")
    pairs = component_roles(definition)
    assert {("predictor", ("leader",)), ("predictor", ("worker",))} <= set(pairs)
    assert set(compile_plan((), definition).pods) == set(pairs)


def test_nothing_is_required_that_a_kind_forbids() -> None:
    """Nobody could meet it: each such field of each profile gets a warning instead."""
    known = [one for each in building.catalog().definitions.values() for one in each]
    forbidden = {
        one.field: building.policy(nested(one.field), one.field.lower())
        for each in known
        for one in each.profile.forbidden_fields
        if one.field in TABLE.fields and "required" in TABLE.fields[one.field].legal_rules
    }
    rules = building.catalog(*forbidden.values())
    seen: set[str] = set()
    for definition in (each for each in known if each.profile.forbidden_fields):
        plan = compile_plan(rules.policies, definition)
        for one in definition.profile.forbidden_fields:
            for pair in component_roles(definition) if one.field in forbidden else ():
                final = [each for each in plan.pod(*pair).final if each.row.path == one.field]
                assert not any(each.rules.required for each in final)
                seen.add(one.field)
    assert len(seen) > 10


def nested(path: str) -> str:
    """The body of a policy that requires a field, as YAML."""
    found: Any = {"required": True}
    for step in reversed(("rules", *path.split("."))):
        found = {step: found}
    return json.dumps(found)


@pytest.mark.parametrize(
    ("policy", "missing"),
    [
        ("defaults: {worker: {maxReplicas: 3}}", "maxReplicas"),
        ("defaults: {worker: {minReplicas: 4}}", "minReplicas"),
        ("defaults: {worker: {maxReplicas: 9}}", ""),
        ("defaults: {worker: {minReplicas: 1}}", ""),
        ("rules: {worker: {minReplicas: {max: 9}}}", ""),
        ("rules: {worker: {maxReplicas: {required: true}}}", ""),
    ],
)
def test_bounds_that_disagree_are_told_with_the_policy_that_speaks_of_them(
    policy: str, missing: str
) -> None:
    body = building.pytorchjob(workers=4)
    body["spec"]["elasticPolicy"] = {"minReplicas": 4, "maxReplicas": 3}
    body["spec"]["elasticPolicy"].pop(missing, None)
    decision = building.mutated(building.catalog(policy), body)
    assert isinstance(decision, Denied)
    assert [each.source and each.source.policy for each in decision.violations] == ["rules-0"]


def test_of_several_maxima_the_least_bounds_a_scale_review() -> None:
    """Eight pods of one GPU at most cannot be too many, whatever else is allowed."""
    for cluster, tenant in ((1, 2), (2, 1)):
        rules = [
            building.policy(
                f"rules: {{compute: {{gpuDevicesRequest: {{max: {most}}}}}}}", scope, scope
            )
            for scope, most in (("cluster", cluster), ("tenant", tenant))
        ]
        rules.append(building.policy("rules: {total: {gpuDevices: {max: 8}}}", "total"))
        decision = scaled(building.catalog(*rules, combination=STRICTEST), 8, 1)
        assert isinstance(decision, Allowed)
        assert decision.warnings == ()
