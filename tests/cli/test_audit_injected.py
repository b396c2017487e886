"""`podgate audit --injected`: its list, given back, leaves nothing to print."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.building import container, policy
from tests.cli.running import podgate
from tests.cluster.test_kubernetes import FakeApi, api, ca, reply
from webhook.cli import audit_report
from webhook.controller.injections import OWNERS_KEPT

__all__ = ["api", "ca"]

Json = dict[str, Any]
POLICY = """
defaults:
  environmentVariables: {instances: [{name: PROXY, value: "http://proxy"}]}
rules:
  image: {options: [{value: "registry.example.com/main:1"}]}
  security:
    privileged: {canEdit: false}
    runAsUid: {canEdit: false}
    hostNetwork: {canEdit: false}
    volumeTypes: {options: [{value: emptyDir}, {value: hostPath}, {value: projected}]}
  environmentVariables: {instances: {locked: [PROXY]}}
  storage: {hostPath: {instances: {canAdd: false}}}
  compute: {gpuDevicesRequest: {max: 1}}
"""
PROXY = {"name": "PROXY", "value": "http://proxy"}
MAIN = container(env=[PROXY])
MESH = {
    "name": "mesh",
    "image": "mesh.example.com/mesh:1",
    "securityContext": {"runAsUser": 1337},
    "volumeMounts": [{"name": "keys", "mountPath": "/keys", "readOnly": True}],
}
HOST = {"name": "host", "hostPath": {"path": "/run/[mesh]*", "type": ""}}
TOKEN = {
    "name": "kube-api-access-abcde",
    "projected": {
        "defaultMode": 420,
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
            {
                "configMap": {
                    "name": "kube-root-ca.crt",
                    "items": [{"key": "ca.crt", "path": "ca.crt"}],
                }
            },
            {
                "downwardAPI": {
                    "items": [
                        {
                            "path": "namespace",
                            "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"},
                        }
                    ]
                }
            },
        ],
    },
}
TOKEN_MOUNT = {
    "name": TOKEN["name"],
    "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
    "readOnly": True,
}
OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "controller": True}


def owned(name: str, spec: Json, owner: str = "web") -> Json:
    """A Pod of a ReplicaSet."""
    references = [{**OWNER, "name": owner, "uid": f"u-{owner}"}]
    metadata = {"name": name, "namespace": "team-a", "uid": name, "ownerReferences": references}
    return {"metadata": metadata, "spec": spec}


def made(*more: Json, **spec: Any) -> Json:
    """The spec of a Pod with further containers, as the API server completes it."""
    main = copy.deepcopy(MAIN)
    main["volumeMounts"] = [TOKEN_MOUNT]
    return {
        "schedulerName": "default-scheduler",
        "serviceAccountName": "default",
        "nodeName": "node-1",
        "containers": [main, *more],
        **spec,
        "volumes": [TOKEN, *spec.get("volumes", ())],
    }


class Cluster:
    """What the fake API server has: a governed namespace, Pods and ReplicaSets."""

    def __init__(self, api: FakeApi, pods: list[Json]) -> None:
        self.api = api
        self.pods = pods
        self.status: dict[str, int] = {}
        self.others: dict[str, list[Json]] = {}
        self.spec: Json = {"containers": [MAIN]}
        api.act = self.answer

    def answer(self, handler: BaseHTTPRequestHandler) -> bool:
        """One GET."""
        path = handler.path.partition("?")[0]
        labels = {"podgate.dev/governed": "true"}
        found: Json | None = None
        if path == "/api/v1/namespaces":
            found = {"items": [{"metadata": {"name": "team-a", "labels": labels}}]}
        elif path in self.others:
            found = {"items": self.others[path]}
        elif path == "/api/v1/pods":
            found = {"items": self.pods}
        elif path.startswith("/apis/apps/v1/namespaces/team-a/replicasets/"):
            name = path.rpartition("/")[2]
            found = {
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "metadata": {"name": name, "namespace": "team-a", "uid": f"u-{name}"},
                "spec": {"template": {"metadata": {}, "spec": self.spec}},
            }
        status = self.status.get(path, 200 if found is not None else 404)
        answer = found if status == 200 else {"kind": "Status", "code": status}
        reply(handler, status, json.dumps(answer).encode())
        return True

    def lookups(self) -> list[str]:
        """The owners that were asked for."""
        return [each for each in self.api.paths if "/replicasets/" in each]


Audit = Callable[..., Any]


@pytest.fixture
def audit(api: FakeApi, tmp_path: Path) -> Audit:
    """Runs the command by the policy above."""
    file = tmp_path / "policy.yaml"
    file.write_text(yaml.safe_dump(policy(POLICY)))

    def run(*more: str) -> Any:
        config = ("--kubeconfig", str(api.kubeconfig()), "--policies", str(file))
        return podgate("audit", "--injected", *config, *more)

    return run


def listed(text: str) -> Json:
    """The list in an output."""
    return dict(yaml.safe_load(text) or {})


RUNS: Json = {
    "command": ["sh", "-c", "serve"],
    "livenessProbe": {"exec": {"command": ["check"]}},
}
CASES: dict[str, tuple[Json, Json]] = {
    "a sidecar": (
        made(MESH, volumes=[{"name": "keys", "emptyDir": {}}]),
        {"containers": [MESH]},
    ),
    "a sidecar with the token's mount": (
        made({**MESH, "volumeMounts": [TOKEN_MOUNT]}),
        {"containers": [{key: MESH[key] for key in ("name", "image", "securityContext")}]},
    ),
    "a native sidecar with a privilege": (
        made(initContainers=[{**MAIN, "name": "setup", "securityContext": {"privileged": True}}]),
        {
            "containers": [
                {"name": "setup", "image": MAIN["image"], "securityContext": {"privileged": True}}
            ]
        },
    ),
    "a sidecar that runs commands": (
        made({**MESH, **RUNS, "args": ["x"], "readinessProbe": {"httpGet": {"port": 1}}}),
        {"containers": [{**MESH, **RUNS}]},
    ),
    "a sidecar with devices": (
        made(
            {
                "name": "dev",
                "image": MAIN["image"],
                "resources": {"limits": {"cpu": "1", "nvidia.com/gpu": "2"}},
            }
        ),
        {
            "containers": [
                {
                    "name": "dev",
                    "image": MAIN["image"],
                    "resources": {"limits": {"nvidia.com/gpu": "2"}},
                }
            ]
        },
    ),
    "a volume of the node, with a mount and special characters": (
        made(
            {**MESH, "volumeMounts": [{"name": "host", "mountPath": "/run"}]},
            volumes=[HOST],
        ),
        {
            "containers": [{**MESH, "volumeMounts": [{"name": "host", "mountPath": "/run"}]}],
            "items": [
                {
                    "field": "storage.hostPath",
                    "content": {
                        "name": "host",
                        "hostPath": {"path": "/run/[[]mesh][*]", "type": ""},
                    },
                }
            ],
        },
    ),
    "a volume of a type": (
        made(volumes=[{"name": "keys", "csi": {"driver": "keys.example.com"}}]),
        {
            "items": [
                {
                    "field": "security.volumeTypes",
                    "content": {"name": "keys", "csi": {"driver": "keys.example.com"}},
                }
            ]
        },
    ),
    "the network of the node": (
        made(hostNetwork=True),
        {"items": [{"field": "security.hostNetwork", "content": True}]},
    ),
    "an image that was replaced": (
        {**made(), "containers": [{**MAIN, "image": "mirror.example.com/main:1"}]},
        {"containers": [{"name": "main", "image": "mirror.example.com/main:1"}]},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_printed_list_excuses_what_it_was_printed_for(
    api: FakeApi, audit: Audit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    spec, expected = CASES[name]
    Cluster(api, [owned("web-1", spec), owned("web-2", spec), owned("web-3", made())])
    found = audit()
    assert found.exit_code == 1, found.output
    assert listed(found.stdout) == expected
    assert "# Pod team-a/web-1, which ReplicaSet web controls" in found.stdout
    assert "#   refused: " in found.stdout
    assert "# 2 objects, such as Pod team-a/web-1" in found.stdout
    assert "web-3" not in found.stdout
    assert found.stderr.endswith(
        "3 objects that controllers made were evaluated: 2 would be refused, 0 of them whatever is"
        " listed\n"
    )
    file = tmp_path / "injected.yaml"
    file.write_text(found.stdout)
    monkeypatch.setenv("PODGATE_INJECTED", str(file))
    again = audit()
    assert (again.exit_code, again.stdout) == (0, ""), again.output


def test_lists_of_several_objects_are_one(
    api: FakeApi, audit: Audit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Cluster(api, [owned(f"web-{n}", spec) for n, (spec, _) in enumerate(CASES.values())])
    file = tmp_path / "injected.yaml"
    file.write_text(audit().stdout)
    monkeypatch.setenv("PODGATE_INJECTED", str(file))
    again = audit()
    assert (again.exit_code, again.stdout) == (0, ""), again.output


def test_what_no_entry_excuses_is_told_as_such(api: FakeApi, audit: Audit) -> None:
    spec = made(MESH, securityContext={"runAsUser": 0})
    Cluster(api, [owned("web-1", spec)])
    found = audit()
    assert found.exit_code == 1
    assert listed(found.stdout) == {"containers": [MESH]}
    assert "#   needs: container mesh\n" in found.stdout
    lacking = "no entry excuses security.runAsUid at spec.securityContext.runAsUser"
    assert f"#   {lacking}\n" in found.stdout
    assert found.stderr.endswith("1 would be refused, 1 of them whatever is listed\n")
    (row,) = [json.loads(line) for line in audit("-o", "json").stdout.splitlines()]
    assert (row["name"], row["owner"]["name"]) == ("web-1", "web")
    assert len(row["violations"]) > len(row["unlisted"])
    assert {each["field"] for each in row["unlisted"]} == {"security.runAsUid"}
    assert row["entries"] == {"containers": [MESH], "items": []}


def test_debug_containers_and_objects_of_owners_that_are_gone_need_nothing(
    api: FakeApi, audit: Audit
) -> None:
    debugged = made(ephemeralContainers=[{"name": "debug", "image": "debug.example.com/d:1"}])
    cluster = Cluster(api, [owned("web-1", debugged), owned("gone-1", made(MESH), "gone")])
    cluster.status["/apis/apps/v1/namespaces/team-a/replicasets/gone"] = 404
    found = audit()
    assert (found.exit_code, found.stdout) == (0, ""), found.output


def test_what_people_made_and_what_the_owner_has_is_not_told(api: FakeApi, audit: Audit) -> None:
    bare = owned("bare", made(MESH))
    del bare["metadata"]["ownerReferences"]
    cluster = Cluster(api, [bare, owned("web-1", made(MESH))])
    cluster.spec = {"containers": [MAIN, MESH]}
    found = audit()
    assert (found.exit_code, found.stdout) == (0, ""), found.output


def test_owners_are_read_once_each_and_names_that_none_can_have_never(
    api: FakeApi, audit: Audit
) -> None:
    pods = [owned(f"p-{n}", made(MESH), f"set-{n // 5}") for n in range(5 * OWNERS_KEPT + 10)]
    strange = owned("strange", made(MESH), "../../secrets/x")
    cluster = Cluster(api, [*pods, strange])
    found = audit()
    assert found.exit_code == 1
    assert len(cluster.lookups()) == OWNERS_KEPT + 2
    assert len(set(cluster.lookups())) == OWNERS_KEPT + 2
    assert not any("secrets" in each for each in api.paths)
    assert f"# {len(pods)} objects, such as Pod team-a/p-0" in found.stdout


def test_owners_that_may_not_be_read_are_told_and_a_silent_server_ends_it(
    api: FakeApi, audit: Audit, caplog: pytest.LogCaptureFixture
) -> None:
    cluster = Cluster(api, [owned("web-1", made(MESH)), owned("web-2", made(MESH))])
    cluster.status["/apis/apps/v1/namespaces/team-a/replicasets/web"] = 403
    found = audit()
    assert found.exit_code == 1
    (line,) = [each.message for each in caplog.records if "replicasets" in each.message]
    assert "are not compared with what was made of them" in line
    cluster.status["/apis/apps/v1/namespaces/team-a/replicasets/web"] = 500
    found = audit()
    assert found.exit_code == 2
    assert found.stderr.splitlines()[-1].startswith("error: ")


def test_entries_have_a_limit_and_it_is_told(
    api: FakeApi, audit: Audit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_report, "MOST_ENTRIES", 3)
    pods = [owned(f"p-{n}", made({**MESH, "image": f"x.example.com/m:{n}"})) for n in range(5)]
    Cluster(api, pods)
    found = audit()
    assert len(listed(found.stdout)["containers"]) == 3
    assert "only 3 entries are printed" in found.stderr
