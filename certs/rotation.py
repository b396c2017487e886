"""Replaces a CA and its server leaf in time, so that no client ever refuses the leaf.

A CA is replaced in three phases. First the new CA joins the bundle while the old one still signs.
Once every client has had that bundle for a while, the new CA signs the leaf. Once every replica
serves such a leaf, the old CA leaves the bundle.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from certs import authority, due
from certs.names import Names
from certs.pair import KeyPair
from certs.problem import CertificateProblem
from certs.state import Action, Change, Observed, Plan, Policy, Reason, Situation, State

Step = tuple[State, tuple[Change, ...]]


def plan(
    state: State | None, now: datetime, names: Names, policy: Policy, observed: Observed
) -> Plan:
    """The state to keep at `now`, with every change and its reason; none the second time.

    `state` is None when there is none yet. Apart from new keys and serial numbers, which come from
    the operating system, the answer depends on the arguments only.
    """
    situation = Situation(now, names, policy, observed)
    kept, changes = _with_readable_ca(state, situation)
    steps: tuple[Callable[[State, Situation], Step], ...] = (
        _add_next_ca,
        _switch_ca,
        _renew_leaf,
        _drop_previous,
    )
    for step in steps:
        kept, more = step(kept, situation)
        changes += more
    return Plan(kept, changes)


def bundle(state: State) -> bytes:
    """The CAs a client must trust, as PEM for `caBundle`: current, next, those that went."""
    waiting = () if state.next_ca is None else (state.next_ca.certificate,)
    trusted = (state.ca.certificate, *waiting, *state.previous)
    return b"".join(certificate.canonical_pem for certificate in trusted)


def days_left(state: State, now: datetime) -> dict[str, float]:
    """Days until `leaf`, `ca` and, if one waits, `next_ca` expire; 0 for what cannot be read."""
    parts = {"leaf": state.leaf, "ca": state.ca}
    if state.next_ca is not None:
        parts["next_ca"] = state.next_ca
    return {name: _days_left(pair, now) for name, pair in parts.items()}


def _with_readable_ca(state: State | None, situation: Situation) -> Step:
    if state is not None and authority.is_ca(state.ca):
        return state, ()
    if (
        state is not None
        and state.next_ca is not None
        and authority.can_sign(state.next_ca, situation.now)
    ):
        change = Change(Action.SWITCH_CA, Reason.BROKEN)
        return replace(state, ca=state.next_ca, next_ca=None), (change,)
    ca = authority.create_authority(situation.now, situation.policy.ca_life)
    if state is None:
        return State(ca, KeyPair(b"", b"")), (Change(Action.CREATE_CA, Reason.ABSENT),)
    return replace(state, ca=ca, next_ca=None), (Change(Action.CREATE_CA, Reason.BROKEN),)


def _add_next_ca(state: State, situation: Situation) -> Step:
    if state.next_ca is not None and authority.can_sign(state.next_ca, situation.now):
        return state, ()
    reason = due.ca_due(state.ca, situation)
    if reason is None:
        gone = () if state.next_ca is None else (Change(Action.DROP_CA, Reason.BROKEN),)
        return replace(state, next_ca=None), gone
    ca = authority.create_authority(situation.now, situation.policy.ca_life)
    return replace(state, next_ca=ca), (Change(Action.ADD_CA, reason),)


def _switch_ca(state: State, situation: Situation) -> Step:
    if state.next_ca is None:
        return state, ()
    since = situation.observed.bundle_published_since.get(state.next_ca.fingerprint)
    if since is not None and situation.now - since >= situation.policy.settle:
        reason = Reason.TRUSTED
    elif not authority.can_sign(state.ca, situation.now) and not due.serves(state, situation.now):
        reason = Reason.STUCK  # waiting for the bundle would keep nothing alive
    else:
        return state, ()
    previous = (state.ca.certificate, *state.previous)
    return State(state.next_ca, state.leaf, None, previous), (Change(Action.SWITCH_CA, reason),)


def _renew_leaf(state: State, situation: Situation) -> Step:
    reason = due.leaf_due(state, situation)
    if reason is None or not authority.can_sign(state.ca, situation.now):
        return state, ()
    life = situation.policy.leaf_life
    leaf = authority.issue_server(state.ca, situation.names, situation.now, life)
    return replace(state, leaf=leaf), (Change(Action.ISSUE_LEAF, reason),)


def _drop_previous(state: State, situation: Situation) -> Step:
    reasons = [due.previous_done(certificate, state, situation) for certificate in state.previous]
    pairs = zip(state.previous, reasons, strict=True)
    kept = tuple(certificate for certificate, reason in pairs if reason is None)
    changes = tuple(Change(Action.DROP_CA, reason) for reason in reasons if reason is not None)
    return replace(state, previous=kept), changes


def _days_left(pair: KeyPair, now: datetime) -> float:
    try:
        return pair.certificate.days_left(now)
    except CertificateProblem:
        return 0.0
