"""Finds what the cluster serves without a definition: kinds with pods, and versions of governed kinds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from webhook.controller.match_conditions import Definitions
from webhook.controller.served import Served
from webhook.interface.crd_summary import Brief


@dataclass(frozen=True, slots=True, order=True)
class Undefined:
    """One version of a kind without a definition. If it is `converted`, the API server sends its
    objects in a version that has one; otherwise they are not evaluated.
    """

    group: str
    kind: str
    version: str
    converted: bool = False

    @property
    def text(self) -> str:
        """The version as text."""
        name = f"{self.kind}.{self.group}" if self.group else self.kind
        return f"{name}/{self.version}"


def find_undefined(
    definitions: Definitions, served: Served | None, briefs: Iterable[Brief]
) -> tuple[Undefined, ...]:
    """Find them all, sorted; if it is unknown what is `served`, use the CRDs."""
    known = list(briefs)
    seen = (served or Served({})).with_crds(known)
    kinds = (
        Undefined(each.group, each.kind, version)
        for each in known
        if each.holds_pods and each.namespaced and (each.group, each.kind) not in definitions
        for version in each.versions
    )
    return tuple(sorted({*kinds, *versions(definitions, seen)}))


def versions(definitions: Definitions, served: Served) -> Iterator[Undefined]:
    """The served versions of defined kinds that have no definition."""
    for (group, kind), found in definitions.items():
        plurals = {each.profile.resource for each in found if each.profile.resource}
        covered = {version for each in found for version in each.versions}
        for plural in plurals:
            there = served.versions(group, plural)
            converted = not covered.isdisjoint(there)
            yield from (
                Undefined(group, kind, each, converted) for each in there if each not in covered
            )
