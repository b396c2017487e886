"""Reads the trees below `defaults` and `rules`, level by level and leaf by leaf, into a draft."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from webhook.objects.path import Path
from webhook.policy import values
from webhook.policy.body import Draft
from webhook.policy.body_items import EXCLUDE, read_attributes, read_items
from webhook.policy.default_from import ROLE_WORDS
from webhook.policy.leaves import attribute_names, field_names, items_of, leaf_type
from webhook.policy.names import Found, join, members, picked, respelled, walk
from webhook.policy.policy import COMPONENTS, EVERYWHERE, component_level, role_level
from webhook.policy.report import Report, label
from webhook.policy.row import Field
from webhook.policy.rule_objects import ITEM_RULES, read_rules
from webhook.policy.scalars import read_value
from webhook.policy.table import TABLE

INSTANCES, ATTRIBUTES = "instances", "attributes"
Reader = Callable[[Draft, str, Found], None]


def read_tree(draft: Draft, raw: Any, path: Path, reader: Reader) -> None:
    """Hand every leaf of the tree at `path` to `reader`, with its level."""
    report, names = draft.report, field_names(draft.types)
    for level, mapping, place in levels(report, report.mapping(raw, path), path):
        draft.places.setdefault(("level", level, "", ""), place)
        for found in picked(walk(names, mapping, place, report), report):
            allowed = TABLE.fields[found.name].levels
            role = level.removeprefix("role:")
            if role != level and allowed and role not in allowed:
                fix = f"write it below {' or '.join(allowed)}"
                report.error(found.path, "wrong-level", f"{found.name} below {role}", fix)
                continue
            draft.places.setdefault(("leaf", level, found.name, ""), found.path)
            reader(draft, level, found)


def levels(
    report: Report, mapping: Mapping[Any, Any], path: Path
) -> Iterator[tuple[str, Mapping[Any, Any], Path]]:
    """Split a tree into what stands outside all levels, below roles, and below components."""
    everywhere: dict[Any, Any] = {}
    for key, raw in mapping.items():
        word = key.lower() if isinstance(key, str) else ""
        here = (*path, key)
        if word in ROLE_WORDS:
            if key != ROLE_WORDS[word]:
                respelled(report, here, key, ROLE_WORDS[word])
            yield role_level(ROLE_WORDS[word]), report.mapping(raw, here), here
        elif word == COMPONENTS:
            if key != COMPONENTS:
                respelled(report, here, key, COMPONENTS)
            for name, tree in report.mapping(raw, here).items():
                place = (*here, name)
                yield component_level(str(name)), report.mapping(tree, place), place
        else:
            everywhere[key] = raw
    if everywhere:
        yield EVERYWHERE, everywhere, path


def read_default(draft: Draft, level: str, found: Found) -> None:
    """Note the default of one field: a value, or items and attribute defaults."""
    row, leaf = TABLE.fields[found.name], leaf_type(found.name)
    if row.items is not None:
        read_itemized_default(draft, level, row, found)
        return
    value = read_value(draft.report, leaf, found.raw, found.path, "default")
    if value is None:
        draft.places["default", level, found.name, ""] = found.path
    else:
        draft.default(level, found.name, value, found.path)


def read_itemized_default(draft: Draft, level: str, row: Field, found: Found) -> None:
    """Note `instances` and `attributes` of an itemized field; a plain list is read as instances."""
    report = draft.report
    if isinstance(found.raw, list):
        if not row.extra_rules:
            report.error(found.path, "items-as-list", "a list", f"write {INSTANCES}: above it")
        read_items(draft, level, row, found.raw, found.path, {})
        return
    if not isinstance(found.raw, dict):
        report.wrong_type(found.path, found.raw, f"{{{INSTANCES}: […]}}")
        return
    parts = members(report, found.raw, found.path, (INSTANCES, ATTRIBUTES))
    if ATTRIBUTES in parts:
        read_attribute_defaults(draft, level, row, parts[ATTRIBUTES])
    if INSTANCES in parts:
        beside = parts[INSTANCES]
        items = report.sequence(beside.raw, beside.path, "a list of items")
        defaults = draft.defaults.get(level, {})
        completed = {
            each.name: defaults[leaf]
            for each in items_of(row).attributes
            if (leaf := join(row.path, each.name)) in defaults
        }
        read_items(draft, level, row, items, beside.path, completed)


def attribute_maps(report: Report, found: Found) -> list[tuple[Mapping[Any, Any], Path]]:
    """`attributes` as a map; a list of maps is accepted as one, with a warning."""
    if not isinstance(found.raw, list):
        return [(report.mapping(found.raw, found.path), found.path)]
    fix = "write one map: attributes: {a: v, b: w}"
    report.warn(found.path, "list-attributes", "a list of maps", fix)
    places = [((*found.path, index), each) for index, each in enumerate(found.raw)]
    return [(report.mapping(each, place), place) for place, each in places]


def read_attribute_defaults(draft: Draft, level: str, row: Field, found: Found) -> None:
    """Note the defaults that complete items which do not say an attribute themselves."""
    report = draft.report
    if not items_of(row).attribute_defaults:
        fix = f"give the attributes in each item of {INSTANCES}"
        report.error(found.path, "no-attribute-defaults", f"{row.path}.{ATTRIBUTES}", fix)
        return
    for mapping, path in attribute_maps(report, found):
        for name, (value, place) in read_attributes(report, row, mapping, path).items():
            if name == EXCLUDE and value.value is True:
                fix = "remove it: it would exclude every item"
                report.error(place, "excluded-default-item", label(EXCLUDE), fix)
                continue
            draft.default(level, join(row.path, name), value, place)


def read_rule(draft: Draft, level: str, found: Found) -> None:
    """Note the rules of one field: its own, or those of its items and their attributes."""
    row, leaf = TABLE.fields[found.name], leaf_type(found.name)
    if row.items is None:
        read_rules(draft, level, leaf, found.raw, found.path, leaf.legal)
        return
    report = draft.report
    if not isinstance(found.raw, dict):
        report.wrong_type(found.path, found.raw, f"{{{INSTANCES}: …, {ATTRIBUTES}: …}}")
        return
    inner: dict[Any, Any] = {}
    own: dict[Any, Any] = {}
    for key, raw in found.raw.items():
        is_part = isinstance(key, str) and key.lower() in (INSTANCES, ATTRIBUTES)
        (inner if is_part else own)[key] = raw
    read_own_rules(draft, level, row, own, found.path)
    parts = members(report, inner, found.path, (INSTANCES, ATTRIBUTES))
    if INSTANCES in parts:
        part = parts[INSTANCES]
        read_rules(draft, level, leaf, part.raw, part.path, ITEM_RULES)
    if ATTRIBUTES in parts:
        read_attribute_rules(draft, level, row, parts[ATTRIBUTES])


def read_own_rules(
    draft: Draft, level: str, row: Field, own: Mapping[Any, Any], path: Path
) -> None:
    """Rules directly below an itemized field: only those the row adds, such as array rules."""
    known = {key: raw for key, raw in own.items() if not is_attribute(row, key)}
    for key in own:
        if key not in known:
            fix = f"write it below {ATTRIBUTES}"
            draft.report.error((*path, key), "rules-on-itemized", label(key), fix)
    as_array = replace(leaf_type(row.path), value="array", codec=values.ARRAY)
    read_rules(draft, level, as_array, known, path, row.extra_rules)


def is_attribute(row: Field, key: Any) -> bool:
    """Whether a key names an attribute of the row's items."""
    return any(attribute_names(row.path).resolve("", key))


def read_attribute_rules(draft: Draft, level: str, row: Field, found: Found) -> None:
    """Note the rules of attributes."""
    report = draft.report
    leaves: list[Found] = []
    for mapping, path in attribute_maps(report, found):
        leaves += walk(attribute_names(row.path), mapping, path, report)
    for each in picked(leaves, report):
        leaf = leaf_type(join(row.path, each.name))
        read_rules(draft, level, leaf, each.raw, each.path, leaf.legal)
