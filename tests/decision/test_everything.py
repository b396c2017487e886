"""Policies that use every field at once, on every real manifest: no fault, and nothing twice."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from tests import everything
from tests.building import container, job
from webhook.cases.run_offline import manifests_of
from webhook.catalog.build import Choices, assemble
from webhook.catalog.catalog import Catalog
from webhook.decision.decide import decide
from webhook.decision.messages import change_text, problem_text, violation_text, warning_text
from webhook.documents.yaml_source import read_documents
from webhook.evaluation.outcome import Allowed, Denied
from webhook.evaluation.references import References
from webhook.evaluation.request import Request, Stage
from webhook.sources.files import read_all
from webhook.sources.load import DEFAULT_MINOR, server_defaults, shipped_paths


def catalog_of(**body: Any) -> Catalog:
    """The shipped definitions with one policy of that body."""
    shipped, _ = read_all([each for each in shipped_paths() if "system" not in each])
    text = json.dumps(everything.policy("everything", **body)).encode()
    documents, faults = read_documents(text, "everything.yaml", kubernetes=False)
    assert not faults
    choices = Choices(config=everything.WORDS)
    table: Any = server_defaults(DEFAULT_MINOR)
    catalog, problems = assemble(shipped, documents, choices, table)
    assert catalog is not None, "\n".join(problem_text(each) for each in problems)
    return catalog


@cache
def writing() -> Catalog:
    return catalog_of(defaults=everything.defaults())


@cache
def judging() -> Catalog:
    return catalog_of(rules=everything.rules())


@cache
def manifests(folder: Path) -> list[tuple[str, Any]]:
    documents, _ = read_all([str(folder / "manifests")], kubernetes=True)
    found, _ = manifests_of(documents)
    return found


def requests(folder: Path, catalog: Catalog) -> Iterator[tuple[str, Request]]:
    """A creation of every manifest of a known kind, with what the API server fills in."""
    assert catalog.server_defaults is not None
    for source, raw in manifests(folder):
        group, _, version = str(raw["apiVersion"]).rpartition("/")
        kind = str(raw["kind"])
        if catalog.definition(group, kind, version) is None:
            continue
        body = catalog.server_defaults.kind(group, kind).apply(raw)
        yield source, Request(group, version, kind, "CREATE", body, raw=raw, namespace="default")


def texts_of(decision: Any) -> list[str]:
    """Every sentence that a decision is told in."""
    told = [warning_text(each) for each in decision.warnings]
    if isinstance(decision, Denied):
        told += [violation_text(each) for each in decision.violations]
    else:
        told += [change_text(each) for each in decision.changes]
    return told


def test_every_default_at_once_is_written_once(upstream_data: Path) -> None:
    judged = written = 0
    for source, request in requests(upstream_data, writing()):
        decision = decide(request, writing(), References())
        assert all(texts_of(decision)), source
        judged += 1
        if not isinstance(decision, Allowed):
            continue
        written += 1
        again = replace(request, object=decision.object)
        second = decide(again, writing(), References())
        assert isinstance(second, Allowed), (source, texts_of(second))
        assert second.patch == (), source
        final = replace(again, stage=Stage.VALIDATE)
        third = decide(final, writing(), References())
        assert isinstance(third, Allowed), (source, texts_of(third))
    assert judged > 100
    assert written > judged // 2


@pytest.mark.parametrize("catalog", [writing, judging])
def test_work_can_be_called_off_before_each_field(catalog: Callable[[], Catalog]) -> None:
    """Whatever a step calls of a field, for a pod or for the workload, it asks before."""
    body = job(container(), container("side"))
    asked = Request("batch", "v1", "Job", "CREATE", body, raw=body, namespace="default")
    policies, seen = catalog(), list[str]()
    decide(asked, policies, References())  # what is compiled once is compiled now

    def watch(frame: FrameType, event: str, _: object) -> None:
        name, caller = frame.f_code.co_name, frame.f_back
        file = caller.f_code.co_filename if caller is not None else ""
        by_a_step = "/decision/" in file and not file.endswith("/decide.py")
        if (
            event == "call"
            and by_a_step
            and name in ("go_on", "check_intent", "fill", "check_final")
        ):
            seen.append(name)

    sys.setprofile(watch)
    try:
        decide(asked, policies, References())
    finally:
        sys.setprofile(None)
    assert len(seen) > 100
    assert not [(one, two) for one, two in pairwise(seen) if "go_on" not in (one, two)]


def test_every_rule_at_once_is_judged(upstream_data: Path) -> None:
    reasons: set[str] = set()
    fields: set[str] = set()
    for source, request in requests(upstream_data, judging()):
        for stage in Stage:
            decision = decide(replace(request, stage=stage), judging(), References())
            assert all(texts_of(decision)), source
            if isinstance(decision, Denied):
                reasons |= {each.reason for each in decision.violations}
                fields |= {each.field for each in decision.violations}
    assert {"options", "canAdd"} <= reasons
    assert len(fields) > 15


HOSTILE: list[Any] = [None, 7, -1, "", "text", [], [None], [[]], {}, {"a": None}, True, 1e400]


@pytest.mark.parametrize("value", HOSTILE, ids=repr)
def test_no_wrong_type_anywhere_in_a_pod_is_a_fault(value: Any) -> None:
    places = (
        ("env",),
        ("ports",),
        ("resources",),
        ("securityContext",),
        ("volumeMounts",),
        ("readinessProbe",),
        ("args",),
        ("image",),
    )
    pods: list[dict[str, Any]] = [
        {"containers": [{"name": "a", "image": "b", place[0]: value}]} for place in places
    ]
    keys = (
        "volumes",
        "tolerations",
        "affinity",
        "nodeSelector",
        "securityContext",
        "imagePullSecrets",
        "initContainers",
        "resourceClaims",
        "schedulerName",
        "hostNetwork",
        "serviceAccountName",
        "os",
        "overhead",
    )
    pods += [{"containers": [{"name": "a", "image": "b"}], key: value} for key in keys]
    metadata = [{"annotations": value}, {"labels": value}]
    for body in ({"spec": pod, "metadata": {"name": "p"}} for pod in pods):
        tried(body)
    for each in metadata:
        tried(
            {
                "metadata": {"name": "p", **each},
                "spec": {"containers": [{"name": "a", "image": "b"}]},
            }
        )


def tried(body: dict[str, Any]) -> None:
    for catalog in (writing(), judging()):
        request = Request("", "v1", "Pod", "CREATE", {"apiVersion": "v1", "kind": "Pod", **body})
        for stage in Stage:
            decision = decide(replace(request, stage=stage), catalog, References())
            assert all(texts_of(decision))
