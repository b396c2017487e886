"""Which of our CustomResourceDefinitions a cluster takes: those that nobody else has brought."""

from __future__ import annotations

from typing import Any, Literal

from webhook.interface.names import PROVIDED
from webhook.policy.envelope import VERSION

Json = dict[str, Any]
Step = Literal["create", "update", "leave"]


def step_for(found: Json | None) -> Step:
    """What to do about one definition, given what the cluster has under its name."""
    if found is None:
        return "create"
    return "update" if is_ours(found) else "leave"


def is_ours(found: Json) -> bool:
    """Whether a definition in the cluster carries our label, and so came from us."""
    metadata = found.get("metadata")
    labels = metadata.get("labels") if isinstance(metadata, dict) else None
    return isinstance(labels, dict) and labels.get(PROVIDED) == "true"


def why_left(found: Json) -> str:
    """What is said of a definition that is somebody else's."""
    versions = [
        str(each.get("name"))
        for each in (found.get("spec") or {}).get("versions") or ()
        if isinstance(each, dict) and each.get("served")
    ]
    text = f"left alone: it has no label {PROVIDED}, so it is its owner's"
    if VERSION in versions:
        return text
    served = ", ".join(versions) or "no version"
    return f"{text}; it serves {served}, podgate reads {VERSION} only"
