"""Whether an object is left alone: what it wants, how often it was written, and when it rests."""

from __future__ import annotations

import time

from tests.e2e.objects import Json, at
from tests.e2e.operators.played import said
from tests.e2e.soak.person import Person
from tests.e2e.soak.things import Thing

PATIENCE = 15.0
QUIET = 0.6


def settled(person: Person, thing: Thing) -> Json | None:
    """The object once its controllers have seen it and nobody has written its spec for a moment.

    None when that takes longer than PATIENCE: then a second apply proves nothing.
    """
    end, since, last = time.monotonic() + PATIENCE, time.monotonic(), person.stored(thing)
    while time.monotonic() - since < QUIET:
        if time.monotonic() > end:
            return None
        time.sleep(0.1)
        now = person.stored(thing)
        seen = at(now, "status.observedGeneration") or generation(now)
        if wanted(now) != wanted(last) or not generation(last) == generation(now) == seen:
            last, since = now, time.monotonic()
    return last


def wanted(stored: Json) -> Json:
    """The spec without what is empty in it, nor the node that the scheduler writes into a Pod."""
    return {name: each for name, each in said(stored["spec"]).items() if name != "nodeName"}


def generation(stored: Json) -> int:
    """How often the spec was written; 0 for kinds that do not count."""
    return int(stored["metadata"].get("generation", 0))
