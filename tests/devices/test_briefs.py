"""Tests for briefs of claims, templates and domains."""

from __future__ import annotations

import json
from typing import Any

import pytest

from webhook.devices.briefs import (
    LARGEST,
    LONGEST_SELECTOR,
    PER_DEVICE,
    TOO_LARGE,
    claim_brief,
    domain_brief,
    read_known_claim,
)
from webhook.devices.claim_view import ClaimView, read_claim
from webhook.devices.classes import DeviceClasses
from webhook.devices.config_schemas import API_VERSION
from webhook.devices.counting import count_devices
from webhook.devices.kinds import CLAIM, TEMPLATE
from webhook.evaluation.device_settings import DeviceSettings

Json = dict[str, Any]
PROFILE = "device.attributes['gpu.nvidia.com'].profile == '1g.5gb'"
MPS = {
    "strategy": "MPS",
    "mpsConfig": {
        "defaultActiveThreadPercentage": 50,
        "defaultPinnedDeviceMemoryLimit": "4Gi",
        "defaultPerDevicePinnedMemoryLimit": {"0": "2Gi"},
        "multiUser": True,
    },
}
EXACT: Json = {
    "deviceClassName": "mig.nvidia.com",
    "allocationMode": "ExactCount",
    "count": 2,
    "adminAccess": True,
    "selectors": [{"cel": {"expression": PROFILE}}],
    "tolerations": [{"key": "a", "operator": "Exists", "effect": "NoExecute"}],
    "capacity": {"requests": {"memory": "4Gi", "shares": "1"}},
}


def config(**parameters: Any) -> Json:
    versioned = {"apiVersion": API_VERSION, **parameters}
    return {"requests": ["r"], "opaque": {"driver": "gpu.nvidia.com", "parameters": versioned}}


def brief_of(requests: Any, configs: Any = None, **metadata: Any) -> Json:
    spec = {"devices": {"requests": requests, "config": configs, "constraints": [{}]}}
    return claim_brief(CLAIM, {"metadata": metadata, "spec": spec})


def view_of(brief: Json) -> ClaimView:
    view = read_known_claim(json.loads(json.dumps(brief)))
    assert view is not None
    return view


@pytest.mark.parametrize(
    "request_body",
    [
        {"name": "r", "exactly": EXACT},
        {"name": "r", **EXACT},
        {"name": "r", "firstAvailable": [{"name": "a", **EXACT}, {"name": "b", **EXACT}]},
    ],
)
def test_a_brief_reads_as_the_whole_claim(request_body: Json) -> None:
    spec = {
        "devices": {"requests": [request_body], "config": [config(kind="GpuConfig", sharing=MPS)]}
    }
    whole, brief = read_claim(spec), view_of(claim_brief(CLAIM, {"spec": spec}))
    template = claim_brief(TEMPLATE, {"spec": {"metadata": {}, "spec": spec}})
    assert view_of(template) == brief
    for one, other in zip(whole.options, brief.options, strict=True):
        assert (one.path, one.name, one.count) == (other.path, other.name, other.count)
        assert (one.admin_access, one.selectors) == (True, other.selectors)
        assert one.body["capacity"] == other.body["capacity"]
        assert other.body["tolerations"] == [{"key": "a"}]
    (one_config,), (other_config,) = whole.configs, brief.configs
    assert one_config.requests == other_config.requests
    assert one_config.parameters["sharing"] == other_config.parameters["sharing"] == MPS


def test_a_long_selector_keeps_what_podgate_reads_and_equals_no_other() -> None:
    classes = DeviceClasses(DeviceSettings(), (), ())
    ends = [" && device.attributes['x.y'].z < " + str(each) * LONGEST_SELECTOR for each in (1, 2)]
    texts = []
    for end in ends:
        selectors = [{"cel": {"expression": PROFILE + end}}]
        exact = {"deviceClassName": "mig.nvidia.com", "selectors": selectors}
        (option,) = view_of(brief_of([{"name": "r", "exactly": exact}])).options
        assert classes.mig_profiles(option) == {"1g.5gb"}
        assert len(option.selectors[0]) <= LONGEST_SELECTOR
        texts += option.selectors
    assert len({*texts, PROFILE}) == 3


@pytest.mark.parametrize(
    "read",
    ["device.attributes['x.y'].profile == 'a'", "device.attributes['gpu.nvidia.com'].uuid == 'a'"],
)
def test_a_long_selector_keeps_nothing_else(read: str) -> None:
    exact = {"selectors": [{"cel": {"expression": f"{read} // {'x' * LONGEST_SELECTOR}"}}]}
    (option,) = view_of(brief_of([{"name": "r", "exactly": exact}])).options
    assert option.selectors[0].startswith("true // ")


def test_texts_in_a_profile_cannot_change_a_brief() -> None:
    hostile = "device.attributes['gpu.nvidia.com'].profile == \"' || 'x' == 'x\"" + " " * 200
    exact = {"deviceClassName": "mig.nvidia.com", "selectors": [{"cel": {"expression": hostile}}]}
    (option,) = view_of(brief_of([{"name": "r", "exactly": exact}])).options
    assert option.selectors[0].startswith("true // ")


def test_of_other_drivers_only_the_name_is_kept() -> None:
    opaque = {"driver": "nic.example.com", "parameters": {"kind": "GpuConfig", "a": 1}}
    assert brief_of([], [{"opaque": opaque}])["devices"]["config"] == [
        {"opaque": {"driver": "nic.example.com"}}
    ]


def test_unknown_members_of_parameters_are_dropped() -> None:
    brief = brief_of([], [config(kind="GpuConfig", sharing={"strategy": "MPS", "x": 1}, y=2)])
    (kept,) = view_of(brief).configs
    assert kept.parameters == {
        "apiVersion": API_VERSION,
        "kind": "GpuConfig",
        "sharing": {"strategy": "MPS"},
    }


def test_a_brief_has_a_limit_beyond_which_the_claim_is_unknown() -> None:
    many = [
        {
            "name": f"{number}-{'r' * 50}",
            "exactly": {**EXACT, "selectors": [{"cel": {"expression": "x" * 10_000}}] * 32},
        }
        for number in range(32)
    ]
    brief = brief_of(many)
    assert brief == TOO_LARGE
    assert read_known_claim(brief) is None
    assert len(json.dumps(brief_of(many[:1]))) < LARGEST


@pytest.mark.parametrize(
    "broken", [None, 1, "x", [], {"devices": 1}, {"devices": {"requests": {}}}]
)
def test_broken_claims_have_a_brief(broken: Any) -> None:
    assert view_of(claim_brief(CLAIM, {"spec": broken})).requests == ()
    assert view_of(claim_brief(TEMPLATE, {"spec": broken})).requests == ()
    assert read_known_claim(None) is None


def test_values_that_no_api_server_accepts_are_left_out() -> None:
    deep: Any = "!"
    for _ in range(5000):
        deep = [deep]
    exact = {"deviceClassName": deep, "count": deep, "capacity": {"requests": {"memory": deep}}}
    limits: list[Any] = ["1Gi", {"0": deep, "1": "1Gi"}]
    configs = [config(sharing={"mpsConfig": {PER_DEVICE: each}}) for each in limits]
    brief = brief_of(
        [{"name": deep, "exactly": exact}, {"name": deep, "firstAvailable": [deep, exact]}],
        [
            *configs,
            config(kind=deep, sharing=deep, iommu={"backendPolicy": deep}),
            {"requests": [deep]},
        ],
    )
    assert "!" not in json.dumps(brief)
    text, map_of, *_ = [each.parameters for each in view_of(brief).configs]
    assert text["sharing"] == {"mpsConfig": {PER_DEVICE: "1Gi"}}
    assert map_of["sharing"] == {"mpsConfig": {PER_DEVICE: {"0": "", "1": "1Gi"}}}
    assert [each.count for each in view_of(brief).options] == [None, None]


def test_a_template_of_the_drivers_controller_is_marked() -> None:
    labels = {"resource.nvidia.com/computeDomain": "uid"}
    body: Json = {"metadata": {"labels": labels}, "spec": {"spec": {"devices": {"requests": []}}}}
    assert claim_brief(TEMPLATE, body)["domain"] is True
    assert "domain" not in claim_brief(TEMPLATE, {**body, "metadata": {}})


def test_a_domain_is_the_template_that_it_creates() -> None:
    channel = {"resourceClaimTemplate": {"name": "chan"}, "allocationMode": "All"}
    brief = domain_brief({"metadata": {"name": "d"}, "spec": {"channel": channel}})
    assert (brief["domain"], brief["template"]) == ("d", "chan")
    view = view_of(brief)
    (option,), (made,) = view.options, view.configs
    assert DeviceClasses(DeviceSettings(), (), ()).types_of(option.device_class) == {"channel"}
    assert (made.requests, made.parameters["allocationMode"]) == ((option.name,), "All")
    assert count_devices(view, lambda name: name == "gpu.nvidia.com") == (0, False)
    assert domain_brief({"spec": 3})["template"] == ""
