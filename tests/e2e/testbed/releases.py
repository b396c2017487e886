"""Which Kubernetes the test bed runs: the newest minor, or the one that PODGATE_KUBERNETES names."""

import os
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.testbed import cache
from tests.e2e.testbed.missing import MissingTestbed

VARIABLE = "PODGATE_KUBERNETES"
MODULE = "k8s.io/kubernetes"
_FOLDER = cache.HERE / "kubernetes"


@dataclass(frozen=True, slots=True)
class Release:
    """A minor such as 1.36, its pinned version such as 1.36.3, and the folder whose go.mod pins it."""

    minor: str
    version: str
    module: Path

    def linker_flags(self) -> str:
        """Return the linker's flags that tell a Kubernetes program its own version."""
        major, minor = self.minor.split(".")
        told = {"gitVersion": f"v{self.version}", "gitMajor": major, "gitMinor": minor}
        packages = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
        stamps = [f"-X {package}.{name}={told[name]}" for package in packages for name in told]
        return " ".join(["-s -w", *stamps])


def pinned() -> dict[str, Release]:
    """Return every release by its minor, the oldest first."""
    folders = sorted(_FOLDER.iterdir(), key=lambda one: [int(n) for n in one.name.split(".")])
    return {one.name: Release(one.name, _version(one), one) for one in folders}


def chosen() -> Release:
    """Return the release that the environment names, else the newest; MissingTestbed."""
    known = pinned()
    minor = os.environ.get(VARIABLE) or list(known)[-1]
    if minor not in known:
        one_of = f"Write one of {', '.join(known)}, or leave it out for the newest."
        raise MissingTestbed(f"{VARIABLE}={minor} is not pinned here.", one_of)
    return known[minor]


def _version(folder: Path) -> str:
    for line in (folder / "go.sum").read_text("utf-8").splitlines():
        module, version, _ = line.split()
        if module == MODULE:
            return version.removeprefix("v").removesuffix("/go.mod")
    raise ValueError(f"{folder / 'go.sum'} does not pin {MODULE}")
