"""Generates opaque parameters of NVIDIA's drivers as JSON text: right ones, and ones changed at random."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

GPU, DOMAIN, OTHER = "gpu.nvidia.com", "compute-domain.nvidia.com", "gpu.example.com"
API_VERSION = "resource.nvidia.com/v1beta1"
UUID = "GPU-8f2b0c11-9a4e-4b2a-8f65-0c1d2e3f4a5b"


@dataclass(frozen=True)
class Literal:
    """A JSON value as it is written, such as a number that Python would write otherwise."""

    text: str


@dataclass
class Members:
    """A JSON object, which may have a key twice."""

    pairs: list[tuple[str, Any]]


@dataclass(frozen=True)
class Generated:
    """One configuration: its driver, and its parameters as JSON text, None if it has none."""

    driver: str
    parameters: str | None


Change = Callable[[random.Random, Members], None]

STRATEGIES = ("TimeSlicing", "TimeSlicing", "MPS", "MPS", "MPS", "mps", "", "Exclusive", " MPS")
INTERVALS = ("Default", "Short", "Medium", "Long", "Long", "", "default", "Shortest")
PERCENTAGES = (
    *("0", "1", "25", "50", "100", "-0"),
    *("-1", "101", "50.0", "5e1", "1e2", "0.5", "9223372036854775807", "-9223372036854775808"),
    *("9223372036854775808", "18446744073709551616", "1e300", '"50"', "true"),
)
QUANTITIES = (
    *('"1Mi"', '"10Gi"', '" 1Gi "', '"1048576"', "1048576", '"1.5Gi"', '"1e9"', '"2G"', '"+1Gi"'),
    *(
        '"1M"',
        '"1048575"',
        "1048575.5",
        '"0"',
        '"-1Gi"',
        '"1m"',
        '"1Ki"',
        "0",
        "-5",
        "1e7",
        "1.5e6",
    ),
    *('""', '" "', '"abc"', '"1 Gi"', '"1gi"', '"1GiB"', '"0x10"', '".5Gi"', '"1e"', '"1E"'),
    *('"8Ei"', '"7Ei"', '"1e30"', '"9223372036854775807"', '"9223372036854775808"', "true", "[]"),
    *('"1_000Mi"', '"٣Gi"', '"null"', '"Infinity"', '"1Gi\\n"'),
)
DEVICES = (
    *("0", "1", "2", "7", "-1", "+1", "00", "-0", "1.0", " 1", "1 ", "0x1", "", "all", "1e0"),
    *(UUID, UUID.replace("GPU", "MIG"), UUID.lower(), UUID[:-1], "9223372036854775808", "٣"),
)
POLICIES = ("LegacyOnly", "PreferIommuFD", "", "legacyOnly", "PreferIommuFd", "None")
BOOLEANS = ("true", "false", "null", '"true"', "1", "0")
DOMAINS = (
    *("8f2b0c11-9a4e-4b2a-8f65-0c1d2e3f4a5b", "a", "A.b_c-d", "x" * 63, "0"),
    *("", ".", "..", "a/b", "a%2fb", "../x", "-a", "a-", "_a", "a b", "x" * 64, "é", "a\n", " a"),
)
MODES = ("Single", "All", "", "single", "Some")
ODD = (
    *("null", "true", "0", "-1", "1.5", '""', '"text"', "[]", "{}", '[{"a": 1}]', '{"a": 1}'),
    *("1e300", '"null"', "[null]", '"\\u0000"', '"{}"'),
)
"""Values of every JSON type, for places that want another."""
KINDS = (
    *("GpuConfig", "MigDeviceConfig", "VfioDeviceConfig"),
    *("ComputeDomainChannelConfig", "ComputeDomainDaemonConfig"),
    *("ComputeDomain", "ComputeDomainClique", "ComputeDomainList", "gpuConfig", "GpuConfigs"),
    *("DeleteOptions", "ListOptions", "Status", "WatchEvent", "ImexChannelConfig", ""),
)
VERSIONS = (
    *("resource.nvidia.com/v1", "resource.nvidia.com/v1beta2", "resource.nvidia.com", "v1beta1"),
    *("gpu.resource.nvidia.com/v1alpha1", "Resource.nvidia.com/v1beta1", "/v1beta1", "", "v1"),
    *("resource.nvidia.com/v1beta1/x", " resource.nvidia.com/v1beta1", "resource.nvidia.com/"),
)
KEYS = (
    *("metadata", "spec", "sharing", "strategy", "timeSlicingConfig", "timeSlice", "interval"),
    *("mpsConfig", "multiUser", "maxConnections", "defaultActiveThreadPercentage", "iommu"),
    *("backendPolicy", "enableAPIDevice", "domainID", "domainId", "allocationMode", "a.b", ""),
    *("APIVersion", "Kind", "Sharing", "Strategy", "numNodes", "__proto__"),
)


def generate(seed: str, count: int) -> Iterator[Generated]:
    """Yield configurations that this seed alone decides."""
    chance = random.Random(seed)
    for _ in range(count):
        driver, parameters = make_parameters(chance)
        if chance.random() < 0.02:
            yield Generated(driver, chance.choice((None, *ODD)))
            continue
        for _ in range(chance.choices((0, 1, 2, 4), (35, 45, 15, 5))[0]):
            change(chance, parameters)
        yield Generated(driver, write(parameters))


def make_parameters(chance: random.Random) -> tuple[str, Members]:
    """Return a driver and parameters for it, of which most are right ones."""
    kind = chance.choice(KINDS[:5])
    driver = DOMAIN if kind.startswith("ComputeDomain") else GPU
    body: list[tuple[str, Any]] = [("apiVersion", API_VERSION), ("kind", kind)]
    match kind:
        case "GpuConfig" | "MigDeviceConfig":
            body += some(chance, 0.9, ("sharing", make_sharing(chance, kind)))
        case "VfioDeviceConfig":
            body += some(chance, 0.8, ("iommu", make_iommu(chance)))
        case "ComputeDomainChannelConfig":
            body += some(chance, 0.95, ("domainID", often_first(chance, DOMAINS)))
            body += some(chance, 0.6, ("allocationMode", often_first(chance, MODES)))
        case _:
            body += some(chance, 0.95, ("domainID", often_first(chance, DOMAINS)))
    chance.shuffle(body)
    return often_first(chance, (driver, *(driver,) * 3, GPU, DOMAIN, OTHER)), Members(body)


def make_sharing(chance: random.Random, kind: str) -> Members:
    """Return how a device is shared, with the settings of its strategy or, seldom, of both."""
    strategy = often_first(chance, (chance.choice(STRATEGIES[:4]), *STRATEGIES))
    pairs: list[tuple[str, Any]] = some(chance, 0.97, ("strategy", strategy))
    slicing, mps = 0.8 * (strategy == "TimeSlicing"), 0.9 * (strategy == "MPS")
    if kind == "GpuConfig":
        interval = some(chance, 0.93, ("interval", often_first(chance, INTERVALS)))
        pairs += some(chance, slicing or 0.1, ("timeSlicingConfig", Members(interval)))
    pairs += some(chance, mps or 0.1, ("mpsConfig", make_mps(chance)))
    return Members(pairs)


def make_mps(chance: random.Random) -> Members:
    """Return the settings of MPS."""
    limits: dict[str, Any] = {
        often_first(chance, DEVICES): Literal(often_first(chance, QUANTITIES))
        for _ in range(chance.randrange(4))
    }
    return Members(
        some(
            chance,
            0.7,
            ("defaultActiveThreadPercentage", Literal(often_first(chance, PERCENTAGES))),
        )
        + some(
            chance,
            0.5,
            ("defaultPinnedDeviceMemoryLimit", Literal(often_first(chance, QUANTITIES))),
        )
        + some(chance, 0.4, ("defaultPerDevicePinnedMemoryLimit", Members(list(limits.items()))))
        + some(chance, 0.2, ("multiUser", Literal(often_first(chance, BOOLEANS))))
    )


def make_iommu(chance: random.Random) -> Members:
    """Return how a device is passed through."""
    return Members(
        some(chance, 0.8, ("backendPolicy", often_first(chance, POLICIES)))
        + some(chance, 0.6, ("enableAPIDevice", Literal(often_first(chance, BOOLEANS))))
    )


def some(chance: random.Random, share: float, pair: tuple[str, Any]) -> list[tuple[str, Any]]:
    """Return a member in this share of the cases, else none."""
    return [pair] if chance.random() < share else []


def often_first(chance: random.Random, values: tuple[str, ...]) -> str:
    """Return a value, in most cases one of the first, which are right in their place."""
    return chance.choice(values[: 1 + len(values) // 4] if chance.random() < 0.7 else values)


def change(chance: random.Random, body: Members) -> None:
    """Change one object of the parameters, at any depth."""
    chance.choice(CHANGES)(chance, chance.choice(objects_of(body)))


def objects_of(body: Members) -> list[Members]:
    """Return an object and all that are in it."""
    inner = [value for _, value in body.pairs if isinstance(value, Members)]
    return [body, *(each for value in inner for each in objects_of(value))]


def replace_value(chance: random.Random, body: Members) -> None:
    """Write another value, odd ones included, at a key that is there."""
    if not body.pairs:
        return
    at = chance.randrange(len(body.pairs))
    key = body.pairs[at][0]
    pools = {"kind": KINDS, "apiVersion": VERSIONS, "strategy": STRATEGIES, "domainID": DOMAINS}
    pool = [*map(json.dumps, pools.get(key, ())), *ODD]
    body.pairs[at] = key, Literal(chance.choice(pool))


def remove_key(chance: random.Random, body: Members) -> None:
    """Remove a key."""
    if body.pairs:
        body.pairs.pop(chance.randrange(len(body.pairs)))


def add_key(chance: random.Random, body: Members) -> None:
    """Add a key that some object of some kind has, or none."""
    at = chance.randrange(len(body.pairs) + 1)
    body.pairs.insert(at, (chance.choice(KEYS), Literal(chance.choice(ODD))))


def repeat_key(chance: random.Random, body: Members) -> None:
    """Give a key twice, with the same value or another."""
    if body.pairs:
        key, value = chance.choice(body.pairs)
        other = Literal(chance.choice(ODD)) if chance.random() < 0.5 else value
        body.pairs.insert(chance.randrange(len(body.pairs) + 1), (key, other))


def change_case(chance: random.Random, body: Members) -> None:
    """Write a key in another case."""
    if body.pairs:
        at = chance.randrange(len(body.pairs))
        key, value = body.pairs[at]
        found = chance.choice((key.lower(), key.upper(), key[:1].swapcase() + key[1:]))
        body.pairs[at] = found, value


CHANGES: tuple[Change, ...] = (replace_value, remove_key, add_key, repeat_key, change_case)


def write(value: Any) -> str:
    """Return a value as JSON text."""
    if isinstance(value, Literal):
        return value.text
    if isinstance(value, Members):
        pairs = (f"{json.dumps(key)}: {write(each)}" for key, each in value.pairs)
        return f"{{{', '.join(pairs)}}}"
    return json.dumps(value)
