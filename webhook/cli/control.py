"""podgate control and podgate hooks: the controller, and the commands that switch the webhooks off."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import typer

from certs.names import Names
from certs.state import Policy
from webhook.cli import loading
from webhook.cli.crds import KubeconfigFile, credentials_for
from webhook.cli.registration import (
    BreakGlass,
    CaFile,
    Exempt,
    FailOpen,
    Governed,
    Service,
    Timeout,
    Url,
    target_of,
)
from webhook.cli.serve import option, sources_of
from webhook.cluster.client import ApiError, ApiServer
from webhook.cluster.credentials import CredentialsError
from webhook.cluster.lease import Election
from webhook.controller.certificates import Certificates
from webhook.controller.controller import RENEWED, Controller
from webhook.controller.hooks import Wanted, fails_closed, is_switched_off, switch_change
from webhook.controller.registration import Options, Target, configurations
from webhook.documents import texts
from webhook.server.listeners import bind
from webhook.service import side_port, telemetry
from webhook.service.processes import Processes
from webhook.service.settings import Settings, is_address

HELD, TRIES = 60, 10
FILES = (
    "hooks that API servers read from files (podgate registration --static) stay as they are:"
    " docs/runbooks.md#static-files"
)
ROUND = 3.0  # seconds that a controller's round may continue after it lost the lease

hooks = typer.Typer(
    no_args_is_help=True, help="Show, switch off, or remove the webhook configurations."
)
Lease = Annotated[
    str, typer.Option("--lease", metavar="NAMESPACE/NAME", help="The Lease for leader election.")
]
Identity = Annotated[
    str, typer.Option("--identity", envvar="HOSTNAME", help="Name of this controller.")
]
Admission = Annotated[
    list[str] | None,
    typer.Option(
        "--admission", metavar="URL", help="URL of /statusz of a webhook process. Repeatable."
    ),
]
AdmissionService = Annotated[
    str | None,
    typer.Option(
        "--admission-service",
        metavar="NAMESPACE/NAME",
        help="The Service whose Pods have /statusz, on their port named metrics.",
    ),
]
WebhookUser = Annotated[
    str,
    typer.Option(
        "--webhook-user",
        metavar="NAME",
        help="Service account of the webhook, whose rights to read owners are checked. Default: this one's.",
    ),
]
Probe = Annotated[
    str,
    typer.Option(
        "--probe-namespace",
        help="Governed namespace in which podgate must refuse a dry run before hooks fail closed.",
    ),
]

TlsSecret = Annotated[
    str | None,
    typer.Option(
        "--tls-secret",
        metavar="NAMESPACE/NAME",
        help="Create and rotate the webhook's certificates in this Secret and in NAME-ca.",
    ),
]
MetricsListen = Annotated[
    str,
    typer.Option(
        "--metrics-listen",
        metavar="ADDRESS:PORT",
        help="Address of /livez, /readyz and /metrics, over HTTP. Without it, they are off.",
    ),
]
LeafDays = Annotated[
    int, typer.Option("--leaf-days", min=1, help="Days that a certificate is valid.")
]
Overlap = Annotated[
    int,
    typer.Option(
        "--ca-overlap",
        min=1,
        metavar="SECONDS",
        help="Seconds that a new CA is published before it signs, and an old CA after it is replaced.",
    ),
]
Static = Annotated[
    bool,
    typer.Option(
        "--static",
        help="Do not register: API servers read files that podgate registration --static printed.",
    ),
]
Scan = Annotated[
    float,
    typer.Option(
        "--scan-every", min=0, help="Seconds between two scans of existing objects. 0: no scans."
    ),
]


def control(
    lease: Lease = "podgate-system/podgate",
    identity: Identity = "",
    service: Service = None,
    url: Url = None,
    ca_file: CaFile = None,
    tls_secret: TlsSecret = None,
    leaf_days: LeafDays = 90,
    ca_overlap: Overlap = 600,
    governed: Governed = "label",
    timeout: Timeout = 3,
    exempt: Exempt = None,
    break_glass: BreakGlass = None,
    admission: Admission = None,
    admission_service: AdmissionService = None,
    webhook_user: WebhookUser = "",
    probe_namespace: Probe = "",
    scan_every: Scan = 0.0,
    create_claims: Annotated[bool | None, option("create_claims")] = None,
    fail_open: FailOpen = False,
    is_static: Static = False,
    metrics_listen: MetricsListen = "",
    kubeconfig: KubeconfigFile = None,
    policies: loading.Policies = None,
    interfaces: loading.Interfaces = None,
) -> None:
    """Register the webhook, keep it registered, and write the status of documents, until SIGTERM.

    Several controllers may run; only the one that has the Lease works. Other settings are
    PODGATE_* variables, the same as those of `podgate serve`.
    """
    flags = {
        "policies": policies or [],
        "interfaces": interfaces or [],
        "create_claims": create_claims,
    }
    settings = Settings.from_sources(flags, os.environ)
    if not isinstance(settings, Settings):
        loading.print_problems(settings)
        raise typer.Exit(loading.BAD_INPUT)
    telemetry.start_logging(settings.log_level, settings.log_format)
    try:
        loading.check_choice(governed, ("label", "all"), "--governed")
        sources = sources_of(settings, loading.installation_config(settings))
        listener = listener_of(metrics_listen)
        server = ApiServer(credentials_for(kubeconfig, os.environ), "podgate-controller")
        controller = Controller(
            server,
            sources,
            target_of(service, url, ca_file),
            Options(
                governed,
                timeout,
                validate_failure="Ignore" if fail_open else "Fail",
                exempt=(*(exempt or ()), *settings.exempt),
                break_glass=tuple(break_glass or ()),
            ),
            Election(*pair(lease, "--lease"), identity or socket.gethostname()),
            Processes(
                server,
                tuple(admission or ()),
                pair(admission_service, "--admission-service") if admission_service else None,
            ),
            probe_namespace,
            scan_every,
            settings.create_claims,
        )
        controller.ca_file, controller.webhook_user = ca_file, webhook_user
        controller.registrar.static = is_static
        if tls_secret is not None:
            policy = Policy(
                leaf_life=timedelta(days=leaf_days), settle=timedelta(seconds=ca_overlap)
            )
            controller.certificates = certificates_of(controller, tls_secret, policy)
    except CredentialsError as error:
        loading.complain(f"error: {error}")
        raise typer.Exit(loading.BAD_INPUT) from None
    except loading.BadInput:
        raise typer.Exit(loading.BAD_INPUT) from None
    end = side_port.start(listener, pages(controller)) if listener is not None else None
    try:
        asyncio.run(run_until_signalled(controller))
    finally:
        if end is not None:
            end()


def listener_of(text: str) -> socket.socket | None:
    """The socket for probes and metrics; BadInput for an invalid address, exit code 1 if it is in use."""
    if not text:
        return None
    if not is_address(text):
        loading.complain(f"error: --metrics-listen: found {texts.quote(text)}; write ADDRESS:PORT")
        raise loading.BadInput
    try:
        return bind(text)
    except OSError as error:
        loading.complain(f"error: --metrics-listen: {error}")
        raise typer.Exit(1) from None


def pages(controller: Controller) -> dict[str, Callable[[], side_port.Answer]]:
    """The pages of the controller's port."""
    return {
        "/livez": side_port.probe(controller.stuck, "alive"),
        "/readyz": side_port.probe(controller.unready, "ready", controller.certificate_days),
        "/metrics": side_port.metrics(controller.metrics.text),
    }


def certificates_of(controller: Controller, given: str, policy: Policy) -> Certificates:
    """The certificates that the controller rotates, for the DNS names of the webhook."""
    namespace, name = pair(given, "--tls-secret")
    target, addresses = controller.target, list[str]()
    if controller.registrar.static:
        loading.complain(
            "error: --static: --tls-secret would exchange the CA, which API servers read from files;"
            " bring a certificate of your own"
        )
        raise loading.BadInput
    if target.ca:
        loading.complain("error: --ca-file: the controller makes its own CA with --tls-secret")
        raise loading.BadInput
    if target.service is not None:
        space, service, _ = target.service
        dns = [f"{service}.{space}.svc", f"{service}.{space}.svc.cluster.local"]
    else:
        host = urlsplit(target.url).hostname or ""
        is_address = ":" in host or host.replace(".", "").isdigit()
        dns, addresses = ([], [host]) if is_address else ([host], [])
    names = Names.of(dns, addresses)
    return Certificates(controller.server, namespace, names, name, f"{name}-ca", policy)


def pair(text: str, flag: str) -> tuple[str, str]:
    """NAMESPACE/NAME as a pair; BadInput if it has another form."""
    namespace, slash, name = text.partition("/")
    if not (namespace and slash and name) or "/" in name:
        loading.complain(f"error: {flag}: found {texts.quote(text)}; write NAMESPACE/NAME")
        raise loading.BadInput
    return namespace, name


async def run_until_signalled(controller: Controller) -> None:
    """Run until SIGTERM or SIGINT."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    await controller.run(stop)


def names() -> list[Wanted]:
    """The names of podgate's configurations."""
    return [Wanted(each) for each in configurations({}, Target(url="https://podgate"))]


def done(work: Coroutine[Any, Any, list[str]]) -> None:
    """Run a task on the cluster and print its lines."""
    try:
        for line in asyncio.run(work):
            print(line)
    except (ApiError, CredentialsError) as error:
        loading.complain(f"error: {error}")
        raise typer.Exit(loading.BAD_INPUT) from None


def server_of(kubeconfig: Path | None) -> ApiServer:
    """The cluster of the kubeconfig."""
    try:
        return ApiServer(credentials_for(kubeconfig, os.environ))
    except CredentialsError as error:
        loading.complain(f"error: {error}")
        raise typer.Exit(loading.BAD_INPUT) from None


@hooks.command("off")
def off(kubeconfig: KubeconfigFile = None) -> None:
    """Make every hook fail open, until `podgate hooks on`.

    This does not change hooks that API servers read from files.
    """
    done(switch(server_of(kubeconfig), off=True))


@hooks.command("on")
def on(kubeconfig: KubeconfigFile = None) -> None:
    """Undo `podgate hooks off`: the controller makes hooks fail closed again once it has tested them."""
    done(switch(server_of(kubeconfig), off=False))


@hooks.command("show")
def show(kubeconfig: KubeconfigFile = None) -> None:
    """Show each configuration, and whether it fails open or closed."""
    done(describe_hooks(server_of(kubeconfig)))


@hooks.command("remove")
def remove(
    kubeconfig: KubeconfigFile = None,
    lease: Annotated[
        str,
        typer.Option(
            "--lease",
            metavar="NAMESPACE/NAME",
            help="The Lease of controllers that still run. It is held for a minute, so that they do not"
            " create the configurations again.",
        ),
    ] = "",
) -> None:
    """Delete the webhook configurations. This is the first step to remove podgate."""
    try:
        place = pair(lease, "--lease") if lease else None
    except loading.BadInput:
        raise typer.Exit(loading.BAD_INPUT) from None
    done(remove_hooks(server_of(kubeconfig), place))


async def switch(server: ApiServer, *, off: bool) -> list[str]:
    """Switch every configuration that exists."""
    lines = []
    for each in names():
        found = await server.find(each.path)
        if found is None:
            lines.append(f"{label(each)} is not there")
            continue
        await server.merge(each.path, switch_change(found, off=off))
        lines.append(
            f"{label(each)} "
            + (
                "fails open now"
                if off
                else "is the controller's again, which alone lets it fail closed"
            )
        )
    return [*lines, *([FILES] if off else [])]


async def describe_hooks(server: ApiServer) -> list[str]:
    """One line on each configuration."""
    lines = []
    for each in names():
        found = await server.find(each.path)
        state = "is not there"
        if found is not None:
            state = "fails closed" if fails_closed(found) else "fails open"
            if is_switched_off(found):
                state += ", switched off"
        lines.append(f"{label(each)} {state}")
    return lines


async def remove_hooks(server: ApiServer, lease: tuple[str, str] | None = None) -> list[str]:
    """Delete the configurations, while holding the controllers' Lease."""
    lines = [await take_lease(server, Election(*lease, "podgate-removal", HELD))] if lease else []
    for each in names():
        was = await server.find(each.path) is not None
        await server.delete(each.path)
        lines.append(f"{label(each)} " + ("deleted" if was else "is not there"))
    return lines


async def take_lease(server: ApiServer, election: Election) -> str:
    """Take a Lease from its holder, and wait until the holder must have noticed."""
    name = f"lease.coordination.k8s.io/{election.name}"
    for _ in range(TRIES):
        found = await server.find(election.path)
        if found is None:
            return f"{name} is not there"
        now = datetime.now(UTC)
        led = election.step(found, now) == "wait"
        try:
            await server.ask("PUT", election.path, election.lease_with_us(found, now))
        except ApiError as error:
            if error.code != 409:
                raise
            continue  # the holder has just renewed it
        if led:
            await asyncio.sleep(RENEWED + ROUND)
        return f"{name} is held for {election.seconds} s"
    raise ApiError(409, f"{name} could not be had: it changes all the time; try again")


def label(wanted: Wanted) -> str:
    """Kind and name, as kubectl prints them."""
    return f"{wanted.body['kind'].lower()}/{wanted.body['metadata']['name']}"
