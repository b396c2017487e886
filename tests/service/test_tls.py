"""The served certificate follows its files, and nothing bad replaces a good one."""

import socket
import ssl
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from cryptography.x509 import CertificateBuilder, load_pem_x509_certificate

from certs import authority, files
from certs.names import Names
from certs.pair import KeyPair
from webhook.service import tls
from webhook.service.tls import Certificate, Files, TlsError

NOW = datetime.now(UTC)
YEAR = timedelta(days=365)


@pytest.fixture(scope="module")
def ca() -> KeyPair:
    """An authority."""
    return authority.create_authority(NOW, YEAR * 2)


def leaf(ca: KeyPair, life: timedelta = YEAR, now: datetime = NOW) -> KeyPair:
    """A server certificate for localhost."""
    return authority.issue_server(ca, Names.of(["localhost"], []), now, life)


def rsa_leaf(ca: KeyPair) -> KeyPair:
    """The same with another kind of key."""
    key = rsa.generate_private_key(65537, 2048)
    like = load_pem_x509_certificate(leaf(ca).certificate_pem)
    builder = CertificateBuilder(
        like.issuer, like.subject, key.public_key(), like.serial_number,
        like.not_valid_before_utc, like.not_valid_after_utc, list(like.extensions),
    )  # fmt: skip
    signer = load_pem_private_key(ca.key_pem, None)
    signed = builder.sign(signer, SHA256())  # type: ignore[arg-type]
    plain = serialization.NoEncryption()
    pem = serialization.Encoding.PEM
    form = serialization.PrivateFormat.PKCS8
    return KeyPair(signed.public_bytes(pem), key.private_bytes(pem, form, plain))


def write(folder: Path, pair: KeyPair) -> Files:
    """Put a pair where kubelet would, swapping one link."""
    files.write_folder(folder, {"tls.crt": pair.certificate_pem, "tls.key": pair.key_pem})
    return Files(folder / "tls.crt", folder / "tls.key")


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """A socket on loopback."""
    with socket.create_server(("127.0.0.1", 0)) as made:
        made.settimeout(60)
        yield made


def handshake(
    listener: socket.socket, served: ssl.SSLContext, client: ssl.SSLContext, name: str | None
) -> x509.Certificate:
    """What a client is shown; ssl.SSLError when it or the server refuses."""

    def accept() -> None:
        plain, _ = listener.accept()
        with plain:
            plain.settimeout(60)
            try:
                with served.wrap_socket(plain, server_side=True) as secured:
                    secured.sendall(b"!")
            except OSError:  # what the client makes of it is asserted
                pass

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        with (
            socket.create_connection(listener.getsockname(), timeout=60) as plain,
            client.wrap_socket(plain, server_hostname=name) as secured,
        ):
            secured.recv(1)
            der = secured.getpeercert(binary_form=True)
            assert der is not None
            return load_pem_x509_certificate(ssl.DER_cert_to_PEM_cert(der).encode())
    finally:
        thread.join(60)


def caller(
    ca: KeyPair, client: KeyPair | None = None, folder: Path | None = None
) -> ssl.SSLContext:
    """A client that trusts one authority."""
    context = ssl.create_default_context(cadata=ca.certificate_pem.decode())
    if client is not None and folder is not None:
        made = write(folder, client)
        context.load_cert_chain(made.certificate, made.key)
    return context


def serial(pair: KeyPair) -> int:
    """What tells certificates apart."""
    return load_pem_x509_certificate(pair.certificate_pem).serial_number


def test_a_swapped_pair_is_served_on_the_same_context(
    ca: KeyPair, tmp_path: Path, listener: socket.socket
) -> None:
    first, second = leaf(ca), leaf(ca)
    certificate = Certificate(write(tmp_path / "pair", first))
    context = certificate.context
    client = caller(ca)
    assert handshake(listener, context, client, "localhost").serial_number == serial(first)
    assert not certificate.refresh()
    write(tmp_path / "pair", second)
    assert certificate.refresh()
    assert handshake(listener, context, client, "localhost").serial_number == serial(second)
    assert certificate.context is context


def test_a_pair_with_another_kind_of_key_leaves_nothing_of_the_old(
    ca: KeyPair, tmp_path: Path, listener: socket.socket
) -> None:
    first, second = leaf(ca), rsa_leaf(ca)
    certificate = Certificate(write(tmp_path / "pair", first))
    write(tmp_path / "pair", second)
    assert certificate.refresh()
    shown = handshake(listener, certificate.context, caller(ca), "localhost")
    assert isinstance(shown.public_key(), rsa.RSAPublicKey)


def test_a_client_that_names_no_server_gets_the_new_pair_too(
    ca: KeyPair, tmp_path: Path, listener: socket.socket
) -> None:
    first, second = leaf(ca), leaf(ca)
    certificate = Certificate(write(tmp_path / "pair", first))
    write(tmp_path / "pair", second)
    assert certificate.refresh()
    client = caller(ca)
    client.check_hostname = False
    assert handshake(listener, certificate.context, client, None).serial_number == serial(second)


@pytest.mark.parametrize("damage", ["mismatch", "rubbish", "gone", "encrypted", "expired"])
def test_a_bad_pair_is_counted_and_the_old_one_stays(
    ca: KeyPair,
    tmp_path: Path,
    listener: socket.socket,
    damage: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    first = leaf(ca)
    folder = tmp_path / "pair"
    certificate = Certificate(write(folder, first))
    if damage == "mismatch":
        write(folder, KeyPair(leaf(ca).certificate_pem, leaf(ca).key_pem))
    elif damage == "rubbish":
        files.write_folder(folder, {"tls.crt": b"no certificate", "tls.key": first.key_pem})
    elif damage == "gone":
        (folder / "tls.key").unlink()
    elif damage == "expired":
        write(folder, leaf(ca, timedelta(days=1), NOW - timedelta(days=3)))
    else:
        key = load_pem_private_key(first.key_pem, None)
        secret = serialization.BestAvailableEncryption(b"x")
        pem = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, secret
        )
        files.write_folder(folder, {"tls.crt": first.certificate_pem, "tls.key": pem})
    for _ in range(3):
        assert not certificate.refresh()
    assert certificate.failures == 1
    assert "the old certificate stays" in caplog.text
    assert handshake(
        listener, certificate.context, caller(ca), "localhost"
    ).serial_number == serial(first)
    write(folder, leaf(ca))
    assert certificate.refresh()


def test_without_a_usable_pair_nothing_starts(ca: KeyPair, tmp_path: Path) -> None:
    with pytest.raises(TlsError, match="cannot be read: No such file"):
        Certificate(Files(tmp_path / "none.crt", tmp_path / "none.key"))
    made = write(tmp_path / "pair", KeyPair(leaf(ca).certificate_pem, leaf(ca).key_pem))
    with pytest.raises(TlsError, match="no usable pair"):
        Certificate(made)


@pytest.mark.parametrize("days", [1, 365, 3_000, 9_500, 12_000])
def test_the_end_is_read_as_the_library_reads_it(days: int, tmp_path: Path) -> None:
    long = authority.create_authority(NOW, timedelta(days=days))  # after 2049: GeneralizedTime
    certificate = Certificate(write(tmp_path / "pair", long))
    expected = load_pem_x509_certificate(long.certificate_pem).not_valid_after_utc
    assert certificate.not_after == expected
    certificate.now = lambda: expected - timedelta(days=2)
    assert certificate.days_left() == 2
    certificate.now = lambda: expected + timedelta(days=1)
    assert certificate.days_left() == -1


def test_a_damaged_certificate_is_told_and_never_raises_otherwise(ca: KeyPair) -> None:
    der = ssl.PEM_cert_to_DER_cert(leaf(ca).certificate_pem.decode())
    for end in range(len(der)):
        pem = ssl.DER_cert_to_PEM_cert(der[:end]).encode()
        with pytest.raises(TlsError):
            tls.not_after(pem, Path("x"))


def test_versions_before_1_2_are_refused(
    ca: KeyPair, tmp_path: Path, listener: socket.socket
) -> None:
    certificate = Certificate(write(tmp_path / "pair", leaf(ca)))
    assert certificate.context.minimum_version == ssl.TLSVersion.TLSv1_2
    client = caller(ca)
    client.maximum_version = ssl.TLSVersion.TLSv1_2
    handshake(listener, certificate.context, client, "localhost")


def test_with_a_client_ca_only_its_clients_come_in_and_it_can_be_exchanged(
    ca: KeyPair, tmp_path: Path, listener: socket.socket
) -> None:
    old, new = authority.create_authority(NOW, YEAR), authority.create_authority(NOW, YEAR)
    trusted = tmp_path / "clients.crt"
    trusted.write_bytes(old.certificate_pem)
    pair = write(tmp_path / "pair", leaf(ca))
    certificate = Certificate(Files(pair.certificate, pair.key, trusted))
    friend = authority.issue_client(old, "kube-apiserver", NOW, YEAR)
    other = authority.issue_client(new, "kube-apiserver", NOW, YEAR)
    friendly = caller(ca, friend, tmp_path / "friend")
    stranger = caller(ca, other, tmp_path / "other")
    handshake(listener, certificate.context, friendly, "localhost")
    for refused in (stranger, caller(ca)):
        with pytest.raises((ssl.SSLError, ConnectionError)):
            handshake(listener, certificate.context, refused, "localhost")
    trusted.write_bytes(new.certificate_pem)
    assert certificate.refresh()
    handshake(listener, certificate.context, stranger, "localhost")
    with pytest.raises((ssl.SSLError, ConnectionError)):
        handshake(listener, certificate.context, friendly, "localhost")


@pytest.mark.parametrize("suite", ["ECDHE-ECDSA-AES128-SHA", "ECDHE-ECDSA-AES256-SHA384"])
def test_suites_with_cbc_are_refused(ca: KeyPair, tmp_path: Path, suite: str) -> None:
    server = Certificate(write(tmp_path, leaf(ca))).context
    client = ssl.create_default_context(cadata=ca.certificate_pem.decode())
    client.maximum_version = ssl.TLSVersion.TLSv1_2
    assert shake(client, server)
    client.set_ciphers(suite)
    with pytest.raises(ssl.SSLError, match=r"(?i)no shared cipher|handshake failure"):
        shake(client, server)


def test_1_2_can_be_refused(ca: KeyPair, tmp_path: Path) -> None:
    pair = write(tmp_path, leaf(ca))
    server = Certificate(Files(pair.certificate, pair.key, min_version="1.3")).context
    client = ssl.create_default_context(cadata=ca.certificate_pem.decode())
    assert shake(client, server) == "TLSv1.3"
    client.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises(ssl.SSLError):
        shake(client, server)


def shake(client: ssl.SSLContext, server: ssl.SSLContext) -> str | None:
    """A handshake in memory: the version that both speak."""
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours = server.wrap_bio(up, down, server_side=True)
    theirs = client.wrap_bio(down, up, server_hostname="localhost")
    for _ in range(5):
        for side in (theirs, ours):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    return theirs.version()
