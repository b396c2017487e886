"""Documents in ConfigMaps of podgate's own namespace on a real API server, beside those of the cluster."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest

from tests.cli.running import podgate
from tests.e2e.api import Api, Json
from tests.e2e.served import Certificates
from tests.e2e.test_controller import (  # noqa: F401 - fixtures
    PROBE,
    VALIDATING,
    Controllers,
    Living,
    api,
    condition,
    controllers,
    living,
    soon,
)
from tests.e2e.test_living_cluster import POLICIES, A, B, images, put, running
from tests.e2e.testbed.cluster import Cluster
from webhook.sources.configmaps import LABEL
from webhook.sources.last_good import NAME, collection_of, documents_of

pytestmark = [pytest.mark.e2e, pytest.mark.core]

MAPS = collection_of("default")
DEPLOYMENTS = f"/apis/apps/v1/namespaces/{PROBE}/deployments"
NAMED = f"{MAPS}/team"
REVISIONS = """
apiVersion: optimization.nvidia.com/v1alpha1
kind: ResourceInterface
metadata: {name: revisions}
spec:
  structureDefinition:
    rootComponent:
      name: revisions
      kind: {group: apps, version: v1, kind: ControllerRevision}
      specDefinition: {podTemplateSpecPath: .data.spec.template}
      statusDefinition: {statusMappings: {}}
---
apiVersion: podgate.dev/v1alpha1
kind: WorkloadProfile
metadata: {name: revisions}
spec:
  group: apps
  kind: ControllerRevision
  versions: [v1]
  resource: controllerrevisions
  builtIn: true
  components: {revisions: {role: worker, children: derived}}
"""
INSIDE = ("ConfigMap", "default", "team/images.yaml/ClusterWorkloadPolicy images")


def configmap(text: str, *, labelled: bool = True) -> Json:
    labels = {LABEL: "true"} if labelled else {}
    metadata = {"name": "team", "namespace": "default", "labels": labels}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata,
        "data": {"images.yaml": text, "revisions.yml": REVISIONS, "notes.txt": "not: [read"},
    }


def apply(server: Api, text: str, *, labelled: bool = True) -> None:
    """Write the ConfigMap as its author would."""
    body = configmap(text, labelled=labelled)
    path = f"{NAMED}?fieldManager=t&force=true"
    server.request("PATCH", path, body, "application/apply-patch+yaml")


def deployment(image: str) -> Json:
    labels = {"app": "d"}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "m", "image": image}]}}
    return {
        "metadata": {"name": "d"},
        "spec": {"selector": {"matchLabels": labels}, "template": pod},
    }


def audited(bare: Cluster, *more: str) -> int:
    """The exit code of podgate audit: 1 where something there breaks a rule."""
    done = podgate("audit", "--kubeconfig", str(bare.kubeconfig()), "-n", PROBE, *more)
    assert done.exit_code in (0, 1), done.stderr
    return done.exit_code


def kinds_registered(server: Api) -> set[str]:
    found = server.find(VALIDATING) or {}
    rules = (rule for each in found.get("webhooks") or () for rule in each["rules"])
    return {resource for rule in rules for resource in rule["resources"]}


def test_a_policy_in_a_configmap_is_registered_in_force_and_hides_one_of_the_cluster(
    controllers: Controllers,  # noqa: F811 - the fixture
    api: Api,  # noqa: F811 - the fixture
    bare: Cluster,
    certificates: Certificates,
    tmp_path: Path,
) -> None:
    good = json.dumps(images(A))
    with running(bare, certificates, tmp_path, "--own-namespace", "default") as own:
        controllers.start("first", own.plain)
        try:
            put(api, images(B))
            soon(lambda: condition(api, "images") == ("True", "InForce"), controllers.log)
            api.request("POST", DEPLOYMENTS, deployment(B))
            apply(api, good, labelled=False)
            assert own.all_say(A, allowed=False), "it has no label"
            soon(lambda: "deployments" in kinds_registered(api), controllers.log)
            assert "controllerrevisions" not in kinds_registered(api)
            apply(api, good)
            own.soon(lambda: own.all_say(B, allowed=False))
            assert own.all_say(A, allowed=True)
            soon(lambda: condition(api, "images") == ("False", "Hidden"), controllers.log)
            assert audited(bare) == 0, "the policy of the cluster takes it"
            assert audited(bare, "--own-namespace", "default") == 1
            assert condition(api, "images", "Accepted") == ("False", "Hidden")
            assert "found the name of ConfigMap default/team, key images.yaml" in own.log.read_text(
                "utf-8"
            )
            api.request("DELETE", f"{POLICIES}/images")
            soon(lambda: "controllerrevisions" in kinds_registered(api), controllers.log)
            soon(
                lambda: INSIDE in documents_of(api.find(f"{MAPS}/{NAME}")),
                controllers.log,
            )

            apply(api, good.replace('"image"', '"imagee"'))
            own.soon(lambda: "did you mean image" in own.log.read_text("utf-8"))
            assert own.all_say(B, allowed=False), "the last good version stays"
            with running(bare, certificates, tmp_path, "--own-namespace", "default") as late:
                assert late.all_say(B, allowed=False)
            apply(api, "spec: [")
            own.soon(lambda: "key images.yaml:2:1: " in own.log.read_text("utf-8"))
            assert own.all_say(B, allowed=False)
            apply(api, good, labelled=False)
            own.soon(lambda: own.all_say(B, allowed=True))
        finally:
            for path in (NAMED, f"{DEPLOYMENTS}/d"):
                with contextlib.suppress(Exception):
                    api.request("DELETE", path)
            with contextlib.suppress(Exception):
                api.request("DELETE", f"{POLICIES}/images")
