"""Runs commands of podgate in this process."""

from __future__ import annotations

from functools import cache
from typing import Any
from unittest import mock

from click.testing import Result
from typer.main import get_command
from typer.testing import CliRunner

from webhook.cli.main import app


@cache
def command() -> Any:
    """All commands with their options, which take a tenth of a second to build."""
    return get_command(app)


def podgate(*arguments: str, stdin: str | None = None) -> Result:
    """The outcome of one command: exit_code, stdout, stderr."""
    with mock.patch("typer.testing._get_command", return_value=command()):
        return CliRunner().invoke(app, list(arguments), input=stdin, catch_exceptions=False)
