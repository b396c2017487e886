"""Evaluates objects with devices beyond the policies: what fails on the node, and who writes what."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from webhook.catalog.catalog import Catalog, Plans
from webhook.decision.messages import WARNINGS
from webhook.decision.owners import controller_of, owners_of
from webhook.devices.claim_checks import check_claim, check_class
from webhook.devices.claim_view import ClaimView, read_claim
from webhook.devices.classes import device_classes_of
from webhook.devices.configs import complete_config
from webhook.devices.domains import check_domain
from webhook.devices.finding import Finding
from webhook.devices.kinds import (
    CHANNEL_TYPES,
    CLAIM,
    CLASS,
    CLASS_TYPES,
    CLIQUE,
    DOMAIN,
    DOMAIN_DRIVER,
    GROUP,
    IMMUTABLE,
    KINDS,
    TEMPLATE,
)
from webhook.evaluation.device_settings import DeviceSettings
from webhook.evaluation.installation import InstallationConfig
from webhook.evaluation.outcome import Violation, Warning
from webhook.evaluation.request import Request
from webhook.evaluation.state import Evaluation
from webhook.objects.path import Path, read
from webhook.pods.definition import Definition

POD_CLAIM: Final = "resource.kubernetes.io/pod-claim-name"
EXTENDED: Final = "resource.kubernetes.io/extended-resource-claim"
CLAIM_CONTROLLERS: Final = (
    "system:kube-controller-manager",
    "system:serviceaccount:kube-system:resource-claim-controller",
)
SCHEDULER: Final = "system:kube-scheduler"
PODS: Final = (("", "Pod"), ("scheduling.k8s.io", "PodGroup"))
SERVICE_ACCOUNT: Final = "system:serviceaccount:"
SPECS: Final = {CLAIM: ("spec",), TEMPLATE: ("spec", "spec")}
"""Where the kinds that podgate writes to have a claim."""
NOT_WRITTEN: Final = (CLASS, CLIQUE)
CONFIG_FIELD: Final = "devices.config"
DOMAIN_FIELD: Final = "devices.computeDomain"


# Who writes


def is_of_devices(request: Request) -> bool:
    """Return whether the object is of a kind with devices."""
    return (request.group, request.kind) in KINDS


def has_immutable_spec(request: Request) -> bool:
    """Return whether an update cannot change the spec: it passes, or the API server refuses it.

    Inside another object the spec can change, since the object does not exist yet.
    """
    updating = request.operation == "UPDATE" and request.within is None
    return updating and (request.group, request.kind) in IMMUTABLE


def is_made_for_pod(request: Request) -> bool:
    """Return whether Kubernetes itself made a claim for a pod, of what podgate has evaluated.

    That is the template, or the pod with its extended resources. Anybody can write annotations and
    owners, so only the exact user names count.
    """
    annotations = read(request.object, ("metadata", "annotations"))
    if (request.group, request.kind) != (GROUP, CLAIM) or not isinstance(annotations, dict):
        return False
    if request.user in CLAIM_CONTROLLERS:
        return POD_CLAIM in annotations and controller_of(request.object) in PODS
    of_pod = ("", "Pod") in owners_of(request.object)
    return request.user == SCHEDULER and of_pod and annotations.get(EXTENDED) == "true"


def is_made_for_domain(request: Request, settings: DeviceSettings) -> bool:
    """Return whether the driver's controller made a template of a ComputeDomain, and of no GPUs.

    Parts of the template are what users wrote into the domain, so that its user name is not enough.
    """
    if (request.group, request.kind) != (GROUP, TEMPLATE):
        return False
    claim = claim_in(TEMPLATE, request.object)
    own = bool(claim.configs) and all(each.driver == DOMAIN_DRIVER for each in claim.configs)
    types = {CLASS_TYPES.get(each.device_class) for each in claim.options}
    return own and types <= CHANNEL_TYPES and request.user in settings.controllers


def is_driver(user: str, settings: DeviceSettings) -> bool:
    """Return whether a user is the driver: its controller, or a service account beside that."""
    if user in settings.controllers:
        return True
    return any(
        each.startswith(SERVICE_ACCOUNT) and user.startswith(f"{each.rpartition(':')[0]}:")
        for each in settings.controllers
    )


def choose_plans(request: Request, catalog: Catalog, definition: Definition, plans: Plans) -> Plans:
    """Return the plans that apply to an object with devices.

    No policy applies to what the driver's controller makes. At device classes every finding is a
    warning, so policies in warn mode are like all others.
    """
    if is_made_for_domain(request, catalog.config.devices):
        return catalog.plans_of(definition, ())
    if request.kind == CLASS:
        return Plans(plans.with_warn or plans.enforced, None)
    return plans


# What podgate writes


def claim_in(kind: str, document: object) -> ClaimView:
    """Return the claim of a claim or a template."""
    path: Path = SPECS[kind]
    return read_claim(read(document, path), path)


def complete_devices(ev: Evaluation, settings: DeviceSettings) -> None:
    """Write what the driver needs and neither the user nor a policy has set."""
    kind = ev.request.kind
    for config in claim_in(kind, ev.draft.document).configs if kind in SPECS else ():
        for path, value in complete_config(config, settings):
            if ev.can_write(path):
                ev.write(CONFIG_FIELD, path, value, "completed", None)


# What podgate checks


def check_devices(ev: Evaluation, config: InstallationConfig) -> None:
    """Report what would fail on the node, and objects that only the driver may write."""
    request, settings = ev.request, config.devices
    if request.kind == CLASS:
        warn_of_class(ev)
    if request.kind == CLIQUE:
        # Offline and in audits nobody knows who has written it.
        if request.user and not is_driver(request.user, settings):
            ev.violate("", (), CLIQUE, None, None, reason="reserved", key="the device driver")
        return
    if settings.checks == "off":
        return
    before = {identify(each) for each in find_faults(ev, ev.old, config)} if ev.updating else set()
    for finding in (*find_faults(ev, ev.draft.document, config), *repeated_keys(request)):
        if identify(finding) not in before:
            report(ev, finding, settings)


def find_faults(ev: Evaluation, document: Any, config: InstallationConfig) -> list[Finding]:
    """Return the faults of an object, whatever the settings do about them."""
    references, settings, kind = ev.references, config.devices, ev.request.kind
    if kind == DOMAIN:
        return check_domain(document, references, settings, ev.request.namespace)
    classes = device_classes_of(references, config)
    if kind == CLASS:
        return check_class(document, classes, settings)
    path: Path = SPECS[kind]
    return check_claim(read(document, path), path, classes, settings)


def repeated_keys(request: Request) -> Iterator[Finding]:
    """Yield the parameters with a key that is given twice, which decoded JSON does not show."""
    for path in request.repeated_keys:
        yield Finding(path, "config-unreadable", "a repeated key")


def identify(finding: Finding) -> tuple[object, ...]:
    """Return a fault without the numbers in its path: entries of a list may move."""
    return (*(each for each in finding.path if isinstance(each, str)), finding[1:])


def report(ev: Evaluation, finding: Finding, settings: DeviceSettings) -> None:
    """Report one fault as the settings say."""
    path, reason, value, allowed, key, is_warning = finding
    field = DOMAIN_FIELD if ev.request.kind == DOMAIN else CONFIG_FIELD
    found = Violation(field, path, value, allowed, reason, reason, None, key)
    if not is_warning and settings.checks == "deny":
        ev.findings.violations.append(found)
    elif reason in WARNINGS:
        ev.warn(reason, field, path, value or "", f"only {allowed}" if allowed else "", key)
    else:
        ev.findings.warnings.append(Warning(reason, field, path, (), None, found))


def warn_of_class(ev: Evaluation) -> None:
    """Turn what policies find at a device class into warnings: claims are evaluated with it."""
    for each in ev.findings.violations:
        if each.source is None or each.source.enforcement != "Audit":
            found = Warning("class-rule", each.field, each.path, (), each.source, each)
            ev.findings.warnings.append(found)
    ev.findings.violations.clear()
