"""A state as the data of two Secrets: one with the CA keys, one that replicas mount.

The keys of the CAs stay out of what is mounted: whoever reads a replica's folder cannot sign.
"""

from collections.abc import Mapping

from certs import rotation
from certs.authority import is_ca
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
    """Read the state from the decoded data of both; None if there is no CA at all.

    Missing or invalid members stay so in the state, for `rotation.plan` to replace. If the CAs are
    lost, the bundle next to the leaf shows which certificates clients trust: these stay in the
    state without their keys, so that no client rejects what replicas still serve.
    """
    published = _certificates(serving.get("ca.crt", b""))
    if "ca.crt" not in authority and "next-ca.crt" not in authority and not published:
        return None
    leaf, ca = _pair(serving, "tls"), _pair(authority, "ca")
    if not is_ca(ca):
        ca = next((KeyPair(each.pem, b"") for each in published if _is_issued_by(each, leaf)), ca)
    next_ca = _pair(authority, "next-ca") if "next-ca.crt" in authority else None
    previous = _certificates(authority.get("previous-ca.crt", b""))
    known = {each.canonical_pem for each in previous}
    known |= {each.certificate.canonical_pem for each in (ca, next_ca) if each and is_ca(each)}
    lost = tuple(each for each in published if each.is_authority and each.pem not in known)
    return State(ca=ca, leaf=leaf, next_ca=next_ca, previous=(*previous, *lost))


def _is_issued_by(ca: Certificate, leaf: KeyPair) -> bool:
    """Whether a CA has signed a leaf that can be served."""
    return ca.is_authority and leaf.usable and leaf.certificate.signed_by(ca)


def _pair(data: Mapping[str, bytes], name: str) -> KeyPair:
    return KeyPair(data.get(f"{name}.crt", b""), data.get(f"{name}.key", b""))


def _certificates(pem: bytes) -> tuple[Certificate, ...]:
    try:
        return certificates_in(pem)
    except CertificateProblem:
        return ()
