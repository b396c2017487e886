"""Where fragments are in pods that an object has as a whole."""

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
    """The form that has pods as a whole, None for a component without one."""
    paths = model.spec_definition or SpecPaths()
    if paths.pod_template_spec_path:
        return "template"
    return "spec" if paths.pod_spec_path else None


def has_metadata(model: ComponentModel, whole: Form) -> bool:
    """Whether a component names the metadata that belong to its pod specs."""
    paths = model.spec_definition
    return whole == "spec" and paths is not None and bool(paths.metadata_path)


def places_in_pods(
    pods: Named, beside: Named, whole: Form, main: str | None
) -> dict[str, dict[str, Path | None]]:
    """The places of all fragments by instance, of pods with the metadata beside them.

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
    """A place of a pod in the object; None where the object has no such place."""
    outer = at[str(pod[0])]
    if outer is None or (pod[: len(CONTAINER)] == CONTAINER and main is None):
        return None
    return (*outer, *(main if step == 0 and main is not None else step for step in pod[1:]))


def main_container(spec: Any, name: str | None) -> int | None:
    """The index of the container that runs the workload; None in a pod without containers."""
    listed = spec.get("containers") if isinstance(spec, dict) else None
    if not isinstance(listed, list) or not listed:
        return None
    names = [each.get("name") if isinstance(each, dict) else None for each in listed]
    return names.index(name) if name in names else 0


def place_of(match: Match) -> Path:
    """The place of a value; raises AccessError for a computed one."""
    if match.path is None:
        raise AccessError("not-a-place", "a computed value has no path")
    return match.path
