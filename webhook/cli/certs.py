"""podgate certs: development certificates for a webhook on this machine."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from certs.development import ensure_development_certificates
from certs.problem import CertificateProblem
from webhook.cli import loading

LOCAL_NAMES = ["localhost"]
LOCAL_ADDRESSES = ["127.0.0.1", "::1"]

Folder = Annotated[
    Path,
    typer.Option(
        "--dir", envvar="PODGATE_CERTS_DIR", help="Folder for tls.crt, tls.key, ca.crt, ca.key."
    ),
]
Dns = Annotated[list[str] | None, typer.Option("--dns", help="DNS name of the server; may repeat.")]
Addresses = Annotated[
    list[str] | None, typer.Option("--ip", help="Address of the server; may repeat.")
]
Days = Annotated[
    int, typer.Option("--days", min=1, help="How long the server certificate is valid.")
]
Force = Annotated[bool, typer.Option("--force", help="Make new ones even where the old are good.")]


def certs(
    directory: Folder = Path("certs-dev"),
    dns: Dns = None,
    ip: Addresses = None,
    days: Days = 30,
    force: Force = False,
) -> None:
    """Make development certificates, or keep those that are still good for the same names."""
    local = not dns and not ip
    try:
        outcome = ensure_development_certificates(
            directory,
            dns or (LOCAL_NAMES if local else []),
            ip or (LOCAL_ADDRESSES if local else []),
            datetime.now(UTC),
            days,
            force=force,
        )
    except CertificateProblem as problem:
        loading.complain(f"error: {problem}")
        raise typer.Exit(loading.BAD_INPUT) from None
    print(outcome)
