"""A null handler and a null hook on the same stack as the webhook: uvicorn, Starlette, orjson."""

from __future__ import annotations

import base64
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


PATCH = base64.b64encode(
    orjson.dumps(
        [
            {"op": "add", "path": "/spec/template/metadata/labels/team", "value": "vision"},
            {
                "op": "replace",
                "path": "/spec/template/spec/terminationGracePeriodSeconds",
                "value": 60,
            },
            {
                "op": "replace",
                "path": "/spec/template/spec/containers/0/imagePullPolicy",
                "value": "Always",
            },
            {
                "op": "add",
                "path": "/spec/template/spec/containers/0/resources/requests",
                "value": {"memory": "512M"},
            },
        ]
    )
).decode()


async def writer(request: Request) -> Response:
    """A hook that decides nothing and always writes the same four places."""
    review = orjson.loads(await request.body())
    answer = {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": {
            "uid": review["request"]["uid"],
            "allowed": True,
            "patchType": "JSONPatch",
            "patch": PATCH,
        },
    }
    return Response(orjson.dumps(answer), media_type="application/json")


def main(port: int, folder: str) -> None:
    """Serve until terminated."""
    app = Starlette(
        routes=[
            Route("/null", null, methods=["POST"]),
            Route("/hook", hook, methods=["POST"]),
            Route("/writer", writer, methods=["POST"]),
        ]
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
