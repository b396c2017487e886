"""Every leaf of the field table in policy documents: its defaults, its rules, its spellings."""

from __future__ import annotations

import json
from typing import Any

import pytest

from webhook.documents.problem import Problem
from webhook.documents.source import SourceDocument
from webhook.documents.yaml_source import read_documents
from webhook.policy import rules, values
from webhook.policy.leaves import LeafType, leaf_type
from webhook.policy.policy import EVERYWHERE, Policy
from webhook.policy.policy_document import Context, parse_policy
from webhook.policy.table import TABLE

pytestmark = pytest.mark.long

FIELDS = [path for path, row in TABLE.fields.items() if row.items is None]
ITEMIZED = [path for path, row in TABLE.fields.items() if row.items is not None]
ATTRIBUTES = list(TABLE.attributes)
ITEM_RULES = rules.rules_for("itemized")
ADVICE = {
    "not-enforceable",
    "outdated-field",
    "incomplete-default",
    "incomplete-item",
    "blocked-beside-rules",
}
"""Warnings that have nothing to do with spelling."""
SAMPLES: dict[str, Any] = {
    "boolean": True,
    "string": "web",
    "integer": 2,
    "number": 1,
    "quantity": "1Gi",
    "array": ["web"],
    "itemized": None,
}
BESIDE = {"tolerations.seconds": {"effect": "NoExecute"}}
"""What an attribute needs beside it."""
SPECIAL: dict[str, Any] = {
    "nodeAffinityRequired": {
        "nodeSelectorTerms": [
            {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
        ]
    },
    "security.supplementalGroups": "100,200",
    "autoscaling.metricThresholdPercentage": 70,
    "environmentVariables.secret": {"name": "store", "key": "word"},
    "environmentVariables.configMap": {"name": "store", "key": "word"},
    "environmentVariables.podFieldRef": {"path": "metadata.name"},
    "environmentVariables.userCredential": {"name": "store", "key": "word"},
    "storage.pvc.claimInfo.addedAttrValues": ["web"],
    "tolerations.effect": "NoExecute",
}


def parse(data: Any, workload_type: str | None = None) -> tuple[Policy | None, tuple[Problem, ...]]:
    """What the parser says of plain data, as it stands in a file."""
    (found,), faults = read_documents(json.dumps(data), "given.yaml")
    assert not faults
    assert isinstance(found, SourceDocument)
    return parse_policy(found, Context(workload_type=workload_type))


def accepted(data: Any, workload_type: str | None = None) -> tuple[Policy, list[Problem]]:
    """The policy and the warnings about its spelling."""
    policy, problems = parse(data, workload_type)
    assert policy is not None, problems
    return policy, [each for each in problems if each.reason not in ADVICE]


def nested(path: str, value: Any) -> dict[str, Any]:
    """A value below the sections of its dotted name."""
    for step in reversed(path.split(".")):
        value = {step: value}
    assert isinstance(value, dict)
    return value


def sample(path: str) -> Any:
    """A value that a leaf takes."""
    leaf = leaf_type(path)
    if path in SPECIAL:
        return SPECIAL[path]
    if leaf.codec is values.AMOUNT_TEXT:
        return "2"
    if leaf.codec is values.FILE_MODE:
        return "0644"
    if leaf.enum:
        return [leaf.enum[0]] if leaf.is_array else leaf.enum[0]
    return SAMPLES[leaf.value]


def source_of(leaf: LeafType) -> str:
    """A leaf that a default of this one can be computed from; empty when there is none."""
    numbers = {"integer", "number"}
    for path in (*TABLE.fields, *TABLE.attributes):
        other = leaf_type(path)
        alike = leaf.value == other.value or {leaf.value, other.value} <= numbers
        near = other.row.section == leaf.row.section and other.is_attribute == leaf.is_attribute
        same_item = not leaf.is_attribute or other.row is leaf.row
        if path != leaf.path and alike and near and same_item:
            return path
    return ""


def argument(path: str, rule: str) -> Any:
    """An argument of a rule that fits a leaf; None when no leaf could be its source."""
    leaf, kind = leaf_type(path), rules.TABLE[rule].argument
    value = sample(path)
    match kind:
        case "boolean":
            return rule not in ("canEdit", "canAdd")
        case "options":
            return [{"value": value[0] if leaf.is_array else value, "displayed": "This one"}]
        case "keys":
            return ["web"]
        case "source":
            found = source_of(leaf)
            return {"field": found, "factor": 0.5} if found else None
    return value


def place_of(path: str) -> str:
    """Where the rules of a leaf stand below `rules`."""
    if path in TABLE.fields:
        return path if TABLE.fields[path].items is None else f"{path}.instances"
    row, attribute = TABLE.attributes[path]
    return f"{row.path}.attributes.{attribute.name}"


def item(path: str, *, without: str = "") -> dict[str, Any]:
    """An item of a field with its required attributes and its key."""
    items = TABLE.fields[path].items
    assert items is not None
    found: dict[str, Any] = {}
    for each in items.attributes:
        if (each.required or each.name == items.key) and each.name != without:
            put(found, each.name, sample(f"{path}.{each.name}"))
    return found


def put(found: dict[str, Any], name: str, value: Any) -> None:
    """Set an attribute below the maps of its dotted name."""
    *above, last = name.split(".")
    for step in above:
        found = found.setdefault(step, {})
    found[last] = value


@pytest.mark.parametrize("path", FIELDS)
def test_a_field_takes_a_default(path: str) -> None:
    policy, spelling = accepted({"defaults": nested(path, sample(path))})
    assert path in policy.body.defaults[EVERYWHERE]
    assert not spelling


@pytest.mark.parametrize("path", ATTRIBUTES)
def test_an_attribute_takes_a_value_in_an_item_and_where_allowed_a_default(path: str) -> None:
    row, attribute = TABLE.attributes[path]
    assert row.items is not None
    value = False if attribute.name == "exclude" else sample(path)
    one = {**item(row.path), **BESIDE.get(path, {})}
    put(one, attribute.name, value)
    policy, spelling = accepted({"defaults": nested(row.path, {"instances": [one]})})
    (found,) = policy.body.items[EVERYWHERE][row.path]
    assert attribute.name in found.attributes or attribute.name == "exclude"
    assert not spelling
    data = {"defaults": nested(f"{row.path}.attributes.{attribute.name}", value)}
    loaded, problems = parse(data)
    assert (loaded is not None) == row.items.attribute_defaults, problems


@pytest.mark.parametrize("path", [*FIELDS, *ITEMIZED, *ATTRIBUTES])
def test_a_leaf_takes_its_rules_and_refuses_all_others(path: str) -> None:
    leaf, place = leaf_type(path), place_of(path)
    legal = ITEM_RULES if path in ITEMIZED else leaf.legal
    for rule in rules.TABLE:
        said = argument(path, rule) if rule in legal else True
        if said is None:
            continue
        policy, problems = parse({"rules": nested(place, {rule: said})})
        if rule in legal:
            assert policy is not None, (rule, problems)
            assert rule in policy.body.rules[EVERYWHERE][path]
            assert {each.reason for each in problems} <= ADVICE
        else:
            assert [each.reason for each in problems] == ["rule-not-for-type"], rule
            assert path.rpartition(".")[2] in problems[0].found


@pytest.mark.parametrize("path", ITEMIZED)
def test_rules_of_items_stand_below_instances_and_attributes(path: str) -> None:
    own = TABLE.fields[path].extra_rules
    for rule in rules.TABLE:
        policy, problems = parse({"rules": nested(path, {rule: argument_of_list(rule)})})
        if rule in own:
            assert policy is not None, (rule, problems)
        else:
            assert [each.reason for each in problems] == ["rules-on-itemized"], rule


def argument_of_list(rule: str) -> Any:
    """An argument for a rule on a list of names."""
    return {"options": ["web"], "locked": ["web"]}.get(rule, True)


@pytest.mark.parametrize("alias, path", sorted(TABLE.aliases.items()))
def test_another_spelling_loads_with_one_warning(alias: str, path: str) -> None:
    row = TABLE.owner(path)
    if path in ATTRIBUTES:
        one, name = item(row.path, without=path.removeprefix(f"{row.path}.")), alias
        put(one, name.removeprefix(f"{row.path}."), sample(path))
        data = {"defaults": nested(row.path, {"instances": [one]})}
    elif row.items is not None:
        data = {"defaults": nested(alias, {"instances": [item(path)]})}
    else:
        data = {"defaults": nested(alias, sample(path))}
    _, spelling = accepted(data)
    reason = "letter-case" if alias.lower() == path.lower() else "alias"
    name = path.removeprefix(f"{row.path}.") if path in ATTRIBUTES else path
    assert [(each.reason, each.fix) for each in spelling] == [(reason, f"write {name}")]


@pytest.mark.parametrize("path", [*FIELDS, *ITEMIZED])
def test_another_letter_case_loads_with_one_warning(path: str) -> None:
    above, dot, last = path.rpartition(".")
    value: Any = {"instances": [item(path)]} if path in ITEMIZED else sample(path)
    _, spelling = accepted({"defaults": nested(f"{above}{dot}{last.swapcase()}", value)})
    assert [(each.reason, each.fix) for each in spelling] == [("letter-case", f"write {path}")]


@pytest.mark.parametrize("path", [path for path in ATTRIBUTES if leaf_type(path).legal])
def test_an_attribute_in_another_letter_case_loads_with_one_warning(path: str) -> None:
    row, attribute = TABLE.attributes[path]
    above, dot, last = attribute.name.rpartition(".")
    place = f"{row.path}.attributes.{above}{dot}{last.swapcase()}"
    _, spelling = accepted({"rules": nested(place, {"canEdit": False})})
    wanted = [("letter-case", f"write {attribute.name}")]
    assert [(each.reason, each.fix) for each in spelling] == wanted


TYPED = [
    ("inference", "servingPort.port", "servingPort.container"),
    ("distributedInference", "servingPort.container", "servingPort.port"),
    ("nimService", "servingPort.container", "servingPort.port"),
]


@pytest.mark.parametrize("workload_type, spelled, path", TYPED)
def test_the_serving_port_means_what_the_type_calls_so(
    workload_type: str, spelled: str, path: str
) -> None:
    data = {"defaults": nested(spelled, 80), "rules": nested(spelled, {"max": 90})}
    policy, spelling = accepted(data, workload_type)
    assert [*policy.body.defaults[EVERYWHERE]] == [path]
    assert [*policy.body.rules[EVERYWHERE]] == [path]
    assert [(each.reason, each.fix) for each in spelling] == [("alias", f"write {path}")] * 2
    both = {"defaults": {"servingPort": {"container": 1, "port": 2}}}
    policy, spelling = accepted(both, workload_type)
    canonical = 1 if path.endswith("container") else 2
    assert policy.body.defaults[EVERYWHERE][path].value == canonical
    assert {each.reason for each in spelling} == {"alias", "spelled-twice"}


def test_the_serving_port_has_two_names_where_the_types_do_not_say() -> None:
    both = {"defaults": {"servingPort": {"container": 1, "port": 2}}}
    policy, spelling = accepted(both)
    assert [*policy.body.defaults[EVERYWHERE]] == ["servingPort.container", "servingPort.port"]
    assert not spelling


def test_a_computed_default_follows_the_type_too() -> None:
    rule = {"defaultFrom": {"field": "servingPort.container"}}
    policy, spelling = accepted({"rules": nested("servingPort.grpcPort", rule)}, "nimService")
    found = policy.body.rules[EVERYWHERE]["servingPort.grpcPort"]["defaultFrom"]
    assert found.field == "servingPort.port"
    assert [each.reason for each in spelling] == ["alias"]


ODD: tuple[Any, ...] = (None, 7, -1, 1.5, "", "x", True, [], [None], [[]], [7], {}, {"a": None})


@pytest.mark.parametrize("path", [*FIELDS, *ITEMIZED, *ATTRIBUTES])
def test_odd_documents_are_told_and_never_raise(path: str) -> None:
    row = TABLE.owner(path)
    for odd in ODD:
        documents = [
            {"defaults": nested(path, odd)},
            {"rules": nested(path, odd)},
            {"rules": nested(place_of(path), odd)},
            *({"rules": nested(place_of(path), {rule: odd})} for rule in rules.TABLE),
        ]
        if row.items is not None:
            documents.append({"defaults": nested(path, {"instances": odd})})
        if path in ATTRIBUTES:
            one: dict[str, Any] = {}
            put(one, path.removeprefix(f"{row.path}."), odd)
            documents.append({"defaults": nested(row.path, {"instances": [one]})})
            documents.append({"defaults": nested(row.path, {"attributes": one})})
        for data in documents:
            policy, problems = parse(data)
            assert policy is not None or any(each.severity == "error" for each in problems)
