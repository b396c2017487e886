"""Writes the outcome of a case into its file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from webhook.cases.case import Case, Outcome
from webhook.cases.case_document import ANY
from webhook.cases.compare import WRITTEN, facts
from webhook.cases.read import one_document
from webhook.cases.yaml_text import text_of
from webhook.objects.path import ABSENT, read


def proposal(case: Case, outcome: Outcome) -> dict[str, Any]:
    """An `expect` that the outcome meets, with the facts that the case already uses."""
    seen, before = facts(outcome), case.expect or {}
    found: dict[str, Any] = {"allowed": seen["allowed"]}
    if seen["allowed"]:
        forms = [key for key in ("object", "patch", "changes") if key in before] or ["changes"]
        found.update({key: seen[key] for key in forms})
        if not seen["judged"]:
            found["judged"] = False
    else:
        found["violations"] = list(propose_violations(seen["violations"], before.get("violations")))
    if before.get("warnings") == ANY:
        found["warnings"] = ANY
    elif seen["warnings"]:
        found["warnings"] = seen["warnings"]
    if seen["audit"]:
        found["audit"] = list(propose_violations(seen["audit"], before.get("audit")))
    return found


def propose_violations(seen: Iterable[Mapping[str, Any]], before: Any) -> Iterator[dict[str, Any]]:
    """Violations with the facts that the case already lists, or else with the main facts."""
    listed = before or ()
    for index, each in enumerate(seen):
        keys = listed[index] if index < len(listed) else (*WRITTEN, "key")
        yield {key: each[key] for key in keys if key in keys and each[key] not in (None, "")}


def rewrite(case: Case, outcome: Outcome) -> None:
    """Write the outcome into the case's file as its `expect`; leave everything else as it is."""
    text = text_of({"expect": proposal(case, outcome)})
    # Earlier rewrites of the same file may have moved lines, so read positions again.
    document = one_document(case.file, kubernetes=False)
    lines = case.file.read_text().splitlines()
    holder = (*case.at, "expect")
    if read(document.data, case.at) is not ABSENT and holder in document.positions:
        line, column = document.position(holder)
        start, end = line - 1, block_end(lines, line - 1, column - 1)
        head = lines[start][: column - 1]
    else:
        start = end = len(lines)
        head = ""
        if case.at:
            line, column = document.position((*case.at, "name"))
            head = " " * (column - 1)
            start = end = block_end(lines, line - 1, column - 2)
    pad = " " * len(head)
    new = [f"{pad}{each}" if each else each for each in text.splitlines()]
    if new and head.strip():
        new[0] = head + new[0][len(head) :]
    case.file.write_text("\n".join([*lines[:start], *new, *lines[end:]]) + "\n")


def block_end(lines: Sequence[str], start: int, indent: int) -> int:
    """The first line after `start` that is indented no deeper than `indent`."""
    for index in range(start + 1, len(lines)):
        stripped = lines[index].lstrip()
        if stripped and len(lines[index]) - len(stripped) <= indent:
            return index
    return len(lines)
