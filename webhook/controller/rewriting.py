"""Sums up what webhook processes report of users who keep taking away what podgate writes."""

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
    """A user, the object that it rewrites, how often in all processes, and whose values it takes."""

    user: str
    object: str
    count: int
    fields: tuple[str, ...]
    policies: frozenset[Key]

    @property
    def text(self) -> str:
        """The line of the status and of the log."""
        return (
            f"{self.user} took {', '.join(self.fields)} out of {self.object} {self.count} times, and"
            " podgate wrote it again"
        )


def rewriters(workers: Iterable[Json]) -> tuple[Rewriter, ...]:
    """Who does so often, summed over all processes; rows that cannot be read are left out."""
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
        Rewriter(user, told, count, tuple(sorted(fields)), frozenset(policies))
        for (user, told), (count, fields, policies) in sorted(sums.items())
        if count >= OFTEN
    )


def document_of(namespace: str, name: str) -> Key:
    """The document of the cluster that a policy of this name is."""
    kind = "WorkloadPolicy" if namespace else "ClusterWorkloadPolicy"
    return kind, namespace, name


def notes(found: Iterable[Rewriter]) -> Mapping[Key, tuple[Problem, ...]]:
    """What to add to the status of each policy."""
    result: dict[Key, tuple[Problem, ...]] = {}
    for key, problem in noted(found):
        result[key] = (*result.get(key, ()), problem)
    return result


def noted(found: Iterable[Rewriter]) -> Iterator[tuple[Key, Problem]]:
    """Each warning with the policy that it belongs to."""
    for each in found:
        for key in each.policies:
            yield key, Problem(key[2], "spec", each.text, FIX, REASON, severity="warning")
