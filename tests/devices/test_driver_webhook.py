"""The webhook and the plugin of NVIDIA's driver beside our checks, on generated configurations."""

from __future__ import annotations

import functools
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import orjson
import pytest

from tests.devices.driver_beyond import BEYOND, Beyond
from tests.devices.driver_parameters import API_VERSION, DOMAIN, GPU, UUID, Generated, generate
from tests.devices.driver_webhook import CRASHED, DriverWebhook, review, running
from tests.devices.test_driver_cases import catalog_of
from tests.e2e.conftest import bed_or_skip
from tests.e2e.testbed import programs
from webhook.admission.judge import decide_review
from webhook.admission.review import parse_review
from webhook.devices import configs
from webhook.devices.claim_checks import check_claim
from webhook.devices.claim_view import DeviceConfig, read_claim
from webhook.devices.classes import DeviceClasses
from webhook.devices.finding import Finding
from webhook.evaluation.device_settings import DeviceSettings
from webhook.evaluation.outcome import Denied
from webhook.evaluation.references import References
from webhook.evaluation.request import Request, Stage

SEED = 20261123
COUNT = int(os.environ.get("PODGATE_DRIVER_CONFIGS", "4000"))
"""For each of the settings."""
EVERY = "PODGATE_DRIVER_CONFIGS" in os.environ
AT_ONCE = 50
SLICING, MPS = "TimeSlicingSettings", "MPSSupport"
IN_TESTS = ("0.5 both", "0.5 slicing", "0.5 MPS", "0.5 none", "0.5 other gates")
"""Those of `make test`, 20,000 configurations in all."""
SETTINGS: dict[str, tuple[dict[str, bool], DeviceSettings]] = {
    "0.5 both": ({SLICING: True, MPS: True}, DeviceSettings(gates={SLICING: True, MPS: True})),
    "0.5 slicing": ({SLICING: True, MPS: False}, DeviceSettings(gates={SLICING: True, MPS: False})),
    "0.5 MPS": ({SLICING: False, MPS: True}, DeviceSettings(gates={SLICING: False, MPS: True})),
    "0.5 none": ({}, DeviceSettings(gates={SLICING: False, MPS: False})),
    # Nothing is known of the gates, so that nothing is refused for their sake.
    "0.5 unknown": ({SLICING: True, MPS: True}, DeviceSettings()),
    "0.5 other gates": (
        {SLICING: True, MPS: True, "ConsumableShares": True, "DynamicMIG": True},
        DeviceSettings(
            gates={
                SLICING: True,
                MPS: True,
                "ConsumableShares": True,
                "DynamicMIG": True,
                "HostManagedIMEXDaemon": True,
                "PassthroughSupport": False,
            },
            imex_mode="hostManaged",
        ),
    ),
    "0.4 both": (
        {SLICING: True, MPS: True},
        DeviceSettings(driver_version="0.4", gates={SLICING: True, MPS: True}),
    ),
    "0.4 slicing": (
        {SLICING: True, MPS: False},
        DeviceSettings(driver_version="0.4", gates={SLICING: True, MPS: False}),
    ),
    "0.4 MPS": (
        {SLICING: False, MPS: True},
        DeviceSettings(driver_version="0.4", gates={SLICING: False, MPS: True}),
    ),
    "0.4 none": ({}, DeviceSettings(driver_version="0.4", gates={SLICING: False, MPS: False})),
}
VFIO_IN_0_4 = "expected a recognized configuration type"
"""What the webhook of 0.4 says of every VfioDeviceConfig, which the same version's plugin takes."""
PANIC = "panic: "
DEVICES = (UUID, UUID.replace("GPU", "MIG"))


def refused(one: Generated, settings: DeviceSettings, devices: int | None = None) -> list[Finding]:
    """What our checks refuse in a claim with one configuration, as it is in a review.

    `devices` is how many it is for, None if there are no requests.
    """
    raw = review([one])
    spec = orjson.loads(raw)["request"]["object"]["spec"]
    if devices is None:
        found = check_claim(spec, ("spec",), DeviceClasses(settings, (), ()), settings)
    else:
        (config,) = read_claim(spec).configs
        found = configs.check_config(config, settings, devices)
    repeated = [Finding(path, "config-unreadable") for path in configs.find_repeated_keys(raw)]
    return [fault for fault in (*found, *repeated) if not fault.warning]


def complete(one: Generated, settings: DeviceSettings) -> Generated:
    """A configuration with what we write into it."""
    assert one.parameters is not None
    body = json.loads(one.parameters)
    config = DeviceConfig(("config",), (), one.driver, body)
    for path, value in configs.complete_config(config, settings):
        *above, key = path[len(config.parameters_path) :]
        functools.reduce(lambda inner, step: inner[step], above, body)[key] = value
    return Generated(one.driver, json.dumps(body))


def is_of_domain(one: Generated) -> bool:
    """Whether a configuration is for the driver of domains, or of a kind of theirs."""
    return one.driver == DOMAIN or '"ComputeDomain' in (one.parameters or "")


def row_of(fault: Finding) -> Beyond | None:
    """The row of the table that a fault is of, None if there is none."""
    inner = "/".join(map(str, fault.path[6:]))
    return next((row for row in BEYOND if row.is_of(fault.reason, inner, fault.key)), None)


class Compared(NamedTuple):
    """One configuration, what the driver refuses in it, and what we refuse."""

    config: Generated
    theirs: str
    ours: list[Finding]


@pytest.fixture(scope="module", params=[each for each in SETTINGS if EVERY or each in IN_TESTS])
def compared(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, DriverWebhook, list[Compared]]]:
    """The webhook with the settings of a name, and what it makes of generated configurations."""
    name: str = request.param
    gates, settings = SETTINGS[name]
    generated = list(generate(f"{SEED} {name}", COUNT))
    version = name.split(" ", 1)[0]
    with (
        bed_or_skip(),
        running(version, gates, tmp_path_factory.mktemp("webhook")) as webhook,
    ):
        theirs = [
            answer
            for start in range(0, COUNT, AT_ONCE)
            for answer in webhook.judge(generated[start : start + AT_ONCE])
        ]
        ours = [refused(each, settings) for each in generated]
        rows = zip(generated, theirs, ours, strict=True)
        yield name, webhook, [Compared(*each) for each in rows]


Asked = tuple[str, DriverWebhook, list[Compared]]


def test_what_the_drivers_webhook_refuses_we_refuse(compared: Asked) -> None:
    name, _, rows = compared
    refused_there = [row for row in rows if row.theirs not in ("", CRASHED)]
    assert len(refused_there) > COUNT // 4
    missed = [(row.config, row.theirs) for row in refused_there if not row.ours]
    if name.startswith("0.4"):
        assert any(VFIO_IN_0_4 in theirs for _, theirs in missed)
        missed = [each for each in missed if VFIO_IN_0_4 not in each[1]]
    assert missed[:3] == []


def test_what_we_refuse_beyond_the_drivers_webhook_is_in_the_table(compared: Asked) -> None:
    name, _, rows = compared
    allowed_there = [row for row in rows if row.theirs == ""]
    if name.startswith("0.4"):
        # It does not look at domains: what they are checked for here is of 0.5.
        unread = [row for row in allowed_there if is_of_domain(row.config)]
        assert any(row.ours for row in unread)
        allowed_there = [row for row in allowed_there if not is_of_domain(row.config)]
    assert len(allowed_there) > COUNT // 40
    found = [(row.config, fault, row_of(fault)) for row in allowed_there for fault in row.ours]
    assert [each for each in found if each[2] is None][:3] == []
    if name == "0.5 other gates":
        assert {row for _, _, row in found} == set(BEYOND)


def test_what_crashes_the_drivers_webhook_is_completed_or_refused(compared: Asked) -> None:
    name, webhook, rows = compared
    settings = SETTINGS[name][1]
    crashes = [row for row in rows if row.theirs == CRASHED and row.config.driver == GPU]
    assert bool(crashes) == SETTINGS[name][0].get(SLICING, False)
    for row in crashes:
        assert row.ours or webhook.judge([complete(row.config, settings)]) == [""], row.config


def test_whole_decisions_refuse_what_the_checks_refuse() -> None:
    gates = {SLICING: True, MPS: True}
    settings = DeviceSettings(gates=gates)
    catalog = catalog_of(gates)
    for one in generate(f"{SEED} whole", COUNT // 2):
        asked = parse_review(review([one]), Stage.VALIDATE)
        assert isinstance(asked, Request)
        found = decide_review(asked, catalog, References())
        paths = [each.path for each in found.violations] if isinstance(found, Denied) else []
        wanted = [each.path for each in refused(one, settings)]
        # The first pass writes the interval that is missing, and the second one expects it.
        assert set(paths) >= set(wanted), one
        assert all(path in wanted or path[-1] == "interval" for path in paths), one


def test_escapes_in_a_quantity_are_a_known_difference(tmp_path: Path) -> None:
    sharing = '{"strategy": "MPS", "mpsConfig": {"defaultPinnedDeviceMemoryLimit": "%s"}}'
    one, escaped = (
        Generated(GPU, f'{{"apiVersion": "{API_VERSION}", "kind": "GpuConfig", "sharing": {each}}}')
        for each in (sharing % "1Gi", sharing % "\\u0031Gi")
    )
    gates, settings = SETTINGS["0.5 both"]
    with bed_or_skip(), running("0.5", gates, tmp_path) as webhook:
        assert webhook.judge([one])[0] == ""
        assert "decoding" in webhook.judge([escaped])[0]
    assert refused(escaped, settings) == []


def test_on_the_node_just_what_we_refuse_is_refused() -> None:
    """Of what the driver's GPU plugin decides by the configuration and the devices alone.

    It has two devices and both gates of sharing here.
    """
    settings = DeviceSettings(gates={SLICING: True, MPS: True})
    generated = [
        Generated(GPU, each.parameters)
        for each in generate(f"{SEED} node", 5 * COUNT)
        if each.parameters is not None and "ComputeDomain" not in each.parameters
    ]
    with bed_or_skip():
        program = programs.find("dra-prepare")["dra-prepare"]
    lines = "".join(f"{each.parameters}\n" for each in generated)
    done = subprocess.run(
        [program, *DEVICES], input=lines, capture_output=True, text=True, check=True
    )
    answers = done.stdout.splitlines()
    assert sum(not each for each in answers) > len(generated) // 10
    others = [
        (config, answer, ours)
        for config, answer in zip(generated, answers, strict=True)
        # The interval that is missing is written before the node sees it.
        for ours in [refused(config, settings, len(DEVICES))]
        if bool(answer) != bool(ours)
        and not (PANIC in answer and complete(config, settings) != config)
    ]
    assert others[:3] == []
