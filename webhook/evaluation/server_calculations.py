"""Calculates defaults from other values of an object, as the API server does."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any

from webhook.objects import quantity
from webhook.objects.draft import Draft
from webhook.objects.path import ABSENT, Path, read

Amounts = dict[str, Any]
Calculation = Callable[[Draft, Path], None]

IMAGE_CLASSES = (
    "untagged", "latest", "tagged", "digest", "taggedDigest", "latestDigest", "unparsable",
)  # fmt: skip

LABEL = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
DOMAIN = rf"(?:{LABEL}(?:\.{LABEL})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
COMPONENT = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
DIGEST = r"sha256:[a-f0-9]{64}|sha384:[a-f0-9]{96}|sha512:[a-f0-9]{128}"
REFERENCE = re.compile(
    rf"(?:{DOMAIN}/)?(?P<path>{COMPONENT}(?:/{COMPONENT})*)"
    rf"(?::(?P<tag>[A-Za-z0-9_][A-Za-z0-9_.-]{{0,127}}))?(?:@(?P<digest>{DIGEST}))?"
)
IDENTIFIER = re.compile(r"[a-f0-9]{64}")
LONGEST_PATH = 255
LONGEST_KEPT = 1024
"""Longer references are not cached, so that requests cannot fill the memory."""

POD_LEVEL = re.compile(r"cpu|memory|hugepages-.*", re.DOTALL)
HUGE = "hugepages-"


def image_class(reference: str) -> str:
    """Return the member of IMAGE_CLASSES for an image reference. It decides on the pull policy."""
    return _known_class(reference) if len(reference) <= LONGEST_KEPT else _class_of(reference)


def _class_of(reference: str) -> str:
    match = REFERENCE.fullmatch(_normalize_image(reference))
    if match is None or len(match["path"]) > LONGEST_PATH or IDENTIFIER.fullmatch(reference):
        return "unparsable"
    kind = {None: "", "latest": "latest"}.get(match["tag"], "tagged")
    if match["digest"]:
        return f"{kind}Digest" if kind else "digest"
    return kind or "untagged"


_known_class = lru_cache(maxsize=4096)(_class_of)


def _normalize_image(reference: str) -> str:
    """Return a reference with its registry, such as `docker.io/library/nginx` for `nginx`."""
    head, slash, rest = reference.partition("/")
    registry = "." in head or ":" in head or head == "localhost" or head.lower() != head
    if not slash or not registry:
        head, rest = "docker.io", reference
    elif head == "index.docker.io":
        head = "docker.io"
    if head == "docker.io" and "/" not in rest:
        rest = f"library/{rest}"
    return f"{head}/{rest}"


def requests_from_limits(draft: Draft, spec_path: Path) -> None:
    """Copy each limit of a container without a request of that name into the requests."""
    for path, _ in _containers(draft, spec_path):
        resources = (*path, "resources")
        for name, amount in _amounts(draft, resources, "limits").items():
            _put(draft, (*resources, "requests"), name, amount)


def pod_hugepage_limits(draft: Draft, spec_path: Path) -> None:
    """Set pod-level limits for huge pages to those of the containers, if pod-level resources are used."""
    resources = (*spec_path, "resources")
    limits, requests = _amounts(draft, resources, "limits"), _amounts(draft, resources, "requests")
    if not limits and not requests:
        return
    for name, amount in _effective(draft, spec_path, "limits").items():
        if name.startswith(HUGE) and name not in requests:
            _put(draft, (*resources, "limits"), name, amount)


def pod_requests(draft: Draft, spec_path: Path) -> None:
    """Set missing pod-level requests to the sum of the containers', else to the pod's own limits."""
    resources = (*spec_path, "resources")
    if not (limits := _amounts(draft, resources, "limits")):
        return
    used = _effective(draft, spec_path, "requests")
    common = {name: amount for name, amount in used.items() if not name.startswith(HUGE)}
    for name, amount in {**limits, **common}.items():
        if POD_LEVEL.fullmatch(name):
            _put(draft, (*resources, "requests"), name, amount)


CALCULATIONS: dict[str, Calculation] = {
    "requests-from-limits": requests_from_limits,
    "pod-hugepage-limits-from-containers": pod_hugepage_limits,
    "pod-requests-from-containers-and-limits": pod_requests,
}
"""The `rule` forms of the server-default table, without `image-tag`."""


def _containers(draft: Draft, spec_path: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    for name in ("initContainers", "containers"):
        found = read(draft.document, (*spec_path, name))
        for index, body in enumerate(found if type(found) is list else ()):
            if type(body) is dict:
                yield (*spec_path, name, index), body


def _amounts(draft: Draft, resources: Path, key: str) -> Amounts:
    """Return the amounts by name, without nulls. Empty if the value is not a map."""
    found = read(draft.document, (*resources, key))
    if type(found) is not dict:
        return {}
    return {name: one for name, one in found.items() if one is not None and type(name) is str}


def _put(draft: Draft, resources: Path, name: str, amount: Any) -> None:
    """Set an amount in the map at `resources`, unless it is set or the value is not a map."""
    found = read(draft.document, resources)
    if found is None or found is ABSENT or (type(found) is dict and name not in found):
        draft.set((*resources, name), amount)


def _effective(draft: Draft, spec_path: Path, key: str) -> Amounts:
    """Return the amounts of all containers: the larger of those at start and those while running."""
    each = [
        (path[-2] == "containers", body.get("restartPolicy") == "Always", found)
        for path, body in _containers(draft, spec_path)
        if (found := _amounts(draft, (*path, "resources"), key))
    ]
    names = dict.fromkeys(name for _, _, found in each for name in found)
    total = {name: _total(name, each) for name in names if POD_LEVEL.fullmatch(name)}
    return {name: amount for name, amount in total.items() if amount is not None}


def _total(name: str, each: Iterable[tuple[bool, bool, Amounts]]) -> Any:
    """Return the effective amount of one resource, None if an amount is invalid."""
    sidecars = starting = running = 0
    try:
        for runs, restarts, found in each:
            amount = quantity.parse(found[name]) if name in found else 0
            if runs:
                running += amount
            elif restarts:
                sidecars += amount
            starting = max(starting, sidecars + (0 if runs or restarts else amount))
        return quantity.render(max(starting, sidecars + running))
    except ValueError:
        return None
