"""The chart as helm renders it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.e2e.testbed import programs, releases

Json = dict[str, Any]
ROOT = Path(__file__).resolve().parents[3]
CHART = ROOT / "deploy" / "chart"
NAMESPACE = "podgate-system"
HOOK = "helm.sh/hook"


class HelmError(Exception):
    """What helm said instead of doing it."""


def helm(*arguments: str, stdin: str = "", environ: Mapping[str, str] | None = None) -> str:
    """The output of one command; HelmError when it fails."""
    command = [str(programs.find("helm")["helm"]), *arguments]
    done = subprocess.run(
        command, input=stdin, capture_output=True, text=True, check=False, env=environ
    )
    if done.returncode:
        raise HelmError(done.stderr + done.stdout)
    return done.stdout


def rendered(values: Json | None = None, *, namespace: str = NAMESPACE) -> list[Json]:
    """Every object of the chart with these values, hooks included."""
    version = ("--kube-version", releases.chosen().version)
    flags = ("template", "podgate", str(CHART), "--namespace", namespace, *version)
    text = helm(*flags, "--values", "-", stdin=json.dumps(values or {}))
    return [each for each in yaml.load_all(text, Loader=yaml.CSafeLoader) if each]


def is_hook(body: Json) -> bool:
    """Whether helm runs an object at a certain time instead of keeping it."""
    return HOOK in (body["metadata"].get("annotations") or {})


def key_of(body: Json) -> tuple[str, str, str]:
    """Kind, namespace and name."""
    metadata = body["metadata"]
    return body["kind"], str(metadata.get("namespace") or ""), metadata["name"]
