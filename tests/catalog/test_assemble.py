"""Documents put together: what two of one name are, in one file or in two."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from webhook.catalog.build import parse_documents
from webhook.documents.problem import Problem
from webhook.documents.source import SourceDocument
from webhook.documents.yaml_source import read_documents
from webhook.lint.advice import REASONS
from webhook.policy.envelope import Context
from webhook.sources.files import read_all
from webhook.sources.load import shipped_paths

POLICY = """
apiVersion: podgate.dev/v1alpha1
kind: ClusterWorkloadPolicy
metadata: {name: baseline}
spec: {rules: {compute: {cpuCoreRequest: {max: 4}}}}
"""
PROJECT = """
apiVersion: podgate.dev/v1alpha1
kind: WorkloadPolicy
metadata: {name: baseline, namespace: vision}
spec: {rules: {compute: {cpuCoreRequest: {max: 4}}}}
"""
OF_API = """
meta: {name: baseline, scope: tenant}
policy: {rules: {compute: {cpuCoreRequest: {max: 4}}}}
"""
ASSET = """
apiVersion: podgate.dev/v1alpha1
kind: WorkloadAsset
metadata: {name: sets}
spec:
  meta: {id: sets, kind: hostPath, scope: cluster}
  spec: {path: /sets, mountPath: /sets}
"""
BARE_ASSET = """
meta: {id: sets, name: sets, kind: hostPath, scope: cluster}
spec: {path: /sets, mountPath: /sets}
"""
EXCEPTION = """
apiVersion: podgate.dev/v1alpha1
kind: PolicyException
metadata: {name: big-run, namespace: exceptions}
spec:
  until: "2026-12-01T00:00:00Z"
  objects: [{kind: Pod, namespace: vision, name: bench}]
  rules: [{field: nodePools, rule: required}]
"""
INTERFACE = """
apiVersion: optimization.nvidia.com/v1alpha1
kind: ResourceInterface
metadata: {name: widget}
spec:
  structureDefinition:
    rootComponent:
      name: widget
      kind: {group: example.com, version: v1, kind: Widget}
      statusDefinition: {statusMappings: {}}
      specDefinition: {podTemplateSpecPath: .spec.template}
"""
PROFILE = """
apiVersion: podgate.dev/v1alpha1
kind: WorkloadProfile
metadata: {name: widget}
spec:
  group: example.com
  kind: Widget
  versions: [v1]
  resource: widgets
  components: {widget: {role: worker, children: merged}}
"""
EVERY = {
    "policy": POLICY,
    "project policy": PROJECT,
    "policy of the API": OF_API,
    "asset": ASSET,
    "bare asset": BARE_ASSET,
    "exception": EXCEPTION,
    "interface": INTERFACE,
    "profile": PROFILE,
}


def read(text: str, origin: str = "a.yaml") -> list[SourceDocument]:
    """The documents of one file."""
    documents, faults = read_documents(text, origin)
    assert not faults
    return documents


def duplicates(documents: Sequence[SourceDocument]) -> list[Problem]:
    """What is reported of names that occur twice."""
    problems = parse_documents(documents, Context()).problems
    return [each for each in problems if each.reason.startswith("duplicate-")]


@pytest.mark.parametrize("text", EVERY.values(), ids=EVERY.keys())
def test_two_documents_of_one_kind_and_name_are_an_error(text: str) -> None:
    (alone,) = duplicates(read(f"{text}---{text}"))
    (beside,) = duplicates([*read(text), *read(text, "b.yaml")])
    assert alone.reason == beside.reason
    assert alone.reason in REASONS
    assert alone.severity == beside.severity == "error"
    first = read(text)[0].position(())[0]
    assert (alone.origin, alone.line) == ("a.yaml", first + text.count("\n"))
    assert f"which is in line {first} too" in alone.found
    assert (beside.origin, beside.line) == ("b.yaml", first)
    assert "which is in a.yaml too" in beside.found


def test_two_assets_of_one_name_are_an_error_in_one_file_whatever_their_ids() -> None:
    other = ASSET.replace("id: sets", "id: more")
    (found,) = duplicates(read(f"{ASSET}---{other}"))
    assert (found.reason, found.path) == ("duplicate-asset", "metadata.name")
    assert found.found == "asset sets, which is in line 2 too"
    assert found.fix.endswith("give each asset its own name")
    assert duplicates(read(f"{ASSET}---{other.replace('name: sets', 'name: more')}")) == []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (POLICY, PROJECT),
        (PROJECT, PROJECT.replace("vision", "audio")),
        (POLICY, POLICY.replace("spec: {", "spec: {scope: system, ")),
        (INTERFACE, PROFILE),
        (INTERFACE, INTERFACE.replace("version: v1,", "version: v2,")),
        (PROFILE, PROFILE.replace("Widget", "Gadget")),
        (EXCEPTION, EXCEPTION.replace("namespace: exceptions", "namespace: others")),
        ("rules: {tty: {canEdit: false}}\n", "rules: {tty: {canEdit: false}}\n"),
    ],
)
def test_documents_that_share_a_name_alone_are_none(one: str, other: str) -> None:
    assert duplicates(read(f"{one}---\n{other}")) == []


def test_no_shipped_document_has_the_name_of_another() -> None:
    documents, problems = read_all(shipped_paths())
    assert not problems
    assert duplicates(documents) == []
