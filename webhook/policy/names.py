"""Matches the names of a document with the canonical ones: other letter case, and older names."""

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
"""Names whose suggestion is not the most similar name."""
MOST_SUGGESTIONS = 50
"""Searching for similar names takes time: after this many problems there are no suggestions."""


@dataclass(frozen=True, slots=True)
class Found:
    """A leaf in the document: canonical name, path, raw value, and whether the spelling is exact."""

    name: str
    path: Path
    raw: Any
    exact: bool


@dataclass(frozen=True, slots=True)
class Names:
    """A tree of dotted names by lower-case spelling: leaves, aliases, sections."""

    leaves: Mapping[str, str]
    aliases: Mapping[str, str] = field(default_factory=dict)
    sections: Mapping[str, str] = field(default_factory=dict)
    children: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def resolve(self, section: str, key: Any) -> tuple[str | None, str | None]:
        """Return the canonical leaf or else the section that `key` names below `section`."""
        if not isinstance(key, str) or "." in key:
            return None, None
        spelled = join(section, key).lower()
        leaf = self.leaves.get(spelled) or self.aliases.get(spelled)
        return leaf, None if leaf else self.sections.get(spelled)

    def suggest(self, section: str, key: Any) -> str:
        """Return the known name that the author most likely meant, "" if none is similar."""
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
    """Return the dotted name of `key` below `section`."""
    return f"{section}.{key}" if section else key


def closest(word: str, known: Iterable[str]) -> str:
    """Return the most similar known word, ignoring letter case, "" if none is similar."""
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
    """Report a name that does not exist, with the name that was probably meant."""
    fix = f"did you mean {meant}?" if meant else hint or "remove it"
    if rule := rule_word(key):
        fix = f"{rule} is a rule: write it in rules, below a field or an attribute"
    report.error((*path, key), "unknown-field", label(key), fix)


def walk(known: Names, tree: Mapping[Any, Any], path: Path, report: Report) -> list[Found]:
    """Return every leaf in `tree` that is not null. Unknown names and spellings are reported."""
    found: list[Found] = []
    open_sections: list[tuple[str, Mapping[Any, Any], Path]] = [("", tree, path)]
    while open_sections:
        section, mapping, parent = open_sections.pop()
        for key, raw in mapping.items():
            leaf, below = known.resolve(section, key)
            here = (*parent, key)
            if leaf is not None:
                exact = leaf == join(section, key)
                if not exact and raw is not None:
                    warn_of_spelling(report, here, join(section, key), leaf)
                if raw is not None:
                    found.append(Found(leaf, here, raw, exact))
            elif below is not None:
                if below != join(section, key):
                    warn_of_spelling(report, here, join(section, key), below)
                open_sections.append((below, report.mapping(raw, here), here))
            else:
                if isinstance(key, str) and "." in key and known.leaves.get(key.lower()):
                    nested = known.leaves[key.lower()].replace(".", ": {", 1)
                    unknown(report, parent, key, "", f"write it nested, as {nested}: …}}")
                    continue
                few = len(report.problems) < MOST_SUGGESTIONS
                unknown(report, parent, key, known.suggest(section, key) if few else "")
    return found


def warn_of_spelling(report: Report, path: Path, spelled: str, canonical: str) -> None:
    """Warn of a name in another spelling."""
    reason = "letter-case" if spelled.lower() == canonical.lower() else "alias"
    report.warn(path, reason, label(spelled), f"write {canonical}")


def pick_spellings(found: Iterable[Found], report: Report) -> list[Found]:
    """Return one entry per name: the canonical spelling, else the first. Others are reported."""
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
    """Return the rule that a key names. canEdit is also canedit, can-edit and can_edit."""
    if not isinstance(key, str):
        return None
    return RULE_WORDS.get(key.lower().replace("-", "").replace("_", ""))


def word(key: Any, known: Iterable[str]) -> str | None:
    """Return the word in `known` that equals a key, ignoring letter case."""
    if not isinstance(key, str):
        return None
    return next((each for each in known if each.lower() == key.lower()), None)


def members(
    report: Report, mapping: Mapping[Any, Any], path: Path, known: Iterable[str]
) -> dict[str, Found]:
    """Return the members of a small structure such as instances and attributes."""
    wanted = tuple(known)
    found: list[Found] = []
    for key, raw in mapping.items():
        name = word(key, wanted)
        if name is None:
            unknown(report, path, key, closest(str(key), wanted), f"write {' or '.join(wanted)}")
        elif raw is not None:
            if name != key:
                warn_of_spelling(report, (*path, key), key, name)
            found.append(Found(name, (*path, key), raw, name == key))
    return {each.name: each for each in pick_spellings(found, report)}
