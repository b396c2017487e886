"""Argo CD's and Flux's own code finds nothing to report after the first sync, and misses no drift."""

from __future__ import annotations

import copy
import json
import os
import re

import pytest
import yaml

from tests.conftest import REPOSITORY
from tests.e2e.conftest import bed_or_skip
from tests.e2e.expectations import lacking
from tests.e2e.gate import Gate, resource
from tests.e2e.objects import Json, at, version_of
from tests.e2e.operators.cases import how_to_run
from tests.e2e.operators.gitops import BY_ITSELF, EXACT, NAMES, Tool
from tests.e2e.testbed import programs
from tests.e2e.workloads import NEW, OLD, WORKLOADS, Workload, image_patch

ASKED = {"all", *NAMES} & set(os.environ.get("PODGATE_OPERATORS", "").split(","))
pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(not ASKED, reason=how_to_run(",".join(NAMES))),
]

EVERY = pytest.mark.parametrize("workload", WORKLOADS, ids=lambda each: each.kind)
CHANGEABLE = pytest.mark.parametrize(
    "workload",
    [each for each in WORKLOADS if each.kind in ("Deployment", "PyTorchJob", "RayCluster")],
    ids=lambda each: each.kind,
)
TOOLS = pytest.mark.parametrize("tool", EXACT, ids=lambda each: each.name)
PAGE = REPOSITORY / "docs" / "gitops.md"
POLICY = """\
apiVersion: podgate.dev/v1alpha1
kind: WorkloadPolicy
metadata: {{name: gitops, namespace: {space}}}
spec:
  defaults:
    environmentVariables:
      instances:
        - {{name: TEAM, value: {team}}}
"""


@pytest.fixture(scope="module", autouse=True)
def built() -> None:
    """The tools' programs."""
    with bed_or_skip():
        programs.find(*NAMES)


@pytest.fixture
def space(gate: Gate) -> str:
    """A governed namespace of the test's own."""
    return gate.governed_namespace()


def synced(gate: Gate, tool: Tool, workload: Workload, space: str) -> Json:
    """What is stored after a sync of the manifest, once controllers leave it alone."""
    tool.sync(gate, gate.manifest(workload.manifest), space)
    return gate.settled(workload.kind, space, workload.name)


def team(stored: Json, workload: Workload) -> str:
    """The value of the variable that the policy of these tests gives."""
    return next(str(x["value"]) for x in at(stored, f"{workload.main}.env") if x["name"] == "TEAM")


@EVERY
@TOOLS
def test_after_the_first_sync_nothing_is_reported(
    gate: Gate, space: str, workload: Workload, tool: Tool
) -> None:
    before = synced(gate, tool, workload, space)
    assert not lacking(before, workload.pods)
    assert not tool.differs(gate, gate.manifest(workload.manifest), space)
    assert version_of(synced(gate, tool, workload, space)) == version_of(before)


@EVERY
@pytest.mark.parametrize("tool", BY_ITSELF, ids=lambda each: each.name)
def test_a_comparison_without_the_server_reports_lists_that_podgate_added_to(
    gate: Gate, space: str, workload: Workload, tool: Tool
) -> None:
    before = synced(gate, tool, workload, space)
    told = tool.differs(gate, gate.manifest(workload.manifest), space)
    assert told == (workload.kind in BY_ITSELF[tool])
    # Only the report is wrong: what a sync then sends stores nothing.
    assert version_of(synced(gate, tool, workload, space)) == version_of(before)


@pytest.mark.parametrize("tool", BY_ITSELF, ids=lambda each: each.name)
def test_ignore_rules_of_the_page_leave_nothing_but_changes(
    gate: Gate, space: str, tool: Tool
) -> None:
    workload = next(each for each in WORKLOADS if each.kind == "PyTorchJob")
    (rule,) = ignored(workload.kind)
    document, ruled = gate.manifest(workload.manifest), tool.ignoring(rule["jqPathExpressions"])
    synced(gate, tool, workload, space)
    assert tool.differs(gate, document, space)
    assert not ruled.differs(gate, document, space)
    at(document, workload.main)["image"] = NEW
    assert ruled.differs(gate, document, space)


def ignored(kind: str) -> list[Json]:
    """The ignore rules for a kind in docs/gitops.md."""
    blocks = re.findall(r"```yaml\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    specs = [yaml.safe_load(each).get("spec", {}) for each in blocks]
    rules = [rule for spec in specs for rule in spec.get("ignoreDifferences", ())]
    return [rule for rule in rules if rule["kind"] == kind]


@CHANGEABLE
@TOOLS
def test_drift_is_reported_and_undone_and_so_is_a_change_in_git(
    gate: Gate, space: str, workload: Workload, tool: Tool
) -> None:
    first, place = synced(gate, tool, workload, space), f"{workload.main}.image"
    patch = json.dumps([{**image_patch(workload.main)[0][0], "value": NEW}])
    named = f"{resource(workload.kind)}/{workload.name}"
    gate.kubectl("patch", named, f"--namespace={space}", "--type=json", f"--patch={patch}")
    document = gate.manifest(workload.manifest)
    assert tool.differs(gate, document, space)
    again = synced(gate, tool, workload, space)
    assert at(again, place) == OLD
    assert again["spec"] == first["spec"]
    assert not tool.differs(gate, document, space)
    changed = copy.deepcopy(document)
    at(changed, workload.main)["image"] = NEW
    assert tool.differs(gate, changed, space)


@pytest.fixture(scope="module")
def earlier(gate: Gate) -> dict[Tool, str]:
    """The namespaces in which each tool synced every kind, before the policy's default changed."""
    spaces = {tool: gate.governed_namespace() for tool in EXACT}
    for value in ("first", "second"):
        documents = [POLICY.format(space=each, team=value) for each in spaces.values()]
        gate.podgate.rewrite("gitops.yaml", "---\n".join(documents))
        if value == "first":
            for tool, space in spaces.items():
                for workload in WORKLOADS:
                    synced(gate, tool, workload, space)
    return spaces


@EVERY
@TOOLS
def test_a_default_that_changes_makes_nothing_to_report(
    gate: Gate, earlier: dict[Tool, str], workload: Workload, tool: Tool
) -> None:
    space, document = earlier[tool], gate.manifest(workload.manifest)
    before = gate.settled(workload.kind, space, workload.name)
    assert team(before, workload) == "first"
    new = {**document, "metadata": {**document["metadata"], "name": "other"}}
    assert team(gate.api.create(new, space, dry_run=True), workload) == "second"
    assert not tool.differs(gate, document, space)
    assert version_of(synced(gate, tool, workload, space)) == version_of(before)
