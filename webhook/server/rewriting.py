"""Counts, per process, which user keeps removing values that podgate writes into an object."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from webhook.documents.problem import Source
from webhook.evaluation.outcome import Allowed
from webhook.evaluation.request import Request

OFTEN: Final = 3
"""Number of such updates after which podgate reports them."""
SAME_REQUEST: Final = 1.0
"""Seconds in which a second such update of an object counts as the same request: the API server calls
podgate again after other webhooks, with another uid."""
FORGOTTEN: Final = 3600.0
KEPT: Final = 1024
TOLD: Final = 50
LONGEST: Final = 256


class Rewritten(NamedTuple):
    """An object and the user who rewrites it."""

    group: str
    kind: str
    namespace: str
    name: str
    user: str


@dataclass(slots=True)
class Habit:
    """How often and when last it happened, and the policies whose values were removed."""

    count: int
    last: float
    policies: frozenset[tuple[str, str]] = frozenset()
    fields: frozenset[str] = frozenset()


@dataclass(slots=True)
class Rewriting:
    """What one process has counted. Bounded: the oldest entry is dropped first. Thread-safe."""

    clock: Callable[[], float] = time.monotonic
    seen: OrderedDict[Rewritten, Habit] = field(default_factory=OrderedDict)
    lock: threading.Lock = field(default_factory=threading.Lock)
    changed: bool = False

    def note(self, request: Request, decision: Allowed) -> int:
        """Count one such update; return the count so far, 0 if the same request was counted before."""
        now = self.clock()
        texts = (request.group, request.kind, request.namespace, request.name, request.user)
        key = Rewritten(*(each[:LONGEST] for each in texts))
        sources = [each.source for each in decision.changes if each.source is not None]
        with self.lock:
            known = self.seen.pop(key, None)
            if known is None:
                known = Habit(0, now - SAME_REQUEST)
            self.seen[key] = known
            again = now - known.last < SAME_REQUEST
            known.last = now
            if again:
                return 0
            known.count += 1
            known.policies = frozenset(map(policy_name, sources))
            known.fields = frozenset(each.field for each in decision.changes)
            while len(self.seen) > KEPT:
                self.seen.popitem(last=False)
            self.changed = True
            return known.count

    def rows(self) -> list[dict[str, Any]]:
        """The counts, highest first; the controller adds those of all processes."""
        now = self.clock()
        with self.lock:
            for key in [key for key, each in self.seen.items() if now - each.last > FORGOTTEN]:
                del self.seen[key]
            found = sorted(self.seen.items(), key=lambda each: -each[1].count)[:TOLD]
            self.changed = False
            return [
                {
                    **key._asdict(),
                    "count": each.count,
                    "policies": sorted(map(list, each.policies)),
                    "fields": sorted(each.fields),
                }
                for key, each in found
            ]


def policy_name(source: Source) -> tuple[str, str]:
    """Namespace and name of a policy."""
    return source.namespace, source.policy
