"""Pieces of pods in lists, in patches and in text: what the object says, where, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from tests.definitions import base, document, root
from tests.pods.test_parts import assign, program
from webhook.documents.source import SourceDocument
from webhook.interface.fragment import FragmentSpec
from webhook.interface.interface import parse_interface
from webhook.interface.profile_document import parse_profile
from webhook.interface.profile_forms import path_of_items
from webhook.objects.draft import Draft
from webhook.objects.path import Path
from webhook.pods.assemble import Assembler, FragmentPod, found_in, fragment_pod_at
from webhook.pods.assemblers.registry import ASSEMBLERS, FORMS_OF
from webhook.pods.definition import Definition
from webhook.pods.fragments import FragmentForm
from webhook.pods.locate import locate
from webhook.pods.location import FragmentLocation, LocationError
from webhook.pods.replicas import UNLIMITED, read_scales


class AllForms(Assembler):
    def own_forms(self) -> Mapping[str, FragmentForm]:
        return {name: form for each in ASSEMBLERS.values() for name, form in each.forms.items()}


ALL_FORMS = AllForms()
FIRST: Path = ("spec", "containers", 0)


def item(key: str, place: str, form: str = "same") -> FragmentSpec:
    return FragmentSpec((*FIRST, *key.split(".")) if key else FIRST, program(place), form, each=2)


PARTS = (
    item("", ".spec.tools[].run", "item"),
    item("", ".spec.more[].run", "item"),
    item("", '.spec.tools[].notes["patch"]', "overrides"),
    item("name", ".spec.tools[].name"),
    item("image", ".spec.tools[].run.image"),
    item("image", ".spec.more[].run.image"),
    item("resources.limits.cpu", ".spec.tools[].run.cpu"),
    item("ports", ".spec.tools[].run.endpoints", "told"),
    FragmentSpec((), program('.spec.notes["pod"]'), "overrides"),
    FragmentSpec(("spec", "containers"), program('.metadata.annotations["hooks"]'), "text"),
)


def made(document: Any) -> tuple[FragmentPod, dict[str, Any]]:
    parts = fragment_pod_at(PARTS, ALL_FORMS, (), found_in(PARTS, document, ()))
    assert parts is not None
    return parts, parts.settle(found_in(PARTS, document, ()))


def report(parts: FragmentPod, path: Path) -> Path:
    return FragmentLocation(parts, path).report


def tools(**more: Any) -> Any:
    volume = {"name": "disk", "volume": {}}
    first = {"name": "ide", "run": {"image": "a", "cpu": "2", "endpoints": [{"port": 1}]}}
    return {"spec": {"tools": [volume, first], "more": [{"run": {"image": "b"}}], **more}}


def test_each_element_of_a_list_is_a_container_and_others_are_none() -> None:
    _, pod = made(tools())
    assert pod["spec"]["containers"] == [
        {"name": "ide", "image": "a", "resources": {"limits": {"cpu": "2"}}},
        {"name": "spec.more[0].run", "image": "b"},
    ]


@pytest.mark.parametrize(
    ("inside", "outside"),
    [
        ((*FIRST, "image"), ("spec", "tools", 1, "run", "image")),
        ((*FIRST, "ports", 0), ("spec", "tools", 1, "run", "endpoints")),
        (("spec", "containers", 1, "image"), ("spec", "more", 0, "run", "image")),
        (("spec", "containers", 1, "command"), ("spec", "more", 0, "run")),
        ((*FIRST, "securityContext"), ("spec", "tools", 1, "notes", "patch", "securityContext")),
        (("spec", "hostNetwork"), ("spec", "notes", "pod", "spec", "hostNetwork")),
    ],
)
def test_what_is_in_an_item_has_its_place_in_the_element(inside: Path, outside: Path) -> None:
    parts, _ = made(tools())
    assert report(parts, inside) == outside


def test_writes_go_to_the_element_and_to_the_patch_over_it() -> None:
    document = tools()
    parts, _ = made(document)
    draft = Draft(document)
    assign(draft, parts, (*FIRST, "resources", "limits", "cpu"), "1")
    assign(draft, parts, (*FIRST, "securityContext", "privileged"), False)
    assign(draft, parts, (*FIRST, "ports"), [])
    assign(draft, parts, ("spec", "hostNetwork"), False)
    tool = draft.document["spec"]["tools"][1]
    assert tool["run"] == {"image": "a", "cpu": "1", "endpoints": [{"port": 1}]}
    assert tool["notes"] == {"patch": {"securityContext": {"privileged": False}}}
    assert draft.document["spec"]["notes"] == {"pod": {"spec": {"hostNetwork": False}}}


PATCH = {
    "spec": {"hostPID": True, "tolerations": [{"key": "a"}], "securityContext": {"runAsUser": 0}}
}


def test_a_patch_over_the_pod_is_part_of_it() -> None:
    parts, pod = made(tools(notes={"pod": PATCH}))
    assert {key: pod["spec"][key] for key in PATCH["spec"]} == PATCH["spec"]
    at = ("spec", "securityContext", "runAsUser")
    assert report(parts, at) == ("spec", "notes", "pod", *at)
    assert report(parts, ("spec", "tolerations", 0)) == (
        *("spec", "notes", "pod", "spec", "tolerations"),
        0,
    )


def test_a_patch_that_is_text_is_read_and_never_written() -> None:
    document = tools(notes={"pod": json.dumps(PATCH)})
    parts, pod = made(document)
    assert pod["spec"]["hostPID"] is True
    draft = Draft(document)
    assign(draft, parts, ("spec", "hostNetwork"), False)
    assert draft.document == document
    assert report(parts, ("spec", "hostPID")) == ("spec", "notes", "pod")


def test_containers_that_a_patch_adds_are_among_the_others() -> None:
    patch = {"spec": {"containers": [{"name": "x", "image": "c"}]}}
    parts, pod = made(tools(notes={"pod": patch}))
    assert [each["image"] for each in pod["spec"]["containers"]] == ["a", "b", "c"]
    assert report(parts, ("spec", "containers", 2, "image")) == (
        *("spec", "notes", "pod", "spec", "containers"),
        *(0, "image"),
    )


def test_containers_in_text_are_among_the_others_and_cannot_be_written() -> None:
    text = json.dumps([{"image": "c", "args": ["-v"]}, {"configMap": {"name": "m"}}])
    document = {**tools(), "metadata": {"annotations": {"hooks": text}}}
    parts, pod = made(document)
    assert pod["spec"]["containers"][2:] == [
        {"name": "metadata.annotations.hooks[0]", "image": "c", "args": ["-v"]},
        {"name": "metadata.annotations.hooks[1]", "configMap": {"name": "m"}},
    ]
    draft = Draft(document)
    assign(draft, parts, ("spec", "containers", 2, "securityContext"), {})
    assert draft.document == document
    place = ("metadata", "annotations", "hooks")
    assert report(parts, ("spec", "containers", 2, "image")) == place


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ({"hooks": "[{"}, ("metadata", "annotations", "hooks")),
        ({"hooks": "{}"}, ("metadata", "annotations", "hooks")),
        ({"hooks": "[3]"}, ("metadata", "annotations", "hooks")),
        ({"hooks": "[" * 100_000}, ("metadata", "annotations", "hooks")),
        ({"hooks": '[{"Image": "a"}]'}, ("metadata", "annotations", "hooks")),
        ({"hooks": 7}, ("metadata", "annotations", "hooks")),
        ({"pod": "hostPID: true"}, ("spec", "notes", "pod")),
        ({"pod": [1]}, ("spec", "notes", "pod")),
        ({"pod": {"spec": "x"}}, ("spec", "notes", "pod")),
        (
            {"pod": {"spec": {"containers": {"a": 1}}}},
            ("spec", "notes", "pod", "spec", "containers"),
        ),
        ({"pod": {"spec": {"containers": 5}}}, ("spec", "notes", "pod", "spec", "containers")),
        ({"patch": 1}, ("spec", "tools", 1, "notes", "patch")),
    ],
)
def test_what_cannot_be_read_is_refused_at_its_place(text: dict[str, Any], place: Path) -> None:
    document = tools(notes={"pod": text.get("pod")})
    document["metadata"] = {"annotations": {"hooks": text.get("hooks")}}
    document["spec"]["tools"][1]["notes"] = {"patch": text.get("patch")}
    parts, _ = made(document)
    assert [each[0] for each in parts.refused] == [place]


def test_devices_by_name_are_counted_and_an_amount_holds_where_none_is_stated() -> None:
    limits = ("resources", "limits")
    parts = (
        FragmentSpec((*FIRST, "resources"), program(".spec.resources")),
        FragmentSpec((*FIRST, *limits), program(".spec.gpus"), "devices"),
        FragmentSpec((*FIRST, "resources", "requests", "memory"), program(".spec.guest"), "amount"),
    )
    gpus = [{"deviceName": "x/gpu"}, {"deviceName": "x/gpu"}, {"claimName": "c"}, 3]
    document: Any = {
        "spec": {"gpus": gpus, "guest": "2Gi", "resources": {"limits": {"x/gpu": "1"}}}
    }
    found = fragment_pod_at(parts, ALL_FORMS, (), found_in(parts, document, ()))
    assert found is not None
    (container,) = found.settle(found_in(parts, document, ()))["spec"]["containers"]
    assert container["resources"] == {"limits": {"x/gpu": 3}, "requests": {"memory": "2Gi"}}
    document["spec"]["resources"]["requests"] = {"memory": "1Gi"}
    (container,) = found.settle(found_in(parts, document, ()))["spec"]["containers"]
    assert container["resources"]["requests"] == {"memory": "1Gi"}
    found.settle(found_in(parts, {"spec": {"gpus": {"a": 1}}}, ()))
    assert [each[0] for each in found.refused] == [("spec", "gpus")]


@pytest.mark.parametrize(
    ("text", "path", "each"),
    [
        (".spec.containers[]", ("spec", "containers", 0), 2),
        (".spec.volumes[].hostPath.path", ("spec", "volumes", 0, "hostPath", "path"), 2),
        (".a[].b[]", (), None),
        (".[]", (), None),
        (".a[] | .b", (), None),
    ],
)
def test_a_place_of_the_pod_may_have_one_list(text: str, path: Path, each: int | None) -> None:
    assert path_of_items(text) == (path, each)


def test_a_container_outside_makes_a_pod_where_no_template_is() -> None:
    alone = bound(withoutTemplate=True)
    data = {"spec": {"daemon": {"image": "a"}}}
    (found,) = locate(alone, data)
    assert (found.spec_path, found.spec) == (("spec", "template", "spec"), {})
    assert [path for path, _ in found.extra] == [("spec", "daemon")]
    assert locate(alone, {"spec": {}}) == []
    with pytest.raises(LocationError, match=r"spec\.daemon"):
        locate(bound(), data)


def test_an_object_may_have_no_pods_for_a_while_or_pods_without_bound() -> None:
    scale = {
        "noneWhile": '.spec | select(.mode == "Off") | .mode',
        "unlimitedWhile": '.spec | select(.mode == "Everywhere") | .mode',
    }
    for mode, replicas, maximum in (
        ("On", 3, None),
        ("Off", 0, None),
        ("Everywhere", 3, UNLIMITED),
    ):
        (found,) = read_scales(bound(scale=scale), {"spec": {"mode": mode, "replicas": 3}})
        assert (found.replicas, found.maximum) == (replicas, maximum)


def bound(**component: Any) -> Definition:
    """A kind of one template with a container beside it."""
    data = base()
    del data["spec"]["structureDefinition"]["childComponents"]
    root(data)["specDefinition"] = {"podTemplateSpecPath": ".spec.template"}
    root(data)["scaleDefinition"] = {"replicasPath": ".spec.replicas"}
    data["spec"].pop("optimizationInstructions", None)
    interface, problems = parse_interface(document(data))
    assert interface is not None, problems
    spec = {
        "group": interface.group,
        "kind": interface.kind,
        "versions": ["v1"],
        "resource": "x",
        "components": {interface.components[0].name: component},
        "extraContainers": [{"component": interface.components[0].name, "place": ".spec.daemon"}],
    }
    text = {"apiVersion": "podgate.dev/v1alpha1", "kind": "WorkloadProfile", "spec": spec}
    profile, faults = parse_profile(document(text))
    assert profile is not None, faults
    return Definition(interface, profile)


@pytest.mark.parametrize(
    ("assembler", "form", "at", "fix"),
    [
        ("sparc", "same", "spec.assembler", "did you mean `spark`?"),
        ("", "imaje", "spec.podParts[1].form", "did you mean `image`?"),
        ("", "sparkDriver", "spec.podParts[1].form", "add `assembler: spark`"),
        ("spark", "sparkDriver", None, None),
    ],
)
def test_an_assembler_or_form_that_nobody_knows_is_told_with_its_line(
    assembler: str, form: str, at: str | None, fix: str | None
) -> None:
    rows = [
        {"component": "worker", "pod": ".spec.hostNetwork", "place": ".spec.host"},
        {"component": "worker", "pod": ".spec.dnsPolicy", "place": ".spec.dns", "form": form},
    ]
    body = {"group": "g", "kind": "K", "versions": ["v1"], "resource": "ks", "podParts": rows}
    head = {"apiVersion": "podgate.dev/v1alpha1", "kind": "WorkloadProfile"}
    lines = {("spec", "assembler"): (7, 3), ("spec", "podParts", 1, "form"): (9, 5)}
    source = SourceDocument(
        "p.yaml", 1, {**head, "spec": {**body, "assembler": assembler}}, lines, {}
    )
    profile, problems = parse_profile(source, FORMS_OF)
    found = [(each.path, each.fix, each.line) for each in problems]
    assert found == ([] if at is None else [(at, fix, 7 if at == "spec.assembler" else 9)])
    assert (profile is None) is bool(found)
