"""Prints what `podgate audit --injected` finds: a list ready for the server, findings as comments."""

from __future__ import annotations

import re
import sys
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final

import orjson
import yaml

from webhook.cases.yaml_text import Plain
from webhook.cli import loading
from webhook.cli.report import violation_json
from webhook.controller.injections import Injection
from webhook.decision import messages as wording
from webhook.decision.suggested import Entry
from webhook.documents import texts

MOST_ENTRIES: Final = 1000
SAFE: Final = re.compile(r"[A-Za-z/][A-Za-z0-9_./:@-]*")
HEAD: Final = """\
# Append these entries to the file of --injected (PODGATE_INJECTED) after you have reviewed each: what
# a tenant asked another webhook for is here too. A * in a text matches anything.
"""


class Quoted(Plain):
    """YAML whose texts any reader takes for texts."""


def text_node(dumper: Quoted, value: str) -> yaml.ScalarNode:
    """A text, in quotes unless it is a plain word."""
    style = None if SAFE.fullmatch(value) else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


Quoted.add_representer(str, text_node)


@dataclass(slots=True)
class Printer:
    """Prints findings as they come; entries are kept, each once, at most MOST_ENTRIES."""

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
        """Print one object, where the list lacks anything for it."""
        found = each.found
        name = f"{found.kind} {found.namespace}/{found.name}"
        if found.fault:
            self.faults.take(name, found.fault)
            return
        self.evaluated += 1
        if found.violations:
            with self.faults.kept(name):
                self.show(each, name)

    def show(self, each: Injection, name: str) -> None:
        """Print one object that the list lacks something for."""
        found = each.found
        self.lacking += 1
        self.unlisted += bool(each.left)
        if self.output == "json":
            sys.stdout.write(orjson.dumps(as_json(each)).decode() + "\n")
            return
        said = [f"{name}, which {each.owner.kind} {each.owner.name} controls"]
        said += [f"  refused: {wording.violation_text(one)}" for one in found.violations]
        said += [f"  needs: {one.title}" for one in each.entries]
        said += [
            f"  no entry excuses {one.field} at {wording.place(one.path)}" for one in each.left
        ]
        for line in said:
            print(f"# {texts.clean(line)}")
        for one in each.entries:
            self.keep(one, name)

    def keep(self, entry: Entry, name: str) -> None:
        """Remember an entry to be printed at the end."""
        key = orjson.dumps([entry.part, entry.body], option=orjson.OPT_SORT_KEYS)
        if key not in self.entries:
            if len(self.entries) >= MOST_ENTRIES:
                self.too_many = True
                return
            self.entries[key], self.first[key] = entry, name
        self.needed[key] += 1

    def end(self) -> int:
        """Print the list, and on stderr what was found; the exit code."""
        if self.entries:
            sys.stdout.write(HEAD)
        for part in ("containers", "items"):
            listed = [key for key, each in self.entries.items() if each.part == part]
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


def as_json(each: Injection) -> dict[str, Any]:
    """One object for programs."""
    entries: dict[str, list[Any]] = {"containers": [], "items": []}
    for one in each.entries:
        entries[one.part].append(one.body)
    found, owner = each.found, each.owner
    return {
        **found.subject,
        "owner": {"apiVersion": owner.api_version, "kind": owner.kind, "name": owner.name},
        "violations": [violation_json(one) for one in found.violations],
        "entries": entries,
        "unlisted": [violation_json(one) for one in each.left],
    }
