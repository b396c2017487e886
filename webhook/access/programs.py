"""Compiles the texts of a component to native programs. Admission supports no others."""

from __future__ import annotations

from webhook.access.component import scale_paths
from webhook.access.errors import AccessError
from webhook.documents.read_model import show_value
from webhook.interface.document import ComponentModel
from webhook.jq.expressions import NotNativeError, native
from webhook.jq.path import Program


def scale_programs(model: ComponentModel) -> dict[str, Program]:
    """Compile the paths of numbers that the definition sets."""
    paths = scale_paths(model)
    texts = {
        "replicas": paths.replicas_path,
        "minimum": paths.min_replicas_path,
        "maximum": paths.max_replicas_path,
    }
    return {name: program(text) for name, text in texts.items() if text}


def program(text: str) -> Program:
    """Compile a path to a native program. Raises AccessError if it is not native."""
    found = native(text)
    if found is None:
        cause = NotNativeError(f"`{show_value(text)}` is not native")
        raise AccessError("not-native", str(cause)) from cause
    return found


def optional(text: str | None) -> Program | None:
    """Compile a path that can be absent."""
    return program(text) if text else None
