"""Prints the findings of `podgate audit`, and with `--injected` a list for the server."""

from __future__ import annotations

import re
import sys
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final, Self

import orjson
import yaml
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
from rich.progress import Progress as Bars

from webhook.cases.yaml_text import Plain
from webhook.cli import loading, outcomes
from webhook.cli.report import violation_json
from webhook.controller.audit import Finding
from webhook.controller.injections import Injection
from webhook.decision.messages import change_text, place, violation_text
from webhook.decision.suggested import Entry
from webhook.documents import texts

MOST_ENTRIES: Final = 1000
SAFE: Final = re.compile(r"[A-Za-z/][A-Za-z0-9_./:@-]*")
HEAD: Final = """\
# Append these entries to the file of --injected (PODGATE_INJECTED) after you have reviewed each: what
# a tenant asked another webhook for is here too. A * in a text matches anything.
"""


@dataclass(slots=True)
class FindingPrinter:
    """Prints findings as they arrive; keeps counts only."""

    output: str
    is_proposed: bool
    counts: Counter[str] = field(default_factory=Counter)
    faults: loading.Faults = field(default_factory=loading.Faults)

    def take(self, each: Finding) -> None:
        """Print the finding on one object, unless there is nothing to print."""
        self.counts["evaluated"] += 1
        if each.is_clean:
            return
        source = name_of(each)
        if each.fault:
            self.faults.take(source, each.fault)
        else:
            self.counts["refused" if each.violations else "changed"] += 1
        with self.faults.report_faults(source):
            if self.output == "json":
                sys.stdout.write(orjson.dumps(finding_json(each)).decode() + "\n")
            else:
                show_text(each)

    def end(self) -> None:
        """Print the counts."""
        if self.output == "json":
            return
        word = "would be" if self.is_proposed else "would today be"
        print(
            f"{self.counts['evaluated']} objects evaluated: {self.counts['refused']} {word} refused,"
            f" {self.counts['changed']} completed or noted"
        )


class ProgressBar:
    """A line on the terminal for the kind that is being read; nothing where stderr is no terminal."""

    def __init__(self) -> None:
        console = Console(stderr=True)
        columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
        self.bars = Bars(
            *columns,
            console=console,
            transient=True,
            redirect_stdout=sys.stdout.isatty(),  # else it would go to stderr, past the pipe
            disable=not console.is_terminal,
        )
        self.task = self.bars.add_task("", total=None)

    def show(self, kind: str, read: int, number: int) -> None:
        """Show how many objects of a kind were read."""
        self.bars.update(self.task, description=kind, completed=read, total=number)

    def __enter__(self) -> Self:
        self.bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bars.stop()


def name_of(finding: Finding) -> str:
    """Kind, namespace and name of an object, as text."""
    return texts.clean(f"{finding.kind} {finding.namespace}/{finding.name}")


def show_text(finding: Finding) -> None:
    """Print the findings on one object."""
    print(name_of(finding))
    if finding.fault:
        print("  not evaluated: podgate has a fault, see stderr")
    for violation in finding.violations:
        print(f"  refused: {violation_text(violation)}")
    for violation in finding.trial:
        mode = "audit" if outcomes.is_audited(violation.source) else "warn mode"
        print(f"  {mode}: {violation_text(violation)}")
    for change in finding.changes:
        print(f"  written: {change_text(change)}")


def finding_json(finding: Finding) -> dict[str, Any]:
    """One finding as JSON."""
    return {
        "apiVersion": finding.api_version,
        "kind": finding.kind,
        "namespace": finding.namespace,
        "name": finding.name,
        "uid": finding.uid,
        "violations": [violation_json(each) for each in finding.violations],
        "outcome": finding.outcome,
        "reason": finding.reason or None,
        "trial": [violation_json(each) for each in finding.trial],
        "audit": [violation_json(e) for e in finding.trial if outcomes.is_audited(e.source)],
        "changes": [change_text(each) for each in finding.changes],
    }


class Quoted(Plain):
    """YAML that quotes each text which some parser would not read as a text."""


def text_node(dumper: Quoted, value: str) -> yaml.ScalarNode:
    """A text, in quotes unless it is a plain word."""
    style = None if SAFE.fullmatch(value) else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


Quoted.add_representer(str, text_node)


@dataclass(slots=True)
class Printer:
    """Prints findings as they arrive; keeps each entry once, at most MOST_ENTRIES."""

    output: str
    entries: dict[bytes, Entry] = field(default_factory=dict)
    needed: Counter[bytes] = field(default_factory=Counter)
    first: dict[bytes, str] = field(default_factory=dict)
    evaluated: int = 0
    lacking: int = 0
    unlisted: int = 0
    too_many: bool = False
    faults: loading.Faults = field(default_factory=loading.Faults)

    def take(self, each: Injection) -> None:
        """Print one object if the list lacks anything for it."""
        found = each.found
        name = f"{found.kind} {found.namespace}/{found.name}"
        if found.fault:
            self.faults.take(name, found.fault)
            return
        self.evaluated += 1
        if found.violations:
            with self.faults.report_faults(name):
                self.show(each, name)

    def show(self, each: Injection, name: str) -> None:
        """Print one object and the entries that the list lacks for it."""
        found = each.found
        self.lacking += 1
        self.unlisted += bool(each.left)
        if self.output == "json":
            sys.stdout.write(orjson.dumps(injection_json(each)).decode() + "\n")
            return
        lines = [f"{name}, which {each.owner.kind} {each.owner.name} controls"]
        lines += [f"  refused: {violation_text(one)}" for one in found.violations]
        lines += [f"  needs: {one.title}" for one in each.entries]
        lines += [f"  no entry excuses {one.field} at {place(one.path)}" for one in each.left]
        for line in lines:
            print(f"# {texts.clean(line)}")
        for one in each.entries:
            self.keep(one, name)

    def keep(self, entry: Entry, name: str) -> None:
        """Remember an entry to be printed at the end."""
        key = orjson.dumps([entry.kind, entry.body], option=orjson.OPT_SORT_KEYS)
        if key not in self.entries:
            if len(self.entries) >= MOST_ENTRIES:
                self.too_many = True
                return
            self.entries[key], self.first[key] = entry, name
        self.needed[key] += 1

    def end(self) -> int:
        """Print the list, and a summary on stderr; return the exit code."""
        if self.entries:
            sys.stdout.write(HEAD)
        for part in ("containers", "items"):
            listed = [key for key, each in self.entries.items() if each.kind == part]
            if listed:
                print(f"{part}:")
            for key in sorted(listed):
                number, changed = self.needed[key], self.entries[key].of_owner
                whose = ", whose owner has this container otherwise" if changed else ""
                print(texts.clean(f"# {number} objects, such as {self.first[key]}{whose}"))
                sys.stdout.write(yaml_of([self.entries[key].body]))
        if self.too_many:
            loading.complain(f"note: only {MOST_ENTRIES} entries are printed; use --namespace")
        loading.complain(
            f"{self.evaluated} objects that controllers made were evaluated: {self.lacking} would be"
            f" refused, {self.unlisted} of them whatever is listed"
        )
        return self.faults.code(1 if self.lacking else 0)


def yaml_of(value: Any) -> str:
    """A value as YAML."""
    return yaml.dump(
        value,
        Dumper=Quoted,
        sort_keys=False,
        allow_unicode=True,
        default_flow_style=None,
        width=110,
    )


def injection_json(each: Injection) -> dict[str, Any]:
    """One object of `--injected` as JSON."""
    entries: dict[str, list[Any]] = {"containers": [], "items": []}
    for one in each.entries:
        entries[one.kind].append(one.body)
    found, owner = each.found, each.owner
    return {
        **found.subject,
        "owner": {"apiVersion": owner.api_version, "kind": owner.kind, "name": owner.name},
        "violations": [violation_json(one) for one in found.violations],
        "entries": entries,
        "unlisted": [violation_json(one) for one in each.left],
    }
