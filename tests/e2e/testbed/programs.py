"""Programs beyond the control plane: scheduler, kwok, helm, operators, each pinned by a module."""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.testbed import binaries, cache, golang
from tests.e2e.testbed.missing import MissingTestbed

PINS = cache.HERE / "operators"


@dataclass(frozen=True, slots=True)
class Program:
    """The folder whose go.mod pins it, its Go package, and seconds of a first build on two cores."""

    module: Path
    package: str
    seconds: int
    flags: str = "-s -w"


PROGRAMS = {
    "kube-scheduler": Program(
        cache.MODULES[0], "k8s.io/kubernetes/cmd/kube-scheduler", 60, binaries.linker_flags()
    ),
    "helm": Program(PINS / "helm", "helm.sh/helm/v3/cmd/helm", 100),
    "kwok": Program(PINS / "kwok", "sigs.k8s.io/kwok/cmd/kwok", 100),
    "training-operator": Program(
        PINS / "training-operator",
        "github.com/kubeflow/training-operator/cmd/training-operator.v1",
        75,
    ),
    "jobset": Program(PINS / "jobset", "sigs.k8s.io/jobset", 80),
    "kuberay": Program(PINS / "kuberay", "github.com/ray-project/kuberay/ray-operator", 70),
    "lws": Program(PINS / "lws", "sigs.k8s.io/lws/cmd", 80),
    "mpi-operator": Program(
        PINS / "mpi-operator", "github.com/kubeflow/mpi-operator/cmd/mpi-operator", 80
    ),
    "trainer": Program(
        PINS / "trainer", "github.com/kubeflow/trainer/v2/cmd/trainer-controller-manager", 70
    ),
    "argo": Program(
        PINS / "argo",
        "github.com/argoproj/argo-workflows/v3/cmd/workflow-controller",
        120,
    ),
    "spark-operator": Program(
        PINS / "spark-operator", "github.com/kubeflow/spark-operator/v2/cmd/operator", 100
    ),
    "kserve": Program(PINS / "kserve", "github.com/kserve/kserve/cmd/manager", 150),
}


def find(*names: str, build: bool = True) -> dict[str, Path]:
    """Return the programs of these names from `$KUBEBUILDER_ASSETS`, the cache, or a build.

    Raises MissingTestbed when one is nowhere and cannot be built, at once if not `build`.
    """
    paths = {name: _in_assets(name) or _cached(name) for name in names}
    wanting = [name for name, path in paths.items() if not path.exists()]
    if wanting and not build:
        raise MissingTestbed(
            f"Not built yet: {', '.join(wanting)}.",
            f"Run `python -m tests.e2e.testbed build {' '.join(wanting)}`.",
        )
    if wanting:
        _build_all(wanting)
    return paths


def _in_assets(name: str) -> Path | None:
    named = os.environ.get("KUBEBUILDER_ASSETS")
    path = Path(named or ".").expanduser().resolve() / name
    return path if named and os.access(path, os.X_OK) else None


def _cached(name: str) -> Path:
    program = PROGRAMS[name]
    pins = (program.module / "go.sum").read_bytes()
    digest = hashlib.sha256(pins + program.package.encode()).hexdigest()[:12]
    return cache.root() / "testbed" / "programs" / f"{name}-{digest}"


def _build_all(names: list[str]) -> None:
    go = golang.find()
    folder = cache.root() / "testbed" / "programs"
    with cache.locked(folder):
        wanting = [name for name in names if not _cached(name).exists()]
        minutes = max(1, round(sum(PROGRAMS[name].seconds for name in wanting) / 60))
        if wanting:
            cache.tell(
                f"building {', '.join(wanting)} into {folder}; "
                f"about {minutes} minutes on two cores, the first time only"
            )
        for name in wanting:
            program = PROGRAMS[name]
            with cache.step(f"go build {name}"):
                binaries.build(go, program.module, program.package, program.flags, _cached(name))
