"""Credentials, TLS and proxies of an API server, by the `kubernetes` package.

The package is imported with the first request: it takes 25 MB, and the processes that answer
reviews never send one.
"""

from __future__ import annotations

import base64
import contextlib
import logging
import os
import re
import signal
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import unquote

from webhook.documents import texts

if TYPE_CHECKING:
    from kubernetes.client.api_client import ApiClient
    from kubernetes.client.configuration import Configuration
    from kubernetes.config.kube_config import ConfigNode

log = logging.getLogger("podgate.api")

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
NO_ACCESS = (
    "there are neither a kubeconfig nor the credentials of a service account to ask the API server"
    " with; set --kubeconfig (PODGATE_KUBECONFIG), or run in a Pod that mounts its service account"
)
AUTHORIZATION = re.compile(r"[A-Za-z]+ [!-~]+")
EARLY = 30.0  # seconds before credentials of a plugin expire in which they are renewed
LOGIN_TIMEOUT = 60.0  # seconds that a credential plugin may take: it may open a browser
PAUSE = 2.0  # seconds after which credentials that could not be loaded are tried again
AT_MOST = 10.0  # seconds between two runs of a plugin

Mark = tuple[int, int, int] | None


class CredentialsError(Exception):
    """Why the API server cannot be asked with the credentials as they are: one sentence."""


@dataclass(slots=True)
class Loaded:
    """A client with the credentials it was made from.

    `files` are those that the credentials come from, `expires` is when a plugin's end, in Unix time.
    """

    client: ApiClient
    files: tuple[Path, ...] = ()
    expires: float | None = None
    marks: tuple[Mark, ...] = ()
    made: float = field(default_factory=time.time)

    def is_stale(self) -> bool:
        """Whether its files have changed, or what a plugin gave is about to expire."""
        if self.marks != tuple(mark_of(each) for each in self.files):
            return True
        now = time.time()
        due = self.expires is not None and now >= self.expires - EARLY
        return due and now - self.made >= AT_MOST

    @property
    def authorization(self) -> str:
        """The header that shows who asks; empty where a client certificate does."""
        # The package reads the token of a service account again here, and renews those of OIDC.
        text: str = self.client.configuration.get_api_key_with_prefix("BearerToken") or ""
        return text.strip()


class Source(Protocol):
    """Where credentials come from."""

    def load(self) -> Loaded:
        """Read them; raises CredentialsError."""


@dataclass(frozen=True, slots=True)
class ServiceAccount:
    """The credentials that a Pod has mounted; kubelet exchanges the token before it ends."""

    host: str
    port: str
    folder: Path = SERVICE_ACCOUNT

    def load(self) -> Loaded:
        """Read them; raises CredentialsError."""
        from kubernetes.config.incluster_config import InClusterConfigLoader

        authority, token = self.folder / "ca.crt", self.folder / "token"
        address = {"KUBERNETES_SERVICE_HOST": self.host, "KUBERNETES_SERVICE_PORT": self.port}
        if not self.port.isdigit():
            raise CredentialsError("KUBERNETES_SERVICE_PORT is not a port number")
        configuration = new_configuration()
        try:
            InClusterConfigLoader(str(token), str(authority), environ=address).load_and_set(
                configuration
            )
        except Exception as error:
            raise CredentialsError(f"{self.folder}: {texts.clean(str(error))}") from error
        return open_client(configuration, (authority, token), str(authority))


@dataclass(frozen=True, slots=True)
class Kubeconfig:
    """The current context of a kubeconfig, or of several, as kubectl merges those of KUBECONFIG."""

    path: Path
    others: tuple[Path, ...] = ()

    def load(self) -> Loaded:
        """Read them, and run the plugin that they name; raises CredentialsError."""
        from kubernetes.config.kube_config import (
            KubeConfigLoader,
            KubeConfigMerger,
        )

        shown = texts.clean(os.pathsep.join(map(str, (self.path, *self.others))))
        configuration = new_configuration()
        try:
            merger = KubeConfigMerger("")
            for path in (self.path, *self.others):
                if path.expanduser().exists():
                    merger.paths.append(str(path.expanduser()))
                    merger.load_config(merger.paths[-1])
            if merger.config is None:
                raise FileNotFoundError(2, "No such file or directory")  # noqa: TRY301
            contexts = [merger.config_files[path].get("current-context") for path in merger.paths]
            # The package takes the last of several files, kubectl the first.
            merger.config.value["current-context"] = next(filter(None, contexts), None)
            read = os.pathsep.join(merger.paths)
            entries = Entries.of(merger.config, texts.clean(read))
            files = (*(Path(each) for each in merger.paths), *entries.find_files())
            expires = entries.run_plugin()
            KubeConfigLoader(merger.config, config_base_path=None).load_and_set(configuration)
        except CredentialsError:
            raise
        except OSError as error:
            named = f" ({error.filename})" if error.filename not in (None, str(self.path)) else ""
            raise CredentialsError(
                f"{shown} cannot be read: {error.strerror or error}{named}; check its path and"
                " permissions"
            ) from error
        except Exception as error:  # the package raises whatever a wrong type leads to
            raise CredentialsError(
                f"{shown} is not a usable kubeconfig: {texts.clean(str(error))}; compare it with"
                " what `kubectl config view` shows"
            ) from error
        return open_client(configuration, files, shown, expires)


@dataclass(slots=True)
class Entries:
    """The cluster and the user of the current context, and the plugin that the user names."""

    shown: str
    cluster: ConfigNode
    user: ConfigNode | None

    @classmethod
    def of(cls, config: ConfigNode, shown: str) -> Entries:
        """Find them; CredentialsError where a name is missing or wrong."""
        name = config.safe_get("current-context") if isinstance(config.value, dict) else None
        if not isinstance(name, str) or not name:
            raise CredentialsError(
                f"{shown} has no current-context; `kubectl config use-context NAME` sets it"
            )
        context = find_entry(config, "contexts", "context", name, shown)
        cluster = find_entry(config, "clusters", "cluster", context.safe_get("cluster"), shown)
        named = context.safe_get("user")
        user = find_entry(config, "users", "user", named, shown) if named else None
        if user is not None and user.value.get("tokenFile"):
            user.value.pop("token", None)  # the package prefers it to the file, kubectl does not
        server = cluster.safe_get("server")
        if not isinstance(server, str) or not server.startswith(("https://", "http://")):
            raise CredentialsError(
                f"{shown}: server is {texts.show_value(server)}; write https://HOST:PORT"
            )
        return cls(shown, cluster, user)

    def run_plugin(self) -> float | None:
        """Run the program that `exec` names, and write what it gives into the user's entry.

        The package would only log that it failed, and go on without credentials. Returns when the
        credentials expire, in Unix time, None where they do not.
        """
        from kubernetes.config import exec_provider
        from kubernetes.config.dateutil import parse_rfc3339

        plugin = self.user.value.get("exec") if self.user else None
        if self.user is None or not plugin or self.user.value.get("token"):
            return None
        program = texts.clean(str(plugin.get("command")))
        # The package would wait for the program for ever.
        exec_provider.subprocess = Programs  # type: ignore[attr-defined, assignment]
        try:
            given = exec_provider.ExecProvider(
                self.user["exec"], str(folder_of(self.user)), self.cluster
            ).run()
        except FileNotFoundError as error:
            hint = texts.clean(str(plugin.get("installHint") or "install it, or correct `command`"))
            raise CredentialsError(
                f"{self.shown}: the program {program}, which gives the credentials, is not there;"
                f" {hint}"
            ) from error
        except Exception as error:
            raise CredentialsError(
                f"{self.shown}: {program} gave no credentials: {texts.clean(str(error))}"
            ) from error
        token, chain, key = (
            given.get(each) for each in ("token", "clientCertificateData", "clientKeyData")
        )
        if not token and not (chain and key):
            raise CredentialsError(
                f"{self.shown}: {program} gave neither a token nor a client certificate and its key"
            )
        del self.user.value["exec"]
        if token:
            self.user.value["token"] = token
        if chain and key:
            self.user.value["client-certificate-data"] = base64.b64encode(chain.encode()).decode()
            self.user.value["client-key-data"] = base64.b64encode(key.encode()).decode()
        until = given.get("expirationTimestamp")
        expires: float | None = parse_rfc3339(until).timestamp() if until else None
        return expires

    def find_files(self) -> Iterator[Path]:
        """The files that the entries name; the entries have their absolute paths afterwards.

        The package looks for those of the user beside the file that has the cluster.
        """
        for entry, keys in (
            (self.cluster, ("certificate-authority",)),
            (self.user, ("client-certificate", "client-key", "tokenFile")),
        ):
            for key in keys:
                named = entry.safe_get(key) if entry is not None else None
                if entry is not None and isinstance(named, str) and named:
                    path = folder_of(entry) / named
                    entry.value[key] = str(path)
                    if not entry.safe_get(f"{key}-data"):
                        yield path


def folder_of(entry: ConfigNode) -> Path:
    """The folder that relative paths of an entry start from: that of the file which has it."""
    return Path(entry.path or "").absolute().parent


class Program(subprocess.Popen[str]):
    """A program that is ended after LOGIN_TIMEOUT, with what it has started."""

    def __init__(self, *given: Any, **more: Any) -> None:
        # On a terminal it stays in the group that may ask the user.
        self.leads = not os.isatty(0)
        super().__init__(*given, **more, process_group=0 if self.leads else None)

    def communicate(self, *_: Any) -> tuple[str, str]:
        """What it writes until it ends; raises TimeoutError."""
        try:
            return super().communicate(timeout=LOGIN_TIMEOUT)
        except subprocess.TimeoutExpired as error:
            if self.leads:
                os.killpg(self.pid, signal.SIGKILL)
            self.kill()
            written = (error.stderr or b"").decode(errors="replace")
            with self:  # closes its pipes
                text = f"it did not end in {LOGIN_TIMEOUT:g} s, and wrote {written!r}"
                raise TimeoutError(text) from None


class Programs:
    """The members of `subprocess` that the package runs a program with."""

    Popen, PIPE = Program, subprocess.PIPE


def find_entry(config: ConfigNode, members: str, member: str, name: Any, shown: str) -> ConfigNode:
    """The entry of this name in one of the three lists; CredentialsError where there is none."""
    for entry in config.value.get(members) or ():
        node = entry.value
        if (
            isinstance(node, dict)
            and node.get("name") == name
            and isinstance(node.get(member), dict)
        ):
            found: ConfigNode = entry[member]
            return found
    raise CredentialsError(
        f"{shown} has no {member} named {texts.show_value(name)}; write the names in"
        " current-context and in its context as the lists have them"
    )


def new_configuration() -> Configuration:
    """A configuration of the package for raw requests; each call is sent once."""
    from kubernetes.client.configuration import Configuration

    made = Configuration()
    made.retries = False
    made.keep_alive = True
    made.connection_pool_maxsize = 32
    return made


def open_client(
    configuration: Configuration, files: tuple[Path, ...], shown: str, expires: float | None = None
) -> Loaded:
    """A client for a configuration; CredentialsError where TLS cannot be set up with it."""
    import urllib3
    from kubernetes.client.api_client import ApiClient
    from kubernetes.client.rest import is_socks_proxy_url
    from urllib3.util import make_headers, parse_url
    from urllib3.util.ssl_ import create_urllib3_context

    needed = ssl.CERT_REQUIRED
    if not configuration.verify_ssl:
        needed = ssl.CERT_NONE
        urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
        log.warning("%s: the API server's certificate is not verified", shown)
    context = create_urllib3_context(cert_reqs=needed)
    # Python 3.13 is strict by default, and the CAs of many clusters have no key identifier.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    try:
        if configuration.ssl_ca_cert:
            context.load_verify_locations(configuration.ssl_ca_cert)
        elif configuration.verify_ssl:
            context.load_default_certs()
        if configuration.cert_file:
            context.load_cert_chain(
                configuration.cert_file, configuration.key_file, password=refuse_password
            )
    except (OSError, ValueError) as error:
        fix = "give PEM text, and a key without a password"
        raise CredentialsError(
            f"{shown}: the CA certificate, or the client certificate and its key, cannot be used"
            f" ({error.strerror or error if isinstance(error, OSError) else error}); {fix}"
        ) from error
    if configuration.proxy and "://" not in configuration.proxy:
        configuration.proxy = f"http://{configuration.proxy}"
    try:
        if configuration.proxy and not is_socks_proxy_url(configuration.proxy):
            user = parse_url(configuration.proxy).auth or ""
            given = make_headers(proxy_basic_auth=unquote(user, "latin-1")) if user else None
            configuration.proxy_headers = given
        client = ApiClient(configuration)
    except Exception as error:  # the URL may hold a password
        what = "the proxy of proxy-url, HTTPS_PROXY or ALL_PROXY cannot be used"
        raise CredentialsError(f"{shown}: {what}; write http://HOST:PORT") from error
    pool = client.rest_client.pool_manager.connection_pool_kw
    for each in ("ca_certs", "ca_cert_data", "cert_file", "key_file"):
        pool.pop(each, None)  # else each connection would load them into the shared context again
    pool["ssl_context"] = context
    loaded = Loaded(client, files, expires, tuple(mark_of(each) for each in files))
    if loaded.authorization and not AUTHORIZATION.fullmatch(loaded.authorization):
        fix = "write it on one line without spaces"
        raise CredentialsError(f"{shown} has no readable token; {fix}")
    if not (loaded.authorization or configuration.cert_file) and uses_tls(configuration):
        what = "the user has neither a token nor a client certificate nor a program that gives one"
        raise CredentialsError(f"{shown}: {what}; write one of them")
    return loaded


def uses_tls(configuration: Configuration) -> bool:
    """Whether the API server is reached by TLS; `kubectl proxy` is not, and adds credentials."""
    host: str = configuration.host
    return host.startswith("https:")


def refuse_password() -> bytes:
    """Raises for a key that is encrypted, so that nobody is asked on a terminal."""
    raise ValueError("the key is encrypted")


@dataclass(slots=True)
class Credentials:
    """Credentials for any thread; they are loaded again when their files change or they expire."""

    source: Source
    loaded: Loaded | None = None
    failure: CredentialsError | None = None
    failed: float = 0.0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def are_due(self) -> bool:
        """Whether they have to be loaded before the next request."""
        return self.loaded is None or self.loaded.is_stale()

    def current(self) -> Loaded:
        """A client with the credentials as they are now; raises CredentialsError.

        Those of a plugin that now fails are used until they expire.
        """
        with self.locked():
            loaded = self.loaded
            if loaded is not None and not loaded.is_stale():
                return loaded
            try:
                return self.load()
            except CredentialsError:
                if loaded is None or time.time() >= (loaded.expires or 0.0):
                    raise
                return loaded

    def reload(self, refused: Loaded) -> Loaded:
        """The credentials after the API server did not accept some; raises CredentialsError.

        The same again where they were loaded a moment ago.
        """
        with self.locked():
            if self.loaded is refused and time.time() - refused.made >= AT_MOST:
                return self.load()
            return self.loaded or refused

    def load(self) -> Loaded:
        """Load them; raises CredentialsError. What did not work is not tried again at once."""
        if self.failure is None or time.time() - self.failed >= PAUSE:
            try:
                self.loaded, self.failure = self.source.load(), None
            except CredentialsError as error:
                self.failed, self.failure = time.time(), error
            else:
                return self.loaded
        raise CredentialsError(str(self.failure))

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """One thread at a time; CredentialsError where another one waits for a plugin for long."""
        if not self.lock.acquire(timeout=LOGIN_TIMEOUT):
            raise CredentialsError("the program that gives the credentials has not ended")
        try:
            yield
        finally:
            self.lock.release()


def mark_of(path: Path) -> Mark:
    """Inode, time and size of a file, which tell that it was replaced; None where it is missing."""
    try:
        seen = path.stat()
    except OSError:
        return None
    return seen.st_ino, seen.st_mtime_ns, seen.st_size


def find_credentials(
    kubeconfig: Path | None, environ: Mapping[str, str], folder: Path = SERVICE_ACCOUNT
) -> Credentials | None:
    """The kubeconfig's credentials, else those of the Pod's service account, else None."""
    if kubeconfig is not None:
        return Credentials(Kubeconfig(kubeconfig))
    host, port = environ.get("KUBERNETES_SERVICE_HOST"), environ.get("KUBERNETES_SERVICE_PORT")
    if not host or not port or not (folder / "token").is_file():
        return None
    return Credentials(ServiceAccount(host, port, folder))


def main(path: str) -> int:
    """Check a kubeconfig; what is wrong with it goes to stderr, with exit code 2."""
    try:
        Kubeconfig(Path(path)).load()
    except CredentialsError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
