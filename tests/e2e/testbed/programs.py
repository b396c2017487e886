"""Programs of the control plane and beside it, each pinned by a module, found or built."""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.testbed import cache, golang, releases
from tests.e2e.testbed.missing import MissingTestbed

PINS = cache.HERE / "operators"
ETCD = cache.HERE / "etcd"
TESTS = cache.HERE.parents[1]
QUANTITY_ORACLE = TESTS / "objects" / "quantity_oracle"
POD_SECURITY_ORACLE = TESTS / "decision" / "pod_security_oracle"
CONDITIONS = cache.HERE / "conditions"
# NVIDIA's DRA driver, a folder for each version.
DRA_DRIVER = cache.HERE / "dra_driver"
DRA_PROGRAMS = "sigs.k8s.io/dra-driver-nvidia-gpu/cmd"


@dataclass(frozen=True, slots=True)
class Program:
    """The folder whose go.mod pins it, its Go package, and seconds of a first build on two cores."""

    module: Path
    package: str
    seconds: int
    flags: str = "-s -w"


# Of the chosen release, in seconds as below: a server first, which builds what the others share.
KUBERNETES = {
    "kube-apiserver": 270,
    "kube-controller-manager": 60,
    "kube-scheduler": 60,
    "kubectl": 35,
}
PROGRAMS = {
    "etcd": Program(ETCD, "go.etcd.io/etcd/server/v3", 45),
    "condition-oracle": Program(CONDITIONS, "./oracle", 70),
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
    "knative": Program(PINS / "knative", "./serving", 150),
    "knative-webhook": Program(PINS / "knative", "knative.dev/serving/cmd/webhook", 30),
    "quantity-oracle": Program(QUANTITY_ORACLE, ".", 20),
    "pod-security-oracle": Program(POD_SECURITY_ORACLE, ".", 40),
    "dra-webhook-0.5": Program(DRA_DRIVER / "0.5", f"{DRA_PROGRAMS}/webhook", 70),
    "dra-webhook-0.4": Program(DRA_DRIVER / "0.4", f"{DRA_PROGRAMS}/webhook", 60),
    "dra-prepare": Program(DRA_DRIVER / "0.5", "./prepare", 5),
    "compute-domain-controller": Program(
        DRA_DRIVER / "0.5", f"{DRA_PROGRAMS}/compute-domain-controller", 45
    ),
    "argocd": Program(PINS / "gitops-engine", "./argocd", 80),
    "flux": Program(PINS / "flux-ssa", "./flux", 30),
}
OPERATORS_IN_CI = ("training-operator", "jobset", "kuberay")
ORACLES_IN_CI = (
    "condition-oracle",
    "quantity-oracle",
    "pod-security-oracle",
    "dra-webhook-0.5",
    "dra-prepare",
)
IN_CI = (*ORACLES_IN_CI, "kube-scheduler", "kwok", "helm", *OPERATORS_IN_CI)
"""What `make test` runs besides the control plane; `make test-operators` runs all operators."""


def find(*names: str, build: bool = True) -> dict[str, Path]:
    """Return the programs of these names from `$KUBEBUILDER_ASSETS`, the cache, or a build.

    Raises MissingTestbed when one is nowhere and cannot be built, at once if not `build`.
    """
    paths = {name: in_assets(name) or _cached(name) for name in names}
    wanting = [name for name, path in paths.items() if not path.exists()]
    if wanting and not build:
        raise MissingTestbed(
            f"Not built yet: {', '.join(wanting)}.",
            f"Run `python -m tests.e2e.testbed build {' '.join(wanting)}`.",
        )
    if wanting:
        _build_all(wanting)
    return paths


def folder() -> Path:
    """Return the folder that keeps what was built, below it a folder for each set of pins."""
    return cache.root() / "testbed"


def in_assets(name: str) -> Path | None:
    """Return the program in the folder that KUBEBUILDER_ASSETS names, None if it is not there."""
    named = os.environ.get("KUBEBUILDER_ASSETS")
    path = Path(named or ".").expanduser().resolve() / name
    return path if named and os.access(path, os.X_OK) else None


def _program(name: str) -> Program:
    if name not in KUBERNETES:
        return PROGRAMS[name]
    release, package = releases.chosen(), f"{releases.MODULE}/cmd/{name}"
    return Program(release.module, package, KUBERNETES[name], release.linker_flags())


def _cached(name: str) -> Path:
    # The file keeps the program's name: kubectl tells it the server, as what changed an object.
    module = _program(name).module
    # Main packages of ours, where a project's own will not do.
    ours = sorted([*module.glob("*.go"), *module.glob("*/*.go")])
    pins = b"".join(each.read_bytes() for each in (module / "go.sum", *ours))
    return folder() / hashlib.sha256(pins).hexdigest()[:12] / name


def _build_all(names: list[str]) -> None:
    go = golang.find()
    wanting = [name for name in names if not _cached(name).exists()]
    minutes = max(1, round(sum(_program(name).seconds for name in wanting) / 60))
    cache.tell(
        f"building {', '.join(wanting)} into {folder()}; "
        f"about {minutes} minutes on two cores, the first time only"
    )
    for name in wanting:
        # A lock for each module: who needs a small program does not wait for the large ones.
        with cache.locked(_cached(name).parent):
            if not _cached(name).exists():
                with cache.step(f"go build {name}"):
                    _build(go, _program(name), _cached(name))


def _build(go: golang.Go, program: Program, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f"{target.name}.partial")
    flags = ["-mod=readonly", "-trimpath", "-buildvcs=false", f"-ldflags={program.flags}"]
    go.run("build", *flags, "-o", str(partial), program.package, folder=program.module)
    partial.replace(target)
