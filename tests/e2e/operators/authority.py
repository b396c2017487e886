"""Serving certificates for operators' own webhooks, in the form that their rotators keep."""

from __future__ import annotations

import base64
import datetime
import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

DAYS = 365


@dataclass(frozen=True, slots=True)
class Issued:
    """A CA with its key and a server certificate for loopback with its key, as PEM."""

    ca: bytes
    ca_key: bytes
    certificate: bytes
    key: bytes

    @property
    def bundle(self) -> str:
        """The CA as webhook configurations want it."""
        return base64.b64encode(self.ca).decode()

    def data(self) -> dict[str, str]:
        """The data of the Secret that cert-controller's rotator reads."""
        named = {
            "ca.crt": self.ca,
            "ca.key": self.ca_key,
            "tls.crt": self.certificate,
            "tls.key": self.key,
        }
        return encoded(named)

    def pems(self) -> dict[str, str]:
        """The data of the Secrets that Knative's and Spark operator's webhooks read."""
        named = {
            "ca-cert.pem": self.ca,
            "ca-key.pem": self.ca_key,
            "server-cert.pem": self.certificate,
            "server-key.pem": self.key,
        }
        return encoded(named)

    def write(self, folder: Path) -> None:
        """Write what a server needs into a folder."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "tls.crt").write_bytes(self.certificate)
        (folder / "tls.key").write_bytes(self.key)
        (folder / "ca.crt").write_bytes(self.ca)


def encoded(files: Mapping[str, bytes]) -> dict[str, str]:
    """Files as the data of a Secret."""
    return {name: base64.b64encode(each).decode() for name, each in files.items()}


def issue(ca_name: str, names: Sequence[str]) -> Issued:
    """Return a new CA and a certificate for `names` and 127.0.0.1.

    A rotator keeps what it finds when the CA has its own name among its alternative names, the key
    is RSA and all of it lasts for months.
    """
    ca_key, key = new_key(), new_key()
    issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, ca_name)])
    ca = unsigned(issuer, issuer, ca_key.public_key(), [x509.DNSName(ca_name)])
    ca = ca.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0])])
    loopback = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    alternatives = [loopback, *(x509.DNSName(name) for name in names)]
    leaf = unsigned(subject, issuer, key.public_key(), alternatives)
    usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
    leaf = leaf.add_extension(usage, critical=False)
    pem = serialization.Encoding.PEM
    return Issued(
        ca.sign(ca_key, hashes.SHA256()).public_bytes(pem),
        private(ca_key),
        leaf.sign(ca_key, hashes.SHA256()).public_bytes(pem),
        private(key),
    )


def new_key() -> rsa.RSAPrivateKey:
    """A new RSA key."""
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def private(key: rsa.RSAPrivateKey) -> bytes:
    """A key as PKCS #1 text."""
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )


def unsigned(
    subject: x509.Name,
    issuer: x509.Name,
    key: rsa.RSAPublicKey,
    alternatives: Sequence[x509.GeneralName],
) -> x509.CertificateBuilder:
    """A certificate for a year, to be signed."""
    now = datetime.datetime.now(datetime.UTC)
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key)
    return (
        builder.serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=DAYS))
        .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
    )
