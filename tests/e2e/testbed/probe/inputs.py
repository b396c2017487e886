"""The pod specs and workloads that are sent to find out what the server adds.

Each shows one structure that users write and the server completes, as bare as validation lets it.
Conditions are found by sending a structure with and without the field that decides.
"""

from collections.abc import Iterator

from tests.e2e.testbed.probe.kinds import Json

_DIGEST = "sha256:" + "0123456789abcdef" * 4

# Example references of each class that the rule `image-tag` tells apart.
IMAGES = {
    "untagged": ("nginx", "registry.example:5000/team/app"),
    "latest": ("nginx:latest", "registry.example:5000/team/app:latest"),
    "tagged": ("nginx:1.27", "registry.example:5000/team/app:Latest"),
    "digest": (f"nginx@{_DIGEST}", f"registry.example:5000/team/app@{_DIGEST}"),
    "taggedDigest": (f"nginx:1.27@{_DIGEST}",),
    "latestDigest": (f"nginx:latest@{_DIGEST}",),
    "unparsable": ("Team/App:latest", "nginx:", "0123456789abcdef" * 4),
}

_HTTP = {"httpGet": {"port": 80}}
_HANDLERS: tuple[Json, ...] = (_HTTP, {"tcpSocket": {"port": 80}}, {"exec": {"command": ["true"]}})
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_FIELD_REF = {"fieldRef": {"fieldPath": "metadata.name"}}
_ITEMS = [{"path": "name", **_FIELD_REF}]
_CPU_REF = {"resourceFieldRef": {"containerName": "main", "resource": "limits.cpu"}}
_CPU_ITEMS = [{"path": "cpu", **_CPU_REF}]
_CERTIFICATE = {"signerName": "example.com/a", "keyType": "ED25519", "credentialBundlePath": "b"}
_CLAIM: Json = {
    "accessModes": ["ReadWriteOnce"],
    "resources": {"requests": {"storage": "1Gi"}},
}

_CONTAINERS: tuple[Json, ...] = (
    {"ports": [{"containerPort": 80}, {"containerPort": 443, "name": "tls"}]},
    {"ports": [{"containerPort": 80, "hostPort": 8080}]},
    *({name: {**handler}} for name in _PROBES for handler in (*_HANDLERS, {"grpc": {"port": 80}})),
    {"lifecycle": {"postStart": _HTTP, "preStop": _HTTP}},
    {"lifecycle": {"preStop": {"exec": {"command": ["true"]}}}},
    {"lifecycle": {"preStop": {"sleep": {"seconds": 1}}}},
    {"env": [{"name": "NAME", "valueFrom": _FIELD_REF}, {"name": "PLAIN", "value": "x"}]},
    {
        "env": [
            {"name": "A", "valueFrom": {"secretKeyRef": {"name": "a", "key": "k"}}},
            {"name": "B", "valueFrom": {"configMapKeyRef": {"name": "a", "key": "k"}}},
            {"name": "C", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
        ],
        "envFrom": [{"configMapRef": {"name": "a"}}, {"secretRef": {"name": "a"}}],
    },
    {"securityContext": {}},
    {
        "securityContext": {
            "capabilities": {"drop": ["ALL"]},
            "seccompProfile": {"type": "Unconfined"},
        }
    },
    {"securityContext": {"runAsUser": 1, "privileged": True}},
    {"resources": {}},
    {"resources": {"limits": {"cpu": "1", "memory": "1Gi"}}},
    {"resources": {"limits": {"nvidia.com/gpu": "1"}}},
    {"resources": {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1"}}},
    {"resources": {"requests": {"cpu": "1", "memory": "1Gi"}}},
    {"resizePolicy": [{"resourceName": "cpu", "restartPolicy": "NotRequired"}]},
)

_VOLUMES: tuple[Json, ...] = (
    {},
    {"emptyDir": {}},
    {"hostPath": {"path": "/data"}},
    {"secret": {"secretName": "a"}},
    {"secret": {"secretName": "a", "items": [{"key": "k", "path": "p"}]}},
    {"configMap": {"name": "a"}},
    {"configMap": {"name": "a", "items": [{"key": "k", "path": "p"}]}},
    {"downwardAPI": {}},
    {"downwardAPI": {"items": _ITEMS}},
    {"downwardAPI": {"items": _CPU_ITEMS}},
    {"projected": {"sources": [{"downwardAPI": {"items": _CPU_ITEMS}}]}},
    {"projected": {"sources": [{"podCertificate": _CERTIFICATE}]}},
    {"projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}},
    {"projected": {"sources": [{"downwardAPI": {"items": _ITEMS}}]}},
    {"projected": {"sources": [{"secret": {"name": "a"}}, {"configMap": {"name": "a"}}]}},
    {"projected": {"sources": [{"clusterTrustBundle": {"name": "a", "path": "ca"}}]}},
    {"nfs": {"server": "nfs.example", "path": "/"}},
    {"persistentVolumeClaim": {"claimName": "a"}},
    {"ephemeral": {"volumeClaimTemplate": {"spec": _CLAIM}}},
    {"csi": {"driver": "csi.example"}},
    {"iscsi": {"targetPortal": "10.0.0.2", "iqn": "iqn.2001-04.com.example:a", "lun": 0}},
    {"rbd": {"monitors": ["10.0.0.2"], "image": "a"}},
    {"cephfs": {"monitors": ["10.0.0.2"]}},
    {"glusterfs": {"endpoints": "a", "path": "b"}},
    {"fc": {"targetWWNs": ["500a0982991b8dc5"], "lun": 0}},
    {"flexVolume": {"driver": "example/a"}},
    {"cinder": {"volumeID": "a"}},
    {"gitRepo": {"repository": "https://example.com/a.git"}},
    {"azureDisk": {"diskName": "a", "diskURI": "https://blob.example/a.vhd"}},
    {"azureDisk": {"diskName": "a", "diskURI": "/subscriptions/a", "kind": "Managed"}},
    {"azureFile": {"secretName": "a", "shareName": "b"}},
    {"awsElasticBlockStore": {"volumeID": "a"}},
    {"gcePersistentDisk": {"pdName": "a"}},
    {"vsphereVolume": {"volumePath": "a"}},
    {"portworxVolume": {"volumeID": "a"}},
    {"quobyte": {"registry": "a:1", "volume": "b"}},
    {
        "scaleIO": {
            "gateway": "https://a",
            "system": "b",
            "secretRef": {"name": "c"},
            "volumeName": "d",
        }
    },
    {"storageos": {"volumeName": "a"}},
    {"photonPersistentDisk": {"pdID": "a"}},
)

_TOPOLOGY = {
    "maxSkew": 1,
    "topologyKey": "zone",
    "whenUnsatisfiable": "ScheduleAnyway",
    "labelSelector": {"matchLabels": {"app": "probe"}},
}
_TERM = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "probe"}}}

_NODES = {"matchExpressions": [{"key": "zone", "operator": "Exists"}]}
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_FILE_REF = {"fileKeyRef": {"volumeName": "v", "path": "a.env", "key": "KEY"}}
_FROM_FILE = {"name": "FILE", "valueFrom": _FILE_REF}

_PLAIN: tuple[Json, ...] = (
    {},
    {"serviceAccountName": "one"},
    {"serviceAccountName": "two"},
    {"serviceAccount": "one"},
    {"serviceAccount": "two"},
    {"hostPID": True},
    {"securityContext": {"runAsUser": 1}},
    {"securityContext": {"seccompProfile": {"type": "RuntimeDefault"}}},
    {"tolerations": [{"key": "a", "operator": "Exists"}, {"key": "b", "value": "c"}]},
    {"topologySpreadConstraints": [_TOPOLOGY]},
    {"affinity": {"podAntiAffinity": {_REQUIRED: [_TERM]}, "podAffinity": {_REQUIRED: [_TERM]}}},
    {"affinity": {"podAffinity": {_PREFERRED: [{"weight": 1, "podAffinityTerm": _TERM}]}}},
    {"affinity": {"nodeAffinity": {_REQUIRED: {"nodeSelectorTerms": [_NODES]}}}},
    {"affinity": {"nodeAffinity": {_PREFERRED: [{"weight": 1, "preference": _NODES}]}}},
    {"dnsConfig": {"nameservers": ["10.0.0.2"]}},
    {"readinessGates": [{"conditionType": "a"}]},
    {"imagePullSecrets": [{"name": "a"}]},
    {"hostAliases": [{"ip": "10.0.0.2", "hostnames": ["a"]}]},
    {"resourceClaims": [{"name": "a", "resourceClaimName": "b"}]},
    {"schedulingGates": [{"name": "example.com/a"}]},
    {"os": {"name": "linux"}},
    {"overhead": {"cpu": "1"}, "runtimeClassName": "a"},
    {
        "containers": [{"name": "main", "image": "registry.example/app:1", "env": [_FROM_FILE]}],
        "volumes": [{"name": "v", "emptyDir": {}}],
    },
)


def _container(more: Json, name: str = "main") -> Json:
    return {"name": name, "image": "registry.example/app:1", **more}


def pod_specs() -> list[Json]:
    """Return pod specs to lay over a minimal one: every structure, and both kinds of container."""
    sidecar = {"restartPolicy": "Always"}
    both = [
        {
            "containers": [_container(more)],
            "initContainers": [_container({**sidecar, **more}, "init")],
        }
        for more in _CONTAINERS
    ]
    host = [{"hostNetwork": value, **both[0]} for value in (True, False)]
    volumes = [{"volumes": [{"name": "v", **source}]} for source in _VOLUMES]
    plain_init = [{"initContainers": [_container({}, "init")]}]
    return [*_PLAIN, *both, *host, *plain_init, *volumes]


def pods_with_resources() -> list[Json]:
    """Return pod specs with pod-level resources, in whole numbers of cpu."""
    huge = {"cpu": "1", "hugepages-2Mi": "4Mi"}
    one = {"resources": {"requests": {"cpu": "1"}}}
    sidecar = {"restartPolicy": "Always", **one}
    limited: Json = {"resources": {"limits": {"cpu": "8"}}}
    return [
        {**limited},
        {"resources": {"limits": {"cpu": "8"}, "requests": {"cpu": "7"}}},
        {"resources": {"requests": {"cpu": "7"}}},
        {"resources": {"limits": {"cpu": "8", "memory": "1Gi"}}, "containers": [_container(one)]},
        {**limited, "containers": [_container(one), _container(one, "second")]},
        {**limited, "containers": [_container({"resources": {"limits": {"cpu": "2"}}})]},
        {
            **limited,
            "containers": [_container(one)],
            "initContainers": [
                _container(sidecar, "side"),
                _container({"resources": {"requests": {"cpu": "4"}}}, "init"),
                _container(sidecar, "late"),
            ],
        },
        {
            "resources": {"limits": {"cpu": "8"}},
            "containers": [_container({"resources": {"limits": huge}})],
        },
    ]


_TEMPLATE_LABELS: tuple[Json, ...] = tuple(
    {"spec": {"template": {"metadata": {"labels": {"app": "probe", "tier": tier}}}}}
    for tier in ("one", "two")
)
_OWN_LABELS: Json = {"metadata": {"labels": {"own": "label"}}}
_OWN_NOTES: Json = {"metadata": {"annotations": {"own": "note"}}}


def _specs(*specs: Json) -> tuple[Json, ...]:
    return ({}, _OWN_LABELS, _OWN_NOTES, *_TEMPLATE_LABELS, *({"spec": spec} for spec in specs))


_CLAIM_TEMPLATE = {"volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": _CLAIM}]}
_INDEXED: Json = {"completionMode": "Indexed", "completions": 3}
_FAILURE: Json = {
    "podFailurePolicy": {
        "rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]
    }
}

_DEVICES: tuple[Json, ...] = (
    {},
    {"allocationMode": "ExactCount"},
    {"allocationMode": "ExactCount", "count": 2},
    {"allocationMode": "All"},
    {"count": 2},
    {"tolerations": [{"key": "a", "value": "b"}, {"key": "a", "operator": "Exists"}]},
    {"tolerations": [{"key": "a", "value": "b", "effect": "NoSchedule"}]},
    {"selectors": [{"cel": {"expression": "true"}}]},
)


def _claims() -> Iterator[Json]:
    """Claims with one exact request, and with two alternatives of it."""
    for each in _DEVICES:
        body = {"deviceClassName": "devices.example.com", **each}
        listed = [{"name": name, **body} for name in ("first", "second")]
        for request in ({"exactly": body}, {"firstAvailable": listed}):
            yield {"devices": {"requests": [{"name": "device", **request}]}}


WORKLOADS: dict[str, tuple[Json, ...]] = {
    "Pod": ({}, _OWN_LABELS, _OWN_NOTES),
    "ReplicationController": (*_specs({"replicas": 2}), {"spec": {"selector": {"app": "probe"}}}),
    "apps/Deployment": _specs(
        {"strategy": {}},
        {"strategy": {"type": "Recreate"}},
        {"strategy": {"type": "RollingUpdate"}},
        {"strategy": {"rollingUpdate": {}}},
        {"strategy": {"rollingUpdate": {"maxSurge": 1}}},
        {"strategy": {"rollingUpdate": {"maxUnavailable": 1}}},
    ),
    "apps/StatefulSet": _specs(
        {"updateStrategy": {}},
        {"updateStrategy": {"type": "OnDelete"}},
        {"updateStrategy": {"type": "RollingUpdate"}},
        {"updateStrategy": {"rollingUpdate": {}}},
        {"updateStrategy": {"rollingUpdate": {"partition": 1}}},
        {"persistentVolumeClaimRetentionPolicy": {}},
        {"persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete"}},
        {"persistentVolumeClaimRetentionPolicy": {"whenScaled": "Delete"}},
        _CLAIM_TEMPLATE,
        {"serviceName": "a", "ordinals": {"start": 1}},
    ),
    "apps/DaemonSet": _specs(
        {"updateStrategy": {}},
        {"updateStrategy": {"type": "OnDelete"}},
        {"updateStrategy": {"type": "RollingUpdate"}},
        {"updateStrategy": {"rollingUpdate": {}}},
        {"updateStrategy": {"rollingUpdate": {"maxUnavailable": 2}}},
    ),
    "apps/ReplicaSet": _specs({"replicas": 2}),
    "batch/Job": _specs(
        {"parallelism": 2},
        {"parallelism": 3},
        {"completions": 2},
        {"completions": 2, "parallelism": 2},
        {"backoffLimit": 2},
        _INDEXED,
        {**_INDEXED, "backoffLimitPerIndex": 1},
        {**_INDEXED, "backoffLimitPerIndex": 2},
        {**_INDEXED, "successPolicy": {"rules": [{"succeededCount": 1}]}},
        _FAILURE,
        {**_FAILURE, "podReplacementPolicy": "Failed"},
        {"suspend": True},
        {"activeDeadlineSeconds": 10, "ttlSecondsAfterFinished": 10},
    ),
    "batch/CronJob": (
        {},
        _OWN_LABELS,
        _OWN_NOTES,
        {"spec": {"jobTemplate": {"metadata": {"labels": {"a": "b"}}}}},
        {"spec": {"jobTemplate": {"spec": _INDEXED}}},
        {"spec": {"jobTemplate": {"spec": {"template": {"metadata": {"labels": {"a": "b"}}}}}}},
        {"spec": {"jobTemplate": {"spec": _FAILURE}}},
        {"spec": {"timeZone": "Etc/UTC", "startingDeadlineSeconds": 10}},
    ),
    "resource.k8s.io/ResourceClaim": tuple({"spec": claim} for claim in _claims()),
    "resource.k8s.io/ResourceClaimTemplate": tuple(
        {"spec": {"spec": claim}} for claim in _claims()
    ),
}
