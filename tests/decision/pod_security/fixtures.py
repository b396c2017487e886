"""The pods with which the module of Pod Security admission tests itself, from its archive."""

from __future__ import annotations

from functools import cache
from typing import Any

import yaml

from tests.decision.pod_security.missing import LEVELS
from tests.e2e.testbed import programs, upstream

Json = dict[str, Any]
MODULE = upstream.Project(
    "k8s.io/pod-security-admission",
    crds="",
    samples="test/testdata",
    pins=programs.POD_SECURITY_ORACLE,
)


@cache
def fixtures() -> tuple[tuple[str, Json], ...]:
    """The module's own pods for the newest version, of both levels, with their files."""
    found = []
    root = upstream.archive(MODULE) / MODULE.samples
    for level in LEVELS:
        folders = sorted((root / level).iterdir(), key=lambda each: int(each.name.split(".")[1]))
        for path in sorted(folders[-1].rglob("*.yaml")):
            name = f"{level}/{path.parent.name}/{path.name}"
            found.append((name, yaml.load(path.read_text("utf-8"), yaml.CSafeLoader)))
    return tuple(found)
