"""The parts of requirements.lock that the image needs: to run podgate, and to build its wheel."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NAME = re.compile(r"[A-Za-z0-9][-A-Za-z0-9_.]*")
HEADER = "# A part of requirements.lock, by `make docs`; do not edit.\n"


def packages() -> dict[str, tuple[str, frozenset[str]]]:
    """Each package of the lock: its lines with hashes, and who wants it."""
    found = {}
    for block in re.split(r"(?m)^(?=[a-z0-9])", (ROOT / "requirements.lock").read_text("utf-8")):
        lines, _, via = block.partition("    # via")
        name = NAME.match(lines)
        if name is not None:
            wanting = (line.strip(" #").split(" ")[0] for line in via.splitlines())
            found[name[0]] = (lines, frozenset(each for each in wanting if each))
    return found


def closure(roots: Iterable[str]) -> str:
    """The lock of these packages and of all that they need."""
    known = packages()
    kept = {each.lower() for each in roots}
    assert kept <= set(known), kept - set(known)
    while more := {name for name, (_, via) in known.items() if name not in kept and via & kept}:
        kept |= more
    return HEADER + "".join(known[name][0] for name in sorted(kept))


def image(*extras: str) -> str:
    """requirements-image.lock: what podgate needs to run, with these extras."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    wanted = list(project["dependencies"])
    for extra in extras:
        wanted += project["optional-dependencies"][extra]
    names = (NAME.match(each) for each in wanted)
    return closure(each[0] for each in names if each is not None)


def traced_image() -> str:
    """requirements-image-otel.lock: the same with what sends traces."""
    return image("otel")


def build() -> str:
    """requirements-build.lock: what its wheel is built with."""
    return closure(["hatchling"])
