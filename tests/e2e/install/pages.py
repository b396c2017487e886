"""Commands that pages tell people to run, run as they are written."""

from __future__ import annotations

import re
import shlex
import subprocess

from tests.e2e.install.helm import ROOT
from tests.e2e.served import PODGATE, environment
from tests.e2e.testbed.cluster import Cluster

BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)


def commands(page: str, heading: str) -> list[str]:
    """The commands in the first console block below a heading, without what is said of them."""
    text = (ROOT / page).read_text("utf-8")
    _, found, below = text.partition(f"\n## {heading}\n")
    assert found, f"{page} has no heading {heading}"
    section = below.partition("\n## ")[0]
    block = BLOCK.search(section)
    assert block, f"{page} has no commands below {heading}"
    lines = [line.removeprefix("$ ") for line in block[1].splitlines() if line.startswith("$ ")]
    return [each for line in lines if (each := line.partition("#")[0].strip())]


def run(cluster: Cluster, command: str) -> str:
    """What a command of kubectl or podgate says; it must not fail."""
    program, *arguments = shlex.split(command)
    if program == "kubectl":
        return cluster.kubectl(*arguments).stdout
    assert program == "podgate", command
    settings = {"KUBECONFIG": str(cluster.kubeconfig())}
    done = subprocess.run(
        [*PODGATE, *arguments],
        cwd=ROOT,
        env=environment(settings),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout
