"""Kinds of Kubernetes and of podgate that hold no pods: they need no definition."""

from __future__ import annotations

from typing import Final

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
    "run.ai": "Karta",
    "scheduling.k8s.io": "PriorityClass",
    "storage.k8s.io": "CSIDriver CSINode CSIStorageCapacity StorageClass VolumeAttachment"
    " VolumeAttributesClass",
    "storagemigration.k8s.io": "StorageVersionMigration",
}
"""Claims and device classes are left out: they hold no pods, but what they say is not evaluated."""
KINDS_WITHOUT_PODS: Final = frozenset(
    (group, kind) for group, kinds in KINDS_BY_GROUP.items() for kind in kinds.split()
)
