"""Finds the kind that somebody means by KIND[.group][/version], and names its components."""

from __future__ import annotations

import re
from collections.abc import Sequence

from webhook.catalog.catalog import Catalog
from webhook.catalog.plan import component_roles
from webhook.documents.problem import Problem
from webhook.documents.suggestions import closest
from webhook.documents.texts import clean
from webhook.pods.definition import Definition


def find_kind(catalog: Catalog, text: str) -> tuple[Definition, str] | Problem:
    """The definition and version that KIND[.group][/version] names, in any letter case."""
    name, _, version = text.partition("/")
    kind, dot, group = name.partition(".")
    known = [each for found in catalog.definitions.values() for each in found]
    named = [each for each in known if kind.casefold() in names_of(each)]
    if not named:
        near = closest(kind, (name for each in known for name in names_of(each)))
        meant = next((each for each in known if near in names_of(each)), None)
        fix = f"did you mean {full_name(meant)}?" if meant else "add a definition: --interfaces"
        return Problem("--kind", "", f"no kind {clean(kind)}", fix, "unknown-kind")
    if dot:
        wanted = "" if group == "core" else group.casefold()
        here = [each for each in named if each.interface.group.casefold() == wanted]
    else:
        # Of kinds of one name, that of Kubernetes itself is meant, as with kubectl.
        own = [each for each in named if each.profile.built_in]
        here = own or named
    groups = sorted({full_name(each) for each in named})
    if not here or len({each.interface.group for each in here}) > 1:
        found = f"{clean(name)}, which {'no' if not here else 'more than one'} group has"
        return Problem("--kind", "", found, f"write {' or '.join(groups)}", "unknown-kind")
    versions = {each: one for one in here for each in one.versions}
    newest = max(versions, key=seniority)
    chosen = next((each for each in versions if each.casefold() == version.casefold()), None)
    if version and chosen is None:
        found = f"no definition of {clean(name)} in version {clean(version)}"
        fix = f"write {' or '.join(sorted(versions, key=seniority, reverse=True))}"
        return Problem("--kind", "", found, fix, "unknown-version")
    return versions[chosen or newest], chosen or newest


def names_of(definition: Definition) -> tuple[str, ...]:
    """What a kind is called, in lower case: its kind and its plural."""
    kind, resource = definition.interface.kind.casefold(), definition.profile.resource.casefold()
    return (kind, resource) if resource else (kind,)


def full_name(definition: Definition) -> str:
    """Kind.group, or the kind alone in the core group."""
    interface = definition.interface
    return f"{interface.kind}.{interface.group}" if interface.group else interface.kind


def seniority(version: str) -> tuple[int, int, int, str]:
    """The order of API versions that Kubernetes has: stable before beta before alpha."""
    match = re.fullmatch(r"v(\d+)(?:(alpha|beta)(\d+))?", version)
    if match is None:
        return (-1, 0, 0, version)
    major, level, minor = match.groups()
    return ({"alpha": 0, "beta": 1}.get(level, 2), int(major), int(minor or 0), version)


def names_component(wanted: str, name: str, roles: Sequence[str]) -> bool:
    """Whether a component is asked for, by its name or a role; without a word all are."""
    return not wanted or wanted.casefold() in {
        name.casefold(),
        *(each.casefold() for each in roles),
    }


def component_names(definition: Definition) -> list[str]:
    """The names of components with pods, then their roles."""
    pairs = component_roles(definition)
    return list(dict.fromkeys([*(name for name, _ in pairs), *(r for _, rs in pairs for r in rs)]))
