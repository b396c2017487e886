"""The pages say what is true: commands print what stands there, options exist, kinds are listed.

PODGATE_UPDATE_GOLDEN=1 writes the outputs into README.md again.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import typer

from webhook.cli.main import app
from webhook.sources.load import Sources, load

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
PAGES = [
    README,
    ROOT / "CONTRIBUTING.md",
    *(ROOT / "docs" / f"{name}.md" for name in ("architecture", "operations", "security")),
    *(ROOT / "docs" / f"{name}.md" for name in ("policies", "tutorial", "workloads")),
]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
RUN_BY_HAND = ("serve", "certs", "registration")
KUBECTL = re.compile(r"kubectl apply -n (\S+) -f (\S+/pytorchjob\.yaml)$")
DEMO_POLICIES = "policies/examples/demo/policies.yaml"
SHOWN = "3. A RayCluster"


def output_of(line: str, folder: Path = ROOT) -> str:
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


def as_kubectl(namespace: str, file: str) -> str:
    """How kubectl prints a refusal: the webhook's message behind words of kubectl's own."""
    line = f"podgate apply -p {DEMO_POLICIES} -n {namespace} {file}"
    found = [each.strip() for each in output_of(line).splitlines() if each.startswith("  - ")]
    head = (
        f'Error from server (Forbidden): error when creating "{file}": admission webhook '
        '"mutate.podgate.dev" denied the request: podgate refused this object: '
        f"{len(found)} rules are broken"
    )
    return "\n".join([head, *found]) + "\n"


def runs_offline(command: str) -> bool:
    """Whether a command's output is to stand in the README: podgate's, without a server."""
    by_hand = any(f"podgate {each}" in command for each in RUN_BY_HAND)
    return "podgate" in command and not by_hand and not command.startswith(("kubectl", "helm"))


def console(body: str) -> str:
    """A console block with the outputs of its commands; commands run by hand stay without."""
    lines = []
    for command in (each[2:] for each in body.splitlines() if each.startswith("$ ")):
        lines.append(f"$ {command}\n")
        kubectl = KUBECTL.search(command)
        if kubectl:
            lines.append(as_kubectl(kubectl[1], kubectl[2]))
        elif runs_offline(command):
            lines.append(output_of(command))
    return "".join(lines)


@cache
def demo_excerpt() -> str:
    """The RayCluster of the demo, without what differs each time."""
    chapter = output_of("python -m tools.demo").split(SHOWN)[1].split("\n4. ")[0]
    places = chapter[chapter.index("     spec.headGroupSpec") : chapter.index("   audit log")]
    return places.rstrip() + "\n"


def rewritten(text: str) -> str:
    """The README with every output as it is today."""

    def block(found: re.Match[str]) -> str:
        kind, body = found[1], found[2]
        if kind == "console":
            body = console(body)
        elif kind == "text":
            body = demo_excerpt()
        return f"```{kind}\n{body}```"

    return BLOCK.sub(block, text)


def test_the_readme_shows_what_the_commands_print() -> None:
    text = README.read_text("utf-8")
    today = rewritten(text)
    if os.environ.get("PODGATE_UPDATE_GOLDEN"):
        README.write_text(today, "utf-8")
        return
    assert today == text, "outputs differ: PODGATE_UPDATE_GOLDEN=1 writes them again"


FILE_NAME = re.compile(r"# (\S+\.yaml)\n")


def walked(text: str, folder: Path) -> str:
    """The tutorial with every output as it is today: its files written, its commands run."""

    def block(found: re.Match[str]) -> str:
        kind, body = found[1], found[2]
        named = FILE_NAME.match(body)
        if kind == "yaml" and named:
            (folder / named[1]).parent.mkdir(parents=True, exist_ok=True)
            (folder / named[1]).write_text(body, "utf-8")
        if kind == "console":
            commands = [each[2:] for each in body.splitlines() if each.startswith("$ ")]
            body = "".join(f"$ {each}\n{output_of(each, folder)}" for each in commands)
        return f"```{kind}\n{body}```"

    return BLOCK.sub(block, text)


def test_the_tutorial_shows_what_the_commands_print(tmp_path: Path) -> None:
    page = ROOT / "docs" / "tutorial.md"
    text = page.read_text("utf-8")
    today = walked(text, tmp_path)
    if os.environ.get("PODGATE_UPDATE_GOLDEN"):
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
    blocks = [body for kind, body in BLOCK.findall(text) if kind in ("console", "sh", "")]
    commands = [line[2:] for body in blocks for line in body.splitlines() if line[:2] == "$ "]
    spans = re.findall(r"`(podgate [^`\n]+)`", BLOCK.sub("", text))
    return "\n".join([*commands, *spans])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_and_option_of_a_page_exists(page: Path) -> None:
    group = typer.main.get_command(app)
    commands: dict[str, typer.core.TyperCommand] = vars(group)["commands"]
    for command, option in mentioned(page.read_text("utf-8")):
        if command == "interface":
            continue  # named by a message, and not there yet
        assert command in commands, f"{page.name} mentions podgate {command}"
        known = {name for each in commands[command].params for name in each.opts}
        assert not option or option in known | {"--help", "-h"}, f"podgate {command} {option}"


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
        for each in definitions:
            version = ", ".join(sorted(each.versions))
            start = f"| `{kind}` | {group or 'core'} | {version} | {each.profile.workload_type or 'none'} |"
            assert start in page, f"docs/workloads.md lacks a row that begins with {start}"


def test_the_readme_counts_the_kinds() -> None:
    catalog, problems = load(Sources())
    assert catalog is not None, problems
    assert f"There: {len(catalog.definitions)} kinds" in README.read_text("utf-8")
