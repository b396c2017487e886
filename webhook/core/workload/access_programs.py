"""The texts of a component as native programs, which are all that admission follows."""

from __future__ import annotations

from webhook.core.workload.access_errors import AccessError
from webhook.core.workload.component_access import scale_paths
from webhook.core.workload.definition_model import ComponentModel
from webhook.core.workload.expressions import NotNativeError, native
from webhook.core.workload.query import Program
from webhook.core.workload.typed import shown


def scale_programs(model: ComponentModel) -> dict[str, Program]:
    """The programs of the numbers that the definition states."""
    paths = scale_paths(model)
    texts = {
        "replicas": paths.replicas_path,
        "minimum": paths.min_replicas_path,
        "maximum": paths.max_replicas_path,
    }
    return {name: program(text) for name, text in texts.items() if text}


def program(text: str) -> Program:
    """The native program of a path; raises AccessError, since admission follows no other."""
    found = native(text)
    if found is None:
        cause = NotNativeError(f"`{shown(text)}` is not native")
        raise AccessError("not-native", str(cause)) from cause
    return found


def optional(text: str | None) -> Program | None:
    """The same for a path that may be absent."""
    return program(text) if text else None
