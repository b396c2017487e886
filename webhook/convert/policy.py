"""Converts policies of every form and age into our custom resources, with canonical names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from webhook.convert.document import Sheet
from webhook.convert.generation_1 import converted as converted_v1
from webhook.convert.write_policy import INSTANCES, written_anew
from webhook.documents.problem import Problem
from webhook.documents.source import SourceDocument
from webhook.policy import generations as legacy
from webhook.policy.envelope import Context
from webhook.policy.policy_document import parse_policy
from webhook.policy.report import Report

INEXACT = "converted-inexactly"
LOSSES = frozenset({"not-expressed", "field-not-known", INEXACT})
"""Reasons of what the result does not say as the original did."""
SHALLOWEST = 3
"""Depth below which nothing can be left out: spec.rules.<field>."""


@dataclass(frozen=True, slots=True)
class Conversion:
    """The canonical policy, None for a document that cannot be converted, and all problems."""

    policy: dict[str, Any] | None
    problems: tuple[Problem, ...]

    @property
    def losses(self) -> tuple[Problem, ...]:
        """What could not be expressed."""
        return tuple(each for each in self.problems if each.reason in LOSSES)


def convert(document: SourceDocument, context: Context) -> Conversion:
    """One document; of an old one whatever has a successor, which `parse_policy` then accepts."""
    data = document.data
    if not (isinstance(data, dict) and legacy.is_v1(data)):
        policy, problems = parse_policy(document, context)
        if policy is None:
            return Conversion(None, problems)
        return Conversion(written_anew(document, context).data, problems)
    report = Report(document)
    sheet = converted_v1(report)
    sound = pruned(report, sheet, context)
    problems = tuple(sorted(report.problems, key=lambda each: (each.line, each.column)))
    if not sound:
        return Conversion(None, problems)
    return Conversion(written_anew(sheet.document(document.origin)[0], context).data, problems)


def pruned(report: Report, sheet: Sheet, context: Context) -> bool:
    """Leave out, and tell, what is no valid policy; False when nothing valid remains.

    The first generation checked little: defaults outside their own rules are among its policies.
    """
    while True:
        document, places = sheet.document(report.document.origin)
        _, problems = parse_policy(document, context)
        faults = [each for each in problems if each.severity == "error"]
        if not faults:
            return True
        place = places[faults[0].line - 1] if faults[0].line else ()
        if INSTANCES in place[:-1]:
            place = place[: place.index(INSTANCES) + 2]  # an item without a part is another item
        source = sheet.source(place)
        if len(place) < SHALLOWEST or place[1] not in ("defaults", "rules"):
            report.error(source, faults[0].reason, faults[0].found, faults[0].fix)
            return False
        where = ".".join(map(str, place[1:]))
        found = f"{faults[0].found} ({where}: {faults[0].reason})"
        report.error(source, "not-expressed", found, faults[0].fix)
        sheet.remove(place)
