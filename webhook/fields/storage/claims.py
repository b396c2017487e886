"""Claims as items: those that are there, ephemeral ones, and templates of the workload."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from webhook.evaluation.installation import InstallationConfig
from webhook.evaluation.state import Evaluation
from webhook.fields.items.attributes import to_native
from webhook.fields.storage.mounts import DEVICES, Mount, mounts_of
from webhook.fields.storage.volumes import Stated, VolumeStore
from webhook.fields.store import NativeItem
from webhook.objects.path import Path
from webhook.pods.pod_view import PodView, mapping, sequence
from webhook.policy.combine import EffectiveItem
from webhook.policy.policy import Default
from webhook.policy.row import Field, Items

EXISTING, EPHEMERAL = "persistentVolumeClaim", "ephemeral"
MODES = ("readWriteOnce", "readOnlyMany", "readWriteMany")
SIZE, STORAGE_CLASS, VOLUME_MODE = (
    "claimInfo.size",
    "claimInfo.storageClass",
    "claimInfo.volumeMode",
)
BRIEF = ("storageClassName", "accessModes", "resources")
OF_CLAIM = frozenset({SIZE, STORAGE_CLASS, *(f"claimInfo.accessModes.{mode}" for mode in MODES)})


def native_mode(mode: str) -> str:
    """An access mode as Kubernetes spells it."""
    return f"{mode[0].upper()}{mode[1:]}"


def is_true(attributes: Mapping[str, Default], name: str) -> bool:
    """Whether a boolean attribute is given and true."""
    return name in attributes and bool(attributes[name].value)


def name_in_brief(body: Mapping[str, Any]) -> tuple[str, Path] | None:
    """Return the name of a claim that is there, with its path; None where one is to be made."""
    ref = body.get("ref")
    for at, name in (
        (("claimName",), body.get("claimName")),
        (("existingClaim",), body.get("existingClaim")),
        (("ref", "name"), ref.get("name") if isinstance(ref, dict) else None),
    ):
        if name:
            return str(name), at
    return None


def of_spec(spec: dict[str, Any], path: Path) -> Stated:
    """Return the attributes in the spec of a claim."""
    resources = mapping(spec.get("resources"), (*path, "resources"))
    requests = mapping(resources.get("requests"), (*path, "resources", "requests"))
    found: Stated = {
        SIZE: (requests.get("storage"), (*path, "resources", "requests", "storage")),
        STORAGE_CLASS: (spec.get("storageClassName"), (*path, "storageClassName")),
        VOLUME_MODE: (spec.get("volumeMode"), ()),
    }
    held = spec.get("accessModes")
    if held is not None:
        place = (*path, "accessModes")
        modes = sequence(held, place)
        found |= {
            f"claimInfo.accessModes.{mode}": (native_mode(mode) in modes, place) for mode in MODES
        }
    return found


class ClaimStore(VolumeStore):
    """Claims that pods mount; those that the settings know as data volumes are left to that field.

    A raw device counts as a mount at its device path.
    """

    implied = OF_CLAIM - {SIZE, STORAGE_CLASS} | {"existingPvc", "ephemeral"}

    def __init__(self, items: Items, config: InstallationConfig) -> None:
        super().__init__(items, EXISTING)
        self.elsewhere = frozenset(config.data_volumes.values())

    def read(self, view: PodView) -> list[NativeItem]:
        """Every claim of the pod, then the templates by which the workload brings claims along."""
        found = super().read(view)
        if view.claims:
            mounts = self.mounts(view)
            templates = [each for each in view.claims if each[1].keys() & {"metadata", "spec"}]
            named = {
                str(mapping(body.get("metadata"), path).get("name")) for path, body in templates
            }
            found = [each for each in found if each.key not in named]
            found += [self.template(view, path, body, mounts) for path, body in templates]
            found += [
                self.shared_item(view, path, body)
                if "mountPath" in body
                else self.brief(view, path, body)
                for path, body in view.claims
                if not body.keys() & {"metadata", "spec"}
            ]
        return found

    def mounts(self, view: PodView) -> dict[str, list[Mount]]:
        """Mounts, then devices, of all containers by volume name."""
        found = mounts_of(view)
        for name, devices in mounts_of(view, DEVICES).items():
            found.setdefault(name, []).extend(devices)
        return found

    def holds(self, volume: Mapping[str, Any]) -> bool:
        """Whether a volume is a claim, and no data volume."""
        existing = volume.get(EXISTING)
        if isinstance(existing, dict):
            claim = existing.get("claimName")
            return not isinstance(claim, str) or claim not in self.elsewhere
        return existing is not None or volume.get(EPHEMERAL) is not None

    def of_volume(
        self, view: PodView, volume: dict[str, Any], path: Path, mounts: Sequence[Mount]
    ) -> list[NativeItem]:
        """The item of a claim that is there, or of one that comes and goes with the pod."""
        if volume.get(EXISTING) is not None:
            where = (*path, EXISTING)
            stated = super().read_attributes(volume, path)
            stated |= {"existingPvc": (True, where), "ephemeral": (False, where)}
            used = "Block" if any("devicePath" in body for _, _, body in mounts) else "Filesystem"
            stated[VOLUME_MODE] = (used, ())
            unresolved = OF_CLAIM if mounts else OF_CLAIM | {VOLUME_MODE}
            return [self.claim(view, volume, path, mounts, stated, unresolved)]
        where = (*path, EPHEMERAL, "volumeClaimTemplate")
        held = mapping(volume[EPHEMERAL], where[:-1]).get("volumeClaimTemplate")
        spec = mapping(mapping(held, where).get("spec"), (*where, "spec"))
        stated = {"existingPvc": (False, where[:-1]), "ephemeral": (True, where[:-1])}
        stated |= of_spec(spec, (*where, "spec"))
        return [self.claim(view, volume, path, mounts, stated, frozenset({"claimName"}))]

    def template(
        self,
        view: PodView,
        path: Path,
        body: dict[str, Any],
        mounts: Mapping[str, Sequence[Mount]],
    ) -> NativeItem:
        """The item of a claim template: a volume of every pod, by the template's name."""
        metadata = mapping(body.get("metadata"), (*path, "metadata"))
        name = str(metadata.get("name"))
        spec = mapping(body.get("spec"), (*path, "spec"))
        stated: Stated = {"existingPvc": (False, ()), "ephemeral": (False, ())}
        stated |= of_spec(spec, (*path, "spec"))
        used = mounts.get(name, ())
        # One of several pods may leave it unmounted, so attributes of mounts are not checked there.
        unresolved = {"claimName"} if used else {"claimName", "path", "readOnly"}
        volume = {"name": name, **body}
        return self.claim(view, volume, path, used, stated, frozenset(unresolved))

    def shared_item(self, view: PodView, path: Path, body: dict[str, Any]) -> NativeItem:
        """The item of a claim, there or to be made, that the workload mounts into every container."""
        mounts = [(view.main, path, body)] if view.main is not None else []
        if claimed := body.get("volumeClaimName"):
            stated: Stated = {"existingPvc": (True, ()), "ephemeral": (False, ())}
            stated["claimName"] = (claimed, (*path, "volumeClaimName"))
            volume = {"name": str(claimed), **body}
            return self.claim(view, volume, path, mounts, stated, OF_CLAIM)
        where = (*path, "volumeClaim")
        stated = {"existingPvc": (False, ()), "ephemeral": (False, ())}
        stated |= of_spec(mapping(body.get("volumeClaim"), where), where)
        volume = {"name": str(body["mountPath"]), **body}
        return self.claim(view, volume, path, mounts, stated, frozenset({"claimName"}))

    def brief(self, view: PodView, path: Path, body: dict[str, Any]) -> NativeItem:
        """The item of a claim, there or to be made, that the operator mounts where it needs it."""
        unresolved = {"path", "readOnly", VOLUME_MODE}
        if named := name_in_brief(body):
            claimed, at = named
            stated: Stated = {"existingPvc": (True, ()), "ephemeral": (False, ())}
            stated["claimName"] = (claimed, (*path, *at))
            volume = {"name": str(claimed), **body}
            return self.claim(view, volume, path, (), stated, OF_CLAIM | unresolved)
        stated = {"existingPvc": (False, ()), "ephemeral": (False, ())}
        stated |= of_spec({key: body.get(key) for key in BRIEF}, path)
        if "size" in body:
            stated[SIZE] = (body["size"], (*path, "size"))
        volume = {"name": str(path[-1]), **body}
        return self.claim(view, volume, path, (), stated, frozenset({"claimName", *unresolved}))

    def claim(
        self,
        view: PodView,
        volume: dict[str, Any],
        place: Path,
        mounts: Sequence[Mount],
        stated: Stated,
        unresolved: frozenset[str],
    ) -> NativeItem:
        """One claim; a volume that brings its own is known by the volume's name."""
        if "claimName" in unresolved:
            stated = {**stated, "claimName": (volume.get("name"), ())}
        item = self.item(view, volume, place, mounts, stated)
        item.unresolved = unresolved
        devices = [body for _, _, body in mounts if "devicePath" in body]
        if devices and item.values.get(VOLUME_MODE) != ("Block",):
            item.tampered = item.tampered or DEVICES
        # Raw devices have no readOnly that a default could go to.
        item.at["readOnly"] = tuple(
            (*path, "readOnly") for _, path, body in mounts if "devicePath" not in body
        )
        return item

    def restore(self, view: PodView, ev: Evaluation, row: Field, item: NativeItem) -> bool:
        """Append the old volume again; a template is no volume of the pod."""
        volume = item.raw[0]
        if volume.get(EXISTING) is None and volume.get(EPHEMERAL) is None:
            return False
        return super().restore(view, ev, row, item)

    def make_source(
        self,
        view: PodView,
        ev: Evaluation,
        row: Field,
        item: EffectiveItem,
        attributes: Mapping[str, Default],
    ) -> dict[str, Any] | None:
        """A claim by name, or a template of one; a webhook creates no claims."""
        ephemeral = is_true(attributes, "ephemeral")
        if not ephemeral and "claimName" in attributes and attributes["claimName"].value:
            return {EXISTING: self.source_body(attributes)}
        if ephemeral and SIZE in attributes:
            return {EPHEMERAL: {"volumeClaimTemplate": {"spec": self.claim_spec(attributes)}}}
        path = view.location.place
        ev.warn("no-claim-created", row.path, path, item.key, source=item.source)
        return None

    def complete_attributes(self, attributes: Mapping[str, Default]) -> Mapping[str, Default]:
        """A claim that comes with the pod has one writer unless access modes are given.

        Any other claim is one by name: a pod refers to it, whoever creates it.
        """
        if not is_true(attributes, "ephemeral"):
            named = "claimName" in attributes
            return {**attributes, "existingPvc": Default(True, True)} if named else attributes
        if any(is_true(attributes, f"claimInfo.accessModes.{mode}") for mode in MODES):
            return attributes
        return {**attributes, f"claimInfo.accessModes.{MODES[0]}": Default(True, True)}

    def claim_spec(self, attributes: Mapping[str, Default]) -> dict[str, Any]:
        """The spec of a claim as the attributes have it."""
        given = [
            native_mode(mode)
            for mode in MODES
            if (held := attributes.get(f"claimInfo.accessModes.{mode}")) is not None and held.value
        ]
        size = attributes[SIZE]
        attribute = self.items.attribute(SIZE)
        assert attribute is not None
        spec: dict[str, Any] = {
            "accessModes": given,
            "resources": {"requests": {"storage": to_native(attribute, size.value, size.raw)}},
        }
        if STORAGE_CLASS in attributes:
            spec["storageClassName"] = attributes[STORAGE_CLASS].value
        if VOLUME_MODE in attributes:
            spec["volumeMode"] = attributes[VOLUME_MODE].value
        return spec

    def mount_body(self, name: str, attributes: Mapping[str, Default]) -> dict[str, Any]:
        """The mount of a claim; a raw device where the claim has no file system."""
        mode = attributes.get(VOLUME_MODE)
        if mode is None or mode.value != "Block":
            return super().mount_body(name, attributes)
        body: dict[str, Any] = {"name": name}
        if self.mounted_at in attributes:
            body["devicePath"] = attributes[self.mounted_at].value
        return body
