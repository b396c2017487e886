"""mpi-operator: MPIJob v2beta1, a launcher Job and worker pods."""

from __future__ import annotations

from collections.abc import Iterator

from tests.e2e.operators.operator import Operator, Place


def arguments(place: Place) -> Iterator[str]:
    """It elects itself in its namespace; what it tells of its health is on the port of metrics."""
    yield f"-kubeConfig={place.kubeconfig}"
    yield "-lock-namespace=mpi-operator"
    yield f"-monitoring-port={place.health}"


MPI_OPERATOR = Operator(
    name="mpi-operator",
    namespace="mpi-operator",
    account="mpi-operator",
    arguments=arguments,
    ready="/metrics",
)
