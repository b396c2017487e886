"""What is due in a state, and why: the questions rotation asks before it changes anything."""

from datetime import datetime

from certs import authority
from certs.pair import Certificate, KeyPair
from certs.problem import CertificateProblem
from certs.state import Reason, Situation, State


def renewal_due(certificate: Certificate, now: datetime, renew_after: float) -> bool:
    """Whether the share `renew_after`, 0 to 1, of its life is over."""
    life = certificate.not_after - certificate.not_before
    return now >= certificate.not_before + life * renew_after


def ca_due(ca: KeyPair, situation: Situation) -> Reason | None:
    """Why the CA must be replaced, None while it is good."""
    if ca.not_after <= situation.now:
        return Reason.EXPIRED
    if ca.certificate.not_before > situation.now:
        return Reason.EARLY
    if not authority.can_sign(ca, situation.now):
        return Reason.BROKEN
    return Reason.DUE if _old(ca, situation) else None


def leaf_due(state: State, situation: Situation) -> Reason | None:
    """Why the leaf must be issued again, None while it is good."""
    try:
        return _leaf_due(state.leaf, state.ca, situation)
    except CertificateProblem:
        return Reason.BROKEN


def _leaf_due(leaf: KeyPair, ca: KeyPair, situation: Situation) -> Reason | None:
    if not leaf.certificate_pem:
        return Reason.ABSENT
    if not leaf.belongs_together:
        return Reason.BROKEN
    if not leaf.certificate.signed_by(ca.certificate):
        return Reason.OTHER_CA
    if leaf.not_after <= situation.now:
        return Reason.EXPIRED
    if leaf.certificate.not_before > situation.now:
        return Reason.EARLY
    if leaf.subject_names != situation.names:
        return Reason.NAMES
    # A leaf that ends with its CA gains nothing from being issued again.
    if leaf.not_after < ca.not_after and _old(leaf, situation):
        return Reason.DUE
    return None


def previous_done(ca: Certificate, state: State, situation: Situation) -> Reason | None:
    """Why a CA that no longer signs can leave the bundle, None while it must stay."""
    try:
        expired = ca.not_after <= situation.now
    except CertificateProblem:
        return Reason.BROKEN
    if expired:
        return Reason.EXPIRED
    issued = state.leaf.certificate.not_before + authority.BACKDATE
    settled = situation.now - issued >= situation.policy.settle
    if settled and situation.observed.replicas_on == {state.leaf.fingerprint}:
        return Reason.UNUSED
    return None


def serves(state: State, now: datetime) -> bool:
    """Whether a client that trusts the current CA accepts the leaf."""
    leaf, ca = state.leaf, state.ca.certificate
    in_time = leaf.usable and leaf.certificate.valid_at(now) and ca.valid_at(now)
    return in_time and leaf.certificate.signed_by(ca)


def _old(pair: KeyPair, situation: Situation) -> bool:
    return renewal_due(pair.certificate, situation.now, situation.policy.renew_after)
