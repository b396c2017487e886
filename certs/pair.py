"""A certificate, alone or with its key, as a value, and what can be read from it."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes

from certs.names import Names
from certs.problem import CertificateProblem

DER = serialization.Encoding.DER
SPKI = serialization.PublicFormat.SubjectPublicKeyInfo


@dataclass(frozen=True, slots=True)
class Certificate:
    """The first certificate of a PEM text; every reading of it may raise CertificateProblem."""

    pem: bytes

    @property
    def x509(self) -> x509.Certificate:
        """The certificate for `cryptography`; CertificateProblem when the text holds none."""
        try:
            return x509.load_pem_x509_certificate(self.pem)
        except (ValueError, x509.InvalidVersion):
            raise CertificateProblem("has no readable PEM certificate") from None

    @property
    def canonical_pem(self) -> bytes:
        """The one certificate as PEM, without the text or further certificates around it."""
        return self.x509.public_bytes(serialization.Encoding.PEM)

    @property
    def public_key(self) -> bytes:
        """Its public key in DER form; CertificateProblem when it is of a kind unknown here."""
        try:
            return self.x509.public_key().public_bytes(DER, SPKI)
        except (ValueError, UnsupportedAlgorithm):
            raise CertificateProblem("has a certificate with an unknown kind of key") from None

    @property
    def not_before(self) -> datetime:
        """The first moment it is valid, in UTC."""
        return self.x509.not_valid_before_utc

    @property
    def not_after(self) -> datetime:
        """The last moment it is valid, in UTC."""
        return self.x509.not_valid_after_utc

    @property
    def fingerprint(self) -> str:
        """SHA-256 over the DER form, in lower-case hex."""
        return self.x509.fingerprint(hashes.SHA256()).hex()

    @property
    def subject_names(self) -> Names:
        """The names a client may reach its server by."""
        return Names.in_certificate(self.x509)

    @property
    def is_authority(self) -> bool:
        """Whether it may sign others (basicConstraints)."""
        try:
            return self.x509.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
        except (x509.ExtensionNotFound, x509.DuplicateExtension, ValueError):
            return False

    def valid_at(self, now: datetime) -> bool:
        """Whether `now` lies within its life."""
        return self.not_before <= now <= self.not_after

    def days_left(self, now: datetime) -> float:
        """Days until it expires, negative afterwards."""
        return (self.not_after - now) / timedelta(days=1)

    def signed_by(self, issuer: "Certificate") -> bool:
        """Whether `issuer` is the one it names, and that one's key signed it."""
        try:
            self.x509.verify_directly_issued_by(issuer.x509)
        except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
            return False
        return True


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A PEM certificate (others of its chain may follow) and its unencrypted PEM private key."""

    certificate_pem: bytes
    key_pem: bytes = field(repr=False)  # so that no log or assertion shows a key

    @property
    def certificate(self) -> Certificate:
        """The certificate without its key."""
        return Certificate(self.certificate_pem)

    @property
    def not_after(self) -> datetime:
        """The last moment the certificate is valid, in UTC."""
        return self.certificate.not_after

    @property
    def fingerprint(self) -> str:
        """The certificate's SHA-256 in lower-case hex."""
        return self.certificate.fingerprint

    @property
    def subject_names(self) -> Names:
        """The names in the certificate."""
        return self.certificate.subject_names

    @property
    def key(self) -> PrivateKeyTypes:
        """The private key for `cryptography`; CertificateProblem when it cannot be read."""
        try:
            return serialization.load_pem_private_key(self.key_pem, password=None)
        except TypeError:
            raise CertificateProblem("is protected by a password") from None
        except (ValueError, UnsupportedAlgorithm):
            raise CertificateProblem("has no readable PEM private key") from None

    @property
    def belongs_together(self) -> bool:
        """Whether the key is the certificate's; CertificateProblem when either cannot be read."""
        return self.key.public_key().public_bytes(DER, SPKI) == self.certificate.public_key

    @property
    def usable(self) -> bool:
        """Whether both can be read and belong together."""
        try:
            return self.belongs_together
        except CertificateProblem:
            return False


def certificates_in(pem: bytes) -> tuple[Certificate, ...]:
    """Every certificate of a PEM bundle, in order; CertificateProblem when there is none."""
    try:
        found = x509.load_pem_x509_certificates(pem)
    except (ValueError, x509.InvalidVersion):
        raise CertificateProblem("has no readable PEM certificate") from None
    return tuple(Certificate(each.public_bytes(serialization.Encoding.PEM)) for each in found)
