"""The status of a document: whether it is accepted, whether it is in force, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from webhook.catalog.catalog import Catalog
from webhook.catalog.precedence import HIDDEN
from webhook.catalog.watched_documents import Key, Standing
from webhook.controller.undefined import Undefined
from webhook.documents.enclosed import is_enclosed
from webhook.documents.problem import Problem
from webhook.documents.texts import cut
from webhook.policy.policy import Policy

Json = dict[str, Any]
MOST_PROBLEMS, MOST_KINDS = 50, 100
LONGEST_MESSAGE = 400


@dataclass(frozen=True, slots=True)
class InForce:
    """What webhook processes say: how many there are, and the lowest generation by document."""

    workers: int
    lowest: Mapping[Key, int]


@dataclass(frozen=True, slots=True)
class Reach:
    """What a document comes to: the names of the kinds that a policy governs, and of those it would,
    if somebody had defined them; its scope and enforcement in force; until when an exception holds.
    """

    kinds: tuple[str, ...] = ()
    undefined: tuple[str, ...] = ()
    scope: str = ""
    enforcement: str = ""
    until: str = ""

    def has_ended(self, now: str) -> bool:
        """Whether it is an exception that holds no more; `now` as Kubernetes writes moments."""
        return bool(self.until) and self.until <= now


def reaches(catalog: Catalog, undefined: Sequence[Undefined]) -> dict[str, Reach]:
    """What each policy and each exception comes to, by their origins."""
    found = {each.origin: reach_of(each, catalog, undefined) for each in catalog.policies}
    for several in catalog.exceptions.values():
        found |= {each.origin: Reach(until=each.until) for each in several}
    return found


def reach_of(policy: Policy, catalog: Catalog, undefined: Iterable[Undefined]) -> Reach:
    """What a policy reaches by its kinds and types."""

    def governs(group: str, kind: str) -> bool:
        return policy.governs_kind(group, kind, catalog.workload_type(group, kind))

    kinds = (
        f"{kind}.{group}" if group else kind
        for group, kind in catalog.definitions
        if governs(group, kind)
    )
    lacking = (each.text for each in undefined if governs(each.group, each.kind))
    return Reach(tuple(sorted(kinds)), tuple(lacking), policy.scope, policy.enforcement)


def in_force(acknowledged: Iterable[Json]) -> InForce:
    """What all workers together say."""
    several = [
        {(kind, space, name): int(number) for kind, space, name, number in each["in_force"]}
        for each in acknowledged
    ]
    keys = {key for each in several for key in each}
    # A document that one of them does not know is in force nowhere.
    lowest = {key: lowest_of(key, {each.get(key, 0) for each in several}) for key in keys}
    return InForce(len(several), lowest)


def lowest_of(key: Key, numbers: Collection[int]) -> int:
    """The lowest of a document's generations; those of texts have no order, only differ."""
    return 0 if is_enclosed(key) and len(numbers) > 1 else min(numbers)


def state_of(standing: Standing, force: InForce, key: Key, *, ended: bool = False) -> str:
    """One word for a document: `in-force`, `waiting`, `last-good`, `faulty` or `ended`."""
    if ended:
        return "ended"
    if not standing.is_accepted:
        return "last-good" if standing.in_force else "faulty"
    everywhere = force.workers > 0 and force.lowest.get(key, 0) == standing.seen
    return "in-force" if everywhere else "waiting"


def status_of(
    standing: Standing,
    force: InForce,
    key: Key,
    reach: Reach,
    found: Json,
    now: str,
    notes: Sequence[Problem] = (),
    *,
    spread: bool = True,
) -> Json:
    """The whole status, with times of transition kept where nothing changed.

    `notes` come of the document's use and not of its text; with one of severity error it is not
    Ready. Until the webhook configurations are `spread` to all API servers, nothing becomes Ready.
    """
    number = force.lowest.get(key, 0)
    errors = [each for each in standing.problems if each.severity == "error"]
    warnings = [each for each in (*standing.problems, *notes) if each.severity == "warning"]
    accepted = not errors
    before = {each.get("type"): each for each in found.get("conditions") or ()}
    ended = reach.has_ended(now)
    ready = accepted and force.workers > 0 and number == standing.seen and not ended
    because = ready_because(standing, force, number)
    was = before.get("Ready") or {}
    if (
        ready
        and not spread
        and (was.get("status"), was.get("observedGeneration")) != ("True", number)
    ):
        ready, because = False, ("Registering", "API servers do not all call podgate for it yet")
    unmet = [each for each in notes if each.severity == "error"]
    if ready and unmet:
        ready, because = False, ("ClaimsMissing", first_of(f"{e.found}; {e.fix}" for e in unmet))
    if ended:
        because = "Ended", f"it has ended at {reach.until}; delete it, or give it another date"
    conditions = [
        condition(
            "Accepted", accepted, *accepted_because(errors, warnings), before, standing.seen, now
        ),
        condition("Ready", ready, *because, before, standing.seen, now),
    ]
    effective = {"scope": reach.scope, "enforcement": reach.enforcement} if reach.scope else {}
    return {
        **effective,
        "observedGeneration": standing.seen,
        "generationInForce": number,
        "workers": force.workers,
        "kinds": list(reach.kinds[:MOST_KINDS]),
        "withoutDefinition": list(reach.undefined[:MOST_KINDS]),
        "problems": [
            {
                "path": each.path,
                "found": cut(each.found, 200),
                "fix": cut(each.fix, 200),
                "reason": each.reason,
                "severity": each.severity,
            }
            for each in (*standing.problems, *notes)[:MOST_PROBLEMS]
        ],
        "conditions": conditions,
    }


def accepted_because(
    errors: Sequence[Problem], warnings: Sequence[Problem] = ()
) -> tuple[str, str]:
    """Reason and sentence of the condition Accepted.

    Warnings are in it too: the status of a definition whose kind belongs to somebody else has
    conditions and nothing beside.
    """
    listed = errors or warnings
    if not listed:
        return "Accepted", "nothing is wrong with it"
    message = first_of(f"{each.path}: {each.found}; {each.fix}" for each in listed)
    if not errors:
        return "AcceptedWithWarnings", f"{warnings[0].reason}: {message}"
    hidden = all(each.reason == HIDDEN for each in errors)
    return "Hidden" if hidden else "Faulty", message


def first_of(texts: Iterable[str]) -> str:
    """Return the first text, cut to what a condition takes, and how many there are beside it."""
    first, *more = texts
    return cut(first, LONGEST_MESSAGE) + (f", and {len(more)} more" if more else "")


def ready_because(standing: Standing, force: InForce, number: int) -> tuple[str, str]:
    """Reason and sentence of the condition Ready."""
    if not force.workers:
        return "NoWorkers", "no webhook process has reported what it uses"
    if number == standing.seen:
        return "InForce", f"all {force.workers} webhook processes use it"
    if not standing.is_accepted and standing.in_force:
        return "LastGood", f"generation {standing.in_force} stays in force"
    if not standing.is_accepted:
        errors = [each for each in standing.problems if each.severity == "error"]
        return accepted_because(errors)[0], "it is not in force"
    return "Waiting", f"generation {number or 'none'} is in force in some process"


def condition(
    kind: str,
    holds: bool,
    reason: str,
    message: str,
    before: Mapping[Any, Json],
    generation: int,
    now: str,
) -> Json:
    """One condition; its time changes with its status only."""
    status = "True" if holds else "False"
    known = before.get(kind) or {}
    since = known.get("lastTransitionTime") if known.get("status") == status else None
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "observedGeneration": generation,
        "lastTransitionTime": since or now,
    }
