"""training-operator of Kubeflow: PyTorchJob, TFJob, XGBoostJob, PaddleJob, JAXJob."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tests.e2e.operators import webhooks
from tests.e2e.operators.operator import Operator, Place

if TYPE_CHECKING:
    from tests.e2e.operators.bed import Bed

NAME, NAMESPACE = "training-operator", "kubeflow"
SCHEMES = ("pytorchjob", "tfjob", "xgboostjob", "paddlejob", "jaxjob")


def arguments(place: Place) -> Iterator[str]:
    """Loopback addresses, and an image that is ours for the container it adds to workers."""
    yield f"--webhook-server-port={place.webhook}"
    yield f"--metrics-bind-address=127.0.0.1:{place.metrics}"
    yield f"--health-probe-bind-address=127.0.0.1:{place.health}"
    # MPIJob v1 shares its CRD's name with the one of mpi-operator.
    yield from (f"--enable-scheme={each}" for each in SCHEMES)


def prepare(bed: Bed, place: Place) -> None:
    """Its webhooks, whose certificates it looks after itself."""
    issued = webhooks.rotate(
        bed,
        place,
        NAMESPACE,
        secret="training-operator-webhook-cert",
        ca_name="training-operator-ca",
        service="training-operator",
    )
    found = webhooks.configurations(NAME, "manifests/base/webhook/manifests.yaml")
    names = {"ValidatingWebhookConfiguration": "validator.training-operator.kubeflow.org"}
    webhooks.register(bed, place, found, names, issued)


TRAINING_OPERATOR = Operator(
    name=NAME,
    namespace=NAMESPACE,
    account="training-operator",
    arguments=arguments,
    prepare=prepare,
    serves=True,
    crds=lambda name: not name.startswith("mpijobs."),
)
