"""Certificates kept in Secrets: through years of renewals no client ever refuses what is served."""

from __future__ import annotations

import asyncio
import base64
import copy
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from certs import rotation, secret
from certs.names import Names
from certs.pair import KeyPair, certificates_in
from certs.state import Observed, Policy
from webhook.cluster.client import ApiError
from webhook.controller.certificates import Certificates

NOW = datetime(2026, 11, 22, 10, 0, tzinfo=UTC)
POLICY = Policy(timedelta(days=60), timedelta(days=20), settle=timedelta(hours=2))
Json = dict[str, Any]


class Secrets:
    """An API server that keeps Secrets, and refuses writes of an older version."""

    def __init__(self) -> None:
        self.kept: dict[str, Json] = {}
        self.versions = 0
        self.writes: list[str] = []
        self.failing = False

    async def find(self, path: str) -> Json | None:
        return copy.deepcopy(self.kept.get(path))

    async def create(self, path: str, body: Json) -> Json:
        if f"{path}/{body['metadata']['name']}" in self.kept:
            raise ApiError(409, "conflict")
        return self.put(f"{path}/{body['metadata']['name']}", body)

    async def ask(self, method: str, path: str, body: Json) -> Json:
        assert method == "PUT"
        if body["metadata"]["resourceVersion"] != self.kept[path]["metadata"]["resourceVersion"]:
            raise ApiError(409, "conflict")
        return self.put(path, body)

    def put(self, path: str, body: Json) -> Json:
        if self.failing:
            raise ApiError(500, "no")
        self.versions += 1
        self.writes.append(path.rpartition("/")[2])
        metadata = {**body["metadata"], "resourceVersion": str(self.versions)}
        self.kept[path] = {**body, "metadata": metadata}
        return self.kept[path]

    def data(self, name: str) -> dict[str, bytes]:
        body = self.kept[f"/api/v1/namespaces/podgate-system/secrets/{name}"]
        return {key: base64.b64decode(each) for key, each in body["data"].items()}


def kept(server: Secrets) -> Certificates:
    names = Names.of(["podgate.podgate-system.svc"])
    return Certificates(server, "podgate-system", names, policy=POLICY)  # type: ignore[arg-type]


def keep(certificates: Certificates, now: datetime, leaves: frozenset[str]) -> bytes:
    bundle = asyncio.run(certificates.keep(now, leaves))
    certificates.note_published(bundle, now)
    return bundle


def served(server: Secrets) -> KeyPair:
    data = server.data("podgate-tls")
    return KeyPair(data["tls.crt"], data["tls.key"])


def trusted(bundle: bytes, leaf: KeyPair, now: datetime) -> bool:
    signed = any(leaf.certificate.signed_by(each) for each in certificates_in(bundle))
    return signed and now < leaf.not_after


def test_the_first_look_makes_both_and_the_second_changes_nothing() -> None:
    server = Secrets()
    certificates = kept(server)
    bundle = keep(certificates, NOW, frozenset())
    assert server.writes == ["podgate-ca", "podgate-tls"]
    assert trusted(bundle, served(server), NOW)
    assert "ca.key" not in server.data("podgate-tls")
    assert keep(certificates, NOW + timedelta(minutes=1), frozenset()) == bundle
    assert len(server.writes) == 2


@pytest.mark.parametrize("late", [0, 1, 5])
@pytest.mark.parametrize("restarted", [False, True])
def test_through_a_year_what_replicas_serve_is_trusted_by_what_is_published(
    late: int, restarted: bool
) -> None:
    """Replicas take a new leaf up to `late` looks later than it is written."""
    server = Secrets()
    certificates = kept(server)
    pending: list[KeyPair] = []
    serving: KeyPair | None = None
    authorities = set()
    for hour in range(0, 365 * 24, 6):
        now = NOW + timedelta(hours=hour)
        if restarted and hour % 240 == 0:
            certificates = kept(server)
        leaves = frozenset({serving.fingerprint}) if serving is not None else frozenset()
        bundle = keep(certificates, now, leaves)
        pending.append(served(server))
        if len(pending) > late:
            serving = pending.pop(0)
        if serving is not None:
            assert trusted(bundle, serving, now), now
        authorities |= {each.fingerprint for each in certificates_in(bundle)}
    assert len(authorities) >= 6, "CAs of 60 days are exchanged several times"


def test_a_secret_that_somebody_deletes_is_made_again_by_the_same_ca() -> None:
    server = Secrets()
    certificates = kept(server)
    bundle = keep(certificates, NOW, frozenset())
    del server.kept["/api/v1/namespaces/podgate-system/secrets/podgate-tls"]
    again = keep(certificates, NOW + timedelta(hours=1), frozenset())
    assert again == bundle
    assert trusted(bundle, served(server), NOW)


def test_a_lost_secret_of_the_ca_leaves_replicas_trusted_and_brings_another_ca() -> None:
    server = Secrets()
    certificates = kept(server)
    keep(certificates, NOW, frozenset())
    old = served(server)
    del server.kept["/api/v1/namespaces/podgate-system/secrets/podgate-ca"]
    for hours in range(1, 8):
        now = NOW + timedelta(hours=hours)
        bundle = keep(certificates, now, frozenset({old.fingerprint}))
        assert trusted(bundle, old, now)
        assert trusted(bundle, served(server), now)
    assert served(server).fingerprint != old.fingerprint


@pytest.mark.parametrize("begun", [False, True])
def test_of_two_controllers_at_once_one_writes_and_the_other_tries_again(begun: bool) -> None:
    """The second reads before the first has written, and writes after it."""
    server = Secrets()
    first, second = kept(server), kept(server)
    now = NOW
    if begun:
        keep(first, now, frozenset())
        now += timedelta(days=41)

    async def both() -> None:
        await second.state()
        await first.keep(now, frozenset())
        plan = rotation.plan(None, now, second.names, POLICY, Observed())
        await second.write(second.authority, "Opaque", secret.authority_data(plan.state))

    with pytest.raises(ApiError):
        asyncio.run(both())
    bundle = keep(kept(server), now, frozenset())
    assert trusted(bundle, served(server), now)
    mine = server.data("podgate-ca")
    assert mine["ca.crt"] in bundle or mine["next-ca.crt"] in bundle


def test_what_cannot_be_written_changes_nothing_that_is_served() -> None:
    server = Secrets()
    certificates = kept(server)
    keep(certificates, NOW, frozenset())
    leaf = served(server).certificate_pem
    server.failing = True
    with pytest.raises(ApiError):
        keep(certificates, NOW + timedelta(days=19), frozenset())
    assert served(server).certificate_pem == leaf
    server.failing = False
    bundle = keep(certificates, NOW + timedelta(days=19), frozenset())
    assert trusted(bundle, served(server), NOW + timedelta(days=19))


def test_broken_data_is_replaced() -> None:
    server = Secrets()
    certificates = kept(server)
    keep(certificates, NOW, frozenset())
    for each in server.kept.values():
        each["data"] = dict.fromkeys(each["data"], "%%%")
    bundle = keep(certificates, NOW + timedelta(hours=1), frozenset())
    assert trusted(bundle, served(server), NOW)
