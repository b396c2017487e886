"""The resources that a cluster serves, by its discovery and its CRDs; doubtful ones count as served."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from webhook.interface.crd_summary import Brief

Json = dict[str, Any]
Resource = tuple[str, str, str]
"""Group, version and plural name."""
LIST = "APIGroupDiscoveryList"
SCALE = "scale"


@dataclass(frozen=True, slots=True)
class ServedVersion:
    """One version of a group: its kinds with objects in namespaces that can be listed, by plural."""

    group: str
    name: str
    kinds: Mapping[str, str]
    is_current: bool


@dataclass(frozen=True, slots=True)
class Served:
    """Resources with their subresources; the groups in `in_doubt` may serve more."""

    resources: Mapping[Resource, frozenset[str]]
    in_doubt: frozenset[str] = frozenset()

    def has(self, group: str, version: str, resource: str) -> bool:
        """Whether a resource, or a subresource as `deployments/scale`, may be served."""
        plural, _, below = resource.partition("/")
        found = self.resources.get((group, version, plural))
        known = found is not None and (not below or below in found)
        return known or group in self.in_doubt

    def versions(self, group: str, plural: str) -> tuple[str, ...]:
        """The versions of a resource that are known to be served, sorted."""
        return tuple(sorted(v for g, v, p in self.resources if (g, p) == (group, plural)))

    def with_crds(self, briefs: Iterable[Brief]) -> Served:
        """Add the resources of CRDs: discovery lists a new CRD only some time later."""
        found = dict(self.resources)
        for each in briefs:
            for version, scales in each.versions.items():
                key = (each.group, version, each.plural)
                found[key] = found.get(key, frozenset()) | ({SCALE} if scales else frozenset())
        return replace(self, resources=found)


def served_of(lists: Iterable[Json]) -> Served | None:
    """Parse the aggregated lists of discovery; None if one has another format."""
    found: dict[Resource, frozenset[str]] = {}
    in_doubt: set[str] = set()
    for body in lists:
        if body.get("kind") != LIST or not isinstance(body.get("items"), list):
            return None
        for item in body["items"]:
            group = str((item.get("metadata") or {}).get("name") or "")
            for version in item.get("versions") or ():
                if version.get("freshness", "Current") != "Current":
                    in_doubt.add(group)
                for plural, below in resources_of(version):
                    found[group, str(version.get("version")), plural] = below
    return Served(found, frozenset(in_doubt))


def listed_kinds(lists: Iterable[Json]) -> Iterator[ServedVersion]:
    """Every version that aggregated lists of discovery name."""
    for item in (item for body in lists for item in body.get("items") or ()):
        group = str((item.get("metadata") or {}).get("name") or "")
        for version in item.get("versions") or ():
            kinds = {
                str((each.get("responseKind") or {}).get("kind")): str(each.get("resource"))
                for each in version.get("resources") or ()
                if each.get("scope") == "Namespaced" and "list" in (each.get("verbs") or ())
            }
            current = version.get("freshness", "Current") == "Current"
            yield ServedVersion(group, str(version.get("version")), kinds, current)


def resources_of(version: Json) -> Iterator[tuple[str, frozenset[str]]]:
    """The resources of one version of a group, each with its subresources."""
    for each in version.get("resources") or ():
        below = (str(sub.get("subresource")) for sub in each.get("subresources") or ())
        yield str(each.get("resource")), frozenset(below)
