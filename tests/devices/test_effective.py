"""Tests for the configurations that take effect."""

from __future__ import annotations

from typing import Any

import pytest

from webhook.devices.claim_view import read_claim
from webhook.devices.classes import DeviceClasses, class_brief
from webhook.devices.effective import effective_configs
from webhook.evaluation.device_settings import DeviceSettings

Json = dict[str, Any]
GPU, MIG = "gpu.nvidia.com", "mig.nvidia.com"


def config(kind: str, *requests: str, driver: str = GPU) -> Json:
    return {"requests": [*requests], "opaque": {"driver": driver, "parameters": {"kind": kind}}}


def gpu(*requests: str) -> Json:
    return config("GpuConfig", *requests)


def mig(*requests: str) -> Json:
    return config("MigDeviceConfig", *requests)


CLASSES = {
    "set": {
        "selectors": [{"cel": {"expression": "device.attributes['gpu.nvidia.com'].type == 'gpu'"}}],
        "config": [gpu(), gpu(), mig()],
    },
    "any": {"selectors": [{"cel": {"expression": "device.driver == 'gpu.nvidia.com'"}}]},
    "nic": {"selectors": [{"cel": {"expression": "device.driver == 'x.y'"}}]},
}


def look(
    configs: list[Json], device_class: str = GPU, minor: int = 0, at: int = 0
) -> dict[str, str | None]:
    """Return place and index of the effective configurations of one option, by device type.

    The claim has a request `a`, and a list `m` of alternatives `x` and `y`.
    """
    known = DeviceSettings(kubernetes_minor=minor)
    briefs = {name: class_brief({"spec": spec}) for name, spec in CLASSES.items()}
    classes = DeviceClasses(known, (), (), briefs)
    requests = [
        {"name": "a", "deviceClassName": device_class},
        {
            "name": "m",
            "firstAvailable": [
                {"name": "x", "deviceClassName": device_class},
                {"name": "y", "deviceClassName": MIG},
            ],
        },
    ]
    view = read_claim({"devices": {"requests": requests, "config": configs}})
    option = list(view.options)[at]
    found = effective_configs(view, option, classes, known)
    return {
        each: None if of is None else f"{of.place} {of.config.path[-1]}"
        for each, of in found.items()
    }


@pytest.mark.parametrize(
    ("configs", "device_class", "expected"),
    [
        ([], GPU, {"gpu": None}),
        ([gpu()], GPU, {"gpu": "claim 0"}),
        ([gpu("a"), gpu()], GPU, {"gpu": "claim 1"}),
        ([gpu(), gpu("a")], GPU, {"gpu": "claim 1"}),
        ([gpu("a"), gpu("m/x")], GPU, {"gpu": "claim 0"}),
        ([gpu("a"), mig()], GPU, {"gpu": "claim 0"}),
        ([mig("a")], GPU, {"gpu": None}),
        ([config("GpuConfig", driver="compute-domain.nvidia.com")], GPU, {"gpu": None}),
        ([config("GpuConfig", driver="nic.example.com")], GPU, {"gpu": None}),
        ([], "set", {"gpu": "class 1"}),
        ([gpu("a")], "set", {"gpu": "claim 0"}),
        ([gpu("m/y"), mig()], "set", {"gpu": "class 1"}),
        ([], "any", {"gpu": None, "mig": None, "vfio": None}),
        ([gpu(), mig("a"), gpu()], "any", {"gpu": "claim 2", "mig": "claim 1", "vfio": None}),
        ([], "unknown", {}),
        ([gpu(), mig(), gpu("m/x")], "unknown", {"gpu": "claim 0", "mig": "claim 1"}),
        ([gpu()], "nic", {}),
    ],
)
def test_the_last_that_applies_wins(
    configs: list[Json], device_class: str, expected: dict[str, str | None]
) -> None:
    assert look(configs, device_class) == expected


@pytest.mark.parametrize(
    ("configs", "at", "minor", "expected"),
    [
        ([gpu("m/x")], 1, 36, {"gpu": "claim 0"}),
        ([gpu("m/x")], 2, 36, {"mig": None}),
        ([gpu("m/x"), mig("m/y")], 2, 36, {"mig": "claim 1"}),
        ([gpu("m")], 1, 36, {"gpu": None}),
        ([gpu("m")], 1, 37, {"gpu": None}),
        ([gpu("m", "a")], 1, 0, {"gpu": None}),
        ([gpu("m", "a")], 1, 36, {"gpu": None}),
        ([gpu("m", "a")], 1, 37, {"gpu": "claim 0"}),
        ([gpu("m", "a")], 2, 37, {"mig": None}),
        ([gpu("m", "a")], 0, 36, {"gpu": "claim 0"}),
        ([gpu()], 1, 36, {"gpu": "claim 0"}),
    ],
)
def test_alternatives_are_named_with_their_request(
    configs: list[Json], at: int, minor: int, expected: dict[str, str | None]
) -> None:
    assert look(configs, minor=minor, at=at) == expected


def test_an_oversized_claim_has_none() -> None:
    assert look([gpu()] * 100) == {}
