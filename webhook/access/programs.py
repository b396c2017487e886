"""The texts of a component as native programs, which are all that admission follows."""

from __future__ import annotations

from webhook.access.component import scale_paths
from webhook.access.errors import AccessError
from webhook.documents.read_model import shown
from webhook.interface.document import ComponentModel
from webhook.jq.expressions import NotNativeError, native
from webhook.jq.path import Program


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
