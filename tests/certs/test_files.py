"""Folders: written at once, read whole, and clear about what is wrong."""

import os
import stat
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization

from certs import authority, files
from certs.names import Names
from certs.pair import KeyPair
from certs.problem import CertificateProblem

NOW = datetime.now(UTC)
NAMES = Names.of(["localhost"])
CA = authority.create_authority(NOW, timedelta(days=30))
FIRST, SECOND = (authority.issue_server(CA, NAMES, NOW, timedelta(days=3)) for _ in range(2))


def of(pair: KeyPair, ca: KeyPair = CA) -> dict[str, bytes]:
    return {
        "tls.crt": pair.certificate_pem,
        "tls.key": pair.key_pem,
        "ca.crt": ca.certificate_pem,
        "ca.key": ca.key_pem,
    }


def plain(folder: Path, contents: dict[str, bytes]) -> None:
    folder.mkdir(exist_ok=True)
    for name, content in contents.items():
        (folder / name).write_bytes(content)


def problem(folder: Path) -> str:
    with pytest.raises(CertificateProblem) as caught:
        files.load_pair(folder)
    text = str(caught.value)
    assert "\n" not in text
    assert "Traceback" not in text
    return text


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    files.write_folder(tmp_path / "new" / "folder", of(FIRST))
    assert files.load_pair(tmp_path / "new" / "folder") == FIRST
    assert files.load_authority(tmp_path / "new" / "folder") == CA
    assert files.load_bundle(tmp_path / "new" / "folder") == CA.certificate_pem


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077, 0o277])
def test_keys_are_for_their_owner_only_under_any_umask(umask: int, tmp_path: Path) -> None:
    before = os.umask(umask)
    try:
        files.write_folder(tmp_path, of(FIRST))
    finally:
        os.umask(before)
    modes = {name: stat.S_IMODE((tmp_path / name).stat().st_mode) for name in of(FIRST)}
    assert modes == {"tls.crt": 0o644, "tls.key": 0o600, "ca.crt": 0o644, "ca.key": 0o600}


def test_writing_again_replaces_all_and_leaves_nothing_behind(tmp_path: Path) -> None:
    files.write_folder(tmp_path, of(FIRST))
    files.write_folder(tmp_path, {"tls.crt": SECOND.certificate_pem, "tls.key": SECOND.key_pem})
    assert files.load_pair(tmp_path) == SECOND
    version = (tmp_path / "..data").readlink().name
    assert {path.name for path in tmp_path.iterdir()} == {"..data", version, "tls.crt", "tls.key"}


def test_plain_files_are_read_and_then_replaced_by_links(tmp_path: Path) -> None:
    plain(tmp_path, of(FIRST))
    assert files.load_pair(tmp_path) == FIRST
    files.write_folder(tmp_path, of(SECOND))
    assert files.load_pair(tmp_path) == SECOND


def test_own_files_put_in_the_place_of_links_count(tmp_path: Path) -> None:
    files.write_folder(tmp_path, of(FIRST))
    for name in ("tls.crt", "tls.key"):
        (tmp_path / name).unlink()
    plain(tmp_path, {"tls.crt": SECOND.certificate_pem, "tls.key": SECOND.key_pem})
    assert files.load_pair(tmp_path) == SECOND


def test_a_folder_as_kubelet_makes_it_is_read(tmp_path: Path) -> None:
    plain(tmp_path / "..2026_11_21_03_00_00.1", of(FIRST))
    (tmp_path / "..data").symlink_to("..2026_11_21_03_00_00.1")
    for name in of(FIRST):
        (tmp_path / name).symlink_to(f"..data/{name}")
    assert files.load_pair(tmp_path) == FIRST


def test_a_chain_after_the_leaf_is_kept(tmp_path: Path) -> None:
    chain = FIRST.certificate_pem + CA.certificate_pem
    plain(tmp_path, {"tls.crt": chain, "tls.key": FIRST.key_pem})
    assert files.load_pair(tmp_path).certificate_pem == chain


def test_a_failed_write_leaves_the_old_pair(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.write_folder(tmp_path, of(FIRST))
    before = sorted(tmp_path.iterdir())

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(CertificateProblem, match=r"cannot be written \(No space left on device\)"):
        files.write_folder(tmp_path, of(SECOND))
    assert files.load_pair(tmp_path) == FIRST
    assert sorted(tmp_path.iterdir()) == before


def test_a_folder_that_is_a_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CertificateProblem, match="cannot be written"):
        files.write_folder(tmp_path / "file", of(FIRST))


def test_a_reader_beside_a_writer_never_sees_half_a_pair(tmp_path: Path) -> None:
    files.write_folder(tmp_path, of(FIRST))
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            files.write_folder(tmp_path, of(SECOND))
            files.write_folder(tmp_path, of(FIRST))

    writer = threading.Thread(target=write)
    writer.start()
    try:
        seen = {files.load_pair(tmp_path).fingerprint for _ in range(2000)}
    finally:
        stop.set()
        writer.join()
    assert seen == {FIRST.fingerprint, SECOND.fingerprint}


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    assert problem(tmp_path).startswith(f"{tmp_path}/tls.crt is missing: ")
    plain(tmp_path, {"tls.crt": FIRST.certificate_pem})
    assert problem(tmp_path).startswith(f"{tmp_path}/tls.key is missing: ")


@pytest.mark.parametrize(
    "text",
    [b"", b"x", FIRST.key_pem, FIRST.certificate_pem[:200], b"\xff\x00"],
    ids=["empty", "letter", "key", "cut", "no text"],
)
def test_a_certificate_that_is_none_is_named(text: bytes, tmp_path: Path) -> None:
    plain(tmp_path, {**of(FIRST), "tls.crt": text})
    assert problem(tmp_path).startswith(f"{tmp_path}/tls.crt has no readable PEM certificate: ")


@pytest.mark.parametrize(
    "text",
    [b"", b"x", FIRST.certificate_pem, FIRST.key_pem[:80]],
    ids=["empty", "letter", "certificate", "cut"],
)
def test_a_key_that_is_none_is_named(text: bytes, tmp_path: Path) -> None:
    plain(tmp_path, {**of(FIRST), "tls.key": text})
    assert problem(tmp_path).startswith(f"{tmp_path}/tls.key has no readable PEM private key: ")


def test_a_key_with_a_password_is_told(tmp_path: Path) -> None:
    locked = FIRST.key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"secret"),
    )
    plain(tmp_path, {**of(FIRST), "tls.key": locked})
    assert problem(tmp_path).startswith(f"{tmp_path}/tls.key is protected by a password: ")


def test_a_key_of_another_certificate_is_told(tmp_path: Path) -> None:
    plain(tmp_path, {**of(FIRST), "tls.key": SECOND.key_pem})
    assert f"{tmp_path}/tls.key is not the key of {tmp_path}/tls.crt" in problem(tmp_path)


def test_a_problem_in_a_linked_folder_names_the_file_people_see(tmp_path: Path) -> None:
    files.write_folder(tmp_path, {**of(FIRST), "tls.key": b"x"})
    assert problem(tmp_path).startswith(f"{tmp_path}/tls.key ")


def test_an_empty_bundle_is_told(tmp_path: Path) -> None:
    plain(tmp_path, {"ca.crt": b""})
    with pytest.raises(CertificateProblem, match=r"ca\.crt has no readable PEM certificate"):
        files.load_bundle(tmp_path)


def test_a_bundle_of_two_is_read_without_the_text_around(tmp_path: Path) -> None:
    other = authority.create_authority(NOW, timedelta(days=30))
    both = CA.certificate_pem + other.certificate_pem
    plain(
        tmp_path, {"ca.crt": b"# old\n" + CA.certificate_pem + b"# new\n" + other.certificate_pem}
    )
    assert files.load_bundle(tmp_path) == both
