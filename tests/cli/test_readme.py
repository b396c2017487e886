"""Pages match the program: commands print the shown output, options exist, kinds are listed.

A `console` block is run and its output compared; a `sh` block is for the reader to run.
PODGATE_UPDATE_GOLDEN=1 writes outputs again.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import chdir
from pathlib import Path

import pytest
import typer
from typer.core import TyperCommand, TyperGroup

from tests.cli.running import podgate
from webhook.cli.main import app
from webhook.devices.kinds import KINDS
from webhook.sources.load import Sources, load

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
WALKED = [
    README,
    *(ROOT / "docs" / f"{name}.md" for name in ("tutorial", "devices")),
    *sorted((ROOT / "docs" / "how-to").glob("*.md")),
]
PAGES = [
    *WALKED,
    ROOT / "CONTRIBUTING.md",
    *(ROOT / "docs" / f"{name}.md" for name in ("architecture", "operations", "security")),
    *(ROOT / "docs" / f"{name}.md" for name in ("policies", "workloads", "interfaces", "README")),
]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
WRITE = "PODGATE_UPDATE_GOLDEN"
PRINT_CODE = '; echo "exit code $?"'
FILE_NAME = re.compile(r"# (\S+\.yaml)\n")


def output_of(line: str, folder: Path) -> str:
    """What a line prints in a folder, errors included: podgate in this process, the rest in a shell."""
    with_code = line.endswith(PRINT_CODE)
    command, *arguments = shlex.split(line.removesuffix(PRINT_CODE))
    if command != "podgate" or re.search(r"[|;&<>$*]", line.removesuffix(PRINT_CODE)):
        return output_of_shell(line, folder)
    with chdir(folder):
        done = podgate(*arguments)
    return f"{done.output}exit code {done.exit_code}\n" if with_code else done.output


def output_of_shell(line: str, folder: Path) -> str:
    """What a shell line prints in a folder, errors included, with podgate on the path and nothing set."""
    clean = {name: text for name, text in os.environ.items() if not name.startswith("PODGATE_")}
    path = f"{Path(sys.executable).parent}{os.pathsep}{clean['PATH']}"
    done = subprocess.run(
        ["/bin/sh", "-c", line],
        cwd=folder,
        env={**clean, "PATH": path, "COLUMNS": "80", "NO_COLOR": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.stdout if done.stdout.endswith("\n") or not done.stdout else f"{done.stdout}\n"


def walked(text: str, folder: Path, output: Callable[[str, Path], str]) -> str:
    """Return a page with today's outputs: writes its files, runs the commands of its console blocks."""

    def block(found: re.Match[str]) -> str:
        kind, body = found[1], found[2]
        named = FILE_NAME.match(body)
        if kind == "yaml" and named:
            (folder / named[1]).parent.mkdir(parents=True, exist_ok=True)
            (folder / named[1]).write_text(body, "utf-8")
        if kind == "console":
            commands = [each[2:] for each in body.splitlines() if each.startswith("$ ")]
            body = "".join(f"$ {each}\n{output(each, folder)}" for each in commands)
        return f"```{kind}\n{body}```"

    return BLOCK.sub(block, text)


@pytest.mark.parametrize("page", WALKED, ids=lambda page: page.stem)
def test_a_page_shows_what_its_commands_print(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [each for each in os.environ if each.startswith("PODGATE_") and each != WRITE]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    text = page.read_text("utf-8")
    # One page runs the installed command, as a reader does.
    today = walked(text, tmp_path, output_of_shell if page == README else output_of)
    if os.environ.get(WRITE):
        page.write_text(today, "utf-8")
        return
    assert today == text, "outputs differ: PODGATE_UPDATE_GOLDEN=1 writes them again"


def mentioned(text: str) -> Iterator[tuple[str, str]]:
    """Every command and option that a page mentions, as (`podgate serve`, `--drain`)."""
    for command, rest in re.findall(r"podgate ([a-z]+)((?:[^\n`|$]|\\\n)*)", code_of(text)):
        yield command, ""
        for option in re.findall(r"(?<![\w-])(--?[a-z][a-z-]*)", rest):
            yield command, option


def code_of(text: str) -> str:
    """Code of a page alone: blocks and spans, so that prose about podgate is no command."""
    blocks = BLOCK.findall(text)
    typed = (body for kind, body in blocks if kind in ("console", ""))
    commands = [line[2:] for body in typed for line in body.splitlines() if line[:2] == "$ "]
    commands += [line for kind, body in blocks if kind == "sh" for line in body.splitlines()]
    spans = re.findall(r"`(podgate [^`\n]+)`", BLOCK.sub("", text))
    return "\n".join([*commands, *spans])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_and_option_of_a_page_exists(page: Path) -> None:
    group = typer.main.get_command(app)
    commands: dict[str, object] = vars(group)["commands"]
    for command, option in mentioned(page.read_text("utf-8")):
        assert command in commands, f"{page.name} mentions podgate {command}"
        known = options_of(commands[command]) | {"--help", "-h", ""}
        assert option in known, f"podgate {command} {option}"


def options_of(command: object) -> set[str]:
    """The options of a command, or of all commands of a group."""
    if isinstance(command, TyperGroup):
        return set().union(*map(options_of, command.commands.values()))
    assert isinstance(command, TyperCommand)
    return {name for each in command.params for name in each.opts}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_between_pages_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text("utf-8")):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_make_target_of_a_page_exists(page: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    for target in re.findall(r"`make ([a-z-]+)", page.read_text("utf-8")):
        assert target in targets, f"{page.name} mentions make {target}"


def test_the_workloads_page_has_a_row_for_every_kind() -> None:
    catalog, problems = load(Sources())
    assert catalog is not None, problems
    page = (ROOT / "docs" / "workloads.md").read_text("utf-8")
    for (group, kind), definitions in sorted(catalog.definitions.items()):
        for each in definitions if (group, kind) not in KINDS else ():
            version = ", ".join(sorted(each.versions))
            start = f"| `{kind}` | {group or 'core'} | {version} | {each.profile.workload_type or 'none'} |"
            assert start in page, f"docs/workloads.md lacks a row that begins with {start}"


def test_the_readme_counts_the_kinds() -> None:
    catalog, problems = load(Sources())
    assert catalog is not None, problems
    with_pods = catalog.definitions.keys() - KINDS.keys()
    assert f"the pods of {len(with_pods)} kinds" in README.read_text("utf-8")
