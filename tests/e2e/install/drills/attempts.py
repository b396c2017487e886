"""What people of a drill do to one object after another: every request, with what must come of it."""

from __future__ import annotations

import copy
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

from tests.e2e.objects import Json, at
from tests.e2e.soak.things import Sort, renamed

JSON = "application/json"
MERGE = "application/merge-patch+json"
PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"
PYTHON, PROXY = "registry.example.com/base/python:3.12", "registry.example.com/base/proxy:1"
TOOLS = "registry.example.com/base/tools:1"
SWING = "registry.example.com/base/swing:1"
"""An image that some rules let pass and others do not."""
EVIL = "evil/miner:1"
WITH_ALL = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}


@dataclass(frozen=True, slots=True)
class Attempt:
    """One request; `wanted` is what would be stored without podgate, None where nothing is judged."""

    deed: str
    method: str
    path: str
    body: Any = None
    wanted: Json | None = None
    content: str = JSON


Life = Generator[Attempt, Json, None]


@dataclass(frozen=True, slots=True)
class Kind:
    """A sort of object, and what the server makes of its document where nothing is governed."""

    sort: Sort
    bare: Json

    def document(self, name: str) -> Json:
        """What people write."""
        return self.sort.named(name)

    def unjudged(self, name: str) -> Json:
        """What would be stored of that without podgate, but for the name."""
        own = self.sort.document["metadata"]["name"]
        body = {**self.bare, "metadata": {**self.bare["metadata"], "name": own}}
        found = renamed(body, own, name)
        del found["metadata"]["name"]
        return found


def life(kind: Kind, name: str) -> Life:
    """An object from what is tried in vain, by way of its making and changes, to its end.

    Every request is answered with what is stored, {} where it was refused as it must be.
    """
    for image, privileged in ((EVIL, False), (PYTHON, True), (SWING, False)):
        yield creation(kind, f"{name}-bad", image, privileged=privileged, dry_run=True)
    stored = yield creation(kind, name)
    stored = yield label(stored, kind, name)
    yield apply(stored, kind, name)
    if kind.sort.pod:
        yield replaced(stored, kind, name, EVIL)
        yield replaced(stored, kind, name, TOOLS)
    yield Attempt("delete", "DELETE", kind.sort.path(name), WITH_ALL)


def creation(
    kind: Kind, name: str, image: str = "", *, privileged: bool = False, dry_run: bool = False
) -> Attempt:
    """Make an object, with another image or a privileged container where one is given."""
    document, wanted = kind.document(name), kind.unjudged(name)
    for each in (document, wanted):
        main = at(each, kind.sort.broken)
        main["image"] = image or main["image"]
        if privileged:
            main["securityContext"] = {"privileged": True}
    path = kind.sort.path() + ("?dryRun=All" if dry_run else "")
    return Attempt("create", "POST", path, document, wanted)


def label(stored: Json, kind: Kind, name: str) -> Attempt:
    """A merge patch that changes a label and nothing else."""
    labels = {"example.com/seen": "yes"}
    wanted = copy.deepcopy(stored)
    wanted["metadata"]["labels"] = {**wanted["metadata"].get("labels", {}), **labels}
    body = {"metadata": {"labels": labels}}
    return Attempt("label", "PATCH", kind.sort.path(name), body, wanted, MERGE)


def apply(stored: Json, kind: Kind, name: str) -> Attempt:
    """The document applied on the server's side, which must change nothing."""
    path = f"{kind.sort.path(name)}?fieldManager=people&force=true"
    return Attempt("apply", "PATCH", path, kind.document(name), stored, APPLY)


def replaced(stored: Json, kind: Kind, name: str, image: str) -> Attempt:
    """A JSON patch that gives the first container another image."""
    wanted = copy.deepcopy(stored)
    at(wanted, kind.sort.broken)["image"] = image
    place = f"/{kind.sort.broken.replace('.', '/')}/image"
    body = [{"op": "replace", "path": place, "value": image}]
    return Attempt("image", "PATCH", kind.sort.path(name), body, wanted, PATCH)
