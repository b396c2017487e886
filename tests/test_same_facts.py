"""The webhook, `apply`, `audit`, `test`, `explain` and `review` report the same facts of an object."""

from __future__ import annotations

import asyncio
import base64
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonpatch
import orjson
import pytest

from tests import golden_cases
from tests.cli.running import podgate
from tests.golden_cases import CaseName
from tests.test_golden import applied, without_note
from webhook.admission.judge import CatalogJudge
from webhook.cases import installation
from webhook.cases.case import Case
from webhook.cases.read import cases_of
from webhook.cases.run import request_of, run
from webhook.cases.run_offline import Place, labels_in
from webhook.catalog.catalog import Catalog
from webhook.cli import loading
from webhook.cli.report import violation_json
from webhook.controller.audit import evaluate_object
from webhook.decision.both_passes import decide_both_passes
from webhook.decision.messages import MOST_VIOLATIONS, place, violation_text, warning_text
from webhook.evaluation.outcome import Decision, Denied, Violation
from webhook.evaluation.references import References
from webhook.evaluation.request import Request, Stage
from webhook.libjq.evaluator import get_evaluator
from webhook.objects.path import display
from webhook.server.app import App, Reviews
from webhook.server.call import Limits, Observation, State
from webhook.server.probes import probes
from webhook.service import clock

KINDS = (
    *("pod", "deployment", "statefulset", "cronjob", "job", "podtemplate"),
    *("appwrapper", "rayjob", "raycluster", "pytorchjob", "mpijob", "jobset", "podcliqueset"),
    *("sparkapplication", "workflow", "devworkspace", "virtualmachine", "taskrun", "pipelinerun"),
    *("inferenceservice", "trainjob", "volcano-job", "rollout", "slurm-nodeset", "other"),
)
"""Whole pods, pods in fragments, objects in objects, and a kind that nobody defines."""
EACH = 5
UPDATES = 40
NAMES = golden_cases.all_names()
ALONE = re.compile(r"^(references|time):", re.MULTILINE)
STEERED = re.compile(r"^(references|time|  stage|  cluster|  subresource):", re.MULTILINE)

FERRY = """
interfaces:
  - apiVersion: run.ai/v1alpha1
    kind: Karta
    metadata: {name: ferry}
    spec:
      structureDefinition:
        rootComponent:
          name: root
          kind: {group: sea.example.com, version: v1, kind: Ferry}
          statusDefinition: {statusMappings: {}}
        childComponents:
          - name: crew
            ownerRef: root
            specDefinition:
              podTemplateSpecPath: if .spec.mode == "b" then .spec.b else .spec.a end
policies:
  - apiVersion: podgate.dev/v1alpha1
    kind: ClusterWorkloadPolicy
    metadata: {name: p}
    spec:
      defaults: {compute: {cpuCoreRequest: 0.5}}
      rules: {security: {privileged: {canEdit: false}}}
object:
  apiVersion: sea.example.com/v1
  kind: Ferry
  metadata: {name: f}
  spec:
    mode: b
    b: {spec: {containers: [{name: main, image: a, securityContext: {privileged: PRIVILEGED}}]}}
"""


def chosen(names: Sequence[CaseName], most: int) -> list[CaseName]:
    """Some of the names, evenly spread."""
    return list(names[:: -(-len(names) // most)])


def manifests() -> Iterator[CaseName]:
    """Some cases of each kind that submit a manifest, and say nothing of other objects or times."""
    for kind in KINDS:
        own = [each for each in NAMES if each.file.parent.parent.name == kind and each.offline]
        yield from chosen([each for each in own if not ALONE.search(each.file.read_text())], EACH)


def updates() -> list[CaseName]:
    """Some updates that people send."""
    own = [each for each in NAMES if not each.offline]
    texts = {each.file: each.file.read_text() for each in own}
    return chosen(
        [
            each
            for each in own
            if "\n  old:" in texts[each.file] and not STEERED.search(texts[each.file])
        ],
        UPDATES,
    )


class Labels:
    """The labels of the namespace of a case, which are always at hand."""

    def __init__(self, labels: Mapping[str, str]) -> None:
        self.found = labels

    def known(self, name: str) -> Mapping[str, str] | None:
        """The labels."""
        return self.found

    async def labels(self, name: str, seconds: float) -> Mapping[str, str] | str:
        """The labels."""
        return self.found


class Webhook:
    """The HTTP app over one catalog, without sockets; `bodies` are the reviews that it was sent."""

    def __init__(self, catalog: Catalog, where: Place) -> None:
        self.seen: list[Observation] = []
        self.bodies: list[tuple[Stage, bytes, Any]] = []
        state = State(judge=CatalogJudge(catalog, get_evaluator, clock.moment))
        labels = Labels(labels_in(where.namespace, where.labels))
        limits = Limits(deadline=20)
        reviews = Reviews(state, self.seen.append, limits, namespaces=labels)
        self.app = App(reviews, probes(state, None))

    def decide(self, request: Request) -> Decision:
        """The decision on one pass, whose answer has the same facts."""
        body = review_of(request)
        status, answer = asyncio.run(self.post(f"/{request.stage.value}", body))
        assert status == 200, answer
        self.bodies.append((request.stage, body, answer))
        decision = self.seen[-1].decision
        assert decision is not None
        response = answer["response"]
        assert response["allowed"] is not isinstance(decision, Denied)
        if isinstance(decision, Denied):
            shown = decision.violations[:MOST_VIOLATIONS]
            assert [
                (each["reason"], each["message"], each["field"])
                for each in response["status"]["details"]["causes"]
            ] == [
                (each.reason, violation_text(each), place(each.path) if each.path else each.field)
                for each in shown
            ]
        else:
            patch = json.loads(base64.b64decode(response.get("patch", "W10=")))
            assert jsonpatch.apply_patch(request.object, patch) == decision.object
        return decision

    async def post(self, path: str, body: bytes) -> tuple[int, Any]:
        """Status and answer of one call."""
        sent: list[Any] = []
        scope: dict[str, Any] = {
            "type": "http",
            "method": "POST",
            "path": path,
            "query_string": b"timeout=30s",
            "headers": [(b"content-type", b"application/json")],
        }

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body}

        async def send(message: Any) -> None:
            sent.append(message)

        await self.app(scope, receive, send)
        return sent[0]["status"], json.loads(sent[1]["body"])


def review_of(request: Request) -> bytes:
    """The AdmissionReview that an API server sends for a request."""
    resource = {
        "group": request.resource_group or request.group,
        "version": request.resource_version or request.version,
        "resource": request.resource or f"{request.kind.lower()}s",
    }
    manager = {"fieldManager": request.field_manager} if request.field_manager else {}
    asked = {
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
        "kind": {"group": request.group, "version": request.version, "kind": request.kind},
        "resource": resource,
        "namespace": request.namespace,
        "name": request.name,
        "operation": request.operation,
        "userInfo": {
            "username": request.user,
            "groups": list(request.groups),
            "extra": {key: list(each) for key, each in request.extra.items()},
        },
        "options": manager,
        "object": request.object,
        "oldObject": request.old,
        "dryRun": request.dry_run,
    }
    envelope = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
    return orjson.dumps({**envelope, "request": asked})


Fact = tuple[Any, ...]
KEYS = ("field", "path", "value", "allowed", "rule", "reason", "policy", "scope", "message")


def facts_of(violations: Sequence[Mapping[str, Any]], at: str = "") -> list[Fact]:
    """What is said of each violation, as JSON has it; `at` is the object around."""
    return sorted(
        (
            tuple(each[key] if key != "path" else joined(at, each[key]) for key in KEYS)
            for each in violations
        ),
        key=str,
    )


def without_sentences(found: Sequence[Fact], with_them: bool) -> list[Fact]:
    """The facts in order, with the sentences or without."""
    return sorted((each if with_them else each[:-1] for each in found), key=str)


def joined(at: str, path: str) -> str:
    """A path below another one, as people read it."""
    if not at:
        return path
    whole = display(())
    return at if path == whole else f"{at}{'' if path[:1] == '[' else '.'}{path}"


def violations_of(decision: Decision) -> tuple[Violation, ...]:
    """The violations of a refusal."""
    return decision.violations if isinstance(decision, Denied) else ()


def collected(told: Any, key: str) -> list[Any]:
    """Everything that an explanation lists under a key, wherever it stands."""
    if isinstance(told, list):
        return [each for one in told for each in collected(one, key)]
    if isinstance(told, dict):
        own = told.get(key)
        rest = [each for name, one in told.items() if name != key for each in collected(one, key)]
        return [*own, *rest] if isinstance(own, list) else rest
    return []


@pytest.fixture(name="file")
def file_of(tmp_path: Path) -> Path:
    """Where a manifest or a review goes."""
    return tmp_path / "given.json"


def test_of_enough_cases() -> None:
    assert len(list(manifests())) > 90
    assert len(updates()) > 30


@pytest.mark.parametrize("name", list(manifests()), ids=str)
def test_a_manifest(name: CaseName, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compare_all(name.load(), file, monkeypatch)


@pytest.mark.parametrize("privileged", ["true", "false"])
def test_pods_that_only_jq_finds(
    privileged: str, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "case.yaml").write_text(FERRY.replace("PRIVILEGED", privileged))
    (case,) = cases_of(tmp_path / "case.yaml")
    found = compare_all(case, file, monkeypatch)
    rules = {each.rule for each in violations_of(found)}
    assert rules == ({"canEdit"} if privileged == "true" else set())


def compare_all(case: Case, file: Path, monkeypatch: pytest.MonkeyPatch) -> Decision:
    """Ask the webhook, then everybody else; the webhook's decision in both passes."""
    catalog, where = installation.catalog_of(case), installation.place_of(case)
    request = applied(case, catalog)
    if request is None:
        pytest.skip("kubectl notes nothing in such metadata")
    webhook = Webhook(catalog, where)
    decision = decide_both_passes(request, webhook.decide)
    wanted = facts_of([violation_json(each) for each in violations_of(decision)])
    warnings = {warning_text(each) for each in decision.warnings}
    monkeypatch.setattr(loading, "catalog_of", lambda *_: catalog)
    compare_reviews(webhook, where, file)

    tried = run(case)
    assert facts_of([violation_json(each) for each in violations_of(tried.decision)]) == wanted
    assert {warning_text(each) for each in tried.decision.warnings} == warnings

    raw = case.given["object"]
    file.write_bytes(orjson.dumps(raw))
    labels = ",".join(f"{key}={value}" for key, value in where.labels.items())
    options = ("-n", where.namespace, "--namespace-labels", labels, "-o", "json", str(file))
    (line,) = podgate("apply", *options).stdout.splitlines()
    verdict = json.loads(line)
    assert facts_of(verdict["violations"]) == wanted
    assert set(verdict["warnings"]) == warnings
    if not isinstance(decision, Denied):
        # Offline the author's form comes out; behind it is the object that the API server stores.
        assert tried.decision.object == without_note(decision.object)
        assert verdict["object"] == tried.object
        assert jsonpatch.apply_patch(raw, verdict["patch"]) == verdict["object"]

    told = [json.loads(each) for each in podgate("explain", *options).stdout.splitlines()]
    explained: list[Fact] = []
    for each in told:
        explained += facts_of(collected(each, "violations"), each["source"].partition(" at ")[2])
    # The sentence about a wrapped object has the path in that object, so only facts are compared.
    told_alone = len(told) == 1
    assert without_sentences(explained, told_alone) == without_sentences(wanted, told_alone)
    assert {one for each in told for one in collected(each, "warnings")} == warnings

    definition = catalog.definition(request.group, request.kind, request.version)
    if definition is not None:
        known = References({request.namespace: request.namespace_labels})
        found = evaluate_object(request.object, definition, catalog, request.namespace, known)
        assert facts_of([violation_json(each) for each in found.violations]) == wanted
        if not isinstance(decision, Denied):
            assert found.changes == decision.changes
    return decision


def compare_reviews(webhook: Webhook, where: Place, file: Path) -> None:
    """`podgate review` answers what the webhook answered, but for the number of its catalog."""
    labels = ",".join(f"{key}={value}" for key, value in where.labels.items())
    for stage, body, answer in webhook.bodies:
        file.write_bytes(body)
        done = podgate("review", "--stage", stage.value, "--namespace-labels", labels, str(file))
        del answer["response"]["auditAnnotations"]["catalog"]
        assert json.loads(done.stdout) == answer


@pytest.mark.parametrize("name", updates(), ids=str)
def test_an_update(name: CaseName, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = name.load()
    catalog, where = installation.catalog_of(case), installation.place_of(case)
    webhook = Webhook(catalog, where)
    asked = replace(request_of(case), namespace_labels={})
    decision = decide_both_passes(asked, webhook.decide)
    monkeypatch.setattr(loading, "catalog_of", lambda *_: catalog)
    compare_reviews(webhook, where, file)
    tried = run(case)
    assert violations_of(tried.decision) == violations_of(decision)
    assert tried.decision.warnings == decision.warnings
    assert tried.decision.audit == decision.audit
    if not isinstance(decision, Denied):
        assert tried.object == decision.object
        assert tried.patch == decision.patch
