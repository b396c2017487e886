"""Calls to an API server on connections that stay open, one for each thread."""

from __future__ import annotations

import ssl
import threading
from http.client import HTTPSConnection
from urllib.parse import urlsplit

from tests.e2e.testbed.cluster import Cluster


class Caller:
    """Sends JSON as the administrator."""

    def __init__(self, cluster: Cluster) -> None:
        self.address = urlsplit(cluster.server)
        self.context = ssl.create_default_context(cafile=str(cluster.ca_file))
        self.headers = {
            "Authorization": f"Bearer {cluster.token('admin')}",
            "Content-Type": "application/json",
        }
        self.own = threading.local()

    def __call__(
        self, method: str, path: str, body: bytes = b"", content: str = "application/json"
    ) -> tuple[int, bytes]:
        """Status and body of one call; `content` is the type of what is sent."""
        if not hasattr(self.own, "connection"):
            host, port = self.address.hostname or "", self.address.port
            self.own.connection = HTTPSConnection(host, port, context=self.context, timeout=30)
        connection: HTTPSConnection = self.own.connection
        connection.request(method, path, body, self.headers | {"Content-Type": content})
        response = connection.getresponse()
        return response.status, response.read()
