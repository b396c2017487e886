"""The drill of certificates: a new CA takes over from an old one, and nobody is turned away."""

from __future__ import annotations

import base64
import socket
import ssl

from certs.pair import certificates_in
from tests.e2e.install.drills.aged import SERVICE
from tests.e2e.install.drills.stand import VALIDATING, Stand

OVERLAP = 2
"""Seconds; that of the chart is ten minutes."""


def published(stand: Stand) -> tuple[str, ...]:
    """The CAs of the validating hook, by fingerprint."""
    entry, *_ = stand.api.request("GET", VALIDATING)["webhooks"]
    bundle = base64.b64decode(entry["clientConfig"]["caBundle"])
    return tuple(each.fingerprint for each in certificates_in(bundle))


def certificates_rotated(stand: Stand) -> str:
    """A new CA, which was published beside the old one before, signs; then the old one goes."""
    both = published(stand)
    assert len(both) == 2, both
    stand.release.values["certificates"] = {"overlapSeconds": OVERLAP}
    stand.upgrade()
    stand.exchange_controllers()
    seen: set[tuple[str, ...]] = {both}

    def done() -> bool:
        now = published(stand)
        seen.add(now)
        return len(now) == 1

    seconds = stand.soon(done, "the old CA stays")
    (now,) = published(stand)
    assert now == both[1], "another CA than was announced"
    assert {len(each) for each in seen} == {1, 2}
    for number in stand.numbers:
        served_by(stand, number)
    return f"old CA gone after {seconds:.1f} s, 3 replicas serve a leaf of the new one"


def served_by(stand: Stand, number: int) -> None:
    """Shake hands with a replica as the API server does, by the bundle that is published now."""
    entry, *_ = stand.api.request("GET", VALIDATING)["webhooks"]
    bundle = base64.b64decode(entry["clientConfig"]["caBundle"]).decode()
    context = ssl.create_default_context(cadata=bundle)
    pod = stand.release.kubelet.pods[f"webhook-{number}"]
    with (
        socket.create_connection((pod.address, pod.port), 5) as plain,
        context.wrap_socket(plain, server_hostname=SERVICE) as secured,
    ):
        assert secured.getpeercert()
