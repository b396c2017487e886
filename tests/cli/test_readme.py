"""What the README shows is what the commands print."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
README = (ROOT / "README.md").read_text()
CONSOLE = re.findall(r"```console\n\$ podgate (.*?)\n(.*?)```", README, re.DOTALL)
OPTIONS = re.findall(r"podgate (\w+)((?:[^`\n|]*? --[a-z-]+)+)", README)


def podgate(arguments: list[str]) -> str:
    """Standard output and error of a command in the checkout."""
    done = subprocess.run(
        [sys.executable, "-c", "from webhook.cli.main import main; main()", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize(("command", "shown"), CONSOLE, ids=[each[0][-40:] for each in CONSOLE])
def test_console_blocks_are_real_output(command: str, shown: str) -> None:
    assert podgate(shlex.split(command)) == shown


@pytest.mark.parametrize(("command", "options"), OPTIONS)
def test_options_in_the_readme_exist(command: str, options: str) -> None:
    told = podgate([command, "--help"])
    for option in re.findall(r"--[a-z-]+", options):
        assert option in told, f"podgate {command} {option}"
