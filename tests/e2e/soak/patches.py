"""Patches in three forms for a pod spec, fine ones and ones that break a rule."""

from __future__ import annotations

from typing import Any

from tests.e2e.objects import Json

GOOD = ("registry.example.com/base/python:3.12", "registry.example.com/base/tools:1")
EVIL = "evil/miner:1"
FORMS = {
    "json": "json-patch+json",
    "merge": "merge-patch+json",
    "strategic": "strategic-merge-patch+json",
}
"""Media types by form, without `application/`."""


def edits(form: str, bad: bool, number: str, pod: str) -> tuple[Any, str]:
    """A patch of a form, fine or `bad`, for the pod spec at a dotted place; the rule it breaks."""
    main: Json = {"name": "main"}
    if form == "json":
        at_main = f"/{pod.replace('.', '/')}/containers/0"
        if bad:
            where = f"{at_main}/securityContext/privileged"
            return [{"op": "add", "path": where, "value": True}], "security.privileged"
        return [{"op": "replace", "path": f"{at_main}/image", "value": GOOD[0]}], ""
    if form == "merge":
        spec: Json = {"hostNetwork": True} if bad else {"terminationGracePeriodSeconds": 60}
        return inside(pod, spec), "security.hostNetwork"
    if bad:
        return inside(pod, {"containers": [{**main, "image": EVIL}]}), "image"
    return inside(pod, {"containers": [{**main, "env": [{"name": "N", "value": number}]}]}), ""


def inside(place: str, value: Json) -> Json:
    """A value at a dotted place, in maps."""
    for name in reversed(place.split(".")):
        value = {name: value}
    return value
