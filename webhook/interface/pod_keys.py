"""Recognizes pod specs and containers by their keys."""

from __future__ import annotations

from typing import Final

POD_LISTS: Final = frozenset({"containers", "initContainers", "ephemeralContainers"})

POD_KEYS: Final = POD_LISTS | {
    "activeDeadlineSeconds",
    "affinity",
    "automountServiceAccountToken",
    "dnsConfig",
    "dnsPolicy",
    "enableServiceLinks",
    "evictionResponders",
    "hostAliases",
    "hostIPC",
    "hostNetwork",
    "hostPID",
    "hostUsers",
    "hostname",
    "hostnameOverride",
    "imagePullSecrets",
    "nodeName",
    "nodeSelector",
    "os",
    "overhead",
    "preemptionPolicy",
    "priority",
    "priorityClassName",
    "readinessGates",
    "resourceClaims",
    "resources",
    "restartPolicy",
    "runtimeClassName",
    "schedulerName",
    "schedulingGates",
    "schedulingGroup",
    "securityContext",
    "serviceAccount",
    "serviceAccountName",
    "setHostnameAsFQDN",
    "shareProcessNamespace",
    "subdomain",
    "terminationGracePeriodSeconds",
    "tolerations",
    "topologySpreadConstraints",
    "volumes",
    "workloadRef",
}

# Keys of a container besides its image.
CONTAINER_KEYS: Final = frozenset(
    {
        "args",
        "command",
        "env",
        "envFrom",
        "imagePullPolicy",
        "lifecycle",
        "livenessProbe",
        "name",
        "ports",
        "readinessProbe",
        "resizePolicy",
        "resources",
        "restartPolicy",
        "restartPolicyRules",
        "securityContext",
        "startupProbe",
        "stdin",
        "stdinOnce",
        "terminationMessagePath",
        "terminationMessagePolicy",
        "tty",
        "volumeDevices",
        "volumeMounts",
        "workingDir",
    }
)

# Go decoders read keys in any letter case, if no schema prunes them.
FOLDED_POD_LISTS: Final = frozenset(each.casefold() for each in POD_LISTS)
FOLDED_CONTAINER_KEYS: Final = frozenset(each.casefold() for each in CONTAINER_KEYS)
