"""The objects that the benchmark judges: a RayCluster with six pod templates, and a Deployment."""

from __future__ import annotations

from typing import Any


def container(name: str, index: int) -> dict[str, Any]:
    """One container as users write them."""
    return {
        "name": name,
        "image": "registry.example.com/ray/worker:2.46.0",
        "args": ["--address", f"head-{index}:6379", "--metrics-export-port", "8080"],
        "env": [{"name": f"TRAIN_OPTION_{n}", "value": f"value-{index}-{n}"} for n in range(46)],
        "ports": [{"name": "metrics", "containerPort": 8080, "protocol": "TCP"}],
        "resources": {
            "limits": {"cpu": "8", "memory": "32Gi", "nvidia.com/gpu": "1"},
            "requests": {"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": "1"},
        },
        "readinessProbe": {
            "exec": {"command": ["bash", "-c", "ray health-check"]},
            "initialDelaySeconds": 10,
            "periodSeconds": 5,
            "timeoutSeconds": 2,
        },
        "volumeMounts": [
            {"name": "logs", "mountPath": "/tmp/ray"},
            {"name": "datasets", "mountPath": "/datasets", "readOnly": True},
            {"name": "settings", "mountPath": "/etc/train"},
        ],
    }


def template(index: int) -> dict[str, Any]:
    """One pod template."""
    return {
        "metadata": {"labels": {"app.example.com/part": f"group-{index}", "owner": "vision"}},
        "spec": {
            "containers": [container("ray-worker", index)],
            "nodeSelector": {"kubernetes.io/arch": "amd64"},
            "tolerations": [
                {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
            ],
            "volumes": [
                {"name": "logs", "emptyDir": {}},
                {"name": "datasets", "persistentVolumeClaim": {"claimName": "datasets"}},
                {"name": "settings", "configMap": {"name": "train-settings"}},
            ],
        },
    }


def ray_cluster(groups: int = 5) -> dict[str, Any]:
    """A RayCluster with a head and worker groups: one more template than `groups`."""
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {"name": "train", "namespace": "bench"},
        "spec": {
            "rayVersion": "2.46.0",
            "headGroupSpec": {"rayStartParams": {"num-cpus": "0"}, "template": template(0)},
            "workerGroupSpecs": [
                {
                    "groupName": f"group-{index}",
                    "replicas": 2,
                    "minReplicas": 1,
                    "maxReplicas": 4,
                    "rayStartParams": {},
                    "template": template(index),
                }
                for index in range(1, groups + 1)
            ],
        },
    }


def deployment() -> dict[str, Any]:
    """A small Deployment."""
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "bench"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": "registry.example.com/web:1.27"}]},
            },
        },
    }
