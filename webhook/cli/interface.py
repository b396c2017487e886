"""podgate interface: draft, check and show definitions of kinds, and read objects with them."""

from __future__ import annotations

import typer

from webhook.cli.interface_check import check
from webhook.cli.interface_extract import extract
from webhook.cli.interface_infer import infer
from webhook.cli.interface_show import show

interface = typer.Typer(
    no_args_is_help=True,
    help="Draft, check and show the definition of a kind, and read an object with it.",
)
interface.command()(infer)
interface.command()(check)
interface.command()(show)
interface.command()(extract)
