"""Reads the rules object of one leaf: its rules, with their arguments in comparable form."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from webhook.objects.path import Path
from webhook.policy import default_from, rules, values
from webhook.policy.body import Draft
from webhook.policy.leaves import LeafType, items_of, leaf_names
from webhook.policy.names import (
    Found,
    closest,
    members,
    pick_spellings,
    rule_word,
    warn_of_spelling,
)
from webhook.policy.report import show_value
from webhook.policy.scalars import read_value

USUAL = ("max", "options", "canAdd", "canEdit")
"""The most likely rules if an author writes a value instead of rules."""
FLAG = values.TABLE["boolean"]


def read_rules(
    draft: Draft, level: str, leaf: LeafType, raw: Any, path: Path, legal: frozenset[str]
) -> None:
    """Add every rule of the object at `path`. `legal` are the rules that it accepts."""
    if raw is not None and not isinstance(raw, dict):
        usual = next((each for each in USUAL if each in legal), "canEdit")
        draft.report.wrong_type(path, raw, f"rules such as {{{usual}: …}}")
        return
    note_rules(draft, level, leaf, rule_words(draft, leaf, raw or {}, path, legal))


def rule_words(
    draft: Draft, leaf: LeafType, mapping: Mapping[Any, Any], path: Path, legal: frozenset[str]
) -> list[Found]:
    """Return the rules of an object. Unknown ones and those for other types are reported."""
    found: list[Found] = []
    for key, raw in mapping.items():
        name, here = rule_word(key), (*path, key)
        if raw is None and name is not None:
            continue
        if name is None:
            report_unknown_rule(draft, leaf, key, path)
        elif name not in legal:
            report_misplaced_rule(draft, leaf, name, here, legal)
        else:
            if name != key:
                warn_of_spelling(draft.report, here, key, name)
            found.append(Found(name, here, raw, name == key))
    return pick_spellings(found, draft.report)


def report_unknown_rule(draft: Draft, leaf: LeafType, key: Any, path: Path) -> None:
    """Report a key that is not a rule."""
    meant = closest(str(key), rules.TABLE)
    taken = ", ".join(sorted(leaf.legal))
    fix = f"did you mean {meant}?" if meant else f"{leaf.path} takes {taken or 'no rules'}"
    draft.report.error((*path, key), "unknown-rule", show_value(key), fix)


def report_misplaced_rule(
    draft: Draft, leaf: LeafType, name: str, path: Path, legal: frozenset[str]
) -> None:
    """Report a rule that this leaf does not accept, with the path or the rules that are correct."""
    if leaf.row.items is not None:
        beside = leaf.is_attribute or legal == ITEM_RULES
        reason = "rule-not-for-type" if beside else "rules-on-itemized"
        found = f"{name} on {leaf.path}" if beside else name
        draft.report.error(path, reason, found, fix_on_items(leaf, name))
        return
    allowed = ", ".join(sorted(legal))
    draft.report.error(path, "rule-not-for-type", f"{name} on {leaf.path}", f"use {allowed}")


def fix_on_items(leaf: LeafType, name: str) -> str:
    """Return where an itemized field accepts a rule, or the rules that its attribute accepts."""
    row = leaf.row.path
    if leaf.is_attribute and leaf.legal and name not in ITEM_RULES:
        return f"use {', '.join(sorted(leaf.legal))}"
    if name in ITEM_RULES:
        return f"write it at {row}.instances"
    takers = [each.name for each in items_of(leaf.row).attributes if name in each.legal_rules]
    if takers and not leaf.is_attribute:
        return f"write it at {row}.attributes.{' or '.join(takers)}"
    if rules.TABLE[name].requires_value:
        return f"to require an item, give it in defaults, and name it in {row}.instances.locked"
    return f"{row} takes {' and '.join(sorted(ITEM_RULES))}, at {row}.instances"


ITEM_RULES = rules.rules_for("itemized")


def note_rules(draft: Draft, level: str, leaf: LeafType, found: list[Found]) -> None:
    """Read the arguments, and complete each from the others."""
    arguments: dict[str, Any] = {}
    for each in found:
        reader = READERS[rules.TABLE[each.name].argument]
        argument = reader(draft, level, leaf, each)
        if argument is not None:
            arguments[each.name] = argument
            draft.paths["rule", level, leaf.path, each.name] = each.path
    complete = {
        name: rules.TABLE[name].complete(each, arguments) for name, each in arguments.items()
    }
    if complete:
        draft.rules.setdefault(level, {}).setdefault(leaf.path, {}).update(complete)


def read_flag(draft: Draft, level: str, leaf: LeafType, found: Found) -> Any:
    """Read true or false."""
    text = draft.report.document.text(found.path)
    misread = text is not None and text.lower() not in ("true", "false")
    if not misread:
        try:
            return FLAG.codec.parse(found.raw, text)
        except ValueError:
            pass
    draft.report.wrong_type(found.path, found.raw, FLAG.wanted)
    return None


def read_bound(draft: Draft, level: str, leaf: LeafType, found: Found) -> Any:
    """Read a value of the leaf's type."""
    value = read_value(draft.report, leaf, found.raw, found.path, "bound")
    return None if value is None else value.value


def read_step(draft: Draft, level: str, leaf: LeafType, found: Found) -> Any:
    """Read a distance above zero in the leaf's units."""
    distance = read_bound(draft, level, leaf, found)
    if distance is None or distance > 0:
        return distance
    draft.report.error(found.path, "bad-step", show_value(found.raw), "write a number above 0")
    return None


def read_keys(draft: Draft, level: str, leaf: LeafType, found: Found) -> Any:
    """Read the keys of items, each once."""
    report = draft.report
    if not isinstance(found.raw, list):
        report.wrong_type(found.path, found.raw, "a list of item keys such as [a, b]")
        return None
    keys: set[str] = set()
    for index, raw in enumerate(found.raw):
        here = (*found.path, index)
        try:
            key = values.plain_text(raw, report.document.text(here))
        except ValueError:
            report.wrong_type(here, raw, "the key of an item")
            continue
        if key in keys:
            report.warn(here, "locked-twice", show_value(key), "remove it")
        keys.add(key)
    return frozenset(keys)


def read_options(draft: Draft, level: str, leaf: LeafType, found: Found) -> Any:
    """Read a set of values, written bare or as {value, displayed}."""
    report = draft.report
    if not isinstance(found.raw, list):
        report.wrong_type(found.path, found.raw, "a list such as [{value: a}, {value: b}]")
        return None
    if not found.raw:
        fix = "name at least one value, or write blocked: true if none may be given"
        report.error(found.path, "empty-options", "[]", fix)
        return None
    allowed: set[Any] = set()
    for index, raw in enumerate(found.raw):
        option = read_option(draft, leaf, raw, (*found.path, index))
        if option is not None:
            allowed.add(option)
        if isinstance(option, str) and "*" in option and not leaf.secret:
            fix = "list the values themselves: options are compared exactly"
            report.warn((*found.path, index), "literal-star", show_value(option), fix)
    return frozenset(allowed) or None


def read_option(draft: Draft, leaf: LeafType, raw: Any, path: Path) -> Any:
    """Read one allowed value, or one allowed element of an array field."""
    report = draft.report
    if isinstance(raw, dict):
        given = members(report, raw, path, ("value", "displayed"))
        if "value" not in given:
            report.error(path, "missing-value", "an option without value", "write value: …")
            return None
        raw, path = given["value"].raw, given["value"].path
    if not leaf.is_array:
        default = read_value(report, leaf, raw, path, "option")
        return None if default is None else default.value
    if isinstance(raw, list):
        report.wrong_type(path, raw, "one element, not a list")
        return None
    text = report.document.text(path)
    element = read_value(report, leaf, [raw if text is None else text], path, "option")
    return None if element is None else next(iter(element.value), None)


def read_source(draft: Draft, level: str, leaf: LeafType, found: Found) -> Any:
    """Read the field and factor of a computed default."""
    names = leaf_names(draft.types)
    return default_from.read(draft.report, level, leaf, found.raw, found.path, names)


READERS: Mapping[str, Callable[[Draft, str, LeafType, Found], Any]] = {
    "boolean": read_flag,
    "value": read_bound,
    "number": read_step,
    "options": read_options,
    "keys": read_keys,
    "source": read_source,
}
