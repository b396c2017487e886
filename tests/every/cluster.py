"""A played API server whose objects are broken."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest import mock

from click.testing import Result

from tests import corpus
from tests.every.neighbours import POD
from tests.listing import page, query_of
from webhook.cluster.client import ApiError
from webhook.pods.definition import Definition

Json = dict[str, Any]
SPACE = "neighbours"
NAMESPACE = {"metadata": {"name": SPACE, "labels": {"podgate.dev/governed": "true"}}}
COUNTED = re.compile(r"^(\d+) objects?: ", re.MULTILINE)


def plural(definition: Definition) -> str:
    """The path of the collection of a kind."""
    interface = definition.interface
    base = f"/apis/{interface.group}" if interface.group else "/api"
    return f"{base}/{interface.version}/{definition.profile.resource}"


class Server:
    """Objects by collection, between two that are sound."""

    def __init__(self, objects: Sequence[Json]) -> None:
        self.collections: dict[str, list[Any]] = {}
        self.put(sound("before"))
        for each in objects:
            self.put(each)
        self.put(sound("after"))

    def put(self, body: Json) -> None:
        """Into the collection of its kind; Pods where that is not known any more."""
        definition = None
        if isinstance(body.get("apiVersion"), str) and isinstance(body.get("kind"), str):
            definition = corpus.definition_of(body, corpus.usual())
        path = plural(definition) if definition else "/api/v1/pods"
        uid = f"uid-{sum(map(len, self.collections.values()))}"
        self.collections.setdefault(path, []).append(in_namespace(body, uid))

    async def find(self, path: str) -> Json | None:
        """No other object."""
        return None

    async def ask(self, method: str, path: str, accept: str = "") -> Json:
        """A collection, a few objects a page."""
        path, query = query_of(path)
        if path == "/api/v1/namespaces":
            return page([copy.deepcopy(NAMESPACE)], query)
        if path not in self.collections:
            raise ApiError(404, "no such collection")
        return page(copy.deepcopy(self.collections[path]), query, most=7)


def sound(name: str) -> Json:
    """A Pod that breaks one rule, and one that a controller made."""
    body = copy.deepcopy(POD)
    body["metadata"] = {"name": name, "namespace": SPACE}
    body["spec"] = {**POD["spec"], "terminationGracePeriodSeconds": 5000}  # type: ignore[dict-item]
    return body


def in_namespace(body: Json, uid: str) -> Json:
    """A copy with this uid in the governed namespace, as far as its metadata is a map."""
    metadata = body.get("metadata")
    if isinstance(metadata, dict):
        body = {**body, "metadata": {**metadata, "namespace": SPACE, "uid": uid}}
    return {key: value for key, value in body.items() if key not in ("apiVersion", "kind")}


@contextmanager
def playing(objects: Sequence[Json]) -> Iterator[Server]:
    """The commands ask this server instead of one."""
    server = Server(objects)
    module = "webhook.cli.audit"
    with (
        mock.patch(f"{module}.ApiServer", return_value=server),
        mock.patch(f"{module}.credentials_for", return_value=None),
    ):
        yield server


def wrong_in(result: Result | str, command: Sequence[str], server: Server) -> Iterator[str]:
    """What no answer of `audit` may be."""
    if isinstance(result, str):
        yield result
        return
    if result.exit_code not in (0, 1, 70) or "Traceback" in result.output:
        yield f"exit code {result.exit_code}: {result.output[-1500:]}"
    if result.exit_code == 70:
        yield result.stderr[-1500:]
    if "--injected" in command:
        return
    total = sum(map(len, server.collections.values()))
    counted = COUNTED.search(result.stderr)
    if counted is None or int(counted[1]) != total:
        yield f"{total} objects, but: {result.stderr[-300:]}"
    if "json" in command:
        names = [json.loads(each)["name"] for each in result.stdout.split("\n") if each]
        if "--candidate" not in command and not {"before", "after"} <= set(names):
            yield f"a neighbour is lost among {names}"
    elif "/before" not in result.stdout or "/after" not in result.stdout:
        yield "a neighbour is lost"
