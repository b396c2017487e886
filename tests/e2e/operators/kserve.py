"""KServe with raw deployments: an InferenceService becomes a Deployment by its runtime."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import yaml

from tests.e2e.operators import webhooks
from tests.e2e.operators.authority import issue
from tests.e2e.operators.operator import Operator, Place
from tests.e2e.testbed import upstream

if TYPE_CHECKING:
    from tests.e2e.operators.bed import Bed

NAME, NAMESPACE = "kserve", "kserve"
INGRESS = {
    "ingressGateway": "knative-serving/knative-ingress-gateway",
    "ingressDomain": "example.com",
    "disableIstioVirtualHost": True,
    "disableIngressCreation": True,
}
SETTINGS: dict[str, Any] = {
    "deploy": {"defaultDeploymentMode": "RawDeployment"},
    "ingress": INGRESS,
}


def arguments(place: Place) -> Iterator[str]:
    """Loopback addresses."""
    yield f"--webhook-port={place.webhook}"
    yield f"--metrics-addr=127.0.0.1:{place.metrics}"
    yield f"--health-probe-addr=127.0.0.1:{place.health}"


def prepare(bed: Bed, place: Place) -> None:
    """Its settings, for clusters without Istio and Knative, and its webhooks."""
    file = upstream.module_dir("operators/kserve") / "config/configmap/inferenceservice.yaml"
    settings = yaml.safe_load(file.read_text("utf-8"))
    settings["metadata"]["namespace"] = NAMESPACE
    del settings["data"]["_example"]
    settings["data"] |= {name: json.dumps(each) for name, each in SETTINGS.items()}
    bed.apply(settings)
    issued = issue("kserve-ca", ["localhost"])
    issued.write(place.serving_certificates)
    found = webhooks.configurations(NAME, "config/webhook/manifests.yaml")
    webhooks.register(bed, place, found, {}, issued)


KSERVE = Operator(
    name=NAME,
    namespace=NAMESPACE,
    account="kserve-controller-manager",
    arguments=arguments,
    prepare=prepare,
    serves=True,
)
