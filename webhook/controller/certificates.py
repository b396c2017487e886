"""Creates and rotates podgate's own certificates, which it keeps in two Secrets that always match."""

from __future__ import annotations

import base64
import binascii
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from certs import rotation, secret
from certs.names import Names
from certs.pair import certificates_in
from certs.problem import CertificateProblem
from certs.state import Observed, Policy, State
from webhook.cluster.client import ApiServer

log = logging.getLogger("podgate.certificates")

Json = dict[str, Any]


@dataclass(slots=True)
class Certificates:
    """Two Secrets of one namespace: `authority` with the keys of the CAs, which no Pod mounts, and
    `serving` with the leaf that replicas serve and the bundle of CAs.

    `ends` has the expiry of the leaf and of its CA, once they were read. Only this process knows
    since when every published bundle has had a CA; without that knowledge the rotation waits
    longer.
    """

    server: ApiServer
    namespace: str
    names: Names
    serving: str = "podgate-tls"
    authority: str = "podgate-ca"
    policy: Policy = Policy()  # noqa: RUF009 - frozen
    since: dict[str, datetime] = field(default_factory=dict)
    ends: dict[str, datetime] = field(default_factory=dict)
    read: dict[str, Json | None] = field(default_factory=dict)

    async def keep(self, now: datetime, leaves: frozenset[str]) -> bytes:
        """Update both Secrets as the rotation requires; return the bundle of CAs to publish. Raises
        ApiError.

        `leaves` are the fingerprints that replicas serve, "" for a replica that reports none.
        """
        state = await self.state()
        observed = Observed(dict(self.since), leaves)
        plan = rotation.plan(state, now, self.names, self.policy, observed)
        if plan.changes:
            # Write the keys first: a leaf without its CA could never be renewed.
            await self.write(self.authority, "Opaque", secret.authority_data(plan.state))
            await self.write(self.serving, "kubernetes.io/tls", secret.serving_data(plan.state))
            for change in plan.changes:
                log.info("certificates: %s", change)
        self.ends = {"leaf": plan.state.leaf.not_after, "ca": plan.state.ca.not_after}
        return rotation.bundle(plan.state)

    def note_published(self, bundle: bytes, now: datetime) -> None:
        """Note which CAs every published bundle has from now on."""
        try:
            held = {each.fingerprint for each in certificates_in(bundle)}
        except CertificateProblem:
            held = set()
        self.since = {each: self.since.get(each, now) for each in held}

    async def state(self) -> State | None:
        """Return the state in the Secrets, None if there is no CA yet."""
        return secret.read(await self.data(self.authority), await self.data(self.serving))

    async def data(self, name: str) -> Mapping[str, bytes]:
        """The decoded data of a Secret; omits what cannot be decoded."""
        found = self.read[name] = await self.server.find(self.path(name))
        decoded = {}
        for key, text in ((found or {}).get("data") or {}).items():
            try:
                decoded[key] = base64.b64decode(text, validate=True)
            except (binascii.Error, ValueError):
                log.warning("%s of Secret %s is no base64", key, name)
        return decoded

    async def write(self, name: str, kind: str, data: Mapping[str, bytes]) -> None:
        """Replace the data of a Secret as it was read; create the Secret if it is missing.

        A writer in the meantime has created other keys. Then this is a conflict, and podgate's keys
        are dropped.
        """
        path = self.path(name)
        encoded = {key: base64.b64encode(each).decode() for key, each in data.items()}
        known = self.read.get(name)
        body: Json = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": name, "namespace": self.namespace},
            "type": kind,
            "data": encoded,
        }
        if known is None:
            await self.server.create(path.rpartition("/")[0], body)
            return
        body["metadata"] |= {"resourceVersion": known["metadata"]["resourceVersion"]}
        labels = known["metadata"].get("labels")
        body["metadata"] |= {"labels": labels} if labels else {}
        await self.server.ask("PUT", path, {**body, "type": known.get("type", kind)})

    def path(self, name: str) -> str:
        """The path of a Secret."""
        return f"/api/v1/namespaces/{self.namespace}/secrets/{name}"


def first_end(bundle: bytes) -> datetime | None:
    """The earliest expiry in a bundle; None if it has no readable certificate."""
    try:
        return min(each.not_after for each in certificates_in(bundle)) if bundle else None
    except CertificateProblem:
        return None
