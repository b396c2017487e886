"""Mutated configurations are checked as a flat table of fields and values says.

The table is written by hand from the driver's Go types, and shares nothing with the program. A
configuration is a tree whose leaves are JSON texts, so that the table knows 50 from 50.0.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

import orjson
import pytest

from webhook.devices import configs
from webhook.devices.claim_view import DeviceConfig
from webhook.devices.gates import SINCE
from webhook.evaluation.device_settings import DeviceSettings

CASES: Final = 100_000
PARTS: Final = 10
VERSIONS: Final = ("25.3", "25.8", "25.12", "0.4", "0.5")
AT: Final = ("spec", "devices", "config", 3)
BELOW: Final = len(AT) + 2
UID: Final = "a1b2c3d4-0000-4000-8000-000000000001"

Tree = dict[str, Any]
Fault = tuple[tuple[str, ...], str, bool]

MPS: Final = """
sharing.mpsConfig object 25.3
sharing.mpsConfig.defaultActiveThreadPercentage percentage 25.3
sharing.mpsConfig.defaultPinnedDeviceMemoryLimit memory 25.3
sharing.mpsConfig.defaultPerDevicePinnedMemoryLimit limits 25.3
sharing.mpsConfig.multiUser boolean 0.5
"""
TABLE: Final = {
    "GpuConfig": f"""
        sharing object 25.3
        sharing.strategy strategy 25.3
        sharing.timeSlicingConfig object 25.3
        sharing.timeSlicingConfig.interval interval 25.3
        {MPS}""",
    "MigDeviceConfig": f"""
        sharing object 25.3
        sharing.strategy strategy 25.3
        {MPS}""",
    "VfioDeviceConfig": """
        iommu object 0.4
        iommu.backendPolicy backend 0.4
        iommu.enableAPIDevice boolean 0.4""",
    "ComputeDomainChannelConfig": """
        domainID domain 25.3
        allocationMode mode 25.8""",
    "ComputeDomainDaemonConfig": "domainID domain 25.3",
}
FIELDS: Final = {
    kind: {
        tuple(path.split(".")): (type_, since)
        for path, type_, since in (row.split() for row in text.strip().splitlines() if row.strip())
    }
    for kind, text in TABLE.items()
}
KIND_SINCE: Final = {kind: "25.12" if "Vfio" in kind else "25.3" for kind in TABLE}
GOOD, WRONG, REQUIRED = "", "invalid-value", "required"
MEMORY: Final = {
    **dict.fromkeys(
        ('"10Gi"', '"1Mi"', '" 2G "', "1048576", "2e9", "1048576.0", '"1048575.5"'), GOOD
    ),
    **dict.fromkeys(
        (
            '"1M"',
            "0",
            "-5",
            "7",
            "1.5",
            "1e99",
            "-0.0",
            '"-1Gi"',
            '"1m"',
            '"10E"',
            '"Gi"',  # a number without digits is 0
            "1e30",
            '"1048575"',
        ),
        WRONG,
    ),
    **dict.fromkeys(('""', '"1 Gi"', '"ten"', "true", "[]"), "type"),
}
VALUES: Final[dict[str, dict[str, str]]] = {
    "strategy": {
        '"TimeSlicing"': GOOD,
        '"MPS"': GOOD,
        '"mps"': WRONG,
        '""': WRONG,
        '"text"': WRONG,
    },
    "interval": {
        **dict.fromkeys(('"Default"', '"Short"', '"Medium"', '"Long"'), GOOD),
        **dict.fromkeys(('""', '"default"', '"Longer"', '"text"'), WRONG),
    },
    "percentage": {
        **dict.fromkeys(("0", "1", "7", "50", "100", "-0"), GOOD),
        **dict.fromkeys(("-1", "101", "9223372036854775807"), WRONG),
        **dict.fromkeys(("50.0", "5e1", "9223372036854775808", "-9223372036854775809"), "type"),
    },
    "memory": MEMORY,
    "boolean": {"true": GOOD, "false": GOOD, "0": "type", '"true"': "type"},
    "backend": {
        '"LegacyOnly"': GOOD,
        '"PreferIommuFD"': GOOD,
        '""': GOOD,
        '"legacyOnly"': WRONG,
        '"text"': WRONG,
    },
    "domain": {
        **dict.fromkeys((f'"{UID}"', '"a"', '"text"', '"A.b_c-1"', f'"{"x" * 63}"'), GOOD),
        **dict.fromkeys(('"../x"', '"a/b"', '"-a"', '"a."', f'"{"x" * 64}"', '"a\\n"'), WRONG),
        '""': REQUIRED,
    },
    "mode": {
        '"Single"': GOOD,
        '"All"': GOOD,
        '""': GOOD,
        '"all"': WRONG,
        '"Two"': WRONG,
        '"text"': WRONG,
    },
}
"""JSON texts of each type. Every other text, but null, is of another JSON type."""
DEVICES: Final = {
    "0": 0,
    "1": 1,
    "+3": 3,
    "-0": 0,
    "007": 7,
    f"GPU-{UID}": -1,
    f"MIG-{UID}": -1,
    **dict.fromkeys(
        (
            "-1",
            "",
            "x",
            "1_0",
            "\\u0661",
            "GPU-1",
            f"GPU-{UID.upper()}",
            UID,
            "1.0",
            "9223372036854775808",
        ),
        None,
    ),
}
"""Keys of limits: the index, -1 for a device's id, None for what is neither."""
ODD: Final = ("7", "1.5", '"text"', "true", "[]", '[{"a": 1}]', "null", '""', "1e99", "-0.0")
ODD_KEYS: Final = (
    "Sharing",
    "sharin",
    "metadata",
    "strategy",
    "interval",
    "multiuser",
    "domainId",
    "",
)


def newest(version: str, since: str) -> bool:
    return VERSIONS.index(version) >= VERSIONS.index(since)


def read(tree: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        tree = tree.get(key, "null") if isinstance(tree, dict) else "null"
    return tree


def expect(kind: str, tree: Tree, settings: DeviceSettings, devices: int | None) -> Counter[Fault]:
    """What the table says of a configuration."""
    version, found = settings.driver_version, Counter[Fault]()
    if not newest(version, KIND_SINCE[kind]):
        return Counter([(("kind",), "config-unreadable", False)])
    fields = {
        path: type_ for path, (type_, since) in FIELDS[kind].items() if newest(version, since)
    }
    strategy = {'"MPS"': "MPS", '"TimeSlicing"': "TimeSlicing"}.get(
        str(read(tree, ("sharing", "strategy")))
    )
    if ("sharing",) not in fields:
        strategy = None
    other = {"MPS": "timeSlicingConfig", "TimeSlicing": "mpsConfig"}.get(strategy or "")
    unused = ("sharing", other)
    for path, value in walk(tree, fields):
        type_ = fields.get(path)
        decoded_only = path[:2] == unused
        if type_ is None:
            found[path, "config-unknown-field", False] += 1
        elif value == "null":
            pass
        elif type_ in ("object", "limits"):
            if path == unused:
                warns = kind == "MigDeviceConfig"
                found[path, "config-unused" if warns else "config-conflict", warns] += 1
            if not isinstance(value, dict):
                found[path, WRONG, False] += 1
            elif type_ == "limits":
                for key, limit in value.items():
                    at = (*path, orjson.loads(f'"{key}"'))
                    found.update(
                        (at, WRONG, False) for _ in limit_faults(key, limit, devices, decoded_only)
                    )
        else:
            verdict = VALUES[type_].get(value, "type") if isinstance(value, str) else "type"
            if verdict == "type":
                found[path, WRONG, False] += 1
            elif verdict and not decoded_only:
                found[path, verdict, False] += 1
    for needed, parent in ((("sharing", "strategy"), ("sharing",)), (("domainID",), ())):
        if (
            needed in fields
            and isinstance(read(tree, parent), dict)
            and read(tree, needed) == "null"
        ):
            found[needed, REQUIRED, False] += 1
    found.update(gate_faults(kind, tree, strategy, fields, settings))
    return found


def limit_faults(key: str, limit: Any, devices: int | None, decoded_only: bool) -> Iterator[None]:
    verdict = MEMORY.get(limit, "type") if isinstance(limit, str) else "type"
    verdict = WRONG if limit == "null" else verdict
    if verdict == "type" or (verdict and not decoded_only):
        yield
    index = DEVICES.get(key)
    if not decoded_only and (index is None or (devices is not None and index >= devices)):
        yield


def gate_faults(
    kind: str, tree: Tree, strategy: str | None, fields: Any, settings: DeviceSettings
) -> Iterator[Fault]:
    gates = settings.gates
    at = ("sharing", "strategy")
    if strategy == "TimeSlicing" and gates.get("TimeSlicingSettings") is False:
        yield at, "config-gate", False
    if strategy == "MPS":
        if gates.get("MPSSupport") is False:
            yield at, "config-gate", False
        for gate in ("DynamicMIG", "ConsumableShares"):
            if gates.get(gate):
                yield at, "config-conflict", False
    if kind == "VfioDeviceConfig":
        if gates.get("PassthroughSupport") is False:
            yield ("kind",), "config-gate", False
        api = ("iommu", "enableAPIDevice")
        if api in fields and read(tree, api) == "true" and gates.get("DeviceMetadata") is False:
            yield api, "config-gate", True
    if kind == "ComputeDomainDaemonConfig":
        mode = settings.imex_mode
        if mode == "hostManaged" or (not mode and gates.get("HostManagedIMEXDaemon")):
            yield ("kind",), "config-conflict", False


def walk(
    tree: Tree, fields: Any, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every key with its value, not below keys that the kind has not, nor below devices."""
    for key, value in tree.items():
        at = (*path, key)
        yield at, value
        if fields.get(at) == "object" and isinstance(value, dict):
            yield from walk(value, fields, at)


def make(chance: random.Random, kind: str) -> Tree:
    """A tree with some fields of every version of a kind, most with good values."""
    tree: Tree = {}
    for path, (type_, _) in FIELDS[kind].items():
        parent = read(tree, path[:-1])
        if isinstance(parent, dict) and chance.random() < (0.9 if type_ == "strategy" else 0.6):
            parent[path[-1]] = value_for(chance, type_)
    for _ in range(chance.choice((0, 0, 1, 1, 2))):
        mutate(chance, tree)
    return tree


def value_for(chance: random.Random, type_: str) -> Any:
    if type_ == "object":
        return {}
    if type_ == "limits":
        keys = chance.sample(sorted(DEVICES), chance.randrange(3))
        return {key: value_for(chance, "memory") for key in keys}
    good = [text for text, verdict in VALUES[type_].items() if not verdict]
    return chance.choice(good if chance.random() < 0.8 else [*VALUES[type_], "null"])


def mutate(chance: random.Random, tree: Tree) -> None:
    """Change one object somewhere in a tree."""
    inner = [each for key, each in tree.items() if isinstance(each, dict)]
    if inner and chance.random() < 0.7 and (found := chance.choice(inner)) is not None:
        is_limits = set(found) <= set(DEVICES) and found
        if not is_limits:
            return mutate(chance, found)
    way = chance.randrange(4)
    keys = sorted(tree)
    if way == 0 or not keys:
        tree[chance.choice(ODD_KEYS)] = chance.choice((*ODD, {}, {"strategy": "1"}))
    elif way == 1:
        tree[chance.choice(keys)] = chance.choice((*ODD, {}))
    elif way == 2:
        del tree[chance.choice(keys)]
    else:
        old = chance.choice(keys)
        tree[chance.choice((old.upper(), old + " ", "x" + old))] = tree.pop(old)
    return None


def text_of(tree: Any) -> str:
    if isinstance(tree, str):
        return tree
    return "{" + ", ".join(f'"{key}": {text_of(each)}' for key, each in tree.items()) + "}"


def settings_for(chance: random.Random) -> DeviceSettings:
    gates = {gate: chance.random() < 0.5 for gate in SINCE if chance.random() < 0.2}
    modes: Any = ("", "driverManaged", "hostManaged")
    versions: Any = VERSIONS
    return DeviceSettings(chance.choice(versions), gates, imex_mode=chance.choice(modes))


@pytest.mark.parametrize("part", range(PARTS))
def test_mutated_configurations_are_checked_as_the_table_says(part: int) -> None:
    chance, kinds, told = random.Random(part), sorted(TABLE), Counter[str]()
    settings = [settings_for(chance) for _ in range(200)]
    for _ in range(CASES // PARTS):
        kind, chosen = chance.choice(kinds), chance.choice(settings)
        devices = chance.choice((None, 1, 2, 8))
        tree = make(chance, kind)
        head = {"apiVersion": '"resource.nvidia.com/v1beta1"', "kind": f'"{kind}"'}
        text = text_of({**head, **tree})
        driver = "compute-domain.nvidia.com" if "Domain" in kind else "gpu.nvidia.com"
        config = DeviceConfig(AT, (), driver, orjson.loads(text))
        found = configs.check_config(config, chosen, devices)
        assert all(each.path[:BELOW] == config.parameters_path for each in found)
        faults = Counter((each.path[BELOW:], each.reason, each.warning) for each in found)
        assert faults == expect(kind, tree, chosen, devices), (text, chosen, devices)
        told.update(each.reason for each in found)
        told["nothing"] += not found
    # The cases are worth something only if they find every reason, and often nothing.
    reasons = ("invalid-value", "required", "config-gate", "config-conflict", "config-unused")
    for reason in (*reasons, "config-unknown-field", "config-unreadable", "nothing"):
        assert told[reason] > 50, told
