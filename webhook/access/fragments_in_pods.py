"""Paths of fragments in objects that have whole pods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from webhook.access.component import Form
from webhook.access.errors import AccessError
from webhook.interface.document import ComponentModel, SpecPaths
from webhook.jq.path import Match
from webhook.objects.path import Path
from webhook.pods.assemble import UPSTREAM
from webhook.pods.fragments import CONTAINER

Named = Iterable[tuple[str, Match]]


def whole_form(model: ComponentModel) -> Form | None:
    """Return the form of a component with whole pods, None if it has none."""
    paths = model.spec_definition or SpecPaths()
    if paths.pod_template_spec_path:
        return "template"
    return "spec" if paths.pod_spec_path else None


def has_metadata(model: ComponentModel, whole: Form) -> bool:
    """Whether a component has a path of the metadata of its pod specs."""
    paths = model.spec_definition
    return whole == "spec" and paths is not None and bool(paths.metadata_path)


def fragment_paths(
    pods: Named, beside: Named, whole: Form, main: str | None
) -> dict[str, dict[str, Path | None]]:
    """Return the paths of all fragments by instance, for pods with their metadata.

    `main` names the container that runs the workload; without one of that name it is the first.
    """
    metadata = {name: place_of(each) for name, each in beside}
    found = {}
    for name, each in pods:
        place, spec = place_of(each), each.value
        at: dict[str, Path | None] = {"spec": place, "metadata": metadata.get(name)}
        if whole == "template":
            at = {"spec": (*place, "spec"), "metadata": (*place, "metadata")}
            spec = each.value.get("spec")
        number = main_container(spec, main)
        found[name] = {
            key.removesuffix("Path"): in_pod(at, pod, number) for key, pod in UPSTREAM.items()
        }
    return found


def in_pod(at: Mapping[str, Path | None], pod: Path, main: int | None) -> Path | None:
    """Return a path of a pod in the object, None if the object does not have it."""
    outer = at[str(pod[0])]
    if outer is None or (pod[: len(CONTAINER)] == CONTAINER and main is None):
        return None
    return (*outer, *(main if step == 0 and main is not None else step for step in pod[1:]))


def main_container(spec: Any, name: str | None) -> int | None:
    """Return the index of the main container, None in a pod without containers."""
    listed = spec.get("containers") if isinstance(spec, dict) else None
    if not isinstance(listed, list) or not listed:
        return None
    names = [each.get("name") if isinstance(each, dict) else None for each in listed]
    return names.index(name) if name in names else 0


def place_of(match: Match) -> Path:
    """Return the path of a value. Raises AccessError for a computed one."""
    if match.path is None:
        raise AccessError("not-a-place", "a computed value has no path")
    return match.path
