"""Conversion: what an old policy means today, what is told, and that nothing else changes."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from webhook.convert.generation_1_fields import ROWS, Successor
from webhook.convert.generation_1_fields import TABLE as OLD_FIELDS
from webhook.convert.policy import Conversion, convert
from webhook.documents.source import SourceDocument
from webhook.documents.yaml_source import read_documents
from webhook.policy.envelope import Context
from webhook.policy.policy_document import is_policy, parse_policy
from webhook.policy.table import TABLE as FIELDS

ROOT = Path(__file__).resolve().parent.parent.parent
CONTEXT = Context(namespace="team", scope_names={"4510": ("team-a",), "d1": ("x", "y")})
MARKER = "S3CRET"


def document(text: str) -> SourceDocument:
    """One document from text."""
    (found,), faults = read_documents(text, "given.yaml")
    assert not faults
    return found


def converted(text: str) -> Conversion:
    """The conversion of a text, whose result is a policy without errors."""
    result = convert(document(text), CONTEXT)
    if result.policy is not None:
        parsed, problems = parse_policy(document(yaml.safe_dump(result.policy)), CONTEXT)
        assert parsed is not None, problems
        assert not {each.reason for each in problems} & {"alias", "letter-case", "value-spelling"}
    return result


def v1(spec: str, kind: str = "TrainingPolicy", version: str = "v2alpha1") -> Conversion:
    """The conversion of an old policy with this spec."""
    head = f"apiVersion: run.ai/{version}\nkind: {kind}\nmetadata: {{name: p, namespace: runai}}\n"
    return converted(f"{head}spec: {spec}\n")


def body(result: Conversion, section: str) -> object:
    """A section of the converted policy."""
    assert result.policy is not None, result.problems
    return result.policy["spec"].get(section)


def told(result: Conversion) -> list[tuple[str, str]]:
    """Place and reason of everything that could not be expressed."""
    return [(each.path, each.reason) for each in result.losses]


EXAMPLE_24 = """
apiVersion: run.ai/v2alpha1
kind: TrainingPolicy
metadata: {name: limits, namespace: runai-vision}
spec:
  gpu: {rules: {required: true, min: "1", max: "3"}, value: "1"}
  ports:
    rules: {canAdd: true}
    itemRules: {container: {min: 31000, max: 31999}}
    items: {ssh: {rules: {canRemove: false, canEdit: false}, value: {container: 31022, external: 2222}}}
  pvcs:
    itemRules: {existingPvc: {canEdit: false}, claimName: {required: true}}
    items: {DEFAULTS: {value: {existingPvc: true}}}
"""


def test_the_worked_example_of_the_language() -> None:
    result = converted(EXAMPLE_24)
    assert result.policy is not None
    assert result.policy["kind"] == "WorkloadPolicy"
    assert result.policy["metadata"] == {"name": "limits", "namespace": "runai-vision"}
    spec = result.policy["spec"]
    assert spec["workloadTypes"] == ["training"]
    assert spec["defaults"]["compute"] == {"gpuDevicesRequest": 1}
    assert spec["rules"]["compute"] == {"gpuDevicesRequest": {"required": True, "min": 1, "max": 3}}
    losses = dict(told(result))
    port = {"name": "ssh", "container": 31022, "external": 2222}
    assert spec["rules"]["ports"]["instances"] == {"canAdd": True, "locked": ["ssh"]}
    assert spec["rules"]["ports"]["attributes"] == {"container": {"min": 31000, "max": 31999}}
    assert spec["defaults"]["ports"]["instances"] == [port]
    pvc = spec["rules"]["storage"]["pvc"]
    assert pvc == {"attributes": {"claimName": {"required": True}}}
    assert spec["defaults"]["storage"]["pvc"] == {"attributes": {"existingPvc": True}}
    assert losses == {"spec.pvcs.itemRules.existingPvc": "not-expressed"}


def test_text_where_a_map_belongs_is_told() -> None:
    assert told(v1("{usage: Template}")) == [("spec.usage", "not-expressed")]


def test_a_project_policy_replaced_the_global_one_which_is_told_but_is_no_loss() -> None:
    result = converted(EXAMPLE_24)
    assert "converted-choice" in {each.reason for each in result.problems}
    assert "converted-choice" not in {each.reason for each in result.losses}


@pytest.mark.parametrize(
    "kind, workload_type",
    [
        ("InteractivePolicy", "workspace"),
        ("TrainingPolicy", "training"),
        ("DistributedPolicy", "distributed"),
        ("InferencePolicy", "inference"),
        ("DeploymentPolicy", "inference"),
    ],
)
def test_kinds_become_workload_types(kind: str, workload_type: str) -> None:
    result = v1("{image: {value: a}}", kind)
    assert body(result, "workloadTypes") == [workload_type]
    assert body(result, "scope") == "cluster"
    assert not result.losses


def test_values_of_v1alpha1_nest_once_more() -> None:
    result = v1(
        "{gpu: {value: {value: '2'}}, environment: {items: {A: {value: {value: x}}}}}",
        version="v1alpha1",
    )
    assert body(result, "defaults") == {
        "environmentVariables": {"instances": [{"name": "A", "value": "x"}]},
        "compute": {"gpuDevicesRequest": 2},
    }
    assert not result.losses


def test_quoted_and_suffixed_numbers_become_numbers() -> None:
    result = v1("{cpu: {value: 1500m, rules: {max: '8'}}, memory: {rules: {max: 4Gi}}}")
    assert body(result, "defaults") == {"compute": {"cpuCoreRequest": 1.5}}
    assert body(result, "rules") == {
        "compute": {"cpuCoreRequest": {"max": 8}, "cpuMemoryRequest": {"max": "4Gi"}}
    }


def test_quoted_booleans_become_booleans_and_text_stays_text() -> None:
    result = v1("{image: {value: 'true'}, createHomeDir: {value: 'true'}, tty: {value: 'false'}}")
    assert body(result, "defaults") == {"image": "true", "createHomeDir": True, "tty": False}


def test_environment_variables_from_secrets() -> None:
    result = v1("{environment: {items: {A: {value: 'SECRET:store,word'}, B: {value: 0644}}}}")
    assert body(result, "defaults") == {
        "environmentVariables": {
            "instances": [
                {"name": "A", "secret": {"name": "store", "key": "word"}},
                {"name": "B", "value": "0644"},
            ]
        }
    }


def test_volumes_are_nfs_or_host_paths() -> None:
    result = v1(
        "{volumes: {rules: {canAdd: false}, itemRules: {nfsServer: {options: [{value: a}]}}, items:"
        " {x: {value: {path: /x, mountPath: /x, nfsServer: a}}, y: {value: {path: /y, mountPath:"
        " /y}}, DEFAULTS: {value: {readOnly: true, mountPropagation: None}}}}}"
    )
    defaults, rules = body(result, "defaults"), body(result, "rules")
    assert isinstance(defaults, dict)
    assert isinstance(rules, dict)
    nfs, host_path = defaults["storage"]["nfs"], defaults["storage"]["hostPath"]
    assert nfs["instances"] == [{"name": "x", "path": "/x", "mountPath": "/x", "server": "a"}]
    assert nfs["attributes"] == {"readOnly": True}
    assert [each["name"] for each in host_path["instances"]] == ["y"]
    assert host_path["attributes"] == {"readOnly": True, "mountPropagation": "None"}
    assert rules["storage"]["nfs"]["attributes"] == {"server": {"options": [{"value": "a"}]}}
    for field in ("nfs", "hostPath"):
        assert rules["storage"][field]["instances"] == {"canAdd": False}
    assert not result.losses


@pytest.mark.parametrize(
    "field, said, place, reason",
    [
        ("wibble", "value: 1", "", "not-expressed"),
        ("runPolicy", "value: {}", "", "not-expressed"),
        ("gpuLimit", "value: '2'", ".value", "not-expressed"),
        ("image", "value: a, rules: {min: 3}", ".rules.min", "not-expressed"),
        ("image", "value: a, items: {}", ".items", "not-expressed"),
        ("environment", "rules: {required: true}", ".rules.required", "not-expressed"),
        ("environment", "itemRules: {value: {min: 1}}", ".itemRules.value", "not-expressed"),
        ("environment", "items: {DEFAULTS: {value: x}}", ".items.DEFAULTS", "not-expressed"),
        ("environment", "items: {A: {value: 'SECRET:x'}}", ".items.A.value", "not-expressed"),
        (
            "environment",
            "items: {A: {rules: {canEdit: false}}}",
            ".items.A.rules",
            "converted-inexactly",
        ),
        (
            "volumes",
            "itemRules: {nfsServer: {required: true}}",
            ".itemRules.nfsServer.required",
            "converted-inexactly",
        ),
        (
            "tolerations",
            "items: {a: {value: {wibble: 1, key: b}}}",
            ".items.a.value.wibble",
            "not-expressed",
        ),
        ("tolerations", "items: {a: {value: x}}", ".items.a.value", "not-expressed"),
        ("backoffLimit", "value: 9, rules: {max: 6}", ".value", "not-expressed"),
        ("memory", "value: much", ".value", "not-expressed"),
        ("imagePullPolicy", "rules: {options: [Sometimes]}", ".rules.options", "not-expressed"),
    ],
)
def test_what_cannot_be_expressed_is_told_with_its_place(
    field: str, said: str, place: str, reason: str
) -> None:
    result = v1(f"{{{field}: {{{said}}}}}")
    assert result.policy is not None
    assert (f"spec.{field}{place}", reason) in told(result), told(result)
    assert all(each.line for each in result.losses)


def test_a_list_of_options_without_a_valid_one_is_told_once() -> None:
    result = v1("{imagePullPolicy: {rules: {options: [{value: Sometimes}]}}}")
    assert told(result) == [("spec.imagePullPolicy.rules.options", "not-expressed")]
    assert body(result, "rules") is None


def test_rules_without_a_value_say_nothing() -> None:
    result = v1("{image: {value: a, rules: {canEdit: null, wibble: null, required: true}}}")
    assert body(result, "rules") == {"image": {"required": True}}
    assert not result.losses


def test_fields_that_nothing_replaced_keep_their_names() -> None:
    result = v1("{nodeName: {value: a}, restartPolicy: {value: Never}, 5: {value: 1}}")
    assert body(result, "defaults") == {
        "restartPolicy": "Never",
        "scheduling": {"nodeName": "a"},
    }
    assert told(result) == [("spec.5", "not-expressed")]


def test_fields_that_are_not_in_the_table_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(OLD_FIELDS, "workingDir", Successor("workingDir", "section.later"))
    result = v1("{workingDir: {value: /a}}")
    assert told(result) == [("spec.workingDir", "field-not-known")]
    assert "section.later" in result.losses[0].fix


def test_whole_gpus_and_parts_of_one_are_two_fields() -> None:
    result = v1("{gpu: {value: '0.5', rules: {min: '0.25', max: '2', required: true}}}")
    reasons = {reason for _, reason in told(result)}
    assert body(result, "rules")["compute"]["gpuDevicesRequest"] == {"max": 2}  # type: ignore[index]
    assert body(result, "defaults")["compute"]["gpuPortionRequest"] == 0.5  # type: ignore[index]
    assert reasons == {"converted-inexactly"}


@pytest.mark.parametrize("row", [row for row in ROWS if row.to], ids=lambda row: row.name)
def test_every_successor_is_a_field_of_today(row: Successor) -> None:
    assert row.to in FIELDS.fields


def test_fields_that_have_words_today() -> None:
    result = v1(
        "{runAsUser: {value: true, rules: {canEdit: false}}, gpuLimit: {value: '0.8'},"
        " jobType: {value: pytorch}, exposedUrls: {items: {web: {value: {container: 80}}}},"
        " nodeType: {value: big}, podAffinitySchedulingRule: {value: soft},"
        " s3s: {items: {DEFAULTS: {value: {url: 'https://s3.example.com'}}}}}",
        "DistributedPolicy",
    )
    assert body(result, "defaults") == {
        "nodeType": "big",
        "podAffinity": {"type": "Preferred"},
        "compute": {"gpuPortionLimit": 0.8},
        "security": {"uidGidSource": "fromIdpToken"},
        "storage": {"s3": {"attributes": {"url": "https://s3.example.com"}}},
        "exposedUrls": {"instances": [{"name": "web", "container": 80}]},
        "worker": {"distributedFramework": "PyTorch"},
    }
    assert body(result, "rules") == {"security": {"uidGidSource": {"canEdit": False}}}
    assert not result.losses, told(result)


def test_an_item_that_breaks_its_own_rules_is_left_out_whole() -> None:
    result = v1(
        "{volumes: {itemRules: {mountPath: {options: [{value: /data}]}}, items: {b: {value: {path:"
        " /b, mountPath: /data, nfsServer: s}}, a: {value: {path: /a, mountPath: /a, nfsServer: s}}}}}"
    )
    assert told(result) == [("spec.volumes.items.a", "not-expressed")]
    defaults = body(result, "defaults")
    assert isinstance(defaults, dict)
    assert [each["name"] for each in defaults["storage"]["nfs"]["instances"]] == ["b"]


def test_no_value_of_an_environment_variable_is_told() -> None:
    result = v1(
        f"{{environment: {{items: {{A: {{value: {{value: {MARKER}, wibble: {MARKER}}}}}, "
        f"B: {{value: 'SECRET:{MARKER}'}}}}}}, command: {{value: \"echo '{MARKER}\"}}}}"
    )
    assert result.losses
    assert MARKER not in str(result.problems)


def test_roles_of_distributed_policies() -> None:
    result = v1("{master: {image: {value: a}}, workers: {value: 3}}", "DistributedPolicy")
    assert body(result, "defaults") == {"master": {"image": "a"}, "worker": {"numWorkers": 3}}
    assert not result.losses


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_every_old_field_has_a_successor_or_a_reason(row: Successor) -> None:
    assert bool(row.to) != bool(row.why)


def test_what_is_no_policy_is_refused() -> None:
    for text in ("{a: 1}", "[]", "{apiVersion: v1, kind: Pod}", "{rules: {wibble: {max: 1}}}"):
        result = convert(document(text), CONTEXT)
        assert result.policy is None
        assert not result.losses
        assert result.problems


def test_an_old_policy_without_spec_is_refused_or_empty() -> None:
    result = convert(document("{apiVersion: run.ai/v2alpha1, kind: TrainingPolicy}"), CONTEXT)
    assert "missing-value" in {each.reason for each in result.problems}


def test_aliases_letter_case_and_lists_of_attributes() -> None:
    result = converted(
        "Rules:\n  compute: {gpuDeviceRequest: {Max: 2, min: null}, cpuMemoryRequest: {max: 1e9}}\n"
        "  storage: {nfs: {Instances: {canadd: false}, attributes: {nfsServer: {options: [a]}}}}\n"
        "defaults:\n  masterSpec: {imagePullPolicy: always}\n"
        "  storage: {nfs: {attributes: [{readOnly: true}, {path: 0644}]}}\n"
    )
    assert body(result, "rules") == {
        "compute": {"cpuMemoryRequest": {"max": "1e9"}, "gpuDevicesRequest": {"max": 2}},
        "storage": {
            "nfs": {
                "instances": {"canAdd": False},
                "attributes": {"server": {"options": [{"value": "a"}]}},
            }
        },
    }
    assert body(result, "defaults") == {
        "storage": {"nfs": {"attributes": {"readOnly": True, "path": "0644"}}},
        "master": {"imagePullPolicy": "Always"},
    }


def test_ids_of_the_api_become_namespaces() -> None:
    rules = "policy: {rules: {compute: {gpuDevicesRequest: {max: 4}}}}"
    result = converted(f"meta: {{name: a, scope: project, projectId: '4510'}}\n{rules}")
    assert result.policy is not None
    assert result.policy["metadata"]["namespace"] == "team-a"
    result = converted(f"meta: {{name: a, scope: department, departmentId: d1}}\n{rules}")
    (one,) = body(result, "namespaceSelector")["matchExpressions"]  # type: ignore[index]
    assert one["values"] == ["x", "y"]


def policy_files() -> list[Path]:
    """The files of the examples and golden cases, all of which may have policies."""
    examples = sorted((ROOT / "policies" / "examples").rglob("*.yaml"))
    return [*examples, *sorted((ROOT / "tests" / "golden").rglob("case.yaml"))]


def policies_in(file: Path) -> list[SourceDocument]:
    """Every policy of a file that loads: its documents, or those that a golden case has inline."""
    found, _ = read_documents(file.read_bytes(), str(file))
    if file.name == "case.yaml":
        inline = (each for each in found[0].data.get("policies", ()) if isinstance(each, dict))
        found = [document(yaml.safe_dump(each)) for each in inline]
    return [each for each in found if is_policy(each) and parse_policy(each, CONTEXT)[0]]


EACH_POLICY_FILE = pytest.mark.parametrize(
    "file", policy_files(), ids=lambda file: "/".join(file.parts[-3:])
)


@EACH_POLICY_FILE
def test_what_is_written_anew_says_the_same(file: Path) -> None:
    for given in policies_in(file):
        assert_written_anew_says_the_same(given)


def assert_written_anew_says_the_same(given: SourceDocument) -> None:
    before, _ = parse_policy(given, CONTEXT)
    result = convert(given, CONTEXT)
    assert before is not None
    assert result.policy is not None
    text = yaml.safe_dump(result.policy, sort_keys=False)
    after, problems = parse_policy(document(text), CONTEXT)
    assert after is not None, problems
    assert after.body == before.body
    assert (after.scope, after.namespace, after.kinds) == (
        before.scope,
        before.namespace,
        before.kinds,
    )
    assert after.namespace_selector == before.namespace_selector
    again = convert(document(text), CONTEXT)
    assert again.policy == result.policy
