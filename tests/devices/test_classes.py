"""Tests for the types of device classes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from webhook.devices.claim_view import Option
from webhook.devices.classes import DeviceClasses, class_brief, device_classes_of
from webhook.evaluation.device_settings import DeviceSettings
from webhook.evaluation.installation import InstallationConfig
from webhook.evaluation.references import References

Json = dict[str, Any]
GPU = "gpu.nvidia.com"
OF_GPU = f"device.driver == '{GPU}'"
GPU_TYPES = {"gpu", "mig", "vfio"}
RESOURCES = ("nvidia.com/gpu", "nvidia.com/mig-*")


def of_type(name: str) -> str:
    return f"device.attributes['{GPU}'].type == '{name}'"


def selected(*texts: str, **spec: Any) -> Json:
    return {"selectors": [{"cel": {"expression": each}} for each in texts], **spec}


def classes(settings: DeviceSettings | None = None, **specs: Json) -> DeviceClasses:
    """Return classes x, y … as a cluster with these specs has them, created in this order."""
    briefs = {
        name: class_brief(
            {
                "metadata": {"name": name, "creationTimestamp": f"2026-01-0{day}T00:00:00Z"},
                "spec": spec,
            }
        )
        for day, (name, spec) in enumerate(specs.items(), 1)
    }
    known = json.loads(json.dumps(briefs))
    return DeviceClasses(settings or DeviceSettings(), RESOURCES, ("old.example.com",), known)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (GPU, "gpu"),
        ("mig.nvidia.com", "mig"),
        ("vfio.gpu.nvidia.com", "vfio"),
        ("compute-domain-default-channel.nvidia.com", "channel"),
        ("compute-domain-channel.nvidia.com", "channel"),
        ("compute-domain-daemon.nvidia.com", "daemon"),
        ("x", "unknown"),
        ("", "unknown"),
    ],
)
def test_without_class_objects_the_charts_classes_are_known(name: str, expected: str) -> None:
    known = DeviceClasses(DeviceSettings(), RESOURCES, ("old.example.com",), None)
    assert known.types_of(name) == {expected}
    assert known.is_gpu(name) == (expected in GPU_TYPES)
    assert known.is_gpu("old.example.com")


def test_a_setting_comes_before_the_shipped_table_and_the_object() -> None:
    settings = DeviceSettings(class_types={GPU: "mig", "x": "other"})
    known = classes(settings, x=selected(OF_GPU))
    assert known.types_of(GPU) == {"mig"}
    assert known.types_of("x") == {"other"}
    assert not known.is_gpu("x")


def test_the_shipped_table_comes_before_the_object() -> None:
    known = classes(**{"vfio.gpu.nvidia.com": selected("device.driver == 'nic.example.com'")})
    assert known.types_of("vfio.gpu.nvidia.com") == {"vfio"}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (selected(OF_GPU), GPU_TYPES),
        (selected(f"{OF_GPU} && {of_type('vfio')}"), {"vfio"}),
        (selected(OF_GPU, of_type("mig")), {"mig"}),
        (selected(of_type("mig")), {"mig"}),
        (selected(f"{OF_GPU} && {of_type('later')}"), GPU_TYPES),
        (selected(f"{OF_GPU} && f(device)"), GPU_TYPES),
        (selected(f"device.attributes['{GPU}'].productName == 'A100'"), GPU_TYPES),
        (selected(f"device.driver in ['{GPU}', 'x.y']"), {*GPU_TYPES, "other"}),
        (selected(OF_GPU, "device.driver == 'x.y'"), {*GPU_TYPES, "other"}),
        (selected("device.driver == 'compute-domain.nvidia.com'"), {"channel", "daemon"}),
        (
            selected(f"device.driver in ['compute-domain.nvidia.com', '{GPU}']"),
            {*GPU_TYPES, "channel", "daemon"},
        ),
        (
            selected(
                "device.driver == 'compute-domain.nvidia.com' && "
                "device.attributes['compute-domain.nvidia.com'].type == 'daemon'"
            ),
            {"daemon"},
        ),
        # What the selectors say comes before the extended resource.
        (selected(of_type("mig"), extendedResourceName="nvidia.com/gpu"), {"mig"}),
        (selected("true", extendedResourceName="nvidia.com/gpu"), {"gpu"}),
        (selected("true", extendedResourceName="nvidia.com/mig-1g.5gb"), {"mig"}),
        ({"extendedResourceName": "nvidia.com/gpu"}, {"gpu"}),
        (selected("device.driver == 'x.y'", extendedResourceName="nvidia.com/gpu"), {"gpu"}),
        (selected("device.driver == 'x.y'"), {"other"}),
        (selected("device.driver == 'x.y'", extendedResourceName="x.y/z"), {"other"}),
        (selected("true"), {"unknown"}),
        (selected(f"{OF_GPU} || true"), {"unknown"}),
        (selected("true", extendedResourceName="x.y/z"), {"unknown"}),
        ({}, {"unknown"}),
    ],
)
def test_types_of_an_administrators_class(spec: Json, expected: set[str]) -> None:
    assert classes(x=spec).types_of("x") == expected


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (selected(OF_GPU), True),
        (selected(f"{OF_GPU} && {of_type('vfio')}"), True),
        (selected("device.driver == 'x.y'"), False),
        (selected("true"), False),
        (selected("device.driver == 'compute-domain.nvidia.com'"), False),
        ({"selectors": []}, True),
        ({}, True),
    ],
)
def test_which_classes_count_as_gpus(spec: Json, expected: bool) -> None:
    known = classes(x=spec)
    assert known.is_gpu("x") is expected
    assert not known.is_gpu("y")  # no such class


def test_an_extended_resource_leads_to_the_class_created_last() -> None:
    spec = {"extendedResourceName": "example.com/a100"}
    known = classes(y={**spec}, z={**spec}, x={**spec}, other={})
    assert known.class_of_resource("example.com/a100") == "x"
    assert known.class_of_resource("example.com/h100") is None
    assert known.class_of_resource("") is None
    briefs = {name: class_brief({"metadata": {}, "spec": spec}) for name in ("y", "x", "z")}
    same_time = DeviceClasses(DeviceSettings(), RESOURCES, (), briefs)
    assert same_time.class_of_resource("example.com/a100") == "x"


def test_every_class_has_an_implicit_resource() -> None:
    implicit = "deviceclass.resource.kubernetes.io/"
    for known in (classes(x={"extendedResourceName": "example.com/a"}), classes()):
        assert known.class_of_resource(implicit + "x") == "x"
        assert known.class_of_resource(implicit + GPU) == GPU


def option(name: str, *texts: str) -> Option:
    return Option(("spec",), "r", {"deviceClassName": name, **selected(*texts)})


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (option("any"), GPU_TYPES),
        (option("any", of_type("mig")), {"mig"}),
        (option("any", f"{of_type('mig')} || true"), GPU_TYPES),
        (option("any", "device.driver == 'x.y'"), GPU_TYPES),
        (option("none"), {"unknown"}),
        (option("none", of_type("vfio")), {"vfio"}),
        (option(GPU, of_type("mig")), {"gpu"}),
    ],
)
def test_selectors_of_a_request_narrow_the_types_of_its_class(
    asked: Option, expected: set[str]
) -> None:
    assert classes(any=selected(OF_GPU), none={}).types_of_option(asked) == expected


def profile(*names: str) -> str:
    return f"device.attributes['{GPU}'].profile in {list(names)}"


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (option("mig.nvidia.com"), {"any"}),
        (option("mig.nvidia.com", profile("1g.5gb")), {"1g.5gb"}),
        (option("mig.nvidia.com", profile("1g.5gb", "2g.10gb")), {"1g.5gb", "2g.10gb"}),
        (option("mig.nvidia.com", profile("1g.5gb") + " || true"), {"any"}),
        (option("mig.nvidia.com", "!" + profile("1g.5gb")), {"any"}),
        (option("small"), {"1g.5gb", "2g.10gb"}),
        (option("small", profile("2g.10gb", "3g.20gb")), {"2g.10gb"}),
        (option("any"), {"any"}),
        (option("any", of_type("gpu")), set()),
        (option(GPU, profile("1g.5gb")), set()),
    ],
)
def test_mig_profiles(asked: Option, expected: set[str]) -> None:
    small = selected(of_type("mig"), profile("1g.5gb", "2g.10gb"))
    assert classes(small=small, any=selected(OF_GPU)).mig_profiles(asked) == expected


def test_a_brief_has_the_configurations_of_its_class() -> None:
    parameters = {"kind": "GpuConfig", "sharing": {"strategy": "MPS"}, "x": 1}
    known = classes(x={"config": [{}, {"opaque": {"driver": GPU, "parameters": parameters}}]})
    configs = known.configs_of("x")
    assert [(each.path, each.driver) for each in configs][-1] == (("spec", "config", 1), GPU)
    assert configs[-1].parameters == {"kind": "GpuConfig", "sharing": {"strategy": "MPS"}}
    assert known.configs_of("y") == ()


@pytest.mark.parametrize("spec", [None, 1, [], {"selectors": 1}, {"selectors": [1], "config": [1]}])
def test_broken_classes_have_a_brief(spec: Any) -> None:
    assert class_brief({"spec": spec}).get("types") is None
    assert class_brief({"metadata": 1}) == {}


def test_classes_are_made_once_for_the_same_facts() -> None:
    briefs = {"x": class_brief({"spec": selected(OF_GPU)})}
    config = InstallationConfig(gpu_classes=("y",))
    known = device_classes_of(References(device_classes=briefs), config)
    assert known.is_gpu("x")
    assert known.is_gpu("y")
    assert device_classes_of(References({"a": {}}, device_classes=briefs), config) is known
    assert device_classes_of(References(device_classes={**briefs}), config) is not known
    assert not device_classes_of(References(), config).is_gpu("x")
