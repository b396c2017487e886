"""The cases of the driver's own webhook test, by their names: the driver's answer, and ours."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, NamedTuple

import pytest

from tests.building import shipped, table
from tests.devices.driver_parameters import API_VERSION, DOMAIN, GPU, Generated
from tests.devices.driver_webhook import DriverWebhook, review, running
from tests.e2e.conftest import bed_or_skip
from tests.e2e.testbed import upstream
from webhook.admission.judge import decide_review
from webhook.admission.review import ReviewFault, parse_review
from webhook.catalog.build import Choices, assemble
from webhook.catalog.catalog import Catalog
from webhook.evaluation.device_settings import DeviceSettings
from webhook.evaluation.installation import InstallationConfig
from webhook.evaluation.outcome import Denied
from webhook.evaluation.references import References
from webhook.evaluation.request import Request, Stage

CLAIM, TEMPLATE = "ResourceClaim", "ResourceClaimTemplate"
SLICING, MPS = "TimeSlicingSettings", "MPSSupport"
GATES = {
    "both": {SLICING: True, MPS: True},
    "slicing": {SLICING: True, MPS: False},
    "MPS": {SLICING: False, MPS: True},
    "none": {SLICING: False, MPS: False},
}


def catalog_of(gates: dict[str, bool]) -> Catalog:
    """The shipped documents, in an installation with these gates of the driver."""
    config = InstallationConfig(devices=DeviceSettings(gates=gates))
    found, problems = assemble(shipped(), [], Choices(config=config), table())
    assert found is not None, problems
    return found


def configuration(kind: str, driver: str, **body: Any) -> Generated:
    return Generated(driver, json.dumps({"apiVersion": API_VERSION, "kind": kind, **body}))


def slices(interval: str) -> Generated:
    sharing = {"strategy": "TimeSlicing", "timeSlicingConfig": {"interval": interval}}
    return configuration("GpuConfig", GPU, sharing=sharing)


def mps(percentage: int) -> Generated:
    sharing = {"strategy": "MPS", "mpsConfig": {"defaultActiveThreadPercentage": percentage}}
    return configuration("GpuConfig", GPU, sharing=sharing)


def daemon(domain: str) -> Generated:
    return configuration("ComputeDomainDaemonConfig", DOMAIN, domainID=domain)


class Case(NamedTuple):
    """An object with configurations, the gates, and the indices of the configurations refused."""

    kind: str
    version: str
    gates: str
    configs: tuple[Generated, ...]
    refused: tuple[int, ...] = ()


RIGHT, WRONG, SHARED, NEGATIVE = slices("Default"), slices("Invalid Interval"), mps(50), mps(-1)
CASES = {
    "valid GpuConfig in ResourceClaim": Case(CLAIM, "v1beta1", "slicing", (RIGHT,)),
    "invalid GpuConfigs in ResourceClaim": Case(
        CLAIM, "v1beta1", "both", (WRONG, NEGATIVE), (0, 1)
    ),
    "valid ComputeDomainDaemonConfig in ResourceClaim": Case(
        CLAIM, "v1beta1", "none", (daemon("a1b2c3d4-e5f6-7890-abcd-ef1234567890"),)
    ),
    "path traversal domainID in ComputeDomainDaemonConfig is rejected": Case(
        CLAIM, "v1beta1", "none", (daemon("../../a/b"),), (0,)
    ),
    "valid GpuConfig in ResourceClaimTemplate": Case(TEMPLATE, "v1beta1", "slicing", (RIGHT,)),
    "invalid GpuConfigs in ResourceClaimTemplate": Case(
        TEMPLATE, "v1beta1", "both", (WRONG, NEGATIVE), (0, 1)
    ),
    "valid GpuConfig in ResourceClaim v1": Case(CLAIM, "v1", "slicing", (RIGHT,)),
    "valid GpuConfig in ResourceClaimTemplate v1": Case(TEMPLATE, "v1", "slicing", (RIGHT,)),
    "invalid GpuConfig in ResourceClaim v1 (tests conversion)": Case(
        CLAIM, "v1", "slicing", (WRONG,), (0,)
    ),
    "invalid GpuConfig in ResourceClaimTemplate v1 (tests conversion)": Case(
        TEMPLATE, "v1", "MPS", (NEGATIVE,), (0,)
    ),
    "valid GpuConfig in ResourceClaim v1beta2": Case(CLAIM, "v1beta2", "slicing", (RIGHT,)),
    "valid GpuConfig in ResourceClaimTemplate v1beta2": Case(
        TEMPLATE, "v1beta2", "slicing", (RIGHT,)
    ),
    "invalid GpuConfig in ResourceClaim v1beta2 (tests conversion)": Case(
        CLAIM, "v1beta2", "MPS", (NEGATIVE,), (0,)
    ),
    "invalid GpuConfig in ResourceClaimTemplate v1beta2 (tests conversion)": Case(
        TEMPLATE, "v1beta2", "slicing", (WRONG,), (0,)
    ),
    "TimeSlicingStrategy rejected when TimeSlicingSettings feature gate is disabled": Case(
        CLAIM, "v1beta1", "none", (RIGHT,), (0,)
    ),
    "MpsStrategy rejected when MPSSupport feature gate is disabled": Case(
        CLAIM, "v1beta1", "none", (SHARED,), (0,)
    ),
    "TimeSlicingStrategy rejected in ResourceClaimTemplate when TimeSlicingSettings"
    " feature gate is disabled": Case(TEMPLATE, "v1beta1", "none", (RIGHT,), (0,)),
    "MpsStrategy rejected in ResourceClaimTemplate when MPSSupport feature gate is disabled": Case(
        TEMPLATE, "v1beta1", "none", (SHARED,), (0,)
    ),
}
OF_HTTP = {"bad contentType", "invalid AdmissionReview"}
"""They have no object."""


@pytest.fixture(scope="module")
def webhooks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, DriverWebhook]]:
    """The driver's webhook, by its gates."""
    with ExitStack() as stack:
        stack.enter_context(bed_or_skip())
        yield {
            name: stack.enter_context(running("0.5", gates, tmp_path_factory.mktemp(name)))
            for name, gates in GATES.items()
        }


def test_no_case_of_the_driver_is_missing() -> None:
    with bed_or_skip():
        archive = upstream.module_dir("dra-driver")
    text = (archive / "cmd" / "webhook" / "main_test.go").read_text("utf-8")
    names = re.findall(r'^\t\t"([^"]+)": \{$', text, re.MULTILINE)
    assert set(names) == CASES.keys() | OF_HTTP


@pytest.mark.parametrize("name", CASES)
def test_a_case_of_the_driver(name: str, webhooks: dict[str, DriverWebhook]) -> None:
    case = CASES[name]
    answers = webhooks[case.gates].judge(case.configs, case.kind, case.version)
    assert tuple(index for index, answer in enumerate(answers) if answer) == case.refused

    path = ("spec",) if case.kind == CLAIM else ("spec", "spec")
    for stage in Stage.MUTATE, Stage.VALIDATE:
        asked = parse_review(review(case.configs, case.kind, case.version), stage)
        assert isinstance(asked, Request)
        found = decide_review(asked, catalog_of(GATES[case.gates]), References())
        paths = [each.path for each in found.violations] if isinstance(found, Denied) else []
        assert {each[: len(path) + 3] for each in paths} == {
            (*path, "devices", "config", index) for index in case.refused
        }


def test_a_review_without_a_request_is_refused(webhooks: dict[str, DriverWebhook]) -> None:
    with pytest.raises(ValueError, match="400"):
        webhooks["none"].answer(b"{}")
    assert isinstance(parse_review(b"{}", Stage.VALIDATE), ReviewFault)
