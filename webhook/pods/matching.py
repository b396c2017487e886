"""Runs programs on an object, and turns their errors into location errors."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from webhook.jq.path import Match, Program, QueryError
from webhook.pods.location import LocationError


def matches(programs: Iterable[Program], document: Any) -> list[Match]:
    """Return what the programs find in the document, including nulls. Raises LocationError."""
    try:
        return [each for program in programs for each in program.matches_or_none(document)]
    except QueryError as error:
        raise LocationError((), "path-failed", str(error)) from error
