"""trainer of Kubeflow: TrainJobs become JobSets by their runtime."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tests.e2e.operators import webhooks
from tests.e2e.operators.operator import Operator, Place

if TYPE_CHECKING:
    from tests.e2e.operators.bed import Bed

NAME, NAMESPACE = "trainer", "kubeflow-system"


def arguments(place: Place) -> Iterator[str]:
    """Loopback addresses; metrics are off."""
    yield f"--webhook-server-port={place.webhook}"
    yield f"--health-probe-bind-address=127.0.0.1:{place.health}"


def prepare(bed: Bed, place: Place) -> None:
    """Its webhooks, whose certificates it looks after itself."""
    issued = webhooks.rotate(
        bed,
        place,
        NAMESPACE,
        secret="kubeflow-trainer-webhook-cert",
        ca_name="kubeflow-trainer-ca",
        service="kubeflow-trainer-controller-manager",
    )
    found = webhooks.configurations(NAME, "manifests/base/webhook/manifests.yaml")
    names = {"ValidatingWebhookConfiguration": "validator.trainer.kubeflow.org"}
    webhooks.register(bed, place, found, names, issued)


TRAINER = Operator(
    name=NAME,
    namespace=NAMESPACE,
    account="kubeflow-trainer-controller-manager",
    arguments=arguments,
    prepare=prepare,
    serves=True,
    needs=("jobset",),
)
