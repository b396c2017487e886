"""Shortens claims, templates, classes and domains to what decisions read of them.

A brief of a claim has the shape of a DeviceClaim spec of any version, so `read_claim` reads both.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any, Final

from webhook.devices.claim_view import ClaimView, enumerated, items, part, read_claim, text_of
from webhook.devices.config_schemas import API_VERSION, CHANNEL_CONFIG
from webhook.devices.kinds import (
    CHANNEL_CLASS,
    DOMAIN_DRIVER,
    DOMAIN_LABEL,
    DRIVERS,
    GPU_DRIVER,
    TEMPLATE,
)
from webhook.devices.selectors import PROFILE, TYPE, read_selectors
from webhook.objects.path import Path

LARGEST: Final = 8192
"""Bytes of a brief. A usual claim needs a few hundred; a larger one counts as unknown."""
TOO_LARGE: Final = {"tooLarge": True}
LONGEST_SELECTOR: Final = 160
OPTION_KEYS: Final = ("name", "deviceClassName", "allocationMode", "count", "adminAccess")
CAPACITIES: Final = ("memory", "shares", f"{GPU_DRIVER}/memory", f"{GPU_DRIVER}/shares")
PLAIN = re.compile(r"[A-Za-z0-9._+-]{1,64}")
PER_DEVICE: Final = "defaultPerDevicePinnedMemoryLimit"
# Members of parameters that a policy can rule, or that say which device they are for.
PARAMETERS: Final[Mapping[str, Any]] = {
    "apiVersion": None,
    "kind": None,
    "allocationMode": None,
    "sharing": {
        "strategy": None,
        "timeSlicingConfig": {"interval": None},
        "mpsConfig": {
            "defaultActiveThreadPercentage": None,
            "defaultPinnedDeviceMemoryLimit": None,
            PER_DEVICE: None,
            "multiUser": None,
        },
    },
    "iommu": {"backendPolicy": None, "enableAPIDevice": None},
}


def claim_spec(kind: str, body: Mapping[str, Any]) -> Any:
    """Return the DeviceClaim spec of a claim, or of a template, which has it one level deeper."""
    spec = body.get("spec")
    return part(spec).get("spec") if kind == TEMPLATE else spec


def read_known_claim(known: Any, path: Path = ("spec",)) -> ClaimView | None:
    """Return the view of a spec or brief of References.claims, None if it is unknown.

    `path` is where the object has it.
    """
    if not isinstance(known, dict) or "tooLarge" in known:
        return None
    return read_claim(known, path)


def claim_brief(kind: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the brief of a claim or template: TOO_LARGE if it would have more than LARGEST bytes.

    A template that a ComputeDomain owns has `domain`.
    """
    devices = part(part(claim_spec(kind, body)).get("devices"))
    found: dict[str, Any] = {"devices": devices_brief(devices)}
    labels = part(part(body.get("metadata")).get("labels"))
    if kind == TEMPLATE and DOMAIN_LABEL in labels:
        found["domain"] = True
    return found if len(json.dumps(found, separators=(",", ":"))) <= LARGEST else {**TOO_LARGE}


def devices_brief(devices: Mapping[str, Any]) -> dict[str, Any]:
    """Return the requests and configurations of a claim, shortened."""
    requests = [request_brief(each) for _, each in enumerated(devices.get("requests"))]
    configs = configs_brief(devices.get("config"))
    return {"requests": requests, **({"config": configs} if configs else {})}


def request_brief(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return a request of any version, shortened."""
    found = option_brief(body)
    if isinstance(body.get("exactly"), dict):
        found["exactly"] = option_brief(body["exactly"])
    if items(body.get("firstAvailable")):
        found["firstAvailable"] = [option_brief(each) for each in maps(body, "firstAvailable")]
    return found


def option_brief(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members of an exact request, or of an alternative, shortened."""
    found: dict[str, Any] = scalars_of(body, OPTION_KEYS)
    if texts := [
        text_of(part(each.get("cel")).get("expression")) for each in maps(body, "selectors")
    ]:
        found["selectors"] = [{"cel": {"expression": selector_brief(each)}} for each in texts]
    if tolerations := [text_of(each.get("key")) for each in maps(body, "tolerations")]:
        found["tolerations"] = [{"key": key} if key else {} for key in dict.fromkeys(tolerations)]
    asked = part(part(body.get("capacity")).get("requests"))
    if amounts := scalars_of(asked, CAPACITIES):
        found["capacity"] = {"requests": amounts}
    return found


def scalars_of(body: Mapping[str, Any], keys: Iterable[str]) -> dict[str, Any]:
    """Return members, "" instead of a value that is no text, number or boolean."""
    return {key: scalar_of(body[key]) for key in keys if body.get(key) is not None}


def scalar_of(value: Any) -> str | int | float:
    """Return a text, number or boolean, "" instead of anything else."""
    return value if isinstance(value, str | int | float) else ""


def maps(body: Mapping[str, Any], key: str) -> Iterable[Mapping[str, Any]]:
    """Return the maps in a list."""
    return (each for _, each in enumerated(body.get(key)))


def selector_brief(text: str) -> str:
    """Return a selector, a long one as what podgate reads of it, with a digest of the whole.

    The digest keeps it different from every short text of an `options` rule.
    """
    if len(text) <= LONGEST_SELECTOR:
        return text
    terms = [
        f"device.attributes['{each.domain}'].{each.name} in [{', '.join(map(repr, sorted(each.values)))}]"
        for each in read_selectors([text])
        if each.domain == GPU_DRIVER and each.name in (PROFILE, TYPE) and each.values
        if all(PLAIN.fullmatch(value) for value in each.values)
    ]
    digest = sha256(text.encode(errors="replace")).hexdigest()[:16]
    return f"{' && '.join(terms) or 'true'} // {digest}"


def configs_brief(listed: Any) -> list[dict[str, Any]]:
    """Return opaque configurations, shortened: of other drivers the driver only."""
    found = []
    for _, body in enumerated(listed):
        opaque = part(body.get("opaque"))
        brief: dict[str, Any] = {"driver": text_of(opaque.get("driver"))}
        parameters = opaque.get("parameters")
        if brief["driver"] in DRIVERS and isinstance(parameters, dict):
            brief["parameters"] = parameters_brief(parameters)
        requests = [scalar_of(each) for each in items(body.get("requests"))]
        found.append({**({"requests": requests} if requests else {}), "opaque": brief})
    return found


def parameters_brief(
    body: Mapping[str, Any], known: Mapping[str, Any] = PARAMETERS
) -> dict[str, Any]:
    """Return those members of parameters that podgate knows."""
    found: dict[str, Any] = {}
    for key, inner in known.items():
        value = body.get(key)
        if isinstance(value, dict) and inner is not None:
            found[key] = parameters_brief(value, inner)
        elif isinstance(value, dict) and key == PER_DEVICE:
            found[key] = {each: scalar_of(limit) for each, limit in value.items()}
        elif value is not None:
            found[key] = scalar_of(value)
    return found


def domain_brief(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the brief of the template that a ComputeDomain creates, under its `template` name.

    `domain` is the name of the ComputeDomain.
    """
    channel = part(part(body.get("spec")).get("channel"))
    mode = channel.get("allocationMode")
    parameters = {"apiVersion": API_VERSION, "kind": CHANNEL_CONFIG}
    if mode:
        parameters["allocationMode"] = mode
    opaque = {"driver": DOMAIN_DRIVER, "parameters": parameters}
    request = {"name": "channel", "exactly": {"deviceClassName": CHANNEL_CLASS}}
    return {
        "domain": text_of(part(body.get("metadata")).get("name")),
        "template": text_of(part(channel.get("resourceClaimTemplate")).get("name")),
        "devices": {
            "requests": [request],
            "config": [{"requests": ["channel"], "opaque": opaque}],
        },
    }
