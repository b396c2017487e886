"""Logging of all programs; logs never contain the content of objects."""

from __future__ import annotations

import json
import logging
import sys
import traceback
from datetime import UTC, datetime
from typing import Any, TextIO

FACTS = "facts"
LONGEST_MESSAGE, LONGEST_FACT, MOST_FACTS = 8_192, 512, 64


def shorten(value: Any, longest: int = LONGEST_FACT) -> Any:
    """Shorten a value of a log line: clients choose names and texts, which could fill the disk."""
    match value:
        case str():
            return value if len(value) <= longest else f"{value[: longest - 1]}…"
        case dict():
            return {shorten(key): shorten(each) for key, each in list(value.items())[:MOST_FACTS]}
        case list() | tuple():
            return [shorten(each) for each in value[:MOST_FACTS]]
        case bool() | int() | float() | None:
            return value
        case _:
            return shorten(str(value))


def facts_of(record: logging.LogRecord) -> dict[str, Any]:
    """The extra fields of a record."""
    facts: dict[str, Any] = shorten(getattr(record, FACTS, {}))
    return facts


def message_of(record: logging.LogRecord) -> str:
    """The message of a record."""
    return str(shorten(record.getMessage(), LONGEST_MESSAGE))


def stack(error: BaseException) -> list[str]:
    """Where an error came from, the cause first; without its message, which may quote an object."""
    lines = stack(error.__cause__) if error.__cause__ is not None else []
    lines.append(type(error).__name__)
    lines.extend(
        f"{frame.f_code.co_filename}:{line} {frame.f_code.co_qualname}"
        for frame, line in list(traceback.walk_tb(error.__traceback__))[-30:]
    )
    return lines


class JsonLines(logging.Formatter):
    """One JSON object per record; `extra={"facts": {...}}` adds fields."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as one line."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": message_of(record),
            **facts_of(record),
        }
        if record.exc_info and record.exc_info[1] is not None:
            line["stack"] = stack(record.exc_info[1])
        return json.dumps(line, default=str)


class TextLines(logging.Formatter):
    """One readable line per record; a stack trace follows on its own lines."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as text, control characters escaped."""
        at = datetime.fromtimestamp(record.created, UTC).strftime("%H:%M:%S")
        facts = " ".join(f"{name}={value}" for name, value in facts_of(record).items())
        text = f"{at} {record.levelname.lower():7} {message_of(record)} {facts}".rstrip()
        line = "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)
        if record.exc_info and record.exc_info[1] is not None:
            line += "".join(f"\n    {frame}" for frame in stack(record.exc_info[1]))
        return line


def start_logging(level: str, form: str, stream: TextIO | None = None) -> None:
    """Send every logger's records to `stream` (stderr) as `json` or `text`."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines() if form == "json" else TextLines())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
