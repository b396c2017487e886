"""Talks to the API server without kubectl, for answers that kubectl does not print."""

from __future__ import annotations

import http.client
import json
import ssl
from typing import Any
from urllib.parse import quote

from tests.e2e.testbed.cluster import Cluster

Json = dict[str, Any]
PLURALS = {
    "Pod": ("v1", "pods"),
    "Deployment": ("apps/v1", "deployments"),
    "ReplicaSet": ("apps/v1", "replicasets"),
    "Job": ("batch/v1", "jobs"),
    "CronJob": ("batch/v1", "cronjobs"),
    "PyTorchJob": ("kubeflow.org/v1", "pytorchjobs"),
    "RayCluster": ("ray.io/v1", "rayclusters"),
    "JobSet": ("jobset.x-k8s.io/v1alpha2", "jobsets"),
}


class StatusError(Exception):
    """The server said no; `status` is its whole answer."""

    def __init__(self, status: Json) -> None:
        super().__init__(status.get("message"))
        self.status = status

    def causes(self) -> list[Json]:
        """The structured causes."""
        return list((self.status.get("details") or {}).get("causes") or ())


class Api:
    """One connection to the API server of `cluster` as `user`."""

    def __init__(self, cluster: Cluster, user: str = "admin") -> None:
        context = ssl.create_default_context(cafile=cluster.ca_file)
        port = int(cluster.server.rpartition(":")[2])
        self.connection = http.client.HTTPSConnection("127.0.0.1", port, context=context)
        self.headers = {"Authorization": f"Bearer {cluster.token(user)}"}

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()

    def request(
        self, method: str, path: str, body: Any = None, content: str = "application/json"
    ) -> Json:
        """The JSON answer; StatusError unless the status is 2xx."""
        data = None if body is None else json.dumps(body)
        headers = {**self.headers, "Content-Type": content}
        try:
            return self.answered(method, path, data, headers)
        except (http.client.RemoteDisconnected, http.client.ImproperConnectionState, OSError):
            # The server closes connections that were idle for long: this one says so only now.
            self.connection.close()
            return self.answered(method, path, data, headers)

    def answered(self, method: str, path: str, data: str | None, headers: dict[str, str]) -> Json:
        """One try of a request."""
        self.connection.request(method, path, data, headers)
        response = self.connection.getresponse()
        answer: Json = json.loads(response.read())
        if response.status >= 400:
            raise StatusError(answer)
        return answer

    def create(self, document: Json, namespace: str, *, dry_run: bool = False) -> Json:
        """Create an object; what the server stores, or would store."""
        place = collection(document["kind"], namespace, document["apiVersion"])
        sent = {**document, "metadata": {**document.get("metadata", {}), "namespace": namespace}}
        return self.request("POST", place + ("?dryRun=All" if dry_run else ""), sent)

    def server_side_apply(self, document: Json, namespace: str) -> Json:
        """What the server would store if the object were applied on the server's side."""
        place = collection(document["kind"], namespace, document["apiVersion"])
        sent = {**document, "metadata": {**document["metadata"], "namespace": namespace}}
        query = "?fieldManager=tests&dryRun=All"
        path = f"{place}/{document['metadata']['name']}{query}"
        return self.request("PATCH", path, sent, "application/apply-patch+yaml")

    def get(self, kind: str, namespace: str, name: str) -> Json:
        """One object."""
        return self.request("GET", f"{collection(kind, namespace)}/{name}")

    def find(self, path: str) -> Json | None:
        """The object at a path; None when there is none."""
        try:
            return self.request("GET", path)
        except StatusError as error:
            if error.status["code"] == 404:
                return None
            raise

    def items(self, kind: str, namespace: str, selector: str = "") -> list[Json]:
        """Every object of a kind in a namespace."""
        query = f"?labelSelector={quote(selector)}" if selector else ""
        return list(self.request("GET", collection(kind, namespace) + query)["items"])


def collection(kind: str, namespace: str, version: str = "") -> str:
    """The path of a kind's objects in a namespace."""
    known, plural = PLURALS.get(kind, ("v1", f"{kind.lower()}s"))
    version = version or known
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    return f"{root}/namespaces/{namespace}/{plural}"
