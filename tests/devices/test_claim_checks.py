"""Tests for the checks across a claim (X1 to X12) and of classes."""

from __future__ import annotations

from typing import Any

import pytest

from webhook.devices.claim_checks import check_claim, check_class
from webhook.devices.classes import DeviceClasses, class_brief
from webhook.evaluation.device_settings import DeviceSettings
from webhook.objects.path import display

Json = dict[str, Any]
Found = set[tuple[str, str, bool]]
GPU, MIG, VFIO = "gpu.nvidia.com", "mig.nvidia.com", "vfio.gpu.nvidia.com"
CHANNEL, DAEMON = "compute-domain-default-channel.nvidia.com", "compute-domain-daemon.nvidia.com"
DOMAIN_DRIVER = "compute-domain.nvidia.com"
ID = "a1b2c3d4-0000-4000-8000-000000000001"
MPS = {"strategy": "MPS"}
SLICES = {"strategy": "TimeSlicing"}
MISMATCH, UNUSED, CONFLICT = "config-mismatch", "config-unused", "config-conflict"
ADMIN, ACCESS = "config-admin-access", "requests[0].exactly.adminAccess"


def ask(name: str, device_class: str = GPU, **body: Any) -> Json:
    return {"name": name, "exactly": {"deviceClassName": device_class, **body}}


def first(name: str, **alternatives: str) -> Json:
    listed = [{"name": each, "deviceClassName": of} for each, of in alternatives.items()]
    return {"name": name, "firstAvailable": listed}


def config(kind: str, *requests: str, driver: str = GPU, **body: Any) -> Json:
    parameters = {"apiVersion": "resource.nvidia.com/v1beta1", "kind": kind, **body}
    return {"requests": [*requests], "opaque": {"driver": driver, "parameters": parameters}}


def gpu(*requests: str, **body: Any) -> Json:
    return config("GpuConfig", *requests, **body)


def mig(*requests: str) -> Json:
    return config("MigDeviceConfig", *requests)


def vfio(*requests: str) -> Json:
    return config("VfioDeviceConfig", *requests)


def channel(*requests: str, driver: str = DOMAIN_DRIVER, **body: Any) -> Json:
    return config("ComputeDomainChannelConfig", *requests, driver=driver, domainID=ID, **body)


def daemon(*requests: str) -> Json:
    return config("ComputeDomainDaemonConfig", *requests, driver=DOMAIN_DRIVER, domainID=ID)


ANY_GPU = {"selectors": [{"cel": {"expression": "device.driver == 'gpu.nvidia.com'"}}]}


def of_types(*names: str) -> Json:
    text = f"device.attributes['gpu.nvidia.com'].type in {list(names)}"
    return {"selectors": [{"cel": {"expression": text}}]}


CLASSES = {
    "gpu-or-mig": of_types("gpu", "mig"),
    "gpu-or-vfio": of_types("gpu", "vfio"),
    "mig-or-vfio": of_types("mig", "vfio"),
    "any": ANY_GPU,
    "nic": {"selectors": [{"cel": {"expression": "device.driver == 'nic.example.com'"}}]},
    "what": {"selectors": [{"cel": {"expression": "true"}}]},
    "shared": {**ANY_GPU, "config": [gpu(sharing=MPS)]},
    "vfio-set": {
        "selectors": [
            {"cel": {"expression": "device.attributes['gpu.nvidia.com'].type == 'vfio'"}}
        ],
        "config": [vfio()],
    },
}


def classes_of(settings: DeviceSettings) -> DeviceClasses:
    briefs = {name: class_brief({"spec": spec}) for name, spec in CLASSES.items()}
    return DeviceClasses(settings, (), (), briefs)


def check(
    requests: list[Json],
    configs: list[Json],
    constraints: list[Json] | None = None,
    **settings: Any,
) -> Found:
    """Return the paths below devices, reasons, and which are warnings, for all API versions."""
    known = DeviceSettings(**settings)
    devices = {"requests": requests, "config": configs, "constraints": constraints}
    found = check_claim({"devices": devices}, ("spec",), classes_of(known), known)
    assert found == sorted(found, key=lambda each: [str(step).zfill(3) for step in each.path])
    flat = [
        {
            key: value
            for key, value in {**each, **each.get("exactly", {})}.items()
            if key != "exactly"
        }
        for each in requests
    ]
    devices = {**devices, "requests": flat}
    other = check_claim({"devices": devices}, ("spec", "spec"), classes_of(known), known)
    shown = {(display(each.path), each.reason, each.warning) for each in found}
    assert {(display(("spec", *each.path[2:])), each.reason, each.warning) for each in other} == {
        (path.replace(".exactly", ""), *rest) for path, *rest in shown
    }
    return {(path.removeprefix("spec.devices."), *rest) for path, *rest in shown}  # type: ignore[misc]


def deny(path: str, reason: str) -> tuple[str, str, bool]:
    return path, reason, False


def warn(path: str, reason: str) -> tuple[str, str, bool]:
    return path, reason, True


KIND = "config[0].opaque.parameters.kind"
FIRST, SECOND = "config[0].requests[0]", "config[0].requests[1]"


@pytest.mark.parametrize(
    ("requests", "configs", "expected"),
    [
        # Nothing at all
        ([], [], set()),
        ([], [gpu()], set()),
        ([ask("a")], [gpu()], set()),
        ([ask("a")], [gpu("a")], set()),
        ([ask("a"), ask("b", MIG)], [gpu("a"), mig("b")], set()),
        ([ask("a"), ask("b", MIG)], [gpu(), mig()], set()),
        ([ask("a", CHANNEL)], [channel("a")], set()),
        ([ask("a", DAEMON)], [daemon("a")], set()),
        ([ask("a")], [config("GpuConfig", "a", driver="nic.example.com", x=1)], set()),
        # X1
        ([ask("a", CHANNEL)], [channel("a", driver=GPU)], {deny(KIND, MISMATCH)}),
        ([ask("a")], [gpu("a", driver=DOMAIN_DRIVER)], {deny(KIND, MISMATCH)}),
        ([ask("a", MIG)], [gpu(driver=DOMAIN_DRIVER)], {deny(KIND, MISMATCH)}),
        # X2
        ([ask("a", MIG)], [gpu("a")], {deny(FIRST, MISMATCH)}),
        ([ask("a"), ask("b", MIG)], [gpu("a", "b")], {deny(SECOND, MISMATCH)}),
        ([ask("a", VFIO)], [mig("a")], {deny(FIRST, MISMATCH)}),
        ([ask("a", DAEMON)], [channel("a")], {deny(FIRST, MISMATCH)}),
        ([first("m", x=GPU, y=MIG)], [gpu("m/y")], {deny(FIRST, MISMATCH)}),
        ([first("m", x=GPU, y=MIG)], [gpu("m/x"), mig("m/y")], set()),
        ([ask("a", "any")], [mig("a")], set()),
        ([ask("a", "what")], [mig("a")], set()),
        ([ask("a", "missing")], [mig("a")], set()),
        ([ask("a"), ask("b", "nic")], [gpu("a", "b")], {deny(SECOND, MISMATCH)}),
        ([ask("a"), ask("b", CHANNEL)], [gpu("a", "b")], {deny(SECOND, MISMATCH)}),
        ([ask("a")], [channel("a")], {deny(FIRST, MISMATCH)}),
        # X3
        ([first("m", x=GPU, y=MIG)], [gpu("m")], {warn(FIRST, UNUSED)}),
        ([first("m", x=GPU, y=GPU), ask("a")], [gpu("m", "a")], {warn(FIRST, UNUSED)}),
        ([first("m", x=GPU)], [config("GpuConfig", "m", driver="nic.example.com")], set()),
        ([ask("a")], [gpu("missing")], set()),
        # X4
        ([ask("a", MIG)], [gpu()], {warn("config[0]", UNUSED)}),
        ([ask("a", "nic")], [gpu()], {warn("config[0]", UNUSED)}),
        ([ask("a", MIG), ask("b", "what")], [gpu()], set()),
        ([ask("a", MIG), ask("b", "any")], [gpu()], set()),
        ([first("m", x=MIG, y=GPU)], [gpu()], set()),
        # X5
        ([ask("a")], [gpu("a"), gpu()], {warn("config[0]", UNUSED)}),
        ([ask("a")], [gpu(), gpu("a")], {warn("config[0]", UNUSED)}),
        (
            [ask("a")],
            [gpu("a"), gpu("a"), gpu("a")],
            {warn("config[0]", UNUSED), warn("config[1]", UNUSED)},
        ),
        ([ask("a"), ask("b")], [gpu("a"), gpu("b")], set()),
        ([ask("a", "any")], [gpu(), mig()], set()),
        ([ask("a", "what")], [gpu(), gpu()], {warn("config[0]", UNUSED)}),
        ([ask("a", "what")], [gpu(), mig()], set()),
        ([ask("a")], [gpu("a"), channel()], {warn("config[1]", UNUSED)}),
        # X6
        (
            [ask("a", VFIO), ask("b", VFIO)],
            [vfio("a"), vfio("b")],
            {deny("config[1]", CONFLICT)},
        ),
        ([ask("a", VFIO), ask("b", VFIO)], [vfio("a")], {deny("config[0]", CONFLICT)}),
        ([ask("a", VFIO), ask("b", VFIO)], [vfio("a", "b")], set()),
        ([ask("a", VFIO), ask("b", VFIO)], [vfio()], set()),
        ([ask("a", VFIO), ask("b", VFIO)], [], set()),
        ([ask("a", "vfio-set")], [], set()),
        # The allocator adds a class's configuration once for each request.
        (
            [ask("a", "vfio-set"), ask("b", "vfio-set")],
            [],
            {deny("requests[1]", CONFLICT)},
        ),
        ([ask("a", "vfio-set"), ask("b", "vfio-set")], [vfio()], set()),
        ([ask("a", "vfio-set"), ask("b", VFIO)], [], {deny("requests[1]", CONFLICT)}),
        ([first("m", x=VFIO, y=VFIO)], [vfio("m/x"), vfio("m/y")], set()),
        # X7
        ([ask("a", VFIO), ask("b")], [], {warn("requests[0].exactly.deviceClassName", CONFLICT)}),
        (
            [ask("a", "gpu-or-mig"), ask("b", VFIO)],
            [],
            {warn("requests[1].exactly.deviceClassName", CONFLICT)},
        ),
        ([ask("a", VFIO), ask("b", "any")], [], set()),
        ([ask("a", VFIO), ask("b", "nic"), ask("c", CHANNEL)], [], set()),
        ([first("m", x=VFIO, y=GPU)], [], set()),
    ],
)
def test_which_configuration_is_for_which_request(
    requests: list[Json], configs: list[Json], expected: Found
) -> None:
    assert check(requests, configs) == expected


@pytest.mark.parametrize(
    ("minor", "names", "expected"),
    [
        (0, ("m", "a"), {warn(FIRST, UNUSED)}),
        (36, ("m", "a"), {warn(FIRST, UNUSED)}),
        (37, ("m", "a"), set()),
        (38, ("m", "a"), set()),
        (37, ("m",), {warn(FIRST, UNUSED)}),
        (37, ("m/x", "m/y"), set()),
    ],
)
def test_the_name_of_a_list_is_for_its_alternatives_from_1_37(
    minor: int, names: tuple[str, ...], expected: Found
) -> None:
    requests = [first("m", x=GPU, y=GPU), ask("a")]
    assert check(requests, [gpu(*names)], kubernetes_minor=minor) == expected


def test_a_configuration_that_names_all_requests_is_skipped_by_type_from_1_37() -> None:
    requests, configs = [ask("a"), ask("b", MIG)], [gpu("a", "b")]
    for minor in (36, 37):
        assert check(requests, configs, kubernetes_minor=minor) == {deny(SECOND, MISMATCH)}


@pytest.mark.parametrize(
    ("gate", "expected"),
    [
        (None, {deny("config[1]", CONFLICT)}),
        (True, {deny("config[1]", CONFLICT)}),
        (
            False,
            {
                warn("requests[0].exactly.deviceClassName", "config-gate"),
                warn("requests[1].exactly.deviceClassName", "config-gate"),
                deny("config[0].opaque.parameters.kind", "config-gate"),
                deny("config[1].opaque.parameters.kind", "config-gate"),
            },
        ),
    ],
)
def test_passthrough_devices_and_their_gate(gate: bool | None, expected: Found) -> None:
    gates = {} if gate is None else {"PassthroughSupport": gate}
    requests = [ask("a", VFIO), ask("b", VFIO)]
    assert check(requests, [vfio("a"), vfio("b")], gates=gates) == expected


@pytest.mark.parametrize(
    ("version", "requests", "configs", "expected"),
    [
        # X8
        ("0.5", [ask("a", adminAccess=True)], [gpu("a")], {deny(FIRST, ADMIN)}),
        ("0.5", [ask("a", adminAccess=True)], [gpu()], {deny("config[0]", ADMIN)}),
        ("0.5", [ask("a", adminAccess=True)], [gpu(sharing=MPS)], {deny("config[0]", ADMIN)}),
        ("0.5", [ask("a", adminAccess=False)], [gpu("a")], set()),
        ("0.5", [ask("a", adminAccess=True)], [], set()),
        ("0.5", [ask("a", adminAccess=True), ask("b")], [gpu("b")], set()),
        # The driver refuses a configuration for all requests whatever its kind is.
        ("0.5", [ask("a", "any", adminAccess=True)], [gpu()], {deny("config[0]", ADMIN)}),
        ("0.5", [ask("a", adminAccess=True), ask("b", MIG)], [mig()], {deny("config[0]", ADMIN)}),
        ("0.5", [ask("a", "nic", adminAccess=True), ask("b")], [gpu()], set()),
        ("0.5", [ask("a", "what", adminAccess=True), ask("b")], [gpu()], set()),
        ("0.5", [ask("a", "shared", adminAccess=True)], [], {deny(ACCESS, ADMIN)}),
        ("0.4", [ask("a", "shared", adminAccess=True)], [], set()),
        ("0.5", [ask("a", "what", adminAccess=True)], [gpu("a")], {deny(FIRST, ADMIN)}),
        ("0.5", [ask("a", CHANNEL, adminAccess=True)], [channel("a")], set()),
        ("0.4", [ask("a", adminAccess=True)], [gpu("a")], set()),
        ("25.12", [ask("a", adminAccess=True)], [gpu("a", sharing=MPS)], set()),
        ("0.4", [ask("a", adminAccess=True)], [gpu("a", sharing=SLICES)], {deny(FIRST, ADMIN)}),
        ("0.4", [ask("a", adminAccess=True)], [gpu(sharing=SLICES)], set()),
        # X9
        (
            "0.5",
            [ask("a", MIG, adminAccess=True)],
            [],
            {deny(ACCESS, ADMIN)},
        ),
        (
            "0.5",
            [ask("a", VFIO, adminAccess=True)],
            [],
            {deny(ACCESS, ADMIN)},
        ),
        (
            "0.5",
            [ask("a", "mig-or-vfio", adminAccess=True)],
            [],
            {deny("requests[0].exactly.adminAccess", ADMIN)},
        ),
        ("0.5", [ask("a", "any", adminAccess=True)], [], set()),
        ("0.5", [ask("a", "nic", adminAccess=True)], [], set()),
        ("0.4", [ask("a", MIG, adminAccess=True)], [], set()),
    ],
)
def test_administrative_access(
    version: str, requests: list[Json], configs: list[Json], expected: Found
) -> None:
    assert check(requests, configs, driver_version=version) == expected


COUNT, MODE = "requests[0].exactly.count", "requests[0].exactly.allocationMode"


@pytest.mark.parametrize(
    ("requests", "configs", "expected"),
    [
        ([ask("a", CHANNEL, count=1)], [channel("a")], set()),
        ([ask("a", CHANNEL, count=2)], [channel("a")], {deny(COUNT, CONFLICT)}),
        ([ask("a", CHANNEL, count=2)], [channel()], {deny(COUNT, CONFLICT)}),
        ([ask("a", CHANNEL, count=2)], [], set()),
        ([ask("a", CHANNEL, allocationMode="All")], [channel("a")], {deny(MODE, CONFLICT)}),
        ([ask("a", DAEMON, count=2)], [daemon("a")], {deny(COUNT, CONFLICT)}),
        (
            [ask("a", CHANNEL), ask("b", CHANNEL)],
            [channel("a", "b")],
            {deny("config[0]", CONFLICT)},
        ),
        ([ask("a", CHANNEL), ask("b", CHANNEL)], [channel()], {deny("config[0]", CONFLICT)}),
        ([ask("a", CHANNEL), ask("b", CHANNEL)], [channel("a"), channel("b")], set()),
        ([ask("a", CHANNEL), ask("b", DAEMON)], [channel(), daemon()], set()),
        ([ask("a", CHANNEL), ask("b", "what")], [channel()], set()),
        ([ask("a", "what", count=2)], [channel("a")], {deny(COUNT, CONFLICT)}),
        ([first("m", x=CHANNEL, y=CHANNEL)], [channel()], set()),
    ],
)
def test_a_channel_has_one_device(
    requests: list[Json], configs: list[Json], expected: Found
) -> None:
    assert check(requests, configs) == expected


def bound(number: int, *requests: str) -> Json:
    return {"requests": [*requests], "matchAttribute": f"gpu.nvidia.com/partition{number}"}


@pytest.mark.parametrize(
    ("requests", "constraints", "is_denied"),
    [
        ([ask("a")], [], False),
        ([ask("a", count=2)], [], True),
        ([ask("a", count=2)], [bound(2, "a")], False),
        ([ask("a", count=2)], [bound(2)], False),
        ([ask("a", count=2)], [bound(4, "a")], True),
        ([ask("a", count=2)], [{"matchAttribute": "gpu.nvidia.com/parentUUID"}], True),
        ([ask("a", count=2)], [{"requests": ["a"], "distinctAttribute": "x"}], True),
        ([ask("a"), ask("b", VFIO)], [], True),
        ([ask("a", "gpu-or-vfio", count=2)], [], True),
        ([ask("a"), ask("b")], [bound(2, "a")], True),
        ([ask("a"), ask("b")], [bound(2, "a", "b")], False),
        ([ask("a", MIG, count=2)], [], False),
        ([ask("a", count=2), ask("b", MIG)], [bound(2, "a")], False),
        ([ask("a", count=2), ask("b", "nic")], [], True),
        # How many whole GPUs there will be is not known.
        ([ask("a", allocationMode="All")], [], False),
        ([ask("a", count=2), ask("b", "what")], [], False),
        ([ask("a", "any", count=2)], [], False),
        ([ask("a", count=2), first("m", x=GPU, y=MIG)], [], False),
    ],
)
def test_whole_gpus_of_a_partition(
    requests: list[Json], constraints: list[Json], is_denied: bool
) -> None:
    gates = {"FabricManagerPartitioning": True}
    found = {each for each in check(requests, [], constraints, gates=gates) if not each[2]}
    assert found == ({deny("constraints", "required")} if is_denied else set())
    assert not {each for each in check(requests, [], constraints) if not each[2]}


def test_all_channels_where_administrators_run_imex() -> None:
    requests, configs = [ask("a", CHANNEL)], [channel("a", allocationMode="All")]
    path = "config[0].opaque.parameters.allocationMode"
    gates = {"HostManagedIMEXDaemon": True}
    assert check(requests, configs, gates=gates) == {warn(path, UNUSED)}
    assert check(requests, configs, imex_mode="hostManaged") == {warn(path, UNUSED)}
    assert check(requests, configs) == set()
    assert check(requests, [channel("a", allocationMode="Single")], gates=gates) == set()


LIMIT = "defaultPerDevicePinnedMemoryLimit"


@pytest.mark.parametrize(
    ("requests", "names", "index", "is_denied"),
    [
        ([ask("a")], ("a",), "0", False),
        ([ask("a")], ("a",), "1", True),
        ([ask("a")], (), "1", True),
        ([ask("a", count=2)], ("a",), "1", False),
        ([ask("a"), ask("b")], ("a", "b"), "1", False),
        ([ask("a"), ask("b")], ("a",), "1", True),
        ([ask("a"), ask("b", MIG)], (), "1", True),
        ([ask("a", "any")], ("a",), "1", False),
        ([ask("a", "what")], ("a",), "1", True),
        ([ask("a", "what")], (), "1", False),
        ([ask("a", allocationMode="All")], ("a",), "1", False),
        ([first("m", x=GPU, y=GPU)], ("m/x",), "1", False),
        ([], (), "1", False),
    ],
)
def test_indices_of_devices_are_checked_where_their_number_is_exact(
    requests: list[Json], names: tuple[str, ...], index: str, is_denied: bool
) -> None:
    sharing = {"strategy": "MPS", "mpsConfig": {LIMIT: {index: "2Gi"}}}
    path = f"config[0].opaque.parameters.sharing.mpsConfig.{LIMIT}"
    reasons = {
        (each[0].startswith(path), each[1])
        for each in check(requests, [gpu(*names, sharing=sharing)])
    }
    assert reasons == ({(True, "invalid-value")} if is_denied else set())


def test_a_finding_names_what_is_there_and_what_fits() -> None:
    settings = DeviceSettings()
    devices = {"requests": [ask("a", MIG)], "config": [gpu("a"), channel("a", driver=GPU)]}
    wrong_request, wrong_kind = check_claim(
        {"devices": devices}, ("spec",), classes_of(settings), settings
    )
    assert wrong_request[2:5] == ("a", "gpu", "mig")
    assert wrong_kind[2:5] == (
        "ComputeDomainChannelConfig",
        "GpuConfig, MigDeviceConfig, VfioDeviceConfig",
        GPU,
    )


@pytest.mark.parametrize(
    ("device_class", "configs", "expected"),
    [
        ("any", [gpu(sharing=MPS), mig()], set()),
        ("x", [gpu(sharing={"strategy": "Mps"})], {("sharing.strategy", "invalid-value", False)}),
        (GPU, [mig()], {("kind", MISMATCH, False)}),
        (GPU, [channel()], {("kind", UNUSED, True)}),
        ("x", [channel(driver=GPU)], {("kind", MISMATCH, False)}),
        ("x", [gpu(), gpu()], {("", UNUSED, True)}),
        ("x", [gpu(), mig()], set()),
        ("x", [config("GpuConfig", driver="nic.example.com", x=1)], set()),
    ],
)
def test_checks_a_class(device_class: str, configs: list[Json], expected: Found) -> None:
    settings = DeviceSettings()
    spec = {**(ANY_GPU if device_class == "any" else {}), "config": configs}
    body = {"metadata": {"name": device_class}, "spec": spec}
    found = check_class(body, classes_of(settings), settings)
    start = "spec.config[0].opaque.parameters."
    assert {
        (
            display(each.path).removeprefix("spec.config[0]").removeprefix(start[14:]),
            *each[1:2],
            each.warning,
        )
        for each in found
    } == expected


@pytest.mark.parametrize(("version", "warns"), [("25.8", False), ("0.4", False), ("0.5", True)])
def test_a_class_without_an_interval_stops_the_driver(version: Any, warns: bool) -> None:
    """podgate writes it into claims and templates, and writes nothing into classes."""
    settings = DeviceSettings(version)
    sliced = gpu(sharing={"strategy": "TimeSlicing", "timeSlicingConfig": {}})
    body = {"metadata": {"name": GPU}, "spec": {"config": [sliced]}}
    (found,) = check_class(body, classes_of(settings), settings)
    assert (found.path[-1], found.reason, found.warning) == ("interval", "required", warns)
    devices = {"requests": [ask("a", GPU)], "config": [sliced]}
    assert check_claim({"devices": devices}, ("spec",), classes_of(settings), settings) == []


@pytest.mark.parametrize(
    "broken",
    [None, 1, "x", [], {"devices": []}, {"devices": {"requests": [1], "config": [{"opaque": 1}]}}],
)
def test_broken_objects_have_no_findings(broken: Any) -> None:
    settings = DeviceSettings()
    assert check_claim(broken, ("spec",), classes_of(settings), settings) == []
    assert check_class({"spec": broken}, classes_of(settings), settings) == []


def test_a_claim_that_the_api_server_will_refuse_costs_little() -> None:
    names = [f"r{number}" for number in range(3000)]
    requests = [ask(name) for name in names]
    configs = [gpu(*names) for _ in range(300)]
    assert check(requests, configs) == set()
    assert check(requests[:2], [gpu("r0"), gpu("r0")]) == {warn("config[0]", UNUSED)}
