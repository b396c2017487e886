"""LeaderWorkerSet, whose webhooks complete its objects and the pods of its groups."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tests.e2e.operators import webhooks
from tests.e2e.operators.operator import Operator, Place

if TYPE_CHECKING:
    from tests.e2e.operators.bed import Bed

NAME = "lws"
CONFIGURATION = """\
apiVersion: config.lws.x-k8s.io/v1alpha1
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
        "MutatingWebhookConfiguration": "lws-mutating-webhook-configuration",
        "ValidatingWebhookConfiguration": "lws-validating-webhook-configuration",
    }
    file, label = "config/webhook/manifests.yaml", "leaderworkerset.sigs.k8s.io/name"
    webhooks.serve(bed, place, NAME, file, names, label)


LWS = Operator(
    name=NAME,
    namespace="lws-system",
    account="lws-controller-manager",
    arguments=arguments,
    prepare=prepare,
    serves=True,
)
