"""Accepts the misspellings that public resource interfaces contain, each with a warning."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from webhook.documents.read_model import Report, show_value
from webhook.objects.path import Path

STRUCTURE = ("spec", "structureDefinition")


def correct_spelling(spec: Any, report: Report) -> Any:
    """Return a copy of a definition's spec in which known misspellings are corrected."""
    if not isinstance(spec, dict) or not isinstance(spec.get("structureDefinition"), dict):
        return spec
    structure = dict(spec["structureDefinition"])
    drop(
        structure,
        "referencedComponents",
        STRUCTURE,
        report,
        "write it in the workload profile, as `references`",
    )
    for at, component in components(structure):
        mend_component(component, (*STRUCTURE, *at), report)
        if at[0] == "childComponents":
            give_owner(component, structure.get("rootComponent"), (*STRUCTURE, *at), report)
    return {**spec, "structureDefinition": structure}


def components(structure: dict[str, Any]) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Return the components with their paths, copied into `structure` so that they can be changed."""
    root = structure.get("rootComponent")
    if isinstance(root, dict):
        structure["rootComponent"] = dict(root)
        yield ("rootComponent",), structure["rootComponent"]
    children = structure.get("childComponents")
    if isinstance(children, list):
        structure["childComponents"] = copies = [
            dict(each) if isinstance(each, dict) else each for each in children
        ]
        for index, child in enumerate(copies):
            if isinstance(child, dict):
                yield ("childComponents", index), child


def mend_component(component: dict[str, Any], at: Path, report: Report) -> None:
    """Correct one component in place."""
    rename(component, "ownerName", "ownerRef", at, report)
    drop(
        component,
        "referencedComponents",
        at,
        report,
        "write it in the workload profile, as `references`",
    )
    if isinstance(paths := component.get("specDefinition"), dict):
        component["specDefinition"] = paths = dict(paths)
        here = (*at, "specDefinition")
        rename(paths, "fragmentedPodDefinition", "fragmentedPodSpecDefinition", here, report)
        rename(paths, "metaDataPath", "metadataPath", here, report)
        drop(paths, "specPath", here, report, "write `podSpecPath` or `podTemplateSpecPath`")
    status = component.get("statusDefinition")
    if isinstance(status, dict) and isinstance(status.get("statusMappings"), dict):
        place = (*at, "statusDefinition", "statusMappings")
        mappings = {
            name: as_list(value, (*place, name), report)
            for name, value in status["statusMappings"].items()
        }
        component["statusDefinition"] = {**status, "statusMappings": mappings}


def give_owner(child: dict[str, Any], root: Any, at: Path, report: Report) -> None:
    """Make the root the owner of a child that names none, as in upstream's own example."""
    name = root.get("name") if isinstance(root, dict) else None
    if child.get("ownerRef") in (None, "") and isinstance(name, str) and name:
        child["ownerRef"] = name
        found = f"child component `{show_value(child.get('name') or '')}` has no owner"
        fix = f"add `ownerRef: {show_value(name)}`, which podgate assumes; upstream refuses it without"
        report.warn(at, found, fix, "owner-missing")


def rename(holder: dict[str, Any], wrong: str, right: str, at: Path, report: Report) -> None:
    """Rename a misspelled key."""
    if wrong not in holder:
        return
    value = holder.pop(wrong)
    if right in holder:
        report.warn(
            (*at, wrong), f"`{wrong}` beside `{right}`", f"remove `{wrong}`", "misspelt-field"
        )
        return
    holder[right] = value
    report.renamed[(*at, right)] = wrong
    report.warn((*at, wrong), f"`{wrong}`", f"write `{right}`", "misspelt-field")


def drop(holder: dict[str, Any], name: str, at: Path, report: Report, fix: str) -> None:
    """Remove a key that exists in no schema."""
    if name in holder:
        del holder[name]
        report.warn(
            (*at, name), f"`{name}`, which is not supported and is ignored", fix, "unknown-field"
        )


def as_list(value: Any, at: Path, report: Report) -> Any:
    """Convert a single matcher to a list with one matcher."""
    if not isinstance(value, dict):
        return value
    report.warn(at, "one matcher instead of a list", "write it as a list item", "not-a-list")
    return [value]
