"""Writes a valid policy as a custom resource with canonical names and unchanged values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from webhook.convert.document import DraftDocument, restore_texts
from webhook.documents.source import SourceDocument
from webhook.objects.path import Path
from webhook.policy import default_from, rules, values
from webhook.policy.body import Draft
from webhook.policy.body_tree import attribute_maps, read_tree
from webhook.policy.default_from import ROLE_WORDS
from webhook.policy.envelope import (
    BODY,
    CLUSTER_KIND,
    GROUP,
    NAMESPACED_KIND,
    VERSION,
    Context,
    Envelope,
)
from webhook.policy.leaves import LeafType, attribute_names, items_of, leaf_names, leaf_type
from webhook.policy.names import Found, join, members, pick_spellings, walk
from webhook.policy.policy import COMPONENTS, EVERYWHERE, level_path
from webhook.policy.policy_document import is_object, read_envelope
from webhook.policy.report import Report
from webhook.policy.row import Field
from webhook.policy.rule_objects import ITEM_RULES, rule_words
from webhook.policy.scalars import read_value
from webhook.policy.selectors import OPERATORS
from webhook.policy.table import TABLE

API_VERSION = f"{GROUP}/{VERSION}"
INSTANCES, ATTRIBUTES = "instances", "attributes"


def rewrite_policy(given: SourceDocument, context: Context) -> DraftDocument:
    """Return the canonical form of a document that `parse_policy` reads without error."""
    report = Report(given)
    envelope = read_envelope(report, given.data, context)
    assert envelope is not None
    draft_document = DraftDocument()
    write_envelope(draft_document, given, envelope)
    draft_document.data.setdefault("spec", {})  # a policy may say nothing
    draft = Draft(report, envelope.spec.workload_types)
    for section in ("defaults", "rules"):
        found = envelope.body.get(section)
        if found is not None:
            writer = Writer(draft_document, ("spec", section))
            reader = writer.default if section == "defaults" else writer.rule
            read_tree(draft, found.raw, found.path, reader)
            if section in draft_document.data["spec"]:
                draft_document.data["spec"][section] = in_table_order(
                    draft_document.data["spec"][section]
                )
    if "imposedAssets" in envelope.body:
        found = envelope.body["imposedAssets"]
        draft_document.put(("spec", "imposedAssets"), write_imposed(given, found), found.path)
    return draft_document


def ranks() -> dict[str, int]:
    """Return the position of every field and section in the table."""
    found: dict[str, int] = {}
    for rank, path in enumerate(TABLE.fields):
        steps = path.split(".")
        for depth in range(1, len(steps) + 1):
            found.setdefault(".".join(steps[:depth]), rank)
    return found


def in_table_order(body: dict[str, Any], section: str = "") -> dict[str, Any]:
    """Return a tree with fields and sections in the order of the table, and levels at the end."""
    known, result = ranks(), {}
    for key in sorted(body, key=lambda one: known.get(join(section, one), len(known))):
        name, below = join(section, key), body[key]
        if name in TABLE.fields:
            result[key] = below
        elif name in known:
            result[key] = in_table_order(below, name)
        elif key == COMPONENTS:
            result[key] = {each: in_table_order(inner) for each, inner in below.items()}
        else:
            result[key] = in_table_order(below)
    return result


def write_imposed(given: SourceDocument, found: Found) -> Any:
    """Return the ids, with the canonical names of roles."""
    plain = restore_texts(given, found.raw, found.path)
    if not isinstance(plain, dict):
        return plain
    return {ROLE_WORDS.get(key.lower(), key): ids for key, ids in plain.items()}


def write_envelope(
    draft_document: DraftDocument, given: SourceDocument, envelope: Envelope
) -> None:
    """Write the envelope: unchanged for custom resources, generated for the other forms."""
    data = given.data
    if is_object(data):
        for key in ("apiVersion", "kind", "metadata"):
            draft_document.put((key,), restore_texts(given, data[key], (key,)), (key,))
        for key, raw in data["spec"].items():
            if raw is not None and key.lower() not in [each.lower() for each in BODY]:
                draft_document.put(
                    ("spec", key), restore_texts(given, raw, ("spec", key)), ("spec", key)
                )
        return
    at: Path = ("meta",) if "meta" in data else ()
    write_head(draft_document, object_name(envelope.name), envelope.namespace, at)
    if not envelope.namespace:
        draft_document.put(("spec", "scope"), envelope.scope, (*at, "scope"))
    if envelope.namespace_selector is not None:
        selector = expressions(envelope.namespace_selector.requirements)
        draft_document.put(("spec", "namespaceSelector"), {"matchExpressions": selector}, at)
    if envelope.spec.workload_types:
        draft_document.put(("spec", "workloadTypes"), sorted(envelope.spec.workload_types), ())


def write_head(draft_document: DraftDocument, name: str, namespace: str, source: Path) -> None:
    """Write apiVersion, kind and metadata. With a namespace, it is the policy of a project."""
    draft_document.put(("apiVersion",), API_VERSION, source)
    draft_document.put(("kind",), NAMESPACED_KIND if namespace else CLUSTER_KIND, source)
    draft_document.put(("metadata", "name"), name, (*source, "name"))
    if namespace:
        draft_document.put(("metadata", "namespace"), namespace, source)


def object_name(name: str) -> str:
    """Return a valid object name. A name from a file name can be invalid."""
    return re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-.") or "policy"


def expressions(requirements: tuple[tuple[str, str, tuple[str, ...]], ...]) -> list[dict[str, Any]]:
    """Return a selector as `matchExpressions`."""
    return [
        {"key": key, "operator": operator, **({"values": [*words]} if OPERATORS[operator] else {})}
        for key, operator, words in requirements
    ]


class Writer:
    """Writes the leaves of one tree below `at`."""

    def __init__(self, draft_document: DraftDocument, at: Path) -> None:
        self.draft_document = draft_document
        self.at = at

    def place(self, level: str, name: str) -> Path:
        """Return the path of a leaf."""
        return (*self.at, *level_path(level), *name.split("."))

    def default(self, draft: Draft, level: str, found: Found) -> None:
        """Write the default of one field."""
        row, report = TABLE.fields[found.name], draft.report
        at = self.place(level, found.name)
        if row.items is None:
            self.value(report, leaf_type(found.name), found, at)
            return
        if isinstance(found.raw, list):
            sections = {INSTANCES: Found(INSTANCES, found.path, found.raw, exact=True)}
        else:
            sections = members(report, found.raw, found.path, (INSTANCES, ATTRIBUTES))
        for index, raw in enumerate(sections[INSTANCES].raw if INSTANCES in sections else ()):
            if raw is not None:
                place = (*sections[INSTANCES].path, index)
                item = self.item(report, row, raw, place)
                self.draft_document.append((*at, INSTANCES), item, place)
        if ATTRIBUTES in sections:
            for mapping, path in attribute_maps(report, sections[ATTRIBUTES]):
                inner = Writer(self.draft_document, (*at, ATTRIBUTES))
                inner.attributes(report, row, mapping, path)

    def item(self, report: Report, row: Field, raw: Any, path: Path) -> dict[str, Any]:
        """Write one default item."""
        if isinstance(raw, str):
            return {items_of(row).key: raw}
        inner = Writer(DraftDocument(), ())
        inner.attributes(report, row, raw, path)
        return inner.draft_document.data

    def attributes(self, report: Report, row: Field, raw: Mapping[Any, Any], path: Path) -> None:
        """Write attributes of an item, or attribute defaults."""
        for found in pick_spellings(walk(attribute_names(row.path), raw, path, report), report):
            leaf = leaf_type(join(row.path, found.name))
            self.value(report, leaf, found, self.place(EVERYWHERE, found.name))

    def value(self, report: Report, leaf: LeafType, found: Found, at: Path) -> None:
        """Return one value in its canonical spelling and the author's notation."""
        self.draft_document.put(at, notation(report, leaf, found.raw, found.path), found.path)

    def rule(self, draft: Draft, level: str, found: Found) -> None:
        """Write the rules of one field, its items and their attributes."""
        row, leaf, at = TABLE.fields[found.name], leaf_type(found.name), found.path
        place = self.place(level, found.name)
        if row.items is None:
            self.rules(draft, leaf, Found("", at, found.raw, exact=True), leaf.legal, place)
            return
        own: dict[Any, Any] = {}
        for key, raw in found.raw.items():
            part = key.lower() if isinstance(key, str) else ""
            here = Found("", (*at, key), raw, exact=True)
            if part == INSTANCES:
                self.rules(draft, leaf, here, ITEM_RULES, (*place, INSTANCES))
            elif part == ATTRIBUTES:
                self.attribute_rules(draft, row, here, (*place, ATTRIBUTES))
            else:
                own[key] = raw
        as_array = LeafType(row.path, "array", values.ARRAY, row)
        self.rules(draft, as_array, Found("", at, own, exact=True), row.extra_rules, place)

    def attribute_rules(self, draft: Draft, row: Field, found: Found, place: Path) -> None:
        """Write the rules of attributes."""
        report = draft.report
        for mapping, path in attribute_maps(report, found):
            for each in pick_spellings(
                walk(attribute_names(row.path), mapping, path, report), report
            ):
                leaf = leaf_type(join(row.path, each.name))
                self.rules(draft, leaf, each, leaf.legal, (*place, *each.name.split(".")))

    def rules(
        self, draft: Draft, leaf: LeafType, found: Found, legal: frozenset[str], place: Path
    ) -> None:
        """Write one rules object."""
        for each in rule_words(draft, leaf, found.raw or {}, found.path, legal):
            argument = argument_of(draft, leaf, each)
            if argument is not None:
                self.draft_document.put((*place, each.name), argument, each.path)


def notation(report: Report, leaf: LeafType, raw: Any, path: Path) -> Any:
    """Return a value as the author wrote it, in its canonical spelling."""
    value = read_value(report, leaf, raw, path, "bound")
    if value is None:
        return None
    return restore_texts(report.document, value.raw, path) if isinstance(raw, dict) else value.raw


def argument_of(draft: Draft, leaf: LeafType, found: Found) -> Any:
    """Return the argument of a rule in its canonical spelling."""
    report, given = draft.report, draft.report.document
    match rules.TABLE[found.name].argument:
        case "boolean":
            return found.raw in (True, "true")
        case "keys":
            return [str(restore_texts(given, e, (*found.path, i))) for i, e in enumerate(found.raw)]
        case "options":
            listed = enumerate(found.raw)
            return [option(report, leaf, raw, (*found.path, index)) for index, raw in listed]
        case "source":
            inner = members(report, found.raw, found.path, ("field", "factor"))
            plain = default_from.without_role(inner["field"].raw)[1]
            name, _ = default_from.resolve(leaf, plain, leaf_names(draft.types))
            factor = {
                key: restore_texts(given, inner[key].raw, inner[key].path)
                for key in ("factor",)
                if key in inner
            }
            return {"field": name, **factor}
        case _:
            return notation(report, leaf, found.raw, found.path)


def option(report: Report, leaf: LeafType, raw: Any, path: Path) -> dict[str, Any]:
    """Return one option in the long form."""
    label: dict[str, Any] = {}
    if isinstance(raw, dict):
        inner = members(report, raw, path, ("value", "displayed"))
        if "displayed" in inner:
            shown = inner["displayed"]
            label["displayed"] = restore_texts(report.document, shown.raw, shown.path)
        raw, path = inner["value"].raw, inner["value"].path
    if leaf.is_array:
        text = report.document.text(path)
        (value,) = notation(report, leaf, [raw if text is None else text], path)
    else:
        value = notation(report, leaf, raw, path)
    return {"value": value, **label}
