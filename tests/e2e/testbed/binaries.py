"""Finds the programs of the control plane, building those that are nowhere."""

import os
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.testbed import cache, golang
from tests.e2e.testbed.missing import MissingTestbed

KUBERNETES = "1.36.3"
_MUST_BE_IN_ASSETS = ("etcd", "kube-apiserver", "kubectl")


@dataclass(frozen=True, slots=True)
class Binaries:
    """Paths of the four programs."""

    etcd: Path
    kube_apiserver: Path
    kube_controller_manager: Path
    kubectl: Path


@dataclass(frozen=True, slots=True)
class Source:
    """Where the Go package of a program is pinned, and seconds of a first build on two cores."""

    module: Path
    package: str
    seconds: int


SOURCES = {
    "etcd": Source(cache.MODULES[1], "go.etcd.io/etcd/server/v3", 45),
    "kube-apiserver": Source(cache.MODULES[0], "k8s.io/kubernetes/cmd/kube-apiserver", 270),
    "kube-controller-manager": Source(
        cache.MODULES[0], "k8s.io/kubernetes/cmd/kube-controller-manager", 60
    ),
    "kubectl": Source(cache.MODULES[0], "k8s.io/kubernetes/cmd/kubectl", 35),
}


def find(*, build: bool = True) -> Binaries:
    """Return the programs from `$KUBEBUILDER_ASSETS`, the cache, or a build into the cache.

    Raises MissingTestbed when a program is neither there nor to be built, at once if not `build`.
    """
    found = _in_assets()
    cached = cache.binaries_folder()
    for name in SOURCES:
        if name not in found and (cached / name).exists():
            found[name] = cached / name
    wanting = [name for name in SOURCES if name not in found]
    if wanting and not build:
        raise MissingTestbed(
            f"Not built yet: {', '.join(wanting)}.", "Run `python -m tests.e2e.testbed build`."
        )
    if wanting:
        _build_all(wanting, cached)
    paths = {name: found.get(name, cached / name) for name in SOURCES}
    return Binaries(
        etcd=paths["etcd"],
        kube_apiserver=paths["kube-apiserver"],
        kube_controller_manager=paths["kube-controller-manager"],
        kubectl=paths["kubectl"],
    )


def _in_assets() -> dict[str, Path]:
    named = os.environ.get("KUBEBUILDER_ASSETS")
    if not named:
        return {}
    assets = Path(named).expanduser().resolve()
    found = {name: assets / name for name in SOURCES if os.access(assets / name, os.X_OK)}
    missing = [name for name in _MUST_BE_IN_ASSETS if name not in found]
    if missing:
        raise MissingTestbed(
            f"KUBEBUILDER_ASSETS={named} holds no {', '.join(missing)}.",
            "Unset it to have them built, or point it at a folder that `setup-envtest` filled.",
        )
    return found


def _build_all(names: list[str], folder: Path) -> None:
    go = golang.find()
    with cache.locked(folder):
        wanting = [name for name in names if not (folder / name).exists()]
        minutes = max(1, round(sum(SOURCES[name].seconds for name in wanting) / 60))
        if wanting:
            cache.tell(
                f"building {', '.join(wanting)} into {folder}; "
                f"about {minutes} minutes on two cores, the first time only"
            )
        for name in wanting:
            with cache.step(f"go build {name}"):
                source = SOURCES[name]
                build(go, source.module, source.package, linker_flags(), folder / name)


def build(go: golang.Go, module: Path, package: str, linker: str, target: Path) -> None:
    """Build `package` as `module` pins it into the file `target`.

    Raises MissingTestbed.
    """
    partial = target.with_name(f"{target.name}.partial")
    flags = ["-mod=readonly", "-trimpath", "-buildvcs=false", f"-ldflags={linker}"]
    go.run("build", *flags, "-o", str(partial), package, folder=module)
    partial.replace(target)


def linker_flags() -> str:
    """Return the linker's flags that tell a Kubernetes program its own version."""
    major, minor, _ = KUBERNETES.split(".")
    told = {"gitVersion": f"v{KUBERNETES}", "gitMajor": major, "gitMinor": minor}
    packages = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
    stamps = [f"-X {package}.{name}={told[name]}" for package in packages for name in told]
    return " ".join(["-s -w", *stamps])
