"""The cluster with podgate in front, as tests use it."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import yaml

from tests.e2e.api import PLURALS, Api, StatusError
from tests.e2e.objects import version_of
from tests.e2e.recorder import Recorder
from tests.e2e.served import PATIENCE, Served
from tests.e2e.testbed.cluster import Cluster
from webhook.controller.registration import Target, configurations
from webhook.sources.load import Sources, load

MANIFESTS = Path(__file__).parent / "manifests"
GOVERNED_LABEL = "podgate.dev/governed"
QUIET = 0.4
Json = dict[str, Any]
T = TypeVar("T")
Done = subprocess.CompletedProcess[str]


@dataclass(slots=True)
class Gate:
    """Cluster, connection, podgate and recorder together."""

    cluster: Cluster
    api: Api
    podgate: Served
    recorder: Recorder
    numbers: itertools.count[int] = field(default_factory=itertools.count)
    untouched: dict[str, Json] = field(default_factory=dict)
    """What the server made of each manifest before podgate was registered, by kind."""

    def register(self, url: str) -> None:
        """Apply the webhook configurations with podgate at `url`."""
        catalog, problems = load(Sources())
        assert catalog is not None, problems
        target = Target(url=url, ca=self.podgate.certificates.ca.read_bytes())
        documents = configurations(catalog.definitions, target)
        self.kubectl("apply", "-f", "-", input=yaml.safe_dump_all(documents))

    def wait_until_refused(self, namespace: str) -> None:
        """The API server takes a moment to call a new webhook: wait until it refuses a bad Pod."""
        bad = self.manifest("pod")
        bad["spec"]["containers"][0]["securityContext"] = {"privileged": True}

        def refused() -> bool:
            try:
                self.api.create(bad, namespace, dry_run=True)
            except StatusError as error:
                return "security.privileged" in str(error)
            return False

        wait_for(refused, f"podgate is registered, but not asked about {namespace}")

    def govern(self, namespace: str) -> None:
        """Let podgate govern a namespace from now on."""
        self.kubectl("label", "namespace", namespace, f"{GOVERNED_LABEL}=true")
        self.wait_until_refused(namespace)

    def kubectl(self, *arguments: str, **more: Any) -> Done:
        """Run kubectl; KubectlError when it fails, unless `check=False`."""
        return self.cluster.kubectl(*arguments, **more)

    def plain_namespace(self, name: str = "") -> str:
        """A namespace that podgate does not govern."""
        return self.namespace(name, {})

    def governed_namespace(self, name: str = "") -> str:
        """A namespace that podgate governs."""
        return self.namespace(name, {GOVERNED_LABEL: "true"})

    def namespace(self, name: str, labels: Json) -> str:
        """A namespace in which Pods can be made."""
        name = name or f"space-{next(self.numbers)}"
        document = {"metadata": {"name": name, "labels": labels}}
        self.api.request("POST", "/api/v1/namespaces", document)
        account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
        wait_for(lambda: self.api.find(account), f"no service account in {name}")
        return name

    def settled(self, kind: str, namespace: str, name: str) -> Json:
        """One object once its controllers leave it alone; custom resources have none here."""
        if "." in PLURALS[kind][0]:
            return self.stored(kind, namespace, name)
        last, since = self.stored(kind, namespace, name), time.monotonic()
        while time.monotonic() - since < QUIET:
            time.sleep(0.1)
            now = self.stored(kind, namespace, name)
            if version_of(now) != version_of(last):
                last, since = now, time.monotonic()
        return last

    def manifest(self, name: str) -> Json:
        """One document of the manifests folder."""
        return dict(yaml.safe_load((MANIFESTS / f"{name}.yaml").read_text("utf-8")))

    def stored(self, kind: str, namespace: str, name: str) -> Json:
        """One object as it is stored."""
        return self.api.get(kind, namespace, name)

    def one(self, kind: str, namespace: str, selector: str = "") -> Json:
        """The first object of a kind, as soon as there is one."""
        found = wait_for(
            lambda: self.api.items(kind, namespace, selector), f"no {kind} in {namespace}"
        )
        return {**found[0], "kind": kind, "apiVersion": PLURALS[kind][0]}

    def edit(self, script: str, kind: str, name: str, namespace: str) -> Done:
        """`kubectl edit` with sed as the editor."""
        command = [str(self.cluster.binaries.kubectl), "edit", resource(kind), name]
        return subprocess.run(
            [*command, f"--namespace={namespace}"],
            env={
                **os.environ,
                "KUBECONFIG": str(self.cluster.kubeconfig()),
                "KUBECACHEDIR": str(self.cluster.folder / "kubectl-cache"),
                "KUBERC": "off",
                "KUBE_EDITOR": f"sed -i '{script}'",
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )


def resource(kind: str) -> str:
    """What kubectl calls a kind without mistaking it for another."""
    version, plural = PLURALS[kind]
    group = version.rpartition("/")[0]
    return f"{plural}.{group}" if group else plural


def text_of(document: Json) -> str:
    """A document for kubectl's standard input."""
    return json.dumps(document)


def wait_for(look: Callable[[], T | None], complaint: str, patience: float = PATIENCE) -> T:
    """What `look` finds, as soon as it finds something; AssertionError after a while."""
    end = time.monotonic() + patience
    while time.monotonic() < end:
        found = look()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError(complaint)
