"""Makes certificates: an authority (CA), and server and client leaves signed by one."""

from datetime import datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from certs.names import Names
from certs.pair import KeyPair
from certs.problem import CertificateProblem

BACKDATE = timedelta(minutes=5)  # a client whose clock is a little behind accepts a new certificate
ORGANIZATION = "podgate"


def create_authority(now: datetime, life: timedelta) -> KeyPair:
    """A self-signed ECDSA P-256 CA that may sign leaves only, valid until `now + life`.

    Its common name carries its serial number: two CAs in one bundle never share a subject, so no
    client has to guess which of them signed a leaf.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    serial = x509.random_serial_number()
    subject = _subject(f"podgate CA {serial:040x}")
    builder = _builder(subject, key, now, _until(now, life))
    builder = builder.issuer_name(subject).serial_number(serial)
    own = x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key())
    builder = builder.add_extension(own, critical=False)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(_usage(signs_certificates=True), critical=True)
    return KeyPair(_pem(builder.sign(key, hashes.SHA256())), _plain(key))


def issue_server(ca: KeyPair, names: Names, now: datetime, life: timedelta) -> KeyPair:
    """A server leaf for `names`, valid until `now + life` or the end of `ca`, what comes first."""
    return _issue(ca, "server", ExtendedKeyUsageOID.SERVER_AUTH, now, life, names.extension())


def issue_client(ca: KeyPair, common_name: str, now: datetime, life: timedelta) -> KeyPair:
    """A client leaf whose identity is `common_name`, 1 to 64 characters; else as a server leaf."""
    if not 1 <= len(common_name) <= 64:
        raise CertificateProblem(f"{common_name!r} is no common name: it takes 1 to 64 characters")
    return _issue(ca, common_name, ExtendedKeyUsageOID.CLIENT_AUTH, now, life, None)


def is_ca(pair: KeyPair) -> bool:
    """Whether its certificate can be read and may sign others."""
    try:
        return pair.certificate.is_authority
    except CertificateProblem:
        return False


def can_sign(ca: KeyPair, now: datetime) -> bool:
    """Whether what `issue_server` and `issue_client` make with `ca` at `now` is any good."""
    try:
        _signing_key(ca)
        _issuer_identifier(ca)
        return is_ca(ca) and ca.certificate.not_before <= now < ca.not_after
    except CertificateProblem:
        return False


def _issue(
    ca: KeyPair,
    common_name: str,
    purpose: x509.ObjectIdentifier,
    now: datetime,
    life: timedelta,
    names: x509.SubjectAlternativeName | None,
) -> KeyPair:
    key, signer = ec.generate_private_key(ec.SECP256R1()), _signing_key(ca)
    if ca.not_after <= now:
        raise CertificateProblem(f"the CA expired on {ca.not_after:%Y-%m-%d}: make a new one first")
    until = min(_until(now, life), ca.not_after)  # a leaf that outlives its CA promises too much
    builder = _builder(_subject(common_name), key, now, until)
    builder = builder.issuer_name(ca.certificate.x509.subject)
    builder = builder.serial_number(x509.random_serial_number())
    builder = builder.add_extension(_issuer_identifier(ca), critical=False)
    no_ca = x509.BasicConstraints(ca=False, path_length=None)
    builder = builder.add_extension(no_ca, critical=True)
    builder = builder.add_extension(_usage(signs_certificates=False), critical=True)
    builder = builder.add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
    if names is not None:
        builder = builder.add_extension(names, critical=False)
    return KeyPair(_pem(builder.sign(signer, hashes.SHA256())), _plain(key))


def _signing_key(ca: KeyPair) -> ec.EllipticCurvePrivateKey:
    key = ca.key
    if not isinstance(key, ec.EllipticCurvePrivateKey) or not ca.belongs_together:
        text = "the CA's key is not the ECDSA key of its certificate: make a new one"
        raise CertificateProblem(text)
    return key


def _issuer_identifier(ca: KeyPair) -> x509.AuthorityKeyIdentifier:
    issuer = ca.certificate.x509
    try:
        own = issuer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    except x509.ExtensionNotFound:
        raise CertificateProblem("the CA has no subject key identifier: make a new CA") from None
    return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(own)


def _builder(
    subject: x509.Name, key: ec.EllipticCurvePrivateKey, now: datetime, until: datetime
) -> x509.CertificateBuilder:
    own = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    return (
        x509.CertificateBuilder(subject_name=subject)
        .public_key(key.public_key())
        .not_valid_before(now.replace(microsecond=0) - BACKDATE)
        .not_valid_after(until)
        .add_extension(own, critical=False)
    )


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _plain(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _until(now: datetime, life: timedelta) -> datetime:
    if life < timedelta(seconds=1):
        raise CertificateProblem("a certificate needs a life of at least a second")
    try:
        return now.replace(microsecond=0) + timedelta(seconds=int(life.total_seconds()))
    except OverflowError:
        raise CertificateProblem("a certificate cannot live beyond the year 9999") from None


def _subject(common_name: str) -> x509.Name:
    return x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, ORGANIZATION),
            x509.NameAttribute(NameOID.COMMON_NAME, common_name),
        ]
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
