"""podgate registration: addresses and CAs that it takes, and files for API servers."""

from __future__ import annotations

import base64
import itertools
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from certs.pair import certificates_in
from tests.cli.running import podgate
from tests.e2e.served import Certificates

URL = "https://podgate.example.com:9443"
Json = dict[str, Any]


@pytest.fixture(scope="module")
def ca(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Certificates.make(tmp_path_factory.mktemp("certificates")).ca


def printed(*arguments: str) -> list[Json]:
    done = podgate("registration", *arguments)
    assert done.exit_code == 0, done.stderr
    return list(yaml.safe_load_all(done.stdout))


def test_files_are_the_same_configurations_under_names_of_their_own(ca: Path) -> None:
    through_api = printed("--url", URL, "--ca-file", str(ca))
    files = printed("--static", "--url", URL, "--ca-file", str(ca))
    assert len(files) == 3
    for plain, file in zip(through_api, files, strict=True):
        assert file["metadata"]["name"] == plain["metadata"]["name"] + ".static.k8s.io"
        for one, other in zip(plain["webhooks"], file["webhooks"], strict=True):
            assert other["name"] == one["name"] + ".static.k8s.io"
            assert {**other, "name": ""} == {**one, "name": ""}
            assert other["clientConfig"]["url"].startswith(URL)
            assert base64.b64decode(other["clientConfig"]["caBundle"]) == ca.read_bytes()


def test_the_end_of_the_ca_is_in_the_files_and_on_stderr(ca: Path) -> None:
    (authority,) = certificates_in(ca.read_bytes())
    end = f"{authority.not_after:%Y-%m-%dT%H:%M:%SZ}"
    done = podgate("registration", "--static", "--url", URL, "--ca-file", str(ca))
    assert f"the CA ends at {end}" in done.stderr
    assert done.stdout.count(f"# The CA in it ends at {end}") == 3
    assert "podgate hooks off" in done.stderr
    assert "every review comes twice" in done.stderr


def test_each_plugin_has_a_folder_with_its_kind_alone(ca: Path, tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "podgate"
    arguments = ("registration", "--static", "--url", URL, "--ca-file", str(ca), "--to")
    for _ in range(2):
        done = podgate(*arguments, str(folder))
        assert (done.exit_code, done.stdout) == (0, "")
    configuration = yaml.safe_load((folder / "admission.yaml").read_text("utf-8"))
    assert configuration["kind"] == "AdmissionConfiguration"
    for plugin in configuration["plugins"]:
        kind = plugin["name"].replace("AdmissionWebhook", "WebhookConfiguration")
        directory = Path(plugin["configuration"]["staticManifestsDir"])
        assert directory.is_absolute()
        (file,) = directory.iterdir()
        found = list(yaml.safe_load_all(file.read_text("utf-8")))
        assert {each["kind"] for each in found} == {kind}


def test_files_may_fail_open(ca: Path) -> None:
    files = printed("--static", "--fail-open", "--url", URL, "--ca-file", str(ca))
    assert {entry["failurePolicy"] for each in files for entry in each["webhooks"]} == {"Ignore"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--static", "--url", URL], "--static: give --ca-file"),
        (["--static", "--service", "a/b", "--ca-file", "CA"], "--static: give --url"),
        (["--static", "--url", "https://a", "--ca-file", "TEXT"], "no PEM certificate in it"),
        (["--url", "https://a", "--ca-file", "TEXT"], "no PEM certificate in it"),
        (["--url", "https://a", "--to", "x"], "--to: only the files of --static"),
        (["--static", "--url", "http://a", "--ca-file", "CA"], "calls https only"),
        (["--url", "https://"], "write https://HOST:PORT"),
        (["--url", "https://a:port"], "it is no address"),
        (["--url", "https://a:70000"], "it is no address"),
        (["--url", "https://[a"], "it is no address"),
        (["--url", "https://a/x?timeout=1"], "leave out user, query and fragment"),
        (["--url", "https://a/#x"], "leave out user, query and fragment"),
        (["--url", "https://me:secret@a"], "leave out user, query and fragment"),
        (["--static", "--url", URL, "--ca-file", "CA", "--to", "TEXT/x"], "--to "),
    ],
)
def test_what_an_api_server_would_not_take_is_refused(
    arguments: list[str], said: str, ca: Path, tmp_path: Path
) -> None:
    text = tmp_path / "text"
    text.write_text("no certificate", "utf-8")
    given = [each.replace("TEXT", str(text)).replace("CA", str(ca)) for each in arguments]
    done = podgate("registration", *given)
    assert done.exit_code == 2
    assert done.stdout == ""
    assert said in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(("days", "code"), [(-1, 2), (3, 0), (200, 0)])
def test_a_ca_that_has_ended_or_soon_will_is_told(
    ca: Path, days: int, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    end = datetime.now(UTC) + timedelta(days=days, minutes=1)
    monkeypatch.setattr("webhook.cli.registration.first_end", lambda _: end)
    done = podgate("registration", "--static", "--url", URL, "--ca-file", str(ca))
    assert done.exit_code == code
    assert ("ended at" in done.stderr) == (days < 0)
    assert ("warning: the CA ends" in done.stderr) == (days == 3)


def test_the_name_of_a_service_is_warned_of(ca: Path) -> None:
    for host, static in itertools.product(("a.b.svc", "a.b.svc.cluster.local"), (True, False)):
        more = ["--static"] if static else []
        done = podgate("registration", "--url", f"https://{host}", "--ca-file", str(ca), *more)
        assert ("do not resolve" in done.stderr) == static


def test_a_controller_that_exchanges_the_ca_cannot_leave_it_to_files(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text(
        yaml.safe_dump(
            {
                "current-context": "a",
                "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
                "clusters": [{"name": "a", "cluster": {"server": "https://127.0.0.1:1"}}],
                "users": [{"name": "a", "user": {"token": "t"}}],
            }
        ),
        "utf-8",
    )
    done = podgate(
        "control", "--static", "--url", URL, "--tls-secret", "a/b", "--kubeconfig", str(config)
    )
    assert done.exit_code == 2
    assert "--static: --tls-secret would exchange the CA" in done.stderr
