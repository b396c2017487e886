"""Liveness, readiness, the state of a server and its metrics, over HTTP."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import Any

import orjson
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from webhook.server.call import State

TEXT_OF_METRICS = "text/plain; version=0.0.4; charset=utf-8"


def probes(state: State, metrics: Callable[[], bytes] | None) -> Starlette:
    """/livez, /readyz, /statusz and, if given, /metrics; errors are JSON."""

    async def livez(request: Request) -> Response:
        return json_response(200, {"status": "alive"})

    async def readyz(request: Request) -> Response:
        reasons = state.reasons()
        status = "not ready" if reasons else "ready"
        body = {"status": status, "reasons": reasons, "catalog": state.generation}
        if math.isfinite(state.leaf_ends):
            body["certificate_days"] = round(state.days_left(), 1)
        return json_response(503 if reasons else 200, body)

    async def counters(request: Request) -> Response:
        assert metrics is not None
        text = await asyncio.to_thread(metrics)
        return Response(text, media_type=TEXT_OF_METRICS)

    async def wrong(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        messages = {
            404: f"there is nothing at {request.url.path[:80]}",
            405: f"{request.method} is not for {request.url.path[:80]}",
        }
        text = messages.get(error.status_code, error.detail)
        return json_response(error.status_code, {"error": text}, dict(error.headers or {}))

    async def failed(request: Request, error: Exception) -> Response:
        return json_response(500, {"error": "this failed, see podgate's log"})

    async def statusz(request: Request) -> Response:
        judge = state.judge
        workers = (await asyncio.to_thread(judge.status)).workers if judge is not None else ()
        body = {"catalog": state.generation, "workers": list(workers), "leaf": state.leaf}
        return json_response(200, body)

    routes = [Route("/livez", livez), Route("/readyz", readyz), Route("/statusz", statusz)]
    if metrics is not None:
        routes.append(Route("/metrics", counters))
    return Starlette(routes=routes, exception_handlers={HTTPException: wrong, Exception: failed})


def json_response(status: int, content: Any, headers: dict[str, str] | None = None) -> Response:
    """A small JSON answer of a probe."""
    return Response(orjson.dumps(content), status, headers, media_type="application/json")
