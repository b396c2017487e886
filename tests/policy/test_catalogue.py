"""The field table against the reference: every path, type, rule, alias, enum and item of it."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from webhook.policy import rules, values
from webhook.policy.catalogue import GROUPS
from webhook.policy.leaves import leaf_type
from webhook.policy.row import ALL_TYPES, Binding
from webhook.policy.table import TABLE

Row = dict[str, Any]
ROLE_GROUPS = {"master": "masterSpec", "worker": "workerSpec"}
REFERENCE = Path(__file__).with_name("policy-fields.json")
CLASSES = {each.value for each in Binding} - {"attr"}


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    """The rows of the reference: what the policy reference has, and the fields that are ours."""
    found: list[Row] = json.loads(REFERENCE.read_text("utf-8"))
    return found


def is_group(row: Row) -> bool:
    """Whether a row only holds others below it."""
    no_value = row["value_type"] == "object" and not row["rules"]
    return row["binding"] == "obj" or (no_value and row["path"] not in TABLE.attributes)


def merged(rows: list[Row]) -> dict[str, Row]:
    """Rows by path; `replicas` stands there once for each workload type."""
    found: dict[str, Row] = {}
    for row in rows:
        known = found.setdefault(row["path"], dict(row))
        known["workload_types"] = sorted({*known["workload_types"], *row["workload_types"]})
        known["aliases"] = [*dict.fromkeys((*known["aliases"], *row["aliases"]))]
    return found


def fields_of(rows: list[Row]) -> dict[str, Row]:
    """The rows of fields, which are neither attributes nor groups."""
    return {
        path: row
        for path, row in merged(rows).items()
        if row["binding"] != "attr" and not is_group(row)
    }


def attributes_of(rows: list[Row]) -> dict[str, Row]:
    """The rows of attributes, the objects above some of them left aside."""
    return {
        path: row
        for path, row in merged(rows).items()
        if row["binding"] == "attr" and not is_group(row)
    }


def test_there_are_as_many_fields_attributes_and_rule_leaves(rows: list[Row]) -> None:
    assert set(TABLE.fields) == set(fields_of(rows))
    assert set(TABLE.attributes) == set(attributes_of(rows))
    leaves = [path for path in (*TABLE.fields, *TABLE.attributes) if leaf_type(path).legal]
    assert len(leaves) == sum(1 for row in merged(rows).values() if row["rules"])


OURS = {"preemptibility": ["semi-preemptible"]}
"""Values that the reference does not list (decision 0033)."""


def test_every_field_is_as_the_reference_has_it(rows: list[Row]) -> None:
    for path, wanted in fields_of(rows).items():
        row = TABLE.fields[path]
        assert row.value == wanted["value_type"], path
        assert row.legal_rules == set(wanted["rules"]), path
        assert [*row.enum] == wanted.get("enum", []) + OURS.get(path, []), path
        assert {*row.aliases, *row.typed_aliases} == set(wanted["aliases"]), path
        assert row.binding.value == wanted["binding"], path
        assert row.binding.value in CLASSES
        assert row.section == wanted["section"], path
        assert set(wanted["workload_types"]) <= set(row.types), path
        assert row.note, path


def test_every_attribute_is_as_the_reference_has_it(rows: list[Row]) -> None:
    for path, wanted in attributes_of(rows).items():
        row, attribute = TABLE.attributes[path]
        prefix = f"{row.path}."
        assert attribute.value == wanted["value_type"], path
        assert attribute.legal_rules == set(wanted["rules"]), path
        assert [*attribute.enum] == wanted.get("enum", []), path
        spelled = {each.removeprefix(prefix) for each in wanted["aliases"]}
        assert {each for each in attribute.aliases if each != attribute.name} == spelled, path
        assert attribute.note, path


def test_every_itemized_field_has_its_keys_and_attributes(rows: list[Row]) -> None:
    itemized = {path: row["itemized"] for path, row in fields_of(rows).items() if "itemized" in row}
    assert {path for path, row in TABLE.fields.items() if row.items} == set(itemized)
    for path, wanted in itemized.items():
        items = TABLE.fields[path].items
        assert items is not None
        assert items.key == wanted["key"], path
        assert ["+".join(each) for each in items.fallbacks] == wanted["fallback_keys"], path
        found = {each.name: each.value for each in items.attributes}
        assert found == wanted["attributes"], path
        names = {items.key, *(name for each in items.fallbacks for name in each)}
        assert names <= set(found), path


def test_every_group_is_described_and_spelled(rows: list[Row]) -> None:
    groups = {path: row for path, row in merged(rows).items() if is_group(row)}
    assert set(groups) <= {*GROUPS}
    assert all(text.endswith(".") for text in GROUPS.values())
    for path, row in groups.items():
        assert row["aliases"] == [each for name, each in ROLE_GROUPS.items() if name == path], path


def test_names_are_told_apart_whatever_their_letter_case() -> None:
    paths = [path.lower() for path in (*TABLE.fields, *TABLE.attributes)]
    assert len(paths) == len(set(paths))
    for alias, name in TABLE.aliases.items():
        assert alias not in TABLE.fields, alias
        assert alias.lower() not in paths or alias.lower() == name.lower(), alias


def test_every_row_keeps_to_its_type() -> None:
    for row in TABLE.fields.values():
        assert set(row.types) <= set(ALL_TYPES)
        assert row.legal_rules <= set(rules.TABLE)
        assert bool(row.items) == (row.value == "itemized")
        assert all(word in row.enum or not row.enum for _, word in row.spellings)


def names_compared(source: str) -> Iterator[int]:
    """The lines that compare an attribute `rule` with the name of a rule."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
        elif isinstance(node, ast.Match):
            sides = [node.subject, *node.cases]  # type: ignore[list-item]
        else:
            continue
        asked = any(isinstance(each, ast.Attribute) and each.attr == "rule" for each in sides)
        words = {
            each.value
            for side in sides
            for each in ast.walk(side)
            if isinstance(each, ast.Constant) and isinstance(each.value, str)
        }
        if asked and words & rules.TABLE.keys():
            yield node.lineno


def test_nobody_compares_a_rule_with_its_name() -> None:
    packages = Path(rules.__file__).parents[2]
    found = [
        f"{path.relative_to(packages)}:{line}"
        for path in packages.rglob("*.py")
        if path.parent != Path(rules.__file__).parent
        for line in names_compared(path.read_text("utf-8"))
    ]
    assert found == [], "ask the rule type (webhook/policy/rules/rule_type.py)"


@pytest.mark.parametrize(
    "source",
    [
        "each.rule == 'max'",
        "'max' != each.rule",
        "each.rule in ('a', 'min')",
        "match each.rule:\n case 'options': pass",
    ],
)
def test_a_comparison_with_the_name_of_a_rule_is_found(source: str) -> None:
    assert [*names_compared(source)] == [1]
    assert [*names_compared("each.rule == other.rule")] == []


def test_every_rule_of_a_value_takes_a_type_of_value_that_exists() -> None:
    for rule in rules.TABLE.values():
        assert rule.value_types <= set(values.TABLE), rule.name
        assert (rule.sentence is None) == (rule.form == "default-source"), rule.name
