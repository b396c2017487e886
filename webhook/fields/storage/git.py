"""Git checkouts as items: containers that clone a repository into a volume."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from webhook.evaluation.installation import InstallationConfig
from webhook.evaluation.state import Evaluation
from webhook.fields.items.attributes import comparable
from webhook.fields.storage.git_sync import is_git_image, read_settings, sync_container
from webhook.fields.storage.mounts import Mount, clean_path, dns_label
from webhook.fields.storage.volumes import VolumeStore, as_list
from webhook.fields.store import Addition, NativeItem
from webhook.objects.path import Path
from webhook.pods.pod_view import Container, PodView, mapping
from webhook.policy.combine import EffectiveItem
from webhook.policy.policy import Default
from webhook.policy.row import Field, Items

DEPRECATED, SCRATCH = "gitRepo", "emptyDir"
CHECKOUT = "code-sync"
NUMBERED = re.compile(rf"{CHECKOUT}(-\d+)?", re.ASCII)
PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
RUN = ("command", "args", "env", "envFrom", "lifecycle", "volumeMounts", "volumeDevices", *PROBES)
INIT, METHOD = "initContainers", "secretRef.authenticationMethod"


class GitStore(VolumeStore):
    """Containers of the images that the settings name for git, and volumes of the old kind.

    The item's key is the container's name, or that of the old volume.
    """

    adds_containers = True

    def __init__(self, items: Items, config: InstallationConfig) -> None:
        super().__init__(items, DEPRECATED)
        self.image = config.git_image
        self.images = tuple(each for each in (config.git_image, *config.git_images) if each)

    def read(self, view: PodView) -> list[NativeItem]:
        """Every checkout: by containers, then by volumes of the deprecated kind."""
        mounts: dict[str, list[Mount]] | None = None
        found: list[NativeItem] = []
        for container in view.everyone if self.images else ():
            if is_git_image(container.body.get("image"), self.images):
                mounts = self.mounts(view) if mounts is None else mounts
                found.append(self.checkout(view, container, mounts))
        return found + super().read(view)

    def read_attributes(self, volume: dict[str, Any], path: Path) -> dict[str, tuple[Any, Path]]:
        """Return the attributes in a volume of the deprecated kind."""
        where = (*path, DEPRECATED)
        body = mapping(volume[DEPRECATED], where)
        return {name: (body.get(name), (*where, name)) for name in ("repository", "revision")}

    def of_volume(
        self, view: PodView, volume: dict[str, Any], path: Path, mounts: Any
    ) -> list[NativeItem]:
        """The item of a volume of the deprecated kind; its mounts are the paths."""
        (item,) = super().of_volume(view, volume, path, mounts)
        self.put_paths(item, mounts)
        return [item]

    def put_paths(self, item: NativeItem, mounts: list[Mount]) -> None:
        """Note the paths of the mounts."""
        path = self.items.attribute("path")
        assert path is not None
        item.values["path"] = tuple(
            comparable(path, body["mountPath"]) for _, _, body in mounts if "mountPath" in body
        )
        item.at["path"] = tuple((*at, "mountPath") for _, at, _ in mounts)

    def volume_name(self, view: PodView, container: Container) -> str:
        """The volume that a container checks out into: the one mounted at its root, or its only."""
        root = clean_path(read_settings(container).root)
        held = as_list(container.body.get("volumeMounts"))
        mounts = [each for each in held if isinstance(each, dict)]
        for each in mounts:
            at = clean_path(each.get("mountPath"))
            if root == at or root.startswith(f"{at.rstrip('/')}/"):
                return str(each.get("name"))
        return str(mounts[0].get("name")) if len(mounts) == 1 else ""

    def checkout(
        self, view: PodView, container: Container, mounts: Mapping[str, list[Mount]]
    ) -> NativeItem:
        """The item of one container, with the mounts of its volume in the containers that use it."""
        sync = read_settings(container)
        volume = self.volume_name(view, container)
        used = [
            each
            for each in mounts.get(volume, ())
            if each[0] is not container and not is_git_image(each[0].body.get("image"), self.images)
        ]
        item = NativeItem(
            container.name,
            {},
            container.path,
            [container.body, *(body for _, _, body in used)],
            {},
            any(each is view.main for each, _, _ in used),
            sync.altered or self.find_tampering({}, used),
            tuple((each.list, each.name) for each, _, _ in used),
        )
        for name, (raw, at) in sync.stated.items():
            item.values[name] = (raw,)
            item.at[name] = (at,)
        item.values["name"] = (container.name,)
        self.put_paths(item, used)
        # A pinned revision is on no branch that the object tells.
        item.unresolved = frozenset({"branch"} if "revision" in sync.stated else ())
        return item

    def add(self, view: PodView, ev: Evaluation, new: Addition) -> None:
        """Append the container, its volume, and the volume's mount on the main container."""
        method = new.attributes.get(METHOD)
        by_key = method is not None and method.value == "ssh-key"
        if not self.image or by_key or "repository" not in new.attributes:
            reason = "no-git-key" if by_key else "no-git-image"
            ev.warn(reason, new.row.path, view.location.place, new.item.key, source=new.item.source)
            return
        name = container_name(new.item, new.attributes)
        wanted = new.attributes["path"].value if "path" in new.attributes else ""
        volume = self.left_volume(view, ev, wanted) or self.free_name(view, ev)
        mount = {"name": volume, "mountPath": wanted} if wanted else {}
        if self.is_name_taken(view, ev, new.row, new.item, name) or (
            mount and self.mount_clashes(view, ev, new.row, new.item, mount)
        ):
            return
        for part in (INIT, "volumes"):
            if ev.find_written_path(new.row.path, (*view.spec_path, part)) is None:
                return  # the container, the volume and the mount work only together
        container = sync_container(name, self.image, volume, new.attributes)
        if not ev.fits(new.row.path, (*view.spec_path, "volumes"), scratch(volume)):
            return  # a mount without its volume would be a pod that never starts
        self.append(ev, new.row, (*view.spec_path, INIT), container, new.item, new.why)
        self.put_volume(view, ev, new.row, volume, new.item, new.why)
        if mount:
            self.mount(view, ev, new.row, mount, new.item, new.why)

    def append(
        self, ev: Evaluation, row: Field, path: Path, entry: Any, item: EffectiveItem, why: str
    ) -> None:
        """Append one entry to a list of the copy."""
        if ev.can_write(path):
            index = len(ev.now(path) or [])
            ev.append(path, entry)
            ev.note_item(row, (*path, index), entry, why, item.source)

    def put_volume(
        self,
        view: PodView,
        ev: Evaluation,
        row: Field,
        name: str,
        item: EffectiveItem,
        why: str,
    ) -> None:
        """Append the volume of a checkout, unless it is there."""
        path = (*view.spec_path, "volumes")
        if all(not isinstance(e, dict) or e.get("name") != name for e in ev.now(path) or []):
            self.append(ev, row, path, scratch(name), item, why)

    def left_volume(self, view: PodView, ev: Evaluation, wanted: str) -> str:
        """The volume that the main container still mounts of a checkout whose container is gone.

        An update that sends the list of init containers alone leaves the rest of it.
        """
        mounts = ev.now((*view.main.path, "volumeMounts")) if view.main is not None else None
        volumes = ev.now((*view.spec_path, "volumes"))
        used = {self.volume_name(view, each) for each in view.everyone if self.checks_out(each)}
        named: dict[str, list[Any]] = {}
        for each in as_list(volumes):
            if isinstance(each, dict) and isinstance(each.get("name"), str):
                named.setdefault(each["name"], []).append(each)
        for mount in as_list(mounts):
            name = mount.get("name") if isinstance(mount, dict) else None
            if mount != {"name": name, "mountPath": wanted} or not isinstance(name, str):
                continue
            ours = named.get(name, []) in ([], [{"name": name, SCRATCH: {}}])
            if NUMBERED.fullmatch(name) and name not in used and ours:
                return name
        return ""

    def is_made(
        self,
        view: PodView,
        container: Container,
        item: EffectiveItem,
        attributes: Mapping[str, Default],
    ) -> bool:
        """Whether a container is, in all that it runs, the one that an item makes."""
        name, body = container_name(item, attributes), container.body
        if container.list != INIT or container.name != name or body.get("image") != self.image:
            return False
        made = sync_container(name, self.image, self.volume_name(view, container), attributes)
        return bool(self.image) and all(body.get(part) == made.get(part) for part in RUN)

    def checks_out(self, container: Container) -> bool:
        """Whether a container is a checkout by its image."""
        return is_git_image(container.body.get("image"), self.images)

    def mend(
        self,
        view: PodView,
        ev: Evaluation,
        row: Field,
        item: EffectiveItem,
        native: NativeItem,
        why: str,
    ) -> None:
        """Write the volume of a checkout again, which an update of the volumes alone drops."""
        name = self.volume_named(view, native.key)
        if NUMBERED.fullmatch(name):
            self.put_volume(view, ev, row, name, item, why)

    def free_name(self, view: PodView, ev: Evaluation) -> str:
        """A name for the next checkout's volume."""
        volumes = as_list(ev.now((*view.spec_path, "volumes")))
        taken = {str(each.get("name")) for each in volumes if isinstance(each, dict)}
        names = (CHECKOUT, *(f"{CHECKOUT}-{number}" for number in range(2, len(taken) + 3)))
        return next(each for each in names if each not in taken)

    def is_name_taken(
        self, view: PodView, ev: Evaluation, row: Field, item: EffectiveItem, name: str
    ) -> bool:
        """Whether a container of that name is there; then refused."""
        for part in (INIT, "containers", "ephemeralContainers"):
            for index, each in enumerate(ev.now((*view.spec_path, part)) or []):
                if isinstance(each, dict) and each.get("name") == name:
                    path = (*view.spec_path, part, index, "name")
                    return self.refuse_clash(ev, row, item, path, f"container {name}")
        return False

    def restore(self, view: PodView, ev: Evaluation, row: Field, item: NativeItem) -> bool:
        """Return False: a checkout has several paths and is created again."""
        return False

    def restore_mounts(self, view: PodView, ev: Evaluation, row: Field, item: NativeItem) -> None:
        """Append the mounts that the main container had of an old checkout, if its volume is there."""
        volumes = ev.now((*view.spec_path, "volumes")) or []
        names = {each.get("name") for each in volumes if isinstance(each, dict)}
        if all(mount.get("name") in names for mount in item.raw[1:]):
            super().restore_mounts(view, ev, row, item)

    def add_mount(
        self,
        view: PodView,
        ev: Evaluation,
        new: Addition,
        volume: str,
    ) -> None:
        """Mount the volume of a checkout that is there on the main container."""
        name = self.volume_named(view, volume)
        if name and "path" in new.attributes:
            mount = {"name": name, "mountPath": new.attributes["path"].value}
            if not self.mount_clashes(view, ev, new.row, new.item, mount):
                self.mount(view, ev, new.row, mount, new.item, new.why)

    def volume_named(self, view: PodView, key: str) -> str:
        """The volume of the item of that key."""
        found = view.once(("checkouts", self.images), lambda: self.checkouts(view)).get(key)
        return key if found is None else self.volume_name(view, found)

    def checkouts(self, view: PodView) -> dict[str, Container]:
        """The first checkout of each name."""
        return {each.name: each for each in reversed(view.everyone) if self.checks_out(each)}

    def volume_of(self, view: PodView, native: NativeItem) -> str:
        """The name of the volume that a checkout is mounted from."""
        return self.volume_named(view, native.key)


def scratch(name: str) -> dict[str, Any]:
    """The volume of a checkout."""
    return {"name": name, SCRATCH: {}}


def container_name(item: EffectiveItem, attributes: Mapping[str, Default]) -> str:
    """The name of the container of an item."""
    return dns_label(attributes["name"].value if "name" in attributes else item.key)
