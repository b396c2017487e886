"""The demo on a real API server: `make demo-cluster`, `make cluster` and `make cluster-down`.

python -m tests.e2e.demo           start, tell the story with kubectl, stop everything
python -m tests.e2e.demo --keep    leave the cluster and podgate running in .cluster/
python -m tests.e2e.demo --stop    stop what --keep left running, by recorded process ids
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Never

import yaml

from tests.e2e.testbed import background, cache, processes, upstream
from tests.e2e.testbed.cluster import REPOSITORY, Cluster, NotStartedError
from tests.e2e.testbed.missing import MissingTestbed
from webhook.cli.demo_webhook import DemoError, Webhook, make_certificates, start

KEPT = REPOSITORY / ".cluster"
DEMO = Path("policies/examples/demo")
POLICIES = DEMO / "policies.yaml"
MANIFESTS = DEMO / "manifests"
GOVERNED, UNGOVERNED = "team-vision", "sandbox"
# The CRDs of the story's kinds alone: the modules hold more, which would only take time.
CRDS = {
    "training-operator": ("pytorchjobs.kubeflow.org",),
    "kuberay": ("rayclusters.ray.io",),
    "jobset": ("jobsets.jobset.x-k8s.io",),
}
PATIENCE = 30.0
RECORD = "podgate.json"


@dataclass(slots=True)
class Shell:
    """Runs commands at the repository's root as a person would, and shows them with their output.

    `faults` collects what went otherwise than the story has it.
    """

    kubectl: Path
    kubeconfig: Path
    faults: list[str] = field(default_factory=list)

    @property
    def environment(self) -> dict[str, str]:
        """kubectl and podgate on the PATH, and this cluster for kubectl."""
        path = [str(self.kubectl.parent), str(Path(sys.executable).parent), os.environ["PATH"]]
        named = {name: value for name, value in os.environ.items() if name[:8] != "PODGATE_"}
        cached = str(self.kubeconfig.parent / "kubectl-cache")
        ours = {"KUBECONFIG": str(self.kubeconfig), "KUBECACHEDIR": cached, "KUBERC": "off"}
        return {**named, **ours, "PATH": os.pathsep.join(path)}

    def quiet(self, line: str, given: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run one shell line; output and errors come together, in order."""
        return subprocess.run(
            ["/bin/sh", "-c", line],
            cwd=REPOSITORY,
            env=self.environment,
            input=given,
            stdin=subprocess.DEVNULL if given is None else None,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )

    def needed(self, line: str, given: str | None = None) -> str:
        """The output of a line that has to succeed; DemoError with what it said."""
        done = self.quiet(line, given)
        if done.returncode:
            raise DemoError(f"{line}\nended with {done.returncode}:\n{done.stdout[-2000:]}")
        return done.stdout

    def show(
        self, line: str, *wanted: str, fails: bool = False, without: Sequence[str] = ()
    ) -> None:
        """Run a line and show it with exactly what it prints, and note what is not as `wanted`."""
        tell(f"\n$ {line}")
        done = self.quiet(line)
        tell(done.stdout.rstrip("\n"))
        if bool(done.returncode) is not fails:
            self.faults.append(f"exit code {done.returncode} of {line}")
        self.faults += [
            f"{each!r} is missing after {line}" for each in wanted if each not in done.stdout
        ]
        self.faults += [f"{each!r} stands after {line}" for each in without if each in done.stdout]


def tell(text: str) -> None:
    """One or more lines on stdout, at once."""
    print(text, flush=True)


def title(text: str) -> None:
    """A heading, bold where that can be seen."""
    plain = not sys.stdout.isatty() or os.environ.get("NO_COLOR")
    tell(f"\n{text}" if plain else f"\n\x1b[1m{text}\x1b[0m")


# Setting up


def prepare(shell: Shell, webhook: Webhook) -> None:
    """CRDs, namespaces and registration: what an installation does once."""
    title("Setting up")
    for project, names in CRDS.items():
        tell(f"CRD {', '.join(names)} from {upstream.module_dir(project).name}")
        found = [crd for crd in upstream.crds(project) if crd["metadata"]["name"] in names]
        apply_crds(shell, found)
    for name in (GOVERNED, UNGOVERNED):
        shell.needed(
            f"kubectl create namespace {name} --dry-run=client -o yaml | kubectl apply -f -"
        )
        shell.needed(f"kubectl wait --for=create --timeout=60s -n {name} serviceaccount/default")
    shell.show(f"kubectl label namespace {GOVERNED} podgate.dev/governed=true --overwrite")
    ca = shlex.quote(str(webhook.folder / "ca.crt"))
    url = f"https://127.0.0.1:{webhook.port}"
    shell.show(
        f"podgate registration --url {url} --ca-file {ca} | kubectl apply -f -",
        "mutatingwebhookconfiguration.admissionregistration.k8s.io/podgate",
        "validatingwebhookconfiguration.admissionregistration.k8s.io/podgate",
    )
    wait_until_governed(shell)


def apply_crds(shell: Shell, crds: Sequence[dict[str, Any]]) -> None:
    """Apply CRDs and wait until they are served."""
    shell.needed(
        "kubectl apply --server-side --force-conflicts -f -",
        yaml.dump_all(crds, Dumper=yaml.CSafeDumper),
    )
    names = " ".join(f"crd/{crd['metadata']['name']}" for crd in crds)
    end = time.monotonic() + PATIENCE
    # At first there are no conditions, which kubectl takes for an error instead of waiting.
    while shell.quiet(f"kubectl wait --for=condition=Established --timeout=5s {names}").returncode:
        if time.monotonic() > end:
            raise DemoError(f"the API server does not serve {names}")
        time.sleep(0.2)


def wait_until_governed(shell: Shell) -> None:
    """The API server learns of webhooks a moment after they are stored."""
    line = f"kubectl apply --dry-run=server -n {GOVERNED} -f {MANIFESTS}/pytorchjob.yaml"
    end = time.monotonic() + PATIENCE
    while "podgate refused this object" not in (said := shell.quiet(line).stdout):
        if time.monotonic() > end:
            raise DemoError(f"the API server does not ask podgate; {line} says:\n{said}")
        time.sleep(0.2)


# The story


def pod_template(kind: str, name: str, *places: str) -> str:
    """A kubectl line that prints, for each pod location, the values that the policies gave it."""
    rows = {
        "labels": "metadata.labels",
        "node": "spec.nodeSelector",
        "nonRoot": "spec.securityContext.runAsNonRoot",
        "requests": "spec.containers[0].resources.requests",
        "env": "spec.containers[0].env[*].name",
        "pull": "spec.containers[*].imagePullPolicy",
    }
    lines = [
        f"{place[1:]}:\n" + "\n".join(f"  {word:8} {{{place}.{at}}}" for word, at in rows.items())
        for place in places
    ]
    return f"kubectl get {kind} {name} -n NAMESPACE -o jsonpath='" + "\n".join(lines) + "\n'"


DEPLOYMENT = pod_template("deployment", "annotator", ".spec.template")
RAYCLUSTER = pod_template(
    "raycluster",
    "tuning",
    ".spec.headGroupSpec.template",
    ".spec.workerGroupSpecs[0].template",
    ".spec.workerGroupSpecs[1].template",
)
JOBSET = pod_template(
    "jobset",
    "pretrain",
    ".spec.replicatedJobs[0].template.spec.template",
    ".spec.replicatedJobs[1].template.spec.template",
)


def story(shell: Shell) -> None:
    """What kubectl shows its user, first to last."""
    here = f"-n {GOVERNED}"
    title("1. A Deployment is completed")
    shell.show(
        f"kubectl apply {here} -f {MANIFESTS}/deployment.yaml", "deployment.apps/annotator created"
    )
    shell.show(
        DEPLOYMENT.replace("NAMESPACE", GOVERNED), "research", '"memory":"2Gi"', "Always Always"
    )
    children(shell)

    title("2. The same manifest in a namespace that is not governed stays as it is")
    shell.show(f"kubectl apply -n {UNGOVERNED} -f {MANIFESTS}/deployment.yaml", "created")
    shell.show(
        DEPLOYMENT.replace("NAMESPACE", UNGOVERNED), "IfNotPresent", without=("research", "Always")
    )

    title("3. Applied again, nothing changes")
    shell.show(f"kubectl apply {here} -f {MANIFESTS}/deployment.yaml", "unchanged")
    shell.show(f"kubectl diff {here} -f {MANIFESTS}/deployment.yaml")
    generation = '{.metadata.generation}{"\\n"}'
    shell.show(f"kubectl get deployment annotator {here} -o jsonpath='{generation}'", "1")

    title("4. kubectl scale beyond a policy is refused")
    shell.show(
        f"kubectl scale deployment annotator {here} --replicas=50",
        "50 is more than the maximum 10",
        fails=True,
    )
    shell.show(f"kubectl scale deployment annotator {here} --replicas=3", "scaled")

    title("5. A PyTorchJob is refused, with everything that is wrong with it")
    shell.show(
        f"kubectl apply {here} -f {MANIFESTS}/pytorchjob.yaml",
        "7 rules are broken",
        "pytorchReplicaSpecs.Master",
        "pytorchReplicaSpecs.Worker",
        fails=True,
    )

    title("6. A RayCluster, first as a dry run, then for good")
    shell.show(
        f"kubectl apply {here} -f {MANIFESTS}/raycluster.yaml --dry-run=server", "server dry run"
    )
    shell.show(f"kubectl get raycluster {here}", "No resources found")
    shell.show(f"kubectl apply {here} -f {MANIFESTS}/raycluster.yaml", "created")
    shell.show(RAYCLUSTER.replace("NAMESPACE", GOVERNED), '"cpu":"1"', '"cpu":"4"', '"cpu":"8"')

    title("7. A JobSet is completed, and a policy on trial warns")
    shell.show(f"kubectl apply {here} -f {MANIFESTS}/jobset.yaml", "Warning: ", "created")
    shell.show(JOBSET.replace("NAMESPACE", GOVERNED), '"memory":"16Gi"', "a100")
    shell.show(f"kubectl apply {here} -f {MANIFESTS}", "unchanged", fails=True)


def children(shell: Shell) -> None:
    """What the real controllers make of the Deployment; they wait for nodes that are not there."""
    end = time.monotonic() + PATIENCE
    made = f"kubectl get pods -n {GOVERNED} -o name"
    while shell.quiet(made).stdout.count("pod/") < 2 and time.monotonic() < end:
        time.sleep(0.2)
    shell.show(f"kubectl get replicasets,pods -n {GOVERNED}", "replicaset.apps/", "Pending")


# Starting and stopping


def once() -> int:
    """Everything from start to stop; 0 when all went as told."""
    begun = time.monotonic()
    announce()
    with contextlib.ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="podgate-demo-"))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        cluster = stack.enter_context(Cluster())
        tell(f"API server {cluster.server}, with etcd and kube-controller-manager")
        webhook = started(folder, POLICIES)
        stack.callback(webhook.stop)
        shell = Shell(cluster.binaries.kubectl, cluster.kubeconfig())
        prepare(shell, webhook)
        story(shell)
    title(f"Stopped podgate and the cluster, after {time.monotonic() - begun:.0f} s.")
    for fault in shell.faults:
        print(f"error: {fault}", file=sys.stderr)
    tell("Something went otherwise than told." if shell.faults else "Everything went as told.")
    return 1 if shell.faults else 0


def announce() -> None:
    """What is about to start, and what the first time costs."""
    built = all((cache.binaries_folder() / name).exists() for name in ("etcd", "kube-apiserver"))
    title("podgate demo: a real API server, and podgate as its admission webhook")
    if not built and not os.environ.get("KUBEBUILDER_ASSETS"):
        tell(
            "The first time etcd, kube-apiserver, kube-controller-manager and kubectl are built\n"
            f"from pinned Go modules into {cache.binaries_folder()}:\n"
            "about 8 minutes on two cores. KUBEBUILDER_ASSETS names a folder that has them already."
        )


def started(folder: Path, policies: Path) -> Webhook:
    """podgate serve with its certificates in `folder`."""
    make_certificates(folder)
    webhook = start(folder, [REPOSITORY / policies])
    tell(
        f"podgate serve at https://127.0.0.1:{webhook.port}, process {webhook.process.pid}, "
        f"policies {policies}"
    )
    return webhook


def keep() -> int:
    """Leave a cluster with podgate registered running, and say what to type next."""
    state = background.load(KEPT)
    recorded = podgate_of(KEPT)
    if state and all(state.alive().values()) and recorded and recorded.alive():
        tell(f"It is running already: {state.server}. `make cluster-down` stops it.")
        what_next(state)
        return 0
    stop()
    announce()
    try:
        state = background.up(KEPT)
        tell(f"API server {state.server}, with etcd and kube-controller-manager")
        folder = KEPT / "podgate"
        folder.mkdir()
        webhook = started(folder, POLICIES)
        recorded = processes.record(webhook.process.pid)
        (KEPT / RECORD).write_text(json.dumps(dataclasses.asdict(recorded)), "utf-8")
        shell = Shell(state.kubectl, state.kubeconfig)
        prepare(shell, webhook)
        if shell.faults:
            raise DemoError("\n".join(shell.faults))
    except BaseException:
        stop()
        raise
    webhook.process.returncode = 0  # nobody waits for it; told so, the handle does not warn
    what_next(state)
    return 0


def what_next(state: background.State) -> None:
    """The two commands to type, and how to end it."""
    path = f"{state.kubectl.parent}:{Path(sys.executable).parent}:$PATH"
    title("Type next:")
    tell(f'  export KUBECONFIG={shlex.quote(str(state.kubeconfig))} PATH="{path}"')
    tell(f"  kubectl apply -n {GOVERNED} -f {MANIFESTS}/pytorchjob.yaml")
    tell(f"\nOther manifests are in {MANIFESTS}. podgate reads {POLICIES} again when it changes;")
    tell(f"its log is {KEPT.name}/podgate/serve.log. `make cluster-down` stops everything.")


def podgate_of(folder: Path) -> processes.Recorded | None:
    """The recorded podgate process of a kept cluster."""
    with contextlib.suppress(OSError, ValueError, TypeError):
        return processes.Recorded(**json.loads((folder / RECORD).read_text("utf-8")))
    return None


def stop() -> list[str]:
    """Stop podgate, then the cluster, by what is recorded; the names of what was running."""
    stopped = []
    recorded = podgate_of(KEPT)
    if recorded is not None and recorded.alive():
        recorded.signal(signal.SIGTERM)
        if not processes.wait_until_gone([recorded], 15):
            recorded.signal(signal.SIGKILL)
            processes.wait_until_gone([recorded])
        stopped.append("podgate")
    return stopped + background.down(KEPT)


def down() -> int:
    """The command --stop."""
    stopped = stop()
    tell(f"stopped: {', '.join(stopped)}" if stopped else "nothing was running")
    return 0


@contextlib.contextmanager
def told_errors() -> Iterator[None]:
    """Errors for people as text, not as a traceback."""
    try:
        yield
    except (MissingTestbed, NotStartedError, background.BackgroundError, DemoError) as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        print("interrupted: everything that was started is stopped", file=sys.stderr)
        sys.exit(130)


def interrupted(number: int, frame: object) -> Never:
    """SIGTERM ends the demo as Ctrl-C does."""
    raise KeyboardInterrupt


def main() -> int:
    """One of the three commands; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.e2e.demo")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--keep", action="store_true", help="leave it running in .cluster/")
    which.add_argument("--stop", action="store_true", help="stop what --keep left running")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, interrupted)
    with told_errors():
        return keep() if arguments.keep else down() if arguments.stop else once()


if __name__ == "__main__":
    sys.exit(main())
