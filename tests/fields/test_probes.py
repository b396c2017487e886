"""Readiness probes: on every kind, after a skipped mutation, and with values that are no probes."""

from __future__ import annotations

from typing import Any

import pytest

from tests import building

DEFAULTS = """
defaults:
  probes:
    readiness: {periodSeconds: 5, handler: {httpGet: {port: 8080, path: /ready}}}
"""
RULES = """
rules:
  probes:
    readiness: {failureThreshold: {max: 5}, handler: {httpGet: {port: {min: 1024}}}}
"""
JUNK = [7, True, "x", [7], [None], {"a": 1}]


@pytest.mark.parametrize("kind", building.KINDS)
def test_a_probe_is_written_once_on_every_kind(kind: str) -> None:
    rules = building.catalog(DEFAULTS + RULES)
    building.result(rules, building.served(building.KINDS[kind]()))


def test_the_server_may_fill_in_what_we_have_left_open() -> None:
    rules = building.catalog(DEFAULTS)
    written = building.result(rules, building.served(building.deployment()))
    again = building.result(rules, building.served(written))
    probe = again["spec"]["template"]["spec"]["containers"][0]["readinessProbe"]
    assert probe["periodSeconds"] == 5
    assert probe["timeoutSeconds"] == 1


def test_a_fixed_number_that_is_missing_in_the_final_object_is_refused() -> None:
    fixed = "rules: {probes: {readiness: {periodSeconds: {canEdit: false}}}}"
    rules = building.catalog(DEFAULTS + fixed)
    probed = building.container(readinessProbe={"tcpSocket": {"port": 80}})
    decision = building.validated(rules, building.raycluster(probed))
    assert building.reasons(decision) == [("probes.readiness.periodSeconds", "canEdit")]


@pytest.mark.parametrize("junk", JUNK, ids=str)
@pytest.mark.parametrize("key", ["readinessProbe", "ports"])
def test_values_of_other_types_are_decided_on(key: str, junk: Any) -> None:
    rules = building.catalog(DEFAULTS + RULES)
    probe = {"readinessProbe": {"httpGet": {"port": "http"}}, key: junk}
    building.mutated(rules, building.raycluster(building.container(**probe)))
    building.validated(rules, building.raycluster(building.container(**probe)))


@pytest.mark.parametrize("junk", JUNK, ids=str)
def test_handlers_and_ports_of_other_types_are_decided_on(junk: Any) -> None:
    rules = building.catalog(DEFAULTS + RULES)
    for probe in ({"httpGet": junk}, {"exec": junk}, {"httpGet": {"port": junk}}):
        document = building.raycluster(building.container(readinessProbe=probe))
        building.mutated(rules, document)
        building.validated(rules, document)
