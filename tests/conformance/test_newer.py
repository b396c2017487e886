"""N: what newer versions added, and where admission differs from parity on the same input."""
# ruff: noqa: N802 - tests bear the ids of the conformance list

from __future__ import annotations

import contextlib
import copy
from typing import Any

import pytest

from tests.conformance.fixtures import (
    bound,
    evaluator,
    pod,
    reactor,
    reactor_spec,
    spec_of,
)
from tests.definitions import base, document, reasons, root
from webhook.access.component import Replicas
from webhook.access.errors import AccessError
from webhook.access.object import Bound, BoundComponent
from webhook.access.status import Status
from webhook.interface.document import Mode, PodSelector
from webhook.interface.interface import parse_interface
from webhook.interface.jq_rules import fault_in

BOTH_MODES = pytest.mark.parametrize("mode", ["parity", "admission"])
SUSPEND = {
    "suspendActions": [{"path": ".spec.suspend", "value": "true"}],
    "resumeActions": [{"path": ".spec.suspend", "value": "false"}],
}


def of(mode: Mode, component: dict[str, Any], **body: Any) -> Bound:
    """An object with a component `x` as its root."""
    whole = {"apiVersion": "x/v1", "kind": "X", "metadata": {"name": "x"}, **body}
    return bound(spec_of({"name": "x", **component}), whole, mode)


def suspendable(mode: Mode, actions: Any = SUSPEND, **spec: Any) -> Bound:
    return of(mode, {"suspendDefinition": actions} if actions else {}, spec=spec)


@BOTH_MODES
def test_N1_suspend(mode: Mode) -> None:
    found = suspendable(mode, suspend=False)
    found.root.suspend()
    assert found.document["spec"] == {"suspend": True}
    assert found.patch == [{"op": "replace", "path": "/spec/suspend", "value": True}]


@BOTH_MODES
def test_N2_resume(mode: Mode) -> None:
    found = suspendable(mode, suspend=True)
    found.root.resume()
    assert found.document["spec"] == {"suspend": False}


@BOTH_MODES
def test_N3_suspend_twice(mode: Mode) -> None:
    found = suspendable(mode, suspend=False)
    found.root.suspend()
    once = copy.deepcopy(found.document)
    found.root.suspend()
    assert found.document == once


@BOTH_MODES
def test_N4_no_actions(mode: Mode) -> None:
    found = suspendable(mode, None, suspend=False)
    found.root.suspend()
    found.root.resume()
    assert found.patch == []


@BOTH_MODES
def test_N5_suspend_resume_suspend(mode: Mode) -> None:
    found = suspendable(mode)
    found.root.suspend()
    found.root.resume()
    found.root.suspend()
    assert found.document["spec"]["suspend"] is True


def actions(*pairs: tuple[str, Any]) -> dict[str, Any]:
    listed = [{"path": path, "value": value} for path, value in pairs]
    return {"suspendActions": listed, "resumeActions": listed}


@BOTH_MODES
def test_N6_actions_in_order(mode: Mode) -> None:
    both = actions((".spec.a", '{"b": 1}'), (".spec.a.b", "2"), (".spec.jobs[].stop", "true"))
    found = suspendable(mode, both, jobs=[{}, {"stop": False}])
    found.root.suspend()
    assert found.document["spec"] == {
        "a": {"b": 2},
        "jobs": [{"stop": True}, {"stop": True}],
    }


@BOTH_MODES
def test_N7_values_are_json_or_text_that_holds_json(mode: Mode) -> None:
    values = actions((".spec.a", '"Suspended"'), (".spec.b", "null"), (".spec.c", True))
    found = suspendable(mode, values, b=1)
    found.root.suspend()
    assert found.document["spec"] == {"a": "Suspended", "b": None, "c": True}


def status_of(mappings: Any, mode: Mode, **status: Any) -> Status:
    definition = {
        "phaseDefinition": {"path": ".status.phase"},
        "conditionsDefinition": {"path": ".status.conditions[]"},
        "statusMappings": mappings,
    }
    found = of(mode, {"statusDefinition": definition}, status=status).root.status()
    assert found is not None
    return found


@BOTH_MODES
def test_N8_the_newer_states_and_their_order(mode: Mode) -> None:
    names = ("suspending", "suspended", "resuming", "running", "degraded", "failed")
    every = status_of({name: [{}] for name in names}, mode, conditions=[])
    assert every.matching == (
        "Resuming",
        "Suspending",
        "Suspended",
        "Running",
        "Failed",
        "Degraded",
    )
    assert every.state == "Failed"
    later = status_of({name: [{}] for name in names[:5]}, mode, conditions=[])
    assert later.state == "Suspended"


def selected(labels: dict[str, str], mode: Mode = "parity", **selector: Any) -> bool:
    found = PodSelector.model_validate({"componentTypeSelector": selector})
    return pod({"metadata": {"labels": labels}}, mode).is_of_type(found)


def type_selector(**selector: Any) -> list[str]:
    data = base()
    root(data)["podSelector"] = {"componentTypeSelector": selector}
    return reasons(parse_interface(document(data))[1])


A, AB = {"a": "1"}, {"a": "1", "b": "2"}


@BOTH_MODES
def test_N9_a_key_path_alone(mode: Mode) -> None:
    assert type_selector(keyPath=".metadata.labels.a") == []
    assert selected(A, mode, keyPath=".metadata.labels.a")
    assert not selected({}, mode, keyPath=".metadata.labels.a")


@BOTH_MODES
def test_N10_labels_alone(mode: Mode) -> None:
    assert type_selector(matchLabels=AB) == []
    assert selected(AB, mode, matchLabels=AB)
    assert not selected(A, mode, matchLabels=AB)
    assert not selected({"a": "1", "b": "3"}, mode, matchLabels=AB)


@BOTH_MODES
def test_N11_both_must_hold(mode: Mode) -> None:
    both = {"matchLabels": A, "keyPath": ".metadata.labels.b", "value": "2"}
    assert type_selector(**both) == []
    assert selected(AB, mode, **both)
    assert not selected(A, mode, **both)
    assert not selected({"b": "2"}, mode, **both)


def test_N12_a_selector_of_nothing() -> None:
    assert type_selector() == ["selector-empty"]
    assert not selected(A)


def test_N13_a_value_without_a_key_path() -> None:
    assert type_selector(value="x", matchLabels=A) == ["selector-value"]


def test_N14_a_core_kind_has_no_group() -> None:
    data = base()
    root(data)["kind"] = {"group": "", "version": "v1", "kind": "Pod"}
    assert reasons(parse_interface(document(data))[1]) == []


def services(mode: Mode) -> tuple[Bound, BoundComponent]:
    """Two services of Reactor, of which the first has no labels."""
    whole = reactor()
    del whole["spec"]["services"]["cache"]
    del whole["spec"]["services"]["api"]["labels"]
    found = bound(reactor_spec(), whole, mode)
    return found, found.component("service")


def test_N20_W3_parity_writes_what_a_sibling_lacks() -> None:
    found, component = services("parity")
    read = component.fragments()
    assert read is not None
    read["worker"]["labels"] = {"new": "yes"}
    component.update("fragments", read)
    written = found.document["spec"]["services"]
    assert written["worker"]["labels"] == {"new": "yes"}
    assert written["api"]["labels"] is None


def test_N20_W3_admission_leaves_the_sibling_alone() -> None:
    found, component = services("admission")
    component.update("fragments", {"worker": {"labels": {"new": "yes"}}})
    assert found.patch
    assert all(each["path"].startswith("/spec/services/worker/labels") for each in found.patch)
    assert found.document["spec"]["services"]["worker"]["labels"] == {"new": "yes"}
    before = services("admission")[0].document["spec"]["services"]["api"]
    assert found.document["spec"]["services"]["api"] == before


NAMED: dict[str, Any] = {
    "instanceIdPath": ".a[].n",
    "scaleDefinition": {"replicasPath": ".a[].r // 1"},
}
ROWS = [{"n": "x"}, {"n": "y", "r": 2}]


def test_N21_W4_parity_pairs_by_position() -> None:
    with pytest.raises(AccessError) as error:
        of("parity", NAMED, a=ROWS).root.scales()
    assert error.value.reason == "count-mismatch"
    assert error.value.facts == {"ids": 2, "values": 1}


def test_N21_W4_admission_pairs_by_element() -> None:
    found = of("admission", NAMED, a=ROWS).root.scales()
    assert found == {"x": Replicas(1), "y": Replicas(2)}


def many(pods: str, ids: str) -> dict[str, Any]:
    return {"instanceIdPath": ids, "specDefinition": {"podSpecPath": pods}}


def test_N22_W4_ids_of_other_iterators_are_not_used() -> None:
    data = base()
    root(data).update(many(".spec.a[].pod", ".spec.b[].name"))
    root(data)["podSelector"] = {"componentInstanceSelector": {"idPath": ".metadata.name"}}
    del root(data)["scaleDefinition"]
    interface, problems = parse_interface(document(data))
    (problem,) = [each for each in problems if each.reason == "not-paired"]
    assert problem.severity == "warning"
    assert interface is not None
    assert interface.root.ids is None
    assert ".spec.a[].pod" in problem.found
    assert ".spec.b[].name" in problem.found
    with pytest.raises(AccessError):
        of("admission", many(".a[].pod", ".b[].name"), a=[{"pod": {}}], b=[]).root.pod_specs()


def test_N23_W5_an_absent_template() -> None:
    component = {"specDefinition": {"podTemplateSpecPath": ".spec.worker.template"}}
    assert of("parity", component).root.templates() == {"": {}}
    assert of("admission", component).root.templates() == {}


def test_N24_W5_an_absent_list() -> None:
    component = many(".spec.x[].pod", ".spec.x[].name")
    with pytest.raises(AccessError) as error:
        of("parity", component).root.pod_specs()
    assert error.value.reasons == ("values-failed", "path-failed")
    found = of("admission", component)
    assert found.root.pod_specs() == {}
    assert found.root.instance_ids() == []


def test_N25_W6_an_id_that_is_given_twice() -> None:
    rows = [{"n": "a", "pod": {"v": 1}}, {"n": "a", "pod": {"v": 2}}]
    component = many(".a[].pod", ".a[].n")
    assert of("parity", component, a=rows).root.pod_specs() == {"a": {"v": 2}}
    with pytest.raises(AccessError, match=r"a\[0\].n and at \.?a\[1\].n"):
        of("admission", component, a=rows).root.pod_specs()


COMPUTED = {"fragmentedPodSpecDefinition": {"resourcesPath": "{requests: .spec.resources}"}}


def test_N26_W7_what_is_computed_can_only_be_read() -> None:
    found = of("parity", {"specDefinition": COMPUTED}, spec={"resources": {"cpu": "1"}}).root
    read = found.fragments()
    assert read == {"": {"resources": {"requests": {"cpu": "1"}}}}
    with pytest.raises(AccessError) as error:
        found.update("fragments", read)
    assert error.value.reasons == ("fragment-failed", "not-a-place")
    data = base()
    root(data)["specDefinition"] = COMPUTED
    assert reasons(parse_interface(document(data), evaluator().compile_jq)[1]) == []


@pytest.mark.parametrize(
    "text, found",
    [
        pytest.param("(del(.x))", "del", id="N27-parentheses"),
        pytest.param("if . then del(.x) else . end", "del", id="N27-if"),
        pytest.param("[del(.x)]", "del", id="N27-list"),
        pytest.param('"\\(del(.x))"', "del", id="N27-text"),
        pytest.param("def f: del(.x); f", "def", id="N27-def"),
        pytest.param("gpu", "gpu", id="N28"),
        pytest.param("env", "env", id="N31-env"),
        pytest.param("$ENV", "$ENV", id="N31-variable"),
        pytest.param("input", "input", id="N31-input"),
        pytest.param("inputs", "inputs", id="N31-inputs"),
        pytest.param("input_line_number", "input_line_number", id="N31-line"),
        pytest.param("input_filename", "input_filename", id="N31-file"),
        pytest.param("debug", "debug", id="N31-debug"),
        pytest.param("stderr", "stderr", id="N31-stderr"),
        pytest.param("halt", "halt", id="N31-halt"),
        pytest.param('halt_error("x")', "halt_error", id="N31-halt_error"),
        pytest.param('import "a" as a; .', "import", id="N31-import"),
        pytest.param('include "a"; .', "include", id="N31-include"),
        pytest.param("$__loc__", "$__loc__", id="N31-loc"),
        pytest.param("now", "now", id="N31-now"),
        pytest.param("[until(. > 100; . + 1)]", "until", id="N31-until"),
        pytest.param("[while(true; .)]", "while", id="N31-while"),
        pytest.param("localtime", "localtime", id="N31-localtime"),
        pytest.param("delpaths([[0]])", "delpaths", id="N31-delpaths"),
        pytest.param("getpath(path(..))", "path", id="N31-path"),
    ],
)
def test_W14_what_is_forbidden_is_found_anywhere(text: str, found: str) -> None:
    fault = fault_in(text)
    assert fault is not None
    assert (fault.reason, fault.found) == ("forbidden-function", found)


@BOTH_MODES
def test_N29_W14_an_expected_result_is_text_and_never_code(mode: Mode) -> None:
    expected = 'x" or true or "'
    matcher = {"byExpression": {"expression": ".status.phase", "expectedResult": expected}}
    mappings = {"running": [matcher]}
    assert status_of(mappings, mode, phase="other", conditions=[]).state == "Undefined"
    assert status_of(mappings, mode, phase=expected, conditions=[]).state == "Running"


@pytest.mark.parametrize(
    "labels, parity, admission",
    [
        pytest.param({"b": "v"}, True, True, id="N30-b"),
        pytest.param({"a": "v"}, False, True, id="N30-a"),
        pytest.param({"a": "x", "b": "v"}, False, False, id="N30-both"),
    ],
)
def test_W15_a_value_beside_an_alternative(
    labels: dict[str, str], parity: bool, admission: bool
) -> None:
    selector = {"keyPath": ".metadata.labels.a // .metadata.labels.b", "value": "v"}
    assert selected(labels, "parity", **selector) is parity
    assert selected(labels, "admission", **selector) is admission


@pytest.mark.parametrize("ids", [".m | to_entries[] | .key", "[.m | to_entries[] | .key][]"])
def test_N32_objects_are_in_the_order_of_their_keys(ids: str) -> None:
    rows = {"b": {"pod": {"v": "b"}}, "a": {"pod": {"v": "a"}}}
    for pods in (".m[].pod", "[.m[].pod][]"):
        found = of("parity", many(pods, ids), m=rows).root.pod_specs()
        assert list((found or {}).items()) == [("a", {"v": "a"}), ("b", {"v": "b"})]


def test_N33_misspellings_are_read_and_told() -> None:
    data = base()
    child = data["spec"]["structureDefinition"]["childComponents"][0]
    child["ownerName"] = child.pop("ownerRef")
    child["specDefinition"]["metaDataPath"] = ".spec.worker.metadata"
    root(data)["specDefinition"] = {
        "fragmentedPodDefinition": {"imagePath": ".spec.image"},
        "specPath": ".spec",
    }
    root(data)["statusDefinition"]["statusMappings"] = {"running": {}}
    root(data)["referencedComponents"] = []
    interface, problems = parse_interface(document(data))
    assert interface is not None
    assert interface.components[1].owner == "root"
    assert interface.components[0].form == "fragments"
    assert reasons(problems) == []
    told = reasons(problems, "warning")
    assert told.count("misspelt-field") == 3
    assert told.count("unknown-field") == 2
    assert told.count("not-a-list") == 1


def test_N34_both_kinds_are_one_model() -> None:
    old = base()
    new = {**base(), "apiVersion": "run.ai/v1alpha1", "kind": "Karta"}
    one, other = (parse_interface(document(each))[0] for each in (old, new))
    assert one is not None
    assert other is not None
    assert one.spec == other.spec
    assert (one.group, one.version, one.kind) == (other.group, other.version, other.kind)


def test_admission_touches_nothing_that_a_value_does_not_name() -> None:
    whole = reactor()
    found = bound(reactor_spec(), whole, "admission")
    component = found.component("service")
    read = component.fragments()
    assert read is not None
    assert list(read) == ["api", "cache", "worker"]
    component.update("fragments", read)
    assert found.patch == []
    component.update("fragments", {"api": {"labels": None, "resources": {"limits": {"cpu": "9"}}}})
    component.update("scale", {"worker": Replicas(7)})
    assert found.original == whole == reactor()
    after = found.document["spec"]["services"]
    assert "labels" not in after["api"]
    assert after["api"]["resources"] == {"limits": {"cpu": "9"}}
    assert after["worker"]["replicas"] == 7
    assert component.scales() == {
        "api": Replicas(3, 2, 10),
        "cache": Replicas(1, 1, 3),
        "worker": Replicas(7, 3, 20),
    }
    assert [each.id for each in component.instances()] == ["api", "cache", "worker"]


@pytest.mark.parametrize("value", [None, 7, "x", [], [None], {"api": 7}, {"api": None}])
@BOTH_MODES
def test_odd_objects_fail_cleanly(value: Any, mode: Mode) -> None:
    whole = reactor()
    whole["spec"]["services"] = value
    found = bound(reactor_spec(), whole, mode)
    for read in (found.component("service").instances, found.root.status):
        with contextlib.suppress(AccessError):
            read()


def test_an_unknown_instance_cannot_be_written() -> None:
    component = bound(reactor_spec(), reactor(), "admission").component("service")
    with pytest.raises(AccessError) as error:
        component.update("fragments", {"nobody": {"image": "x"}})
    assert error.value.reason == "instance-unknown"
    with pytest.raises(AccessError) as error:
        component.update("fragments", {"api": {"image": "x"}})
    assert error.value.reason == "path-missing"


def test_without_jq_admission_follows_native_paths_only() -> None:
    component = of("admission", {"specDefinition": {"podSpecPath": "first(.a[])"}}, a=[{}]).root
    with pytest.raises(AccessError) as error:
        component.pod_specs()
    assert error.value.reason == "not-native"
