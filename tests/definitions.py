"""Builds definitions for tests: from short mappings, and the shipped ones from their files."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

from webhook.documents.problem import Problem
from webhook.documents.source import SourceDocument
from webhook.documents.yaml_source import read_documents
from webhook.interface.interface import Interface, is_interface, parse_interface
from webhook.interface.profile import Profile
from webhook.interface.profile_document import is_profile, parse_profile
from webhook.interface.profile_rules import check_profile
from webhook.pods.definition import Definition

POLICIES = Path(__file__).parent.parent / "policies" / "workloads"
GVK = {"group": "batch.example.com", "version": "v1", "kind": "Group"}


def document(data: Any, origin: str = "test.yaml") -> SourceDocument:
    """Plain data as a document without positions."""
    return SourceDocument(origin, 1, data, {}, {})


def yaml_document(text: str) -> SourceDocument:
    """The one document of a YAML text, with its positions."""
    documents, faults = read_documents(text, "test.yaml")
    assert not faults
    (found,) = documents
    return found


def base() -> dict[str, Any]:
    """BaseDef of the conformance list: root Deployment, child worker, one pod group."""
    return {
        "apiVersion": "optimization.nvidia.com/v1alpha1",
        "kind": "ResourceInterface",
        "metadata": {"name": "test-ri"},
        "spec": {
            "structureDefinition": {
                "rootComponent": {
                    "name": "root",
                    "kind": {"group": "apps", "version": "v1", "kind": "Deployment"},
                    "statusDefinition": {"statusMappings": {}},
                    "specDefinition": {"podTemplateSpecPath": ".spec.template"},
                    "scaleDefinition": {"replicasPath": ".spec.replicas"},
                    "podSelector": {"componentTypeSelector": {"matchLabels": {"role": "root"}}},
                },
                "childComponents": [
                    {
                        "name": "worker",
                        "ownerRef": "root",
                        "specDefinition": {"podSpecPath": ".spec.worker.spec"},
                        "scaleDefinition": {"replicasPath": ".spec.worker.replicas"},
                        "podSelector": {
                            "componentTypeSelector": {"matchLabels": {"role": "worker"}}
                        },
                    }
                ],
            },
            "optimizationInstructions": {
                "gangScheduling": {
                    "podGroups": [
                        {
                            "name": "main-group",
                            "members": [{"componentName": "root"}, {"componentName": "worker"}],
                        }
                    ]
                }
            },
        },
    }


def root(definition: dict[str, Any]) -> dict[str, Any]:
    """The root component of a definition."""
    component: dict[str, Any] = definition["spec"]["structureDefinition"]["rootComponent"]
    return component


def children(definition: dict[str, Any]) -> list[dict[str, Any]]:
    """The child components of a definition."""
    found: list[dict[str, Any]] = definition["spec"]["structureDefinition"]["childComponents"]
    return found


def grouped(**paths: Any) -> Definition:
    """A definition of one component without a profile, from the component's own keys."""
    data = {
        "apiVersion": "run.ai/v1alpha1",
        "kind": "Karta",
        "spec": {
            "structureDefinition": {
                "rootComponent": {
                    "name": "group",
                    "kind": GVK,
                    "statusDefinition": {"statusMappings": {}},
                    **copy.deepcopy(paths),
                }
            }
        },
    }
    if "instanceIdPath" in paths:
        root(data)["podSelector"] = {"componentInstanceSelector": {"idPath": ".metadata.name"}}
    interface, problems = parse_interface(document(data))
    assert interface is not None, problems
    return Definition(interface)


def read_file(path: Path) -> tuple[Interface, Profile, list[Problem]]:
    """The definition and profile of a shipped file, with all problems."""
    documents, faults = read_documents(path.read_bytes(), path.name)
    assert not faults
    interface: Interface | None = None
    profile: Profile | None = None
    found: list[Problem] = []
    for each in documents:
        problems: tuple[Problem, ...] = ()
        if is_interface(each.data):
            interface, problems = parse_interface(each)
        elif is_profile(each.data):
            profile, problems = parse_profile(each)
        found += problems
    assert interface is not None, found
    assert profile is not None, found
    return interface, profile, [*found, *check_profile(profile, interface)]


def shipped(name: str) -> Definition:
    """A shipped definition by its file's name, such as job.batch."""
    interface, profile, _ = read_file(POLICIES / f"{name}.yaml")
    return Definition(interface, profile)


def reasons(problems: tuple[Problem, ...] | list[Problem], severity: str = "error") -> list[str]:
    """The reasons of the problems of one severity."""
    return [each.reason for each in problems if each.severity == severity]
