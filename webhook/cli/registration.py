"""podgate registration: the webhook configurations for the kinds that have definitions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
import yaml

from webhook.cli import loading
from webhook.control.registration import Options, Target, configurations

Service = Annotated[
    str | None,
    typer.Option("--service", metavar="NAMESPACE/NAME[:PORT]", help="The webhook's Service."),
]
Url = Annotated[str | None, typer.Option("--url", help="The webhook's https address instead.")]
CaFile = Annotated[Path | None, typer.Option("--ca-file", help="PEM that signs its certificate.")]
Governed = Annotated[
    str,
    typer.Option("--governed", help="label: namespaces labelled podgate.dev/governed=true; all."),
]
Timeout = Annotated[
    int, typer.Option("--timeout", min=1, max=30, help="Seconds the API server waits.")
]

Exempt = Annotated[
    list[str] | None,
    typer.Option(
        "--exempt",
        metavar="NAMESPACE",
        help="Never governed: the cluster boots from it. Repeatable.",
    ),
]
BreakGlass = Annotated[
    list[str] | None,
    typer.Option(
        "--break-glass", metavar="GROUP", help="Its members pass without being asked. Repeatable."
    ),
]


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
) -> None:
    """Print the webhook configurations as YAML: mutating, validating, that of our documents.

    With the cluster's CRDs, versions that are served and have no definition are told on stderr.
    """
    try:
        loading.checked(governed, ("label", "all"), "--governed")
        target = target_of(service, url, ca_file)
        catalog = loading.catalog_of(loading.sources_of(None, interfaces, None, crds=crds))
    except loading.BadInput:
        raise typer.Exit(loading.BAD_INPUT) from None
    options = Options(
        governed=governed,
        timeout_seconds=timeout,
        exempt=tuple(exempt or ()),
        break_glass=tuple(break_glass or ()),
    )
    found = configurations(catalog.definitions, target, options)
    print(yaml.safe_dump_all(found, sort_keys=False), end="")


def target_of(service: str | None, url: str | None, ca_file: Path | None) -> Target:
    """Where the webhook is, from the options."""
    ca = b""
    if ca_file is not None:
        try:
            ca = ca_file.read_bytes()
        except OSError as error:
            loading.complain(f"error: --ca-file {ca_file}: {error.strerror}")
            raise loading.BadInput from None
    if (service is None) == (url is None):
        loading.complain("error: give --service NAMESPACE/NAME or --url https://…, one of them")
        raise loading.BadInput
    if url is not None:
        if not url.startswith("https://"):
            loading.complain(f"error: --url: found {url!r}; the API server calls https only")
            raise loading.BadInput
        return Target(url=url, ca=ca)
    assert service is not None
    namespace, _, rest = service.partition("/")
    name, _, port = rest.partition(":")
    if not namespace or not name or (port and not port.isdecimal()):
        loading.complain(
            f"error: --service: found {service!r}; write NAMESPACE/NAME or NAMESPACE/NAME:PORT"
        )
        raise loading.BadInput
    return Target(service=(namespace, name, int(port or 443)), ca=ca)
