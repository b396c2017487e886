"""podgate interface: draft, check and show definitions of kinds; read and change objects."""

from __future__ import annotations

import typer

from webhook.cli.interface_change import suspend, update
from webhook.cli.interface_check import check
from webhook.cli.interface_extract import extract
from webhook.cli.interface_infer import infer
from webhook.cli.interface_show import show
from webhook.cli.interface_tree import tree

interface = typer.Typer(
    no_args_is_help=True,
    help="Draft, check and show definitions of kinds; read and change objects with them.",
)
interface.command()(infer)
interface.command()(check)
interface.command()(show)
interface.command()(extract)
interface.command()(tree)
interface.command()(update)
interface.command()(suspend)
