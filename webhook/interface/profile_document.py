"""Reads a WorkloadProfile, including profiles for versions that differ."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from webhook.documents import read_model
from webhook.documents.problem import Problem
from webhook.documents.read_model import Report, show_value
from webhook.documents.source import SourceDocument
from webhook.documents.suggestions import closest
from webhook.interface.fragment import FragmentSpec
from webhook.interface.profile import FieldPlaces, Groups, PodFragment, Profile
from webhook.objects.path import Path

API_VERSION = "podgate.dev/v1alpha1"
KIND = "WorkloadProfile"
SPEC: Path = ("spec",)
Forms = Mapping[str, Collection[str]]
"""The forms of fragments by the name of their assembler, "" for none."""
BY_ENTRY = ("components", "fields")


def is_profile(document: Any) -> bool:
    """Whether a decoded document is a WorkloadProfile, by apiVersion and kind."""
    return (
        isinstance(document, dict)
        and document.get("apiVersion") == API_VERSION
        and document.get("kind") == KIND
    )


def parse_profile(
    document: SourceDocument, forms: Forms | None = None
) -> tuple[Profile | None, tuple[Problem, ...]]:
    """Return the profile, or None if it cannot be used, and all problems, including warnings.

    Without `forms` the assembler and the forms of fragments are not checked.
    """
    report = Report(document)
    if not is_profile(document.data):
        report.add((), "not a workload profile", f"write {API_VERSION} {KIND}", "wrong-kind")
        return None, tuple(report.problems)
    body = document.data.get("spec")
    metadata = document.data.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    profile = read_spec(body, str(name or ""), report, forms)
    if profile is None:
        return None, tuple(report.problems)
    profile = replace(profile, others=other_versions(profile, body, report, forms))
    return (None if report.has_errors else profile), tuple(report.problems)


def read_spec(body: Any, name: str, report: Report, forms: Forms | None) -> Profile | None:
    """Read the profile of one layout. An invalid profile is reported, and returns None."""
    read = read_model.read(Profile, body, SPEC, report)
    if read is None:
        return None
    check_fields(read.fields, report)
    check_components(read, report)
    check_values(read, report)
    if forms is not None:
        check_forms(read, forms, report)
    return replace(
        read,
        name=name,
        origin=report.document.origin,
        fields={field: with_write(places) for field, places in read.fields.items()},
        fragments=by_component(read.pod_parts),
    )


def other_versions(
    profile: Profile, body: dict[str, Any], report: Report, forms: Forms | None
) -> dict[str, Profile]:
    """Read the profiles of versions that differ. Problems have the paths of the merged profile."""
    found = {}
    for version in profile.per_version:
        at = (*SPEC, "perVersion", version)
        if version not in profile.versions:
            fix = "add it to `versions`, or remove it here"
            report.add(at, "not among `versions`", fix, "version-unknown")
        # null removes an entry, so the changes are read from the document, not from the model.
        changes = body["perVersion"][version]
        changed = {**body, **changes}
        changed.pop("perVersion")
        for key in BY_ENTRY:
            if isinstance(changes.get(key), dict):
                changed[key] = {**(body.get(key) or {}), **changes[key]}
        own = read_spec({**changed, "versions": [version]}, profile.name, report, forms)
        if own is not None:
            found[version] = own
    return found


def with_write(places: FieldPlaces) -> FieldPlaces:
    """Return a field with the paths for its default: those that it names, or all."""
    texts = [each.text for each in places.write or places.places]
    return replace(places, write=tuple(each for each in places.places if each.text in texts))


def by_component(rows: tuple[PodFragment, ...]) -> dict[str, tuple[FragmentSpec, ...]]:
    """Return the fragments of pods by component."""
    made: dict[str, tuple[FragmentSpec, ...]] = {}
    for each in rows:
        path, item = each.pod
        fragment = FragmentSpec(path, each.place, each.form, each.absent, each.makes_pod, item)
        made[each.component] = (*made.get(each.component, ()), fragment)
    return made


def check_fields(fields: Mapping[str, FieldPlaces], report: Report) -> None:
    """Check that a field has one source, and, with several paths, one of them for defaults."""
    for name, body in fields.items():
        at: Path = (*SPEC, "fields", name)
        sources = (body.places, body.scale_of, body.derived is not None, body.main_port)
        if [bool(each) for each in sources].count(True) != 1:
            fix = "set one of `places`, `scaleOf`, `derived` and `mainPort`"
            report.add(at, "a field has one source", fix, "field-source")
        if len(body.places) > 1 and not body.write:
            fix = "name in `write` the one that a default goes to"
            report.add(at, "several paths", fix, "write-missing")
        texts = [each.text for each in body.places]
        if strangers := [each.text for each in body.write if each.text not in texts]:
            found = f"`{show_value(strangers[0])}` is not among `places`"
            report.add((*at, "write"), found, "repeat one of them exactly", "write-unknown")


def check_components(profile: Profile, report: Report) -> None:
    """Check that a component has one role, or roles by instance, and check its groups."""
    for name, body in profile.components.items():
        at: Path = (*SPEC, "components", name)
        if body.one_role and body.many_roles:
            report.add((*at, "role"), "`role` beside `roles`", "keep one of them", "two-roles")
        for index, groups in enumerate(body.scale.groups):
            check_groups(groups, (*at, "scale", "groups", index), report)


def check_forms(profile: Profile, forms: Forms, report: Report) -> None:
    """Check that the assembler exists and has the forms of the fragments."""
    known = forms.get(profile.assembler)
    if known is None:
        fix = suggestion(profile.assembler, [each for each in forms if each])
        report.add((*SPEC, "assembler"), f"`{show_value(profile.assembler)}`", fix, "unknown-value")
        return
    for index, each in enumerate(profile.pod_parts):
        if each.form not in known:
            owners = [name for name, own in forms.items() if each.form in own]
            fix = f"add `assembler: {owners[0]}`" if owners else suggestion(each.form, known)
            at: Path = (*SPEC, "podParts", index, "form")
            report.add(at, f"`{show_value(each.form)}`", fix, "unknown-value")


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return what to write instead of an unknown name."""
    close = closest(name, known)
    return f"did you mean `{close}`?" if close else f"write {' or '.join(sorted(known))}"


def check_groups(groups: Groups, at: Path, report: Report) -> None:
    """Check that numbers of groups are one list less deep than the names of their instances."""
    for key in ("replicas", "minimum", "maximum"):
        number = getattr(groups, key)
        if number and number.iterators != groups.lists.iterators[:-1]:
            found = f"`{show_value(number.text)}` is not beside `{show_value(groups.lists.text)}`"
            fix = "name a number of the same groups, one list less deep"
            report.add((*at, key), found, fix, "groups-differ")


def check_values(profile: Profile, report: Report) -> None:
    """Check that `scale` sets one number, and that each default of the kind has one source."""
    target, at = profile.scale_subresource, (*SPEC, "scaleSubresource")
    if target is not None and bool(target.component) == bool(target.field):
        fix = "set one of `component` and `field`"
        report.add(at, "`scale` sets one number", fix, "scale-target")
    elif target is not None and target.field and target.field not in profile.fields:
        found = f"`{show_value(target.field)}` is not among `fields`"
        report.add((*at, "field"), found, "set its places there", "field-unknown")
    for index, each in enumerate(profile.shadow_defaults):
        if (each.value is None) == (each.same_as is None):
            found = "both value and sameAs" if each.same_as else "neither value nor sameAs"
            here = (*SPEC, "shadowDefaults", index)
            report.add(here, found, "write one of them", "default-source")
