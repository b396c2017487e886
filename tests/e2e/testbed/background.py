"""Clusters that stay up after the command that started them."""

import dataclasses
import json
import shutil
import signal
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.testbed import processes
from tests.e2e.testbed.cluster import Cluster

_STATE = "cluster.json"


class BackgroundError(Exception):
    """The message says what stands in the way."""


@dataclass(frozen=True, slots=True)
class State:
    """What `up` wrote down about a cluster: its address, its programs, its processes."""

    folder: Path
    server: str
    kubectl: Path
    processes: dict[str, processes.Recorded]

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self.folder / "admin.kubeconfig"

    def alive(self) -> dict[str, bool]:
        """Tell for each process by name whether it runs."""
        return {name: one.alive() for name, one in self.processes.items()}


def up(folder: Path) -> State:
    """Start a cluster that keeps its data in `folder`; return the one there if it runs already.

    What a stopped cluster left there is removed. Raises BackgroundError if anything else is there.
    """
    state = load(folder)
    if state and all(state.alive().values()):
        return state
    if state:
        down(folder)
    if folder.exists() and any(folder.iterdir()):
        raise BackgroundError(f"{folder} is not empty and holds no cluster of ours")
    cluster = Cluster(folder, detached=True).start()
    for user in ("admin", "alice"):
        cluster.kubeconfig(user)
    state = State(cluster.folder, cluster.server, cluster.binaries.kubectl, cluster.processes)
    _save(state)
    return state


def down(folder: Path) -> list[str]:
    """Stop the cluster of `folder` and remove the folder; return the names of what was running.

    Only processes whose recorded time of start is still theirs are touched.
    """
    state = load(folder)
    if state is None:
        return []
    running = [name for name, alive in state.alive().items() if alive]
    recorded = list(state.processes.values())
    # The supervisor stops the others in order; the kernel ends them when it is gone.
    state.processes["supervisor"].signal(signal.SIGTERM)
    supervised = "supervisor" in running
    if not processes.wait_until_gone(recorded, 2 * processes.PATIENCE if supervised else 1):
        for one in recorded:
            one.signal(signal.SIGKILL)
        if not processes.wait_until_gone(recorded):
            raise BackgroundError(f"processes of {folder} do not end: {state.alive()}")
    shutil.rmtree(folder)
    return running


def load(folder: Path) -> State | None:
    """Return what is written down in `folder`, None if it holds no cluster."""
    path = folder / _STATE
    if not path.exists():
        return None
    told = json.loads(path.read_text("utf-8"))
    return State(
        folder.resolve(),
        told["server"],
        Path(told["kubectl"]),
        {name: processes.Recorded(**one) for name, one in told["processes"].items()},
    )


def _save(state: State) -> None:
    document = {
        "server": state.server,
        "kubectl": str(state.kubectl),
        "processes": {name: dataclasses.asdict(one) for name, one in state.processes.items()},
    }
    (state.folder / _STATE).write_text(json.dumps(document, indent=2), "utf-8")
