"""Checks the opaque configurations of NVIDIA's drivers, as the driver does on the node.

The driver decodes strictly, and only when a pod starts: what it would refuse there leaves the pod
waiting. A feature gate that is not set in the settings is unknown, and refuses nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from webhook.devices.claim_view import (
    ClaimView,
    DeviceConfig,
    part,
    read_claim,
    read_configs,
    text_of,
)
from webhook.devices.config_schemas import (
    API_VERSION,
    DAEMON_CONFIG,
    DEFAULT_INTERVAL,
    GATES,
    GPU_CONFIG,
    INTERVAL,
    MPS,
    SCHEMAS,
    TIME_SLICING,
    VERSIONS,
    VFIO_CONFIG,
    Field,
    has_it,
    kinds_of,
)
from webhook.devices.finding import Finding
from webhook.devices.kinds import DRIVERS, GPU_DRIVER
from webhook.documents import texts
from webhook.documents.suggestions import closest
from webhook.evaluation.device_settings import DeviceSettings
from webhook.objects import quantity
from webhook.objects.path import Path

MOST_FINDINGS: Final = 100
"""For one configuration. Its keys are the user's, who may write a million of them."""
LONGEST_MEANT: Final = 64
"""Longer keys are no misspelt ones, and are slow to compare."""
MOST_LIMITS: Final = 2_000
"""Entries of limits by device. API servers refuse parameters above 10 KiB, which have fewer."""
MEBIBYTE: Final = 2**20
LARGEST: Final = 2**63 - 1
LABEL: Final = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
INDEX: Final = re.compile(r"([+-]?)0*([0-9]{1,19})")
# NVML writes them in lower case, and the driver compares them as they are.
UUID: Final = re.compile(r"(?:GPU|MIG)(?:-[0-9a-f]{8})(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
TYPES: Final = {
    "text": "text",
    "boolean": "true or false",
    "quantity": quantity.WANTED,
    "object": "an object",
    "limits": "an object of devices and quantities",
}


@dataclass(frozen=True, slots=True)
class Context:
    """What the checks of the fields depend on. `devices` as in `check_config`.

    Without `values` only keys and types are checked: the driver decodes them all, and reads only
    the values of the strategy in use.
    """

    settings: DeviceSettings
    devices: int | None
    values: bool = True

    def without_values(self) -> Context:
        """Return the context of a part that the driver decodes and does not use."""
        return Context(self.settings, self.devices, values=False)


def check_config(
    config: DeviceConfig, settings: DeviceSettings, devices: int | None = None
) -> list[Finding]:
    """Return the faults of one configuration, none for other drivers than NVIDIA's.

    `devices` is the exact number of devices that it applies to, None if that is not known. What the
    rest of the claim has to do with it is checked in claim_checks.
    """
    if config.driver not in DRIVERS:
        return []
    unreadable = list(find_unreadable(config, settings))
    found = unreadable or check_kind(config, Context(settings, devices))
    return list(islice(found, MOST_FINDINGS))


def kind_of(config: DeviceConfig) -> str:
    """Return the kind of a configuration of NVIDIA's drivers, "" if it cannot be read."""
    body = part(config.parameters) if config.driver in DRIVERS else {}
    kind = text_of(body.get("kind"))
    return kind if kind in SCHEMAS and body.get("apiVersion") == API_VERSION else ""


def complete_config(config: DeviceConfig, settings: DeviceSettings) -> list[tuple[Path, Any]]:
    """Return the values to write into a configuration, with their paths in the object.

    The only one is the interval of an empty time slicing configuration: drivers up to 0.5.0 crash
    without it, and later ones take this value. Nothing is written if the checks are off.
    """
    if settings.checks == "off" or config.driver != GPU_DRIVER or kind_of(config) != GPU_CONFIG:
        return []
    sharing = part(config.parameters.get("sharing"))
    slicing = sharing.get("timeSlicingConfig")
    if sharing.get("strategy") != TIME_SLICING or not isinstance(slicing, dict):
        return []
    if slicing.get("interval") is not None:
        return []
    path = (*config.parameters_path, "sharing", "timeSlicingConfig", "interval")
    return [(path, DEFAULT_INTERVAL)]


def find_incomplete(config: DeviceConfig, settings: DeviceSettings) -> list[Finding]:
    """Return what `complete_config` would write, for objects into which nothing is written.

    The last driver version completes it itself since its second release, so there it is a warning.
    """
    completes = settings.driver_version == VERSIONS[-1]
    return [
        Finding(path, "required", None, wanted(INTERVAL), warning=completes)
        for path, _ in complete_config(config, settings)
    ]


def find_unreadable(config: DeviceConfig, settings: DeviceSettings) -> Iterator[Finding]:
    """Return why a configuration cannot be read at all."""
    body, path, reason = config.parameters, config.parameters_path, "config-unreadable"
    if not isinstance(body, dict):
        yield Finding(path, reason, None if body is None else show(body), "an object", "parameters")
        return
    missing = [key for key in ("apiVersion", "kind") if not text_of(body.get(key))]
    for key in missing:
        found = body.get(key)
        yield Finding(path, reason, None if found is None else show(found), TYPES["text"], key)
    if missing:
        return
    if body["apiVersion"] != API_VERSION:
        only_warn = settings.unknown_version == "warn"
        found = show(body["apiVersion"])
        yield Finding((*path, "apiVersion"), reason, found, API_VERSION, warning=only_warn)
        return
    kinds = kinds_of(settings.driver_version)
    if body["kind"] not in kinds:
        yield Finding((*path, "kind"), reason, show(body["kind"]), ", ".join(kinds))


def check_kind(config: DeviceConfig, context: Context) -> Iterator[Finding]:
    """Return the faults of a configuration whose kind is known."""
    body, path, settings = config.parameters, config.parameters_path, context.settings
    kind = body["kind"]
    if kind == VFIO_CONFIG and settings.is_off("PassthroughSupport"):
        yield Finding((*path, "kind"), "config-gate", kind, key="PassthroughSupport")
    if kind == DAEMON_CONFIG and settings.is_host_managed():
        yield Finding((*path, "kind"), "config-conflict", kind, key="HostManagedIMEXDaemon")
    rest = {key: value for key, value in body.items() if key not in ("apiVersion", "kind")}
    yield from check_fields(rest, SCHEMAS[kind].fields, path, context)
    if kind == VFIO_CONFIG:
        yield from check_api_device(body, path, settings)


def check_fields(
    body: Mapping[str, Any], fields: Mapping[str, Field], path: Path, context: Context
) -> Iterator[Finding]:
    """Return the faults of an object's keys and values. null is absence."""
    strategy = body.get("strategy") if "strategy" in fields else None
    known = strategy if isinstance(strategy, str) and strategy in GATES else ""
    version = context.settings.driver_version
    for key, value in body.items():
        at, field = (*path, key), fields.get(key)
        if field is None or not has_it(field.since, version):
            yield unknown_field(at, key, fields, context.settings)
        elif value is not None:
            used = not field.strategy or not known or field.strategy == known
            if not used:
                warns = field.otherwise == "config-unused"
                other = f"strategy {known}"
                yield Finding(at, field.otherwise, key, field.strategy, other, warns)
            yield from check_value(value, field, at, context if used else context.without_values())
    for key, field in fields.items():
        if field.required and body.get(key) is None:
            yield Finding((*path, key), "required", None, wanted(field))
    if known:
        yield from check_strategy(known, (*path, "strategy"), context.settings)


def check_value(value: Any, field: Field, path: Path, context: Context) -> Iterator[Finding]:
    """Return the faults of a value that is present."""
    if not has_type(value, field):
        yield Finding(path, "invalid-value", show(value), wanted(field))
    elif field.type == "object":
        yield from check_fields(value, field.fields, path, context)
    elif field.type == "limits" and len(value) > MOST_LIMITS:
        found = f"{len(value)} entries"
        yield Finding(path, "invalid-value", found, f"at most {MOST_LIMITS} entries")
    elif field.type == "limits":
        for key, limit in value.items():
            yield from check_limit(key, limit, (*path, key), context)
    elif not context.values:
        return
    elif field.required and value == "" and field.label:
        yield Finding(path, "required", None, wanted(field))
    elif not is_allowed(value, field):
        yield Finding(path, "invalid-value", show(value), wanted(field))


def check_limit(key: str, limit: Any, path: Path, context: Context) -> Iterator[Finding]:
    """Return the faults of an entry of the limits by device: its key and its quantity.

    A quantity of null is 0 here, and too small: only at optional fields null is absence.
    """
    limit = 0 if limit is None else limit
    if not is_quantity(limit):
        yield Finding(path, "invalid-value", show(limit), TYPES["quantity"])
    elif context.values and not is_mebibyte(limit):
        yield Finding(path, "invalid-value", show(limit), wanted(Field("quantity")))
    if context.values and not is_device(key, context.devices):
        count = context.devices
        below = "" if count is None else f" below {count}"
        allowed = f"the UUID of a GPU or MIG device, or an index{below}"
        yield Finding(path, "invalid-value", texts.show_value(key), allowed, key="device")


def check_strategy(strategy: str, path: Path, settings: DeviceSettings) -> Iterator[Finding]:
    """Return the faults of a known sharing strategy with the driver's feature gates."""
    if settings.is_off(GATES[strategy]):
        yield Finding(path, "config-gate", strategy, key=GATES[strategy])
    if strategy == MPS:
        for gate in ("DynamicMIG", "ConsumableShares"):
            if settings.is_on(gate):
                yield Finding(path, "config-conflict", strategy, key=gate)


def check_api_device(
    body: Mapping[str, Any], path: Path, settings: DeviceSettings
) -> Iterator[Finding]:
    """Warn of an API device without the feature gate that the driver's manual demands for it."""
    enabled = part(body.get("iommu")).get("enableAPIDevice") is True
    has_field = has_it(SCHEMAS[VFIO_CONFIG].fields["iommu"].since, settings.driver_version)
    if enabled and has_field and settings.is_off("DeviceMetadata"):
        at = (*path, "iommu", "enableAPIDevice")
        yield Finding(at, "config-gate", "true", key="DeviceMetadata", warning=True)


def unknown_field(
    path: Path, key: str, fields: Mapping[str, Field], settings: DeviceSettings
) -> Finding:
    """Return the finding of an unknown key: what was meant, or the first version that has it."""
    version = settings.driver_version
    if key in fields:
        return Finding(path, "config-unknown-field", show(key), None, fields[key].since)
    names = [name for name, each in fields.items() if has_it(each.since, version)]
    meant = closest(key, names) if len(key) <= LONGEST_MEANT else None
    return Finding(path, "config-unknown-field", show(key), meant)


def has_type(value: Any, field: Field) -> bool:
    """Return whether a value is of the field's JSON type, as Go decodes it."""
    match field.type:
        case "text":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            whole = isinstance(value, int) and not isinstance(value, bool)
            return whole and -LARGEST - 1 <= value <= LARGEST
        case "quantity":
            return is_quantity(value)
        case "object" | "limits":
            return isinstance(value, dict)


def is_allowed(value: Any, field: Field) -> bool:
    """Return whether a value of the right type is one that the driver accepts."""
    if field.type == "quantity":
        return is_mebibyte(value)
    if field.range is not None:
        return bool(field.range[0] <= value <= field.range[1])
    if field.label:
        return LABEL.fullmatch(value) is not None
    return not field.choices or value in field.choices or (field.blank and value == "")


def wanted(field: Field) -> str:
    """Return what may be in a field, as text."""
    if field.choices:
        return ", ".join(field.choices)
    if field.range is not None:
        return f"a whole number from {field.range[0]} to {field.range[1]}"
    if field.label:
        return "the UID of a ComputeDomain"
    return "a quantity of 1Mi or more" if field.type == "quantity" else TYPES[field.type]


def is_quantity(value: Any) -> bool:
    """Return whether Kubernetes reads a value as a quantity: text, or a number."""
    try:
        quantity.parse(value)
    except quantity.QuantityError:
        return False
    return True


def is_mebibyte(value: str | float) -> bool:
    """Return whether a quantity is 1 MiB or more, in whole bytes that fit into 64 bit.

    The driver reads larger ones as 0 or as any other number.
    """
    size = -(-quantity.parse(value) // quantity.NANO)
    return MEBIBYTE <= size <= LARGEST


def is_device(key: str, devices: int | None) -> bool:
    """Return whether a key can be a device: a UUID, or an index as Go's Atoi reads it."""
    if UUID.fullmatch(key):
        return True
    match = INDEX.fullmatch(key)
    if match is None:
        return False
    index = -int(match[2]) if match[1] == "-" else int(match[2])
    return 0 <= index <= LARGEST and (devices is None or index < devices)


def show(value: Any) -> str:
    """Return a value as short text. Objects, lists and endless numbers are only named."""
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    if isinstance(value, int) and abs(value) > 2**64:
        return "a number beyond 64 bit"
    return texts.show_value(value)


class RepeatedKeys(dict[str, Any]):
    """An object of JSON in which a key is given twice."""


def find_repeated_keys(raw: bytes) -> list[Path]:
    """Return the paths of `parameters` below which a key is given twice, from the object's root.

    `raw` is the body of an AdmissionReview of a claim, a template or a class, that is already known
    to be JSON. The driver refuses such parameters; decoded JSON does not show them any more. It
    reads the body once more, so the validating pass is the one to ask: by then the API server has
    refused parameters above 10 KiB.
    """
    try:
        review = json.loads(
            raw, object_pairs_hook=keep_repeated, parse_int=str, parse_float=str, parse_constant=str
        )
    except (ValueError, RecursionError, MemoryError):
        return []
    body = part(part(part(review).get("request")).get("object"))
    spec, inner = part(body.get("spec")), part(part(body.get("spec")).get("spec"))
    claims: list[ClaimView] = [read_claim(spec), read_claim(inner, ("spec", "spec"))]
    configs = [*read_configs(spec.get("config"), ("spec",))]
    configs += [each for claim in claims for each in claim.configs]
    return [
        each.parameters_path
        for each in configs
        if each.driver in DRIVERS and has_repeated(each.parameters)
    ]


def keep_repeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object of pairs, marked if a key is given twice."""
    body = dict(pairs)
    return body if len(body) == len(pairs) else RepeatedKeys(body)


def has_repeated(value: Any) -> bool:
    """Return whether any object in a value has a key given twice."""
    level = [value]
    while level:
        if any(isinstance(each, RepeatedKeys) for each in level):
            return True
        level = [
            inner
            for each in level
            if isinstance(each, dict | list)
            for inner in (each.values() if isinstance(each, dict) else each)
        ]
    return False
