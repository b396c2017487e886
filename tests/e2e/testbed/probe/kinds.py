"""The built-in kinds that are probed, and a minimal object of each."""

import copy
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]

_LABELS = {"app": "probe"}


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind: its API, where its pod spec is, and what a minimal object holds beside that.

    A kind without pods has an empty path.
    """

    api_version: str
    kind: str
    resource: str
    pod_spec: tuple[str, ...]
    minimal: Json
    restart_policy: str | None = None

    @property
    def name(self) -> str:
        """`group/Kind`, or `Kind` in the core group."""
        group, slash, _ = self.api_version.rpartition("/")
        return f"{group}{slash}{self.kind}"

    @property
    def path(self) -> str:
        """The API path of its collection in the namespace `default`."""
        root = "apis" if "/" in self.api_version else "api"
        return f"/{root}/{self.api_version}/namespaces/default/{self.resource}"

    def build(self, name: str, pod_spec: Json, workload: Json | None = None) -> Json:
        """Return a minimal object with `pod_spec`, over which `workload` is laid."""
        obj: Json = {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "metadata": {"name": name, "namespace": "default"},
        }
        obj = overlay(obj, self.minimal)
        obj = overlay(obj, workload or {})
        if not self.pod_spec:
            return obj
        spec = overlay(_PODS, pod_spec)
        if self.restart_policy:
            spec.setdefault("restartPolicy", self.restart_policy)
        parent = obj
        for key in self.pod_spec[:-1]:
            parent = parent.setdefault(key, {})
        parent[self.pod_spec[-1]] = spec
        return obj


def overlay(below: Json, above: Json) -> Json:
    """Return a copy of `below` with `above` merged into its objects; other values replace."""
    merged = copy.deepcopy(below)
    for key, value in above.items():
        if isinstance(value, dict) and isinstance(merged.get(key), dict):
            merged[key] = overlay(merged[key], value)
        else:
            merged[key] = copy.deepcopy(value)
    return merged


_PODS: Json = {"containers": [{"name": "main", "image": "registry.example/app:1"}]}
_TEMPLATE: Json = {"template": {"metadata": {"labels": _LABELS}}}
_SELECTED: Json = {"spec": {"selector": {"matchLabels": _LABELS}, **_TEMPLATE}}
_IN_TEMPLATE = ("spec", "template", "spec")

KINDS = (
    Kind("v1", "Pod", "pods", ("spec",), {}),
    Kind(
        "v1", "ReplicationController", "replicationcontrollers", _IN_TEMPLATE, {"spec": _TEMPLATE}
    ),
    Kind("apps/v1", "Deployment", "deployments", _IN_TEMPLATE, _SELECTED),
    Kind("apps/v1", "StatefulSet", "statefulsets", _IN_TEMPLATE, _SELECTED),
    Kind("apps/v1", "DaemonSet", "daemonsets", _IN_TEMPLATE, _SELECTED),
    Kind("apps/v1", "ReplicaSet", "replicasets", _IN_TEMPLATE, _SELECTED),
    Kind("batch/v1", "Job", "jobs", _IN_TEMPLATE, {}, "Never"),
    Kind(
        "batch/v1",
        "CronJob",
        "cronjobs",
        ("spec", "jobTemplate", "spec", "template", "spec"),
        {"spec": {"schedule": "0 * * * *"}},
        "Never",
    ),
    Kind("resource.k8s.io/v1", "ResourceClaim", "resourceclaims", (), {}),
    Kind("resource.k8s.io/v1", "ResourceClaimTemplate", "resourceclaimtemplates", (), {}),
)
WITH_PODS = tuple(kind for kind in KINDS if kind.pod_spec)
