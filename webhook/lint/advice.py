"""Advice on policies that load: what is legal, but probably not what the author wants.

To add advice, write a class in the file of its subject and list it in a table here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from webhook.documents.problem import Check, Problem
from webhook.lint import coverage, fields, losses, selectors
from webhook.lint.kinds import LintContext, PolicyInContext
from webhook.policy import checks, reasons

OF_POLICIES: tuple[Check[PolicyInContext], ...] = (
    coverage.KindsNotCovered(),
    fields.NoShippedKind(),
    fields.NoKindCarries(),
    fields.WithoutValue(),
    fields.RequiredWithoutEffect(),
    fields.UnknownPriorityClass(),
    selectors.SelectorAll(),
    selectors.SelectorEmpty(),
    selectors.SelectorNegative(),
    selectors.SelectorNameLabel(),
    selectors.ExclusionWithoutEffect(),
)
OF_CONTEXTS: tuple[Check[LintContext], ...] = (losses.Losses(),)
TABLES: tuple[tuple[Check[Any], ...], ...] = (OF_POLICIES, OF_CONTEXTS)
REASONS: Mapping[str, str] = {
    **reasons.REASONS,
    **checks.meanings(),
    **{reason: each for table in TABLES for check in table for reason, each in check.ids.items()},
}
"""The meaning of each reason of policies and assets: from reading, checks and advice."""


def lint(context: LintContext) -> tuple[Problem, ...]:
    """Return all advice, in order of line."""
    subjects = [PolicyInContext(context, each) for each in context.own]
    problems = [
        *(each for one in subjects for check in OF_POLICIES for each in check.run(one)),
        *(each for check_of_context in OF_CONTEXTS for each in check_of_context.run(context)),
    ]
    return tuple(sorted(problems, key=lambda each: (each.origin, each.line, each.column)))
