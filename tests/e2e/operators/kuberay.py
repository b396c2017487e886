"""KubeRay: RayCluster, RayJob, RayService."""

from __future__ import annotations

from collections.abc import Iterator

from tests.e2e.operators.operator import Operator, Place


def arguments(place: Place) -> Iterator[str]:
    """Loopback addresses, nobody to elect."""
    yield f"--metrics-addr=127.0.0.1:{place.metrics}"
    yield f"--health-probe-bind-address=127.0.0.1:{place.health}"
    yield "--enable-leader-election=false"


KUBERAY = Operator(
    name="kuberay",
    namespace="ray-system",
    account="kuberay-operator",
    arguments=arguments,
    environment=lambda _: {"ENABLE_WEBHOOKS": "false"},
)
