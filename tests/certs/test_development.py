"""Certificates for development, as a function and as a command."""

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from certs import authority, files
from certs.__main__ import main
from certs.development import Made, Outcome, ensure_development_certificates
from certs.names import Names
from certs.problem import CertificateProblem
from tests.certs.handshake import attempt

NOW = datetime.now(UTC)
DAY = timedelta(days=1)
ROOT = Path(__file__).parents[2]


def ensure(
    folder: Path,
    dns: str = "localhost",
    now: datetime = NOW,
    days: int = 90,
    *,
    force: bool = False,
) -> Outcome:
    return ensure_development_certificates(folder, [dns], ["127.0.0.1"], now, days, force=force)


def test_an_empty_folder_gets_certificates_a_client_accepts(tmp_path: Path) -> None:
    outcome = ensure(tmp_path / "dev")
    assert outcome.made is Made.BOTH
    bundle, pair = files.load_bundle(tmp_path / "dev"), files.load_pair(tmp_path / "dev")
    for name in ("localhost", "127.0.0.1"):
        assert attempt(pair, bundle, name, tmp_path) == b"hello"
    assert files.load_authority(tmp_path / "dev").usable


def test_good_certificates_are_kept(tmp_path: Path) -> None:
    ensure(tmp_path)
    pair = files.load_pair(tmp_path)
    outcome = ensure(tmp_path, "LOCALHOST", NOW + 59 * DAY)
    assert (outcome.made, outcome.reason) == (Made.NOTHING, None)
    assert files.load_pair(tmp_path) == pair


def test_other_names_and_old_leaves_bring_a_leaf_of_the_same_ca(tmp_path: Path) -> None:
    ensure(tmp_path)
    ca = files.load_authority(tmp_path)
    assert ensure(tmp_path, "other.local").made is Made.LEAF
    assert ensure(tmp_path, "other.local", NOW + 61 * DAY).made is Made.LEAF
    assert files.load_authority(tmp_path) == ca
    assert files.load_pair(tmp_path).subject_names == Names.of(["other.local"], ["127.0.0.1"])


def test_a_ca_that_would_end_before_the_leaf_is_replaced(tmp_path: Path) -> None:
    ensure(tmp_path)
    outcome = ensure(tmp_path, now=NOW + 100 * DAY)
    assert outcome.made is Made.BOTH
    assert outcome.not_after < outcome.ca_not_after


def test_force_makes_both_anew(tmp_path: Path) -> None:
    ensure(tmp_path)
    ca = files.load_authority(tmp_path)
    assert ensure(tmp_path, force=True).made is Made.BOTH
    assert files.load_authority(tmp_path) != ca


@pytest.mark.parametrize("name", ["tls.crt", "tls.key", "ca.crt"])
def test_broken_files_are_made_again(name: str, tmp_path: Path) -> None:
    ensure(tmp_path)
    (tmp_path / name).write_text("broken")
    assert "cannot be used" in str(ensure(tmp_path))
    assert files.load_pair(tmp_path).certificate.signed_by(
        files.load_authority(tmp_path).certificate
    )


def test_a_certificate_of_the_future_is_made_again(tmp_path: Path) -> None:
    ensure(tmp_path, now=NOW + 30 * DAY)
    assert ensure(tmp_path).made is not Made.NOTHING
    assert files.load_pair(tmp_path).certificate.valid_at(NOW)
    assert files.load_authority(tmp_path).certificate.valid_at(NOW)


def test_files_of_somebody_else_are_kept_when_good_and_never_overwritten(tmp_path: Path) -> None:
    ca = authority.create_authority(NOW, 90 * DAY)
    leaf = authority.issue_server(ca, Names.of(["localhost"], ["127.0.0.1"]), NOW, 30 * DAY)
    theirs = {
        "tls.crt": leaf.certificate_pem,
        "tls.key": leaf.key_pem,
        "ca.crt": ca.certificate_pem,
    }
    files.write_folder(tmp_path, theirs)
    assert ensure(tmp_path).made is Made.NOTHING
    with pytest.raises(CertificateProblem, match="not made here, and it was made for other names"):
        ensure(tmp_path, "other.local")
    assert files.load_pair(tmp_path) == leaf
    assert ensure(tmp_path, "other.local", force=True).made is Made.BOTH


@pytest.mark.parametrize("days", [0, -1, 3651])
def test_days_out_of_range_are_refused(days: int, tmp_path: Path) -> None:
    with pytest.raises(CertificateProblem, match="give 1 to 3650"):
        ensure(tmp_path, days=days)


def test_the_command_says_what_it_did_in_two_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--dir", str(tmp_path), "--dns", "a.local", "--ip", "::1", "--days", "10"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert lines[0].startswith(f"{tmp_path}: made a CA and a server certificate")
    assert lines[1].startswith("for a.local, ::1, until ")
    assert main(["--dir", str(tmp_path), "--dns", "a.local", "--ip", "::1"]) == 0
    assert capsys.readouterr().out.startswith(f"{tmp_path}: kept ")


def test_without_names_the_command_serves_this_machine(tmp_path: Path) -> None:
    assert main(["--dir", str(tmp_path)]) == 0
    assert files.load_pair(tmp_path).subject_names == Names.of(["localhost"], ["127.0.0.1", "::1"])


@pytest.mark.parametrize(
    "arguments",
    [["--dns", "a b"], ["--ip", "x"], ["--days", "x"], ["--days", "0"], ["--what"], ["x"]],
)
def test_bad_input_exits_with_2_and_one_line(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--dir", str(tmp_path / "new"), *arguments]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert len(told.err.splitlines()) == 1
    assert not (tmp_path / "new").exists()


def test_the_module_runs_as_a_program(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "certs", "--dir", str(tmp_path / "file" / "x")]
    (tmp_path / "file").write_text("")
    run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert run.returncode == 2
    assert len(run.stderr.splitlines()) == 1
    assert "Traceback" not in run.stderr
