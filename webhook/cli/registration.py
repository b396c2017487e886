"""podgate registration: the webhook configurations for the kinds that have definitions."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Annotated, Any
from urllib.parse import urlsplit

import typer
import yaml

from webhook.cli import loading
from webhook.controller.certificates import first_end
from webhook.controller.registration import Options, Target, configurations
from webhook.controller.static_registration import FOLDERS, admission_configuration, heading, static
from webhook.documents import texts

Service = Annotated[
    str | None,
    typer.Option("--service", metavar="NAMESPACE/NAME[:PORT]", help="The webhook's Service."),
]
Url = Annotated[
    str | None, typer.Option("--url", help="HTTPS address of the webhook, instead of a Service.")
]
CaFile = Annotated[
    Path | None,
    typer.Option("--ca-file", help="PEM file with the CA of the webhook's certificate."),
]
Governed = Annotated[
    str,
    typer.Option(
        "--governed",
        help="label: only namespaces with the label podgate.dev/governed=true; all: all namespaces.",
    ),
]
Timeout = Annotated[
    int, typer.Option("--timeout", min=1, max=30, help="Seconds the API server waits.")
]

Exempt = Annotated[
    list[str] | None,
    typer.Option(
        "--exempt",
        metavar="NAMESPACE",
        help="Namespace that is never governed, because the cluster needs it to start. Repeatable.",
    ),
]
BreakGlass = Annotated[
    list[str] | None,
    typer.Option(
        "--break-glass", metavar="GROUP", help="Group whose members bypass podgate. Repeatable."
    ),
]

FailOpen = Annotated[
    bool,
    typer.Option("--fail-open", help="Never reject requests while podgate does not answer."),
]
Static = Annotated[
    bool,
    typer.Option(
        "--static",
        help="Print files that Kubernetes 1.37 and newer read from disk. Needs --url and --ca-file.",
    ),
]
To = Annotated[
    Path | None,
    typer.Option(
        "--to",
        metavar="FOLDER",
        help="With --static: write the files below this folder, with an AdmissionConfiguration.",
    ),
]
SOON = 30
"""Days before the expiry of a CA from which podgate warns."""


def registration(
    service: Service = None,
    url: Url = None,
    ca_file: CaFile = None,
    interfaces: loading.Interfaces = None,
    crds: loading.Crds = None,
    governed: Governed = "label",
    timeout: Timeout = 3,
    exempt: Exempt = None,
    break_glass: BreakGlass = None,
    fail_open: FailOpen = False,
    is_static: Static = False,
    to: To = None,
) -> None:
    """Print the webhook configurations as YAML: mutating, validating, and the one for podgate's documents.

    With --crds, reports served versions without a definition on stderr.
    """
    try:
        loading.check_choice(governed, ("label", "all"), "--governed")
        target = target_of(service, url, ca_file)
        end = end_of(target, is_static=is_static, to=to)
        catalog = loading.catalog_of(loading.sources_of(None, interfaces, None, crds=crds))
    except loading.BadInput:
        raise typer.Exit(loading.BAD_INPUT) from None
    options = Options(
        governed=governed,
        timeout_seconds=timeout,
        validate_failure="Ignore" if fail_open else "Fail",
        exempt=tuple(exempt or ()),
        break_glass=tuple(break_glass or ()),
    )
    found = configurations(catalog.definitions, target, options)
    if end is None:
        print(yaml.safe_dump_all(found, sort_keys=False), end="")
        return
    found = static(found)
    if to is None:
        sys.stdout.write(text_of(found, end))
    else:
        try:
            write(to, found, end)
        except OSError as error:
            loading.complain(f"error: --to {to}: {error.filename or ''}: {error.strerror}")
            raise typer.Exit(loading.BAD_INPUT) from None
    report(target, end)


def end_of(target: Target, *, is_static: bool, to: Path | None) -> datetime | None:
    """Return when the CA in the files expires, None without files; BadInput if files cannot be used so."""
    if not is_static:
        if to is not None:
            loading.complain("error: --to: only the files of --static are written")
            raise loading.BadInput
        return None
    wrong = ""
    if not target.url:
        wrong = "give --url: an API server that reads files knows no Services"
    elif not target.ca:
        wrong = "give --ca-file: a CA cannot be added to these files later"
    if wrong:
        loading.complain(f"error: --static: {wrong}")
        raise loading.BadInput
    end = first_end(target.ca)
    assert end is not None  # target_of has read it
    if end <= datetime.now(UTC):
        loading.complain(f"error: --ca-file: a certificate in it ended at {end:%Y-%m-%dT%H:%M:%SZ}")
        raise loading.BadInput
    return end


def text_of(found: list[dict[str, Any]], end: datetime) -> str:
    """Return configurations as documents of YAML, each below its comment."""
    return "---\n".join(
        heading(each, end) + yaml.safe_dump(each, sort_keys=False) for each in found
    )


def write(folder: Path, found: list[dict[str, Any]], end: datetime) -> None:
    """Write each configuration into the folder of its plugin, and the file that names these folders."""
    folder = folder.absolute()
    for kind, name in FOLDERS.items():
        target = folder / name
        target.mkdir(parents=True, exist_ok=True)
        text = text_of([each for each in found if each["kind"] == kind], end)
        # API servers read the folder at any time, so each file is replaced atomically.
        partial = target / "podgate.partial"
        partial.write_text(text, "utf-8")
        partial.replace(target / "podgate.yaml")
    plugins = admission_configuration(PurePosixPath(folder.as_posix()))
    (folder / "admission.yaml").write_text(yaml.safe_dump(plugins, sort_keys=False), "utf-8")


def report(target: Target, end: datetime) -> None:
    """Report on stderr how long the files are valid, and what to know before using them."""
    days = (end - datetime.now(UTC)).days
    level = "warning: " if days < SOON else ""
    loading.complain(
        f"{level}the CA ends at {end:%Y-%m-%dT%H:%M:%SZ}, in {days} days; replace the files before that"
    )
    host = urlsplit(target.url).hostname or ""
    if host.endswith((".svc", ".svc.cluster.local")):
        loading.complain(
            f"warning: --url: API servers do not resolve {host}, which is a Service's name"
        )
    loading.complain(
        "note: do not register podgate through the API as well, or every review comes twice:"
        " `podgate hooks remove`, and `podgate control --static`"
    )
    loading.complain(
        "note: `podgate hooks off` cannot switch files off; docs/runbooks.md#static-files"
    )


def target_of(service: str | None, url: str | None, ca_file: Path | None) -> Target:
    """The address of the webhook, from the options."""
    ca = b""
    if ca_file is not None:
        try:
            ca = ca_file.read_bytes()
        except OSError as error:
            loading.complain(f"error: --ca-file {ca_file}: {error.strerror}")
            raise loading.BadInput from None
        if ca and first_end(ca) is None:
            loading.complain(f"error: --ca-file {ca_file}: there is no PEM certificate in it")
            raise loading.BadInput
    if (service is None) == (url is None):
        loading.complain("error: give --service NAMESPACE/NAME or --url https://…, one of them")
        raise loading.BadInput
    if url is not None:
        if wrong := fault_of(url):
            loading.complain(f"error: --url: found {texts.quote(url)}; {wrong}")
            raise loading.BadInput
        return Target(url=url, ca=ca)
    assert service is not None
    namespace, _, rest = service.partition("/")
    name, _, port = rest.partition(":")
    if not namespace or not name or (port and not port.isdecimal()):
        loading.complain(
            f"error: --service: found {texts.quote(service)}; write NAMESPACE/NAME or NAMESPACE/NAME:PORT"
        )
        raise loading.BadInput
    return Target(service=(namespace, name, int(port or 443)), ca=ca)


def fault_of(url: str) -> str:
    """Return why an API server would reject a webhook's address, "" if it would not."""
    if not url.startswith("https://"):
        return "the API server calls https only"
    try:
        parts = urlsplit(url)
        number = parts.port
    except ValueError as error:
        return f"it is no address: {error}"
    if not parts.hostname or number == 0:
        return "write https://HOST:PORT"
    if "?" in url or "#" in url or "@" in parts.netloc:
        return "leave out user, query and fragment"
    return ""
