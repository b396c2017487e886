"""Sends objects to an API server as a dry run."""

import http.client
import json
import ssl
from http import HTTPStatus
from typing import Any

from tests.e2e.testbed.cluster import Cluster
from tests.e2e.testbed.probe.kinds import Json, Kind


class RefusedError(Exception):
    """The message is the server's reason."""


class Client:
    """One connection to the API server of `cluster`, as administrator."""

    def __init__(self, cluster: Cluster) -> None:
        context = ssl.create_default_context(cafile=cluster.ca_file)
        port = int(cluster.server.rpartition(":")[2])
        self._connection = http.client.HTTPSConnection("127.0.0.1", port, context=context)
        self._headers = {"Authorization": f"Bearer {cluster.token()}"}

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def version(self) -> str:
        """Return the server's own word for its version, such as `v1.36.3`."""
        return str(self.request("GET", "/version")["gitVersion"])

    def create(self, kind: Kind, obj: Json, *, dry_run: bool = True) -> Json:
        """Return the object the server would store for `obj`. Raises RefusedError."""
        query = "?dryRun=All" if dry_run else ""
        return self.request("POST", kind.path + query, obj)

    def patch_ephemeral_containers(self, path: str, containers: list[Json]) -> Json:
        """Return the Pod at `path` as it would be with ephemeral `containers`."""
        body = {"spec": {"ephemeralContainers": containers}}
        return self.request("PATCH", f"{path}/ephemeralcontainers?dryRun=All", body)

    def request(self, method: str, path: str, body: Json | None = None) -> Json:
        """Return the JSON answer. Raises RefusedError unless the status is 2xx."""
        kind = "strategic-merge-patch+json" if method == "PATCH" else "json"
        headers = {**self._headers, "Content-Type": f"application/{kind}"}
        data = None if body is None else json.dumps(body)
        self._connection.request(method, path, data, headers)
        response = self._connection.getresponse()
        answer: Any = json.loads(response.read())
        if response.status >= HTTPStatus.BAD_REQUEST:
            raise RefusedError(str(answer.get("message", answer)))
        return dict(answer)
