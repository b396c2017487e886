"""Data volumes of the platform as items: claims that the settings know by id."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from webhook.evaluation.installation import InstallationConfig
from webhook.evaluation.state import Evaluation
from webhook.fields.storage.claims import EXISTING
from webhook.fields.storage.mounts import Mount, dns_label
from webhook.fields.storage.volumes import Stated, VolumeStore
from webhook.fields.store import NativeItem
from webhook.objects.path import Path
from webhook.pods.pod_view import PodView
from webhook.policy.combine import EffectiveItem
from webhook.policy.policy import Default
from webhook.policy.row import Field, Items


class DataVolumeStore(VolumeStore):
    """Claims of data volumes; `claims` gives the claim of each id, `ids` the id of each claim."""

    def __init__(self, items: Items, config: InstallationConfig) -> None:
        super().__init__(items, EXISTING)
        self.claims = config.data_volumes
        self.ids = {claim: identity for identity, claim in config.data_volumes.items()}

    def id_of(self, volume: Mapping[str, Any]) -> str | None:
        """The id of the data volume that a volume is; None for any other volume."""
        body = volume.get(EXISTING)
        claim = body.get("claimName") if isinstance(body, dict) else None
        return self.ids.get(claim) if isinstance(claim, str) else None

    def holds(self, volume: Mapping[str, Any]) -> bool:
        """Whether a volume is the claim of a data volume."""
        return self.id_of(volume) is not None

    def read_attributes(self, volume: dict[str, Any], path: Path) -> Stated:
        """Return the id, which is not in the object."""
        return {"id": (self.id_of(volume), ())}

    def of_volume(
        self, view: PodView, volume: dict[str, Any], path: Path, mounts: Sequence[Mount]
    ) -> list[NativeItem]:
        """Return the item of one volume, identified by its id, not by the volume's name."""
        (item,) = super().of_volume(view, volume, path, mounts)
        item.values["name"] = (dns_label(str(self.id_of(volume))),)
        return [item]

    def make_source(
        self,
        view: PodView,
        ev: Evaluation,
        row: Field,
        item: EffectiveItem,
        attributes: Mapping[str, Default],
    ) -> dict[str, Any] | None:
        """Return the claim of the id, which only the settings know."""
        identity = attributes["id"].value if "id" in attributes else item.key
        if identity in self.claims:
            return {EXISTING: {"claimName": self.claims[identity]}}
        ev.warn("no-data-volume", row.path, view.location.place, item.key, source=item.source)
        return None
