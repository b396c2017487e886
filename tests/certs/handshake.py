"""A real TLS handshake over loopback, the client verifying as strictly as OpenSSL can."""

import socket
import ssl
import threading
from pathlib import Path

from certs import files
from certs.pair import KeyPair


def attempt(
    leaf: KeyPair,
    bundle: bytes,
    name: str,
    folder: Path,
    *,
    client: KeyPair | None = None,
    client_bundle: bytes | None = None,
) -> bytes:
    """What the server says to a client that trusts `bundle`; ssl.SSLError if it is refused."""
    server = _context(ssl.Purpose.CLIENT_AUTH, client_bundle, leaf, folder / "server")
    if client_bundle is not None:
        server.verify_mode = ssl.CERT_REQUIRED
    caller = _context(ssl.Purpose.SERVER_AUTH, bundle, client, folder / "client")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=_serve, args=(listener, server), daemon=True)
        thread.start()
        try:
            with (
                socket.create_connection(listener.getsockname(), timeout=60) as plain,
                caller.wrap_socket(plain, server_hostname=name) as secured,
            ):
                return secured.recv(5)
        finally:
            thread.join(60)


def _context(
    purpose: ssl.Purpose, bundle: bytes | None, pair: KeyPair | None, folder: Path
) -> ssl.SSLContext:
    protocol = (
        ssl.PROTOCOL_TLS_CLIENT if purpose is ssl.Purpose.SERVER_AUTH else ssl.PROTOCOL_TLS_SERVER
    )
    context = ssl.SSLContext(protocol)
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    if bundle is not None:
        context.load_verify_locations(cadata=bundle.decode())
    if pair is not None:
        files.write_folder(folder, {"tls.crt": pair.certificate_pem, "tls.key": pair.key_pem})
        context.load_cert_chain(folder / "tls.crt", folder / "tls.key")
    return context


def _serve(listener: socket.socket, context: ssl.SSLContext) -> None:
    listener.settimeout(60)
    plain, _ = listener.accept()
    plain.settimeout(60)
    with plain:
        try:
            with context.wrap_socket(plain, server_side=True) as secured:
                secured.sendall(b"hello")
        except OSError:  # the client refused, which is what some tests ask for
            pass
