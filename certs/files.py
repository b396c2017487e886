"""A folder of certificates as kubelet and cert-manager lay it out, read and written whole.

The files are links through `..data` to a folder that never changes after it is written, as
kubelet does it: one rename swaps them all, so neither a crash nor a reader between two files ever
sees the key of one pair with the certificate of another.
"""

import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from certs.pair import Certificate, KeyPair, certificates_in
from certs.problem import CertificateProblem

CERTIFICATE, KEY = "tls.crt", "tls.key"
AUTHORITY, AUTHORITY_KEY = "ca.crt", "ca.key"
DATA = "..data"


def load_pair(folder: Path) -> KeyPair:
    """The pair in `tls.crt` and `tls.key`, known to belong together; else CertificateProblem."""
    return _load(folder, CERTIFICATE, KEY)


def load_authority(folder: Path) -> KeyPair:
    """The CA in `ca.crt` and `ca.key`, known to belong together; else CertificateProblem."""
    return _load(folder, AUTHORITY, AUTHORITY_KEY)


def load_bundle(folder: Path) -> bytes:
    """The CA certificates in `ca.crt` as PEM, at least one; CertificateProblem if there is none."""
    pem = _bytes(folder / AUTHORITY, folder / AUTHORITY)
    try:
        return b"".join(each.canonical_pem for each in certificates_in(pem))
    except CertificateProblem as problem:
        raise _file_problem(folder / AUTHORITY, problem) from None


def contents(folder: Path) -> dict[str, bytes]:
    """Those of the four files that are there, unchecked; CertificateProblem if not readable."""
    paths = [folder / name for name in (CERTIFICATE, KEY, AUTHORITY, AUTHORITY_KEY)]
    try:
        there = [path for path in paths if path.exists()]
    except OSError as error:
        raise _unreadable(folder, error) from None
    return {path.name: _bytes(path, path) for path in there}


def write_folder(folder: Path, new: Mapping[str, bytes]) -> None:
    """Replace what was written to `folder` before by `new`, at once; `*.key` gets mode 0600.

    `folder` is created when absent. CertificateProblem when it cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        before = _version(folder)
        version = _write_version(folder, new)
        _swap(folder / DATA, version.name)
        for name in new:
            _swap(folder / name, f"{DATA}/{name}")
        _remove_before(folder, before, new)
    except OSError as error:
        text = f"{folder} cannot be written ({error.strerror}): give another folder or its rights"
        raise CertificateProblem(text) from None


def _load(folder: Path, certificate: str, key: str) -> KeyPair:
    while True:
        version = _version(folder)
        try:
            return _load_version(folder, version, certificate, key)
        except CertificateProblem:
            # A writer may have swapped the folder meanwhile: only what stayed is a problem.
            if _version(folder) == version:
                raise


def _load_version(folder: Path, version: str | None, certificate: str, key: str) -> KeyPair:
    linked = version is not None and not _is_replaced(folder, (certificate, key))
    place = folder / version if version is not None and linked else folder
    pair = KeyPair(
        _bytes(place / certificate, folder / certificate), _bytes(place / key, folder / key)
    )
    _check(folder / certificate, pair.certificate)
    try:
        matches = pair.belongs_together
    except CertificateProblem as problem:
        raise _file_problem(folder / key, problem) from None
    if not matches:
        raise CertificateProblem(
            f"{folder / key} is not the key of {folder / certificate}: put the key that belongs to"
            " the certificate there, or make both anew"
        )
    return pair


def _check(path: Path, certificate: Certificate) -> None:
    try:
        certificate.public_key  # noqa: B018  reading it is the check
    except CertificateProblem as problem:
        raise _file_problem(path, problem) from None


def _is_replaced(folder: Path, names: tuple[str, ...]) -> bool:
    # Somebody replaced the links by files: read those files, not `..data`.
    return any((folder / name).exists() and not (folder / name).is_symlink() for name in names)


def _version(folder: Path) -> str | None:
    try:
        return str((folder / DATA).readlink())
    except OSError:
        return None


def _bytes(path: Path, shown: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        text = f"{shown} is missing: make certificates, or name the folder that has them"
        raise CertificateProblem(text) from None
    except OSError as error:
        raise _unreadable(shown, error) from None


def _unreadable(path: Path, error: OSError) -> CertificateProblem:
    text = f"{path} cannot be read ({error.strerror}): give this user the right to read it"
    return CertificateProblem(text)


def _file_problem(path: Path, problem: CertificateProblem) -> CertificateProblem:
    return CertificateProblem(f"{path} {problem}: put a good file there, or make it anew")


def _write_version(folder: Path, new: Mapping[str, bytes]) -> Path:
    version = Path(tempfile.mkdtemp(prefix="..", dir=folder))
    try:
        for name, content in new.items():
            _write(version / name, content, 0o600 if name.endswith(".key") else 0o644)
        version.chmod(0o755)  # so that others may read the certificates; the keys stay closed
    except OSError:
        shutil.rmtree(version, ignore_errors=True)
        raise
    return version


def _write(path: Path, content: bytes, mode: int) -> None:
    # The mode is there from the first byte on; fchmod only undoes what umask took away.
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "wb") as file:
        os.fchmod(descriptor, mode)
        file.write(content)
        file.flush()
        os.fsync(descriptor)


def _swap(link: Path, target: str) -> None:
    if link.is_symlink() and str(link.readlink()) == target:
        return
    beside = link.with_name(f"..new-{link.name.lstrip('.')}")
    beside.unlink(missing_ok=True)
    beside.symlink_to(target)
    beside.replace(link)


def _remove_before(folder: Path, before: str | None, new: Mapping[str, bytes]) -> None:
    if before is None:
        return
    for old in (folder / before).iterdir() if (folder / before).is_dir() else ():
        link = folder / old.name
        if old.name not in new and link.is_symlink():
            link.unlink()
    # Only a folder of this layout is removed, whatever `..data` pointed to.
    if before.startswith("..") and "/" not in before and before != "..":
        shutil.rmtree(folder / before, ignore_errors=True)
