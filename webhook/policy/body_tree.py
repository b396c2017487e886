"""Reads the sections of a policy body (`defaults`, `rules`, `imposedAssets`) into a draft."""

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
from webhook.policy.names import (
    Found,
    closest,
    join,
    members,
    pick_spellings,
    unknown,
    walk,
    warn_of_spelling,
)
from webhook.policy.policy import COMPONENTS, EVERYWHERE, ROLES, component_level, role_level
from webhook.policy.report import Report, label, show_value
from webhook.policy.row import Field
from webhook.policy.rule_objects import ITEM_RULES, read_rules
from webhook.policy.scalars import read_value
from webhook.policy.table import TABLE

INSTANCES, ATTRIBUTES = "instances", "attributes"
Reader = Callable[[Draft, str, Found], None]


def read_tree(draft: Draft, raw: Any, path: Path, reader: Reader) -> None:
    """Call `reader` for every leaf of the tree at `path`, with its level."""
    report, names = draft.report, field_names(draft.types)
    for level, mapping, here in levels(report, report.mapping(raw, path), path):
        draft.paths.setdefault(("level", level, "", ""), here)
        for found in pick_spellings(walk(names, mapping, here, report), report):
            allowed = TABLE.fields[found.name].levels
            role = level.removeprefix("role:")
            if role != level and allowed and role not in allowed:
                fix = f"write it below {' or '.join(allowed)}"
                report.error(found.path, "wrong-level", f"{found.name} below {role}", fix)
                continue
            draft.paths.setdefault(("leaf", level, found.name, ""), found.path)
            reader(draft, level, found)


def levels(
    report: Report, mapping: Mapping[Any, Any], path: Path
) -> Iterator[tuple[str, Mapping[Any, Any], Path]]:
    """Split a tree into the part outside all levels, the roles, and the components."""
    everywhere: dict[Any, Any] = {}
    for key, raw in mapping.items():
        word = key.lower() if isinstance(key, str) else ""
        here = (*path, key)
        if word in ROLE_WORDS:
            if key != ROLE_WORDS[word]:
                warn_of_spelling(report, here, key, ROLE_WORDS[word])
            yield role_level(ROLE_WORDS[word]), report.mapping(raw, here), here
        elif word == COMPONENTS:
            if key != COMPONENTS:
                warn_of_spelling(report, here, key, COMPONENTS)
            for name, tree in report.mapping(raw, here).items():
                below = (*here, name)
                yield component_level(str(name)), report.mapping(tree, below), below
        else:
            everywhere[key] = raw
    if everywhere:
        yield EVERYWHERE, everywhere, path


def read_default(draft: Draft, level: str, found: Found) -> None:
    """Add the default of one field: a value, or items and attribute defaults."""
    row, leaf = TABLE.fields[found.name], leaf_type(found.name)
    if row.items is not None:
        read_itemized_default(draft, level, row, found)
        return
    value = read_value(draft.report, leaf, found.raw, found.path, "default")
    if value is None:
        draft.paths["default", level, found.name, ""] = found.path
    else:
        draft.default(level, found.name, value, found.path)


def read_itemized_default(draft: Draft, level: str, row: Field, found: Found) -> None:
    """Add `instances` and `attributes` of an itemized field. A plain list is read as instances."""
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
    """Return `attributes` as maps with their paths. A list of maps is accepted with a warning."""
    if not isinstance(found.raw, list):
        return [(report.mapping(found.raw, found.path), found.path)]
    fix = "write one map: attributes: {a: v, b: w}"
    report.warn(found.path, "list-attributes", "a list of maps", fix)
    listed = [((*found.path, index), each) for index, each in enumerate(found.raw)]
    return [(report.mapping(each, path), path) for path, each in listed]


def read_attribute_defaults(draft: Draft, level: str, row: Field, found: Found) -> None:
    """Add the attribute defaults. They complete items that do not set an attribute."""
    report = draft.report
    if not items_of(row).attribute_defaults:
        fix = f"give the attributes in each item of {INSTANCES}"
        report.error(found.path, "no-attribute-defaults", f"{row.path}.{ATTRIBUTES}", fix)
        return
    for mapping, path in attribute_maps(report, found):
        for name, (value, here) in read_attributes(report, row, mapping, path).items():
            if name == EXCLUDE and value.value is True:
                fix = "remove it: it would exclude every item"
                report.error(here, "excluded-default-item", label(EXCLUDE), fix)
                continue
            draft.default(level, join(row.path, name), value, here)


def read_rule(draft: Draft, level: str, found: Found) -> None:
    """Add the rules of one field: its own, or those of its items and their attributes."""
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
        is_inner = isinstance(key, str) and key.lower() in (INSTANCES, ATTRIBUTES)
        (inner if is_inner else own)[key] = raw
    read_own_rules(draft, level, row, own, found.path)
    parts = members(report, inner, found.path, (INSTANCES, ATTRIBUTES))
    if INSTANCES in parts:
        instances = parts[INSTANCES]
        read_rules(draft, level, leaf, instances.raw, instances.path, ITEM_RULES)
    if ATTRIBUTES in parts:
        read_attribute_rules(draft, level, row, parts[ATTRIBUTES])


def read_own_rules(
    draft: Draft, level: str, row: Field, own: Mapping[Any, Any], path: Path
) -> None:
    """Add rules directly below an itemized field: only those that its row allows there."""
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
    """Add the rules of attributes."""
    report = draft.report
    leaves: list[Found] = []
    for mapping, path in attribute_maps(report, found):
        leaves += walk(attribute_names(row.path), mapping, path, report)
    for each in pick_spellings(leaves, report):
        leaf = leaf_type(join(row.path, each.name))
        read_rules(draft, level, leaf, each.raw, each.path, leaf.legal)


def read_imposed(draft: Draft, found: Found) -> None:
    """Add the imposed assets of every level: a list of ids, or one list per role or component."""
    report = draft.report
    if not isinstance(found.raw, dict):
        read_ids(draft, EVERYWHERE, found.raw, found.path)
        return
    for key, raw in found.raw.items():
        here = (*found.path, key)
        role = ROLE_WORDS.get(key.lower(), "") if isinstance(key, str) else ""
        if role:
            if role != key:
                warn_of_spelling(report, here, key, role)
            draft.paths.setdefault(("level", role_level(role), "", ""), here)
            read_ids(draft, role_level(role), raw, here)
        elif key == COMPONENTS:
            for name, ids in report.mapping(raw, here).items():
                read_ids(draft, component_level(str(name)), ids, (*here, name))
        else:
            known = (*ROLES, COMPONENTS)
            hint = f"write a list, or {', '.join(known)}"
            unknown(report, found.path, key, closest(str(key), known), hint)


def read_ids(draft: Draft, level: str, raw: Any, path: Path) -> None:
    """Add the asset ids of one list."""
    report = draft.report
    ids: dict[str, None] = {}
    for index, each in enumerate(report.sequence(raw, path, "a list of asset ids")):
        here = (*path, index)
        try:
            identity = values.plain_text(each, report.document.text(here))
        except ValueError:
            report.wrong_type(here, each, "the id of an asset")
            continue
        if identity in ids:
            report.warn(here, "imposed-twice", show_value(identity), "remove it")
        ids[identity] = None
        draft.paths.setdefault(("imposed", level, "", identity), here)
    if ids:
        draft.imposed[level] = tuple(ids)
