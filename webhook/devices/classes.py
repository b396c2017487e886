"""Device classes: the types of their devices, which are GPUs, and their extended resources."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any, Final

from webhook.devices.briefs import configs_brief, maps
from webhook.devices.claim_view import DeviceConfig, Option, part, read_configs, text_of
from webhook.devices.kinds import (
    CLASS_TYPES,
    DRIVERS,
    GPU_DRIVER,
    GPU_TYPES,
    OTHER,
    TYPES_OF_DRIVER,
    UNKNOWN,
)
from webhook.devices.selectors import DRIVER, PROFILE, TYPE, Requirement, read_selectors
from webhook.evaluation.device_settings import DeviceSettings
from webhook.evaluation.installation import InstallationConfig
from webhook.evaluation.references import References

IMPLICIT_RESOURCE: Final = "deviceclass.resource.kubernetes.io/"
"""The prefix of the extended resource that every class has."""
ANY_PROFILE: Final = "any"
MIG_RESOURCE: Final = "/mig-"
CONFIGS: Final = ("spec",)


def class_brief(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return what decisions read of a DeviceClass.

    `drivers`, `types` and `profiles` are what its selectors require, absent if they say nothing.
    """
    spec = part(body.get("spec"))
    texts = [text_of(part(each.get("cel")).get("expression")) for each in maps(spec, "selectors")]
    required = read_selectors(texts)
    found = {
        "created": text_of(part(body.get("metadata")).get("creationTimestamp")),
        "resource": text_of(spec.get("extendedResourceName")),
        "selected": bool(texts),
        "drivers": sorted(required_drivers(required)),
        "types": sorted(required_types(required)),
        "profiles": sorted(required_profiles(required)),
        "config": configs_brief(spec.get("config")),
    }
    return {key: value for key, value in found.items() if value}


def required_values(required: Iterable[Requirement], domain: str, name: str) -> frozenset[str]:
    """Return the values that a property may have, empty if nothing is said of them."""
    listed = [each.values for each in required if each[:2] == (domain, name) and each.values]
    common = frozenset.intersection(*listed) if listed else frozenset[str]()
    return common or frozenset().union(*listed)


def required_drivers(required: Sequence[Requirement]) -> frozenset[str]:
    """Return the drivers that requirements name: an attribute of NVIDIA's names its driver too."""
    named = required_values(required, "", DRIVER)
    return named or frozenset(each.domain for each in required if each.domain in DRIVERS)


def required_types(required: Sequence[Requirement]) -> frozenset[str]:
    """Return the types of NVIDIA devices that requirements leave, empty for none of NVIDIA's."""
    found = frozenset[str]()
    drivers = required_drivers(required)
    for driver in drivers & TYPES_OF_DRIVER.keys():
        types = TYPES_OF_DRIVER[driver]
        found |= types & required_values(required, driver, TYPE) or types
    return found | {OTHER} if found and not drivers <= TYPES_OF_DRIVER.keys() else found


def required_profiles(required: Sequence[Requirement]) -> frozenset[str]:
    """Return the MIG profiles that requirements leave, empty if they name none."""
    return required_values(required, GPU_DRIVER, PROFILE)


class DeviceClasses:
    """The device classes of a cluster. `briefs` are by name, None if they cannot be read."""

    __slots__ = ("briefs", "gpu_classes", "gpu_resources", "known", "resources", "settings")

    def __init__(
        self,
        settings: DeviceSettings,
        gpu_resources: Sequence[str],
        gpu_classes: Sequence[str],
        briefs: Mapping[str, Any] | None = None,
    ) -> None:
        self.settings = settings
        self.gpu_resources = gpu_resources
        self.gpu_classes = gpu_classes
        self.briefs = briefs or {}
        self.known: dict[str, frozenset[str]] = {}
        self.resources: dict[str, str] = {}
        for name, brief in sorted(self.briefs.items(), reverse=True):
            resource = brief.get("resource")
            if resource and self.is_later(brief, self.resources.get(resource)):
                self.resources[resource] = name

    def is_later(self, brief: Mapping[str, Any], other: str | None) -> bool:
        """Return whether a class was not created before another."""
        return other is None or brief.get("created", "") >= self.briefs[other].get("created", "")

    def types_of(self, name: str) -> frozenset[str]:
        """Return the types that devices of a class may have, {UNKNOWN} if nothing says it."""
        found = self.known.get(name)
        if found is None:
            found = self.find_types(name, self.briefs.get(name, {}))
            if name in self.briefs:  # users choose other names
                self.known[name] = found
        return found

    def find_types(self, name: str, brief: Mapping[str, Any]) -> frozenset[str]:
        """Find the types: by setting, by the drivers' charts, by the brief of the object."""
        stated = self.settings.class_types.get(name) or CLASS_TYPES.get(name)
        if stated is not None:
            return frozenset({stated})
        if "types" in brief:
            return frozenset(brief["types"])
        resource = brief.get("resource", "")
        if resource and any(fnmatchcase(resource, each) for each in self.gpu_resources):
            return frozenset({"mig" if MIG_RESOURCE in resource else "gpu"})
        return frozenset({OTHER if brief.get("drivers") else UNKNOWN})

    def is_gpu(self, name: str) -> bool:
        """Return whether devices of a class count as GPUs.

        A class without any selector counts: users may request every device with it.
        """
        types = self.types_of(name)
        if name in self.gpu_classes or not types.isdisjoint(GPU_TYPES):
            return True
        return UNKNOWN in types and name in self.briefs and "selected" not in self.briefs[name]

    def class_of_resource(self, resource: str) -> str | None:
        """Return the class behind an extended resource, by either of its names."""
        if resource.startswith(IMPLICIT_RESOURCE):
            return resource.removeprefix(IMPLICIT_RESOURCE)
        return self.resources.get(resource)

    def configs_of(self, name: str) -> tuple[DeviceConfig, ...]:
        """Return the opaque configurations of a class, shortened. Paths are those in the class."""
        return read_configs(self.briefs.get(name, {}).get("config"), CONFIGS)

    def types_of_option(self, option: Option) -> frozenset[str]:
        """Return the types of its class that its own selectors leave."""
        types = self.types_of(option.device_class)
        if len(types) == 1 and UNKNOWN not in types:
            return types
        required = required_types(read_selectors(option.selectors))
        return (required if UNKNOWN in types else types & required) or types

    def mig_profiles(self, option: Option) -> frozenset[str]:
        """Return the MIG profiles that an option may get, {ANY_PROFILE} if nothing says them.

        Empty if it cannot get a MIG device.
        """
        if "mig" not in self.types_of_option(option):
            return frozenset()
        own = required_profiles(read_selectors(option.selectors))
        given = frozenset(self.briefs.get(option.device_class, {}).get("profiles", ()))
        return own & given or own or given or frozenset({ANY_PROFILE})


class Same:
    """A key of a cache that is equal by identity."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.value is other.value


def device_classes_of(references: References, config: InstallationConfig) -> DeviceClasses:
    """Return the classes of a cluster, the same object for the same facts and settings."""
    return classes_of(Same(references.device_classes), Same(config))


@lru_cache(maxsize=4)
def classes_of(briefs: Same, config: Same) -> DeviceClasses:
    """Return the classes of briefs and an InstallationConfig."""
    of = config.value
    return DeviceClasses(of.devices, of.gpu_resources, of.gpu_classes, briefs.value)
