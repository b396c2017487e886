"""Checks the head of a call before its body is read, and sends JSON answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import orjson

Scope = MutableMapping[str, Any]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
CLOSE = ((b"connection", b"close"),)


def unfit(scope: Scope) -> tuple[int, bytes, tuple[tuple[bytes, bytes], ...]] | None:
    """Status, body and headers for a call that is refused before its body is read; None if accepted."""
    if scope["method"] != "POST":
        message = (
            f"{scope['method']} is not for {scope['path']}; send a POST with an AdmissionReview"
        )
        return 405, problem(message), ((b"allow", b"POST"),)
    for name, value in scope["headers"]:
        if name == b"content-type":
            if value == b"application/json":
                return None
            if value.split(b";", 1)[0].strip().lower() == b"application/json":
                return None
            found = value.decode("latin-1")[:80]
            return 415, problem(f"content type {found} is not application/json"), CLOSE
    return 415, problem("there is no content type; send application/json"), CLOSE


def parent_of(scope: Scope) -> str:
    """The caller's W3C `traceparent`; empty without one."""
    for name, value in scope["headers"]:
        if name == b"traceparent":
            return str(value, "latin-1")
    return ""


def declared_length(scope: Scope) -> tuple[int, bool]:
    """The announced content length (0 if unknown), and whether the client expects `100 Continue`."""
    length, expects = 0, False
    for name, value in scope["headers"]:
        if name == b"content-length" and value.isdigit():
            length = int(value[:18])
        elif name == b"expect":
            expects = True
    return length, expects


def problem(message: str) -> bytes:
    """A JSON body that says what is wrong with a call."""
    return orjson.dumps({"error": message})


async def answer(
    send: Send, status: int, body: bytes, headers: tuple[tuple[bytes, bytes], ...] = ()
) -> None:
    """Send one JSON answer; with status 503 it asks the caller to retry."""
    length = b"%d" % len(body)
    if status == 503:
        headers = (*headers, (b"retry-after", b"1"))
    fields = [(b"content-type", b"application/json"), (b"content-length", length), *headers]
    await send({"type": "http.response.start", "status": status, "headers": fields})
    await send({"type": "http.response.body", "body": body})
