"""One leader among several controllers: what a Lease says, and what to write into it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

Json = dict[str, Any]
Step = Literal["create", "take", "renew", "wait"]
SECONDS = 15
MICRO = "%Y-%m-%dT%H:%M:%S.%fZ"


@dataclass(frozen=True, slots=True)
class Election:
    """Which Lease, and who asks for it; a holder is lost `seconds` after its last renewal."""

    namespace: str
    name: str
    identity: str
    seconds: int = SECONDS

    @property
    def path(self) -> str:
        """The Lease's path in the API."""
        return f"{self.collection}/{self.name}"

    @property
    def collection(self) -> str:
        """The path of the Leases of the namespace."""
        return f"/apis/coordination.k8s.io/v1/namespaces/{self.namespace}/leases"

    def step(self, found: Json | None, now: datetime) -> Step:
        """What to do, given the Lease as it is."""
        if found is None:
            return "create"
        spec = found.get("spec") or {}
        holder = spec.get("holderIdentity")
        if holder == self.identity:
            return "renew"
        renewed = moment(spec.get("renewTime"))
        seconds = spec.get("leaseDurationSeconds") or self.seconds
        if holder and renewed is not None and now < renewed + timedelta(seconds=seconds):
            return "wait"
        return "take"

    def lease_with_us(self, found: Json | None, now: datetime) -> Json:
        """The Lease with us as its holder; of the version that was read, so that two cannot win."""
        spec = dict((found or {}).get("spec") or {})
        mine = spec.get("holderIdentity") == self.identity
        told = now.astimezone(UTC).strftime(MICRO)
        changes = int(spec.get("leaseTransitions") or 0)
        spec |= {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": self.seconds,
            "renewTime": told,
            "acquireTime": spec.get("acquireTime") if mine else told,
            "leaseTransitions": changes if mine or found is None else changes + 1,
        }
        metadata: Json = {"name": self.name, "namespace": self.namespace}
        if found is not None:
            metadata["resourceVersion"] = found["metadata"]["resourceVersion"]
        return {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": metadata,
            "spec": spec,
        }

    def lease_without_holder(self, found: Json) -> Json:
        """The Lease without a holder, for whoever comes next."""
        spec = {**(found.get("spec") or {}), "holderIdentity": "", "leaseDurationSeconds": 1}
        return {**found, "spec": spec}


def moment(text: Any) -> datetime | None:
    """A time as Leases have it, None for what is none."""
    try:
        return datetime.strptime(str(text), MICRO).replace(tzinfo=UTC)
    except ValueError:
        return None
