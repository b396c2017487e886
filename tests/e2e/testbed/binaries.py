"""Finds the programs of the control plane, building those that are nowhere."""

import os
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.testbed import programs
from tests.e2e.testbed.missing import MissingTestbed

NAMES = ("etcd", "kube-apiserver", "kube-controller-manager", "kubectl")
_MUST_BE_IN_ASSETS = ("etcd", "kube-apiserver", "kubectl")


@dataclass(frozen=True, slots=True)
class Binaries:
    """Paths of the four programs."""

    etcd: Path
    kube_apiserver: Path
    kube_controller_manager: Path
    kubectl: Path


def find(*, build: bool = True) -> Binaries:
    """Return the programs from `$KUBEBUILDER_ASSETS`, the cache, or a build into the cache.

    Raises MissingTestbed when a program is neither there nor to be built, at once if not `build`.
    """
    _check_assets()
    found = programs.find(*NAMES, build=build)
    return Binaries(*(found[name] for name in NAMES))


def _check_assets() -> None:
    named = os.environ.get("KUBEBUILDER_ASSETS")
    if named and (missing := [one for one in _MUST_BE_IN_ASSETS if not programs.in_assets(one)]):
        raise MissingTestbed(
            f"KUBEBUILDER_ASSETS={named} holds no {', '.join(missing)}.",
            "Unset it to have them built, or point it at a folder that `setup-envtest` filled.",
        )
