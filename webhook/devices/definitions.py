"""The definitions of the kinds with devices: they have no pods, and fields of their own."""

from __future__ import annotations

from functools import cache
from typing import Final

from webhook.devices.kinds import CLASS, CLIQUE, DOMAIN, GROUP, KINDS
from webhook.interface.document import InterfaceSpec
from webhook.interface.interface import Component, Interface
from webhook.interface.profile import Profile
from webhook.pods.definition import Definition

PLURALS: Final = {CLASS: "deviceclasses", DOMAIN: "computedomains", CLIQUE: "computedomaincliques"}


@cache
def device_definitions() -> dict[tuple[str, str], tuple[Definition, ...]]:
    """Return a definition for each version of each kind with devices, the newest first."""
    return {
        (group, kind): tuple(define(group, version, kind) for version in versions)
        for (group, kind), versions in KINDS.items()
    }


def define(group: str, version: str, kind: str) -> Definition:
    """Return the definition of one version: a root without pods, and nothing to search for pods."""
    name = kind.lower()
    named = {"group": group, "version": version, "kind": kind}
    body = {"structureDefinition": {"rootComponent": {"name": name, "kind": named}}}
    root = Component(name, (group, version, kind), root=True)
    spec = InterfaceSpec.model_validate(body)
    interface = Interface(group, version, kind, (root,), "", "", spec, {"spec": body})
    profile = Profile(
        group,
        kind,
        (version,),
        PLURALS.get(kind, f"{name}s"),
        built_in=group == GROUP,
        cluster_scoped=kind == CLASS,
        open_subtrees=(),
    )
    return Definition(interface, profile)


def has_devices(definition: Definition) -> bool:
    """Return whether a definition is that of a kind with devices."""
    return (definition.interface.group, definition.interface.kind) in KINDS
