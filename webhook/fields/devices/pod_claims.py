"""The device claims that a pod gets: by reference, shared with other pods, or made by an operator."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from webhook.devices.briefs import read_known_claim
from webhook.devices.claim_view import (
    ClaimView,
    DeviceRequest,
    Option,
    enumerated,
    items,
    part,
    read_claim,
    text_of,
)
from webhook.devices.classes import DeviceClasses
from webhook.devices.kinds import CLAIM, GPU_DRIVER, TEMPLATE
from webhook.evaluation.state import Evaluation
from webhook.objects import quantity
from webhook.objects.path import Path
from webhook.pods.location import SharedClaim
from webhook.pods.pod_view import PodView

BY_CLAIM, BY_TEMPLATE = "claim", "claimTemplate"
CLAIM_UNKNOWN: Final = "claim-unknown"
CREATED: Final = "a claim to be created"
CREATION: Final = "claimCreationSpec"
SOURCES: Final = ("resourceClaimName", "resourceClaimTemplateName", CREATION)
# Operators in selectors of a NIMService. The default class and driver are those of its CRD.
SIGNS: Final = {
    "NotEqual": "!=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
}


class PodClaim(NamedTuple):
    """One claim of a pod.

    `path` is its reference in the pod. `name` is its kind and name, for messages. `key` identifies
    it across an update, or in another pod. `form` is BY_CLAIM or BY_TEMPLATE. `view` is None if
    nobody knows the claim. `shared_by` is the same for all pods that share it, None if no other pod
    does. `once`: all pods of the workload share one.
    """

    path: Path
    name: str
    key: Hashable
    form: str
    view: ClaimView | None
    shared_by: Hashable = None
    once: bool = False


def claims_of(view: PodView, ev: Evaluation) -> list[PodClaim]:
    """Return the claims of a pod. One that it names twice is one; entries of a wrong type are left out."""
    if not view.spec.get("resourceClaims") and not view.location.shared:
        return []
    return view.once("device claims", lambda: list(find_claims(view, ev)))


def find_claims(view: PodView, ev: Evaluation) -> Iterator[PodClaim]:
    """Yield the claims of a pod."""
    bodies = dict(enumerated(view.spec.get("resourceClaims")))
    shared = {each.path: each for each in view.location.shared}
    for each in name_claims(view):
        if each.path in shared:
            yield each._replace(view=read_shared(shared[each.path], ev))
        else:
            yield each._replace(view=read_reference(bodies[int(each.path[-1])], each.path, ev))


def name_claims(view: PodView) -> Iterator[PodClaim]:
    """Yield the claims of a pod without reading them."""
    named = set()
    for index, body in enumerated(view.spec.get("resourceClaims")):
        found = name_reference(body, (*view.spec_path, "resourceClaims", index))
        if not found.once or found.key not in named:
            named.add(found.key)
            yield found
    for shared in view.location.shared:
        name, key = f"claim {shared.name}", ("shared", shared.name)
        yield PodClaim(shared.path, name, key, BY_TEMPLATE, None, shared_by=shared.path)


def name_reference(body: Mapping[str, Any], path: Path) -> PodClaim:
    """Return the claim of one entry of a pod's `resourceClaims` without reading it."""
    own = text_of(body.get("name"))
    if isinstance(body.get(CREATION), dict):
        return PodClaim(path, CREATED, (own, CREATED), BY_TEMPLATE, None)
    template = body.get("resourceClaimTemplateName")
    if template:
        name = f"{TEMPLATE} {template}"
        return PodClaim(path, name, (own, name), BY_TEMPLATE, None)
    name = f"{CLAIM} {body.get('resourceClaimName')}"
    return PodClaim(path, name, name, BY_CLAIM, None, shared_by=name, once=True)


def read_reference(body: Mapping[str, Any], path: Path, ev: Evaluation) -> ClaimView | None:
    """Return the claim of one entry of a pod's `resourceClaims`, None if nobody knows it.

    Of an entry with several sources nobody knows which one a controller passes on to the pod.
    """
    sources = [each for each in SOURCES if body.get(each) or isinstance(body.get(each), dict)]
    if len(sources) > 1:
        return None
    if isinstance(body.get(CREATION), dict):
        return read_creation(body[CREATION], (*path, CREATION))
    template = body.get("resourceClaimTemplateName")
    if template:
        return find_claim(TEMPLATE, ev.request.namespace, str(template), ev)
    return find_claim(CLAIM, ev.request.namespace, str(body.get("resourceClaimName")), ev)


def find_claim(kind: str, namespace: str, name: str, ev: Evaluation) -> ClaimView | None:
    """Return the claim, or the claim of a template, None if nobody knows it."""

    def read() -> ClaimView | None:
        path = ("spec", "spec") if kind == TEMPLATE else ("spec",)
        return read_known_claim(ev.references.claims.get((kind, namespace, name)), path)

    return ev.once(("device claim", kind, namespace, name), read)


def read_shared(claim: SharedClaim, ev: Evaluation) -> ClaimView | None:
    """Return a claim that a workload defines outside its pods, None if nobody knows it."""
    if claim.templates is None:
        return find_claim(TEMPLATE, claim.namespace or ev.request.namespace, claim.name, ev)
    (body, *more) = claim.templates
    spec = body.get("spec") if isinstance(body, dict) else None
    return None if more or not isinstance(spec, dict) else read_claim(spec, ("spec", "spec"))


def read_creation(body: Mapping[str, Any], path: Path) -> ClaimView | None:
    """Return the claim that an operator will create, None if its devices cannot be read."""
    listed = body.get("devices") or []
    devices = enumerated(listed)
    if not isinstance(listed, list) or len(devices) != len(listed):
        return None
    return ClaimView(path, tuple(read_device(each, (*path, "devices", at)) for at, each in devices))


def read_device(body: Mapping[str, Any], path: Path) -> DeviceRequest:
    """Return one device of a claim that an operator will create, as a request."""
    selectors = [{"cel": {"expression": text}} for text in selectors_of(body)]
    exactly = {
        "deviceClassName": body.get("deviceClassName") or GPU_DRIVER,
        "count": body.get("count"),
        "selectors": selectors,
    }
    name = text_of(body.get("name"))
    return DeviceRequest(path, name, (Option(path, name, exactly),))


def selectors_of(body: Mapping[str, Any]) -> Iterator[str]:
    """Yield the CEL texts of one device, as the operator writes them."""
    yield from (each for each in items(body.get("celExpressions")) if isinstance(each, str))
    driver = body.get("driverName") or GPU_DRIVER
    for key, subject in (("attributeSelectors", "attributes"), ("capacitySelectors", "capacity")):
        for _, each in enumerated(body.get(key)):
            domain, _, name = text_of(each.get("key")).rpartition("/")
            value = each.get("value")
            if isinstance(value, dict):
                value = next((native for native in value.values() if native is not None), None)
            sign = SIGNS.get(text_of(each.get("op")), "==")
            left = f"device.{subject}[{json.dumps(domain or driver)}].{name}"
            yield f"{left} {sign} {json.dumps(value)}"


class PodResource(NamedTuple):
    """An extended resource of a container that leads to a device class, with a number of devices."""

    path: Path
    name: str
    device_class: str


def resources_of(view: PodView, classes: DeviceClasses) -> list[PodResource]:
    """Return the extended resources of a pod that lead to device classes, limits before requests."""
    found = []
    for path, name in used_resources(view):
        device_class = classes.class_of_resource(name)
        if device_class is not None:
            found.append(PodResource(path, name, device_class))
    return found


def used_resources(view: PodView) -> Iterator[tuple[Path, str]]:
    """Yield the paths and names of all resources of a pod, except amounts of 0.

    A container has each once: the API server writes requests where there are only limits.
    """
    for container in view.everyone:
        resources = part(container.body.get("resources"))
        seen = set()
        for key in ("limits", "requests"):
            for name, native in part(resources.get(key)).items():
                if isinstance(name, str) and name not in seen and not is_zero(native):
                    seen.add(name)
                    yield (*container.path, "resources", key, name), name


def is_zero(native: Any) -> bool:
    """Return whether an amount asks for nothing. One that cannot be read may ask for something."""
    try:
        return native is None or quantity.parse(native) <= 0
    except ValueError:
        return False
