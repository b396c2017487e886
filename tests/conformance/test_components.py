"""C and F: components over a stub that reads and writes, and the object that binds them."""
# ruff: noqa: N802 - tests bear the ids of the conformance list

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tests.conformance.fixtures import bound, evaluator, pyflow, pyflow_spec, spec_of
from webhook.access.component import Access, Form, Replicas
from webhook.access.errors import AccessError, NotDefinedError
from webhook.access.object import Bound, BoundComponent, Instance, bind, has_pods
from webhook.access.status import Condition, Status
from webhook.interface.document import ComponentModel
from webhook.jq.expressions import JqError

CAUSE = AccessError("stub", "the stub fails")


class Stub(Access):
    """Gives what it was told to give; an error is raised, what is missing is not defined."""

    def __init__(self, **given: Any) -> None:
        self.given = given
        self.written: list[tuple[Form, list[Any]]] = []

    def get(self, name: str) -> Any:
        if name not in self.given:
            raise NotDefinedError("test-component", name)
        if isinstance(self.given[name], Exception):
            raise self.given[name]
        return self.given[name]

    @property
    def document(self) -> Any:
        return self.get("document")

    def ids(self, model: ComponentModel) -> list[str]:
        found: list[str] = self.get("ids")
        return found

    def values(self, model: ComponentModel, form: Form) -> list[Any]:
        found: list[Any] = self.get(form)
        return found

    def status(self, model: ComponentModel) -> Status:
        found: Status = self.get("status")
        return found

    def write(self, model: ComponentModel, form: Form, values: Sequence[Any]) -> None:
        if "writer" in self.given:
            raise self.given["writer"]
        self.written.append((form, list(values)))

    def assign(self, text: str, value: Any) -> None:
        raise AssertionError


SELECTOR = {"componentTypeSelector": {"keyPath": ".metadata.labels.role", "value": "worker"}}


def component(keys: Any = None, **given: Any) -> BoundComponent:
    model = ComponentModel.model_validate({"name": "test-component", **(keys or {})})
    return BoundComponent(model, Stub(**given))


def test_C1_its_name() -> None:
    assert component().name == "test-component"


def test_C2_its_definition() -> None:
    model = ComponentModel.model_validate({"name": "test-component"})
    assert BoundComponent(model, Stub()).definition is model


def test_C3_its_kind() -> None:
    kind = {"group": "apps", "version": "v1", "kind": "Deployment"}
    assert component({"kind": kind}).kind == ("apps", "v1", "Deployment")


def test_C4_no_kind() -> None:
    assert component().kind is None


def test_C5_its_pod_selector() -> None:
    found = component({"podSelector": SELECTOR}).pod_selector
    assert found is not None
    assert found.component_type_selector is not None
    by_type = found.component_type_selector
    assert (by_type.key_path, by_type.value) == (".metadata.labels.role", "worker")


def test_C6_no_pod_selector() -> None:
    assert component().pod_selector is None


FRAGMENTS = {"fragmentedPodSpecDefinition": {"imagePath": ".a"}}


@pytest.mark.parametrize(
    "keys, expected",
    [
        pytest.param({"specDefinition": {"podTemplateSpecPath": ".a"}}, True, id="C7"),
        pytest.param({"specDefinition": {"podSpecPath": ".a"}}, True, id="C8"),
        pytest.param({"specDefinition": FRAGMENTS}, True, id="C9"),
        pytest.param({"specDefinition": {}}, False, id="C10"),
        pytest.param({"specDefinition": {"metadataPath": ".a"}}, False, id="C10-metadata"),
        pytest.param({}, False, id="C11"),
    ],
)
def test_whether_it_defines_pods(keys: Any, expected: bool) -> None:
    assert component(keys).defines_pods is expected


def test_C12_C13_whether_it_names_instances() -> None:
    assert component({"instanceIdPath": ".a[].name"}).is_many
    assert not component().is_many


IDS = ["job-1", "job-2"]


def test_C14_ids_as_they_are_read() -> None:
    assert component(ids=IDS).instance_ids() == IDS


def test_C15_without_a_path_there_is_one_id() -> None:
    assert component().instance_ids() == [""]


def test_C16_ids_that_cannot_be_read() -> None:
    with pytest.raises(AccessError) as error:
        component(ids=CAUSE).instance_ids()
    assert error.value.reasons == ("ids-failed", "stub")


def test_C17_templates_are_paired_in_order() -> None:
    assert component(ids=IDS, template=[{"a": 1}, {"a": 2}]).templates() == {
        "job-1": {"a": 1},
        "job-2": {"a": 2},
    }


def test_C18_one_template_without_a_name() -> None:
    assert component(template=[{"a": 1}]).templates() == {"": {"a": 1}}


def test_C19_templates_without_ids() -> None:
    with pytest.raises(AccessError) as error:
        component(ids=CAUSE, template=[{}]).templates()
    assert error.value.reasons == ("ids-failed", "stub")


def test_C20_templates_that_cannot_be_read() -> None:
    with pytest.raises(AccessError) as error:
        component(ids=IDS, template=JqError("no")).templates()
    assert error.value.reasons == ("values-failed", "path-failed")
    assert error.value.facts == {"form": "template"}


def test_C21_no_template_definition() -> None:
    assert component(ids=IDS).templates() is None


def test_C22_counts_differ() -> None:
    with pytest.raises(AccessError) as error:
        component(ids=IDS, template=[{}]).templates()
    assert error.value.reason == "count-mismatch"
    assert error.value.facts == {"ids": 2, "values": 1}


def test_C23_scales_are_paired() -> None:
    found = component(ids=["worker-1", "worker-2"], scale=[Replicas(1), Replicas(2)]).scales()
    assert found == {"worker-1": Replicas(1), "worker-2": Replicas(2)}


@pytest.mark.parametrize(
    "form, read",
    [
        pytest.param("spec", BoundComponent.pod_specs, id="C24"),
        pytest.param("metadata", BoundComponent.metadata, id="C25"),
        pytest.param("fragments", BoundComponent.fragments, id="C26"),
    ],
)
def test_other_forms_are_paired(form: Form, read: Callable[[BoundComponent], Any]) -> None:
    found = component(ids=IDS, **{form: [{"a": 1}, {"a": 2}]})
    assert read(found) == {"job-1": {"a": 1}, "job-2": {"a": 2}}


def test_C27_its_status() -> None:
    status = Status("running", (Condition("Ready", "True", "", "fine"),), ("Running",))
    assert component(status=status).status() == status


def test_C28_no_status_definition() -> None:
    assert component().status() is None


def test_C29_a_status_that_cannot_be_read() -> None:
    with pytest.raises(AccessError) as error:
        component(status=CAUSE).status()
    assert "stub" in error.value.reasons


def test_C30_an_empty_status_is_undefined() -> None:
    found = component(status=Status()).status()
    assert found is not None
    assert (found.matching, found.state) == (("Undefined",), "Undefined")


TWO = [{"a": 1}, {"a": 2}]
ALL: dict[str, Any] = {
    "ids": IDS,
    "template": TWO,
    "spec": TWO,
    "fragments": TWO,
    "metadata": TWO,
    "scale": [Replicas(3), Replicas(5)],
}


def test_C31_instances_with_all_that_they_have() -> None:
    one, two = component(**ALL).instances()
    first, second = TWO
    assert one == Instance("job-1", first, first, first, first, Replicas(3))
    assert two == Instance("job-2", second, second, second, second, Replicas(5))


def test_C32_what_is_not_defined_is_absent() -> None:
    given = {key: ALL[key] for key in ("ids", "template", "scale")}
    one, _ = component(**given).instances()
    assert one == Instance("job-1", {"a": 1}, scale=Replicas(3))


def test_C33_instances_without_ids() -> None:
    with pytest.raises(AccessError) as error:
        component(**{**ALL, "ids": CAUSE}).instances()
    assert error.value.reasons == ("instances-failed", "ids-failed", "stub")


@pytest.mark.parametrize(
    "form",
    [
        pytest.param("template", id="C34"),
        pytest.param("spec", id="C35"),
        pytest.param("fragments", id="C36"),
        pytest.param("metadata", id="C37"),
        pytest.param("scale", id="C38"),
    ],
)
def test_one_form_that_fails_fails_all(form: Form) -> None:
    with pytest.raises(AccessError) as error:
        component(**{**ALL, form: CAUSE}).instances()
    assert error.value.reasons == ("instances-failed", "values-failed", "stub")
    assert error.value.facts == {"form": form}


def for_each(first: int) -> pytest.MarkDecorator:
    """The four forms with their ids, five rows apart."""
    forms = ("template", "spec", "metadata", "fragments")
    return pytest.mark.parametrize(
        "form", [pytest.param(each, id=f"C{first + 5 * at}") for at, each in enumerate(forms)]
    )


@for_each(39)
def test_values_are_handed_on_in_order(form: Form) -> None:
    found = component(ids=IDS)
    found.update(form, {"job-2": {"a": 2}, "other": {}, "job-1": {"a": 1}})
    assert isinstance(found.access, Stub)
    assert found.access.written == [(form, [{"a": 1}, {"a": 2}])]


@for_each(40)
def test_one_value_without_a_name(form: Form) -> None:
    found = component()
    found.update(form, {"": {"a": 1}})
    assert isinstance(found.access, Stub)
    assert found.access.written == [(form, [{"a": 1}])]


@for_each(41)
def test_ids_fail_before_anything_is_written(form: Form) -> None:
    with pytest.raises(AccessError) as error:
        component(ids=CAUSE).update(form, {})
    assert error.value.reasons == ("ids-failed", "stub")


@for_each(42)
def test_every_instance_needs_its_value(form: Form) -> None:
    found = component(ids=IDS)
    with pytest.raises(AccessError) as error:
        found.update(form, {"job-1": {}})
    assert error.value.reason == "value-missing"
    assert error.value.facts == {"id": "job-2", "form": form}
    assert isinstance(found.access, Stub)
    assert found.access.written == []


@for_each(43)
def test_the_error_of_the_writer_is_told_unchanged(form: Form) -> None:
    with pytest.raises(AccessError) as error:
        component(ids=IDS, writer=CAUSE).update(form, {"job-1": {}, "job-2": {}})
    assert error.value is CAUSE


def test_F1_the_root() -> None:
    assert bound(pyflow_spec(), pyflow()).root.name == "pyflow"


def test_F2_children_by_name() -> None:
    found = bound(pyflow_spec(), pyflow())
    assert [found.component(each).name for each in ("master", "worker")] == ["master", "worker"]


def test_F3_an_unknown_component() -> None:
    with pytest.raises(AccessError, match="non-existent") as error:
        bound(pyflow_spec(), pyflow()).component("non-existent")
    assert error.value.reason == "component-unknown"


def test_F4_no_definition() -> None:
    with pytest.raises(AccessError) as error:
        _ = bind(None, pyflow(), evaluator(), "parity").root
    assert error.value.reason == "no-definition"


def test_F5_components_share_what_is_written() -> None:
    found = bound(pyflow_spec(), pyflow())
    one, other = found.component("master"), found.component("master")
    one.update("template", {"": {"metadata": {}, "spec": {"schedulerName": "x"}}})
    templates = other.templates()
    assert templates is not None
    assert templates[""]["spec"] == {"schedulerName": "x"}


def test_F6_children() -> None:
    found = bound(pyflow_spec(), pyflow())
    assert list(found.children) == ["master", "worker"]
    assert list(found.children_of("pyflow")) == ["master", "worker"]
    assert found.children_of("master") == {}


def test_F7_children_without_a_definition() -> None:
    with pytest.raises(AccessError) as error:
        _ = bind(None, pyflow(), evaluator(), "parity").children
    assert error.value.reason == "no-definition"


def test_F8_the_object_after_an_update() -> None:
    found = bound(pyflow_spec(), pyflow())
    found.component("worker").update("template", {"": {"spec": {"schedulerName": "x"}}})
    expected = pyflow()
    expected["spec"]["worker"]["template"] = {"spec": {"schedulerName": "x"}}
    assert found.document == expected


def test_F9_the_object_cannot_be_had() -> None:
    with pytest.raises(AccessError) as error:
        _ = Bound(pyflow_spec(), Stub(document=CAUSE), {}).document
    assert error.value.reasons == ("document-failed", "stub")


@pytest.mark.parametrize(
    "document, missing",
    [
        pytest.param({"kind": "X", "metadata": {"name": "x"}}, ["apiVersion"], id="F10-version"),
        pytest.param({"apiVersion": "v1", "metadata": {"name": "x"}}, ["kind"], id="F10-kind"),
        pytest.param(
            {"apiVersion": "v1", "kind": "X", "metadata": {}}, ["metadata.name"], id="F10-name"
        ),
        pytest.param("text", ["apiVersion", "kind", "metadata.name"], id="F10-text"),
    ],
)
def test_the_result_is_an_object_of_kubernetes(document: Any, missing: list[str]) -> None:
    with pytest.raises(AccessError) as error:
        _ = Bound(pyflow_spec(), Stub(document=document), {}).document
    assert error.value.reason == "not-an-object"
    assert error.value.facts == {"missing": missing}


def child(**paths: Any) -> dict[str, Any]:
    return {"name": "child", "ownerRef": "root", "specDefinition": paths}


@pytest.mark.parametrize(
    "root, children, expected",
    [
        pytest.param({}, [child(podTemplateSpecPath=".a")], True, id="F11"),
        pytest.param({}, [child(podSpecPath=".a")], True, id="F12"),
        pytest.param({}, [child(**FRAGMENTS)], True, id="F13"),
        pytest.param({"specDefinition": {"podSpecPath": ".a"}}, [], True, id="F14"),
        pytest.param({}, [{"name": "child", "ownerRef": "root"}], False, id="F15"),
        pytest.param({"specDefinition": {}}, [child()], False, id="F16"),
    ],
)
def test_whether_anything_defines_pods(root: Any, children: list[Any], expected: bool) -> None:
    assert has_pods(spec_of({"name": "root", **root}, *children)) is expected
