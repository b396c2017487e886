"""Runs commands of podgate in this process."""

from __future__ import annotations

from click.testing import Result
from typer.testing import CliRunner

from webhook.cli.main import app


def podgate(*arguments: str, stdin: str | None = None) -> Result:
    """The outcome of one command: exit_code, stdout, stderr."""
    return CliRunner().invoke(app, list(arguments), input=stdin, catch_exceptions=False)
