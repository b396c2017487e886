"""Checks a claim or class as a whole: which configuration is for which request.

What a finding says is the same for all checks of this module: of `config-mismatch` and
`config-unused`, `value` is the kind or request that is named, `allowed` what fits there, and `key`
why it does not: types of devices, a driver, or the path of another configuration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from webhook.devices.claim_view import (
    ALL,
    EXACT,
    MOST_MEMBERS,
    ClaimView,
    DeviceConfig,
    DeviceRequest,
    Option,
    items,
    part,
    read_claim,
    read_configs,
    text_of,
)
from webhook.devices.classes import CONFIGS, DeviceClasses, class_brief
from webhook.devices.config_schemas import TIME_SLICING
from webhook.devices.configs import check_config, find_incomplete
from webhook.devices.effective import (
    CLEARS_REQUESTS,
    CONFIG_TYPES,
    EffectiveConfig,
    applies,
    effective_configs,
    names_all,
    type_of_config,
)
from webhook.devices.finding import Finding
from webhook.devices.kinds import (
    CHANNEL_TYPES,
    GPU_DRIVER,
    GPU_TYPES,
    TYPES_OF_DRIVER,
    UNKNOWN,
)
from webhook.evaluation.device_settings import DeviceSettings
from webhook.objects.path import Path, display

PARTITION: Final = "gpu.nvidia.com/partition"
PASSTHROUGH: Final = "PassthroughSupport"
PARTITIONING: Final = "FabricManagerPartitioning"
HOST_MANAGED: Final = "HostManagedIMEXDaemon"
SINGLE: Final = "Single"
CHECKS_ADMIN_ACCESS: Final = "0.5"
"""The first version of the driver that refuses administrative access itself."""
WHOLE_GPUS: Final = frozenset({"gpu", "vfio"})
VFIO: Final = frozenset({"vfio"})


def check_claim(
    spec: Any, path: Path, classes: DeviceClasses, settings: DeviceSettings
) -> list[Finding]:
    """Return the faults of a DeviceClaim spec that is at `path`, sorted by path."""
    claim = CheckedClaim(read_claim(spec, path), classes, settings)
    found = [
        finding
        for config in claim.view.configs[:MOST_MEMBERS]
        for finding in check_config(config, settings, claim.devices_of(config))
    ]
    if not claim.view.is_oversized:
        found += [finding for check in CHECKS for finding in check(claim)]
    return sorted(found, key=order_of)


def check_class(
    body: Mapping[str, Any], classes: DeviceClasses, settings: DeviceSettings
) -> list[Finding]:
    """Return the faults of a DeviceClass, sorted by path. Its types are those of this object."""
    configs = read_configs(part(body.get("spec")).get("config"), CONFIGS)
    name = text_of(part(body.get("metadata")).get("name"))
    types = classes.find_types(name, class_brief(body))
    found = []
    for config in configs:
        found += check_config(config, settings)
        found += find_incomplete(config, settings)
        found += find_wrong_driver(config)
        found += find_all_channels(config, settings)
        path = (*config.parameters_path, "kind")
        kind = text_of(part(config.parameters).get("kind"))
        for each in find_mismatch(config, types, path, kind):
            # A driver skips devices of other drivers, and nobody has named them here.
            fails = not types.isdisjoint(TYPES_OF_DRIVER[config.driver])
            found.append(each if fails else each._replace(reason="config-unused", warning=True))
    for config, later in find_same_type(configs):
        key = display(later.path)
        found.append(Finding(config.path, "config-unused", name, key=key, warning=True))
    return sorted(found, key=order_of)


def find_same_type(
    configs: Sequence[DeviceConfig],
) -> Iterator[tuple[DeviceConfig, DeviceConfig]]:
    """Return each configuration of a class that another one replaces, with the last of its type."""
    last = {type_of_config(each): each for each in configs}
    for config in configs:
        wanted = type_of_config(config)
        if wanted and last[wanted] is not config:
            yield config, last[wanted]


def order_of(finding: Finding) -> tuple[Any, ...]:
    """Sort by path, indices as numbers, then by reason."""
    steps = tuple((isinstance(step, str), step) for step in finding.path)
    return steps, finding.reason, finding.key


class CheckedClaim:
    """A claim with the configurations that take effect for each option."""

    __slots__ = ("classes", "effective", "settings", "types", "view")

    def __init__(self, view: ClaimView, classes: DeviceClasses, settings: DeviceSettings) -> None:
        self.view = view
        self.classes = classes
        self.settings = settings
        options = () if view.is_oversized else tuple(view.options)
        self.types = {each.path: classes.types_of_option(each) for each in options}
        self.effective: dict[Path, dict[str, EffectiveConfig | None]] = {
            each.path: effective_configs(view, each, classes, settings) for each in options
        }

    def types_of(self, request: DeviceRequest) -> frozenset[str]:
        """Return the types that a request may get, over its alternatives."""
        return frozenset().union(*(self.types[each.path] for each in request.options))

    def uses(self, config: DeviceConfig, option: Option) -> bool:
        """Return whether a configuration of the claim takes effect for an option."""
        found = self.effective[option.path].get(type_of_config(config))
        return found is not None and found.config is config

    def devices_of(self, config: DeviceConfig) -> int | None:
        """Return the number of devices that a configuration applies to, None if it is not exact."""
        total = 0
        for request in self.view.requests if not self.view.is_oversized else ():
            using = [each for each in request.options if self.uses(config, each)]
            if not using:
                continue
            count = using[0].count
            if request.listed or count is None or len(self.types[using[0].path]) > 1:
                return None
            if UNKNOWN in self.types[using[0].path] and not config.requests:
                return None
            total += count
        return total or None


def find_wrong_driver(config: DeviceConfig) -> Iterator[Finding]:
    """X1: a kind that the driver does not have."""
    kind = text_of(part(config.parameters).get("kind"))
    types = TYPES_OF_DRIVER.get(config.driver)
    if types is not None and kind in CONFIG_TYPES and CONFIG_TYPES[kind] not in types:
        own = ", ".join(each for each, wanted in CONFIG_TYPES.items() if wanted in types)
        path = (*config.parameters_path, "kind")
        yield Finding(path, "config-mismatch", kind, own, config.driver)


def find_wrong_drivers(claim: CheckedClaim) -> Iterator[Finding]:
    """X1 of each configuration."""
    for config in claim.view.configs:
        yield from find_wrong_driver(config)


def find_mismatch(
    config: DeviceConfig, types: frozenset[str], path: Path, value: str
) -> Iterator[Finding]:
    """X2: a configuration that is not for the devices that it names."""
    wanted = type_of_config(config)
    if wanted and UNKNOWN not in types and wanted not in types:
        yield Finding(path, "config-mismatch", value, wanted, ", ".join(sorted(types)))


def find_wrong_targets(claim: CheckedClaim) -> Iterator[Finding]:
    """X2 and X3: names of requests that a configuration cannot be for."""
    view, minor = claim.view, claim.settings.kubernetes_minor
    options = {each.name: each for each in view.options}
    lists = {each.name: each for each in view.requests if each.listed}
    for config in view.configs:
        for index, name in enumerate(config.requests):
            path = (*config.path, "requests", index)
            if name in options:
                types = claim.types[options[name].path]
                yield from find_mismatch(config, types, path, name)
            elif name in lists and type_of_config(config):
                names = ", ".join(each.name for each in lists[name].options)
                if minor < CLEARS_REQUESTS or not names_all(config, view):
                    yield Finding(path, "config-unused", name, names, warning=True)


def find_no_target(claim: CheckedClaim) -> Iterator[Finding]:
    """X4: a configuration for all requests of a type that no request has."""
    types = frozenset().union(*claim.types.values())
    for config in claim.view.configs:
        wanted = type_of_config(config)
        if wanted and not config.requests and types and types.isdisjoint({wanted, UNKNOWN}):
            kind, found = config.parameters["kind"], ", ".join(sorted(types))
            yield Finding(config.path, "config-unused", kind, wanted, found, warning=True)


def find_replaced(claim: CheckedClaim) -> Iterator[Finding]:
    """X5: a configuration that a later one replaces for a request, however specific it is."""
    for config in claim.view.configs:
        wanted = type_of_config(config)
        for option in claim.view.options if wanted else ():
            winner = claim.effective[option.path].get(wanted)
            is_for = applies(config, claim.view, option, claim.settings)
            if is_for and winner is not None and winner.config is not config:
                later = display(winner.config.path)
                yield Finding(config.path, "config-unused", option.name, key=later, warning=True)
                break


def find_several_vfio(claim: CheckedClaim) -> Iterator[Finding]:
    """X6: more than one configuration for passthrough devices, the driver's default being one."""
    if claim.settings.is_off(PASSTHROUGH):
        return
    chosen: dict[object, DeviceRequest] = {}
    for request in claim.view.requests:
        if claim.types_of(request) == VFIO:
            kept = {identify(claim.effective[each.path]["vfio"], each) for each in request.options}
            if len(kept) == 1:  # else it depends on the alternative
                chosen.setdefault(kept.pop(), request)
    if len(chosen) > 1:
        _, second, *_ = chosen.values()
        names = ", ".join(each.name for each in chosen.values())
        own = [each.path for each in claim.view.configs if type_of_config(each) == "vfio"]
        yield Finding(own[-1] if own else second.path, "config-conflict", names, key=PASSTHROUGH)


def identify(found: EffectiveConfig | None, option: Option) -> object:
    """Return what a configuration is by. One of a class is one for each request of the class."""
    if found is None:
        return None
    return found.config.path if found.place == "claim" else (option.name, found.config.path)


def find_vfio_beside(claim: CheckedClaim) -> Iterator[Finding]:
    """X7: passthrough devices beside other GPUs. The driver takes for granted that there are none."""
    others = [
        each.name
        for each in claim.view.requests
        if claim.types_of(each) and claim.types_of(each) <= {"gpu", "mig"}
    ]
    for request in claim.view.requests if others else ():
        if claim.types_of(request) == VFIO:
            (option, *_) = request.options
            path = (*option.path, "deviceClassName")
            value, key = option.device_class, ", ".join(others)
            yield Finding(path, "config-conflict", value, key=key, warning=True)


def find_vfio_gate(claim: CheckedClaim) -> Iterator[Finding]:
    """Passthrough devices where the driver has none."""
    for option in claim.view.options if claim.settings.is_off(PASSTHROUGH) else ():
        if claim.types[option.path] == VFIO:
            path = (*option.path, "deviceClassName")
            value = option.device_class
            yield Finding(path, "config-gate", value, key=PASSTHROUGH, warning=True)


def find_admin_access(claim: CheckedClaim) -> Iterator[Finding]:
    """X8 and X9: administrative access together with a configuration, or to what has no whole GPU.

    The driver counts configurations of the class too, and those for all requests whatever their
    kind is.
    """
    checks = claim.settings.driver_version == CHECKS_ADMIN_ACCESS
    for option in claim.view.options:
        if not option.admin_access:
            continue
        types = claim.types[option.path]
        path = (*option.path, "adminAccess")
        if checks and types <= {"mig", "vfio"}:
            yield Finding(path, "config-admin-access", "true", key=", ".join(sorted(types)))
        elif checks and any(
            each.driver == GPU_DRIVER for each in claim.classes.configs_of(option.device_class)
        ):
            yield Finding(path, "config-admin-access", "true", key=option.device_class)
        for config in claim.view.configs:
            if config.driver != GPU_DRIVER:
                continue
            if option.name in config.requests:
                path = (*config.path, "requests", config.requests.index(option.name))
                if checks or slices_time(config):
                    yield Finding(path, "config-admin-access", option.name, key="adminAccess")
            elif checks and not config.requests and types <= GPU_TYPES:
                yield Finding(config.path, "config-admin-access", option.name, key="adminAccess")


def slices_time(config: DeviceConfig) -> bool:
    """Return whether a configuration shares devices by time slices."""
    return part(part(config.parameters).get("sharing")).get("strategy") == TIME_SLICING


def find_several_channels(claim: CheckedClaim) -> Iterator[Finding]:
    """X10: more than one device for a configuration of a channel or daemon."""
    for config in claim.view.configs:
        if type_of_config(config) not in CHANNEL_TYPES:
            continue
        known = [
            [
                each
                for each in request.options
                if claim.uses(config, each) and may_take(claim, config, each)
            ]
            for request in claim.view.requests
        ]
        using = [options for options in known if options]
        kind = config.parameters["kind"]
        if len(using) > 1:
            names = ", ".join(options[0].name for options in using)
            yield Finding(config.path, "config-conflict", names, "1", kind)
        for option in (each for options in using for each in options):
            if option.mode != EXACT:
                path = (*option.path, "allocationMode")
                yield Finding(path, "config-conflict", option.mode, EXACT, kind)
            elif (option.count or 1) > 1:
                path = (*option.path, "count")
                yield Finding(path, "config-conflict", str(option.count), "1", kind)


def may_take(claim: CheckedClaim, config: DeviceConfig, option: Option) -> bool:
    """Return whether an option is known to get the devices of a configuration."""
    return bool(config.requests) or UNKNOWN not in claim.types[option.path]


def find_no_partition(claim: CheckedClaim) -> Iterator[Finding]:
    """X11: several whole GPUs that need not be a partition of the fabric."""
    if not claim.settings.is_on(PARTITIONING):
        return
    names, total = [], 0
    for request in claim.view.requests:
        types = claim.types_of(request)
        if types.isdisjoint({*WHOLE_GPUS, UNKNOWN}):
            continue
        count = request.options[0].count
        if request.listed or count is None or not types <= WHOLE_GPUS:
            return  # how many there will be is not known
        names.append(request.name)
        total += count
    wanted = f"{PARTITION}{total}"
    is_bound = any(
        each.get("matchAttribute") == wanted
        and (not each.get("requests") or all(name in items(each["requests"]) for name in names))
        for each in claim.view.constraints
    )
    if total > 1 and not is_bound:
        path = (*claim.view.path, "devices", "constraints")
        yield Finding(path, "required", None, wanted, PARTITIONING)


def find_all_channels(config: DeviceConfig, settings: DeviceSettings) -> Iterator[Finding]:
    """X12: all channels, where administrators run the IMEX daemons and there is always one."""
    wants_all = part(config.parameters).get("allocationMode") == ALL
    if wants_all and type_of_config(config) == "channel" and settings.is_host_managed():
        path = (*config.parameters_path, "allocationMode")
        yield Finding(path, "config-unused", ALL, SINGLE, HOST_MANAGED, warning=True)


def find_all_channels_of(claim: CheckedClaim) -> Iterator[Finding]:
    """X12 of each configuration."""
    for config in claim.view.configs:
        yield from find_all_channels(config, claim.settings)


CHECKS: Final[tuple[Callable[[CheckedClaim], Iterator[Finding]], ...]] = (
    find_wrong_drivers,
    find_wrong_targets,
    find_no_target,
    find_replaced,
    find_several_vfio,
    find_vfio_beside,
    find_vfio_gate,
    find_admin_access,
    find_several_channels,
    find_no_partition,
    find_all_channels_of,
)
