"""The feature gates that the driver's programs know, and those that they start with, beside ours."""

from __future__ import annotations

import json
import os
import re
import subprocess
from itertools import combinations, product

import pytest

from tests.e2e.conftest import bed_or_skip
from tests.e2e.testbed import programs
from webhook.devices.config_schemas import has_it
from webhook.devices.gates import GROUPS, SINCE, check_gates
from webhook.evaluation.device_settings import DeviceSettings, DriverVersion

GATE = re.compile(r"(\w+)=true\|false \(([A-Z]+) - default=(true|false)\)")
VERSIONS: list[DriverVersion] = [
    "0.5",
    *(["0.4"] if "PODGATE_DRIVER_CONFIGS" in os.environ else []),
]
LOGGING = {"ContextualLogging", "LoggingAlphaOptions", "LoggingBetaOptions"}


def gates_of(version: str) -> dict[str, bool]:
    """The feature gates of a version with their defaults, as its help lists them."""
    name = f"dra-webhook-{version}"
    with bed_or_skip():
        program = programs.find(name)[name]
    told = subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout
    return {name: on == "true" for name, _, on in GATE.findall(told)}


@pytest.mark.parametrize("version", VERSIONS)
def test_we_know_the_gates_of_each_version(version: DriverVersion) -> None:
    known = {name for name, since in SINCE.items() if has_it(since, version)}
    # The help leaves out gates that are stable.
    assert known - LOGGING == gates_of(version).keys() - LOGGING - {*GROUPS}


def test_the_driver_starts_with_the_gates_that_we_accept() -> None:
    defaults = {name: on for name, on in gates_of("0.5").items() if name not in {*GROUPS, *LOGGING}}
    settings = [
        {**defaults, first: one, second: other}
        for first, second in combinations(defaults, 2)
        for one, other in product((True, False), repeat=2)
    ]
    with bed_or_skip():
        program = programs.find("dra-prepare")["dra-prepare"]
    lines = "".join(f"{json.dumps(each)}\n" for each in settings)
    command = [program, "gates"]
    done = subprocess.run(command, input=lines, capture_output=True, text=True, check=True)
    answers = done.stdout.splitlines()
    assert len(set(answers)) > 5
    for gates, answer in zip(settings, answers, strict=True):
        faults = [each for each in check_gates(DeviceSettings(gates=gates)) if not each.warning]
        assert bool(faults) == bool(answer), (answer, faults)
