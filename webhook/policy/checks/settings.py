"""Finds defaults that need something of an installation, and rules that it is blind for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol

from webhook.documents.problem import Problem
from webhook.objects.quantity import NANO
from webhook.policy.body import holding
from webhook.policy.checks.policy_set import problem
from webhook.policy.checks.storage import PVC, is_to_be_created
from webhook.policy.policy import EVERYWHERE, Asset, Default, Place, Policy
from webhook.policy.rules import restricts
from webhook.policy.table import TABLE

GIT, S3, DATA_VOLUME = "storage.git", "storage.s3", "storage.dataVolume"
DEVICES, PORTION = "compute.gpuDevicesRequest", "compute.gpuPortionRequest"
SOURCE, FROM_TOKEN = "security.uidGidSource", "fromIdpToken"
FIX = {
    GIT: "set PODGATE_GIT_IMAGE (--git-image of podgate serve) to the git-sync image for checkouts",
    S3: "set PODGATE_S3_DRIVERS (--s3-drivers of podgate serve) to DRIVER=ATTRIBUTE of the bucket",
    DATA_VOLUME: "set PODGATE_DATA_VOLUMES (--data-volumes of podgate serve) to ID=CLAIM with this id",
}
BLIND = {
    GIT: "set PODGATE_GIT_IMAGES (--git-images of podgate serve) to the images that check out",
    S3: FIX[S3],
    DATA_VOLUME: "set PODGATE_DATA_VOLUMES (--data-volumes of podgate serve) to ids and their claims",
}


class Settings(Protocol):
    """What the check wants to know of an installation, see `workload.vocabulary`."""

    @property
    def git_image(self) -> str: ...
    @property
    def git_images(self) -> tuple[str, ...]: ...
    @property
    def s3_drivers(self) -> Mapping[str, str]: ...
    @property
    def data_volumes(self) -> Mapping[str, str]: ...
    @property
    def identity_claims(self) -> Mapping[str, str]: ...
    @property
    def several_devices(self) -> bool: ...
    @property
    def create_claims(self) -> bool: ...


def check_settings(
    policies: Iterable[Policy], assets: Mapping[str, Asset], settings: Settings
) -> tuple[Problem, ...]:
    """Every problem between policies and the settings, in order of the policies."""
    found: list[Problem] = []
    for policy in policies:
        found += unwritable_items(policy, settings)
        found += unwritable_assets(policy, assets, settings)
        found += unwritable_values(policy, settings)
        found += blind_rules(policy, settings)
        found += claims_to_create(policy, assets, settings)
    return tuple(dict.fromkeys(found))


def is_writable(field: str, identity: str, settings: Settings) -> bool:
    """Whether an item of a field can be written; of data volumes the one of that id."""
    if field == GIT:
        return bool(settings.git_image)
    if field == S3:
        return bool(settings.s3_drivers)
    return field != DATA_VOLUME or identity in settings.data_volumes


def is_seen(field: str, settings: Settings) -> bool:
    """Whether items of a field are recognised in manifests at all."""
    if field == GIT:
        return bool(settings.git_image or settings.git_images)
    if field == S3:
        return bool(settings.s3_drivers)
    return field != DATA_VOLUME or bool(settings.data_volumes)


def unwritable_items(policy: Policy, settings: Settings) -> Iterator[Problem]:
    """Default items that need a setting."""
    for level, fields in policy.body.items.items():
        for field, items in fields.items():
            for item in items:
                if not is_writable(field, item.key, settings):
                    place = ("item", level, field, item.key)
                    found = f"item {item.key} of {field}"
                    yield problem(policy, place, "needs-settings", found, FIX[field], "error")


def unwritable_assets(
    policy: Policy, assets: Mapping[str, Asset], settings: Settings
) -> Iterator[Problem]:
    """Imposed assets that need a setting; their key is no id of a data volume."""
    for level, identities in policy.body.imposed.items():
        for identity in identities:
            asset = assets.get(identity)
            if asset is not None and not is_writable(asset.field, identity, settings):
                place = ("imposed", level, "", identity)
                found = f"{identity} ({asset.kind} {asset.name})"
                yield problem(policy, place, "needs-settings", found, FIX[asset.field], "error")


def unwritable_values(policy: Policy, settings: Settings) -> Iterator[Problem]:
    """Default values that need a setting."""
    for level in dict.fromkeys((EVERYWHERE, *policy.body.defaults)):
        given = holding(policy.body.defaults, level)
        source, devices, portion = (given.get(name) for name in (SOURCE, DEVICES, PORTION))
        if source is not None and source.value == FROM_TOKEN and not settings.identity_claims:
            fix = (
                "set PODGATE_IDENTITY_CLAIMS (--identity-claims of podgate serve) to the claims of"
                " uid, gid and groups"
            )
            found = f"{SOURCE} {FROM_TOKEN}"
            yield problem(policy, placed(policy, level, SOURCE), "needs-settings", found, fix)
        if devices is None or portion is None or settings.several_devices:
            continue
        if devices.value > 1 and portion.value < NANO:
            fix = "keep one of them, or set PODGATE_SEVERAL_DEVICES (--several-devices of podgate serve)"
            found = f"{PORTION} below 1 beside {DEVICES} {devices.value}"
            place = placed(policy, level, PORTION)
            yield problem(policy, place, "needs-settings", found, fix, "error")


def placed(policy: Policy, level: str, leaf: str) -> Place:
    """Where the default that holds at a level stands: there, or outside all levels."""
    own = ("default", level, leaf, "")
    return own if own in policy.places else ("default", EVERYWHERE, leaf, "")


def blind_rules(policy: Policy, settings: Settings) -> Iterator[Problem]:
    """Rules on items that nobody recognises without a setting; once per field."""
    told: set[str] = set()
    for level, leaves in policy.body.rules.items():
        for leaf, arguments in leaves.items():
            field = TABLE.owner(leaf).path
            if field in told or not restricts(arguments) or is_seen(field, settings):
                continue
            told.add(field)
            place = ("rule", level, leaf, next(iter(arguments)))
            yield problem(policy, place, "blind-without-settings", field, BLIND[field])


def claims_to_create(
    policy: Policy, assets: Mapping[str, Asset], settings: Settings
) -> Iterator[Problem]:
    """Report who creates each claim that is neither there nor comes with the pod."""
    for place, key, attributes in claims_of(policy, assets):
        if not is_to_be_created(attributes):
            continue
        claim = attributes["claimName"].value if "claimName" in attributes else key
        found = f"item {key} with claim {claim}, neither existingPvc nor ephemeral"
        named = f"PersistentVolumeClaim {claim}"
        if settings.create_claims:
            fix = f"podgate creates {named} in each governed namespace"
            yield problem(policy, place, "claim-created", found, fix, "note")
            continue
        fix = (
            f"an administrator creates {named} in each governed namespace, and Pods wait for it; or"
            " write ephemeral: true, or set PODGATE_CREATE_CLAIMS"
        )
        yield problem(policy, place, "claim-not-created", found, fix)


def claims_of(
    policy: Policy, assets: Mapping[str, Asset]
) -> Iterator[tuple[Place, str, Mapping[str, Default]]]:
    """Each claim that a policy mounts: its place, its key and its attributes."""
    for level, fields in policy.body.items.items():
        given = {
            leaf.removeprefix(f"{PVC}."): default
            for leaf, default in holding(policy.body.defaults, level).items()
            if leaf.startswith(f"{PVC}.")
        }
        for item in fields.get(PVC, ()):
            if not item.excluded:
                yield ("item", level, PVC, item.key), item.key, {**given, **item.attributes}
    for level, identities in policy.body.imposed.items():
        for asset in (assets[each] for each in identities if each in assets):
            if asset.field == PVC:
                yield ("imposed", level, "", asset.id), asset.name, asset.attributes
