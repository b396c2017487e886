"""podgate interface tree, update and suspend, as people run them."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.access.test_object_tree import POD, job, objects, owned
from tests.cli.running import podgate
from webhook.access.tree import trees, walk
from webhook.cli import definitions
from webhook.cli.interface_tree import from_cluster
from webhook.cluster.client import ApiError
from webhook.jq.expressions import Evaluator


@pytest.fixture
def live(tmp_path: Path) -> str:
    """What kubectl prints of several kinds."""
    path = tmp_path / "live.yaml"
    path.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": objects()}))
    return str(path)


@pytest.fixture
def jobset(tmp_path: Path) -> str:
    """The JobSet alone."""
    path = tmp_path / "jobset.yaml"
    path.write_text(yaml.safe_dump(objects()[0]))
    return str(path)


def test_a_tree_of_files(live: str) -> None:
    result = podgate("interface", "tree", "jobset/training", live)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.splitlines() == [
        "JobSet/training  Running",
        "  Job/training-master-0  Running",
        "    Pod/training-master-0-0  Initializing  (replicatedjob master)",
        "  Service/pods",
    ]


def test_a_tree_as_json(live: str) -> None:
    body = json.loads(podgate("interface", "tree", "JobSet/training", live, "-o", "json").stdout)
    (first, service) = body["children"]
    assert (body["state"], body["namespace"]) == ("Running", "team")
    assert first["children"][0]["instance"] == "master"
    assert service["state"] is None


@pytest.mark.parametrize(
    "arguments, code, told",
    [
        (["jobset/none"], 1, "no JobSet.jobset.x-k8s.io none"),
        (["jobset"], 2, "write KIND/NAME"),
        (["jobsett/a"], 2, "did you mean jobset"),
        (["jobset/training", "-o", "yaml"], 2, "yaml"),
    ],
)
def test_what_a_tree_cannot_draw(live: str, arguments: list[str], code: int, told: str) -> None:
    result = podgate("interface", "tree", arguments[0], live, *arguments[1:])
    assert result.exit_code == code
    assert told in result.stderr


class Server:
    """Answers like an API server that has the objects; each list comes in two pages."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def ask(self, method: str, path: str, accept: str = "") -> dict[str, Any]:
        assert method == "GET"
        self.asked.append(path)
        if path in ("/api", "/apis"):
            return discovery("" if path == "/api" else "apis")
        base, _, query = path.partition("?")
        plural = base.rsplit("/", 1)[-1]
        found = [each for each in objects() if f"{each['kind'].lower()}s" == plural]
        if "continue=" in query:
            return {"apiVersion": found[0]["apiVersion"], "metadata": {}, "items": found[1:]}
        listed = [{k: v for k, v in each.items() if k != "kind"} for each in found[:1]]
        more = {"continue": "a/b"} if len(found) > 1 else {}
        version = found[0]["apiVersion"] if found else "v1"
        return {"apiVersion": version, "metadata": more, "items": listed}

    async def find(self, path: str) -> dict[str, Any] | None:
        self.asked.append(path)
        name = path.rsplit("/", 1)[-1]
        return next(
            (e for e in objects() if e["kind"] == "JobSet" and e["metadata"]["name"] == name), None
        )


def discovery(which: str) -> dict[str, Any]:
    """An aggregated list of discovery."""
    rows = {"": [("", "v1", "Pod"), ("", "v1", "Service")],
            "apis": [("batch", "v1", "Job"), ("jobset.x-k8s.io", "v1alpha2", "JobSet")]}  # fmt: skip
    return {
        "items": [
            {
                "metadata": {"name": group},
                "versions": [
                    {
                        "version": version,
                        "resources": [
                            {
                                "resource": f"{kind.lower()}s",
                                "scope": "Namespaced",
                                "responseKind": {"kind": kind},
                            }
                        ],
                    }
                ],
            }
            for group, version, kind in rows[which]
        ]
    }


def test_a_tree_of_a_cluster_lists_each_child_kind_once() -> None:
    known = definitions.all_of([])
    definition = definitions.one_named(known, "jobset")
    server: Any = Server()
    found = asyncio.run(from_cluster(server, definition, "training", "team", known))
    (root, *_) = trees(found, definitions.finder(known), Evaluator())
    assert [each.body["kind"] for each in walk(root)] == ["JobSet", "Job", "Pod", "Service"]
    listed = [each for each in server.asked if "limit=" in each and "continue" not in each]
    assert sorted(each.partition("?")[0] for each in listed) == [
        "/api/v1/namespaces/team/pods",
        "/api/v1/namespaces/team/services",
        "/apis/batch/v1/namespaces/team/jobs",
    ]
    assert any("continue=a%2Fb" in each for each in server.asked)
    assert asyncio.run(from_cluster(server, definition, "none", "team", known)) == []
    other = definitions.one_named(known, "raycluster")
    with pytest.raises(ApiError, match="does not serve"):
        asyncio.run(from_cluster(server, other, "a", "team", known))


@pytest.mark.parametrize("code, rest", [(403, ["JobSet", "Job", "Pod"]), (500, None)])
def test_what_may_not_be_listed_is_told_and_left_out(
    capsys: pytest.CaptureFixture[str], code: int, rest: list[str] | None
) -> None:
    class Strict(Server):
        async def ask(self, method: str, path: str, accept: str = "") -> dict[str, Any]:
            if "/services?" in path:
                raise ApiError(code, "services is forbidden")
            return await super().ask(method, path, accept)

    known = definitions.all_of([])
    server: Any = Strict()
    asked = from_cluster(server, definitions.one_named(known, "jobset"), "training", "team", known)
    if rest is None:
        with pytest.raises(ApiError):
            asyncio.run(asked)
        return
    (root, *_) = trees(asyncio.run(asked), definitions.finder(known), Evaluator())
    assert [each.body["kind"] for each in walk(root)] == rest
    assert capsys.readouterr().err == "warning: Service: services is forbidden\n"


def test_an_instance_that_only_jq_can_name(tmp_path: Path) -> None:
    definition = {
        "apiVersion": "run.ai/v1alpha1",
        "kind": "Karta",
        "metadata": {"name": "plans"},
        "spec": {
            "structureDefinition": {
                "rootComponent": {
                    "name": "plan",
                    "kind": {"group": "example.com", "version": "v1", "kind": "Plan"},
                    "statusDefinition": {"statusMappings": {}},
                },
                "childComponents": [
                    {
                        "name": "role",
                        "ownerRef": "plan",
                        "specDefinition": {"podTemplateSpecPath": ".spec as $s | $s.roles[].pod"},
                        "instanceIdPath": ".spec as $s | $s.roles[].name",
                        "podSelector": {
                            "componentInstanceSelector": {"idPath": ".metadata.labels.role"}
                        },
                    }
                ],
            }
        },
    }
    plan = owned("Plan", "a", spec={"roles": [{"name": "x", "pod": POD}]})
    plan["apiVersion"] = "example.com/v1"
    pod = owned("Pod", "p", "a", metadata={"labels": {"role": "x"}})
    interface, objects = tmp_path / "interface.yaml", tmp_path / "objects.yaml"
    interface.write_text(yaml.safe_dump(definition))
    objects.write_text(yaml.safe_dump_all([plan, pod]))
    result = podgate("interface", "tree", "plan/a", str(objects), "--interfaces", str(interface))
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.splitlines() == ["Plan/a", "  Pod/p  Initializing  (role x)"]


def test_update_writes_one_instance(jobset: str) -> None:
    result = podgate(
        *("interface", "update", "jobset", jobset, "--component", "replicatedjob"),
        *("--instance", "worker", "--set", "schedulerName=5", "--set", 'labels={"q":"r"}'),
    )
    assert (result.exit_code, result.stderr) == (0, "")
    first, second = (
        each["template"]["spec"]["template"]
        for each in yaml.safe_load(result.stdout)["spec"]["replicatedJobs"]
    )
    assert first == POD
    assert second["spec"]["schedulerName"] == "5"
    assert second["metadata"]["labels"] == {"q": "r"}


def test_update_as_a_patch_of_all_instances(tmp_path: Path) -> None:
    body = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "a"},
        "spec": {"template": POD},
    }
    path = tmp_path / "deployment.yaml"
    path.write_text(yaml.safe_dump(body))
    result = podgate(
        *("interface", "update", "deployment", str(path), "-c", "deployment", "-o", "patch"),
        *("--set", "replicas=3", "--set", "image=y"),
    )
    assert sorted(json.loads(result.stdout), key=lambda each: each["path"]) == [
        {"op": "add", "path": "/spec/replicas", "value": 3},
        {"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "y"},
    ]


GROUP = {"groupName": "small", "template": POD}


@pytest.mark.parametrize(
    "kind, spec, arguments, changes",
    [
        (
            "ray.io/v1 RayCluster",
            {"workerGroupSpecs": [GROUP, {**GROUP, "groupName": "big", "numOfHosts": 4}]},
            ["-c", "workers", "-i", "big", "--set", "replicas=8", "--set", "maximum=12"],
            {"/spec/workerGroupSpecs/1/replicas": 2, "/spec/workerGroupSpecs/1/maxReplicas": 3},
        ),
        (
            "jobset.x-k8s.io/v1alpha2 JobSet",
            {"replicatedJobs": [job("a"), {**job("b"), "replicas": 7}]},
            ["-c", "replicatedjob", "--set", "replicas=2"],
            {"/spec/replicatedJobs/0/replicas": 2, "/spec/replicatedJobs/1/replicas": 2},
        ),
        (
            "leaderworkerset.x-k8s.io/v1 LeaderWorkerSet",
            {"leaderWorkerTemplate": {"size": 3, "workerTemplate": POD}},
            ["-c", "worker", "--set", "replicas=8"],
            {"/spec/replicas": 4},
        ),
        (
            "grove.io/v1alpha1 PodCliqueSet",
            {"replicas": 2, "template": {"cliques": [{"name": "a", "spec": {"podSpec": {}}}]}},
            ["-c", "clique", "--set", "replicas=6"],
            {"/spec/template/cliques/0/spec/replicas": 3},
        ),
    ],
)
def test_update_writes_the_first_field_of_replicas_that_are_a_product(
    tmp_path: Path, kind: str, spec: dict[str, Any], arguments: list[str], changes: dict[str, int]
) -> None:
    version, _, name = kind.partition(" ")
    path = tmp_path / "object.json"
    path.write_text(
        json.dumps({"apiVersion": version, "kind": name, "metadata": {"name": "a"}, "spec": spec})
    )
    result = podgate("interface", "update", name, str(path), *arguments, "-o", "patch")
    assert (result.exit_code, result.stderr) == (0, "")
    assert {each["path"]: each["value"] for each in json.loads(result.stdout)} == changes


def test_update_refuses_replicas_that_no_product_gives(tmp_path: Path) -> None:
    body = owned("RayCluster", "a", spec={"workerGroupSpecs": [{**GROUP, "numOfHosts": 4}]})
    body["apiVersion"] = "ray.io/v1"
    path = tmp_path / "object.json"
    path.write_text(json.dumps(body))
    result = podgate(
        *("interface", "update", "raycluster", str(path), "-c", "workers"), "--set", "replicas=6"
    )
    assert (result.exit_code, result.stdout) == (1, "")
    assert "4 for each 1 at spec.workerGroupSpecs[0].replicas: never 6" in result.stderr


@pytest.mark.parametrize(
    "arguments, code, told",
    [
        (["-c", "none", "--set", "image=a"], 1, "`none` is no component"),
        (["-c", "replicatedjob", "-i", "x", "--set", "image=a"], 1, "no instance `x`"),
        (["-c", "replicatedjob", "--set", "imagee=a"], 1, "no path for `imagee`"),
        (["-c", "replicatedjob"], 2, "nothing to write"),
        (["-c", "replicatedjob", "--set", "image"], 2, "write NAME=VALUE"),
        (["-c", "replicatedjob", "--set", "replicas=two"], 2, "a whole number"),
        (["-c", "replicatedjob", "--set", "image=a", "-o", "xml"], 2, "xml"),
    ],
)
def test_what_update_refuses(jobset: str, arguments: list[str], code: int, told: str) -> None:
    result = podgate("interface", "update", "jobset", jobset, *arguments)
    assert result.exit_code == code
    assert result.stdout == ""
    assert told in result.stderr


def test_suspend_and_resume(jobset: str) -> None:
    suspended = podgate("interface", "suspend", "jobset", jobset)
    assert yaml.safe_load(suspended.stdout)["spec"]["suspend"] is True
    resumed = podgate("interface", "suspend", "jobset", jobset, "--resume", "-o", "json")
    assert json.loads(resumed.stdout)["spec"]["suspend"] is False


def test_a_kind_that_cannot_be_suspended_says_so(tmp_path: Path) -> None:
    path = tmp_path / "set.yaml"
    path.write_text(
        yaml.safe_dump({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "a"}})
    )
    result = podgate("interface", "suspend", "daemonset", str(path))
    assert (result.exit_code, result.stdout) == (1, "")
    assert "the definition of DaemonSet has no suspendDefinition" in result.stderr


def test_show_lists_child_kinds_and_pod_groups() -> None:
    lines = [
        line.strip() for line in podgate("interface", "show", "pytorchjob").stdout.splitlines()
    ]
    assert "further child kinds: Pod, Service" in lines
    at = lines.index("pod group job")
    assert lines[at + 1].startswith("replica, grouped by")
