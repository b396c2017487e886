"""Checks what lies outside the known pod locations of an object.

These are kinds without a definition, containers at unknown paths, values at paths that end up in
pods but belong to a controller, and pods that come from other objects or from text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from webhook.catalog.catalog import Catalog
from webhook.devices.kinds import is_dead_version
from webhook.evaluation.outcome import NO_PODS, UNKNOWN_KIND, UNKNOWN_VERSION, Allowed, Warning
from webhook.evaluation.request import Request, RequestClass
from webhook.evaluation.state import Evaluation
from webhook.interface.profile import PodText, Reference
from webhook.objects.path import Path, read
from webhook.pods.coverage import find_uncovered, pod_like
from webhook.pods.location import LocationError, PodLocation
from webhook.pods.matching import matches
from webhook.pods.pod_view import PodView

REFERRED, AS_TEXT, UNRESOLVED = "referred-pods", "pods-as-text", "pods-unseen"
CHOSEN = "chosen by its controller"
FoundText = tuple[Path, str]
"""A path of the object, and the reference or the key there."""
KINDS_BY_GROUP: Final = {
    "": "Binding ConfigMap Endpoints Event LimitRange Namespace Node PersistentVolume"
    " PersistentVolumeClaim ResourceQuota Secret Service ServiceAccount",
    "admissionregistration.k8s.io": "MutatingAdmissionPolicy MutatingAdmissionPolicyBinding"
    " MutatingWebhookConfiguration ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding"
    " ValidatingWebhookConfiguration",
    "apiextensions.k8s.io": "CustomResourceDefinition",
    "apiregistration.k8s.io": "APIService",
    "authentication.k8s.io": "SelfSubjectReview TokenRequest TokenReview",
    "authorization.k8s.io": "LocalSubjectAccessReview SelfSubjectAccessReview"
    " SelfSubjectRulesReview SubjectAccessReview",
    "autoscaling": "HorizontalPodAutoscaler Scale",
    "certificates.k8s.io": "CertificateSigningRequest ClusterTrustBundle PodCertificateRequest",
    "coordination.k8s.io": "Lease LeaseCandidate",
    "discovery.k8s.io": "EndpointSlice",
    "events.k8s.io": "Event",
    "flowcontrol.apiserver.k8s.io": "FlowSchema PriorityLevelConfiguration",
    "networking.k8s.io": "Ingress IngressClass IPAddress NetworkPolicy ServiceCIDR",
    "node.k8s.io": "RuntimeClass",
    "optimization.nvidia.com": "ResourceInterface",
    "podgate.dev": "ClusterWorkloadPolicy PolicyException WorkloadAsset WorkloadPolicy"
    " WorkloadProfile",
    "policy": "Eviction PodDisruptionBudget",
    "rbac.authorization.k8s.io": "ClusterRole ClusterRoleBinding Role RoleBinding",
    "resource.k8s.io": "DeviceTaintRule ResourcePoolStatusRequest ResourceSlice",
    "run.ai": "Karta",
    "scheduling.k8s.io": "PriorityClass",
    "storage.k8s.io": "CSIDriver CSINode CSIStorageCapacity StorageClass VolumeAttachment"
    " VolumeAttributesClass",
    "storagemigration.k8s.io": "StorageVersionMigration",
}
"""Kinds of Kubernetes and of podgate without pods: they need no definition."""
KINDS_WITHOUT_PODS: Final = frozenset(
    (group, kind) for group, kinds in KINDS_BY_GROUP.items() for kind in kinds.split()
)


def allow_undefined(request: Request, catalog: Catalog) -> Allowed:
    """Allow an object that no definition covers, with the reason why it is not evaluated.

    A kind that seems to contain pods gets a warning. A version without a definition always gets
    one, because other versions of the kind are governed.
    """
    group = f".{request.group}" if request.group else ""
    named = f"{request.kind}{group}/{request.version}"
    defined = catalog.definitions.get((request.group, request.kind), ())
    if defined:
        known = ", ".join(sorted({version for each in defined for version in each.versions}))
        warning = Warning(UNKNOWN_VERSION, "", (), (named, f"known are {known}"))
        return Allowed(request.object, warnings=(warning,), not_evaluated=UNKNOWN_VERSION)
    podless = (request.group, request.kind) in KINDS_WITHOUT_PODS
    if is_dead_version(request.group, request.version) and not podless:
        warning = Warning(UNKNOWN_VERSION, "", (), (named, "no Kubernetes serves it any more"))
        return Allowed(request.object, warnings=(warning,), not_evaluated=UNKNOWN_VERSION)
    if seems_to_hold_pods(request):
        warning = Warning(UNKNOWN_KIND, "", (), (named,))
        return Allowed(request.object, warnings=(warning,), not_evaluated=UNKNOWN_KIND)
    return Allowed(request.object, not_evaluated=NO_PODS if podless else UNKNOWN_KIND)


def seems_to_hold_pods(request: Request) -> bool:
    """Return whether the object contains something like a pod, or is too deep or large to search."""
    try:
        return pod_like(request.object)
    except LocationError:
        return True


def check_coverage(ev: Evaluation, locations: Sequence[PodLocation]) -> None:
    """Report containers outside every known pod location: they would bypass policy."""
    definition = ev.definition
    for path, what in find_uncovered(ev.request.object, locations, definition):
        if ev.updating and read(ev.old, path) == read(ev.request.object, path):
            continue
        if definition.profile.uncovered == "warn":
            ev.warn("uncovered", "", path, what, ev.request.kind)
        else:
            ev.violate("", path, what, None, None, reason="uncovered", key=ev.request.kind)


def check_reserved_paths(ev: Evaluation) -> None:
    """Report a value at a reserved path that its trusted writer did not write.

    An exempt controller copies the value into pods, where podgate does not evaluate it again.
    """
    if ev.request.request_class is RequestClass.TRUSTED:
        return
    for definition in ev.definition.everyone:
        for reserved in definition.profile.reserved:
            for path, value, _ in matches((reserved.place,), ev.request.object):
                if path is None or value in (None, [], {}):
                    continue
                if not ev.updating or read(ev.old, path) != value:
                    ev.violate("", path, None, None, None, reason="reserved", key=reserved.writer)


def warn_about_external_pods(ev: Evaluation, views: Sequence[PodView]) -> None:
    """Warn of each reference to an object with pods, and of each text that changes pods.

    podgate evaluates that other object, and the pods when they are made. The sender should know
    that this decision does not cover them. An update gets warnings only for what it changes.
    """
    found = False
    for definition in ev.definition.everyone:
        profile = definition.profile
        for reference in profile.references:
            for path, name in (
                find_references(reference, ev.request.object) if reference.pods else ()
            ):
                found = True
                warn_if_changed(ev, REFERRED, path, name)
        for text in profile.pod_texts:
            for path, name in texts(text, ev.request.object):
                warn_if_changed(ev, AS_TEXT, path, name)
    merged = any(
        each.children == "merged" or each.merged_with
        for one in ev.definition.everyone
        for each in one.profile.components.values()
    )
    if merged and not views and not found and not ev.updating:
        ev.warn(UNRESOLVED, "", ())


def warn_if_changed(ev: Evaluation, reason: str, path: Path, name: str) -> None:
    """Warn once, unless the value is the same as before the update."""
    if not ev.updating or read(ev.old, path) != read(ev.request.object, path):
        ev.warn(reason, "", path, name)


def find_references(reference: Reference, document: Any) -> Iterator[FoundText]:
    """Yield the path, and the kind and name, of each object that is referred to."""
    kinds = {}
    if reference.kind_place is not None:
        kinds = {each.bindings: each.value for each in matches((reference.kind_place,), document)}
    named = set()
    for path, value, bindings in matches((reference.place,), document):
        if value is None or value == "" or path is None:
            continue
        named.add(bindings)
        kind = kinds.get(bindings)
        name = value if isinstance(value, str) else "(unnamed)"
        yield path, f"{kind if isinstance(kind, str) and kind else reference.kind} {name}"
    if reference.implied_by is not None:
        for path, value, bindings in matches((reference.implied_by,), document):
            if value is not None and path is not None and bindings not in named:
                yield path, f"{reference.kind} {CHOSEN}"


def texts(text: PodText, document: Any) -> Iterator[FoundText]:
    """Yield the path and the key of each text that changes pods."""
    for path, value, _ in matches((text.place,), document):
        if path is None:
            continue
        if isinstance(value, str) and value and not text.keys:
            yield path, text.note
        elif isinstance(value, dict) and text.keys:
            for key in sorted(map(str, value)):
                if key.startswith(text.keys):
                    yield (*path, key), key
