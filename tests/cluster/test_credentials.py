"""Credentials as the client library reads them: plugins, proxies, several kubeconfigs, renewal."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from certs import authority
from certs.pair import KeyPair
from tests.cluster.proxy import Proxy
from tests.cluster.test_kubernetes import TOKEN, FakeApi
from tests.e2e.testbed import processes
from tests.generated import ROOT
from webhook.cli.crds import credentials_for
from webhook.cluster import credentials
from webhook.cluster.client import ApiError, ApiServer
from webhook.cluster.credentials import Credentials, CredentialsError, Kubeconfig

NAMESPACE = "/api/v1/namespaces/team-a"
Json = dict[str, Any]


@pytest.fixture(scope="module")
def ca() -> KeyPair:
    """An authority."""
    return authority.create_authority(datetime.now(UTC), timedelta(days=30))


@pytest.fixture
def api(ca: KeyPair, tmp_path: Path) -> Iterator[FakeApi]:
    """A fake API server with one namespace."""
    with FakeApi(ca, tmp_path, {"team-a": {}}).running() as fake:
        yield fake


def find(api: FakeApi, server: ApiServer) -> Json | None:
    """The namespace, as the server's credentials see it."""
    return asyncio.run(server.find(NAMESPACE))


class Plugin:
    """A program of a kubeconfig's `exec` that prints what a file beside it holds, and counts its runs."""

    def __init__(self, folder: Path) -> None:
        self.status, self.runs = folder / "status.json", folder / "runs"
        self.program = folder / "login"
        self.program.write_text(
            f"#!{sys.executable}\nimport json, os, sys\n"
            f"open({str(self.runs)!r}, 'a').write('x')\n"
            "info = json.loads(os.environ['KUBERNETES_EXEC_INFO'])\n"
            f"status = json.load(open({str(self.status)!r}))\n"
            "sys.exit(status) if isinstance(status, str) else None\n"
            "print(json.dumps({'apiVersion': info['apiVersion'], 'kind': 'ExecCredential',"
            " 'status': status}))\n"
        )
        self.program.chmod(0o755)

    def give(self, status: Json | str) -> None:
        """What the next run gives; a text is the error that it ends with."""
        self.status.write_text(json.dumps(status))

    def user(self, **more: Any) -> Json:
        """The user of a kubeconfig."""
        version = "client.authentication.k8s.io/v1"
        return {"exec": {"apiVersion": version, "command": "./login", **more}}

    @property
    def count(self) -> int:
        """How often it ran."""
        return len(self.runs.read_text()) if self.runs.exists() else 0


@pytest.fixture
def plugin(api: FakeApi) -> Plugin:
    """A plugin beside the kubeconfig."""
    return Plugin(api.folder)


def in_time(seconds: float) -> str:
    """A moment as plugins write it."""
    return (datetime.now(UTC) + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def test_a_plugin_gives_a_token_once_for_all_requests(api: FakeApi, plugin: Plugin) -> None:
    plugin.give({"token": TOKEN, "expirationTimestamp": in_time(3600)})
    server = ApiServer(Credentials(Kubeconfig(api.kubeconfig(plugin.user()))))
    assert find(api, server)
    assert find(api, server)
    assert plugin.count == 1


def test_a_plugin_gives_a_client_certificate(api: FakeApi, plugin: Plugin, ca: KeyPair) -> None:
    pair = authority.issue_client(ca, "podgate", datetime.now(UTC), timedelta(days=1))
    given = pair.certificate_pem.decode(), pair.key_pem.decode()
    plugin.give({"clientCertificateData": given[0], "clientKeyData": given[1]})
    assert find(api, ApiServer(Credentials(Kubeconfig(api.kubeconfig(plugin.user())))))
    assert api.clients[-1], "it showed a certificate"


def test_what_a_plugin_gave_is_renewed_before_it_expires(
    api: FakeApi, plugin: Plugin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(credentials, "AT_MOST", 0.0)
    plugin.give({"token": TOKEN, "expirationTimestamp": in_time(10)})
    server = ApiServer(Credentials(Kubeconfig(api.kubeconfig(plugin.user()))))
    assert find(api, server)
    api.token = "the-next-token"
    plugin.give({"token": api.token, "expirationTimestamp": in_time(3600)})
    assert find(api, server)
    before = plugin.count
    assert find(api, server)
    assert plugin.count == before


def test_a_token_that_is_refused_is_renewed_once_and_not_in_a_tight_loop(
    api: FakeApi, plugin: Plugin, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugin.give({"token": TOKEN})
    server = ApiServer(Credentials(Kubeconfig(api.kubeconfig(plugin.user()))))
    assert find(api, server)
    api.token = "the-next-token"
    plugin.give({"token": api.token})
    with pytest.raises(ApiError, match="HTTP 401"):
        find(api, server)
    assert plugin.count == 1, "it ran a moment ago"
    monkeypatch.setattr(credentials, "AT_MOST", 0.0)
    assert find(api, server)
    assert plugin.count == 2


@pytest.mark.parametrize(
    ("status", "told"),
    [
        ("no session: log in first", "no session: log in first"),
        ({}, "neither a token nor a client certificate"),
        ({"token": "a b"}, "no readable token"),
        ({"clientCertificateData": "x"}, "neither a token nor a client certificate"),
        ({"token": TOKEN, "expirationTimestamp": "soon"}, "soon"),
        ([], "is not a usable kubeconfig"),
    ],
)
def test_what_a_plugin_gives_is_checked(
    api: FakeApi, plugin: Plugin, status: Any, told: str
) -> None:
    plugin.give(status)
    server = ApiServer(Credentials(Kubeconfig(api.kubeconfig(plugin.user()))))
    with pytest.raises(ApiError) as caught:
        find(api, server)
    assert told in str(caught.value)
    assert "kubeconfig" in str(caught.value)
    assert not api.paths


def test_a_missing_plugin_is_told_with_its_hint(api: FakeApi) -> None:
    user = {"exec": {"apiVersion": "v1", "command": "./none", "installHint": "brew install none"}}
    with pytest.raises(CredentialsError, match=r"\./none.*is not there; brew install none"):
        Kubeconfig(api.kubeconfig(user)).load()


def test_several_kubeconfigs_are_merged_as_kubectl_does(api: FakeApi) -> None:
    whole = api.kubeconfig()
    users = api.folder / "users"
    other = {"current-context": "here", "users": [{"name": "u", "user": {"token": TOKEN}}]}
    users.write_text(json.dumps(other))
    text = whole.read_text().replace(TOKEN, "another")
    text = text.replace("current-context: here", "current-context: elsewhere")
    whole.write_text(text)
    environ = {"KUBECONFIG": os.pathsep.join(map(str, (users, api.folder / "absent", whole)))}
    assert find(api, ApiServer(credentials_for(None, environ))), "the first file's user counts"


def test_a_path_that_is_given_is_one_file(api: FakeApi) -> None:
    path = api.folder / f"with{os.pathsep}colon"
    path.write_bytes(api.kubeconfig().read_bytes())
    assert find(api, ApiServer(credentials_for(path, {})))


@pytest.mark.parametrize("way", ["token", "plugin", "certificate"])
def test_relative_paths_start_from_the_file_that_has_them(
    api: FakeApi, ca: KeyPair, way: str
) -> None:
    whole, own = api.kubeconfig({}), api.folder / "own"
    own.mkdir()
    plugin = Plugin(own)
    plugin.give({"token": TOKEN})
    (own / "mine").write_text(TOKEN)
    pair = authority.issue_client(ca, "podgate", datetime.now(UTC), timedelta(days=1))
    (own / "chain").write_bytes(pair.certificate_pem)
    (own / "key").write_bytes(pair.key_pem)
    users: Json = {
        "token": {"tokenFile": "mine"},
        "plugin": plugin.user(),
        "certificate": {"client-certificate": "chain", "client-key": "key"},
    }
    (own / "config").write_text(json.dumps({"users": [{"name": "u", "user": users[way]}]}))
    server = ApiServer(Credentials(Kubeconfig(own / "config", (whole,))))
    assert find(api, server)
    if way == "token":
        api.token = "the-next-token"
        (own / "mine").write_text(api.token)
        assert find(api, server)


def test_a_cluster_without_a_ca_is_verified_by_those_of_the_system(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = Kubeconfig(api.kubeconfig(server=f"https://127.0.0.1:{api.port}"))
    with pytest.raises(ApiError, match="certificate does not verify"):
        find(api, ApiServer(Credentials(config)))
    assert not api.paths
    monkeypatch.setenv("SSL_CERT_FILE", str(api.folder / "ca.crt"))
    assert find(api, ApiServer(Credentials(config)))


def test_a_cluster_may_be_asked_without_verifying_it(api: FakeApi) -> None:
    cluster = {"server": f"https://127.0.0.1:{api.port}", "insecure-skip-tls-verify": True}
    assert find(api, ApiServer(Credentials(Kubeconfig(api.kubeconfig(**cluster)))))


@pytest.mark.parametrize("scheme", ["http://", ""])
def test_requests_go_through_the_proxy_of_the_kubeconfig(api: FakeApi, scheme: str) -> None:
    with Proxy().running() as proxy:
        url = scheme + proxy.address
        server = f"https://127.0.0.1:{api.port}"
        cluster = {"server": server, "certificate-authority": "ca.crt", "proxy-url": url}
        assert find(api, ApiServer(Credentials(Kubeconfig(api.kubeconfig(**cluster)))))
    assert proxy.hosts == [f"127.0.0.1:{api.port}"]


@pytest.mark.parametrize("variable", ["", "HTTPS_PROXY"])
def test_a_proxy_gets_the_user_of_its_url(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    with Proxy().running() as proxy:
        url = f"http://me%40here:p%C3%A4ss%3A1@{proxy.address}"
        cluster = {"server": f"https://127.0.0.1:{api.port}", "certificate-authority": "ca.crt"}
        if variable:
            monkeypatch.setenv(variable, url)
        else:
            cluster["proxy-url"] = url
        assert find(api, ApiServer(Credentials(Kubeconfig(api.kubeconfig(**cluster)))))
    assert proxy.user == "me@here:päss:1".encode()


def test_a_proxy_that_cannot_be_used_is_told_without_its_password(api: FakeApi) -> None:
    cluster = {"server": "https://127.0.0.1:1", "proxy-url": "gopher://me:secret@proxy:1"}
    with pytest.raises(CredentialsError, match="write http://HOST:PORT") as caught:
        Kubeconfig(api.kubeconfig(**cluster)).load()
    assert "secret" not in str(caught.value)


def test_a_plugin_that_hangs_is_ended_with_what_it_has_started(
    api: FakeApi, plugin: Plugin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(credentials, "LOGIN_TIMEOUT", 2.0)
    started = api.folder / "started"
    plugin.program.write_text(
        "#!/bin/sh\necho open https://login >&2\nsleep 600 &\n"
        f"echo $$ $! > {started}\nexec sleep 600\n"
    )
    monkeypatch.setattr(os, "isatty", lambda _: False)
    told = "gave no credentials: it did not end in 2 s, and wrote 'open https://login"
    with pytest.raises(CredentialsError, match=told):
        Kubeconfig(api.kubeconfig(plugin.user())).load()
    both = [processes.record(int(each)) for each in started.read_text().split()]
    assert len(both) == 2
    assert processes.wait_until_gone([each for each in both if each.started])


def test_a_plugin_that_fails_after_a_refusal_is_not_run_in_a_tight_loop(
    api: FakeApi, plugin: Plugin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(credentials, "AT_MOST", 0.0)
    monkeypatch.setattr(credentials, "PAUSE", 60.0)
    plugin.give({"token": TOKEN, "expirationTimestamp": in_time(3600)})
    server = ApiServer(Credentials(Kubeconfig(api.kubeconfig(plugin.user()))))
    assert find(api, server)
    api.token = "the-next-token"
    plugin.give("log in again")
    for _ in range(3):
        with pytest.raises(ApiError, match="log in again"):
            find(api, server)
    assert plugin.count == 2


def test_what_is_still_valid_is_used_while_a_plugin_fails(
    api: FakeApi, plugin: Plugin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(credentials, "AT_MOST", 0.0)
    plugin.give({"token": TOKEN, "expirationTimestamp": in_time(20)})
    server = ApiServer(Credentials(Kubeconfig(api.kubeconfig(plugin.user()))))
    assert find(api, server)
    plugin.give("no network")
    before = plugin.count
    for _ in range(3):
        assert find(api, server)
    assert plugin.count == before + 1, "it is not tried again at once"


def test_a_request_needs_nothing_that_the_image_leaves_out(api: FakeApi) -> None:
    """The Dockerfile removes models and APIs of the client library."""
    code = (
        "import asyncio, sys\n"
        "from pathlib import Path\n"
        "from webhook.cluster.client import ApiServer\n"
        "from webhook.cluster.credentials import Credentials, Kubeconfig\n"
        "server = ApiServer(Credentials(Kubeconfig(Path(sys.argv[1]))))\n"
        f"assert asyncio.run(server.find({NAMESPACE!r}))\n"
        "left_out = ('kubernetes.client.models.', 'kubernetes.client.api.', 'kubernetes.aio')\n"
        "sys.exit(str([each for each in sys.modules if each.startswith(left_out)] or '') or None)\n"
    )
    command = [sys.executable, "-c", code, str(api.kubeconfig())]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_http_workers_do_not_load_the_client_library() -> None:
    code = "import sys, webhook.cli.serve; sys.exit('kubernetes' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
