"""P: what one pod answers to the selectors of a component."""
# ruff: noqa: N802 - tests bear the ids of the conformance list

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.conformance.fixtures import INSTANCE_POD, QUERIER_POD, pod
from webhook.access.errors import AccessError
from webhook.interface.document import Member, Mode, PodSelector
from webhook.jq.expressions import JqSyntaxError

APP, VERSION = ".metadata.labels.app", ".metadata.labels.version"
NAMESPACE = ".metadata.namespace"
ENTRIES = ".metadata.labels | to_entries"
BOTH_MODES = pytest.mark.parametrize("mode", ["parity", "admission"])


def keys(*texts: str) -> list[str]:
    member = {"componentName": "x", "groupByKeyPaths": list(texts)}
    return pod(QUERIER_POD).group_keys(Member.model_validate(member))


def test_P1_one_key() -> None:
    assert keys(APP) == ["pytorch"]


def test_P2_several_keys() -> None:
    assert keys(APP, VERSION, NAMESPACE) == ["pytorch", "v1.0", "default"]


def test_P3_no_key() -> None:
    assert keys() == []


@pytest.mark.parametrize(
    "text, reason",
    [
        pytest.param(".metadata.labels.nonexistent", "no-result", id="P4"),
        pytest.param(f"{ENTRIES} | .[].key", "several-results", id="P5"),
    ],
)
def test_a_key_is_one_text(text: str, reason: str) -> None:
    with pytest.raises(AccessError) as error:
        keys(APP, text)
    assert error.value.reasons == ("group-key-failed", reason)
    assert error.value.facts == {"path": text}


@pytest.mark.parametrize(
    "filters, expected",
    [
        pytest.param([], True, id="P6"),
        pytest.param([f'{APP} == "pytorch"'], True, id="P7"),
        pytest.param(
            [f'{APP} == "pytorch"', f'{VERSION} == "v1.0"', f'{NAMESPACE} == "default"'],
            True,
            id="P8",
        ),
        pytest.param(
            ['.metadata.labels | has("app")', ".spec.containers | length > 0"], True, id="P9"
        ),
        pytest.param([f'{APP} == "wrong-app"'], False, id="P10"),
        pytest.param(
            [f'{APP} == "pytorch"', f'{VERSION} == "v2"', f'{NAMESPACE} == "default"'],
            False,
            id="P11",
        ),
        pytest.param([APP], False, id="P12"),
        pytest.param(['.metadata.labels.nonexistent == "something"'], False, id="P15"),
    ],
)
@BOTH_MODES
def test_filters(filters: list[str], expected: bool, mode: Mode) -> None:
    assert pod(QUERIER_POD, mode).passes(filters) is expected


@pytest.mark.parametrize(
    "text, reason",
    [
        pytest.param(".invalid.[syntax", "not-jq", id="P13"),
        pytest.param(f'{ENTRIES} | .[].value == "pytorch"', "several-results", id="P14"),
        pytest.param(".metadata.labels.nonexistent", "no-result", id="null"),
    ],
)
def test_a_filter_that_fails(text: str, reason: str) -> None:
    with pytest.raises(AccessError) as error:
        pod(QUERIER_POD).passes([text])
    assert error.value.reasons == ("filter-failed", reason)
    assert error.value.facts == {"filter": text}


def by_type(key_path: str, value: str | None = None) -> PodSelector:
    selector = {"keyPath": key_path} if value is None else {"keyPath": key_path, "value": value}
    return PodSelector.model_validate({"componentTypeSelector": selector})


COMPONENT, CONFIG = ".metadata.labels.component", ".metadata.annotations.config"
NAME = ".spec.containers[0].name"


@pytest.mark.parametrize(
    "selector, expected",
    [
        pytest.param(PodSelector(), False, id="P16"),
        pytest.param(None, False, id="P16-none"),
        pytest.param(by_type(COMPONENT), True, id="P17"),
        pytest.param(by_type(".metadata.labels.nonexistent"), False, id="P18"),
        pytest.param(by_type(CONFIG), True, id="P19"),
        pytest.param(by_type(NAME), True, id="P20"),
        pytest.param(by_type(COMPONENT, "worker"), True, id="P21"),
        pytest.param(by_type(COMPONENT, "master"), False, id="P22"),
        pytest.param(by_type(CONFIG, "high-memory"), True, id="P23"),
        pytest.param(by_type(CONFIG, "low-memory"), False, id="P24"),
        pytest.param(
            by_type(".metadata.labels.special", "value-with-special_chars.and:colons"),
            True,
            id="P25",
        ),
        pytest.param(by_type(".metadata.labels.quotes", 'value-with-"quotes"'), True, id="P26"),
        pytest.param(by_type(".metadata.labels.absent", "any"), False, id="P27"),
        pytest.param(by_type(NAME, "main"), True, id="P28"),
        pytest.param(by_type(NAMESPACE, "default"), True, id="P29"),
    ],
)
@BOTH_MODES
def test_a_type_selector(selector: PodSelector | None, expected: bool, mode: Mode) -> None:
    document = copy.deepcopy(QUERIER_POD)
    metadata: Any = document["metadata"]
    metadata["labels"]["special"] = "value-with-special_chars.and:colons"
    metadata["labels"]["quotes"] = 'value-with-"quotes"'
    assert pod(document, mode).is_of_type(selector) is expected


@BOTH_MODES
def test_P30_bad_syntax_keeps_its_error(mode: Mode) -> None:
    with pytest.raises(JqSyntaxError):
        pod(QUERIER_POD, mode).is_of_type(by_type(".invalid[[[syntax", "any"))


def labelled(**metadata: Any) -> dict[str, Any]:
    document: dict[str, Any] = copy.deepcopy(QUERIER_POD)
    for key, value in metadata.items():
        document["metadata"].setdefault(key, {}).update(value)
    return document


def replica(text: str) -> PodSelector:
    return PodSelector.model_validate({"replicaSelector": {"keyPath": text}})


def instance(text: str) -> PodSelector:
    return PodSelector.model_validate({"componentInstanceSelector": {"idPath": text}})


def test_P31_no_replica_selector() -> None:
    assert pod(QUERIER_POD).replica_key(PodSelector()) is None
    assert pod(QUERIER_POD).replica_key(None) is None


def test_P32_a_replica_by_label() -> None:
    found = pod(labelled(labels={"group-index": "2"}))
    assert found.replica_key(replica('.metadata.labels["group-index"]')) == "2"


def test_P33_a_replica_by_annotation() -> None:
    found = pod(labelled(annotations={"replica-id": "group-0"}))
    assert found.replica_key(replica('.metadata.annotations["replica-id"]')) == "group-0"


FAILS = [
    (".metadata.labels.absent", "no-result"),
    (".invalid[[[syntax", "not-jq"),
    (f"{ENTRIES} | .[].value", "several-results"),
]


@pytest.mark.parametrize(
    "text, reason",
    [pytest.param(*each, id=f"P{34 + at}") for at, each in enumerate(FAILS)],
)
def test_a_replica_that_cannot_be_read(text: str, reason: str) -> None:
    with pytest.raises(AccessError) as error:
        pod(QUERIER_POD).replica_key(replica(text))
    assert error.value.reasons == ("replica-key-failed", reason)
    assert error.value.facts == {"path": text}


def test_P37_no_instance_selector() -> None:
    assert pod(QUERIER_POD).instance_id(PodSelector()) is None


def test_P38_an_empty_instance_path() -> None:
    assert pod(QUERIER_POD).instance_id(instance("")) is None


def test_P39_an_instance_by_label() -> None:
    found = pod(INSTANCE_POD).instance_id(instance('.metadata.labels["job-name"]'))
    assert found == "indexer"


def test_P40_an_instance_by_annotation() -> None:
    assert pod(QUERIER_POD).instance_id(instance(CONFIG)) == "high-memory"


@pytest.mark.parametrize(
    "text, reason",
    [pytest.param(*each, id=f"P{41 + at}") for at, each in enumerate(FAILS)],
)
def test_an_instance_that_cannot_be_read(text: str, reason: str) -> None:
    with pytest.raises(AccessError) as error:
        pod(QUERIER_POD).instance_id(instance(text))
    assert error.value.reasons == ("instance-id-failed", reason)
    assert error.value.facts == {"path": text}


JOB_NAME = '.metadata.labels["job-name"]'
DYNAMO = '.metadata.annotations."nvidia.com/dynamo-component"'
IN_ENV = '.spec.containers[0].env[] | select(.name == "GROUP_NAME") | .value'


def with_group(name: Any) -> dict[str, Any]:
    document: dict[str, Any] = copy.deepcopy(INSTANCE_POD)
    document["spec"]["containers"][0]["env"] = [
        {"name": "OTHER", "value": "x"},
        {"name": "GROUP_NAME", "value": name},
    ]
    return document


@pytest.mark.parametrize(
    "document, text, ids, expected",
    [
        pytest.param(INSTANCE_POD, JOB_NAME, ["indexer", "processor"], "indexer", id="P44"),
        pytest.param(
            INSTANCE_POD,
            DYNAMO,
            ["worker-group-1", "worker-group-2"],
            "worker-group-1",
            id="P45",
        ),
        pytest.param(with_group("cache"), IN_ENV, ["api", "worker", "cache"], "cache", id="P46"),
        pytest.param(with_group(3), IN_ENV, ["2", "3"], "3", id="P51"),
    ],
)
@BOTH_MODES
def test_a_matching_instance(
    document: Any, text: str, ids: list[str], expected: str, mode: Mode
) -> None:
    assert pod(document, mode).matching_id(instance(text), ids) == expected


@pytest.mark.parametrize(
    "text, reasons",
    [
        pytest.param(".invalid[[[", ("instance-id-failed", "not-jq"), id="P47"),
        pytest.param(".metadata.labels[]", ("instance-id-failed", "several-results"), id="P48"),
        pytest.param(
            '.spec.containers[] | select(.name == "none") | .name',
            ("instance-id-failed", "several-results"),
            id="P49",
        ),
        pytest.param(COMPONENT, ("instance-unmatched",), id="P50"),
    ],
)
def test_no_matching_instance(text: str, reasons: tuple[str, ...]) -> None:
    with pytest.raises(AccessError) as error:
        pod(INSTANCE_POD).matching_id(instance(text), ["indexer", "processor"])
    assert error.value.reasons == reasons


def test_P52_one_instance_without_a_name_needs_no_selector() -> None:
    assert pod(INSTANCE_POD).matching_id(None, [""]) == ""


@pytest.mark.parametrize("ids", [pytest.param(["a", "b"], id="P53"), pytest.param(["a"], id="P54")])
def test_named_instances_need_a_selector(ids: list[str]) -> None:
    with pytest.raises(AccessError) as error:
        pod(INSTANCE_POD).matching_id(PodSelector(), ids)
    assert error.value.reason == "instance-selector-missing"
    assert error.value.facts == {"ids": ids}


@pytest.mark.parametrize("wrong", [None, 7, [], {"metadata": 3}, {"metadata": {"labels": [1]}}])
def test_odd_pods_answer_or_fail_cleanly(wrong: Any) -> None:
    labels = PodSelector.model_validate({"componentTypeSelector": {"matchLabels": {"a": "b"}}})
    assert not pod(wrong, "admission").is_of_type(labels)
    with pytest.raises(AccessError):
        pod(wrong).instance_id(instance(".metadata.labels.x"))
