"""S3 buckets as items, through CSI drivers that the settings name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from webhook.evaluation.installation import InstallationConfig
from webhook.evaluation.state import Evaluation
from webhook.fields.storage.mounts import Mount
from webhook.fields.storage.volumes import Stated, VolumeStore
from webhook.fields.store import NativeItem
from webhook.objects.path import Path
from webhook.pods.pod_view import PodView, mapping
from webhook.policy.combine import EffectiveItem
from webhook.policy.policy import Default
from webhook.policy.row import Field, Items

CSI = "csi"
URL = "url"
"""The volume attribute of the endpoint; what drivers call it differs, most take AWS by default."""


class BucketStore(VolumeStore):
    """Volumes of CSI drivers that the settings know, each with its attribute for the bucket."""

    def __init__(self, items: Items, config: InstallationConfig) -> None:
        super().__init__(items, CSI)
        self.drivers = config.s3_drivers

    def holds(self, volume: Mapping[str, Any]) -> bool:
        """Whether a volume is one of a known driver."""
        body = volume.get(CSI)
        if not isinstance(body, dict):
            return False
        driver = body.get("driver")
        return isinstance(driver, str) and driver in self.drivers

    def read_attributes(self, volume: dict[str, Any], path: Path) -> Stated:
        """Return the attributes for the driver."""
        body, where = volume[CSI], (*path, CSI)
        at = (*where, "volumeAttributes")
        attributes = mapping(body.get("volumeAttributes"), at)
        secret = mapping(body.get("nodePublishSecretRef"), (*where, "nodePublishSecretRef"))
        bucket = self.drivers[body["driver"]]
        return {
            "bucket": (attributes.get(bucket), (*at, bucket)),
            "url": (attributes.get(URL), (*at, URL)),
            "accessKeySecret": (secret.get("name"), (*where, "nodePublishSecretRef", "name")),
        }

    def of_volume(
        self, view: PodView, volume: dict[str, Any], path: Path, mounts: Sequence[Mount]
    ) -> list[NativeItem]:
        """The item of one volume; attributes that no policy item has change what it means."""
        (item,) = super().of_volume(view, volume, path, mounts)
        attributes = volume[CSI].get("volumeAttributes") or {}
        if set(attributes) - {self.drivers[volume[CSI]["driver"]], URL}:
            item.tampered = item.tampered or "volumeAttributes"
        return [item]

    def make_source(
        self,
        view: PodView,
        ev: Evaluation,
        row: Field,
        item: EffectiveItem,
        attributes: Mapping[str, Default],
    ) -> dict[str, Any] | None:
        """A volume of the only driver; with none, or several, none can be made."""
        if len(self.drivers) != 1 or "bucket" not in attributes:
            path = view.location.place
            ev.warn("no-s3-driver", row.path, path, item.key, source=item.source)
            return None
        ((driver, bucket),) = self.drivers.items()
        driver_attributes = {bucket: attributes["bucket"].value}
        if URL in attributes:
            driver_attributes[URL] = attributes[URL].value
        body: dict[str, Any] = {"driver": driver, "volumeAttributes": driver_attributes}
        if "accessKeySecret" in attributes:
            body["nodePublishSecretRef"] = {"name": attributes["accessKeySecret"].value}
        return {CSI: body}
