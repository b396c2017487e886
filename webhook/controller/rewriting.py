"""Adds up what webhook processes report on users who keep removing values that podgate writes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from webhook.catalog.watched_documents import Key
from webhook.documents.problem import Problem

Json = dict[str, Any]
OFTEN = 3
REASON = "rewriting"
FIX = (
    "list the user in trustedControllers with the kind of the owner, or exclude its objects from the"
    " policy"
)


@dataclass(frozen=True, slots=True)
class Rewriter:
    """A user, the object that it changes, how often in all processes, and which policies are affected."""

    user: str
    object: str
    count: int
    fields: tuple[str, ...]
    policies: frozenset[Key]

    @property
    def text(self) -> str:
        """The message for the status and the log."""
        return (
            f"{self.user} took {', '.join(self.fields)} out of {self.object} {self.count} times, and"
            " podgate wrote it again"
        )


def find_rewriters(workers: Iterable[Json]) -> tuple[Rewriter, ...]:
    """Find the users who do so often, over all processes; unreadable rows are skipped."""
    sums: dict[tuple[str, str], tuple[int, set[str], set[Key]]] = {}
    for row in (row for each in workers for row in each.get("rewriting") or ()):
        try:
            name = "/".join(filter(None, (str(row["namespace"]), str(row["name"]))))
            kind = ".".join(filter(None, (str(row["kind"]), str(row["group"]))))
            key = str(row["user"]), f"{kind} {name}"
            count, fields, policies = sums.get(key, (0, set(), set()))
            found = {document_of(*map(str, each)) for each in row["policies"]}
            sums[key] = (
                count + int(row["count"]),
                fields | set(map(str, row["fields"])),
                policies | found,
            )
        except (KeyError, TypeError, ValueError):
            continue
    return tuple(
        Rewriter(user, object_name, count, tuple(sorted(fields)), frozenset(policies))
        for (user, object_name), (count, fields, policies) in sorted(sums.items())
        if count >= OFTEN
    )


def document_of(namespace: str, name: str) -> Key:
    """The key of a policy's document."""
    kind = "WorkloadPolicy" if namespace else "ClusterWorkloadPolicy"
    return kind, namespace, name


def notes(found: Iterable[Rewriter]) -> Mapping[Key, tuple[Problem, ...]]:
    """The problems to add to the status of each policy."""
    result: dict[Key, tuple[Problem, ...]] = {}
    for key, problem in policy_warnings(found):
        result[key] = (*result.get(key, ()), problem)
    return result


def policy_warnings(found: Iterable[Rewriter]) -> Iterator[tuple[Key, Problem]]:
    """Each warning with the policy that it is about."""
    for each in found:
        for key in each.policies:
            yield key, Problem(key[2], "spec", each.text, FIX, REASON, severity="warning")
