"""The CustomResourceDefinitions of resource interfaces say what the model that reads them says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.definitions import POLICIES
from tools import definition_crd
from webhook.access.status import EVALUATED
from webhook.cli.crds import step_for, why_left
from webhook.documents.model import Model
from webhook.interface import document
from webhook.interface.document import InterfaceSpec
from webhook.interface.interface import ENVELOPES
from webhook.sources.files import read_all

Schema = dict[str, Any]
LISTS = {"atomic", "set", "map"}


def nodes(schema: Schema, at: str = "") -> Iterator[tuple[str, Schema]]:
    """Every schema inside a schema, with its place."""
    yield at, schema
    for key, each in schema.get("properties", {}).items():
        yield from nodes(each, f"{at}.{key}")
    if "items" in schema:
        yield from nodes(schema["items"], f"{at}[]")


def versions() -> Iterator[Schema]:
    for each in definition_crd.definitions():
        (version,) = each["spec"]["versions"]
        yield version["schema"]["openAPIV3Schema"]


def test_both_kinds_that_are_read_have_a_definition() -> None:
    named = {
        (f"{each['spec']['group']}/v1alpha1", each["spec"]["names"]["kind"])
        for each in definition_crd.definitions()
    }
    assert named == set(ENVELOPES)
    for each in definition_crd.definitions():
        names = each["spec"]["names"]
        assert each["metadata"]["name"] == f"{names['plural']}.{each['spec']['group']}"
        assert each["spec"]["scope"] == "Cluster"


def test_every_list_says_how_it_is_merged_and_every_map_what_it_is() -> None:
    for schema in versions():
        for at, each in nodes(schema):
            if each.get("type") == "array":
                assert each.get("x-kubernetes-list-type") in LISTS, at
            if at != ".metadata" and not at.endswith("[]"):
                assert each.get("description"), at
            assert "$ref" not in each, at
            assert "anyOf" not in each, at
            open_end = each.get("x-kubernetes-preserve-unknown-fields")
            assert each.get("type") or open_end, f"{at} is not structural"


def test_every_entry_of_the_tables_is_a_property_of_the_model() -> None:
    for name, key in definition_crd.MORE:
        model = getattr(document, name)
        assert key in {each.alias for each in model.model_fields.values()}, (name, key)
    for name, keys in definition_crd.REQUIRED.items():
        model = getattr(document, name)
        assert set(keys) <= {each.alias for each in model.model_fields.values()}, name
    assert set(definition_crd.STATES) == {each.casefold() for each in EVALUATED}


def test_the_keys_of_merged_lists_are_required_in_their_items() -> None:
    for schema in versions():
        for at, each in nodes(schema):
            keys = each.get("x-kubernetes-list-map-keys", [])
            assert set(keys) <= set(each.get("items", {}).get("required", [])), at


def test_every_field_of_the_model_is_in_the_schema() -> None:
    def names(model: type[Model]) -> set[str]:
        return {str(each.alias) for each in model.model_fields.values()}

    spec = definition_crd.spec()
    assert set(spec["properties"]) == names(InterfaceSpec)
    structure = spec["properties"]["structureDefinition"]["properties"]
    component = structure["rootComponent"]["properties"]
    assert set(component) == names(document.ComponentModel)
    assert (
        component["statusDefinition"]["properties"]["conditionsDefinition"]["properties"][
            "reasonFieldName"
        ]["default"]
        == "reason"
    )


@pytest.mark.parametrize("key", ["componentName", "groupByKeyPaths", "filters"])
def test_members_of_groups_keep_their_lists_apart(key: str) -> None:
    gang = definition_crd.spec()["properties"]["optimizationInstructions"]["properties"]
    groups = gang["gangScheduling"]["properties"]["podGroups"]
    members = groups["items"]["properties"]["members"]
    assert members["x-kubernetes-list-map-keys"] == ["componentName"]
    assert key in members["items"]["properties"]


def unknown(data: Any, schema: Schema, at: str) -> Iterator[str]:
    """What a strict API server would call unknown or missing."""
    if isinstance(data, dict) and "properties" in schema:
        yield from (f"{at}.{key} missing" for key in schema.get("required", ()) if key not in data)
        for key, each in data.items():
            if key not in schema["properties"]:
                yield f"{at}.{key} unknown"
            else:
                yield from unknown(each, schema["properties"][key], f"{at}.{key}")
    if isinstance(data, list):
        keys = schema.get("x-kubernetes-list-map-keys")
        if keys:
            ids = [tuple(each.get(key) for key in keys) for each in data]
            yield from (f"{at} has {each} twice" for each in set(ids) if ids.count(each) > 1)
        for index, each in enumerate(data):
            yield from unknown(each, schema.get("items", {}), f"{at}[{index}]")


def test_the_shipped_definitions_fit_the_schema() -> None:
    schema = definition_crd.spec()
    documents, _ = read_all([str(POLICIES)])
    shipped = [each for each in documents if each.data["kind"] == "ResourceInterface"]
    assert len(shipped) > 40
    # Fields that the server's own defaults fill in are not missing.
    found = [
        fault
        for each in shipped
        for fault in unknown(each.data["spec"], schema, each.data["metadata"]["name"])
        if not fault.endswith(("FieldName missing",))
    ]
    assert not found


LABELLED = {"metadata": {"labels": {"podgate.dev/provided": "true"}}}
OWNERS = {"metadata": {}, "spec": {"versions": [{"name": "v1alpha1", "served": True}]}}
LATER = {"spec": {"versions": [{"name": "v1", "served": True}, {"name": "v1alpha1"}]}}


def test_only_what_podgate_brought_is_changed_in_a_cluster() -> None:
    assert step_for(None) == "create"
    assert step_for(LABELLED) == "update"
    assert step_for(OWNERS) == "leave"
    assert step_for({"metadata": {"labels": {"podgate.dev/provided": "no"}}}) == "leave"


def test_a_definition_without_our_version_is_told() -> None:
    assert why_left(OWNERS).endswith("so it is its owner's")
    assert "it serves v1, podgate reads v1alpha1 only" in why_left(LATER)
