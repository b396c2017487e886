"""Tests for the checks of ComputeDomains (CD1 to CD6)."""

from __future__ import annotations

from typing import Any

import pytest

from webhook.devices.briefs import claim_brief
from webhook.devices.domains import check_domain
from webhook.devices.kinds import DOMAIN_TEMPLATE, TEMPLATE
from webhook.evaluation.device_settings import DeviceSettings
from webhook.evaluation.references import References
from webhook.objects.path import display

Json = dict[str, Any]
NAME = "spec.channel.resourceClaimTemplate.name"
NODES, MODE = "spec.numNodes", "spec.channel.allocationMode"
DNS = "IMEXDaemonsWithDNSNames"


def domain(name: Any = "chan", mode: str = "Single", **spec: Any) -> Json:
    channel = {"resourceClaimTemplate": {"name": name}, "allocationMode": mode}
    metadata = {"name": "d", "namespace": "team"}
    return {"metadata": metadata, "spec": {"channel": channel, **spec}}


def check(body: Json, claims: Json | None = None, **settings: Any) -> list[tuple[str, str, bool]]:
    references = References(claims=claims or {})  # type: ignore[arg-type]
    found = check_domain(body, references, DeviceSettings(**settings))
    return [(display(each.path), each.reason, each.warning) for each in found]


@pytest.mark.parametrize("name", ["chan", "a.b-c.d", "0", "x" * 253, "x." * 126 + "x"])
def test_names_that_a_template_can_have(name: str) -> None:
    assert check(domain(name, numNodes=0)) == []


@pytest.mark.parametrize(
    "name", ["", "Not A Name", "UPPER", "-a", "a-", "a..b", "a/b", "a\n", "x" * 254, None, 3]
)
def test_names_that_no_template_can_have(name: Any) -> None:
    assert check(domain(name)) == [(NAME, "invalid-value", False)]


def template(**labels: str) -> Json:
    body = {"metadata": {"labels": labels}, "spec": {"spec": {"devices": {"requests": []}}}}
    return claim_brief(TEMPLATE, body)


@pytest.mark.parametrize(
    ("claims", "clashes"),
    [
        ({(TEMPLATE, "team", "chan"): template()}, True),
        (
            {(TEMPLATE, "team", "chan"): template(**{"resource.nvidia.com/computeDomain": "u"})},
            False,
        ),
        ({(TEMPLATE, "other", "chan"): template()}, False),
        ({(DOMAIN_TEMPLATE, "team", "chan"): {"domains": ["e"]}}, True),
        ({(DOMAIN_TEMPLATE, "team", "chan"): {"domains": ["d", "e"]}}, True),
        ({(DOMAIN_TEMPLATE, "team", "chan"): {"domains": ["d"]}}, False),
    ],
)
def test_templates_of_that_name(claims: Json, clashes: bool) -> None:
    assert check(domain(), claims) == ([(NAME, "name-clash", True)] if clashes else [])


@pytest.mark.parametrize(
    ("nodes", "settings", "expected"),
    [
        (18, {}, []),
        (19, {}, ["max"]),
        (19, {"most_nodes": 36}, []),
        (0, {"gates": {DNS: False}}, ["config-gate"]),
        (None, {"gates": {DNS: False}}, ["config-gate"]),
        (4, {"gates": {DNS: False}}, []),
        (4, {"gates": {DNS: True}}, ["config-unused"]),
        (0, {"gates": {DNS: True}}, []),
        (19, {"gates": {DNS: True}}, ["config-unused", "max"]),
        (4, {}, []),
    ],
)
def test_numbers_of_nodes(nodes: int | None, settings: Json, expected: list[str]) -> None:
    found = check(domain(numNodes=nodes), **settings)
    assert sorted(found) == [(NODES, reason, True) for reason in expected]


def test_all_channels_where_administrators_run_imex() -> None:
    for settings in ({"imex_mode": "hostManaged"}, {"gates": {"HostManagedIMEXDaemon": True}}):
        assert check(domain(mode="All"), **settings) == [(MODE, "config-unused", True)]
        assert check(domain(mode="Single"), **settings) == []
    assert check(domain(mode="All")) == []


@pytest.mark.parametrize("body", [{}, {"spec": None}, {"spec": {}}, {"spec": 3}])
def test_a_domain_without_a_channel(body: Json) -> None:
    assert check(body) == [("spec.channel", "required", False)]
