"""total.gpuDevices: over components, through updates, and as far as a scale review can tell."""

from __future__ import annotations

from typing import Any

import pytest

from tests.building import catalog, container, reasons
from tests.decision.test_scale import scaled
from webhook.evaluation.outcome import Allowed

MOST = "rules: {total: {gpuDevices: {max: 8}}}"


def gpus(count: int) -> dict[str, Any]:
    return container(resources={"limits": {"nvidia.com/gpu": count}})


@pytest.mark.parametrize(
    ("policy", "numbers", "told"),
    [
        (MOST, (100, 1), ["unseen-gpus"]),
        (MOST, (1, 100), []),
        (MOST, (100, 100), []),
        (MOST, (None, 4), []),
        # One GPU a pod at most: eight pods cannot be too many, nine can.
        (
            "rules: {total: {gpuDevices: {max: 8}}, compute: {gpuDevicesRequest: {max: 1}}}",
            (8, 1),
            [],
        ),
        (
            "rules: {total: {gpuDevices: {max: 8}}, compute: {gpuDevicesRequest: {max: 1}}}",
            (9, 1),
            ["unseen-gpus"],
        ),
        # A minimum that is not required says nothing of pods without GPUs.
        (
            "rules: {total: {gpuDevices: {max: 8}}, compute: {gpuDevicesRequest: {min: 2}}}",
            (9, 1),
            ["unseen-gpus"],
        ),
        ("rules: {total: {gpuDevices: {min: 8}}}", (9, 1), []),
        ("rules: {total: {devices: {max: 8}}}", (9, 1), ["unseen-gpus"]),
        (
            "rules: {total: {devices: {max: 8}}, devices: {perPod: {max: 1}}}",
            (9, 1),
            ["unseen-gpus"],
        ),
        ("rules: {total: {devices: {max: 8}}, devices: {perPod: {max: 1}}}", (8, 1), []),
    ],
)
def test_a_scale_review_warns_of_a_total_that_it_cannot_see(
    policy: str, numbers: tuple[Any, Any], told: list[str]
) -> None:
    decision = scaled(catalog(policy), *numbers)
    assert isinstance(decision, Allowed)
    assert [each.reason for each in decision.warnings] == told


@pytest.mark.parametrize("fewest", ["required: true", "required: true, min: -5"])
def test_no_pod_counts_as_fewer_than_no_gpus(fewest: str) -> None:
    rules = f"rules: {{total: {{gpuDevices: {{max: -1}}}}, compute: {{gpuDevicesRequest: {{{fewest}}}}}}}"
    assert reasons(scaled(catalog(rules), 1, 0)) == [("total.gpuDevices", "max")]


def test_a_scale_review_refuses_what_is_surely_too_much() -> None:
    rules = catalog(
        "rules: {total: {gpuDevices: {max: 8}},"
        " compute: {gpuDevicesRequest: {required: true, min: 2}}}"
    )
    assert isinstance(scaled(rules, 4, 1), Allowed)
    assert reasons(scaled(rules, 5, 1)) == [("total.gpuDevices", "max")]
    assert isinstance(scaled(rules, 5, 6), Allowed)
