"""What an API server says it serves: all groups in two answers, as servers since 1.26 give them."""

from __future__ import annotations

from typing import Any

from webhook.cluster.client import JSON, ApiServer

Json = dict[str, Any]
PATHS = ("/api", "/apis")
AGGREGATED = ", ".join(
    (
        f"{JSON};g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
        f"{JSON};g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList",
        JSON,
    )
)


async def discover_resources(server: ApiServer) -> list[Json]:
    """The lists of the core group and of all others; ApiError where one cannot be had.

    A server that cannot aggregate answers with something of another kind.
    """
    return [await server.ask("GET", path, accept=AGGREGATED) for path in PATHS]
