"""Checks a workload profile against the resource interface of its kind."""

from __future__ import annotations

from webhook.documents.problem import Problem
from webhook.documents.read_model import Report, show_value
from webhook.documents.source import SourceDocument
from webhook.documents.suggestions import closest
from webhook.interface.interface import Interface
from webhook.interface.profile import Profile
from webhook.interface.profile_document import SPEC
from webhook.objects.path import Path


def check_profile(
    profile: Profile,
    interface: Interface,
    document: SourceDocument | None = None,
    known_fields: frozenset[str] = frozenset(),
) -> tuple[Problem, ...]:
    """Problems between a profile and the interface of its kind.

    `document` is the profile's, for lines. Field names are checked when `known_fields` are given.
    """
    source = document or SourceDocument(profile.origin, 1, {}, {}, {})
    report = Report(source)
    profile = profile.of_version(interface.version)
    if (profile.group, profile.kind) != (interface.group, interface.kind):
        found = f"the definition is of {interface.kind} in group `{interface.group}`"
        report.add((*SPEC, "kind"), found, "let both name one kind", "kind-differs")
    if interface.version not in profile.versions:
        fix = f"add {interface.version}"
        report.add(
            (*SPEC, "versions"),
            f"no {interface.version}, the version of the definition",
            fix,
            "version-missing",
        )
    names = [each.name for each in interface.components]
    for at, name in (*mentioned_components(profile), *mentioned_parts(profile, source)):
        if name not in names:
            near = closest(name, names)
            fix = f"did you mean `{near}`?" if near else f"name one of {', '.join(names)}"
            report.add(
                (*SPEC, *at), f"`{show_value(name)}` is no component", fix, "component-unknown"
            )
    check_components(profile, interface, report)
    for name in profile.fields if known_fields else ():
        if name not in known_fields:
            near = closest(name, known_fields)
            fix = f"did you mean `{near}`?" if near else "use a path of the field catalogue"
            found = f"unknown field `{show_value(name)}`"
            report.add((*SPEC, "fields", name), found, fix, "field-unknown")
    return tuple(report.problems)


def mentioned_components(profile: Profile) -> list[tuple[Path, str]]:
    """Return every component that the profile names, with the path."""
    found: list[tuple[Path, str]] = [(("components", name), name) for name in profile.components]
    for name, component in profile.components.items():
        if component.stands_in_for:
            found.append((("components", name, "standsInFor"), component.stands_in_for))
        if component.scale.pods_of:
            found.append((("components", name, "scale", "podsOf"), component.scale.pods_of))
    for index, extra in enumerate(profile.extra_containers):
        found.append((("extraContainers", index, "component"), extra.component))
    for name, each in profile.fields.items():
        if each.scale_of:
            found.append((("fields", name, "scaleOf", "component"), each.scale_of.component))
    if profile.scale_subresource and profile.scale_subresource.component:
        at: Path = ("scaleSubresource", "component")
        found.append((at, profile.scale_subresource.component))
    return found


def mentioned_parts(profile: Profile, source: SourceDocument) -> list[tuple[Path, str]]:
    """Return every component with fragments of pods, with the path of the first one."""
    body = source.data.get("spec") if isinstance(source.data, dict) else None
    listed = body.get("podParts") if isinstance(body, dict) else None
    rows = listed if isinstance(listed, list) else []
    found: list[tuple[Path, str]] = []
    for name in profile.fragments:
        own = (at for at, row in enumerate(rows) if row.get("component") == name)
        # Fragments of single versions are elsewhere in the document.
        index = next(own, None)
        at: Path = ("podParts",) if index is None else ("podParts", index, "component")
        found.append((at, name))
    return found


def check_components(profile: Profile, interface: Interface, report: Report) -> None:
    """Check that components with pods are named, and that roles by instance have instances."""
    for component in interface.components:
        at: Path = (*SPEC, "components", component.name)
        body = profile.components.get(component.name)
        if component.name in profile.fragments and component.form != "fragments":
            found = (
                f"`{component.name}` has no fragmentedPodSpecDefinition, so its rows are ignored"
            )
            fix = "leave them out, or set its pods by `podParts`"
            report.warn((*SPEC, "podParts"), found, fix, "parts-ignored")
        if body is None:
            if component.form:
                found = f"component `{component.name}` has pods and is not named: a worker"
                report.warn(at[:-1], found, f"add `{component.name}`", "component-unnamed")
        elif body.by_instance and component.ids is None:
            found = "roles by instance, but the definition names no instances"
            report.add((*at, "roles"), found, "use `role`, or add instanceIdPath", "no-instances")
