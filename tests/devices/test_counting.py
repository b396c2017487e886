"""Tests for the number of devices of a claim."""

from __future__ import annotations

from typing import Any

import pytest

from webhook.devices.claim_view import read_claim
from webhook.devices.counting import count_devices

Json = dict[str, Any]
GPU, MIG, NIC = "gpu.nvidia.com", "mig.nvidia.com", "nic.example.com"


def asked(name: str = GPU, **body: Any) -> Json:
    return {"deviceClassName": name, **body}


def first(*alternatives: Json) -> Json:
    return {"firstAvailable": [{"name": f"a{at}", **each} for at, each in enumerate(alternatives)]}


@pytest.mark.parametrize(
    ("requests", "expected"),
    [
        ([], (0, False)),
        ([asked()], (1, False)),
        ([asked(count=3)], (3, False)),
        ([asked(allocationMode="ExactCount", count=3)], (3, False)),
        ([asked(allocationMode="All")], (1, True)),
        ([asked(allocationMode="Later", count=1)], (1, True)),
        ([asked(count="3")], (1, True)),
        ([asked(count=-3), asked(count=2)], (2, False)),
        ([asked(NIC, count=9)], (0, False)),
        ([asked(NIC, allocationMode="All")], (0, False)),
        ([asked(count=1), asked(MIG, count=2)], (3, False)),
        ([asked(count=4, adminAccess=True)], (0, False)),
        ([asked(allocationMode="All", adminAccess=True)], (0, False)),
        ([asked(count=2, capacity={"requests": {"memory": "4Gi"}})], (2, False)),
        ([first(asked(count=1), asked(count=4))], (4, False)),
        ([first(asked(NIC, count=9), asked(count=1))], (1, False)),
        ([first(asked(count=2), asked(allocationMode="All"))], (2, True)),
        ([first(asked(count=2), asked(NIC, allocationMode="All"))], (2, False)),
        ([first(asked(count=2), asked(count=1)), asked(count=3)], (5, False)),
    ],
)
def test_counts(requests: list[Json], expected: tuple[int, bool]) -> None:
    flat = [{"name": f"r{at}", **each} for at, each in enumerate(requests)]
    nested = [
        {"name": each["name"], "exactly": each} if "deviceClassName" in each else each
        for each in flat
    ]
    for listed in (flat, nested):
        view = read_claim({"devices": {"requests": listed}})
        assert count_devices(view, {GPU, MIG}.__contains__) == expected
