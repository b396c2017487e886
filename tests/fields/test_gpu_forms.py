"""GPUs in every form: what pods ask for, which defaults land, what hostile annotations do."""

from __future__ import annotations

import copy
from functools import cache
from typing import Any

import pytest

from tests.building import (
    catalog,
    container,
    deployment,
    mutated,
    pod,
    policy,
    pytorchjob,
    reasons,
    refused,
    request,
    result,
    validated,
)
from webhook.catalog.catalog import Catalog
from webhook.evaluation.installation import InstallationConfig
from webhook.evaluation.outcome import Allowed, Denied
from webhook.evaluation.references import References
from webhook.evaluation.state import Evaluation
from webhook.fields.gpu.annotations import is_gpu_annotation
from webhook.fields.gpu.use import GpuCounter
from webhook.pods.locate import locate
from webhook.pods.pod_view import pod_view

WORDS = InstallationConfig()
KAI = "kai-scheduler"
GPU = "nvidia.com/gpu"
ALL = """
rules:
  compute:
    gpuRequestType: {options: [portion]}
    gpuPortionRequest: {min: 0.1, max: 0.5, step: 0.1, required: true}
    gpuMemoryRequest: {min: 1Gi, max: 4Gi}
    gpuPortionLimit: {max: 0.8}
    gpuMemoryLimit: {max: 8Gi}
    migProfile: {options: [1g.5gb]}
    gpuDevicesRequest: {min: 1, max: 2}
    extendedResources: {instances: {canAdd: false}, attributes: {quantity: {max: 2}}}
  total: {gpuDevices: {max: 2}}
"""
CLAIMS = {
    ("ResourceClaim", "team", "two"): {
        "devices": {"requests": [{"exactly": {"deviceClassName": "gpu.nvidia.com", "count": 2}}]}
    },
    ("ResourceClaim", "team", "odd"): {
        "devices": {
            "requests": [
                {"firstAvailable": 7},
                None,
                {"deviceClassName": "gpu.nvidia.com", "count": "x"},
            ]
        }
    },
}


@cache
def everything() -> Catalog:
    """A catalog with a rule on every field of devices, made once."""
    return catalog(ALL)


def asked(document: Any) -> Any:
    """What of a pod speaks of GPUs here."""
    found = document["spec"].get("template", document)
    containers = found["spec"]["containers"]
    parts = [(each.get("resources"), each.get("env")) for each in containers]
    return found["metadata"].get("annotations", {}), parts


def noted(manifest: Any, **annotations: Any) -> Any:
    """The pod with annotations; `_` stands for a hyphen."""
    result = copy.deepcopy(manifest)
    named = {key.replace("_", "-"): value for key, value in annotations.items()}
    result["metadata"]["annotations"] = named
    return result


def limited(amounts: dict[str, Any], **more: Any) -> Any:
    return pod(container(resources={"limits": amounts}, **more), schedulerName=KAI)


def plain(*more: Any) -> Any:
    return pod(container(), *more, schedulerName=KAI)


PODS = [
    (plain(), 0, set()),
    (limited({GPU: 2}), 2, {"whole"}),
    (limited({GPU: "2500m"}), 3, {"whole"}),
    (limited({GPU: -1}), 0, set()),
    (limited({"nvidia.com/mig-1g.5gb": 3}), 3, {"mig"}),
    (limited({GPU: 1, "nvidia.com/mig-1g.5gb": 1}), 2, {"whole", "mig"}),
    (limited({"deviceclass.resource.kubernetes.io/gpu.nvidia.com": 1}), 1, {"whole"}),
    (limited({"example.com/nic": 4}), 0, set()),
    (noted(plain(), gpu_fraction="0.5"), 1, {"gpu-fraction"}),
    (noted(plain(), gpu_fraction="0.5", gpu_fraction_num_devices="3"), 3, {"gpu-fraction"}),
    (noted(plain(), gpu_fraction_num_devices="3"), 0, set()),
    (noted(plain(), gpu_memory="2000"), 1, {"gpu-memory"}),
    (noted(plain(), gpu_memory="2000", gpu_fraction="0.5"), 1, {"gpu-memory", "gpu-fraction"}),
    (noted(plain(), **{"nvidia.com/container.a.gpu-memory.request": "2G"}), 1, {"gpu-memory"}),
    (
        noted(
            plain(),
            **{
                "nvidia.com/container.a.gpu-memory.request": "2G",
                "nvidia.com/container.b.gpu-memory.request": "2G",
            },
        ),
        2,
        {"gpu-memory"},
    ),
    (
        noted(plain(), **{"kai.scheduler/container.a.gpu-memory.portion.request": "0.2"}),
        1,
        {"gpu-fraction"},
    ),
    (noted(plain(), **{"nvidia.com/container.a.gpu-memory.limit": "2G"}), 0, set()),
    (noted(plain(), **{"nvidia.com/container.a.gpu-compute.mode": "x"}), 0, set()),
    (noted(plain(), **{"gpu-fraction.limit": "0.5"}), 0, set()),
    (
        pod(container(), resourceClaims=[{"name": "c", "resourceClaimName": "two"}]),
        2,
        {"claim"},
    ),
    (limited({"deviceclass.resource.kubernetes.io/vfio.gpu.nvidia.com": 8}), 8, {"whole"}),
    (noted(plain(), gpu_fraction="2.5", gpu_fraction_num_devices="2"), 6, {"gpu-fraction"}),
    (
        noted(plain(), **{"nvidia.com/container.a.gpu-memory.portion.request": "3"}),
        3,
        {"gpu-fraction"},
    ),
]


def use_of(document: Any) -> Any:
    rules = catalog("rules: {}")
    definition = rules.definition("", "Pod", "v1")
    assert definition is not None
    ev = Evaluation(request(document), References(claims=CLAIMS), definition)
    (location,) = locate(definition, document)
    return GpuCounter(WORDS).use(pod_view(location), ev)


@pytest.mark.parametrize(("document", "count", "forms"), PODS)
def test_a_pod_counts_in_all_its_forms(document: Any, count: int, forms: set[str]) -> None:
    use = use_of(document)
    assert (use.count, use.forms, use.unbounded_source) == (count, forms, "")


NOT_COUNTED = [
    pod(container(), resourceClaims=[{"name": "c", "resourceClaimName": "odd"}]),
    pod(container(), resourceClaims=[7]),
    pod(container(), resourceClaims=[{"claimCreationSpec": {"devices": {"count": 8}}}]),
    pod(container(), resourceClaims=[{"claimCreationSpec": {"devices": [{"count": 8.5}]}}]),
    limited({GPU: "8x"}),
    limited({GPU: 1, "amd.com/gpu": ""}),
    limited({"nvidia.com/mig-1g.5gb": [8]}),
    noted(plain(), gpu_fraction="0x1p3"),
    noted(plain(), gpu_fraction="0.5", gpu_fraction_num_devices="8.0"),
    noted(plain(), gpu_memory="2000", gpu_fraction_num_devices=[]),
    noted(plain(), **{"kai.scheduler/container.a.gpu-memory.portion.request": "inf"}),
]


@pytest.mark.parametrize("document", NOT_COUNTED)
def test_what_cannot_be_read_has_no_bound(document: Any) -> None:
    assert use_of(document).unbounded_source


UNREAD: list[Any] = ["8x", "", " ", "1e9223372036854775808", "٨", True, [8], {"a": 8}, "0x8"]
BOUNDS = [
    "gpuDevicesRequest: {max: 4}",
    "gpuDevicesRequest: {min: 1}",
    "gpuDevicesRequest: {step: 2}",
    "gpuDevicesRequest: {canEdit: false}",
    "gpuDevicesRequest: {blocked: true}",
    "gpuPortionRequest: {max: 4}",
]


@pytest.mark.parametrize("part", ["limits", "requests"])
@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("value", UNREAD)
def test_an_amount_that_cannot_be_read_breaks_every_rule(part: str, bound: str, value: Any) -> None:
    rules = catalog(f"rules: {{compute: {{{bound}}}}}")
    for name in (GPU, "nvidia.com/mig-1g.5gb"):
        document = deployment(container(resources={part: {name: value}}))
        assert (f"compute.{bound.partition(':')[0]}", "invalid-value") in refused(rules, document)


@pytest.mark.parametrize("value", UNREAD)
def test_a_total_with_an_amount_that_cannot_be_read_breaks_every_rule(value: Any) -> None:
    for bound in ("max: 4", "min: 1"):
        rules = catalog(f"rules: {{total: {{gpuDevices: {{{bound}}}}}}}")
        for replicas in (0, 3):
            document = deployment(container(resources={"limits": {GPU: value}}), replicas=replicas)
            assert refused(rules, document) == [("total.gpuDevices", "invalid-value")]


AMOUNTS = "compute: {cpuMemoryLimit: {max: 4Gi}, gpuDevicesRequest: {max: 4}}, total: {gpuDevices: {max: 4}}"


def test_an_amount_that_cannot_be_read_may_stay_but_nothing_grows_beside_it() -> None:
    rules = catalog(f"rules: {{{AMOUNTS}}}")
    old = deployment(container(resources={"limits": {GPU: "8x", "memory": "2Q"}}))
    same = copy.deepcopy(old)
    same["metadata"]["labels"] = {"a": "b"}
    assert isinstance(mutated(rules, same, old), Allowed)
    same["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": "A", "value": "b"}]
    assert isinstance(mutated(rules, same, old), Allowed)
    other = deployment(container(resources={"limits": {GPU: "9x", "memory": "2Q"}}))
    invalid = [
        ("compute.gpuDevicesRequest", "invalid-value"),
        ("total.gpuDevices", "invalid-value"),
    ]
    assert refused(rules, other, old) == invalid
    more = deployment(
        container(resources={"limits": {GPU: "8x", "memory": "2Q", "amd.com/gpu": 8}})
    )
    grown = [("compute.gpuDevicesRequest", "unbounded"), ("total.gpuDevices", "unbounded")]
    assert refused(rules, more, old) == grown
    scaled = deployment(*old["spec"]["template"]["spec"]["containers"], replicas=2)
    assert refused(rules, scaled, old) == [("total.gpuDevices", "unbounded")]
    read = deployment(container(resources={"limits": {GPU: 64, "memory": "2Gi"}}))
    assert refused(rules, read, old) == [
        ("compute.gpuDevicesRequest", "max"),
        ("total.gpuDevices", "max"),
    ]


HOSTILE: list[Any] = [
    "nan", "1e400", "1e999999999", "-1", "inf", "0x1", "½", "٣", "1" * 300, "", " ", "0", "1", "1.5",
    7, 0.5, -3, True, None, [], {}, ["0.5"], {"a": 1},
]  # fmt: skip
PLACES = [
    "gpu-fraction",
    "gpu-memory",
    "gpu-fraction-num-devices",
    "gpu-fraction-container-name",
    "gpu-fraction.limit",
    "gpu-memory.limit",
    "nvidia.com/container..gpu-memory.request",
    "nvidia.com/container.main.gpu-memory.request",
    "nvidia.com/container.main.gpu-memory.limit",
    "kai.scheduler/container.main.gpu-memory.portion.limit",
]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("value", HOSTILE)
def test_nothing_in_an_annotation_raises_or_is_printed(place: str, value: Any) -> None:
    rules = everything()
    document = plain()
    document["metadata"]["annotations"] = {"gpu-fraction": "0.3", place: value}
    for decision in (mutated(rules, document), validated(rules, document)):
        assert isinstance(decision, Allowed | Denied)
        if isinstance(decision, Denied) and value in ("nan", "inf", "0x1", "½"):
            assert all(value not in (each.value or "") for each in decision.violations)


@pytest.mark.parametrize("value", HOSTILE)
def test_nothing_among_amounts_and_variables_raises(value: Any) -> None:
    rules = everything()
    variable = {"name": "RUNAI_GPU_MEMORY_LIMIT", "value": value}
    for document in (
        limited({GPU: value}),
        limited({"example.com/nic": value, "nvidia.com/mig-1g.5gb": value}),
        noted(pod(container(env=[variable]), schedulerName=KAI), gpu_fraction="0.3"),
        noted(pod(container(env=value), schedulerName=KAI), gpu_fraction="0.3"),
        noted(pod(container(env=[value]), schedulerName=KAI), gpu_memory="2000"),
        pod(container(), resourceClaims=value),
        pod(container(), schedulerName=value),
    ):
        for decision in (mutated(rules, document), validated(rules, document)):
            assert isinstance(decision, Allowed | Denied)


def test_keys_that_belong_to_fields() -> None:
    assert all(is_gpu_annotation(key) for key in PLACES if "container.." not in key)
    for key in ("gpu-fractions", "mps", "x/gpu-memory", "nvidia.com/container.a.gpu-compute.mode"):
        assert not is_gpu_annotation(key)


def defaults(words: str, rules: str = "") -> str:
    return f"defaults: {{compute: {{{words}}}}}\nrules: {{compute: {{{rules}}}}}"


WRITTEN: list[tuple[str, dict[str, str], dict[str, str]]] = [
    ("gpuDevicesRequest: 1, gpuPortionRequest: 0.5", {"gpu-fraction": "0.5"}, {}),
    ("gpuPortionRequest: 1", {}, {GPU: "1"}),
    ("gpuPortionRequest: 1, gpuDevicesRequest: 4", {}, {GPU: "1"}),
    ("gpuPortionRequest: 2", {}, {GPU: "2"}),
    ("gpuMemoryRequest: 4Gi", {"gpu-memory": "4096"}, {}),
    ("gpuMemoryRequest: 4G", {"gpu-memory": "3815"}, {}),
    (
        "gpuRequestType: memory, gpuMemoryRequest: 4Gi, gpuPortionRequest: 0.5",
        {"gpu-memory": "4096"},
        {},
    ),
    ("gpuRequestType: portion, gpuMemoryRequest: 4Gi", {}, {}),
    ("gpuRequestType: memory, gpuPortionRequest: 0.5, gpuDevicesRequest: 1", {}, {GPU: "1"}),
    ("gpuRequestType: portion", {}, {}),
    ("migProfile: 1g.5gb", {}, {"nvidia.com/mig-1g.5gb": "1"}),
    ("migProfile: 1g.5gb, gpuDevicesRequest: 1", {}, {"nvidia.com/mig-1g.5gb": "1"}),
    ("gpuDevicesRequest: 3", {}, {GPU: "3"}),
    ("gpuPortionRequest: 1e-1", {"gpu-fraction": "0.1"}, {}),
]


@pytest.mark.parametrize(("words", "annotations", "amounts"), WRITTEN)
def test_one_form_of_default_is_written(
    words: str, annotations: dict[str, str], amounts: dict[str, str]
) -> None:
    found = result(catalog(defaults(words)), plain())
    assert found["metadata"].get("annotations", {}) == annotations
    resources = found["spec"]["containers"][0].get("resources", {})
    assert resources.get("limits", {}) == resources.get("requests", {}) == amounts


@pytest.mark.parametrize(
    "document",
    [
        limited({GPU: 1}),
        limited({GPU: 0}),
        limited({"nvidia.com/mig-2g.10gb": 1}),
        noted(plain(), gpu_fraction="0.3"),
        noted(plain(), gpu_memory="3000"),
        pod(container(env=[{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]), schedulerName=KAI),
    ],
)
@pytest.mark.parametrize("words", [words for words, _, _ in WRITTEN])
def test_no_default_stands_beside_a_form_of_the_user(words: str, document: Any) -> None:
    assert asked(result(catalog(defaults(words)), document)) == asked(document)


@pytest.mark.parametrize(("words", "annotations", "amounts"), WRITTEN)
def test_what_a_lock_wrote_is_no_offence(
    words: str, annotations: dict[str, str], amounts: dict[str, str]
) -> None:
    if not annotations and not amounts:
        return
    names = [each.partition(":")[0].strip() for each in words.split(",")]
    locked = ", ".join(f"{name}: {{canEdit: false}}" for name in names)
    if "gpuDevicesRequest: 4" in words:
        return  # the two locks contradict one another
    found = result(catalog(defaults(words, locked)), plain())
    assert found["metadata"].get("annotations", {}) == annotations


def test_a_locked_form_refuses_every_other() -> None:
    rules = catalog(defaults("gpuPortionRequest: 0.5", "gpuPortionRequest: {canEdit: false}"))
    field = [("compute.gpuPortionRequest", "canEdit")]
    assert refused(rules, limited({GPU: 1})) == field
    assert refused(rules, limited({"nvidia.com/mig-1g.5gb": 1})) == field
    assert refused(rules, noted(plain(), gpu_memory="2000")) == field
    assert refused(rules, noted(plain(), gpu_fraction="0.4")) == field
    same = noted(plain(), gpu_fraction="5e-1")
    assert asked(result(rules, same)) == asked(same)
    assert reasons(validated(rules, plain())) == field


def test_a_ban_on_shares_is_none_on_whole_devices() -> None:
    for rule in ("blocked: true", "canEdit: false"):
        rules = catalog(defaults("", f"gpuPortionRequest: {{{rule}}}"))
        assert result(rules, limited({GPU: 1}))
        assert refused(rules, noted(plain(), gpu_fraction="0.5"))


def test_a_part_names_its_container_among_several() -> None:
    rules = catalog(defaults("gpuPortionRequest: 0.5"))
    document = pod(container(), container("side"), schedulerName=KAI)
    document["metadata"]["annotations"] = {"podgate.dev/main-container": "side"}
    found = result(rules, document)["metadata"]["annotations"]
    assert found["gpu-fraction-container-name"] == "side"


def test_limits_follow_the_part() -> None:
    rules = catalog(defaults("gpuPortionLimit: 0.8, gpuMemoryLimit: 8Gi"))
    found = result(rules, noted(plain(), gpu_fraction="0.5"))["spec"]["containers"][0]
    assert found["env"] == [{"name": "RUNAI_GPU_MEMORY_LIMIT", "value": "0.8"}]
    found = result(rules, noted(plain(), gpu_memory="2000"))["spec"]["containers"][0]
    assert found["env"] == [{"name": "RUNAI_GPU_MEMORY_LIMIT", "value": "8Gi"}]
    assert asked(result(rules, limited({GPU: 1}))) == asked(limited({GPU: 1}))
    raised = result(rules, noted(plain(), gpu_fraction="0.9"))["spec"]["containers"][0]
    assert raised["env"] == [{"name": "RUNAI_GPU_MEMORY_LIMIT", "value": "0.9"}]


def test_a_fixed_limit_refuses_requests_above_it() -> None:
    rules = catalog(defaults("gpuPortionLimit: 0.8", "gpuPortionLimit: {canEdit: false}"))
    assert ("compute.gpuPortionLimit", "request-exceeds-limit") in reasons(
        mutated(rules, noted(plain(), gpu_fraction="0.9"))
    )
    assert ("compute.gpuPortionLimit", "request-exceeds-limit") in reasons(
        validated(rules, noted(plain(), gpu_fraction="0.9"))
    )
    assert reasons(validated(rules, noted(plain(), gpu_fraction="0.5"))) == [
        ("compute.gpuPortionLimit", "canEdit")
    ]
    env = [{"name": "A", "value": "b"}]
    assert reasons(
        validated(rules, noted(pod(container(env=env), schedulerName=KAI), gpu_fraction="0.5"))
    ) == [("compute.gpuPortionLimit", "canEdit")]


def test_an_update_keeps_the_old_form() -> None:
    before = deployment(container(), schedulerName=KAI)
    old = result(catalog(defaults("gpuPortionRequest: 0.5")), before)
    changed = deployment(container(image="registry.example.com/app:2"), schedulerName=KAI)
    found = result(catalog(defaults("gpuPortionRequest: 0.4, gpuDevicesRequest: 1")), changed, old)
    annotations = found["spec"]["template"]["metadata"]["annotations"]
    assert annotations == {"gpu-fraction": "0.5"}
    rules = catalog(defaults("gpuPortionRequest: 0.4", "gpuPortionRequest: {max: 0.4}"))
    found = result(rules, changed, old)
    assert found["spec"]["template"]["metadata"]["annotations"] == {"gpu-fraction": "0.4"}
    rules = catalog(defaults("gpuDevicesRequest: 2"))
    old = result(rules, deployment(container()))
    rules = catalog(defaults("gpuPortionRequest: 0.4, gpuDevicesRequest: 1"))
    changed = deployment(container(image="registry.example.com/app:2"))
    main = result(rules, changed, old)["spec"]["template"]["spec"]["containers"][0]
    assert main["resources"]["limits"] == {GPU: "2"}


def test_what_was_there_may_stay() -> None:
    rules = catalog(defaults("", "gpuPortionRequest: {max: 0.3}, gpuMemoryLimit: {max: 1Gi}"))
    job = pytorchjob(container("pytorch"), schedulerName=KAI)
    template = job["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]
    template.setdefault("metadata", {})["annotations"] = {"gpu-fraction": "0.5"}
    changed = copy.deepcopy(job)
    worker = changed["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]
    worker["spec"]["containers"][0]["image"] = "registry.example.com/app:2"
    assert result(rules, changed, job)
    worker["metadata"]["annotations"]["gpu-fraction"] = "0.4"
    assert result(rules, changed, job)
    worker["metadata"]["annotations"]["gpu-fraction"] = "0.6"
    assert refused(rules, changed, job) == [("compute.gpuPortionRequest", "max")]
    strict = catalog(policy(defaults("", "gpuPortionRequest: {max: 0.3}"), existing="strict"))
    worker["metadata"]["annotations"]["gpu-fraction"] = "0.4"
    assert refused(strict, changed, job) == [("compute.gpuPortionRequest", "max")]


def test_a_computed_share_and_limit() -> None:
    rules = catalog(
        defaults(
            "cpuCoreRequest: 2",
            "gpuPortionRequest: {defaultFrom: {field: cpuCoreRequest, factor: 0.1}},"
            " gpuPortionLimit: {defaultFrom: {field: gpuPortionRequest, factor: 2}}",
        )
    )
    found = result(rules, plain())
    assert found["metadata"]["annotations"] == {"gpu-fraction": "0.2"}
    env = found["spec"]["containers"][0]["env"]
    assert env == [{"name": "RUNAI_GPU_MEMORY_LIMIT", "value": "0.4"}]
