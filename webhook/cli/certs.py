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
Dns = Annotated[list[str] | None, typer.Option("--dns", help="DNS name of the server. Repeatable.")]
Addresses = Annotated[
    list[str] | None, typer.Option("--ip", help="IP address of the server. Repeatable.")
]
Days = Annotated[
    int, typer.Option("--days", min=1, help="Days that the server certificate is valid.")
]
Force = Annotated[
    bool, typer.Option("--force", help="Create new ones even if the old ones are valid.")
]


def certs(
    directory: Folder = Path("certs-dev"),
    dns: Dns = None,
    ip: Addresses = None,
    days: Days = 30,
    force: Force = False,
) -> None:
    """Create development certificates, unless there are valid ones for the same names."""
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
