"""Converts policies of every form and generation to custom resources with canonical names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from webhook.convert.document import DraftDocument
from webhook.convert.generation_1 import convert_policy as convert_generation_1
from webhook.convert.write_policy import INSTANCES, rewrite_policy
from webhook.documents.problem import Problem
from webhook.documents.source import SourceDocument
from webhook.policy import other_documents
from webhook.policy.envelope import Context
from webhook.policy.policy_document import parse_policy
from webhook.policy.report import Report

INEXACT = "converted-inexactly"
LOSSES = frozenset({"not-expressed", "field-not-known", INEXACT})
"""Reasons of differences between the result and the original."""
SHALLOWEST = 3
"""Depth of the shallowest path that can be removed: spec.rules.<field>."""


@dataclass(frozen=True, slots=True)
class Conversion:
    """The canonical policy, None for a document that cannot be converted, and all problems."""

    policy: dict[str, Any] | None
    problems: tuple[Problem, ...]

    @property
    def losses(self) -> tuple[Problem, ...]:
        """The problems of members that cannot be expressed, or not exactly."""
        return tuple(each for each in self.problems if each.reason in LOSSES)


def convert(document: SourceDocument, context: Context) -> Conversion:
    """Convert a document. For a first-generation policy, convert the fields with a successor."""
    data = document.data
    if not (isinstance(data, dict) and other_documents.is_v1(data)):
        policy, problems = parse_policy(document, context)
        if policy is None:
            return Conversion(None, problems)
        return Conversion(rewrite_policy(document, context).data, problems)
    report = Report(document)
    draft_document = convert_generation_1(report)
    sound = prune_invalid(report, draft_document, context)
    problems = tuple(sorted(report.problems, key=lambda each: (each.line, each.column)))
    if not sound:
        return Conversion(None, problems)
    return Conversion(
        rewrite_policy(draft_document.document(document.origin)[0], context).data, problems
    )


def prune_invalid(report: Report, draft_document: DraftDocument, context: Context) -> bool:
    """Remove and report what is not valid. Returns False if nothing valid remains.

    The first generation checked little: defaults outside their own rules are among its policies.
    """
    while True:
        document, places = draft_document.document(report.document.origin)
        _, problems = parse_policy(document, context)
        faults = [each for each in problems if each.severity == "error"]
        if not faults:
            return True
        place = places[faults[0].line - 1] if faults[0].line else ()
        if INSTANCES in place[:-1]:
            place = place[: place.index(INSTANCES) + 2]  # a partial item would be another one
        source = draft_document.source(place)
        if len(place) < SHALLOWEST or place[1] not in ("defaults", "rules"):
            report.error(source, faults[0].reason, faults[0].found, faults[0].fix)
            return False
        where = ".".join(map(str, place[1:]))
        found = f"{faults[0].found} ({where}: {faults[0].reason})"
        report.error(source, "not-expressed", found, faults[0].fix)
        draft_document.remove(place)
