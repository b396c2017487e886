"""Certificates for development: a CA and a server leaf in one folder, kept while they are good."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path

from certs import authority, due, files
from certs.names import Names
from certs.pair import KeyPair
from certs.problem import CertificateProblem
from certs.state import Observed, Policy, Reason, Situation, State

LONGEST = 3650


class Made(StrEnum):
    """What was done."""

    NOTHING = "kept"
    LEAF = "renewed the server certificate"
    BOTH = "made a CA and a server certificate"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What is in the folder now, what was done to get there, and why (None: all was good)."""

    folder: Path
    made: Made
    reason: str | None
    names: Names
    not_after: datetime
    ca_not_after: datetime

    def __str__(self) -> str:
        done = self.made.value if self.reason is None else f"{self.made}, because {self.reason}"
        paths = ", ".join((files.CERTIFICATE, files.KEY, files.AUTHORITY, files.AUTHORITY_KEY))
        return (
            f"{self.folder}: {done} ({paths})\n"
            f"for {self.names}, until {self.not_after:%Y-%m-%d},"
            f" CA until {self.ca_not_after:%Y-%m-%d}"
        )


def ensure_development_certificates(
    folder: Path,
    dns_names: Iterable[str],
    ip_addresses: Iterable[str],
    now: datetime,
    days: int,
    *,
    force: bool = False,
) -> Outcome:
    """See to it that `folder` holds a CA and a server leaf for exactly these names.

    What is there is kept while less than two thirds of its life are over; the CA is kept when it
    outlives a new leaf of `days` days, 1 to 3650. `force` makes both anew. CertificateProblem for
    bad names or days, a folder that cannot be written, or files that this did not make.
    """
    names = Names.of(dns_names, ip_addresses)
    if not 1 <= days <= LONGEST:
        raise CertificateProblem(f"{days} days is out of range: give 1 to {LONGEST}")
    found = None if force else _load_state(folder)
    reason = _reason(found, names, now)
    if found is not None and reason is None:
        return _outcome(folder, Made.NOTHING, None, found)
    _refuse_foreign(folder, found, reason)
    life = timedelta(days=days)
    keep_ca = found is not None and _outlives(found.ca, now, life)
    # Twice as long, so that a leaf can be renewed once without everyone trusting a new CA.
    ca = found.ca if found is not None and keep_ca else authority.create_authority(now, 2 * life)
    state = State(ca, authority.issue_server(ca, names, now, life))
    files.write_folder(folder, _contents(state))
    made = Made.LEAF if keep_ca else Made.BOTH
    return _outcome(folder, made, "it was asked for" if force else reason, state)


def _load_state(folder: Path) -> State | None:
    there = files.contents(folder)
    if not there:
        return None
    ca = KeyPair(there.get(files.AUTHORITY, b""), there.get(files.AUTHORITY_KEY, b""))
    return State(ca, KeyPair(there.get(files.CERTIFICATE, b""), there.get(files.KEY, b"")))


def _reason(found: State | None, names: Names, now: datetime) -> Reason | None:
    if found is None:
        return Reason.ABSENT
    situation = Situation(now, names, Policy(), Observed())
    reason = due.leaf_due(found, situation)
    if reason is None and not _valid(found, now):
        return Reason.BROKEN
    return reason


def _valid(found: State, now: datetime) -> bool:
    return found.leaf.certificate.valid_at(now) and found.ca.certificate.valid_at(now)


def _refuse_foreign(folder: Path, found: State | None, reason: Reason | None) -> None:
    # Without the CA's key the files are somebody else's, such as cert-manager's.
    if found is not None and reason is not None and not found.ca.key_pem:
        raise CertificateProblem(
            f"{folder} has certificates that were not made here, and {reason}:"
            " give another folder, or force new ones"
        )


def _outlives(ca: KeyPair, now: datetime, life: timedelta) -> bool:
    lasts = authority.can_sign(ca, now) and ca.not_after >= now + life
    return lasts and ca.certificate.valid_at(now)


def _contents(state: State) -> dict[str, bytes]:
    # The CA's key comes first: a folder left half linked is still known as made here.
    return {
        files.AUTHORITY_KEY: state.ca.key_pem,
        files.AUTHORITY: state.ca.certificate_pem,
        files.KEY: state.leaf.key_pem,
        files.CERTIFICATE: state.leaf.certificate_pem,
    }


def _outcome(folder: Path, made: Made, reason: str | None, state: State) -> Outcome:
    leaf, ca = state.leaf, state.ca
    return Outcome(folder, made, reason, leaf.subject_names, leaf.not_after, ca.not_after)
