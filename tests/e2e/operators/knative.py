"""Knative Serving without a network in front: Service, Configuration, Revision, Deployment."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tests.e2e.operators import webhooks
from tests.e2e.operators.authority import issue
from tests.e2e.operators.operator import Operator, Place, Running, listens
from tests.e2e.testbed import programs

if TYPE_CHECKING:
    from tests.e2e.operators.bed import Bed

NAME, NAMESPACE = "knative", "knative-serving"
HOOKS = "knative-webhook"
FEATURES = (
    "kubernetes.podspec-nodeselector",
    "kubernetes.podspec-securitycontext",
    "kubernetes.podspec-tolerations",
)
"""What the policy's defaults need; off in a new installation. podgate is told of them too."""
# As in its releases; nothing pulls it here.
QUEUE = f"gcr.io/knative-releases/knative.dev/serving/cmd/queue@sha256:{'0' * 64}"
SETTINGS = {
    "autoscaler": {},
    "defaults": {},
    "deployment": {
        "queue-sidecar-image": QUEUE,
        "registries-skipping-tag-resolving": "registry.example.com,gcr.io",
    },
    "domain": {},
    "features": dict.fromkeys(FEATURES, "enabled"),
    "gc": {},
    "leader-election": {},
    "logging": {},
    "network": {},
}
PATHS = {"defaulting": "/defaulting", "resource-validation": "/resource-validation"}
ENVIRONMENT = {
    "SYSTEM_NAMESPACE": NAMESPACE,
    "POD_NAME": "controller-0",
    "METRICS_PROMETHEUS_HOST": "127.0.0.1",
    # Any free one, on which nothing is told.
    "PROFILING_PORT": "0",
}


def arguments(place: Place) -> Iterator[str]:
    """Its settings are ConfigMaps."""
    yield f"--kubeconfig={place.kubeconfig}"


def prepare(bed: Bed, place: Place) -> None:
    """Its settings, and its webhooks: the controllers want what these fill in."""
    told = f"127.0.0.1:{place.health}"
    telling = {"metrics-protocol": "prometheus", "metrics-endpoint": told}
    for name, data in {**SETTINGS, "observability": telling}.items():
        metadata = {"name": f"config-{name}", "namespace": NAMESPACE}
        bed.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
    issued = issue("knative-ca", ["localhost"])
    metadata = {"name": "webhook-certs", "namespace": NAMESPACE}
    bed.apply({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": issued.pems()})
    serve_webhooks(bed, place)
    webhooks.register(bed, place, configurations(), {}, issued)


def serve_webhooks(bed: Bed, place: Place) -> None:
    """Start the process that answers them, under the same account as the project does."""
    environment = {
        **ENVIRONMENT,
        "POD_NAME": "webhook-0",
        "WEBHOOK_NAME": "webhook",
        "WEBHOOK_PORT": str(place.webhook),
        "METRICS_PROMETHEUS_PORT": str(place.metrics),
    }
    command = [programs.find(HOOKS)[HOOKS], *arguments(place)]
    bed.running[HOOKS] = Running.start(HOOKS, command, place.folder, **environment)
    bed.running[HOOKS].wait_until(lambda: listens(place.webhook))


def configurations() -> list[dict[str, Any]]:
    """What the project registers, with the paths that it writes into it by itself."""
    found = []
    for file, path in PATHS.items():
        (document,) = webhooks.configurations(NAME, f"config/core/webhooks/{file}.yaml")
        for webhook in document["webhooks"]:
            webhook["clientConfig"]["service"]["path"] = path
        found.append(document)
    return found


KNATIVE = Operator(
    name=NAME,
    namespace=NAMESPACE,
    account="controller",
    arguments=arguments,
    environment=lambda _: ENVIRONMENT,
    prepare=prepare,
    needs=("knative-networking", "knative-caching"),
    ready="/metrics",
)
