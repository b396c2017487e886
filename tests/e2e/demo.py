"""`make demo-cluster`, `make cluster` and `make cluster-down`: podgate at a real API server."""

from __future__ import annotations

import argparse
import dataclasses
import json
import shlex
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Never

import yaml
from rich.console import Console

from certs import files
from certs.development import ensure_development_certificates
from certs.problem import CertificateProblem
from tests.e2e.demo_story import GOVERNED, PLAIN, Kubectl, Story, file_of
from tests.e2e.testbed import background, binaries, processes, programs, releases, upstream
from tests.e2e.testbed.cluster import REPOSITORY, Cluster, NotStartedError
from tests.e2e.testbed.missing import MissingTestbed
from tools.demo.report import console, facts, say
from tools.demo.webhook import DemoError, Webhook
from tools.demo.webhook import start as start_podgate
from webhook.controller.registration import Target, configurations
from webhook.evaluation.installation import GOVERNED_LABEL
from webhook.sources.load import Sources, load

FOLDER = REPOSITORY / ".cluster"
POLICIES = REPOSITORY / "policies" / "examples" / "demo" / "policies.yaml"
CRDS = {
    "training-operator": "pytorchjobs.kubeflow.org",
    "kuberay": "rayclusters.ray.io",
    "jobset": "jobsets.jobset.x-k8s.io",
}
BAD_POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "probe", "namespace": GOVERNED},
    "spec": {
        "containers": [
            {
                "name": "main",
                "image": "registry.example.com/none",
                "securityContext": {"privileged": True},
            }
        ]
    },
}
PATIENCE = 30.0
KEPT_DAYS = 365
FAILED, MISSING, INTERRUPTED = 1, 2, 130
ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one of the three commands; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.e2e.demo", description=__doc__)
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--keep", action="store_true", help="start everything and leave it running")
    choice.add_argument("--stop", action="store_true", help="stop what --keep left running")
    parser.add_argument("--dir", type=Path, default=FOLDER, help="folder of --keep and --stop")
    given = parser.parse_args(arguments)
    for number in ENDINGS:
        signal.signal(number, interrupted)
    out = console()
    try:
        if given.stop:
            return stop(given.dir.resolve(), out)
        return keep(given.dir.resolve(), out) if given.keep else demo(out)
    except MissingTestbed as error:
        complain(f"error: {error.reason}\n{error.how_to_get_it}")
        return MISSING
    except (DemoError, NotStartedError, background.BackgroundError, OSError) as error:
        complain(f"error: {error}")
        return FAILED
    except KeyboardInterrupt:
        complain("interrupted: what was started is stopped and removed")
        return INTERRUPTED


def interrupted(number: int, frame: object) -> Never:
    """Any signal that ends the demo ends it as Ctrl-C does."""
    raise KeyboardInterrupt


def complain(text: str) -> None:
    """Say it on standard error."""
    sys.stdout.flush()
    sys.stderr.write(f"{text}\n")


@contextmanager
def undisturbed() -> Iterator[None]:
    """Signals that end the demo wait for the end of the block."""
    came: list[int] = []
    before = {each: signal.signal(each, lambda number, _: came.append(number)) for each in ENDINGS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if came:
        raise KeyboardInterrupt


def demo(out: Console) -> int:
    """Start everything, tell the story, stop everything; 0 if it went as told."""
    begun = time.monotonic()
    say(out, "podgate at a real API server: what kubectl says, and what is stored", style="bold")
    crds = ingredients(out)
    folder = Path(tempfile.mkdtemp(prefix="podgate-demo-"))
    cluster = Cluster(folder / "cluster")
    podgate: Webhook | None = None
    stopped: list[str] = []
    try:
        say(out, "")
        say(out, "Starting etcd, kube-apiserver, kube-controller-manager and podgate serve ...")
        cluster.start()
        kubectl = Kubectl(cluster.binaries.kubectl, cluster.kubeconfig())
        podgate = serve(folder, days=1)
        prepare(kubectl, podgate, crds)
        introduce(out, cluster.server, cluster.processes, podgate, time.monotonic() - begun)
        faults = Story(kubectl, out).tell()
    finally:
        with undisturbed():
            if podgate is not None:
                podgate.stop()
                stopped.append(f"podgate (process {podgate.process.pid})")
            cluster.stop()
            stopped += [f"{name} ({one.pid})" for name, one in cluster.processes.items()]
            left = [name for name, one in cluster.processes.items() if one.alive()]
            shutil.rmtree(folder, ignore_errors=True)
            say(out, "")
            what = ", ".join(stopped) or "what was starting"
            say(out, f"Stopped {what}, and removed {folder}.")
    faults += [f"{name} still runs" for name in left]
    verdict = (
        "Everything went as described" if not faults else "Something went otherwise than described"
    )
    say(out, f"{verdict}, in {time.monotonic() - begun:.1f} s.", style="bold")
    for fault in faults:
        complain(f"error: {fault}")
    return FAILED if faults else 0


def ingredients(out: Console) -> list[dict[str, Any]]:
    """Have the programs, and the CRDs of the kinds in the story; MissingTestbed."""
    try:
        binaries.find(build=False)
    except MissingTestbed as error:
        if not error.reason.startswith("Not built yet"):
            raise
        say(
            out,
            f"{error.reason} The first time, the control plane of Kubernetes "
            f"{releases.chosen().version} is built from its pinned sources into "
            f"{programs.folder()}: about 8 minutes on two cores, and 6 GB of disk.",
        )
        binaries.find()
    return [
        crd
        for project, name in CRDS.items()
        for crd in upstream.crds(project)
        if crd["metadata"]["name"] == name
    ]


def serve(folder: Path, days: int) -> Webhook:
    """Start `podgate serve` with the demo's policies; certificates and log are in `folder`."""
    try:
        now = datetime.now(UTC)
        ensure_development_certificates(folder, ["localhost"], ["127.0.0.1"], now, days)
    except CertificateProblem as problem:
        raise DemoError(f"no certificates in {folder}: {problem}") from problem
    minor = ("--kubernetes-minor", releases.chosen().minor)
    return start_podgate(folder, [POLICIES], minor)


def prepare(kubectl: Kubectl, podgate: Webhook, crds: Sequence[Any]) -> None:
    """Make the namespaces and the custom kinds, register podgate, and wait until it is asked."""
    apply(kubectl, [namespace(GOVERNED, {GOVERNED_LABEL: "true"}), namespace(PLAIN, {})])
    # Client-side apply would copy a schema into an annotation, where large ones do not fit.
    apply(kubectl, crds, "--server-side", "--force-conflicts")
    for name in CRDS.values():
        until(kubectl, ("get", name, "--all-namespaces"), f"{name} is not served")
    for name in (GOVERNED, PLAIN):
        account = ("get", "serviceaccount", "default", f"--namespace={name}")
        until(kubectl, account, f"no service account in {name}")
    catalog, problems = load(Sources((str(POLICIES),)))
    if catalog is None:
        raise DemoError(f"the demo's policies cannot be used: {problems}")
    authority = (podgate.folder / files.AUTHORITY).read_bytes()
    target = Target(url=f"https://127.0.0.1:{podgate.port}", ca=authority)
    apply(kubectl, configurations(catalog.definitions, target))
    probe = ("apply", "--dry-run=server", "--filename=-")
    refused = '"mutate.podgate.dev" denied'
    until(kubectl, probe, "podgate is registered but not asked", refused, json.dumps(BAD_POD))


def namespace(name: str, labels: dict[str, str]) -> dict[str, Any]:
    """A Namespace."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def apply(kubectl: Kubectl, documents: Sequence[Any], *flags: str) -> None:
    """Apply documents out of the reader's sight; DemoError with what kubectl says."""
    text = yaml.dump_all(documents, Dumper=yaml.CSafeDumper)
    done = kubectl.run("apply", *flags, "--filename=-", given=text)
    if done.returncode:
        raise DemoError(f"kubectl apply failed:\n{done.stdout.strip()}")


def until(
    kubectl: Kubectl,
    command: Sequence[str],
    complaint: str,
    says: str = "",
    given: str | None = None,
) -> None:
    """Repeat a command until it says so, or succeeds; DemoError with its last words."""
    end = time.monotonic() + PATIENCE
    while True:
        done = kubectl.run(*command, given=given)
        if says in done.stdout if says else done.returncode == 0:
            return
        if time.monotonic() > end:
            raise DemoError(f"{complaint}:\n{done.stdout.strip()}")
        time.sleep(0.1)


def introduce(
    out: Console,
    server: str,
    running: dict[str, processes.Recorded],
    podgate: Webhook,
    seconds: float,
) -> None:
    """What was started."""
    names = ", ".join(f"{name} ({one.pid})" for name, one in running.items())
    version = releases.chosen().version
    rows = {
        "control plane": f"Kubernetes {version} at {server}: {names}; no nodes",
        "podgate": f"podgate serve at https://127.0.0.1:{podgate.port}, process "
        f"{podgate.process.pid}, registered for namespaces with {GOVERNED_LABEL}=true",
        "policies": f"{POLICIES.relative_to(REPOSITORY)}, and the built-in system policy",
        "custom kinds": f"{', '.join(CRDS.values())}, as their projects publish them; their "
        "operators do not run here",
        "namespaces": f"{GOVERNED} (governed) and {PLAIN} (not governed)",
        "ready": f"after {seconds:.1f} s",
    }
    say(out, "")
    facts(out, rows, 2)


@dataclasses.dataclass(frozen=True, slots=True)
class Kept:
    """The podgate that `--keep` left running, as `podgate.pid` records it."""

    process: processes.Recorded
    url: str

    @classmethod
    def load(cls, folder: Path) -> Kept | None:
        """What is recorded; None if nothing is, or nothing that can be read."""
        with suppress(OSError, ValueError, KeyError, TypeError):
            told = json.loads((folder / "podgate.pid").read_text("utf-8"))
            return cls(processes.Recorded(int(told["pid"]), str(told["started"])), told["url"])
        return None

    def save(self, folder: Path) -> None:
        """Record it."""
        told = {**dataclasses.asdict(self.process), "url": self.url}
        (folder / "podgate.pid").write_text(json.dumps(told) + "\n", "utf-8")


def keep(folder: Path, out: Console) -> int:
    """Start control plane and podgate, leave them running, and say what to type next."""
    begun = time.monotonic()
    state, kept = background.load(folder), Kept.load(folder)
    up = state is not None and all(state.alive().values())
    if state and up and kept and kept.process.alive():
        say(out, f"It is running already: API server at {state.server}, podgate at {kept.url}.")
        what_next(out, state, folder)
        return 0
    crds = ingredients(out)
    say(out, "Starting etcd, kube-apiserver, kube-controller-manager and podgate serve ...")
    try:
        with undisturbed():  # until it is written down what runs
            end_podgate(folder)
            state = background.up(folder)
            (folder / "podgate").mkdir(exist_ok=True)
            podgate = serve(folder / "podgate", KEPT_DAYS)
            record = processes.record(podgate.process.pid)
            Kept(record, f"https://127.0.0.1:{podgate.port}").save(folder)
            podgate.process.returncode = 0  # nobody waits for it
        prepare(Kubectl(state.kubectl, state.kubeconfig), podgate, crds)
    except BaseException:
        with undisturbed():
            end_podgate(folder)
            if not up:
                background.down(folder)
        raise
    introduce(out, state.server, state.processes, podgate, time.monotonic() - begun)
    what_next(out, state, folder)
    return 0


def what_next(out: Console, state: background.State, folder: Path) -> None:
    """The commands to type, each on a line of its own, and how to end it."""
    kubeconfig, path = (shlex.quote(str(each)) for each in (state.kubeconfig, state.kubectl.parent))
    where = "" if folder == FOLDER else f" (python -m tests.e2e.demo --stop --dir {folder})"
    say(out, "")
    say(out, "Type next:")
    sys.stdout.write(
        f"\nexport KUBECONFIG={kubeconfig} PATH={path}:$PATH\n"
        f"kubectl apply -n {GOVERNED} -f {file_of('deployment')}\n\n"
    )
    sys.stdout.flush()
    say(
        out,
        f"Others are beside it; pytorchjob.yaml is refused. podgate reads "
        f"{POLICIES.relative_to(REPOSITORY)} again when you change it, and logs to "
        f"{folder / 'podgate' / 'serve.log'}. End it with `make cluster-down`{where}.",
    )


def stop(folder: Path, out: Console) -> int:
    """Stop what `--keep` left running, by recorded process."""
    with undisturbed():
        stopped = end_podgate(folder) + background.down(folder)
    if stopped:
        say(out, f"Stopped {', '.join(stopped)}, and removed {folder}.")
    else:
        say(out, "Nothing was running.")
    return 0


def end_podgate(folder: Path) -> list[str]:
    """End the recorded podgate, if that very process still runs; its name if it did."""
    kept = Kept.load(folder)
    if kept is None:
        return []
    running = kept.process.alive()
    kept.process.signal(signal.SIGTERM)
    if not processes.wait_until_gone([kept.process]):
        kept.process.signal(signal.SIGKILL)
        processes.wait_until_gone([kept.process])
    (folder / "podgate.pid").unlink(missing_ok=True)
    return ["podgate"] if running else []


if __name__ == "__main__":
    sys.exit(main())
