"""Fields of services: ports, autoscaling, time limits, and the model store of NIM."""

from __future__ import annotations

from webhook.policy import values
from webhook.policy.row import (
    GROUPS,
    INFERENCE,
    NIM,
    NOTHING,
    SERVING_PORT,
    WORKLOAD,
    Binding,
    Field,
)


def of_service(
    path: str, value: str, types: tuple[str, ...], note: str, enum: tuple[str, ...] = ()
) -> Field:
    """A field whose path is in the profile of the kind."""
    return Field(path, value, Binding.WORKLOAD, WORKLOAD, types=types, enum=enum, note=note)


def of_platform(
    path: str, value: str, types: tuple[str, ...], note: str, enum: tuple[str, ...] = ()
) -> Field:
    """A field that no native object carries. podgate reads and reports it."""
    return Field(path, value, Binding.NOTHING, NOTHING, types=types, enum=enum, note=note)


SERVING: tuple[Field, ...] = (
    Field(
        "servingPort.container",
        "integer",
        Binding.MAIN,
        SERVING_PORT,
        ("containerPort",),
        typed_aliases=("servingPort.port",),
        types=INFERENCE,
        note="Port that the container listens on.",
    ),
    Field(
        "servingPort.port",
        "integer",
        Binding.MAIN,
        SERVING_PORT,
        ("containerPort",),
        typed_aliases=("servingPort.container",),
        types=(*GROUPS, *NIM),
        note="Port of the service.",
    ),
    Field(
        "servingPort.protocol",
        "string",
        Binding.MAIN,
        SERVING_PORT,
        ("name",),
        types=(*INFERENCE, *GROUPS),
        enum=("http", "grpc"),
        codec=values.PORT_PROTOCOL,
        note="Protocol of the port; http unless the port is named h2c.",
    ),
    of_platform(
        "servingPort.authorizationType",
        "string",
        (*INFERENCE, *GROUPS),
        "Who can call; a gateway of the platform decides.",
        (
            "public",
            "authenticatedUsers",
            "authorizedUsers",
            "authorizedGroups",
            "authorizedUsersOrGroups",
        ),
    ),
    of_platform(
        "servingPort.authorizedUsers",
        "array",
        (*INFERENCE, *GROUPS),
        "Users who can call the service; not together with groups.",
    ),
    of_platform(
        "servingPort.authorizedGroups",
        "array",
        (*INFERENCE, *GROUPS),
        "Groups that can call the service; not together with users.",
    ),
    Field(
        "servingPort.clusterLocalAccessOnly",
        "boolean",
        Binding.WORKLOAD,
        WORKLOAD,
        absent=False,
        types=INFERENCE,
        note="Publish inside the cluster only; absent means no, and no other value does.",
    ),
    of_service(
        "servingPort.exposeExternally", "boolean", (*GROUPS, *NIM), "Publish outside the cluster."
    ),
    of_service(
        "servingPort.exposedUrl", "string", (*GROUPS, *NIM), "Host name outside the cluster."
    ),
    of_service(
        "servingPort.serviceType",
        "string",
        NIM,
        "Type of the Service.",
        ("ClusterIP", "NodePort", "LoadBalancer", "ExternalName"),
    ),
    of_service("servingPort.grpcPort", "integer", NIM, "Port for gRPC."),
    of_service("servingPort.metricsPort", "integer", NIM, "Port for metrics."),
    of_service(
        "servingPort.exposedProtocol",
        "string",
        NIM,
        "Protocol of the exposed URL.",
        ("http", "grpc"),
    ),
    of_service(
        "autoscaling.minReplicas",
        "integer",
        (*INFERENCE, *NIM),
        "Fewest replicas; 0 lets a service scale to zero.",
    ),
    of_service("autoscaling.maxReplicas", "integer", (*INFERENCE, *NIM), "Most replicas."),
    of_service("autoscaling.initialReplicas", "integer", INFERENCE, "Replicas at first start."),
    of_service(
        "autoscaling.activationReplicas", "integer", INFERENCE, "Replicas when waking from zero."
    ),
    of_service(
        "autoscaling.metric",
        "string",
        (*INFERENCE, *NIM),
        "What drives scaling: throughput, concurrency, latency, or another metric.",
    ),
    of_service(
        "autoscaling.metricThreshold", "integer", (*INFERENCE, *NIM), "Target of the metric."
    ),
    of_service(
        "autoscaling.metricThresholdPercentage",
        "number",
        INFERENCE,
        "Share of the target at which to scale, in percent.",
    ),
    of_service(
        "autoscaling.concurrencyHardLimit",
        "integer",
        INFERENCE,
        "Requests that one replica handles at once; 0 is unlimited and breaks any max.",
    ),
    of_service(
        "autoscaling.scaleToZeroRetentionSeconds",
        "integer",
        INFERENCE,
        "Seconds that the last replica stays.",
    ),
    of_service(
        "autoscaling.scaleDownDelaySeconds",
        "integer",
        INFERENCE,
        "Seconds that a replica stays after the decision to scale down.",
    ),
    of_service(
        "autoscaling.scaleWindowSeconds", "integer", NIM, "Seconds that decisions look back."
    ),
    Field(
        "servingConfiguration.initializationTimeoutSeconds",
        "integer",
        Binding.WORKLOAD,
        WORKLOAD,
        aliases=("autoscaling.initializationTimeoutSeconds",),
        types=INFERENCE,
        note="Seconds that a service may take to become ready.",
    ),
    of_service(
        "servingConfiguration.requestTimeoutSeconds",
        "integer",
        INFERENCE,
        "Seconds that one request may take.",
    ),
    of_service("modelStore.nimCache.name", "string", NIM, "Name of the NIMCache."),
    of_service("modelStore.nimCache.profile", "string", NIM, "Profile of the NIMCache."),
    of_service("modelStore.pvc.claimName", "string", NIM, "Name of the claim."),
    of_platform(
        "modelStore.pvc.path", "string", NIM, "Mount point; the operator mounts at its own."
    ),
    of_service("modelStore.pvc.readOnly", "boolean", NIM, "Mount the model read-only."),
    Field(
        "modelStore.pvc.claimInfo.size",
        "string",
        Binding.WORKLOAD,
        WORKLOAD,
        types=NIM,
        codec=values.AMOUNT_TEXT,
        extra_rules=frozenset({"min", "max"}),
        note="Size of the claim, as a quantity.",
    ),
    of_service(
        "modelStore.pvc.claimInfo.storageClass", "string", NIM, "Storage class of the claim."
    ),
    *(
        of_service(
            f"modelStore.pvc.claimInfo.accessModes.{name}",
            "boolean",
            NIM,
            f"The claim's access mode is {name[0].upper()}{name[1:]}.",
        )
        for name in ("readWriteOnce", "readOnlyMany", "readWriteMany")
    ),
)
