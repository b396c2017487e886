"""The JSON Schema: what the parser accepts is valid, what it refuses by name or type is not."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from tests.convert.test_convert import (
    CONTEXT,
    EACH_POLICY_FILE,
    document,
    policies_in,
    policy_files,
)
from tools import own_crds
from tools.schemas.all import schemas_of_all
from tools.schemas.definitions import definitions
from tools.schemas.forms import sentence
from webhook.cli.schema import complete, references
from webhook.documents.source import SourceDocument
from webhook.policy import rules, values
from webhook.policy.catalogue import GROUPS
from webhook.policy.leaves import leaf_type
from webhook.policy.policy_document import parse_policy
from webhook.policy.table import TABLE
from webhook.sources.files import read_all

ROOT = Path(__file__).resolve().parent.parent.parent
KINDS = (
    "ClusterWorkloadPolicy",
    "WorkloadPolicy",
    "bare",
    "api",
    "WorkloadAsset",
    "WorkloadProfile",
    "PolicyException",
    "ResourceInterface",
    "Karta",
)


@lru_cache
def printed(kind: str = "") -> dict[str, Any]:
    """The schema of one kind, or of all."""
    schemas, more = schemas_of_all()
    known = {**definitions(), **more}
    return complete({kind: schemas[kind]} if kind else schemas, known, kind or "all")


@lru_cache
def validator(kind: str = "") -> Draft202012Validator:
    """What judges documents of a kind, or of any."""
    return Draft202012Validator(printed(kind))


def valid(data: Any, kind: str = "") -> bool:
    """Whether a document is valid."""
    return bool(validator(kind).is_valid(data))


def test_every_kind_has_a_schema_that_is_one() -> None:
    assert tuple(schemas_of_all()[0]) == KINDS
    for kind in ("", *KINDS):
        Draft202012Validator.check_schema(printed(kind))
        assert not references(printed(kind)) - set(printed(kind)["$defs"])


def shipped() -> list[SourceDocument]:
    """Every document of ours in this repository."""
    names = ("policies/assets", "policies/system.yaml", "policies/workloads", "tests/e2e/policies")
    found, problems = read_all([str(ROOT / name) for name in names])
    assert not problems
    return found


def test_shipped_documents_are_valid() -> None:
    for each in shipped():
        assert valid(each.data), list(validator(each.data["kind"]).iter_errors(each.data))


@EACH_POLICY_FILE
def test_policies_that_load_are_valid(file: Path) -> None:
    for given in policies_in(file):
        assert valid(given.data), list(validator().iter_errors(given.data))


def nested(path: str, value: Any) -> dict[str, Any]:
    """A value below the sections of its dotted name."""
    for step in reversed(path.split(".")):
        value = {step: value}
    assert isinstance(value, dict)
    return value


LEAVES = [
    *((path, path) for path, row in TABLE.fields.items() if row.items is None),
    *(
        (f"{row.path}.attributes.{attribute.name}", path)
        for path, (row, attribute) in TABLE.attributes.items()
    ),
]
ARGUMENTS: dict[str, Any] = {
    "boolean": True,
    "number": 1,
    "options": [{"value": "a", "displayed": "A"}, "b"],
    "keys": ["a"],
    "source": {"field": "compute.cpuCoreLimit", "factor": 0.5},
}


def argument(path: str, rule: str) -> Any:
    """An argument that fits a rule of a leaf."""
    leaf, kind = leaf_type(path), rules.TABLE[rule].argument
    if kind == "options" and leaf.enum:
        return [{"value": leaf.enum[0]}]
    if kind == "options" and leaf.codec in (values.AMOUNT_TEXT, values.FILE_MODE):
        return [{"value": "0644"}]
    return ARGUMENTS.get(kind, "1Gi" if leaf.value == "quantity" else 1)


def test_a_field_in_the_cluster_takes_a_map_below_rules_and_anything_below_defaults() -> None:
    for name in ("image", "command"):
        rule, default = (
            own_crds.section(each, "")["properties"][name] for each in ("rules", "defaults")
        )
        assert (rule["type"], default.get("type")) == ("object", None)
        assert rule["description"] == default["description"]


def test_the_name_of_a_kind_may_be_one_letter() -> None:
    head = f"{OF_OURS}\nkind: ClusterWorkloadPolicy\nmetadata: {{name: a}}\n"
    text = f"{head}spec: {{kinds: [{{group: example.com, kind: X}}], rules: {{image: {{required: true}}}}}}"
    assert parse_policy(document(text), CONTEXT)[0] is not None
    assert valid(document(text).data)


def test_commands_may_be_lists_and_other_texts_may_not() -> None:
    for name in ("command", "args"):
        assert valid({"defaults": {name: "sh -c 'sleep 1'"}})
        assert valid({"defaults": {name: ["sh", "-c", "sleep 1"]}})
    assert not valid({"defaults": {"image": ["registry.example.com/web:1"]}})


@pytest.mark.parametrize("place, path", LEAVES)
def test_each_leaf_takes_its_rules_and_no_others(place: str, path: str) -> None:
    legal = leaf_type(path).legal
    for rule in rules.TABLE:
        given = {"rules": nested(place, {rule: argument(path, rule)})}
        assert valid(given) == (rule in legal), (place, rule)
    assert not valid({"rules": nested(place, {"wibble": 1})})


@pytest.mark.parametrize("alias, name", sorted(TABLE.aliases.items()))
def test_other_spellings_are_valid_and_deprecated(alias: str, name: str) -> None:
    row = TABLE.owner(name)
    samples = {"boolean": True, "quantity": "1Gi", "array": ["1"], "object": {}}
    if leaf_type(name).codec is values.FILE_MODE:
        samples["string"] = "0644"
    value = (
        leaf_type(name).enum[0] if leaf_type(name).enum else samples.get(leaf_type(name).value, "1")
    )
    if row.items is None:
        assert valid({"defaults": nested(alias, value)})
    elif name != row.path:
        alias = alias.removeprefix(f"{row.path}.")
        assert valid({"defaults": nested(row.path, {"instances": [nested(alias, value)]})})
    else:
        assert valid({"rules": nested(alias, {"instances": {"canAdd": False}})})
    assert "deprecated" in json.dumps(printed())


OF_OURS = "apiVersion: podgate.dev/v1alpha1"
BAD = {
    "an unknown field": "rules: {compute: {gpus: {max: 1}}}",
    "an unknown rule": "rules: {image: {maximum: 1}}",
    "a rule of another type": "rules: {image: {min: 1}}",
    "a value of another type": "defaults: {backoffLimit: many}",
    "a list for a number": "defaults: {backoffLimit: [1]}",
    "a value outside the enum": "defaults: {imagePullPolicy: Sometimes}",
    "an option outside the enum": "rules: {imagePullPolicy: {options: [{value: Sometimes}]}}",
    "no options": "rules: {image: {options: []}}",
    "a quantity that is none": "rules: {compute: {cpuMemoryRequest: {max: 4GB}}}",
    "a field without root": "compute: {gpuDevicesRequest: {max: 1}}",
    "rules that are a list": "rules: []",
    "nothing": "{}",
    "items without instances": "defaults: {storage: {nfs: [{name: a}]}}",
    "an unknown attribute": "defaults: {storage: {nfs: {instances: [{wibble: a}]}}}",
    "canEdit on items": "rules: {storage: {nfs: {instances: {canEdit: false}}}}",
    "an amount that is none": "rules: {storage: {emptyDirVolume: {attributes: "
    "{sizeLimit: {max: 4GB}}}}}",
    "a file mode that is none": "defaults: {storage: {configMapVolume: {attributes: "
    "{defaultMode: '0999'}}}}",
    "half a reference": "defaults: {environmentVariables: {instances: "
    "[{name: A, secret: {name: a}}]}}",
    "a word outside the enum of an attribute": "rules: {ports: {attributes: "
    "{serviceType: {options: [Headless]}}}}",
    "attribute defaults where there are none": "defaults: {labels: {attributes: {value: a}}}",
    "a field below another role": "defaults: {master: {numWorkers: 1}}",
    "an envelope without name": f"{OF_OURS}\nkind: ClusterWorkloadPolicy\nmetadata: {{}}\nspec: {{}}",
    "another version": "apiVersion: podgate.dev/v2\nkind: WorkloadPolicy\n"
    "metadata: {name: a, namespace: b}\nspec: {}",
    "a scope of namespaced policies": f"{OF_OURS}\nkind: WorkloadPolicy\n"
    "metadata: {name: a, namespace: b}\nspec: {scope: cluster}",
    "a kind without a name": f"{OF_OURS}\nkind: ClusterWorkloadPolicy\nmetadata: {{name: a}}\n"
    "spec: {kinds: [{kind: ''}]}",
    "an unknown scope": f"{OF_OURS}\nkind: ClusterWorkloadPolicy\n"
    "metadata: {name: a}\nspec: {scope: galaxy}",
    "types and kinds": f"{OF_OURS}\nkind: ClusterWorkloadPolicy\nmetadata: {{name: a}}\n"
    "spec: {workloadTypes: [training], kinds: [{kind: Pod}]}",
    "a department without selector": f"{OF_OURS}\nkind: ClusterWorkloadPolicy\n"
    "metadata: {name: a}\nspec: {scope: department}",
    "an unknown member": f"{OF_OURS}\nkind: ClusterWorkloadPolicy\n"
    "metadata: {name: a}\nspec: {enforce: true}",
    "the API without scope": "meta: {name: a}\npolicy: {rules: {}}",
}


@pytest.mark.parametrize("text", BAD.values(), ids=BAD)
def test_policies_that_the_parser_refuses_are_invalid(text: str) -> None:
    policy, problems = parse_policy(document(text), CONTEXT)
    assert (policy is None and problems) or text == "{}"
    assert not valid(document(text).data)


@pytest.mark.parametrize(
    "text",
    [
        "meta: {id: a, kind: nfs}\nspec: {server: a, path: b, wibble: c}",
        "meta: {id: a, kind: tape}\nspec: {}",
        "meta: {kind: nfs}\nspec: {}",
        "meta: {id: a, kind: nfs}\nspec: {name: a}",
    ],
)
def test_assets_that_are_invalid(text: str) -> None:
    assert not valid(yaml.safe_load(text))


def test_profiles_and_interfaces() -> None:
    found = {each.data["kind"]: each.data for each in shipped()}
    profile = json.loads(json.dumps(found["WorkloadProfile"]))
    assert valid(profile, "WorkloadProfile")
    profile["spec"]["openSubtrees"] = ".spec.x"
    profile["spec"]["workloadType"] = None
    assert valid(profile, "WorkloadProfile")
    profile["spec"]["wibble"] = 1
    assert not valid(profile, "WorkloadProfile")
    interface = json.loads(json.dumps(found["ResourceInterface"]))
    interface["spec"]["wibble"] = 1
    assert valid(interface, "ResourceInterface")
    karta = {**interface, "apiVersion": "run.ai/v1alpha1", "kind": "Karta"}
    assert valid(karta)
    del interface["spec"]["structureDefinition"]
    assert not valid(interface)


def test_exceptions() -> None:
    rule = {"field": "scale.replicas", "rule": "max", "value": 4}
    named = {"group": "apps", "kind": "Deployment", "namespace": "team", "name": "web"}
    spec = {"until": "2026-12-01T00:00:00Z", "objects": [named], "rules": [rule]}
    data = {
        "apiVersion": "podgate.dev/v1alpha1",
        "kind": "PolicyException",
        "metadata": {"name": "big"},
        "spec": spec,
    }
    assert valid(data)
    for wrong in (
        {"until": "tomorrow"},
        {"rules": []},
        {"wibble": 1},
        {"objects": [{"name": "w"}]},
    ):
        assert not valid({**data, "spec": {**spec, **wrong}}), wrong


def test_leaves_are_described() -> None:
    found = printed("bare")["$defs"]
    for name in TABLE.fields:
        for section in ("defaults", "rules"):
            one = found[f"{section}.{name}"]
            described = one.get("description") or one["anyOf"][0]["description"]
            assert described.endswith(".")
    for path, (row, attribute) in TABLE.attributes.items():
        leaf = found[f"defaults.{row.path}.attributes"]
        for step in attribute.name.split("."):
            leaf = leaf["properties"][step]
        assert leaf["description"] == sentence(attribute.note), path


def test_groups_are_described() -> None:
    found = printed("bare")["$defs"]
    for path, text in GROUPS.items():
        below = found["rules:component"]
        steps = path.split(".")
        if path in ("master", "worker", "leader", "imposedAssets") or ".git." in path:
            continue
        if path.startswith("storage.pvc"):
            below, steps = found["rules.storage.pvc.attributes"], steps[2:]
        for step in steps:
            below = below["properties"][step]
        assert below["description"] == text


def check_jsonschema(folder: Path, *files: Path) -> int:
    """The exit code of the tool that editors and CI use."""
    place = folder / "schema.json"
    place.write_text(json.dumps(printed()))
    command = [
        sys.executable,
        "-m",
        "check_jsonschema",
        "--schemafile",
        str(place),
        *map(str, files),
    ]
    return subprocess.run(command, capture_output=True, check=False).returncode


def test_check_jsonschema_agrees(tmp_path: Path) -> None:
    good = []
    every = (each for file in policy_files() for each in policies_in(file))
    for index, each in enumerate([*shipped(), *every]):
        good.append(tmp_path / f"good-{index}.json")
        good[-1].write_text(json.dumps(each.data))
    bad = tmp_path / "bad.yaml"
    bad.write_text(BAD["an unknown field"])
    assert check_jsonschema(tmp_path, *good) == 0
    assert check_jsonschema(tmp_path, bad) == 1
