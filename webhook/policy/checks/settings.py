"""Checks of defaults and rules that need a setting of the installation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Protocol

from webhook.documents.problem import Problem
from webhook.objects.quantity import NANO
from webhook.policy.body import resolve_level
from webhook.policy.checks.storage import PVC, is_to_be_created
from webhook.policy.policy import EVERYWHERE, Asset, Default, Entry, Policy
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


CLAIMS_FIX = (
    "set PODGATE_IDENTITY_CLAIMS (--identity-claims of podgate serve) to the claims of"
    " uid, gid and groups"
)
SEVERAL_FIX = (
    "keep one of them, or set PODGATE_SEVERAL_DEVICES (--several-devices of podgate serve)"
)


class Settings(Protocol):
    """The settings that the checks need. `InstallationConfig` has them."""

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


@dataclass(frozen=True)
class PolicyHere:
    """One policy in an installation with these assets and settings."""

    policy: Policy
    assets: Mapping[str, Asset]
    settings: Settings


def is_writable(field: str, identity: str, settings: Settings) -> bool:
    """Whether podgate can write an item of a field. For data volumes, `identity` must be set up."""
    if field == GIT:
        return bool(settings.git_image)
    if field == S3:
        return bool(settings.s3_drivers)
    return field != DATA_VOLUME or identity in settings.data_volumes


def is_seen(field: str, settings: Settings) -> bool:
    """Whether podgate recognizes items of a field in manifests."""
    if field == GIT:
        return bool(settings.git_image or settings.git_images)
    if field == S3:
        return bool(settings.s3_drivers)
    return field != DATA_VOLUME or bool(settings.data_volumes)


class NeedsSettings:
    """Default items, imposed assets and default values must have the settings that they need."""

    ids: ClassVar = {
        "needs-settings": "What the default needs is named in no setting of the installation."
    }
    severity = "error"

    def run(self, subject: PolicyHere) -> Iterator[Problem]:
        yield from self.items(subject.policy, subject.settings)
        yield from self.imposed(subject)
        yield from self.values(subject.policy, subject.settings)

    def items(self, policy: Policy, settings: Settings) -> Iterator[Problem]:
        """Check default items."""
        for level, fields in policy.body.items.items():
            for field, items in fields.items():
                for item in items:
                    if not is_writable(field, item.key, settings):
                        entry = ("item", level, field, item.key)
                        yield policy.problem(self, entry, f"item {item.key} of {field}", FIX[field])

    def imposed(self, subject: PolicyHere) -> Iterator[Problem]:
        """Check imposed assets. Their key is not the id of a data volume."""
        for level, identities in subject.policy.body.imposed.items():
            for identity in identities:
                asset = subject.assets.get(identity)
                if asset is None or is_writable(asset.field, identity, subject.settings):
                    continue
                entry = ("imposed", level, "", identity)
                found = f"{identity} ({asset.kind} {asset.name})"
                yield subject.policy.problem(self, entry, found, FIX[asset.field])

    def values(self, policy: Policy, settings: Settings) -> Iterator[Problem]:
        """Check default values. Without identity claims a default is not written: a warning."""
        for level in dict.fromkeys((EVERYWHERE, *policy.body.defaults)):
            given = resolve_level(policy.body.defaults, level)
            source, devices, portion = (given.get(name) for name in (SOURCE, DEVICES, PORTION))
            if source is not None and source.value == FROM_TOKEN and not settings.identity_claims:
                entry, found = default_entry(policy, level, SOURCE), f"{SOURCE} {FROM_TOKEN}"
                yield policy.problem(self, entry, found, CLAIMS_FIX, severity="warning")
            if devices is None or portion is None or settings.several_devices:
                continue
            if devices.value > 1 and portion.value < NANO:
                found = f"{PORTION} below 1 beside {DEVICES} {devices.value}"
                yield policy.problem(
                    self, default_entry(policy, level, PORTION), found, SEVERAL_FIX
                )


def default_entry(policy: Policy, level: str, leaf: str) -> Entry:
    """Return the entry of the default that applies at a level."""
    own = ("default", level, leaf, "")
    return own if own in policy.positions else ("default", EVERYWHERE, leaf, "")


class BlindWithoutSettings:
    """Rules need items that podgate recognizes. Reported once for each field."""

    ids: ClassVar = {
        "blind-without-settings": (
            "Without a setting podgate does not recognise what the rule is about."
        )
    }
    severity = "warning"

    def run(self, subject: PolicyHere) -> Iterator[Problem]:
        policy = subject.policy
        seen: set[str] = set()
        for level, leaves in policy.body.rules.items():
            for leaf, arguments in leaves.items():
                field = TABLE.owner(leaf).path
                if field in seen or not restricts(arguments) or is_seen(field, subject.settings):
                    continue
                seen.add(field)
                entry = ("rule", level, leaf, next(iter(arguments)))
                yield policy.problem(self, entry, field, BLIND[field])


class ClaimCreated:
    """Notes each claim that podgate creates."""

    ids: ClassVar = {"claim-created": "A claim that podgate creates in each governed namespace."}
    severity = "note"

    def run(self, subject: PolicyHere) -> Iterator[Problem]:
        for entry, claim, found in (
            claims_to_create(subject) if subject.settings.create_claims else ()
        ):
            fix = f"podgate creates PersistentVolumeClaim {claim} in each governed namespace"
            yield subject.policy.problem(self, entry, found, fix)


class ClaimNotCreated:
    """Warns of each claim that an administrator has to create."""

    ids: ClassVar = {
        "claim-not-created": (
            "A claim that podgate does not create: it is neither there nor ephemeral."
        )
    }
    severity = "warning"

    def run(self, subject: PolicyHere) -> Iterator[Problem]:
        for entry, claim, found in (
            () if subject.settings.create_claims else claims_to_create(subject)
        ):
            fix = (
                f"an administrator creates PersistentVolumeClaim {claim} in each governed namespace,"
                " and Pods wait for it; or write ephemeral: true, or set PODGATE_CREATE_CLAIMS"
            )
            yield subject.policy.problem(self, entry, found, fix)


def claims_to_create(subject: PolicyHere) -> Iterator[tuple[Entry, str, str]]:
    """Return each claim to create: its entry, its name, and its text in messages."""
    for entry, key, attributes in claims_of(subject.policy, subject.assets):
        if is_to_be_created(attributes):
            claim = str(attributes["claimName"].value) if "claimName" in attributes else key
            yield entry, claim, f"item {key} with claim {claim}, neither existingPvc nor ephemeral"


def claims_of(
    policy: Policy, assets: Mapping[str, Asset]
) -> Iterator[tuple[Entry, str, Mapping[str, Default]]]:
    """Return each claim that a policy mounts: its entry, key and attributes."""
    for level, fields in policy.body.items.items():
        given = {
            leaf.removeprefix(f"{PVC}."): default
            for leaf, default in resolve_level(policy.body.defaults, level).items()
            if leaf.startswith(f"{PVC}.")
        }
        for item in fields.get(PVC, ()):
            if not item.excluded:
                yield ("item", level, PVC, item.key), item.key, {**given, **item.attributes}
    for level, identities in policy.body.imposed.items():
        for asset in (assets[each] for each in identities if each in assets):
            if asset.field == PVC:
                yield ("imposed", level, "", asset.id), asset.name, asset.attributes
