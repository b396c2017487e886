"""Writes a faultless policy anew: our custom resource, canonical names, values as they were."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from webhook.convert.document import Sheet, restored
from webhook.documents.source import SourceDocument
from webhook.objects.path import Path
from webhook.policy import body_tree as tree
from webhook.policy import default_from, rules, values
from webhook.policy import policy_document as document
from webhook.policy.body import Draft
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
from webhook.policy.names import Found, join, members, picked, walk
from webhook.policy.policy import COMPONENTS, EVERYWHERE, level_path
from webhook.policy.report import Report
from webhook.policy.row import Field
from webhook.policy.rule_objects import ITEM_RULES, rule_words
from webhook.policy.scalars import read_value
from webhook.policy.selectors import OPERATORS
from webhook.policy.table import TABLE

API_VERSION = f"{GROUP}/{VERSION}"
INSTANCES, ATTRIBUTES = "instances", "attributes"


def written_anew(given: SourceDocument, context: Context) -> Sheet:
    """The canonical form of a document that `parse_policy` reads without error."""
    report = Report(given)
    envelope = document.read_envelope(report, given.data, context)
    assert envelope is not None
    sheet = Sheet()
    write_envelope(sheet, given, envelope)
    sheet.data.setdefault("spec", {})  # a policy may say nothing
    draft = Draft(report, envelope.workload_types)
    for section in ("defaults", "rules"):
        found = envelope.body.get(section)
        if found is not None:
            writer = Writer(sheet, ("spec", section))
            reader = writer.default if section == "defaults" else writer.rule
            tree.read_tree(draft, found.raw, found.path, reader)
            if section in sheet.data["spec"]:
                sheet.data["spec"][section] = in_table_order(sheet.data["spec"][section])
    if "imposedAssets" in envelope.body:
        found = envelope.body["imposedAssets"]
        sheet.put(("spec", "imposedAssets"), imposed(given, found), found.path)
    return sheet


def ranks() -> dict[str, int]:
    """The place of every field and section in the table."""
    found: dict[str, int] = {}
    for rank, path in enumerate(TABLE.fields):
        steps = path.split(".")
        for depth in range(1, len(steps) + 1):
            found.setdefault(".".join(steps[:depth]), rank)
    return found


def in_table_order(body: dict[str, Any], section: str = "") -> dict[str, Any]:
    """A tree whose fields and sections stand as in the table, with the levels at the end."""
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


def imposed(given: SourceDocument, found: Found) -> Any:
    """The ids, with the canonical names of roles."""
    plain = restored(given, found.raw, found.path)
    if not isinstance(plain, dict):
        return plain
    return {ROLE_WORDS.get(key.lower(), key): ids for key, ids in plain.items()}


def write_envelope(sheet: Sheet, given: SourceDocument, envelope: Envelope) -> None:
    """Everything but the body: as it stands in our resources, made up for the other forms."""
    data = given.data
    if document.is_object(data):
        for key in ("apiVersion", "kind", "metadata"):
            sheet.put((key,), restored(given, data[key], (key,)), (key,))
        for key, raw in data["spec"].items():
            if raw is not None and key.lower() not in [each.lower() for each in BODY]:
                sheet.put(("spec", key), restored(given, raw, ("spec", key)), ("spec", key))
        return
    at: Path = ("meta",) if "meta" in data else ()
    write_head(sheet, object_name(envelope.name), envelope.namespace, at)
    if not envelope.namespace:
        sheet.put(("spec", "scope"), envelope.scope, (*at, "scope"))
    if envelope.namespace_selector is not None:
        selector = expressions(envelope.namespace_selector.requirements)
        sheet.put(("spec", "namespaceSelector"), {"matchExpressions": selector}, at)
    if envelope.workload_types:
        sheet.put(("spec", "workloadTypes"), sorted(envelope.workload_types), ())


def write_head(sheet: Sheet, name: str, namespace: str, source: Path) -> None:
    """apiVersion, kind and metadata; a namespace makes it the policy of a project."""
    sheet.put(("apiVersion",), API_VERSION, source)
    sheet.put(("kind",), NAMESPACED_KIND if namespace else CLUSTER_KIND, source)
    sheet.put(("metadata", "name"), name, (*source, "name"))
    if namespace:
        sheet.put(("metadata", "namespace"), namespace, source)


def object_name(name: str) -> str:
    """A name that objects can have: a document that is named after its file need not have one."""
    return re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-.") or "policy"


def expressions(requirements: tuple[tuple[str, str, tuple[str, ...]], ...]) -> list[dict[str, Any]]:
    """A selector as `matchExpressions`."""
    return [
        {"key": key, "operator": operator, **({"values": [*words]} if OPERATORS[operator] else {})}
        for key, operator, words in requirements
    ]


class Writer:
    """Writes the leaves of one tree below `at`."""

    def __init__(self, sheet: Sheet, at: Path) -> None:
        self.sheet = sheet
        self.at = at

    def place(self, level: str, name: str) -> Path:
        """Where a leaf stands."""
        return (*self.at, *level_path(level), *name.split("."))

    def default(self, draft: Draft, level: str, found: Found) -> None:
        """The default of one field."""
        row, report = TABLE.fields[found.name], draft.report
        at = self.place(level, found.name)
        if row.items is None:
            self.value(report, leaf_type(found.name), found, at)
            return
        if isinstance(found.raw, list):
            parts = {INSTANCES: Found(INSTANCES, found.path, found.raw, exact=True)}
        else:
            parts = members(report, found.raw, found.path, (INSTANCES, ATTRIBUTES))
        for index, raw in enumerate(parts[INSTANCES].raw if INSTANCES in parts else ()):
            if raw is not None:
                place = (*parts[INSTANCES].path, index)
                item = self.item(report, row, raw, place)
                self.sheet.append((*at, INSTANCES), item, place)
        if ATTRIBUTES in parts:
            for mapping, path in tree.attribute_maps(report, parts[ATTRIBUTES]):
                inner = Writer(self.sheet, (*at, ATTRIBUTES))
                inner.attributes(report, row, mapping, path)

    def item(self, report: Report, row: Field, raw: Any, path: Path) -> dict[str, Any]:
        """One default item."""
        if isinstance(raw, str):
            return {items_of(row).key: raw}
        inner = Writer(Sheet(), ())
        inner.attributes(report, row, raw, path)
        return inner.sheet.data

    def attributes(self, report: Report, row: Field, raw: Mapping[Any, Any], path: Path) -> None:
        """Attributes of an item, or defaults of attributes."""
        for found in picked(walk(attribute_names(row.path), raw, path, report), report):
            leaf = leaf_type(join(row.path, found.name))
            self.value(report, leaf, found, self.place(EVERYWHERE, found.name))

    def value(self, report: Report, leaf: LeafType, found: Found, at: Path) -> None:
        """One value in its canonical spelling and the author's notation."""
        self.sheet.put(at, notation(report, leaf, found.raw, found.path), found.path)

    def rule(self, draft: Draft, level: str, found: Found) -> None:
        """The rules of one field, its items and their attributes."""
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
        """The rules of attributes."""
        report = draft.report
        for mapping, path in tree.attribute_maps(report, found):
            for each in picked(walk(attribute_names(row.path), mapping, path, report), report):
                leaf = leaf_type(join(row.path, each.name))
                self.rules(draft, leaf, each, leaf.legal, (*place, *each.name.split(".")))

    def rules(
        self, draft: Draft, leaf: LeafType, found: Found, legal: frozenset[str], place: Path
    ) -> None:
        """One rules object."""
        for each in rule_words(draft, leaf, found.raw or {}, found.path, legal):
            argument = argument_of(draft, leaf, each)
            if argument is not None:
                self.sheet.put((*place, each.name), argument, each.path)


def notation(report: Report, leaf: LeafType, raw: Any, path: Path) -> Any:
    """A value as the author wrote it, its spelling canonical; items' scalars keep their texts."""
    value = read_value(report, leaf, raw, path, "bound")
    if value is None:
        return None
    return restored(report.document, value.raw, path) if isinstance(raw, dict) else value.raw


def argument_of(draft: Draft, leaf: LeafType, found: Found) -> Any:
    """The argument of a rule in its canonical spelling."""
    report, given = draft.report, draft.report.document
    match rules.TABLE[found.name].argument:
        case "boolean":
            return found.raw in (True, "true")
        case "keys":
            return [str(restored(given, e, (*found.path, i))) for i, e in enumerate(found.raw)]
        case "options":
            listed = enumerate(found.raw)
            return [option(report, leaf, raw, (*found.path, index)) for index, raw in listed]
        case "source":
            parts = members(report, found.raw, found.path, ("field", "factor"))
            plain = default_from.without_role(parts["field"].raw)[1]
            name, _ = default_from.resolve(leaf, plain, leaf_names(draft.types))
            factor = {
                key: restored(given, parts[key].raw, parts[key].path)
                for key in ("factor",)
                if key in parts
            }
            return {"field": name, **factor}
        case _:
            return notation(report, leaf, found.raw, found.path)


def option(report: Report, leaf: LeafType, raw: Any, path: Path) -> dict[str, Any]:
    """One option in the long form."""
    label: dict[str, Any] = {}
    if isinstance(raw, dict):
        parts = members(report, raw, path, ("value", "displayed"))
        if "displayed" in parts:
            shown = parts["displayed"]
            label["displayed"] = restored(report.document, shown.raw, shown.path)
        raw, path = parts["value"].raw, parts["value"].path
    if leaf.is_array:
        text = report.document.text(path)
        (value,) = notation(report, leaf, [raw if text is None else text], path)
    else:
        value = notation(report, leaf, raw, path)
    return {"value": value, **label}
