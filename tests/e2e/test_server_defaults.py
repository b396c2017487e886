"""The server-default table against the API server it was learned from."""

from __future__ import annotations

import base64
import contextlib
import fnmatch
import http.server
import json
import ssl
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import corpus
from tests.conftest import REPOSITORY
from tests.e2e.testbed import releases
from tests.e2e.testbed.cluster import Cluster
from tests.e2e.testbed.probe.__main__ import probe
from tests.e2e.testbed.probe.client import Client, RefusedError
from tests.e2e.testbed.probe.kinds import KINDS, Json, Kind
from webhook.evaluation import server_rules
from webhook.evaluation.server_defaults import ServerDefaults
from webhook.interface.pod_keys import CONTAINER_KEYS, POD_KEYS
from webhook.objects import quantity

pytestmark = [pytest.mark.e2e, pytest.mark.core]

TABLES = REPOSITORY / "policies" / "server-defaults"
KNOWN = {(kind.api_version, kind.kind): kind for kind in KINDS}
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
GENERATION = "deprecated.daemonset.template.generation"
COMPLETED_LATE = ("resources.limits", "resources.requests")
"""What servers from 1.37 on complete in a Pod only after mutating webhooks were asked."""
GENERATED_NAME = ("metadata", "name")


def box(name: str = "main", *, limits: Any = None, requests: Any = None, **more: Any) -> Json:
    """Return a container with resources."""
    resources = {"limits": limits, "requests": requests}
    return {"name": name, "image": "a:1", "resources": resources, **more}


HUGE = {"hugepages-2Mi": "4Mi"}
POD_CORNERS: dict[str, Json] = {
    "huge pages where the pod has requests only": {
        "resources": {"requests": {"cpu": "1"}},
        "containers": [box(limits={**HUGE, "cpu": "500m", "memory": "1Gi"})],
    },
    "huge pages of two containers": {
        "resources": {"limits": {"cpu": "4", "memory": "2Gi"}},
        "containers": [
            box(limits={**HUGE, "cpu": 0.5, "memory": "512Mi"}),
            box("b", limits=HUGE, requests={"cpu": "250m", "memory": "1G"}),
        ],
    },
    "huge pages that the pod has itself": {
        "resources": {"limits": {"hugepages-2Mi": "8Mi", "cpu": "1"}},
        "containers": [box(limits=HUGE)],
    },
    "resources that no pod level has": {
        "resources": {"limits": {"cpu": "4"}, "requests": {}},
        "containers": [box(limits={"nvidia.com/gpu": 1, "ephemeral-storage": "1Gi"})],
    },
    "a request of nothing": {
        "resources": {"limits": {"cpu": "4"}},
        "containers": [box(requests={"cpu": "0"})],
    },
    "sidecars before and after": {
        "resources": {"limits": {"cpu": "4"}},
        "initContainers": [
            box("i", requests={"cpu": "1"}, restartPolicy="Always"),
            box("j", limits={"cpu": "3"}),
            box("k", requests={"cpu": "500m"}, restartPolicy="Always"),
        ],
        "containers": [box(requests={"cpu": "100m"})],
    },
    "ports of the host": {
        "hostNetwork": True,
        "containers": [box(ports=[{"containerPort": 0}, {"containerPort": 8, "hostPort": 0}])],
    },
    "volumes with null and zero": {
        "volumes": [
            {"name": "a", "emptyDir": None},
            {"name": "c", "secret": {"secretName": "x", "defaultMode": 0}},
        ]
    },
    "no image": {"containers": [{"name": "main"}, {"name": "other", "image": ""}]},
    "empty probe fields": {
        "containers": [box(livenessProbe={"httpGet": {"port": 1, "path": ""}, "periodSeconds": 0})]
    },
}
LABELS: Json = {"metadata": {"labels": {"a": "b"}}}
WORKLOAD_CORNERS: dict[str, tuple[Json, ...]] = {
    "apps/Deployment": (
        {"spec": {"strategy": None}},
        {"spec": {"strategy": {"type": "", "rollingUpdate": None}}},
        {"spec": {"strategy": {"type": "Odd"}}},
        {"spec": {"replicas": None, "progressDeadlineSeconds": 0}},
    ),
    "apps/StatefulSet": (
        {"spec": {"updateStrategy": {"type": "RollingUpdate"}}},
        {"spec": {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {}}}},
        {
            "spec": {
                "volumeClaimTemplates": [{"metadata": {"name": "a"}, "spec": {"resources": {}}}]
            }
        },
    ),
    "apps/DaemonSet": (
        {},
        LABELS,
        {"metadata": {"annotations": {"a": "b"}}},
        {"spec": {"updateStrategy": {"type": "OnDelete"}}},
        {"spec": {"updateStrategy": {"rollingUpdate": {"maxSurge": 0}}}},
    ),
    "apps/ReplicaSet": ({"spec": {"replicas": 0}},),
    "ReplicationController": ({}, LABELS, {"spec": {"selector": {}}}),
    "batch/Job": (
        {},
        {"spec": {"template": LABELS}},
        {"metadata": {"labels": {}}, "spec": {"template": LABELS, "parallelism": 2}},
        {"spec": {"backoffLimitPerIndex": 0}},
        {"spec": {"podFailurePolicy": {}}},
    ),
    "batch/CronJob": ({}, {"spec": {"jobTemplate": {"spec": {"podFailurePolicy": {}}}}}),
}
SHA = "0123456789abcdef" * 4
IMAGES = (
    "a", "a:latest", "a:Latest", "A/a", "A/a:latest", "a/A", "localhost/a:latest", "a__b", "a___b",
    "a_.b", "A.b/c:latest", "a_b.c/d:latest", "a:1/b", "a:b/c", "[::1]:5000/a:latest", "[::1]/a",
    f"a@sha256:{SHA}", f"a:latest@sha256:{SHA}", f"a:latest@sha256:{SHA.upper()}", f"a@md5:{SHA}",
    f"a:latest@sha512:{SHA}", f"a:latest@sha512:{SHA}{SHA}", SHA, f"{SHA}:latest", f"x/{SHA}",
    "a:" + "t" * 128, "a:" + "t" * 129, "/".join(["abc"] * 63) + "/ab", "-a", "a-", "a.-b", "a--b",
    "/".join(["abcdefg"] * 32), "a/" + "/".join(["abcdefg"] * 32), "b" * 247, "b" * 248,
    "docker.io/" + "b" * 248, "index.docker.io/" + "b" * 247, "x.y/" + "b" * 255,
    "x.y/" + "b" * 256,
    " a", "a ", "a:latest\n", "ä", "a/", "/a", "a//b", "index.docker.io/a:latest", "http://a/b",
)  # fmt: skip


@pytest.fixture
def table(minor: str) -> Json:
    """The committed table of the test bed's minor."""
    return dict(yaml.safe_load((TABLES / f"{minor}.yaml").read_text("utf-8")))


@pytest.fixture(scope="module")
def client(cluster: Cluster) -> Iterator[Client]:
    """A connection to the cluster, whose namespace `default` is ready for Pods."""
    cluster.wait_namespace_ready("default")
    with contextlib.closing(Client(cluster)) as client:
        yield client


def test_every_field_of_pods_and_containers_is_known(cluster: Cluster) -> None:
    """A new field has to be decided: tests/decision/test_ratchet.py has what each does to a container."""
    with contextlib.closing(Client(cluster)) as client:
        schemas = client.request("GET", "/openapi/v3/api/v1")["components"]["schemas"]
    fields = {
        name: set(schemas[f"io.k8s.api.core.v1.{name}"]["properties"])
        for name in ("PodSpec", "Container")
    }
    assert fields["PodSpec"] <= POD_KEYS
    assert fields["Container"] <= CONTAINER_KEYS | {"image"}


def test_probing_again_gives_the_committed_table(cluster: Cluster, table: Json) -> None:
    assert probe() == table


def test_defaults_are_what_the_server_stores(
    client: Client, table: Json, upstream_data: Path
) -> None:
    problems, compared = [], 0
    for name, kind, sent in documents(upstream_data):
        try:
            answer = client.create(kind, sent)
        except RefusedError:
            continue
        compared += 1
        problems += [f"{name}: {one}" for one in differences(table, kind, sent, answer)]
    assert not problems
    assert compared > 50


def test_defaults_are_what_webhooks_see(
    cluster: Cluster, client: Client, table: Json, upstream_data: Path
) -> None:
    problems, compared = [], 0
    # The server counts the generations of a DaemonSet's template after it has asked webhooks.
    for rule in table["kinds"]["apps/DaemonSet"]["rules"][:2]:
        assert rule["path"].startswith("metadata.annotations")
        rule["value"] = {GENERATION: "0"} if rule["path"] == "metadata.annotations" else "0"
    if int(releases.chosen().minor.partition(".")[2]) >= 37:
        # Once webhooks have added their containers; what is stored has it, as the test above shows.
        pod = table["kinds"]["Pod"]
        late = [rule for rule in pod["podSpecRules"] if rule["path"] in COMPLETED_LATE]
        assert len(late) == len(COMPLETED_LATE)
        pod["podSpecRules"] = [rule for rule in pod["podSpecRules"] if rule not in late]
    with webhook(cluster, client) as seen:
        for name, kind, sent in [*documents(upstream_data), *corner_cases()]:
            seen.clear()
            # Webhooks are asked before validation, so what is refused counts too.
            with contextlib.suppress(RefusedError):
                client.create(kind, sent)
            for shown in seen:
                compared += 1
                problems += [f"{name}: {one}" for one in differences(table, kind, sent, shown)]
    assert not problems
    assert compared > 100


@contextlib.contextmanager
def webhook(cluster: Cluster, client: Client) -> Iterator[list[Json]]:
    """Register a webhook; the list grows by every object of a built-in kind that it is shown."""
    seen: list[Json] = []

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            seen.append(review["request"]["object"])
            allowed = {"uid": review["request"]["uid"], "allowed": True}
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps({**review, "response": allowed}).encode())

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(cluster.folder / "server.crt", cluster.folder / "server.key")
    with http.server.HTTPServer(("127.0.0.1", 0), Answer) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            with registered(cluster, client, server.server_port):
                end = time.monotonic() + 30
                while not seen and time.monotonic() < end:
                    client.create(KINDS[0], KINDS[0].build("probe", {}))
                    time.sleep(0.1)
                yield seen
        finally:
            server.shutdown()
            thread.join()


@contextlib.contextmanager
def registered(cluster: Cluster, client: Client, port: int) -> Iterator[None]:
    """Have the server show new objects of built-in kinds to the webhook at `port`."""
    collection = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
    bundle = base64.b64encode(cluster.ca_file.read_bytes()).decode()
    rule = {
        "operations": ["CREATE"],
        "apiGroups": ["", "apps", "batch"],
        "apiVersions": ["v1"],
        "resources": [kind.resource for kind in KINDS],
    }
    hook = {
        "name": "server-defaults.podgate.dev",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {"url": f"https://127.0.0.1:{port}/", "caBundle": bundle},
        "rules": [rule],
        # Cron jobs of other tests go on in their namespaces.
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}},
    }
    configuration = {"metadata": {"name": "server-defaults"}, "webhooks": [hook]}
    client.request("POST", collection, configuration)
    try:
        yield
    finally:
        client.request("DELETE", f"{collection}/server-defaults")


def documents(upstream_data: Path) -> Iterator[tuple[str, Kind, Json]]:
    """Every upstream object of a built-in kind, in namespace `default`, with its file's name."""
    for origin in corpus.ORIGINS:
        for source, document in corpus.samples(origin).objects:
            yield from _known(source, document)
    for path in sorted(upstream_data.joinpath("reviews").glob("*-create-*.json")):
        request = json.loads(path.read_text("utf-8"))["request"]
        notes = (request["object"] or {}).get("metadata", {}).get("annotations", {})
        if LAST_APPLIED in notes:
            yield from _known(path.name, json.loads(notes[LAST_APPLIED]))


def _known(name: str, document: Any) -> Iterator[tuple[str, Kind, Json]]:
    if not isinstance(document, dict):
        return
    for item in document.get("items") or [document]:
        if kind := KNOWN.get((item.get("apiVersion"), item.get("kind"))):
            sent = json.loads(json.dumps(item, default=str))
            sent["metadata"]["namespace"] = "default"
            yield name, kind, sent


def corner_cases() -> Iterator[tuple[str, Kind, Json]]:
    """Objects that upstream projects do not write, each with what it is about."""
    pod, workloads = KINDS[0], {kind.name: kind for kind in KINDS}
    for about, spec in POD_CORNERS.items():
        yield about, pod, pod.build("probe", spec)
    for name, specs in WORKLOAD_CORNERS.items():
        for spec in specs:
            yield f"{name} with {spec}", workloads[name], workloads[name].build("probe", {}, spec)
    for reference in IMAGES:
        yield (
            reference,
            pod,
            pod.build("probe", {"containers": [{"name": "a", "image": reference}]}),
        )


def differences(table: Json, kind: Kind, sent: Json, got: Json) -> Iterator[str]:
    """Tell where the server changed `sent` into `got` otherwise than the table says."""
    group = kind.api_version.rpartition("/")[0]
    ours = ServerDefaults.parse(table).kind(group, kind.kind).apply(sent)
    generated = {GENERATED_NAME, *map(server_rules.steps, table["kinds"][kind.name]["generated"])}
    generated |= {path[:-1] for path in generated if len(path) > 2}
    for path in sorted(generated, key=len, reverse=True):
        whole = not any(other[: len(path)] == path for other in generated - {path})
        _drop_generated(path, sent, got, whole=whole)
    for added in table["admission"].get(kind.name, ()):
        _drop_admitted(server_rules.steps(added["path"]), added, sent, ours, got)
    yield from _differences(sent, ours, got, kind.name)


def _drop_generated(path: tuple[str, ...], sent: Any, got: Any, *, whole: bool) -> None:
    """Drop what is at `path` if it was not sent, unless `whole`, only if it is empty."""
    for key in path[:-1]:
        got = got.get(key) or {}
        sent = (sent or {}).get(key)
    if not (sent or {}).get(path[-1]) and (whole or not got.get(path[-1])):
        got.pop(path[-1], None)


def _drop_admitted(path: tuple[str, ...], added: Json, sent: Any, ours: Any, got: Any) -> None:
    if path[0] == "[]":
        for one, other, third in zip(sent, ours, got, strict=False):
            _drop_admitted(path[1:], added, one, other, third)
        return
    if len(path) > 1:
        if path[0] in got:
            _drop_admitted(path[1:], added, sent.get(path[0]), ours.get(path[0]), got[path[0]])
        return
    key = path[0]
    if "value" in added and key not in ours and got.get(key) == added["value"]:
        del got[key]
    elif "append" in added and key in got:
        kept = [one for one in got[key] if not any(_like(one, each) for each in added["append"])]
        got[key] = kept
        if not kept and not sent.get(key):
            del got[key]


def _like(found: Any, pattern: Any) -> bool:
    if isinstance(pattern, dict) and isinstance(found, dict):
        return found.keys() == pattern.keys() and all(_like(found[k], pattern[k]) for k in found)
    if isinstance(pattern, str) and isinstance(found, str):
        return fnmatch.fnmatchcase(found, pattern)
    return bool(found == pattern)


def _differences(sent: Any, ours: Any, got: Any, place: str) -> Iterator[str]:
    """Compare what was added or changed; what the server only spells otherwise is no matter."""
    if isinstance(sent, dict) and isinstance(ours, dict) and isinstance(got, dict):
        for key in {**ours, **got}:
            one, other, third = sent.get(key), ours.get(key), got.get(key)
            yield from _differences(one, other, third, f"{place}.{key}")
    elif isinstance(sent, list) and isinstance(ours, list) and isinstance(got, list):
        if not len(sent) == len(ours) == len(got):
            yield f"{place} has {len(got)} items instead of {len(ours)}"
        for index, (one, other, third) in enumerate(zip(sent, ours, got, strict=False)):
            yield from _differences(one, other, third, f"{place}[{index}]")
    elif not _same(ours, got) and (ours != sent or (got is not None and not sent and got != "")):
        yield f"{place} is {got!r} instead of {ours!r}"


def _same(ours: Any, got: Any) -> bool:
    if isinstance(ours, dict) and isinstance(got, dict):
        return ours.keys() == got.keys() and all(_same(ours[key], got[key]) for key in ours)
    with contextlib.suppress(quantity.QuantityError):
        return quantity.parse(ours) == quantity.parse(got)
    return bool(ours == got)
