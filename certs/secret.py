"""A state as the data of two Secrets: one with the CA keys, one that replicas mount.

The keys of the CAs stay out of what is mounted: whoever reads a replica's folder cannot sign.
"""

from collections.abc import Mapping

from certs import rotation
from certs.pair import Certificate, KeyPair, certificates_in
from certs.problem import CertificateProblem
from certs.state import State


def authority_data(state: State) -> dict[str, bytes]:
    """The Secret for whoever rotates: the CAs, their keys, and the CAs that went."""
    data = {"ca.crt": state.ca.certificate_pem, "ca.key": state.ca.key_pem}
    if state.next_ca is not None:
        data["next-ca.crt"] = state.next_ca.certificate_pem
        data["next-ca.key"] = state.next_ca.key_pem
    if state.previous:
        data["previous-ca.crt"] = b"".join(each.canonical_pem for each in state.previous)
    return data


def serving_data(state: State) -> dict[str, bytes]:
    """The Secret for replicas: `tls.crt`, `tls.key`, and the bundle as `ca.crt`."""
    leaf = state.leaf
    return {
        "tls.crt": leaf.certificate_pem,
        "tls.key": leaf.key_pem,
        "ca.crt": rotation.bundle(state),
    }


def read(authority: Mapping[str, bytes], serving: Mapping[str, bytes]) -> State | None:
    """The state in the decoded data of both; None when there is no CA at all.

    What is missing or broken stays so in the state, for `rotation.plan` to find and replace.
    """
    if "ca.crt" not in authority and "next-ca.crt" not in authority:
        return None
    return State(
        ca=_pair(authority, "ca"),
        leaf=_pair(serving, "tls"),
        next_ca=_pair(authority, "next-ca") if "next-ca.crt" in authority else None,
        previous=_certificates(authority.get("previous-ca.crt", b"")),
    )


def _pair(data: Mapping[str, bytes], name: str) -> KeyPair:
    return KeyPair(data.get(f"{name}.crt", b""), data.get(f"{name}.key", b""))


def _certificates(pem: bytes) -> tuple[Certificate, ...]:
    try:
        return certificates_in(pem)
    except CertificateProblem:
        return ()
