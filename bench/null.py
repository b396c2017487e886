"""A null handler and a null hook on the same stack as the webhook: uvicorn, Starlette, orjson."""

from __future__ import annotations

import sys

import orjson
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route


async def null(request: Request) -> Response:
    """Read the body and answer a constant."""
    await request.body()
    return Response(b"{}", media_type="application/json")


async def hook(request: Request) -> Response:
    """An admission hook that decides nothing."""
    review = orjson.loads(await request.body())
    answer = {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": {"uid": review["request"]["uid"], "allowed": True},
    }
    return Response(orjson.dumps(answer), media_type="application/json")


def main(port: int, folder: str) -> None:
    """Serve until terminated."""
    app = Starlette(
        routes=[Route("/null", null, methods=["POST"]), Route("/hook", hook, methods=["POST"])]
    )
    uvicorn.run(
        app,
        host="127.0.0.1",
        port=port,
        http="httptools",
        loop="uvloop",
        access_log=False,
        log_level="error",
        timeout_keep_alive=120,
        ssl_certfile=f"{folder}/tls.crt",
        ssl_keyfile=f"{folder}/tls.key",
    )


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
