"""Records what the admission plugins that are on by default add to a Pod."""

import subprocess
from typing import Any

from tests.e2e.testbed.binaries import Binaries
from tests.e2e.testbed.probe.kinds import Json
from tests.e2e.testbed.probe.observations import EACH, Path
from tests.e2e.testbed.probe.table import spelled


def default_plugins(binaries: Binaries) -> list[str]:
    """Return the admission plugins that this API server says are on by default."""
    told = subprocess.run(
        [binaries.kube_apiserver, "--help"], capture_output=True, text=True, check=True
    ).stdout
    listed = told.partition("in the default enabled plugins list (")[2].partition(")")[0]
    return [name.strip() for name in listed.split(",")]


def additions(without: Json, with_plugins: Json, again: Json) -> list[Json]:
    """Return what a Pod has more `with_plugins` than `without`, in the order of its fields.

    `again` is the second answer with plugins; text that differs in it is shown up to there.
    """
    found: list[Json] = []
    _compare(without, with_plugins, again, ("spec",), found)
    unique: list[Json] = []
    for one in found:
        if one not in unique:
            unique.append(one)
    return unique


def _compare(before: Any, after: Any, again: Any, path: Path, found: list[Json]) -> None:
    if isinstance(before, dict):
        for key, value in after.items():
            if key not in before:
                kind = "append" if isinstance(value, list) else "value"
                found.append({"path": spelled((*path, key)), kind: _steady(value, again[key])})
            else:
                _compare(before[key], value, again[key], (*path, key), found)
    elif isinstance(before, list):
        for one, other, third in zip(before, after, again, strict=False):
            _compare(one, other, third, (*path, EACH), found)
        if more := after[len(before) :]:
            steady = _steady(more, again[len(before) :])
            found.append({"path": spelled(path), "append": steady})
    elif before != after:
        found.append({"path": spelled(path), "value": after})


def _steady(value: Any, again: Any) -> Any:
    if isinstance(value, dict):
        return {key: _steady(inner, again[key]) for key, inner in value.items()}
    if isinstance(value, list):
        return [_steady(one, other) for one, other in zip(value, again, strict=True)]
    if isinstance(value, str) and value != again:
        same = [one for one, other in zip(value, again, strict=False) if one == other]
        return f"{value[: len(same)].rpartition('-')[0]}-*"
    return value
