"""Explanations as text: indented lines that fit the terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rich.console import Console
from rich.text import Text

from webhook.cases.run_offline import Verdict
from webhook.cli import report
from webhook.decision.messages import LONGEST_ADVICE, place, violation_text, warning_text
from webhook.documents import texts
from webhook.documents.problem import Source
from webhook.evaluation.outcome import Violation
from webhook.explain.model import (
    DEFAULT,
    DEFAULT_ITEM,
    IMPOSED,
    Entry,
    FieldReport,
    KindReport,
    LeafReport,
    ObjectReport,
)
from webhook.explain.namespaces import TypeReport
from webhook.fields.handler import MAPPED
from webhook.objects.path import ABSENT, Path
from webhook.policy.table import TABLE

HIDDEN = "(not shown)"
FROM_ITEMS = (DEFAULT_ITEM, IMPOSED)
WIDEST = 100
UNCARRIED = frozenset({"unmapped-default", "unmapped-rule", "asked-of-children", "not-enforceable"})
"""Reasons of warnings that the kind cannot have a field."""


class Page:
    """Indented lines that are wrapped between words, coloured on a terminal."""

    def __init__(self) -> None:
        self.console = Console(highlight=False, markup=False, emoji=False)
        self.width = min(self.console.width, WIDEST)

    def line(self, indent: int, text: str, style: str = "") -> None:
        """One paragraph; words longer than a line, such as paths, are not broken."""
        lines = textwrap.wrap(
            text,
            self.width,
            initial_indent=" " * indent,
            subsequent_indent=" " * (indent + 4),
            break_long_words=False,
            break_on_hyphens=False,
        )
        for each in lines:
            self.console.print(Text(each, style=style), soft_wrap=True)

    def place(self, indent: int, text: str) -> None:
        """The path of a value, on one line."""
        self.console.print(Text(f"{' ' * indent}at {text}", style="dim"), soft_wrap=True)

    def gap(self) -> None:
        """An empty line."""
        self.console.print()


def value_text(value: Any, field: str = "") -> str:
    """A value as text. None means that the value is never shown; objects are abbreviated."""
    if value is None:
        return HIDDEN
    if is_object(field) and isinstance(value, dict):
        return texts.cut(in_short(value, field), LONGEST_ADVICE)
    if value == "":
        return '""'
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return texts.cut(", ".join(value), LONGEST_ADVICE)
    return texts.show_value(value)


def is_object(field: str) -> bool:
    """Whether the values of a field are objects that are not items."""
    return field in TABLE.fields and TABLE.fields[field].value == "object"


def in_short(value: Any, field: str) -> str:
    """An object in the short form of its field; as JSON if it has no such form."""
    codec = TABLE.leaf_codec(field)
    try:
        return codec.show(codec.read(value))
    except (ValueError, TypeError, AttributeError):
        return texts.show_value(value)


def by(source: Source | None) -> str:
    """The policy, and whether it is enforced."""
    if source is None:
        return ""
    mode = f" [{source.enforcement}]" if source.enforcement != "Enforce" else ""
    return f"{texts.clean(source.label())}{mode}"


def policies_text(page: Page, policies: Sequence[Source]) -> None:
    """The policies that apply."""
    named = "; ".join(by(each) for each in policies) or "none"
    page.line(2, f"policies, the broadest first: {named}", "dim")


def kind_text(page: Page, kind_report: KindReport) -> None:
    """The effective policy of a kind."""
    group = f".{kind_report.group}" if kind_report.group else ""
    kind_of = f" ({kind_report.workload_type})" if kind_report.workload_type else ""
    where = f" in namespace {kind_report.namespace}" if kind_report.namespace else ""
    page.line(
        0,
        f"{kind_report.kind}{group}/{kind_report.version}{kind_of}{where}",
        "bold",
    )
    policies_text(page, kind_report.policies)
    page.line(2, f"rules of several scopes combine: {kind_report.combination}", "dim")
    for each in kind_report.components:
        page.gap()
        page.line(0, f"component {each.component}, role {each.role}", "bold")
        page.line(2, f"pods at {each.pods}", "dim")
        leaves_text(page, each.leaves)
    page.gap()
    page.line(0, "workload", "bold")
    leaves_text(page, kind_report.workload)
    if not kind_report.workload:
        page.line(2, "no policy applies to it", "dim")


def type_text(page: Page, type_report: TypeReport) -> None:
    """The effective policy of a workload type in a namespace."""
    name = (
        f"workload type {type_report.workload_type}"
        if type_report.workload_type
        else "no workload type"
    )
    page.line(0, f"{name} in namespace {type_report.namespace}", "bold")
    page.line(2, f"kinds: {', '.join(type_report.kinds)}", "dim")
    policies_text(page, type_report.policies)
    page.line(2, f"rules of several scopes combine: {type_report.combination}", "dim")
    for each in type_report.components:
        if len(type_report.components) > 1:
            page.gap()
            where = f"component {each.component}" if each.component else f"role {each.role}"
            page.line(0, texts.clean(where), "bold")
        leaves_text(page, each.leaves)
        if not each.leaves:
            page.line(2, "no policy applies to it", "dim")


def leaves_text(page: Page, leaves: Sequence[LeafReport]) -> None:
    """Leaves in order; the reason why the kind cannot have a field is not repeated for its attributes."""
    last: tuple[str, str] = ("", "")
    for leaf in leaves:
        page.line(2, leaf.field, "cyan")
        known = leaf.field.startswith(f"{last[0]}.") and leaf.why == last[1]
        if leaf.support != MAPPED and not known:
            page.line(4, f"{leaf.support}: {texts.clean(leaf.why)}", "yellow")
            last = leaf.field, leaf.why
        elif leaf.support == MAPPED and leaf.why:
            page.line(4, texts.clean(leaf.why), "dim")
        for text, style in leaf_lines(leaf):
            page.line(4, text, style)


def leaf_lines(leaf: LeafReport) -> Iterator[tuple[str, str]]:
    """Default, rules, items, overridden and not enforced values, a line each with its style."""
    if leaf.default is not None:
        yield (
            f"default {value_text(leaf.default.value, leaf.field)} - {by(leaf.default.source)}",
            "",
        )
    for rule in leaf.rules:
        yield f"{rule.what} {value_text(rule.value)} - {by(rule.source)}", ""
    for item in leaf.items:
        what = "imposed item" if item.imposed else "default item"
        locked = ", locked" if item.locked and not item.imposed else ""
        asset = f", asset {item.asset}" if item.asset and item.asset != item.key else ""
        listed = attributes_text(item.attributes)
        held = f" ({listed})" if listed else ""
        yield f"{what} {texts.cut(item.key)}{held}{locked}{asset} - {by(item.source)}", ""
    for lost in leaf.lost:
        value = "" if lost.value is None else f" {value_text(lost.value, leaf.field)}"
        to = f" ({by(lost.to)})" if lost.to is not None else ""
        yield f"lost: {lost.what}{value} - {by(lost.source)}: {lost.reason}{to}", "dim"
    for each in leaf.unenforced:
        value = "" if each.what.startswith("item ") else f" {value_text(each.value)}"
        yield f"not enforced: {texts.cut(each.what)}{value} - {by(each.source)}", "yellow"


def attributes_text(attributes: Mapping[str, Any]) -> str:
    """The attributes of an item except its name."""
    return ", ".join(
        f"{name} {value_text(value)}" for name, value in attributes.items() if name != "name"
    )


def object_text(page: Page, verdict: Verdict, found: ObjectReport | None) -> None:
    """One manifest with all its fields; without a report if its kind is unknown."""
    count = len(report.violations_of(verdict))
    broken = "1 rule is broken" if count == 1 else f"{count} rules are broken"
    outcome = "allowed" if verdict.is_allowed else f"refused, {broken}"
    if verdict.reason:
        outcome = f"not evaluated: {report.reason_text(verdict)}"
    style = "bold" if verdict.is_allowed else "bold red"
    page.line(0, f"{texts.clean(report.label(verdict))}: {outcome}", style)
    if found is None:
        for violation in report.violations_of(verdict):
            page.line(2, f"x {violation_text(violation)}", "red")
        return
    policies_text(page, found.policies)
    for violation in found.violations:
        page.line(2, f"x {violation_text(violation)}", "red")
    for warning in found.warnings:
        page.line(2, f"! {warning_text(warning)}", "yellow")
    for violation in found.audit:
        if violation.source is not None and violation.source.enforcement == "Audit":
            page.line(2, f"audit: {violation_text(violation)}", "yellow")
    for pod in found.pods:
        page.gap()
        instance = f" {texts.clean(pod.instance)}" if pod.instance else ""
        roles = " and ".join(pod.roles)
        page.line(0, f"pod at {place(pod.path)}", "bold")
        page.line(2, f"component {pod.component}{instance}, role {roles}", "dim")
        for each in pod.fields:
            field_text(page, each, pod.path)
    if found.workload:
        page.gap()
        page.line(0, "workload", "bold")
        for each in found.workload:
            field_text(page, each, ())


def field_text(page: Page, field_report: FieldReport, base: Path) -> None:
    """One field: its values, then the policies' leaves, without what the values already show."""
    page.line(2, field_report.field, "cyan")
    for entry in field_report.entries:
        entry_text(page, field_report.field, entry, base)
    if not field_report.entries:
        page.line(4, "none")
    for leaf in field_report.leaves:
        name = (
            ""
            if leaf.field == field_report.field
            else f"{leaf.field.removeprefix(field_report.field)}: "
        )
        for text, style in leaf_lines(without_printed(leaf, field_report.entries)):
            page.line(6, f"{name}{text}", style or "dim")


def without_printed(leaf: LeafReport, entries: Sequence[Entry]) -> LeafReport:
    """The leaf without the default and the items whose values are already printed."""
    by_default = {each.by for each in entries if each.source == DEFAULT}
    by_item = {(each.item, each.by) for each in entries if each.source in FROM_ITEMS}
    return replace(
        leaf,
        default=None if leaf.default and leaf.default.source in by_default else leaf.default,
        items=tuple(each for each in leaf.items if (each.key, each.source) not in by_item),
    )


def entry_text(page: Page, field: str, entry: Entry, base: Path) -> None:
    """One value with its path, its source and its violations."""
    key = f"{texts.cut(entry.key)}: " if entry.key else ""
    # Print only the warning if it includes the text of the note.
    known = any(each.reason in UNCARRIED for each in entry.warnings)
    note = f" ({texts.clean(entry.note)})" if entry.note and not known else ""
    if entry.value is ABSENT:
        page.line(4, f"{key}unset{note}")
    else:
        held = entry.value
        listed = isinstance(held, dict) and not is_object(field)
        value = attributes_text(held) if listed else value_text(held, field)
        source = f"{entry.source}, {by(entry.by)}" if entry.by else entry.source
        # An item without attributes has nothing but its key.
        name = texts.cut(entry.key) if held == entry.key else f"{key}{value}"
        page.line(4, f"{name} - {source}{note}")
        if entry.path:
            page.place(6, relative(entry.path, base))
    for each in entry.attributes:
        if (each.source, each.by) != (entry.source, entry.by):
            source = f"{each.source}, {by(each.by)}" if each.by else each.source
            page.line(6, f"{each.name} {value_text(each.value)} - {source}")
    for violation in entry.violations:
        page.line(6, f"x {inline(violation, entry.path)}", "red")
    for warning in entry.warnings:
        page.line(6, f"! {warning_text(warning)}", "yellow")


def inline(violation: Violation, path: Path) -> str:
    """A violation below its value, whose field and path are already printed."""
    text = violation_text(violation)
    head = f"{texts.clean(violation.field)} at {place(violation.path)}: "
    return text.removeprefix(head) if violation.path == path else text


def relative(path: Path, base: Path) -> str:
    """A path relative to its pod's, if it is below it."""
    return place(path[len(base) :] if path[: len(base)] == base else path)
