"""What the certificates say, and that a strict TLS client agrees."""

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID

from certs import authority
from certs.names import Names
from certs.pair import Certificate, KeyPair, certificates_in
from certs.problem import CertificateProblem
from tests.certs.handshake import attempt

NOW = datetime.now(UTC)
YEAR, MONTH = timedelta(days=365), timedelta(days=30)
NAMES = Names.of(["Podgate.podgate.svc", "localhost"], ["127.0.0.1", "0:0::1"])
CA = authority.create_authority(NOW, YEAR)
LEAF = authority.issue_server(CA, NAMES, NOW, MONTH)


def extensions(pair: KeyPair) -> x509.Extensions:
    return pair.certificate.x509.extensions


def test_a_ca_may_sign_leaves_and_nothing_else() -> None:
    constraints = extensions(CA).get_extension_for_class(x509.BasicConstraints)
    assert constraints.critical
    assert (constraints.value.ca, constraints.value.path_length) == (True, 0)
    usage = extensions(CA).get_extension_for_class(x509.KeyUsage)
    assert usage.critical
    assert (usage.value.key_cert_sign, usage.value.crl_sign) == (True, True)
    assert not usage.value.digital_signature
    assert CA.certificate.signed_by(CA.certificate)


def test_a_leaf_names_its_issuers_key_and_its_purpose() -> None:
    own = extensions(CA).get_extension_for_class(x509.SubjectKeyIdentifier).value
    named = extensions(LEAF).get_extension_for_class(x509.AuthorityKeyIdentifier).value
    assert named.key_identifier == own.digest
    purposes = extensions(LEAF).get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(purposes) == [ExtendedKeyUsageOID.SERVER_AUTH]
    usage = extensions(LEAF).get_extension_for_class(x509.KeyUsage).value
    assert usage.digital_signature
    assert not usage.key_cert_sign
    assert not LEAF.certificate.is_authority


def test_keys_are_p256_and_plain_pkcs8() -> None:
    for pair in (CA, LEAF):
        key = pair.key
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        assert key.curve.name == "secp256r1"
        assert pair.key_pem.startswith(b"-----BEGIN PRIVATE KEY-----")
        assert pair.belongs_together


def test_lives_start_five_minutes_back_and_end_when_asked() -> None:
    second = NOW.replace(microsecond=0)
    assert LEAF.certificate.not_before == second - timedelta(minutes=5)
    assert LEAF.not_after == second + MONTH
    assert LEAF.certificate.days_left(second) == 30


def test_serial_numbers_are_positive_random_and_fit_into_twenty_bytes() -> None:
    serials = {
        authority.create_authority(NOW, YEAR).certificate.x509.serial_number for _ in range(20)
    }
    assert len(serials) == 20
    assert all(0 < serial < 1 << 159 for serial in serials)
    assert max(serials).bit_length() > 150


def test_two_cas_never_share_a_subject() -> None:
    other = authority.create_authority(NOW, YEAR)
    assert other.certificate.x509.subject != CA.certificate.x509.subject


def test_a_leaf_never_outlives_its_ca() -> None:
    leaf = authority.issue_server(CA, NAMES, NOW + timedelta(days=350), MONTH)
    assert leaf.not_after == CA.not_after


def test_an_expired_ca_issues_nothing_and_says_so() -> None:
    with pytest.raises(CertificateProblem, match="expired on"):
        authority.issue_server(CA, NAMES, NOW + 2 * YEAR, MONTH)
    assert not authority.can_sign(CA, NOW + 2 * YEAR)


def test_a_ca_with_the_key_of_another_issues_nothing() -> None:
    mixed = KeyPair(CA.certificate_pem, LEAF.key_pem)
    with pytest.raises(CertificateProblem, match="make a new one"):
        authority.issue_server(mixed, NAMES, NOW, MONTH)


@pytest.mark.parametrize("life", [timedelta(0), timedelta(days=-1), timedelta(days=9_999_999)])
def test_a_life_that_cannot_be_is_refused(life: timedelta) -> None:
    with pytest.raises(CertificateProblem):
        authority.create_authority(NOW, life)


def test_no_repr_shows_a_key() -> None:
    assert "PRIVATE" not in repr(CA)


def test_broken_text_is_a_problem_and_not_a_crash() -> None:
    broken = KeyPair(b"x", b"x")
    assert not broken.usable
    for read in (lambda: broken.not_after, lambda: broken.key, lambda: certificates_in(b"")):
        with pytest.raises(CertificateProblem):
            read()


def test_names_are_one_spelling_sorted_and_told_once() -> None:
    again = Names.of(["localhost", "podgate.podgate.svc", "LOCALHOST"], ["::1", "127.0.0.1"])
    assert again == NAMES
    assert LEAF.subject_names == NAMES
    assert str(NAMES) == "localhost, podgate.podgate.svc, 127.0.0.1, ::1"


@pytest.mark.parametrize(
    "name", ["", "a b", "-a", "a..b", "1.2.3.4", "bücher.example", "a" * 64, "a.*", "a\nb"]
)
def test_a_wrong_dns_name_is_refused_by_name(name: str) -> None:
    with pytest.raises(CertificateProblem, match="is not a DNS name"):
        Names.of([name])


@pytest.mark.parametrize("address", ["", "localhost", "1.2.3", "1.2.3.4/8", "fe80::1%eth0"])
def test_a_wrong_address_is_refused_by_name(address: str) -> None:
    with pytest.raises(CertificateProblem, match="is not an IP address"):
        Names.of([], [address])


def test_no_names_at_all_are_refused() -> None:
    with pytest.raises(CertificateProblem, match="at least one"):
        Names.of([], [])


@pytest.mark.parametrize("name", ["podgate.podgate.svc", "localhost", "127.0.0.1", "::1"])
def test_a_strict_client_accepts_every_name_of_the_leaf(name: str, tmp_path: Path) -> None:
    assert attempt(LEAF, CA.certificate_pem, name, tmp_path) == b"hello"


@pytest.mark.parametrize("name", ["other.svc", "127.0.0.2"])
def test_a_client_refuses_a_name_the_leaf_does_not_have(name: str, tmp_path: Path) -> None:
    with pytest.raises(ssl.SSLCertVerificationError, match=r"mismatch|not valid for"):
        attempt(LEAF, CA.certificate_pem, name, tmp_path)


def test_a_client_refuses_a_leaf_of_another_ca(tmp_path: Path) -> None:
    other = authority.create_authority(NOW, YEAR)
    with pytest.raises(ssl.SSLCertVerificationError):
        attempt(LEAF, other.certificate_pem, "localhost", tmp_path)


def test_a_client_refuses_an_expired_leaf(tmp_path: Path) -> None:
    ca = authority.create_authority(NOW - MONTH, YEAR)
    leaf = authority.issue_server(ca, NAMES, NOW - MONTH, timedelta(days=1))
    with pytest.raises(ssl.SSLCertVerificationError, match="expired"):
        attempt(leaf, ca.certificate_pem, "localhost", tmp_path)


def test_a_server_that_asks_for_client_certificates_accepts_a_client_leaf(tmp_path: Path) -> None:
    client = authority.issue_client(CA, "kube-apiserver", NOW, MONTH)
    ca = CA.certificate_pem
    assert attempt(LEAF, ca, "localhost", tmp_path, client=client, client_bundle=ca) == b"hello"


def test_a_server_leaf_is_no_client_leaf(tmp_path: Path) -> None:
    ca = CA.certificate_pem
    with pytest.raises(OSError):
        attempt(LEAF, ca, "localhost", tmp_path, client=LEAF, client_bundle=ca)


def test_a_client_needs_a_name_that_fits() -> None:
    for name in ("", "x" * 65):
        with pytest.raises(CertificateProblem, match="1 to 64"):
            authority.issue_client(CA, name, NOW, MONTH)


def test_a_certificate_without_names_has_none() -> None:
    assert Certificate(CA.certificate_pem).subject_names == Names()
