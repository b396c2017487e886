"""Checks ComputeDomains: what their schema allows, and the driver's controller cannot do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from webhook.devices.claim_checks import HOST_MANAGED, SINGLE
from webhook.devices.claim_view import ALL, items, part, text_of
from webhook.devices.finding import Finding
from webhook.devices.kinds import DOMAIN, DOMAIN_TEMPLATE, TEMPLATE
from webhook.evaluation.device_settings import DeviceSettings
from webhook.evaluation.references import References
from webhook.objects.path import Path
from webhook.policy.object_names import LONGEST, SUBDOMAIN, WANTED

CHANNEL: Final[Path] = ("spec", "channel")
NODES: Final[Path] = ("spec", "numNodes")
DNS_NAMES: Final = "IMEXDaemonsWithDNSNames"


def check_domain(
    body: Mapping[str, Any], references: References, settings: DeviceSettings, namespace: str = ""
) -> list[Finding]:
    """Return the faults of a ComputeDomain, sorted by path. `namespace` is that of the request."""
    spec = part(body.get("spec"))
    channel = spec.get("channel")
    if channel is None:
        return [Finding(CHANNEL, "required")]
    found = [
        *find_modes(part(channel), settings),
        *find_names(body, part(channel), references, namespace),
        *find_nodes(spec.get("numNodes"), settings),
    ]
    return sorted(found, key=lambda each: tuple(map(str, each.path)))


def find_names(
    body: Mapping[str, Any], channel: Mapping[str, Any], references: References, namespace: str
) -> Iterator[Finding]:
    """CD1 and CD2: no name of an object, or one that something else has or creates."""
    path = (*CHANNEL, "resourceClaimTemplate", "name")
    name = text_of(part(channel.get("resourceClaimTemplate")).get("name"))
    if len(name) > LONGEST or not SUBDOMAIN.fullmatch(name):
        yield Finding(path, "invalid-value", name, WANTED)
        return
    metadata = part(body.get("metadata"))
    namespace = namespace or text_of(metadata.get("namespace"))
    template = references.claims.get((TEMPLATE, namespace, name))
    if isinstance(template, dict) and "domain" not in template:
        yield Finding(path, "name-clash", name, key=f"{TEMPLATE} {name}", warning=True)
    domains = part(references.claims.get((DOMAIN_TEMPLATE, namespace, name)))
    others = [each for each in items(domains.get("domains")) if each != metadata.get("name")]
    if others:
        yield Finding(path, "name-clash", name, key=f"{DOMAIN} {others[0]}", warning=True)


def find_nodes(nodes: Any, settings: DeviceSettings) -> Iterator[Finding]:
    """CD3 and CD4: more nodes than one IMEX domain has, or a number that the mode does not use."""
    number = nodes if isinstance(nodes, int) and not isinstance(nodes, bool) else 0
    if number > settings.most_nodes:
        yield Finding(NODES, "max", str(number), str(settings.most_nodes), warning=True)
    if number == 0 and settings.is_off(DNS_NAMES):
        yield Finding(NODES, "config-gate", str(number), key=DNS_NAMES, warning=True)
    if number > 0 and settings.is_on(DNS_NAMES):
        yield Finding(NODES, "config-unused", str(number), "0", DNS_NAMES, warning=True)


def find_modes(channel: Mapping[str, Any], settings: DeviceSettings) -> Iterator[Finding]:
    """CD5: all channels, where administrators run the IMEX daemons and there is always one."""
    if channel.get("allocationMode") == ALL and settings.is_host_managed():
        path = (*CHANNEL, "allocationMode")
        yield Finding(path, "config-unused", ALL, SINGLE, HOST_MANAGED, warning=True)
