"""Limits how often podgate overwrites a webhook configuration that somebody else keeps changing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from webhook.catalog.watched_documents import Key
from webhook.documents.problem import Problem

Json = dict[str, Any]
FREE: Final = 5
"""Writes that podgate makes without a pause."""
SHORTEST, LONGEST = 30.0, 600.0
"""Seconds between later writes: each pause is twice as long as the one before, up to a maximum."""
QUIET: Final = 1800.0
"""Seconds without a difference after which a contest is over."""
UNRECORDED: Final = "something that edits it on its way into the cluster, as GKE Autopilot does,"
REASON = "registration-contested"
FIX = (
    "stop the other writer, or leave the registration to it; docs/runbooks.md#podgatehooksdrift names"
    " the usual ones"
)


@dataclass(slots=True)
class Contest:
    """One contested configuration: how often podgate overwrote it, and when it may do so again."""

    writer: str = ""
    writes: int = 0
    seen: float = float("-inf")
    next: float = float("-inf")

    @property
    def is_bounded(self) -> bool:
        """Whether podgate now waits longer between writes."""
        return self.writes > FREE


@dataclass(slots=True)
class Contests:
    """Every configuration that was found changed lately, by its name."""

    known: dict[str, Contest] = field(default_factory=dict)

    def may_write(self, name: str, writer: str, now: float) -> bool:
        """Note that a configuration differs from what was applied; return whether to write it now."""
        contest = self.known.setdefault(name, Contest())
        contest.seen, contest.writer = now, writer
        if now < contest.next:
            return False
        contest.writes += 1
        if contest.is_bounded:
            contest.next = now + min(SHORTEST * 2.0 ** min(contest.writes - FREE - 1, 16), LONGEST)
        return True

    def forget(self, now: float) -> None:
        """Forget configurations that nobody has changed for a while."""
        self.known = {name: one for name, one in self.known.items() if now - one.seen < QUIET}

    def bounded_contests(self) -> dict[str, Contest]:
        """Return the contests in which podgate waits longer between writes, by configuration."""
        return {name: one for name, one in self.known.items() if one.is_bounded}


def writer_of(found: Json | None, own: str) -> str:
    """Return the field manager beside `own` that last wrote the webhooks of a configuration.

    If no other field manager is recorded, an admission webhook or a proxy changed it on its way.
    """
    if found is None:
        return "another client that deletes it"
    owners = [
        each
        for each in (found.get("metadata") or {}).get("managedFields") or ()
        if "f:webhooks" in (each.get("fieldsV1") or {}) and each.get("manager") != own
    ]
    owners.sort(key=lambda each: str(each.get("time", "")))
    return str(owners[-1].get("manager")) if owners else UNRECORDED


def text_of(name: str, contest: Contest) -> str:
    """Return the sentence for the log and for statuses."""
    return (
        f"the registration is contested: {contest.writer} changes {name} each time that podgate"
        f" writes it, {contest.writes} times so far; podgate now waits up to {LONGEST / 60:.0f} minutes"
        " between two writes"
    )


def notes(
    contests: Mapping[str, Contest], documents: Iterable[Key]
) -> dict[Key, tuple[Problem, ...]]:
    """Return the warnings to add to the status of each policy."""
    return {
        key: tuple(
            Problem(key[2], "spec", text_of(*each), FIX, REASON, severity="warning")
            for each in sorted(contests.items(), key=lambda pair: pair[0])
        )
        for key in documents
        if contests and key[0] in ("ClusterWorkloadPolicy", "WorkloadPolicy")
    }
