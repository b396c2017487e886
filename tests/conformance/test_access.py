"""A: what components give and take, read and written as upstream's accessor does."""
# ruff: noqa: N802 - tests bear the ids of the conformance list

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.conformance.fixtures import (
    bound,
    evaluator,
    jobgroup,
    jobgroup_spec,
    pyflow,
    pyflow_spec,
    reactor,
    reactor_spec,
)
from webhook.access.component import Form, Replicas
from webhook.access.errors import AccessError, NotDefinedError
from webhook.access.status import Condition, Status
from webhook.access.upstream_mode import ParityAccess
from webhook.interface.document import ComponentModel
from webhook.jq.expressions import JqSyntaxError

FIXTURES = {
    "pyflow": (pyflow_spec, pyflow),
    "master": (pyflow_spec, pyflow),
    "worker": (pyflow_spec, pyflow),
    "jobgroup": (jobgroup_spec, jobgroup),
    "job": (jobgroup_spec, jobgroup),
    "reactor": (reactor_spec, reactor),
    "service": (reactor_spec, reactor),
}


def given(name: str, document: Any = None) -> tuple[ComponentModel, ParityAccess]:
    """A component of a fixture with what reads it."""
    make, example = FIXTURES[name]
    found = bound(make(), document or example())
    assert isinstance(found.access, ParityAccess)
    return found.component(name).definition, found.access


def bare(**keys: Any) -> ComponentModel:
    """A component of nothing but these keys."""
    return ComponentModel.model_validate({"name": "bare", **keys})


def values(name: str, form: Form, document: Any = None) -> list[Any]:
    model, access = given(name, document)
    return access.values(model, form)


@pytest.mark.parametrize("name", [pytest.param("master", id="A1"), pytest.param("worker", id="A2")])
def test_a_template_is_read(name: str) -> None:
    (found,) = values(name, "template")
    assert found["metadata"]["labels"]["role"] == name
    assert [each["name"] for each in found["spec"]["containers"]] == ["trainer"]


@pytest.mark.parametrize(
    "name, form, part",
    [
        pytest.param("job", "template", "pod templates", id="A3"),
        pytest.param("service", "template", "pod templates", id="A4"),
        pytest.param("master", "spec", "pod specs", id="A6"),
        pytest.param("service", "spec", "pod specs", id="A7"),
        pytest.param("master", "metadata", "pod metadata", id="A9"),
        pytest.param("service", "metadata", "pod metadata", id="A10"),
        pytest.param("master", "fragments", "fragments", id="A12"),
        pytest.param("job", "fragments", "fragments", id="A13"),
    ],
)
def test_another_form_is_not_defined(name: str, form: Form, part: str) -> None:
    with pytest.raises(NotDefinedError) as error:
        values(name, form)
    assert error.value.facts == {"component": name, "part": part}


@pytest.mark.parametrize(
    "keys, form, part",
    [
        pytest.param({"specDefinition": {}}, "fragments", "fragments", id="A14"),
        pytest.param({}, "fragments", "specDefinition", id="A15"),
        pytest.param({}, "scale", "scales", id="A20"),
    ],
)
def test_what_a_component_lacks_is_named(keys: Any, form: Form, part: str) -> None:
    with pytest.raises(NotDefinedError) as error:
        given("master")[1].values(bare(**keys), form)
    assert error.value.facts["part"] == part


def test_A5_pod_specs_of_a_list() -> None:
    found = values("job", "spec")
    assert [each["containers"][0]["name"] for each in found] == ["indexer", "processor"]


def test_A8_metadata_of_a_list() -> None:
    labels = [each["labels"] for each in values("job", "metadata")]
    assert [each["role"] for each in labels] == ["indexer", "processor"]
    assert {each["app"] for each in labels} == {"jobgroup"}


def test_A11_fragments_of_a_map() -> None:
    services = reactor()["spec"]["services"]
    expected = []
    for name in ("api", "cache", "worker"):
        held = {**services[name], "container": services[name]["mainContainer"]}
        expected.append(
            {
                key: held[key]
                for key in ("labels", "annotations", "containers", "container", "resources")
                if key in held
            }
        )
    found = values("service", "fragments")
    assert found == expected
    assert "annotations" not in found[1]


@pytest.mark.parametrize(
    "name, expected",
    [
        pytest.param("master", [Replicas(1)], id="A16"),
        pytest.param("worker", [Replicas(None, 1, 5)], id="A17"),
        pytest.param("job", [Replicas(2), Replicas(3)], id="A18"),
        pytest.param(
            "service", [Replicas(3, 2, 10), Replicas(1, 1, 3), Replicas(5, 3, 20)], id="A19"
        ),
    ],
)
def test_a_scale_is_read(name: str, expected: list[Replicas]) -> None:
    assert values(name, "scale") == expected


def test_A21_a_template_of_texts_is_none() -> None:
    document = pyflow()
    document["spec"]["master"]["template"] = {"metadata": "text", "spec": "text"}
    with pytest.raises(AccessError) as error:
        values("master", "template", document)
    assert error.value.reason == "wrong-type"
    assert error.value.facts == {"index": 0, "what": "template"}


def test_A22_a_value_that_is_no_json_is_refused() -> None:
    endless: dict[str, Any] = {}
    endless["limits"] = endless
    document = reactor()
    document["spec"]["services"]["api"]["resources"] = endless
    with pytest.raises(AccessError) as error:
        values("service", "fragments", document)
    assert error.value.reason == "wrong-type"


def test_A23_ids_of_a_list() -> None:
    model, access = given("job")
    assert access.ids(model) == ["indexer", "processor"]


def test_A24_ids_of_a_map() -> None:
    model, access = given("service")
    assert access.ids(model) == ["api", "cache", "worker"]


def test_A25_ids_are_not_defined() -> None:
    model, access = given("master")
    with pytest.raises(NotDefinedError) as error:
        access.ids(model)
    assert error.value.facts["part"] == "instanceIdPath"


def test_A26_an_empty_id_is_refused() -> None:
    document = jobgroup()
    document["spec"]["replicatedJobs"][0]["name"] = ""
    model, access = given("job", document)
    with pytest.raises(AccessError, match=r"\[,processor\]") as error:
        access.ids(model)
    assert error.value.reason == "ids-empty"
    assert error.value.facts == {"ids": ["", "processor"]}


def condition(kind: str, status: Any = "True", **rest: str) -> dict[str, Any]:
    return {"type": kind, "status": status, **rest}


def status_of_pyflow(conditions: list[Any] | None, mappings: Any = None) -> Status:
    document = pyflow()
    if conditions is None:
        del document["status"]["conditions"]
    else:
        document["status"]["conditions"] = conditions
    found = bound(pyflow_spec(mappings), document).root.status()
    assert found is not None
    return found


def status_of_reactor(
    phase: str = "running", conditions: list[Any] | None = None, mappings: Any = None
) -> Status:
    document = reactor()
    document["status"]["phase"] = phase
    if conditions is not None:
        document["status"]["conditions"] = conditions
    found = bound(reactor_spec(mappings), document).root.status()
    assert found is not None
    return found


def test_A27_a_state_by_condition() -> None:
    found = status_of_pyflow([condition("Running")])
    assert found == Status(None, (Condition("Running", "True"),), ("Running",))


def test_A28_a_condition_that_no_state_knows() -> None:
    assert status_of_pyflow([condition("NotMatching")]).matching == ("Undefined",)


def test_A29_no_conditions() -> None:
    assert status_of_pyflow(None) == Status(None, (), ("Undefined",))


def test_A30_a_message_is_read() -> None:
    (found,) = status_of_reactor(conditions=[condition("Failed", message="why")]).conditions
    assert found == Condition("Failed", "True", "", "why")


def test_A31_a_reason_is_read() -> None:
    given_condition = condition("Failed", reason="OOMKilled", message="why")
    (found,) = status_of_reactor(conditions=[given_condition]).conditions
    assert found == Condition("Failed", "True", "OOMKilled", "why")


def test_A32_a_phase_is_read() -> None:
    assert status_of_reactor().phase == "running"


def test_A33_without_its_field_a_message_is_not_read() -> None:
    (found,) = status_of_pyflow([condition("Running", message="why", reason="r")]).conditions
    assert found == Condition("Running", "True", "", "")


def test_A34_a_phase_is_absent_without_a_path_and_empty_without_a_value() -> None:
    assert status_of_pyflow([]).phase is None
    document = reactor()
    del document["status"]["phase"]
    found = bound(reactor_spec(), document).root.status()
    assert found is not None
    assert found.phase == ""


RUN: dict[str, Any] = {"byPhase": "running"}
READY: dict[str, Any] = {"type": "Ready", "status": "True"}
NOT_FAILED: dict[str, Any] = {"type": "Failed", "status": "False"}
KILLED: dict[str, Any] = {"type": "Failed", "status": "True", "reason": "OOMKilled"}


def expression(text: str, expected: str = "true") -> dict[str, Any]:
    return {"byExpression": {"expression": text, "expectedResult": expected}}


def all_of(*conditions: Any) -> dict[str, Any]:
    return {"byConditions": list(conditions)}


COUNTED = {**RUN, **expression(".status.conditions | length > 0")}
IS_READY = expression(
    '.status.phase == "running" and '
    '(.status.conditions[] | select(.type == "Ready") | .status == "True")'
)
OOM = condition("Failed", reason="OOMKilled")
UNREADY = [{"type": "Ready", "status": "False"}, {"type": "Failed", "reason": "Error"}]


@pytest.mark.parametrize(
    "phase, conditions, mappings, expected",
    [
        pytest.param(
            "active",
            [],
            {"running": [RUN, {"byPhase": "active"}, all_of(READY)]},
            ["Running"],
            id="A35",
        ),
        pytest.param("running", None, None, ["Running"], id="A36"),
        pytest.param(
            "x",
            [condition("Initialized")],
            {"initializing": [all_of(condition("Initialized"))]},
            ["Initializing"],
            id="A37",
        ),
        pytest.param("running", None, {"running": [RUN]}, ["Running"], id="A38"),
        pytest.param("failed", None, {"failed": [{"byPhase": "failed"}]}, ["Failed"], id="A39"),
        pytest.param(
            "completed", None, {"completed": [{"byPhase": "completed"}]}, ["Completed"], id="A40"
        ),
        pytest.param(
            "degraded", None, {"degraded": [{"byPhase": "degraded"}]}, ["Degraded"], id="A41"
        ),
        pytest.param("unknown", None, None, ["Undefined"], id="A42"),
        pytest.param(
            "running",
            [READY, condition("Available", "False")],
            {"running": [{**RUN, **all_of(READY, condition("Available", "False"))}]},
            ["Running"],
            id="A43",
        ),
        pytest.param(
            "running",
            [condition("Ready", "False")],
            {"running": [{**RUN, **all_of(READY)}]},
            ["Undefined"],
            id="A44",
        ),
        pytest.param(
            "running",
            [READY],
            {"running": [RUN], "initializing": [all_of(READY)]},
            ["Running", "Initializing"],
            id="A45",
        ),
        pytest.param(
            "x", [READY], {"running": [all_of(READY, NOT_FAILED)]}, ["Undefined"], id="A46"
        ),
        pytest.param("x", [OOM], {"failed": [all_of(KILLED)]}, ["Failed"], id="A47"),
        pytest.param(
            "x",
            [condition("Failed", reason="Error")],
            {"failed": [all_of(KILLED)]},
            ["Undefined"],
            id="A48",
        ),
        pytest.param(
            "x", [condition("Failed")], {"failed": [all_of(KILLED)]}, ["Undefined"], id="A49"
        ),
        pytest.param("x", [OOM], {"failed": [all_of(condition("Failed"))]}, ["Failed"], id="A50"),
        pytest.param(
            "x",
            [condition("Ready", "False"), condition("Failed", reason="Error")],
            {"failed": [all_of(*UNREADY)]},
            ["Failed"],
            id="A51",
        ),
        pytest.param(
            "running",
            None,
            {"running": [expression(".status.phase", "running")]},
            ["Running"],
            id="A52",
        ),
        pytest.param(
            "running",
            None,
            {"failed": [expression('.status.phase == "failed"')]},
            ["Undefined"],
            id="A53",
        ),
        pytest.param("running", [READY], {"running": [IS_READY]}, ["Running"], id="A54"),
        pytest.param("running", [READY], {"running": [COUNTED]}, ["Running"], id="A55"),
        pytest.param("running", [], {"running": [COUNTED]}, ["Undefined"], id="A56"),
        pytest.param(
            "running",
            [READY],
            {"running": [{**COUNTED, **all_of(READY)}]},
            ["Running"],
            id="A57",
        ),
        pytest.param(
            "running",
            None,
            {"running": [expression(".status.nonExistentField")]},
            ["Undefined"],
            id="A58",
        ),
    ],
)
def test_states_that_match(
    phase: str, conditions: list[Any] | None, mappings: Any, expected: list[str]
) -> None:
    assert list(status_of_reactor(phase, conditions, mappings).matching) == expected


def test_A59_an_expression_that_is_no_jq_gives_no_status() -> None:
    with pytest.raises(AccessError) as error:
        status_of_reactor(mappings={"running": [expression(".status.phase ==")]})
    assert error.value.reasons == ("match-failed", "not-jq")


def test_A60_a_state_with_conditions_only() -> None:
    found = status_of_pyflow(
        [condition("Completed")], {"completed": [all_of(condition("Completed"))]}
    )
    assert found.matching == ("Completed",)


def test_A61_a_component_without_a_status() -> None:
    model, access = given("master")
    with pytest.raises(NotDefinedError) as error:
        access.status(model)
    assert error.value.facts["part"] == "status"


def status_of(**paths: Any) -> Status:
    model = bare(statusDefinition={"statusMappings": {}, **paths})
    return ParityAccess(reactor(), evaluator()).status(model)


def test_A62_a_phase_that_cannot_be_read() -> None:
    with pytest.raises(AccessError) as error:
        status_of(phaseDefinition={"path": ".status.phase.x"})
    assert error.value.reasons == ("phase-failed", "path-failed")


def test_A63_conditions_that_cannot_be_read() -> None:
    with pytest.raises(AccessError) as error:
        status_of(conditionsDefinition={"path": r".status.\.badConditions"})
    assert error.value.reasons == ("conditions-failed", "not-jq")


def test_A64_an_empty_status_is_told_from_an_absent_one() -> None:
    mappings = {"running": [all_of({"type": "Ready", "status": ""})]}
    empty = status_of_reactor(conditions=[condition("Ready", "")], mappings=mappings)
    assert empty.conditions[0].status == ""
    absent = status_of_reactor(conditions=[{"type": "Ready"}], mappings=mappings)
    assert absent.conditions[0].status is None
    assert absent.matching == empty.matching == ("Running",)


def claim(name: str) -> list[dict[str, str]]:
    return [{"name": name}]


def test_A65_pod_specs_are_replaced_per_instance() -> None:
    model, access = given("job")
    written = [
        {
            "containers": [{"name": f"updated-container-{index}"}],
            "resourceClaims": claim(f"updated-resource-claim-{index}"),
            "schedulerName": f"updated-scheduler-{index}",
        }
        for index in range(2)
    ]
    access.write(model, "spec", written)
    assert access.values(model, "spec") == written
    jobs = access.document["spec"]["replicatedJobs"]
    assert [each["spec"] for each in jobs] == written


def test_A66_containers_can_be_emptied() -> None:
    model, access = given("job")
    access.write(
        model, "spec", [{**each, "containers": []} for each in access.values(model, "spec")]
    )
    jobs = access.document["spec"]["replicatedJobs"]
    assert [each["spec"]["containers"] for each in jobs] == [[], []]


@pytest.mark.parametrize(
    "name, form",
    [
        pytest.param("master", "spec", id="A67"),
        pytest.param("master", "fragments", id="A70"),
        pytest.param("job", "template", id="A74"),
        pytest.param("master", "metadata", id="A76"),
    ],
)
def test_a_form_that_is_not_defined_cannot_be_written(name: str, form: Form) -> None:
    model, access = given(name)
    before = copy.deepcopy(access.document)
    with pytest.raises(NotDefinedError):
        access.write(model, form, [{}])
    assert access.document == before


def test_A68_fragments_are_replaced_per_instance() -> None:
    spec = reactor_spec(resourceClaimsPath="resourceClaims")
    found = bound(spec, reactor())
    model, access = found.component("service").definition, found.access
    written: list[Any] = [
        {
            "containers": [{"name": f"updated-{index}", "image": "x"}],
            "labels": {"updated": "true", "index": str(index)},
            "annotations": {"updated": "true"},
            "resourceClaims": claim(f"claim-{index}"),
        }
        for index in range(3)
    ]
    access.write(model, "fragments", written)
    services = access.document["spec"]["services"]
    for index, name in enumerate(("api", "cache", "worker")):
        for key, value in written[index].items():
            assert services[name][key] == value


def test_A69_one_fragment_is_written_and_the_others_stay() -> None:
    model, access = given("service")
    before = copy.deepcopy(access.document)
    read = access.values(model, "fragments")
    for index, each in enumerate(read):
        each["containers"] = [{"name": f"new-{index}", "image": "x"}]
    access.write(model, "fragments", read)
    for index, name in enumerate(("api", "cache", "worker")):
        after = access.document["spec"]["services"][name]
        assert after["containers"] == [{"name": f"new-{index}", "image": "x"}]
        assert after["labels"] == before["spec"]["services"][name]["labels"]


def test_A71_reading_and_writing_back_makes_no_null() -> None:
    document = reactor()
    for name in ("api", "worker"):
        held = document["spec"]["services"][name]
        document["spec"]["services"][name] = {
            "containers": held["containers"],
            "mainContainer": held["mainContainer"],
            "replicas": 1,
            "resources": {},
        }
    del document["spec"]["services"]["cache"]
    model, access = given("service", document)
    access.write(model, "fragments", access.values(model, "fragments"))
    assert access.document == document


def test_A72_a_template_is_replaced() -> None:
    model, access = given("master")
    (template,) = access.values(model, "template")
    template["spec"]["resourceClaims"] = claim("test-claim")
    access.write(model, "template", [template])
    assert access.document["spec"]["master"]["template"]["spec"]["resourceClaims"] == claim(
        "test-claim"
    )


def test_A73_labels_and_spec_of_a_template_are_replaced() -> None:
    model, access = given("worker")
    (template,) = access.values(model, "template")
    template["metadata"]["labels"]["updated"] = "true"
    template["spec"]["resourceClaims"] = claim("worker-claim")
    access.write(model, "template", [template])
    written = access.document["spec"]["worker"]["template"]
    assert written["metadata"]["labels"]["updated"] == "true"
    assert written["metadata"]["labels"]["role"] == "worker"
    assert written["spec"]["resourceClaims"] == claim("worker-claim")


def test_A75_metadata_is_replaced_per_instance() -> None:
    model, access = given("job")
    read = access.values(model, "metadata")
    for index, each in enumerate(read):
        each["labels"].update(updated="true", index=str(index))
        each["annotations"] = {"note": "yes"}
    access.write(model, "metadata", read)
    jobs = access.document["spec"]["replicatedJobs"]
    assert [each["metadata"] for each in jobs] == read
    assert [each["metadata"]["labels"]["index"] for each in jobs] == ["0", "1"]


def test_a_fragment_without_a_path_cannot_be_written() -> None:
    model, access = given("service")
    with pytest.raises(AccessError) as error:
        access.write(model, "fragments", [{"schedulerName": "x"}] * 3)
    assert error.value.reasons == ("fragment-failed", "path-missing")
    assert error.value.facts == {"name": "schedulerName"}


def test_a_path_that_is_no_jq_is_told_as_such() -> None:
    model = bare(specDefinition={"podSpecPath": ".a["})
    with pytest.raises(JqSyntaxError):
        given("master")[1].write(model, "spec", [{}])


def test_numbers_of_replicas_are_whole() -> None:
    for wrong in ("x", "2147483648", True, 1.5, 2**31, [1]):
        document = pyflow()
        document["spec"]["master"]["replicas"] = wrong
        with pytest.raises(AccessError) as error:
            values("master", "scale", document)
        assert error.value.reason == "wrong-type"
