"""Configurations with defaults: the one that is appended, and those with nothing else in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from webhook.devices.claim_view import part
from webhook.devices.config_schemas import API_VERSION
from webhook.devices.kinds import GPU_DRIVER
from webhook.objects.path import Path
from webhook.policy.combine import Effective
from webhook.policy.row import Binding
from webhook.policy.table import TABLE

HEADER: Final = (("apiVersion",), ("kind",))


def config_for(kind: str, requests: Sequence[str], at: Path, native: Any) -> dict[str, Any]:
    """Return a configuration of these requests with one value."""
    parameters: Any = native
    for step in reversed(at):
        parameters = {step: parameters}
    parameters = {"apiVersion": API_VERSION, "kind": kind, **parameters}
    opaque = {"driver": GPU_DRIVER, "parameters": parameters}
    return {"requests": requests, "opaque": opaque}


def defaults_of_configs(effective: Effective) -> dict[Path, Any]:
    """Return the native defaults of values of configurations, by path below the parameters."""
    found = {}
    for path, leaf in effective.items():
        row, default = TABLE.owner(path), leaf.default
        if default is not None and row.binding is Binding.CONFIG and row.at:
            found[row.at] = row.reading().write(default.value, default.raw)
    return found


def find_leaves(parameters: Any, path: Path = ()) -> dict[Path, Any]:
    """Return the texts and numbers of parameters by path, but not their kind and version."""
    found: dict[Path, Any] = {}
    for key, value in part(parameters).items():
        at = (*path, key)
        if isinstance(value, dict):
            found |= find_leaves(value, at)
        elif at not in HEADER:
            found[at] = str(value) if isinstance(value, list) else value
    return found
