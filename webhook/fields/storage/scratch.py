"""Scratch volumes as items, but for those that this webhook makes for other fields."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from webhook.evaluation.installation import InstallationConfig
from webhook.fields.storage.git_sync import is_git_image
from webhook.fields.storage.mounts import Mount, clean_path
from webhook.fields.storage.volumes import Stated, VolumeStore
from webhook.fields.store import NativeItem
from webhook.objects.path import Path
from webhook.pods.pod_view import PodView
from webhook.policy.row import Items

OURS = {"dshm": ({"medium": "Memory"}, "/dev/shm"), "user-data": ({}, "/home/runai-home")}  # noqa: S108
CHECKOUT = re.compile(r"code-sync(-\d+)?")


def is_ours(volume: Mapping[str, Any], mounts: Sequence[Mount], images: tuple[str, ...]) -> bool:
    """Whether a volume is one that this webhook makes; whole content must match, not the name.

    A checkout's is mounted by a container of one of the images that check out repositories.
    """
    name, body = str(volume.get("name")), volume.get("emptyDir")
    if CHECKOUT.fullmatch(name):
        return body == {} and any(
            each.list == "initContainers" and is_git_image(each.body.get("image"), images)
            for each, _, _ in mounts
        )
    if name not in OURS:
        return False
    wanted, mount_path = OURS[name]
    return body == wanted and all(
        clean_path(m.get("mountPath")) == mount_path for _, _, m in mounts
    )


class ScratchStore(VolumeStore):
    """emptyDir volumes; one without any source is such a volume too."""

    def __init__(self, items: Items, config: InstallationConfig) -> None:
        super().__init__(items)
        self.images = tuple(each for each in (config.git_image, *config.git_images) if each)

    def holds(self, volume: Mapping[str, Any]) -> bool:
        """Whether a volume is an emptyDir, by its source or by having none."""
        if super().holds(volume):
            return True
        return all(value is None for key, value in volume.items() if key != "name")

    def of_volume(
        self, view: PodView, volume: dict[str, Any], path: Path, mounts: Sequence[Mount]
    ) -> list[NativeItem]:
        """The item of one volume; none for a volume of ours."""
        if is_ours(volume, mounts, self.images):
            return []
        return super().of_volume(view, volume, path, mounts)

    def read_attributes(self, volume: dict[str, Any], path: Path) -> Stated:
        """Return the attributes in the volume's source, if it has one."""
        return super().read_attributes({**volume, self.source: volume.get(self.source) or {}}, path)
