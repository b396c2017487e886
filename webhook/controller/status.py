"""The status of a document: whether it is accepted, whether it is in force, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from webhook.catalog.catalog import Catalog
from webhook.catalog.precedence import HIDDEN
from webhook.catalog.watched_documents import DocumentStatus, Key
from webhook.controller.undefined import Undefined
from webhook.documents.enclosed import is_enclosed
from webhook.documents.problem import Problem
from webhook.documents.texts import cut
from webhook.policy.policy import Policy

Json = dict[str, Any]
MOST_PROBLEMS, MOST_KINDS = 50, 100
LONGEST_MESSAGE = 400


@dataclass(frozen=True, slots=True)
class LoadedGenerations:
    """How many webhook processes report, and the lowest generation of each document that they use."""

    workers: int
    lowest: Mapping[Key, int]


@dataclass(frozen=True, slots=True)
class Effect:
    """What a document does: the kinds that a policy governs, and kinds without a definition that it
    would govern; its scope and enforcement in force; until when an exception applies.
    """

    kinds: tuple[str, ...] = ()
    undefined: tuple[str, ...] = ()
    scope: str = ""
    enforcement: str = ""
    until: str = ""

    def has_ended(self, now: str) -> bool:
        """Whether it is an exception that has expired; `now` in the time format of Kubernetes."""
        return bool(self.until) and self.until <= now


def find_effects(catalog: Catalog, undefined: Sequence[Undefined]) -> dict[str, Effect]:
    """The effects of policies and exceptions, by their origins."""
    found = {each.origin: find_effect(each, catalog, undefined) for each in catalog.policies}
    for several in catalog.exceptions.values():
        found |= {each.origin: Effect(until=each.until) for each in several}
    return found


def find_effect(policy: Policy, catalog: Catalog, undefined: Iterable[Undefined]) -> Effect:
    """The kinds and types that a policy governs."""

    def governs(group: str, kind: str) -> bool:
        return policy.governs_kind(group, kind, catalog.workload_type(group, kind))

    kinds = (
        f"{kind}.{group}" if group else kind
        for group, kind in catalog.definitions
        if governs(group, kind)
    )
    lacking = (each.text for each in undefined if governs(each.group, each.kind))
    return Effect(tuple(sorted(kinds)), tuple(lacking), policy.scope, policy.enforcement)


def find_loaded(acknowledged: Iterable[Json]) -> LoadedGenerations:
    """Combine the reports of all workers."""
    several = [
        {(kind, space, name): int(number) for kind, space, name, number in each["in_force"]}
        for each in acknowledged
    ]
    keys = {key for each in several for key in each}
    # A document that one worker does not know is not in force anywhere.
    lowest = {key: lowest_of(key, {each.get(key, 0) for each in several}) for key in keys}
    return LoadedGenerations(len(several), lowest)


def lowest_of(key: Key, numbers: Collection[int]) -> int:
    """The lowest generation of a document; generations that are hashes have no order, so 0 if they differ."""
    return 0 if is_enclosed(key) and len(numbers) > 1 else min(numbers)


def state_of(
    document: DocumentStatus, loaded: LoadedGenerations, key: Key, *, ended: bool = False
) -> str:
    """One word for a document: `in-force`, `waiting`, `last-good`, `faulty` or `ended`."""
    if ended:
        return "ended"
    if not document.is_accepted:
        return "last-good" if document.in_force else "faulty"
    everywhere = loaded.workers > 0 and loaded.lowest.get(key, 0) == document.observed
    return "in-force" if everywhere else "waiting"


def status_of(
    document: DocumentStatus,
    loaded: LoadedGenerations,
    key: Key,
    effect: Effect,
    found: Json,
    now: str,
    notes: Sequence[Problem] = (),
    *,
    spread: bool = True,
) -> Json:
    """The whole status; transition times stay if nothing changed.

    `notes` are problems of the document's use, not of its text; with one of severity error the
    document is not Ready. Until all API servers have the webhook configurations (`spread`), no
    document becomes Ready.
    """
    number = loaded.lowest.get(key, 0)
    errors = [each for each in document.problems if each.severity == "error"]
    warnings = [each for each in (*document.problems, *notes) if each.severity == "warning"]
    accepted = not errors
    before = {each.get("type"): each for each in found.get("conditions") or ()}
    ended = effect.has_ended(now)
    ready = accepted and loaded.workers > 0 and number == document.observed and not ended
    because = ready_because(document, loaded, number)
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
        because = "Ended", f"it has ended at {effect.until}; delete it, or give it another date"
    conditions = [
        condition(
            "Accepted",
            accepted,
            *accepted_because(errors, warnings),
            before,
            document.observed,
            now,
        ),
        condition("Ready", ready, *because, before, document.observed, now),
    ]
    policy_members = (
        {"scope": effect.scope, "enforcement": effect.enforcement} if effect.scope else {}
    )
    return {
        **policy_members,
        "observedGeneration": document.observed,
        "generationInForce": number,
        "workers": loaded.workers,
        "kinds": list(effect.kinds[:MOST_KINDS]),
        "withoutDefinition": list(effect.undefined[:MOST_KINDS]),
        "problems": [
            {
                "path": each.path,
                "found": cut(each.found, 200),
                "fix": cut(each.fix, 200),
                "reason": each.reason,
                "severity": each.severity,
            }
            for each in (*document.problems, *notes)[:MOST_PROBLEMS]
        ],
        "conditions": conditions,
    }


def accepted_because(
    errors: Sequence[Problem], warnings: Sequence[Problem] = ()
) -> tuple[str, str]:
    """Reason and message of the condition Accepted.

    It includes warnings, because the status of a definition from another project has only
    conditions.
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
    """Return the first text, cut to the length of a condition message, and the number of other texts."""
    first, *more = texts
    return cut(first, LONGEST_MESSAGE) + (f", and {len(more)} more" if more else "")


def ready_because(
    document: DocumentStatus, loaded: LoadedGenerations, number: int
) -> tuple[str, str]:
    """Reason and message of the condition Ready."""
    if not loaded.workers:
        return "NoWorkers", "no webhook process has reported what it uses"
    if number == document.observed:
        return "InForce", f"all {loaded.workers} webhook processes use it"
    if not document.is_accepted and document.in_force:
        return "LastGood", f"generation {document.in_force} stays in force"
    if not document.is_accepted:
        errors = [each for each in document.problems if each.severity == "error"]
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
    """One condition; its transition time changes only with its status."""
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
