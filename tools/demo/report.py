"""Prints the reviews and answers of the demo, within the width of the terminal."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from tools.demo.webhook import Answer
from webhook.catalog.catalog import Catalog
from webhook.decision.messages import CHANGES, HIDDEN, violation_sentences
from webhook.documents import texts
from webhook.evaluation.outcome import Allowed, Change, Decision, Denied, Violation
from webhook.evaluation.request import Request
from webhook.objects.path import Path, display, read
from webhook.pods.locate import locate

NARROWEST, WIDEST, VALUES = 60, 120, 16
STEPS = re.compile(r"\.?[^.\[]+(?:\[[^\]]*\])*|.")
INSTEAD = {"blocked": "(no value)", "canEdit": "(no value)", "locked": "(the policy's own item)"}
BOUNDS = {"max": "at most ", "min": "at least "}


@dataclass(frozen=True, slots=True)
class Outcome:
    """The webhook's answer in one chapter, and the same decision made in this process.

    `final` is the object with the answered patch; `again` and `checked` are the answers to it from
    /mutate and /validate.
    """

    request: Request
    answer: Answer
    decision: Decision
    final: Any
    again: Answer | None = None
    checked: Answer | None = None


def console() -> Console:
    """A console of readable width, plain with NO_COLOR and outside a terminal."""
    made = Console(highlight=False, color_system=None if os.environ.get("NO_COLOR") else "auto")
    made.width = min(max(made.width, NARROWEST), WIDEST)
    return made


def show(out: Console, what: RenderableType, indent: int) -> None:
    """Print, without the spaces that rich adds at the ends of lines."""
    with out.capture() as captured:
        out.print(Padding(what, (0, 0, 0, indent), expand=False))
    for line in captured.get().splitlines() or [""]:
        out.file.write(line.rstrip() + "\n")
    out.file.flush()


def say(out: Console, text: str, indent: int = 0, style: str = "") -> None:
    """One paragraph, wrapped within the width."""
    show(out, Text(broken(text, out.width - indent), style=style), indent)


def facts(out: Console, rows: Mapping[str, str], indent: int, style: str = "cyan") -> None:
    """Names and texts in two columns."""
    names = min(max(map(len, rows), default=0), out.width - indent - VALUES)
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(width=names, overflow="fold")
    grid.add_column(overflow="fold")
    for name, text in rows.items():
        words = broken(text, out.width - indent - names - 2)
        grid.add_row(Text(broken(name, names), style=style), Text(words))
    show(out, grid, indent)


def broken(text: str, width: int) -> str:
    """The text with long words, such as paths, broken before a dot or bracket."""
    words = []
    for word in text.split(" "):
        lines = [""]
        for part in STEPS.findall(word) if len(word) > width else [word]:
            if lines[-1] and len(lines[-1]) + len(part) > width:
                lines.append("")
            lines[-1] += part
        words.append("\n".join(lines))
    return " ".join(words)


def print_chapter(out: Console, title: str, outcome: Outcome, catalog: Catalog) -> None:
    """Print one chapter: the request, the verdict, and all changes or violations."""
    request, answer = outcome.request, outcome.answer
    version = f"{request.group}/{request.version}"
    size = len(orjson.dumps(request.object))
    how = ", dry run" if request.dry_run else ""
    say(out, "")
    say(out, title, style="bold")
    rows = {
        "sent": f"{request.operation} {version} {request.kind} {request.namespace}/{request.name}"
        f"{how}, by {request.user}: {size:,} bytes, with what an API server adds (its defaults, "
        "managedFields, last-applied)",
        "verdict": verdict(answer, outcome.decision),
    }
    facts(out, rows, 3)
    if answer.is_allowed is not isinstance(outcome.decision, Allowed):
        say(out, str(answer.response.get("status", {}).get("message", "")), 5)
    elif isinstance(outcome.decision, Denied):
        print_refusal(out, answer, outcome.decision.violations)
    else:
        print_changes(out, outcome, catalog)
    rest = {f"warning {n}": text for n, text in enumerate(answer.response.get("warnings", ()), 1)}
    notes = answer.response.get("auditAnnotations", {})
    rest["audit log"] = "; ".join(f"{key} = {value}" for key, value in notes.items())
    if outcome.again is not None and outcome.checked is not None:
        once_more = "patches it once more" if outcome.again.patch else "patches nothing"
        last = "allows it" if outcome.checked.is_allowed else "refuses it"
        rest["then"] = f"the completed object is sent too: /mutate {once_more}, /validate {last}"
    say(out, "")
    facts(out, rest, 3)


def verdict(answer: Answer, decision: Decision) -> str:
    """The verdict in a line."""
    spent = f", answered in {answer.seconds * 1000:.1f} ms"
    if not answer.is_allowed:
        status = answer.response["status"]
        return (
            f"REFUSED, {status['code']} {status['reason']}: "
            f"{count(len(answer.causes), 'rule')} broken{spent}"
        )
    changes = len(decision.changes) if isinstance(decision, Allowed) else 0
    operations = count(len(answer.patch), "patch operation")
    return f"ALLOWED, {count(changes, 'value')} filled in by {operations}{spent}"


def count(number: int, word: str) -> str:
    """A number of things."""
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def print_refusal(out: Console, answer: Answer, violations: Sequence[Violation]) -> None:
    """Print each cause of the answer: path, value, allowed value, policy and what to do."""
    for number, (cause, violation) in enumerate(zip(answer.causes, violations, strict=False), 1):
        source = violation.source
        fix = violation.fix or violation_sentences(violation)[1]
        rows = {
            "place": cause["field"],
            "value": found_value(violation),
            "allowed": allowed_value(violation),
            "reason": cause["reason"],
            "policy": source.label() if source else "(none: it applies to every object)",
            "to do": " ".join(filter(None, (fix, source.message if source else ""))),
        }
        say(out, "")
        say(out, f"{number}) {violation.field or 'the object'}", 5, "red")
        facts(out, rows, 8, "dim")


def found_value(violation: Violation) -> str:
    """What the violation found: the value, or which item and what about it."""
    if not violation.key:
        return violation.value or HIDDEN
    more = violation.value if violation.value not in (None, violation.key) else ""
    return f"item {violation.key}" + (f" ({more})" if more else "")


def allowed_value(violation: Violation) -> str:
    """What would be allowed instead."""
    if violation.allowed is None:
        return INSTEAD.get(violation.reason, HIDDEN)
    return f"{BOUNDS.get(violation.reason, '')}{violation.allowed}"


def print_changes(out: Console, outcome: Outcome, catalog: Catalog) -> None:
    """Each value that was filled in, by pod location and by policy."""
    assert isinstance(outcome.decision, Allowed)
    request = outcome.request
    definition = catalog.definition(request.group, request.kind, request.version)
    places = [each.place for each in locate(definition, outcome.final)] if definition else []
    for place in [*places, ()]:
        inside = [
            each
            for each in outcome.decision.changes
            if each.path[: len(place)] == place and (place or not under(each.path, places))
        ]
        if inside:
            say(out, "")
            say(out, display(place) if place else "of the workload itself", 5, "green")
            print_location(out, inside, len(place), outcome.final)


def under(path: Path, places: Sequence[Path]) -> bool:
    """Whether a path lies below one of the places."""
    return any(path[: len(each)] == each for each in places)


def print_location(out: Console, changes: Sequence[Change], depth: int, final: Any) -> None:
    """The changes of one location, by what made them; values are read from the answered object."""
    reasons: dict[str, dict[str, str]] = {}
    for change in changes:
        source = f", {change.source.label()}" if change.source else ""
        why = f"{CHANGES.get(change.why, change.why)}{source}"
        where = display(change.path[depth:])
        reasons.setdefault(why, {})[where] = value_of(change, read(final, change.path))
    for why, rows in reasons.items():
        say(out, why, 7, "dim")
        facts(out, rows, 9, "")


def value_of(change: Change, value: Any) -> str:
    """The value in the completed object; only the name of a secret one."""
    if not change.secret:
        return texts.show_value(value)
    name = value.get("name") if isinstance(value, dict) else None
    return f"{name} (value not shown)" if name else HIDDEN
