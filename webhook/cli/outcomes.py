"""Outcomes of a command: the options for its exit code, warnings, and the summary line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Final

import typer

from webhook.cases.run_offline import Place, Verdict
from webhook.catalog.catalog import Catalog
from webhook.cli import loading
from webhook.documents import texts
from webhook.documents.problem import Source
from webhook.documents.suggestions import closest
from webhook.evaluation.outcome import ALLOWED, FAULT, NO_PODS, NOT_EVALUATED, REFUSED
from webhook.policy.combine import RANK
from webhook.policy.policy import Policy
from webhook.sources.files import origin_of, read_all
from webhook.sources.load import Sources, shipped_paths

WARNING, AUDIT, NONE = "warning", "audit", "none"
EVERYTHING: Final = (REFUSED, NOT_EVALUATED, WARNING, AUDIT)
MOST_NAMED: Final = 5
ASSUMED: Final = Place().namespace
NO_POLICY_GIVEN: Final = (
    "no policy is given (--policies FILE), so only the built-in system policy applies"
)

FailOn = Annotated[
    str,
    typer.Option(
        "--fail-on",
        metavar="WHAT,…",
        help=f"Outcomes that lead to exit code 1: {', '.join(EVERYTHING)}, or none. Kinds of Kubernetes"
        " without pods do not count as not-evaluated.",
    ),
]
Strict = Annotated[
    bool, typer.Option("--strict", help=f"The same as --fail-on {','.join(EVERYTHING)}.")
]
Partial = Annotated[
    bool,
    typer.Option("--partial", help="Print the other objects if one is refused."),
]


def failing_on(fail_on: str, *, strict: bool) -> frozenset[str]:
    """The outcomes that lead to exit code 1, from the two options."""
    words = [each.strip() for each in fail_on.split(",") if each.strip()]
    for each in words:
        loading.check_choice(each, (*EVERYTHING, NONE), "--fail-on")
    if not words or (NONE in words and len(set(words)) > 1):
        loading.complain("error: --fail-on: write none alone, or what leads to exit code 1")
        raise loading.BadInput
    return frozenset(EVERYTHING if strict else words) - {NONE}


@dataclass(slots=True)
class Tally:
    """Counts of outcomes, and the policies in force, for the summary line and the exit code."""

    fail_on: frozenset[str]
    outcomes: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    warnings: int = 0
    audit: int = 0
    policies: dict[Source, Policy | None] = field(default_factory=dict)

    def take(
        self, outcome: str, reason: str = "", warnings: int = 0, audit: int = 0, objects: int = 1
    ) -> None:
        """Count objects of one outcome, and the warnings and audit entries on all of them."""
        self.outcomes[outcome] += objects
        if outcome == NOT_EVALUATED and objects:
            self.reasons[reason] += objects
        self.warnings += warnings
        self.audit += audit

    def take_verdict(self, verdict: Verdict) -> None:
        """Count the outcome of one manifest."""
        decision = verdict.decision
        audited = sum(is_audited(each.source) for each in decision.audit)
        self.take(verdict.outcome, verdict.reason, len(decision.warnings), audited)
        if not verdict.reason:
            self.policies.update((each.source, each) for each in verdict.policies)

    def take_faults(self, number: int) -> None:
        """Count objects on which podgate itself failed."""
        self.take(NOT_EVALUATED, FAULT, objects=number)

    def warn(self, text: str) -> None:
        """Print a warning on stderr that is not about a single object."""
        self.warnings += 1
        loading.complain(f"warning: {text}")

    def close(self, *, of: str = "object") -> int:
        """Print the summary line on stderr; return the exit code that the outcomes lead to."""
        loading.complain(self.line(of))
        counted = {
            REFUSED: self.outcomes[REFUSED],
            NOT_EVALUATED: self.outcomes[NOT_EVALUATED] - self.reasons[NO_PODS],
            WARNING: self.warnings,
            AUDIT: self.audit,
        }
        return 1 if any(counted[each] for each in self.fail_on) else 0

    def line(self, of: str) -> str:
        """The summary line: objects by outcome, warnings, and the policies in force."""
        total = sum(self.outcomes.values())
        reasons = ", ".join(f"{count} {reason}" for reason, count in sorted(self.reasons.items()))
        totals = [
            f"{self.outcomes[ALLOWED]} allowed",
            f"{self.outcomes[REFUSED]} refused",
            f"{self.outcomes[NOT_EVALUATED]} not evaluated{f' ({reasons})' if reasons else ''}",
        ]
        if self.warnings:
            totals.append(plural(self.warnings, "warning"))
        if self.audit:
            totals.append(f"{plural(self.audit, 'violation')} in audit mode")
        return f"{plural(total, of)}: {', '.join(totals)}; policies in force: {self.in_force()}"

    def in_force(self) -> str:
        """The names of the policies in force, the broadest scope first."""
        found = sorted(
            self.policies.items(),
            key=lambda each: (RANK[each[0].scope], each[0].namespace, each[0].policy),
        )
        named = [
            f"{policy_text(source)}{' (built in)' if policy and is_built_in(policy) else ''}"
            for source, policy in found
        ]
        return list_names(named) or "none"


def plural(count: int, noun: str) -> str:
    """A number with its noun."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def list_names(names: Sequence[str]) -> str:
    """The first names, and the number of others."""
    kept = names[:MOST_NAMED]
    more = f" and {len(names) - len(kept)} more" if len(names) > len(kept) else ""
    return f"{', '.join(kept)}{more}"


def policy_text(source: Source) -> str:
    """A policy by scope and name, with its mode if it is not enforced."""
    mode = f" [{source.enforcement}]" if source.enforcement != "Enforce" else ""
    return f"{texts.clean(source.label())}{mode}"


def is_audited(source: Source | None) -> bool:
    """Whether a violation comes from a policy in audit mode."""
    return source is not None and source.enforcement == "Audit"


def is_built_in(policy: Policy) -> bool:
    """Whether a policy is part of podgate."""
    return policy.origin in shipped_paths()


def warn_of_policies(
    tally: Tally,
    verdicts: Sequence[Verdict],
    catalog: Catalog,
    sources: Sources,
    *,
    assumed: bool,
) -> None:
    """Warn if given files have no policies, or policies that do not affect the evaluated objects.

    `assumed`: no option sets the default namespace.
    """
    given = [each for each in catalog.policies if not is_built_in(each)]
    for path in sources.policies:
        if not any(is_from(each, path) for each in given):
            tally.warn(empty_text(path))
    for each in given:
        if is_empty(each):
            tally.warn(f"{policy_text(each.source)} is empty: it has no default and no rule")
    evaluated = [each for each in verdicts if not each.reason]
    if not given:
        if not sources.policies:
            tally.warn(NO_POLICY_GIVEN)
        return
    without = [each for each in evaluated if all(map(is_built_in, each.policies))]
    if without:
        named = list_names([f"{each.kind}/{each.name or '(unnamed)'}" for each in without])
        tally.warn(f"no given policy applies to {texts.clean(named)}")
    places = sorted({each.namespace for each in verdicts if each.namespace})
    in_force = set(tally.policies)
    unused = [each for each in given if each.source not in in_force] if evaluated else []
    for each in unused[:MOST_NAMED]:
        hint, doubtful = unused_text(each, places, assumed=assumed and ASSUMED in places)
        if doubtful:
            tally.warn(hint)
        elif without:
            loading.complain(f"note: {hint}")


def warn_of_empty(tally: Tally, files: Sequence[str], sources: Sequence[str]) -> None:
    """Warn of each file or folder that has no object, by the `sources` of the objects."""
    for path in files:
        name = origin_of(path)
        starts = (f"{name}#", f"{name}[", f"{name.rstrip('/')}/")
        if not any(each == name or each.startswith(starts) for each in sources):
            tally.warn(f"{texts.clean(name)} has no object, so nothing in it is evaluated")


def is_empty(policy: Policy) -> bool:
    """Whether a policy has no default, rule or imposed asset."""
    body = policy.body
    return not any((*body.defaults.values(), *body.items.values(), *body.imposed.values())) and (
        not any(body.rules.values())
    )


def is_from(policy: Policy, path: str) -> bool:
    """Whether a policy comes from a given path."""
    return policy.origin == origin_of(path) or policy.origin.startswith(f"{path.rstrip('/')}/")


def empty_text(path: str) -> str:
    """What a path without a policy contains."""
    documents = [] if path == "-" else read_all([path])[0]
    what = "has documents, but no policy" if documents else "is empty: it has no policy"
    return f"--policies {texts.clean(origin_of(path))} {what}"


def unused_text(policy: Policy, places: Sequence[str], *, assumed: bool) -> tuple[str, bool]:
    """Why a policy applies to no object, and whether that is probably a mistake."""
    name = policy_text(policy.source)
    if policy.namespace and policy.namespace not in places:
        near = closest(policy.namespace, places)
        where = f"the objects are in {texts.clean(list_names(places)) or 'no namespace'}"
        text = f"{name} applies in namespace {policy.namespace} only; {where}"
        if assumed:
            return f"{text}: give --namespace {policy.namespace}", True
        return (f"{text}: did you mean {policy.namespace}?", True) if near else (text, False)
    return f"{name} applies to no object here: {selection_text(policy)}", False


def selection_text(policy: Policy) -> str:
    """What a policy selects, abbreviated."""
    return "; ".join(selections(policy)) or "no object is of a kind or namespace that it selects"


def selections(policy: Policy) -> Iterator[str]:
    """Each selector of a policy."""
    if policy.workload_types:
        yield f"it is for workload types {', '.join(sorted(policy.workload_types))}"
    if policy.kinds:
        yield f"it is for {list_names(sorted(kind for _, kind in policy.kinds))}"
    if policy.namespace_selector is not None:
        yield "it selects namespaces by their labels (--namespace-labels)"
    if policy.exclude_namespaces:
        yield f"it excludes namespaces {list_names(sorted(policy.exclude_namespaces))}"
