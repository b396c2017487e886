"""Makes the keys, certificates, tokens and kubeconfigs of one cluster."""

import csv
import datetime
import ipaddress
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_NAMES = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
_ADDRESSES = ("127.0.0.1", "10.0.0.1")


def write_tokens(folder: Path, users: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Write `tokens.csv` for `users` (name to groups); return a fresh token per name."""
    tokens = {user: secrets.token_hex(16) for user in users}
    path = folder / "tokens.csv"
    path.touch(mode=0o600)
    with path.open("w", encoding="utf-8", newline="") as handle:
        rows = csv.writer(handle)
        for user, groups in users.items():
            rows.writerow([tokens[user], user, f"uid-{user}", ",".join(groups)])
    return tokens


def write_certificates(folder: Path) -> None:
    """Write `ca.crt`, `server.crt`, `server.key` and `service-account.key` into `folder`.

    The server certificate is good for loopback; the CA's key is forgotten.
    """
    ca_key, server_key = _new_key(), _new_key()
    issuer = _name("podgate-testbed-ca")
    ca = _certificate(issuer, issuer, ca_key.public_key())
    ca = ca.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    ca = ca.add_extension(_usage(signs_certificates=True), critical=True)
    server = _certificate(_name("kube-apiserver"), issuer, server_key.public_key())
    server = server.add_extension(_alternative_names(), critical=False)
    server = server.add_extension(_usage(signs_certificates=False), critical=True)
    server = server.add_extension(
        x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False
    )
    pem = serialization.Encoding.PEM
    (folder / "ca.crt").write_bytes(ca.sign(ca_key, hashes.SHA256()).public_bytes(pem))
    (folder / "server.crt").write_bytes(server.sign(ca_key, hashes.SHA256()).public_bytes(pem))
    _write_key(folder / "server.key", server_key)
    _write_key(folder / "service-account.key", _new_key())


def write_kubeconfig(path: Path, *, server: str, ca_file: Path, user: str, token: str) -> None:
    """Write a kubeconfig at `path` with which `user` reaches `server`."""
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "testbed",
        "clusters": [
            {
                "name": "testbed",
                "cluster": {"server": server, "certificate-authority": str(ca_file)},
            }
        ],
        "users": [{"name": user, "user": {"token": token}}],
        "contexts": [{"name": "testbed", "context": {"cluster": "testbed", "user": user}}],
    }
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(document, sort_keys=False), "utf-8")


def _new_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey) -> None:
    path.touch(mode=0o600)
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption(),
        )
    )


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _certificate(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=365))
    )


def _alternative_names() -> x509.SubjectAlternativeName:
    names: list[x509.GeneralName] = [x509.DNSName(name) for name in _NAMES]
    names += [x509.IPAddress(ipaddress.ip_address(address)) for address in _ADDRESSES]
    return x509.SubjectAlternativeName(names)


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
