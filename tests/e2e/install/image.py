"""The Dockerfile's steps, run without a container engine: in a mount namespace of their own.

Each stage has an /opt of its own. Python is the machine's instead of the base image's; commands are those
of the file, word for word. The last stage runs on a read-only root, as its user, without capabilities.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
KEPT = ("HOME", "LANG", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")
"""How this machine reaches the package index; variables of pip and of proxies too."""


def steps() -> Iterator[tuple[str, str]]:
    """Each instruction of the Dockerfile with its words, lines joined."""
    text = (ROOT / "Dockerfile").read_text("utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    for line in "\n".join(lines).replace("\\\n", " ").splitlines():
        if line.strip():
            instruction, _, rest = line.strip().partition(" ")
            yield instruction, rest.strip()


@dataclass(slots=True)
class Stage:
    """One stage: what is its /opt, and what was set in it."""

    opt: Path
    folder: str = "/"
    variables: dict[str, str] = field(default_factory=dict)
    arguments: dict[str, str] = field(default_factory=dict)
    user: str = "0:0"
    command: list[str] = field(default_factory=list)

    def place(self, path: str) -> Path:
        """Where a path of the stage is on this machine; only /opt is the stage's own."""
        whole = Path(self.folder) / path
        return self.opt / whole.relative_to("/opt")

    def run(self, script: str) -> None:
        """One RUN, as root, in the stage's folder."""
        inside = f"mount --bind {self.opt} /opt && cd {self.folder} && {script}"
        command = ["unshare", "--mount", "--propagation", "private", "sh", "-ec", inside]
        pip = {key: each for key, each in os.environ.items() if key.startswith("PIP_")}
        pip |= {key: each for key, each in os.environ.items() if key.lower().endswith("_proxy")}
        pip |= {key: os.environ[key] for key in KEPT if key in os.environ}
        done = subprocess.run(
            command,
            env={**pip, "PATH": SYSTEM_PATH, **self.arguments, **self.variables},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{script}\n{done.stdout[-1000:]}\n{done.stderr[-3000:]}"

    def started(self, arguments: Sequence[str]) -> list[str]:
        """The command of a container of this stage: its user, a read-only root, an empty /tmp."""
        user, group = self.user.split(":")
        drop = ["setpriv", "--reuid", user, "--regid", group, "--clear-groups"]
        drop += ["--no-new-privs", "--bounding-set=-all", "--inh-caps=-all"]
        variables = [f"{key}={each}" for key, each in self.variables.items()]
        inner = shlex.join([*drop, "env", "-i", *variables, *self.command, *arguments])
        script = (
            f"mount --bind {self.opt} /opt && mount -o remount,bind,ro /opt && "
            "mount -t tmpfs -o mode=1777 tmpfs /tmp && mount -o remount,bind,ro / && "
            f"cd / && exec {inner}"
        )
        return ["unshare", "--mount", "--propagation", "private", "sh", "-ec", script]


def copied(stage: Stage, words: list[str], stages: dict[str, Stage]) -> None:
    """One COPY."""
    *sources, target = [each for each in words if not each.startswith("--")]
    origin = next((each.partition("=")[2] for each in words if each.startswith("--from=")), "")
    for source in sources:
        found = stages[origin].place(source) if origin else ROOT / source
        place = stage.place(target)
        if found.is_dir():
            ignored = shutil.ignore_patterns("__pycache__") if not origin else None
            shutil.copytree(found, place, symlinks=True, ignore=ignored, dirs_exist_ok=True)
        else:
            place = place / found.name if target.endswith("/") else place
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(found, place)


def build(folder: Path, **arguments: str) -> Stage:
    """Go through the whole file with these build arguments; the last stage."""
    stages: dict[str, Stage] = {}
    stage = Stage(folder)
    for instruction, rest in steps():
        words = rest.split()
        match instruction:
            case "FROM":
                opt = folder / f"stage-{len(stages)}"
                opt.mkdir(parents=True)
                stage = Stage(opt)
                stages[words[2] if "AS" in words else "last"] = stage
            case "ARG":
                name, _, default = rest.partition("=")
                stage.arguments[name] = arguments.get(name, default)
            case "EXPOSE":
                pass
            case "WORKDIR":
                stage.folder = rest
                stage.place(rest).mkdir(parents=True, exist_ok=True)
            case "COPY":
                copied(stage, words, stages)
            case "RUN":
                stage.run(rest)
            case "ENV":
                stage.variables |= dict(each.split("=", 1) for each in words)
            case "USER":
                stage.user = rest
            case "ENTRYPOINT":
                stage.command = [each.strip(' "') for each in rest.strip("[]").split(",")]
            case "CMD":
                assert rest == '["serve"]'
            case _:
                raise AssertionError(f"{instruction}: no way to play it here")
    return stage
