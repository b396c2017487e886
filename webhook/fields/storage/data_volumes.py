"""Data volumes of the platform as items: claims that the settings know by id."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from webhook.evaluation.installation import Vocabulary
from webhook.evaluation.state import Evaluation
from webhook.fields.storage.claims import EXISTING
from webhook.fields.storage.mounts import Mount, dns_label
from webhook.fields.storage.volumes import Stated, VolumeStore
from webhook.fields.stores.environment import NativeItem
from webhook.objects.path import Path
from webhook.pods.pod_view import PodView
from webhook.policy.combine import EffectiveItem
from webhook.policy.policy import Default
from webhook.policy.row import Field, Items


class DataVolumeStore(VolumeStore):
    """Claims of data volumes; `claims` gives the claim of each id, `ids` the id of each claim."""

    def __init__(self, items: Items, words: Vocabulary) -> None:
        super().__init__(items, EXISTING)
        self.claims = words.data_volumes
        self.ids = {claim: identity for identity, claim in words.data_volumes.items()}

    def id_of(self, volume: Mapping[str, Any]) -> str | None:
        """The id of the data volume that a volume is; None for any other volume."""
        body = volume.get(EXISTING)
        claim = body.get("claimName") if isinstance(body, dict) else None
        return self.ids.get(claim) if isinstance(claim, str) else None

    def holds(self, volume: Mapping[str, Any]) -> bool:
        """Whether a volume is the claim of a data volume."""
        return self.id_of(volume) is not None

    def stated(self, volume: dict[str, Any], place: Path) -> Stated:
        """The id, which stands nowhere in the object."""
        return {"id": (self.id_of(volume), ())}

    def of_volume(
        self, view: PodView, volume: dict[str, Any], place: Path, mounts: Sequence[Mount]
    ) -> list[NativeItem]:
        """The item of one volume; it is told apart by its id, whatever the volume is called."""
        (item,) = super().of_volume(view, volume, place, mounts)
        item.values["name"] = (dns_label(str(self.id_of(volume))),)
        return [item]

    def made(
        self,
        view: PodView,
        ev: Evaluation,
        row: Field,
        item: EffectiveItem,
        attributes: Mapping[str, Default],
    ) -> dict[str, Any] | None:
        """The claim of the id; without the settings' word nobody knows it."""
        identity = attributes["id"].value if "id" in attributes else item.key
        if identity in self.claims:
            return {EXISTING: {"claimName": self.claims[identity]}}
        ev.warn("no-data-volume", row.path, view.location.place, item.key, source=item.source)
        return None
