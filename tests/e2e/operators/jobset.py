"""JobSet, whose controller needs what its own defaulting webhook writes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tests.e2e.operators import webhooks
from tests.e2e.operators.operator import Operator, Place

if TYPE_CHECKING:
    from tests.e2e.operators.bed import Bed

NAME = "jobset"
CONFIGURATION = """\
apiVersion: config.jobset.x-k8s.io/v1alpha1
kind: Configuration
leaderElection: {{leaderElect: false}}
internalCertManagement: {{enable: false}}
webhook: {{host: 127.0.0.1, port: {webhook}, certDir: {certificates}}}
metrics: {{bindAddress: "127.0.0.1:{metrics}"}}
health: {{healthProbeBindAddress: "127.0.0.1:{health}"}}
"""


def arguments(place: Place) -> Iterator[str]:
    """All of it is in its configuration."""
    yield f"--config={place.folder / 'config.yaml'}"


def prepare(bed: Bed, place: Place) -> None:
    """Its configuration and its webhooks."""
    text = CONFIGURATION.format(
        webhook=place.webhook,
        metrics=place.metrics,
        health=place.health,
        certificates=place.serving_certificates,
    )
    (place.folder / "config.yaml").write_text(text, "utf-8")
    names = {
        "MutatingWebhookConfiguration": "jobset-mutating-webhook-configuration",
        "ValidatingWebhookConfiguration": "jobset-validating-webhook-configuration",
    }
    file, label = "config/components/webhook/manifests.yaml", "jobset.sigs.k8s.io/jobset-name"
    webhooks.serve(bed, place, NAME, file, names, label)


JOBSET = Operator(
    name=NAME,
    namespace="jobset-system",
    account="jobset-controller-manager",
    arguments=arguments,
    prepare=prepare,
    serves=True,
)
