"""Matches the names of a document with the canonical ones, whatever their letter case or age."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from webhook.objects.path import Path
from webhook.policy import rules
from webhook.policy.report import Report, label

LONGEST_NAME = 64
MEANT = {"path": "mountPath"}
"""Names that mean another one than the most similar, where their own is not known."""
MOST_SUGGESTIONS = 50
"""Looking for similar names costs time: documents with more faults get no suggestions for them."""


@dataclass(frozen=True, slots=True)
class Found:
    """A leaf that the document names: canonical name, place, raw value, and whether spelled so."""

    name: str
    path: Path
    raw: Any
    exact: bool


@dataclass(frozen=True, slots=True)
class Names:
    """A tree of dotted names by lower-case spelling: leaves, their aliases, the sections above."""

    leaves: Mapping[str, str]
    aliases: Mapping[str, str] = field(default_factory=dict)
    sections: Mapping[str, str] = field(default_factory=dict)
    children: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def resolve(self, section: str, key: Any) -> tuple[str | None, str | None]:
        """The canonical leaf or else the section that `key` names below `section`."""
        if not isinstance(key, str) or "." in key:
            return None, None
        spelled = join(section, key).lower()
        leaf = self.leaves.get(spelled) or self.aliases.get(spelled)
        return leaf, None if leaf else self.sections.get(spelled)

    def suggest(self, section: str, key: Any) -> str:
        """The known name that the author most likely meant; empty when none is near."""
        if not isinstance(key, str) or len(key) > LONGEST_NAME:
            return ""
        here = closest(key, self.children.get(section.lower(), ()))
        if here:
            return join(section, here)
        full = join(section, key)
        last = key.rpartition(".")[2].lower()
        moved = [name for name in self.leaves.values() if name.rpartition(".")[2].lower() == last]
        return moved[0] if moved else closest(full, self.leaves.values())


def join(section: str, key: str) -> str:
    """The dotted name of `key` below `section`."""
    return f"{section}.{key}" if section else key


def closest(word: str, known: Iterable[str]) -> str:
    """The most similar known word, letter case aside; empty when none is near."""
    if len(word) > LONGEST_NAME:
        return ""
    spelled = {each.lower(): each for each in known}
    if (meant := MEANT.get(word.lower(), "").lower()) in spelled:
        return spelled[meant]
    near = difflib.get_close_matches(word.lower(), spelled, n=1, cutoff=0.7)
    return spelled[near[0]] if near else ""


def names(leaves: Iterable[str], aliases: Mapping[str, str]) -> Names:
    """Index canonical dotted names and their aliases."""
    canonical = list(leaves)
    sections: dict[str, str] = {}
    children: dict[str, dict[str, None]] = {}
    for name in (*canonical, *aliases):
        steps = name.split(".")
        for depth in range(1, len(steps)):
            section = ".".join(steps[:depth])
            sections.setdefault(section.lower(), section)
    for name in canonical:
        steps = name.split(".")
        for depth in range(len(steps)):
            children.setdefault(".".join(steps[:depth]).lower(), {})[steps[depth]] = None
    return Names(
        {name.lower(): name for name in canonical},
        {alias.lower(): name for alias, name in aliases.items() if alias.lower() != name.lower()},
        sections,
        {section: tuple(found) for section, found in children.items()},
    )


def unknown(report: Report, path: Path, key: Any, meant: str, hint: str = "") -> None:
    """The problem of a name that does not exist, with the name that was probably meant."""
    fix = f"did you mean {meant}?" if meant else hint or "remove it"
    if rule := rule_word(key):
        fix = f"{rule} is a rule: write it in rules, below a field or an attribute"
    report.error((*path, key), "unknown-field", label(key), fix)


def walk(known: Names, tree: Mapping[Any, Any], path: Path, report: Report) -> list[Found]:
    """Every leaf below `tree` that is not null; unknown names and other spellings are reported."""
    found: list[Found] = []
    open_sections: list[tuple[str, Mapping[Any, Any], Path]] = [("", tree, path)]
    while open_sections:
        section, mapping, place = open_sections.pop()
        for key, raw in mapping.items():
            leaf, below = known.resolve(section, key)
            here = (*place, key)
            if leaf is not None:
                exact = leaf == join(section, key)
                if not exact and raw is not None:
                    respelled(report, here, join(section, key), leaf)
                if raw is not None:
                    found.append(Found(leaf, here, raw, exact))
            elif below is not None:
                if below != join(section, key):
                    respelled(report, here, join(section, key), below)
                open_sections.append((below, report.mapping(raw, here), here))
            else:
                if isinstance(key, str) and "." in key and known.leaves.get(key.lower()):
                    nested = known.leaves[key.lower()].replace(".", ": {", 1)
                    unknown(report, place, key, "", f"write it nested, as {nested}: …}}")
                    continue
                few = len(report.problems) < MOST_SUGGESTIONS
                unknown(report, place, key, known.suggest(section, key) if few else "")
    return found


def respelled(report: Report, path: Path, spelled: str, canonical: str) -> None:
    """The warning of a name that is known by another spelling."""
    reason = "letter-case" if spelled.lower() == canonical.lower() else "alias"
    report.warn(path, reason, label(spelled), f"write {canonical}")


def picked(found: Iterable[Found], report: Report) -> list[Found]:
    """One finding per name: the canonical spelling wins, else the first; the rest is reported."""
    chosen: dict[str, Found] = {}
    for each in sorted(found, key=lambda one: not one.exact):
        if each.name in chosen:
            winner = chosen[each.name]
            report.warn(
                each.path,
                "spelled-twice",
                label(each.path[-1]),
                f"remove it: {each.name} is also given at line "
                f"{report.position(winner.path)[0]}, which counts",
            )
        else:
            chosen[each.name] = each
    return list(chosen.values())


RULE_WORDS = {name.lower(): name for name in rules.TABLE} | {"defaulfrom": "defaultFrom"}


def rule_word(key: Any) -> str | None:
    """The rule that a key names: canEdit also as canedit, can-edit or can_edit."""
    if not isinstance(key, str):
        return None
    return RULE_WORDS.get(key.lower().replace("-", "").replace("_", ""))


def word(key: Any, known: Iterable[str]) -> str | None:
    """The word among `known` that a key is, letter case aside."""
    if not isinstance(key, str):
        return None
    return next((each for each in known if each.lower() == key.lower()), None)


def members(
    report: Report, mapping: Mapping[Any, Any], path: Path, known: Iterable[str]
) -> dict[str, Found]:
    """The members of a small structure such as instances and attributes, letter case aside."""
    wanted = tuple(known)
    found: list[Found] = []
    for key, raw in mapping.items():
        name = word(key, wanted)
        if name is None:
            unknown(report, path, key, closest(str(key), wanted), f"write {' or '.join(wanted)}")
        elif raw is not None:
            if name != key:
                respelled(report, (*path, key), key, name)
            found.append(Found(name, (*path, key), raw, name == key))
    return {each.name: each for each in picked(found, report)}
