"""Fields made of a volume, its mount and a variable: home directory and shared memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from webhook.evaluation.state import Evaluation
from webhook.fields.handler import MAIN, FieldSource, FieldValue, PodField, PodHandler
from webhook.fields.scalar import Before, rules_of
from webhook.fields.storage.mounts import clean_path, mounts_of
from webhook.objects.path import Path
from webhook.pods.pod_view import Container, PodView, mapping, may_name, sequence
from webhook.policy.combine import Leaf
from webhook.policy.row import HOME, SHARED_MEMORY, Field

HOME_PATH = "/home/runai-home"
HOME_ENTRY = {"name": "HOME", "value": HOME_PATH}
SHARED_MEMORY_PATH = "/dev/shm"  # noqa: S108 - where a container has it, not a file of ours


def entries(held: Any, path: Path) -> Iterable[tuple[Path, dict[str, Any]]]:
    """Return the maps of a list with their paths. Raises MalformedPod."""
    for index, entry in enumerate(sequence(held, path)):
        yield (*path, index), mapping(entry, (*path, index))


def empty_dir(volume: dict[str, Any]) -> dict[str, Any] | None:
    """The emptyDir of a volume, which one without any source is too; None for other sources."""
    source = volume.get("emptyDir")
    if isinstance(source, dict):
        return source
    return None if any(volume[key] is not None for key in volume if key != "name") else {}


class MountedField(PodField):
    """A temporary directory of the main container: true if it exists, else unset."""

    __slots__ = ("every", "mount_path", "volume")

    def __init__(
        self, row: Field, leaf: Leaf, volume: dict[str, Any], mount_path: str, *, every: bool
    ) -> None:
        super().__init__(row, rules_of(row, leaf))
        self.volume = volume
        self.mount_path = mount_path
        self.every = every

    def accepts(self, volume: dict[str, Any]) -> bool:
        """Whether a volume can be such a directory."""
        return empty_dir(volume) is not None

    def wanted_path(self, body: dict[str, Any], path: Path) -> str | None:
        """Return the mount of the directory in a container, None without one."""
        return self.mount_path

    def is_occupied(self, body: dict[str, Any], path: Path) -> bool:
        """Return whether the container sets by other means what the default would set."""
        return False

    def place(
        self, spec: dict[str, Any], spec_path: Path, body: dict[str, Any], path: Path
    ) -> Path | None:
        """The mount that makes the field true in a container; None when there is none."""
        wanted = self.wanted_path(body, path)
        if wanted is None or not body.get("volumeMounts"):
            return None
        volumes = entries(spec.get("volumes"), (*spec_path, "volumes"))
        names = {str(volume.get("name")) for _, volume in volumes if self.accepts(volume)}
        wanted = clean_path(wanted)
        for place, mount in entries(body["volumeMounts"], (*path, "volumeMounts")):
            if str(mount.get("name")) in names and clean_path(mount.get("mountPath")) == wanted:
                return place
        return None

    def mount_path_in(self, view: PodView, container: Container) -> Path | None:
        """The same in a container of a pod."""
        return self.place(view.spec, view.spec_path, container.body, container.path)

    def find(self, view: PodView) -> tuple[Path, Any]:
        """The mount in the main container with True; None when unset."""
        if view.main is None:
            return view.spec_path, None
        path = self.mount_path_in(view, view.main)
        return (path, True) if path is not None else ((*view.main.path, "volumeMounts"), None)

    def before(self, view: PodView, container: Container) -> Before:
        """The mount of the same container before the update."""
        old = view.old_container(container)
        if view.old is None or old is None:
            return None
        path = self.mount_path_in(view.old, old)
        return (path, True) if path is not None else ((*old.path, "volumeMounts"), None)

    def check_intent(self, view: PodView, ev: Evaluation) -> None:
        """Prohibitions on every container that has such a directory."""
        if not self.rules.prohibitions:
            return
        for container in view.everyone if self.every else view.containers:
            path = self.mount_path_in(view, container)
            if path is not None:
                spares = not view.may_be_main(container.path)
                before = self.before(view, container)
                self.rules.check_intent(ev, path, True, before, None, spares_sidecars=spares)

    def fill(self, view: PodView, ev: Evaluation) -> None:
        """Write volume and mount, and what else belongs to them, where the field is unset."""
        default, main = self.rules.default, view.main
        if default is None or main is None:
            return
        if view.windows:
            if default.value:
                ev.warn("forbidden-default", self.row.path, view.spec_path, "Windows")
            return
        mounts = (*main.path, "volumeMounts")
        if not (ev.exists((*view.spec_path, "volumes")) and ev.exists(mounts)):
            # Without its directory a variable would lead nowhere: all of it is written, or nothing.
            if default.value:
                lacking = ev.lacking(view.spec_path)
                ev.warn("unmapped-default", self.row.path, lacking, ev.request.kind)
            return
        spec, body = ev.now(view.spec_path) or {}, ev.now(main.path) or {}
        path = self.place(spec, view.spec_path, body, main.path)
        if path is not None or self.is_occupied(body, main.path):
            return
        before = self.before(view, main)
        wanted = self.rules.choose_value(ev, mounts, None, None, before)
        if wanted is None or not (wanted[1] if wanted[0] == "kept" else default.value):
            return
        volumes, mount = (*view.spec_path, "volumes"), self.mount
        writable = ev.can_write(volumes) and ev.can_write(mounts)
        kept = all(
            ev.fits(self.row.path, *each) for each in ((volumes, self.volume), (mounts, mount))
        )
        if writable and kept and not self.clashes(view, main, ev):
            self.add(view, main, ev, wanted[0])

    def add(self, view: PodView, main: Container, ev: Evaluation, why: str) -> None:
        """Append the volume and its mount, each where it is not there yet."""
        volumes, mounts = (*view.spec_path, "volumes"), (*main.path, "volumeMounts")
        for path, entry in ((volumes, self.volume), (mounts, self.mount)):
            held = sequence(ev.now(path), path)
            if any(isinstance(each, dict) and self.stands_for(each, entry) for each in held):
                continue
            place = (*path, len(held))
            ev.append(path, entry)
            self.note(ev, place, entry, why)

    @property
    def mount(self) -> dict[str, Any]:
        """The mount on the main container."""
        return {"name": self.volume["name"], "mountPath": self.mount_path}

    def stands_for(self, held: dict[str, Any], entry: dict[str, Any]) -> bool:
        """Whether a volume or mount that is there is the one to write; clashes are ruled out."""
        same = held.get("name") == entry["name"]
        if "mountPath" in entry:
            return bool(same) and clean_path(held.get("mountPath")) == clean_path(self.mount_path)
        return bool(same)

    def note(self, ev: Evaluation, path: Path, value: Any, why: str) -> None:
        """Record a written value."""
        default = self.rules.default
        ev.note_item(self.row, path, value, why, default.source if default else None)

    def clashes(self, view: PodView, main: Container, ev: Evaluation) -> bool:
        """Return whether something else has the name or the path, and report it unless it is unchanged."""
        spec, body = ev.now(view.spec_path) or {}, ev.now(main.path) or {}
        found = self.clash(view, spec, body, main)
        if found is None:
            return False
        old = view.old_container(main)
        if view.old and old and self.clash(view.old, view.old.spec, old.body, old) is not None:
            return True
        path, taken, other = found
        default = self.rules.default
        source = default.source if default is not None else None
        ev.violate(
            self.row.path,
            path,
            other,
            f"item {self.volume['name']}",
            None,
            reason="name-clash",
            source=source,
            key=taken,
        )
        ev.reported.add(("name-clash", self.row.path, view.spec_path))
        return True

    def clash(
        self, view: PodView, spec: dict[str, Any], body: dict[str, Any], main: Container
    ) -> tuple[Path, str, str] | None:
        """Return the path that is taken, what podgate needs it for, and its use, None if it is free."""
        name = self.volume["name"]
        named = [
            (path, volume)
            for path, volume in entries(spec.get("volumes"), (*view.spec_path, "volumes"))
            if volume.get("name") == name
        ]
        used = bool(named) and self.used_elsewhere(view, name)
        for path, volume in named:
            if used or not self.accepts(volume):
                return (*path, "name"), name, f"volume {name}"
        wanted = clean_path(self.mount_path)
        for path, mount in entries(body.get("volumeMounts"), (*main.path, "volumeMounts")):
            if clean_path(mount.get("mountPath")) == wanted and mount.get("name") != name:
                other = f"volume {mount.get('name')} at {self.mount_path}"
                return (*path, "mountPath"), self.mount_path, other
        return None

    def used_elsewhere(self, view: PodView, name: str) -> bool:
        """Return whether a volume of podgate's name has another use: it is mounted at another path."""
        wanted = clean_path(self.mount_path)
        return any(
            clean_path(mount.get("mountPath")) != wanted
            for _, _, mount in mounts_of(view).get(name, ())
        )

    def check_final(self, view: PodView, ev: Evaluation) -> None:
        """`required` where the main container has none; Windows has neither directory."""
        if not self.rules.required or view.main is None or view.windows:
            return
        path, native = self.find(view)
        if native is None and not self.has_reported_clash(view, ev):
            before = self.before(view, view.main)
            unchanged = before is not None and before[1] is None
            self.rules.check_required(ev, path, unchanged=unchanged)

    def has_reported_clash(self, view: PodView, ev: Evaluation) -> bool:
        """Return whether a reason not to write the directory was already reported."""
        return ("name-clash", self.row.path, view.spec_path) in ev.reported

    def read(self, view: PodView, ev: Evaluation) -> Iterable[FieldValue]:
        """The mount that makes the field true."""
        return [FieldValue(*self.find(view), derived=True)]

    def current(self, view: PodView, ev: Evaluation) -> Any:
        """True where the main container has the directory now; None when unset."""
        if view.main is None:
            return None
        spec, body = ev.now(view.spec_path) or {}, ev.now(view.main.path) or {}
        path = self.place(spec, view.spec_path, body, view.main.path)
        return None if path is None else True


class HomeField(MountedField):
    """createHomeDir: an emptyDir at the path in the literal variable HOME."""

    __slots__ = ()

    def __init__(self, row: Field, leaf: Leaf) -> None:
        volume = {"name": "user-data", "emptyDir": {}}
        super().__init__(row, leaf, volume, HOME_PATH, every=False)

    def wanted_path(self, body: dict[str, Any], path: Path) -> str | None:
        """The value of HOME; the last entry of a name is the one that counts."""
        if not may_name(body.get("env") or (), "HOME"):
            return None
        value = None
        for _, entry in entries(body.get("env"), (*path, "env")):
            if entry.get("name") == "HOME":
                value = entry.get("value")
        return value if isinstance(value, str) and value.startswith("/") else None

    def is_occupied(self, body: dict[str, Any], path: Path) -> bool:
        """A home directory that the user has chosen, or that a reference names, stays.

        Ours may have lost its volume to an update that sends the volumes alone; it is completed.
        """
        named = [entry for _, entry in entries(body.get("env"), (*path, "env")) if is_home(entry)]
        ours = {"name": self.volume["name"], "mountPath": self.mount_path}
        left = named[-1:] == [HOME_ENTRY] and ours in sequence(
            body.get("volumeMounts"), (*path, "volumeMounts")
        )
        return bool(named) and not left

    def add(self, view: PodView, main: Container, ev: Evaluation, why: str) -> None:
        """The directory, and HOME before the user's variables, which may refer to it."""
        super().add(view, main, ev, why)
        path = (*main.path, "env")
        held = sequence(ev.now(path), path)
        if HOME_ENTRY in held:
            return
        index = len(held) - len(sequence(main.body.get("env"), path))
        ev.insert(path, index, HOME_ENTRY)
        self.note(ev, (*path, index), HOME_ENTRY, why)


def is_home(entry: dict[str, Any]) -> bool:
    """Whether a variable is that of the home directory."""
    return entry.get("name") == "HOME"


class SharedMemoryField(MountedField):
    """compute.largeShmRequest: an emptyDir in memory at /dev/shm."""

    __slots__ = ()

    def __init__(self, row: Field, leaf: Leaf) -> None:
        volume = {"name": "dshm", "emptyDir": {"medium": "Memory"}}
        super().__init__(row, leaf, volume, SHARED_MEMORY_PATH, every=True)

    def accepts(self, volume: dict[str, Any]) -> bool:
        """An emptyDir on a disk is no shared memory."""
        source = empty_dir(volume)
        return source is not None and source.get("medium") == "Memory"


class HomeHandler(PodHandler):
    """Throw-away home directories."""

    name = HOME

    def compile(self, source: FieldSource) -> HomeField:
        """The field, true where the directory is there."""
        return HomeField(source.row, source.leaf)

    def pod_paths(self, row: Field) -> Sequence[Path]:
        """Where a pod template has the field."""
        return [(*MAIN, "volumeMounts")]


class SharedMemoryHandler(PodHandler):
    """Large shared memory."""

    name = SHARED_MEMORY

    def compile(self, source: FieldSource) -> SharedMemoryField:
        """The field, true where the directory is there."""
        return SharedMemoryField(source.row, source.leaf)

    def pod_paths(self, row: Field) -> Sequence[Path]:
        """Where a pod template has the field."""
        return [(*MAIN, "volumeMounts")]
