"""Hints of messages: whoever follows one gets another result, and no hint leads in a circle."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests import building, everything
from tests.building import deployment, policy
from webhook.admission.judge import decide_review
from webhook.admission.review import respond
from webhook.catalog.build import parse_documents
from webhook.decision.messages import NOTE, problem_text, violation_text
from webhook.documents.problem import Problem
from webhook.documents.yaml_source import read_documents
from webhook.evaluation.outcome import Allowed, Denied
from webhook.evaluation.references import References
from webhook.evaluation.request import Stage
from webhook.evaluation.state import AGAIN
from webhook.policy import rules
from webhook.policy.checks.settings import BLIND, FIX
from webhook.policy.envelope import Context
from webhook.policy.other_documents import VERSIONS
from webhook.policy.table import TABLE
from webhook.service.settings import Settings

ITEMIZED = [path for path, row in TABLE.fields.items() if row.items is not None]
ARGUMENT_FORMS: dict[str, Any] = {
    "boolean": False,
    "keys": ["a"],
    "options": ["a"],
    "value": 1,
    "number": 1,
    "source": {"field": "x"},
}
ARGUMENTS = {name: ARGUMENT_FORMS[rule.argument] for name, rule in rules.TABLE.items()}
POLICY = """
apiVersion: podgate.dev/v1alpha1
kind: ClusterWorkloadPolicy
metadata: {name: "NAME"}
spec: {rules: {tty: {canEdit: false}}}
"""
CIRCULAR = {"rules-on-itemized", "rule-not-for-type", "unknown-field", "unknown-rule"}
AT = re.compile(r"write it at (\S+)")
LOCK = re.compile(r"to require an item, give it in defaults, and name it in (\S+)\.locked")


def problems(document: Any) -> list[Problem]:
    """What is reported of one document, given as data or as text."""
    text = document if isinstance(document, str) else json.dumps(document)
    documents, faults = read_documents(text, "a.yaml")
    told = [Problem("a.yaml", "", each.message, each.fix, "bad-yaml") for each in faults]
    return [*told, *parse_documents(documents, Context()).problems]


def errors(document: Any) -> list[Problem]:
    """The errors alone."""
    return [each for each in problems(document) if each.severity == "error"]


def ruled(path: str, rule: str) -> dict[str, Any]:
    """A policy with one rule at a dotted path."""
    tree: dict[str, Any] = {}
    everything.put(tree, f"{path}.{rule}", ARGUMENTS[rule])
    return tree


@pytest.mark.parametrize("rule", rules.TABLE)
@pytest.mark.parametrize("path", ITEMIZED)
def test_a_rule_that_items_do_not_take_is_taken_where_the_hint_says(path: str, rule: str) -> None:
    told = errors({"rules": ruled(path, rule)})
    if not told:
        assert rule in TABLE.fields[path].extra_rules
        return
    (problem,) = (each for each in told if each.reason in CIRCULAR)
    if found := AT.match(problem.fix):
        again = errors({"rules": ruled(found[1], rule)})
        assert not [each for each in again if each.reason in CIRCULAR], problem.fix
    elif found := LOCK.match(problem.fix):
        item = everything.ITEMS[path][0]
        key = TABLE.fields[path].items.key  # type: ignore[union-attr]
        assert found[1] == f"{path}.instances"
        body: dict[str, Any] = {"defaults": {}, "rules": {}}
        everything.put(body["defaults"], f"{path}.instances", [item])
        everything.put(body["rules"], f"{path}.instances.locked", [item[key]])
        assert errors(body) == []
    else:
        assert problem.fix == f"{path} takes canAdd and locked, at {path}.instances"


@pytest.mark.parametrize("rule", ["required", "canEdit", "max"])
@pytest.mark.parametrize("where", ["compute", "security", "storage", "labels.attributes"])
def test_a_rule_above_fields_is_named_as_a_rule(where: str, rule: str) -> None:
    (problem,) = errors({"rules": ruled(where, rule)})
    assert problem.fix == f"{rule} is a rule: write it in rules, below a field or an attribute"


@pytest.mark.parametrize("rule", rules.TABLE)
@pytest.mark.parametrize("envelope", [False, True])
def test_a_rule_among_defaults_is_sent_to_the_rules(rule: str, *, envelope: bool) -> None:
    body = {"defaults": {"compute": {rule: ARGUMENTS[rule]}}}
    document = {
        "apiVersion": VERSIONS["ClusterWorkloadPolicy"],
        "kind": "ClusterWorkloadPolicy",
        "metadata": {"name": "a"},
        "spec": body,
    }
    (problem,) = errors(document if envelope else body)
    assert problem.fix == f"{rule} is a rule: write it in rules, below a field or an attribute"


@pytest.mark.parametrize("version", [None, "v1", "podgate.dev/v2", "run.ai/v2", 1, [], ""])
@pytest.mark.parametrize("kind", VERSIONS)
def test_a_kind_with_another_version_is_told_its_own(kind: str, version: Any) -> None:
    document = {"kind": kind, "metadata": {"name": "a"}, "spec": {}}
    if version is not None:
        document["apiVersion"] = version
    (problem,) = (each for each in errors(document) if each.reason == "wrong-version")
    assert f"write {VERSIONS[kind]}" in problem.fix.replace("apiVersion: ", "")
    assert "did you mean" not in problem.fix
    again = errors({**document, "apiVersion": VERSIONS[kind]})
    assert problem not in again
    assert "wrong-version" not in {each.reason for each in again}


@pytest.mark.parametrize(
    ("version", "kind", "found", "fix"),
    [
        ("kyverno.io/v1", "ClusterPolicy", "a policy of Kyverno", "remove it"),
        ("kyverno.io/v2", "PolicyException", "a policy of Kyverno", "remove it"),
        ("policies.kyverno.io/v1", "ValidatingPolicy", "a policy of Kyverno", "remove it"),
        ("templates.gatekeeper.sh/v1", "ConstraintTemplate", "of Gatekeeper", "remove it"),
        (
            "admissionregistration.k8s.io/v1",
            "ValidatingAdmissionPolicy",
            "an admission policy or webhook of Kubernetes",
            "remove it",
        ),
        ("v1", "List", "List", "documents of their own"),
        ("v1", "ConfigMap", "ConfigMap", "as files"),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition", "Custom", "--crds"),
        ("kustomize.config.k8s.io/v1beta1", "Kustomization", "Kustom", "kubectl kustomize"),
        ("apps/v1", "Deployment", "no document of podgate", "podgate apply"),
        ("v1", "Pod", "no document of podgate", "podgate apply"),
        ("podgate.dev/v1alpha1", "ClusterWorkloadPolcy", "", "mean ClusterWorkloadPolicy?"),
        ("podgate.dev/v1alpha1", "WorkloadProfil", "", "mean WorkloadProfile?"),
    ],
)
def test_a_document_of_somebody_else_is_named(
    version: str, kind: str, found: str, fix: str
) -> None:
    (problem,) = errors({"apiVersion": version, "kind": kind, "metadata": {"name": "a"}})
    assert found in problem.found
    assert fix in problem.fix


@pytest.mark.parametrize(
    "text",
    [
        "{{- if .Values.on }}\nrules: {}\n{{- end }}\n",
        "metadata:\n  name: {{ .Release.Name }}\nrules: {}\n",
        "rules:\n{{ toYaml .Values.rules | indent 2 }}\n",
        'metadata:\n  name: {{ include "a.name" . }}-p\n',
        "rules: {{- .Values.rules | toJson }}\n",
        "{{/* a comment */}}\nrules: {}\n",
        POLICY.replace("NAME", "{{ .Release.Name }}"),
    ],
)
def test_a_template_is_to_be_rendered(text: str) -> None:
    problem = errors(text)[0]
    assert "render" in problem.fix
    assert "helm template" in problem.fix


@pytest.mark.parametrize(
    ("text", "found", "write"),
    [
        ("4GB", "4GB cannot be read as a quantity such as 500M or 4Gi", "Write 4G."),
        ("4gib", "4gib cannot be read as a quantity such as 500M or 4Gi", "Write 4Gi."),
        ("4 Gi", "4 Gi cannot be read as a quantity such as 500M or 4Gi", "Write 4Gi."),
        ("1,5Gi", "1,5Gi cannot be read as a quantity", "Write 1.5Gi."),
        ("64K", "64K cannot be read as a quantity", "Write 64k or 64Ki."),
        ("lots", "lots cannot be read as a quantity", "Write a quantity such as 500M or 4Gi."),
    ],
)
def test_an_unreadable_amount_is_told_what_to_write(text: str, found: str, write: str) -> None:
    rules_of = building.catalog(policy("rules: {compute: {cpuMemoryRequest: {max: 8G}}}"))

    def decided(amount: str) -> str:
        held = {"requests": {"memory": amount}}
        decision = building.mutated(rules_of, deployment(building.container(resources=held)))
        if not isinstance(decision, Denied):
            return ""
        (violation,) = decision.violations
        return violation_text(violation)

    told = decided(text)
    assert found in told
    assert told.endswith(write)
    assert "is not" not in told
    if " or " not in write:
        assert decided(write.removeprefix("Write ").removesuffix(".")) == ""


LOCKED = """
defaults:
  labels: {instances: [{name: team, value: vision}]}
  tolerations: {instances: [{key: gpu, operator: Equal, value: a, effect: NoSchedule}]}
  annotations: {instances: [{name: owner, value: vision}]}
  storage: {hostPath: {instances: [{name: models, path: /models, mountPath: /models}]}}
rules:
  labels: {instances: {locked: [team]}}
  annotations: {instances: {locked: [owner]}}
  storage: {hostPath: {instances: {locked: [models]}}}
"""


@pytest.mark.parametrize(
    ("template", "told"),
    [
        (
            {"metadata": {"labels": {"team": "other", "app": "a"}}},
            'Set value to "vision" instead of "other", or remove the item; the policy adds it.',
        ),
        (
            {"spec": {"volumes": [{"name": "models", "hostPath": {"path": "/other"}}]}},
            'Set path to "/models" instead of "/other", or remove the item; the policy adds it.',
        ),
        ({"metadata": {"annotations": {"owner": "other"}}}, "Remove the item; the policy adds it."),
    ],
)
def test_a_locked_item_shows_both_values_unless_they_are_secret(
    template: dict[str, Any], told: str
) -> None:
    raw_object = deployment(building.container())
    body = raw_object["spec"]["template"]
    body.setdefault("metadata", {}).update(template.get("metadata", {}))
    body["spec"].update(template.get("spec", {}))
    decision = building.mutated(building.catalog(policy(LOCKED)), raw_object)
    assert isinstance(decision, Denied)
    assert violation_text(decision.violations[0]).endswith(told)


ODD_VALUES: list[Any] = [True, 7, 1.5, "", "x y", [], ["Never"], {"a": "b"}, {"a": [None]}]
PLACES: dict[str, tuple[str, str]] = {
    "image": ("containers.0.image", "options: [a]"),
    "imagePullPolicy": ("containers.0.imagePullPolicy", "canEdit: false"),
    "workingDir": ("containers.0.workingDir", "options: [/work]"),
    "restartPolicy": ("restartPolicy", "canEdit: false"),
    "terminationGracePeriodSeconds": ("terminationGracePeriodSeconds", "max: 9"),
    "compute": ("containers.0.resources.requests.cpu", "cpuCoreRequest: {max: 1}"),
    "security": ("containers.0.securityContext.runAsUser", "runAsUid: {min: 1}"),
    "scheduling": ("runtimeClassName", "runtimeClassName: {options: [a]}"),
    "priorityClass": ("priorityClassName", "options: [high]"),
    "storage": (
        "volumes.0.configMap.defaultMode",
        "configMapVolume: {attributes: {defaultMode: {canEdit: false}}}",
    ),
    "tolerations": ("tolerations.0.tolerationSeconds", "attributes: {seconds: {max: 1}}"),
}
UGLY = re.compile(
    r"\{'|\['|\bTrue\b|\bFalse\b|\bNone\b|\.\.|  | \.|,,|[;:,]\.|: cannot|Write \.|its value of"
)
"""Python instead of JSON, doubled punctuation, gaps where a text was empty."""


@pytest.mark.parametrize("value", ODD_VALUES, ids=json.dumps)
@pytest.mark.parametrize("field", PLACES)
def test_a_value_of_another_type_is_shown_as_the_manifest_writes_it(field: str, value: Any) -> None:
    place, rule = PLACES[field]
    raw_object = deployment(building.container())
    spec = raw_object["spec"]["template"]["spec"]
    if field == "storage":
        spec["volumes"] = [{"name": "v", "configMap": {"name": "c"}}]
        spec["containers"][0]["volumeMounts"] = [{"name": "v", "mountPath": "/v"}]
    if field == "tolerations":
        spec["tolerations"] = [{"key": "gpu", "operator": "Exists"}]
    *path, last = place.split(".")
    for step in path:
        spec = spec[int(step)] if step.isdigit() else spec.setdefault(step, {})
    spec[last] = value
    decision = building.mutated(building.catalog(f"{{rules: {{{field}: {{{rule}}}}}}}"), raw_object)
    if isinstance(decision, Denied):
        for each in decision.violations:
            assert not UGLY.search(violation_text(each)), violation_text(each)


COMPLETED = """
defaults:
  imagePullPolicy: Always
  workingDir: /work
  compute: {cpuMemoryRequest: 1G}
  labels: {instances: [{name: team, value: vision}]}
  environmentVariables: {instances: [{name: PROXY, value: p}]}
  tolerations: {instances: [{name: gpu, key: gpu, operator: Exists}]}
  storage: {hostPath: {instances: [{name: models, path: /models, mountPath: /models}]}}
rules:
  imagePullPolicy: {canEdit: false}
  workingDir: {required: true}
  compute: {cpuMemoryRequest: {required: true}}
  labels: {instances: {locked: [team]}}
  environmentVariables: {instances: {locked: [PROXY]}}
  tolerations: {instances: {locked: [gpu]}}
  storage: {hostPath: {instances: {locked: [models]}}}
"""
"""What is missing in the object that the mutating pass saw by an older policy."""


@pytest.mark.parametrize("kind", ["Deployment", "PyTorchJob", "Pod"])
def test_what_is_missing_after_completion_is_to_be_applied_again(kind: str) -> None:
    rules_now = building.catalog(policy(COMPLETED))
    raw_object = building.KINDS[kind](building.container())
    decision = building.validated(rules_now, raw_object)
    assert isinstance(decision, Denied)
    fields = {each.field for each in decision.violations}
    names = "imagePullPolicy workingDir compute.cpuMemoryRequest labels environmentVariables"
    assert fields == {*names.split(), "tolerations", "storage.hostPath"}
    assert {each.fix for each in decision.violations} == {AGAIN}
    completed = building.mutated(rules_now, raw_object)
    assert isinstance(completed, Allowed)
    assert isinstance(building.validated(rules_now, completed.object), Allowed)


@pytest.mark.parametrize(
    ("body", "noted"),
    [
        ("rules: {compute: {cpuCoreRequest: {max: 1}}}", True),
        ("rules: {imagePullPolicy: {canEdit: false}}", True),
        ("rules: {workingDir: {required: true}}", True),
        ("defaults: {image: a}\nrules: {image: {canEdit: false}}", True),
        (COMPLETED, False),
    ],
)
def test_a_late_refusal_names_what_else_may_have_changed_the_object(
    body: str, *, noted: bool
) -> None:
    rules_now = building.catalog(policy(body))
    held = {"requests": {"cpu": "2"}} if noted else {}
    always = {"imagePullPolicy": "Always"} if noted else {}
    raw_object = deployment(building.container(resources=held, **always))

    def message(**more: Any) -> str:
        request = building.request(raw_object, **more)
        answer = respond(request, decide_review(request, rules_now, References()))
        return str(json.loads(answer)["response"].get("status", {}).get("message"))

    assert message(stage=Stage.VALIDATE).endswith(f"\n{NOTE}") is noted
    assert NOTE not in message()
    assert NOTE not in message(stage=Stage.VALIDATE, subresource="resize")


@pytest.mark.parametrize(
    ("text", "write"),
    [("2cores", "2"), ("2 Cores", "2"), ("0.5cpu", "0.5"), ("4 vCPUs", "4"), ("cores", "")],
)
def test_cores_are_a_plain_number(text: str, write: str) -> None:
    (problem,) = errors({"defaults": {"compute": {"cpuCoreRequest": text}}})
    assert problem.fix == f"write {write or 'a decimal number such as 0.5'}"
    if write:
        assert errors({"defaults": {"compute": {"cpuCoreRequest": write}}}) == []


@pytest.mark.parametrize(
    ("document", "told"),
    [
        ({"rule": {"tty": {"canEdit": False}}}, 'found "rule"; did you mean rules?'),
        ({"default": {"tty": True}}, 'found "default"; did you mean defaults?'),
        ({"imagedAssets": ["a"]}, 'found "imagedAssets"; did you mean imposedAssets?'),
        ({"spec": {"rules": {}}}, "found spec without apiVersion and kind; write kind: "),
        (
            {
                "defaults": {
                    "storage": {"secretVolume": {"instances": [{"secret": "s", "path": "/s"}]}}
                }
            },
            "found path; did you mean mountPath?",
        ),
        (
            {"rules": {"labels": {"attributes": {"value": {"regex": "a"}}}}},
            'found "regex"; labels.value takes ',
        ),
        (
            {"kind": "PolicyException", "apiVersion": "podgate.dev/v1alpha1", "spec": {}},
            "spec: `until` is missing; add `until`",
        ),
    ],
)
def test_a_common_mistake_is_told_what_was_meant(document: Any, told: str) -> None:
    found = [problem_text(each) for each in errors(document)]
    assert any(told in each for each in found), found
    assert not [each for each in found if each.endswith((" ", "takes", ";"))], found


def test_braces_in_text_are_no_template() -> None:
    (problem,) = errors("args: ['{{inputs.parameters.a}}']\nrules:\n\n\n  tty: [\n")
    assert "render" not in problem.fix


@pytest.mark.parametrize("fix", [*FIX.values(), *BLIND.values()])
def test_a_missing_setting_is_named_as_every_command_reads_it(fix: str) -> None:
    names = {f"PODGATE_{each.upper()}" for each in Settings.model_fields}
    assert fix.split()[1] in names
