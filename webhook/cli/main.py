"""podgate's command line: one command per file, assembled here."""

from __future__ import annotations

import gc
import os
import sys
from importlib import metadata
from typing import Annotated

import typer

from webhook.cli import loading
from webhook.cli.apply import apply
from webhook.cli.audit import audit
from webhook.cli.certs import certs
from webhook.cli.control import control, hooks
from webhook.cli.convert import convert
from webhook.cli.crds import crds
from webhook.cli.explain import explain
from webhook.cli.interface import interface
from webhook.cli.lint import lint
from webhook.cli.registration import registration
from webhook.cli.review import review
from webhook.cli.schema import schema
from webhook.cli.serve import serve
from webhook.cli.test import run_cases
from webhook.server.serve import COLLECTION

app = typer.Typer(
    name="podgate",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    help="Workload policies for every pod spec of any workload kind.",
)


def print_version(asked: bool) -> None:
    """Print the version, if requested, and exit."""
    if asked:
        print(f"podgate {metadata.version('podgate')}")
        raise typer.Exit


@app.callback()
def about(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            help="Print the version and exit.",
            is_eager=True,
            callback=print_version,
        ),
    ] = False,
) -> None:
    """Workload policies for every pod spec of any workload kind."""


app.command()(apply)
app.command()(review)
app.command()(serve)
app.command()(certs)
app.command()(registration)
app.command()(lint)
app.command()(convert)
app.command()(schema)
app.command()(explain)
app.add_typer(interface, name="interface")
app.add_typer(crds, name="crds")
app.command()(control)
app.command()(audit)
app.add_typer(hooks, name="hooks")
app.command("test")(run_cases)


def main() -> None:
    """Entry point of `podgate` and `kubectl podgate`. Reports an error in podgate itself in two lines."""
    # Definitions are many small objects that are never freed. The garbage collector would check them
    # so often that loading takes a fifth longer.
    gc.set_threshold(*COLLECTION)
    try:
        app()
    except Exception as error:
        if os.environ.get("PODGATE_TRACEBACK"):
            raise
        loading.complain(f"error: {loading.fault_text(error)}")
        loading.complain(loading.SEE_FAULT)
        sys.exit(loading.FAULT)
