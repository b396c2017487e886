"""The data types of rotation: its state, its observations, and its changes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from certs.names import Names
from certs.pair import Certificate, KeyPair


class Action(StrEnum):
    """What a plan changes."""

    CREATE_CA = "create a CA"
    ADD_CA = "add the next CA to the bundle"
    SWITCH_CA = "let the next CA sign"
    DROP_CA = "drop a CA from the bundle"
    ISSUE_LEAF = "issue a leaf"


class Reason(StrEnum):
    """Why a plan changes it."""

    ABSENT = "there was none"
    BROKEN = "the one there cannot be used"
    EXPIRED = "the one there has expired"
    DUE = "two thirds of its life are over"
    EARLY = "the one there is not valid yet: a clock was wrong when it was made"
    NAMES = "it was made for other names"
    OTHER_CA = "it is not signed by the current CA"
    TRUSTED = "every client has had the new bundle long enough"
    STUCK = "the current CA can no longer vouch for the leaf"
    UNUSED = "every replica serves a leaf of the current CA"


@dataclass(frozen=True, slots=True)
class Change:
    """One thing a plan did, and why."""

    action: Action
    reason: Reason

    def __str__(self) -> str:
        return f"{self.action}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Policy:
    """How long things live, at which share of it they are renewed, and `settle`.

    `settle` is how long a phase that is observed to be complete stays so before the next begins.
    What is left of a leaf when it is renewed must cover the time between two plans and the time
    until every replica has loaded the new one.
    """

    ca_life: timedelta = timedelta(days=365)
    leaf_life: timedelta = timedelta(days=90)
    renew_after: float = 2 / 3
    settle: timedelta = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class Observed:
    """What is known of replicas and bundles; by default nothing, which never shortens a phase.

    `bundle_published_since`: since when all published bundles have each CA, by fingerprint.
    `replicas_on`: fingerprints of the leaves that running replicas serve.
    """

    bundle_published_since: Mapping[str, datetime] = field(default_factory=dict)
    replicas_on: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class State:
    """The current CA, the leaf, the next CA if one waits, and former CAs.

    A member may be invalid text: the next plan replaces it.
    """

    ca: KeyPair
    leaf: KeyPair
    next_ca: KeyPair | None = None
    previous: tuple[Certificate, ...] = ()  # without keys: they no longer sign


@dataclass(frozen=True, slots=True)
class Plan:
    """The new state, and its changes; without a change nothing was due."""

    state: State
    changes: tuple[Change, ...] = ()


@dataclass(frozen=True, slots=True)
class Situation:
    """The arguments of a plan, except the state."""

    now: datetime
    names: Names
    policy: Policy
    observed: Observed
