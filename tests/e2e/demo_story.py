"""The story of `make demo-cluster`: what is typed, what kubectl says, and what has to come of it."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console

from tests.e2e.testbed.cluster import REPOSITORY
from tools.demo.report import say

MANIFESTS = Path("policies/examples/demo/manifests")
GOVERNED, PLAIN = "team-vision", "sandbox"
PATIENCE = 30.0

POD = 'of the pod: {.securityContext}{"\\n"}'
CONTAINER = '  {.name}: {.imagePullPolicy} {.resources.requests}{"\\n"}'
TRAINING = 'nodeSelector {.nodeSelector}, toleration {.tolerations[*].key}{"\\n"}'
ENVIRONMENT = '{range .containers[*]}  {.name}: {.resources}, env {.env[*].name}{"\\n"}{end}'


@dataclass(frozen=True, slots=True)
class Kubectl:
    """A kubectl for one cluster; it runs in the repository's folder."""

    program: Path
    kubeconfig: Path

    def run(self, *arguments: str, given: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run it; standard output and standard error come together, in order, as on a terminal."""
        return subprocess.run(
            [str(self.program), *arguments],
            cwd=REPOSITORY,
            env={
                **{key: value for key, value in os.environ.items() if key != "KUBE_EDITOR"},
                "KUBECONFIG": str(self.kubeconfig),
                "KUBECACHEDIR": str(self.kubeconfig.parent / "kubectl-cache"),
                "KUBERC": "off",
            },
            input=given,
            stdin=subprocess.DEVNULL if given is None else None,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )

    def json(self, *arguments: str) -> Any:
        """What `kubectl get` finds, parsed; None if it fails."""
        done = self.run("get", *arguments, "--output=json")
        return None if done.returncode else json.loads(done.stdout)


@dataclass(slots=True)
class Story:
    """Types commands and prints what they print; `faults` is what went otherwise than told."""

    kubectl: Kubectl
    out: Console
    faults: list[str] = field(default_factory=list)
    chapter: int = 0

    def begin(self, title: str, text: str = "") -> None:
        """A chapter's heading."""
        self.chapter += 1
        say(self.out, "")
        say(self.out, f"{self.chapter}. {title}", style="bold")
        if text:
            say(self.out, text, 3, "dim")

    def type(
        self,
        *arguments: str,
        code: int = 0,
        says: Sequence[str] = (),
        lacks: Sequence[str] = (),
        silent: bool = False,
    ) -> str:
        """Run kubectl in sight of the reader; what it says is compared with what is expected."""
        show(f"\n$ {shlex.join(('kubectl', *arguments))}\n")
        done = self.kubectl.run(*arguments)
        show(done.stdout)
        if done.stdout and not done.stdout.endswith("\n"):
            show("\n")
        if done.returncode:
            show(f"[exit code {done.returncode}]\n")
        if done.returncode != code:
            self.fault(f"kubectl {arguments[0]} ended with exit code {done.returncode}, not {code}")
        for text in says:
            if text not in done.stdout:
                self.fault(f"kubectl {arguments[0]} does not say {text!r}")
        for text in lacks:
            if text in done.stdout:
                self.fault(f"kubectl {arguments[0]} says {text!r}")
        said = [line for line in done.stdout.splitlines() if not line.startswith("Warning: ")]
        if silent and said:
            self.fault(f"kubectl {arguments[0]} says something")
        return done.stdout

    def fault(self, text: str) -> None:
        """Remember what went otherwise than told."""
        self.faults.append(f"chapter {self.chapter}: {text}")
        say(self.out, f"NOT AS TOLD: {text}", style="bold red")

    def tell(self) -> list[str]:
        """The whole story; what went otherwise."""
        deployment(self)
        pytorchjob(self)
        raycluster(self)
        jobset(self)
        again(self)
        scale(self)
        sandbox(self)
        controllers(self)
        return self.faults


def show(text: str) -> None:
    """Print exactly this."""
    sys.stdout.write(text)
    sys.stdout.flush()


def file_of(name: str) -> str:
    """The path of a manifest, as one types it in the repository's folder."""
    return str(MANIFESTS / f"{name}.yaml")


def inside(place: str, template: str) -> str:
    """A jsonpath template, for what is at a place that `range` finds one of."""
    return f"{{range {place}}}{template}{{end}}"


def containers(place: str) -> str:
    """A jsonpath template: a line for each init container and container of the pod at a place."""
    lists = (f"{place}.initContainers[*]", f"{place}.containers[*]")
    return "".join(inside(each, CONTAINER) for each in lists)


def deployment(story: Story) -> None:
    """Completed."""
    story.begin(
        "A Deployment that sets little is completed",
        "Its manifest has names and images. The stored object also has the defaults of the policies: "
        "for the pod, for every container (imagePullPolicy, also in the init container), and for the "
        "main container (CPU and memory).",
    )
    where = ("-n", GOVERNED)
    story.type("apply", *where, "-f", file_of("deployment"), says=["annotator created"])
    story.type(
        *("get", *where, "deployment", "annotator", "-o"),
        "jsonpath=" + inside(".spec.template.spec", POD + containers("")),
        says=[
            '"runAsNonRoot":true',
            *(f"{name}: Always" for name in ("fetch-model", "web", "log-shipper")),
            'web: Always {"cpu":"1","memory":"2Gi"}',
        ],
    )
    story.type(
        *("get", *where, "deployment", "annotator", "-o"),
        "jsonpath={.metadata.labels} {.spec.template.metadata.labels}",
        says=['"cost-center":"research"'],
    )


def pytorchjob(story: Story) -> None:
    """Refused."""
    story.begin(
        "A PyTorchJob is refused, with everything that is wrong with it",
        "Master, Worker and the job as a whole break rules. One answer names every path, the value, "
        "the allowed value, the policy, and what to do.",
    )
    where = ("-n", GOVERNED)
    told = story.type(
        *("apply", *where, "-f", file_of("pytorchjob")),
        code=1,
        says=[
            "spec.pytorchReplicaSpecs.Master.",
            "spec.pytorchReplicaSpecs.Worker.",
            "spec.runPolicy.backoffLimit",
        ],
        lacks=["pytorchjob.kubeflow.org/resnet created"],
    )
    if "denied the request" not in told:
        story.fault("it was not podgate that refused")
    story.type("get", *where, "pytorchjobs", says=["No resources found"])


def raycluster(story: Story) -> None:
    """Dry run, then for real."""
    story.begin(
        "A RayCluster, first as a dry run",
        "podgate evaluates and completes a dry run like a real request. The API server stores nothing.",
    )
    where, file = ("-n", GOVERNED), file_of("raycluster")
    story.type(
        *("apply", *where, "--dry-run=server", "-f", file),
        says=["raycluster.ray.io/tuning created (server dry run)"],
    )
    story.type("get", *where, "raycluster", "tuning", code=1, says=["NotFound"])
    story.begin(
        "The RayCluster for real: completed at the head and in both groups",
        "Workers get more than the head; a value that the manifest gives stays.",
    )
    story.type("apply", *where, "-f", file, says=["raycluster.ray.io/tuning created"])
    look = TRAINING + ENVIRONMENT
    get = ("get", *where, "raycluster", "tuning", "-o")
    training = ['nodeSelector {"', "nvidia.com/gpu", "NCCL_DEBUG"]
    story.type(
        *get,
        "jsonpath=" + inside(".spec.headGroupSpec.template.spec", look),
        says=[*training, '"cpu":"1"', '"memory":"2Gi"'],
    )
    for number, cpu in enumerate(("4", "8")):
        story.type(
            *get,
            "jsonpath=" + inside(f".spec.workerGroupSpecs[{number}].template.spec", look),
            says=[*training, f'"cpu":"{cpu}"', '"memory":"16Gi"'],
        )


def jobset(story: Story) -> None:
    """A policy in warn mode warns."""
    story.begin(
        "A JobSet is stored, and a policy in warn mode warns",
        "The policy memory-limits has `enforcement: Warn`, so it rejects nothing.",
    )
    story.type(
        *("apply", "-n", GOVERNED, "-f", file_of("jobset")),
        says=["Warning: ", "jobset.jobset.x-k8s.io/pretrain created"],
    )


def again(story: Story) -> None:
    """Unchanged."""
    story.begin(
        "Applying the same files again changes nothing",
        "podgate's defaults do not conflict with the manifests: the generation stays, and there is no "
        "difference. For built-in kinds kubectl prints `unchanged`. For a custom kind it sends whole "
        "lists without podgate's values, and prints `configured` in any case: podgate adds the same "
        "values again, and the API server writes nothing.",
    )
    where = ("-n", GOVERNED)
    files = ("-f", file_of("deployment"), "-f", file_of("raycluster"))
    objects = ("deployment/annotator", "raycluster/tuning")
    generations = (
        *("get", *where, *objects, "-o"),
        "custom-columns=KIND:.kind,NAME:.metadata.name,GENERATION:.metadata.generation",
    )
    before = story.type(*generations)
    version = version_of(story, objects[1])
    story.type(
        *("apply", *where, *files),
        says=["annotator unchanged", "raycluster.ray.io/tuning "],
    )
    if story.type(*generations) != before:
        story.fault("the generation changed")
    if not version or version_of(story, objects[1]) != version:
        story.fault("the RayCluster was written again")
    story.type("diff", *where, *files, silent=True)
    say(story.out, "(no difference)", style="dim")


def version_of(story: Story, name: str) -> str:
    """The resourceVersion, which every write changes; empty if there is no such object."""
    found = story.kubectl.json("-n", GOVERNED, name)
    return str(found["metadata"]["resourceVersion"]) if found else ""


def scale(story: Story) -> None:
    """Judged too."""
    story.begin(
        "podgate evaluates `kubectl scale` too",
        "It writes only the scale of a Deployment. The policy small-deployments allows 10 replicas.",
    )
    command = ("scale", "-n", GOVERNED, "deployment", "annotator")
    story.type(*command, "--replicas=25", code=1, says=["denied the request", "10"])
    story.type(*command, "--replicas=3", says=["annotator scaled"])


def sandbox(story: Story) -> None:
    """Untouched."""
    story.begin(
        "The refused PyTorchJob in a namespace that is not governed",
        f"The namespace {PLAIN} lacks the label podgate.dev/governed=true: the API server does not "
        "call podgate, and stores the job as it is written.",
    )
    where, file = ("-n", PLAIN), file_of("pytorchjob")
    story.type("get", "namespaces", GOVERNED, PLAIN, "-L", "podgate.dev/governed")
    story.type("apply", *where, "-f", file, says=["pytorchjob.kubeflow.org/resnet created"])
    look = "{.metadata.labels} {.spec.pytorchReplicaSpecs.Worker.template.spec}"
    story.type(
        *("get", *where, "pytorchjob", "resnet", "-o", f"jsonpath={look}"),
        says=["/mnt/nvme", "TRACE"],
        lacks=["cost-center", "nodeSelector", "runAsNonRoot"],
    )
    written = yaml.safe_load((REPOSITORY / file).read_text("utf-8"))
    stored = story.kubectl.json(*where, "pytorchjob", "resnet")
    specs = "pytorchReplicaSpecs"
    if stored is None or stored["spec"][specs] != written["spec"][specs]:
        story.fault("what is stored is not what was written")


def controllers(story: Story) -> None:
    """ReplicaSet and Pods."""
    story.begin(
        "ReplicaSet and Pods, created by the real controllers from the completed Deployment",
        "The controllers create them through the same API server, so podgate evaluates them too. They "
        "need no more defaults. They stay Pending, because this cluster has no nodes.",
    )
    query = ("-n", GOVERNED, "-l", "app=annotator")
    end = time.monotonic() + PATIENCE
    while len((story.kubectl.json(*query, "pods") or {"items": ()})["items"]) < 3:
        if time.monotonic() > end:
            story.fault("there are no 3 Pods")
            break
        time.sleep(0.1)
    story.type(
        *("get", *query, "replicasets,pods"),
        says=["replicaset.apps/annotator-", "pod/annotator-"],
    )
    told = story.type(
        *("get", *query, "pods", "-o"),
        "jsonpath=" + inside(".items[*]", '{.metadata.name}{"\\n"}' + containers(".spec")),
    )
    if told.count(": Always") != 9 or told.count('web: Always {"cpu":"1","memory":"2Gi"}') != 3:
        story.fault("not every container of the 3 Pods has its defaults")
