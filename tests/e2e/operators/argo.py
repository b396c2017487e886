"""Argo Workflows: a pod for each step, with the executor's containers around the user's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tests.e2e.operators.operator import Operator, Place

if TYPE_CHECKING:
    from tests.e2e.operators.bed import Bed

NAMESPACE = "argo"
METRICS = "{{enabled: true, secure: false, port: {port}}}"


def arguments(place: Place) -> Iterator[str]:
    """An executor whose image is ours; Argo asks a registry for no image that has a command."""
    yield f"--kubeconfig={place.kubeconfig}"
    yield f"--namespace={NAMESPACE}"
    yield "--executor-image=quay.io/argoproj/argoexec:v3.6.10"
    yield "--executor-image-pull-policy=Always"


def prepare(bed: Bed, place: Place) -> None:
    """Its configuration; what it tells of its health is on the port of metrics."""
    bed.apply(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "workflow-controller-configmap", "namespace": NAMESPACE},
            "data": {"metricsConfig": METRICS.format(port=place.health)},
        }
    )


ARGO = Operator(
    name="argo",
    namespace=NAMESPACE,
    account="argo",
    arguments=arguments,
    # By itself it takes a webhook that cannot be reached for an answer, and fails the step.
    environment=lambda _: {
        "LEADER_ELECTION_DISABLE": "true",
        "TRANSIENT_ERROR_PATTERN": "failed calling webhook",
    },
    prepare=prepare,
    ready="/metrics",
)
