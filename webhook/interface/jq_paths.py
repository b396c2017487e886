"""Finds every jq text of a resource interface or a profile, with its path and its purpose."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from webhook.jq.path import Program, compile_query
from webhook.objects.path import Path

OBJECT_KEYS = frozenset(
    {
        "podTemplateSpecPath",
        "podSpecPath",
        "metadataPath",
        "schedulerNamePath",
        "labelsPath",
        "annotationsPath",
        "resourcesPath",
        "resourceClaimsPath",
        "podAffinityPath",
        "nodeAffinityPath",
        "containersPath",
        "containerPath",
        "priorityClassNamePath",
        "imagePath",
        "replicasPath",
        "minReplicasPath",
        "maxReplicasPath",
        "instanceIdPath",
        "path",
        "place",
        "places",
        "write",
        "secondPlaces",
        "except",
        "onlyWith",
        "notWith",
        "mergedWith",
        "leaderWith",
        "namedAt",
        "minimum",
        "maximum",
        "maximumOnlyWith",
        "kindPlace",
        "impliedBy",
        "replicas",
        "openSubtrees",
        "claimTemplates",
        "claims",
        "templates",
        "onlyFor",
        "expression",
    }
)
"""Keys of texts that are evaluated on the object."""
POD_KEYS = frozenset(["keyPath", "idPath", "groupByKeyPaths", "filters"])
"""Keys of texts that are evaluated on a pod."""


class Text(NamedTuple):
    """One jq text: its path in the document, and whether it is evaluated on the object or a pod."""

    at: Path
    text: str
    of_pod: bool

    @property
    def key(self) -> str:
        """The last key of the path."""
        return next((str(each) for each in reversed(self.at) if isinstance(each, str)), "")

    @property
    def program(self) -> Program | None:
        """Return the text as a native program, None if it needs jq."""
        found = compile_query(self.text)
        return found if isinstance(found, Program) else None


def texts(data: Any, version: str = "") -> Iterator[Text]:
    """Return the jq texts of a document's spec, without those of other versions."""
    spec = data.get("spec") if isinstance(data, dict) else None
    if not isinstance(spec, dict):
        return
    others = spec.get("perVersion")
    own = others.get(version) if isinstance(others, dict) else None
    for key, value in spec.items():
        if key == "perVersion" or (isinstance(own, dict) and key in own):
            continue
        yield from walk(value, ("spec", key))
    if isinstance(own, dict):
        yield from walk(own, ("spec", "perVersion", version))


def walk(node: Any, at: Path) -> Iterator[Text]:
    """Return the texts below one path."""
    stack: list[tuple[Path, Any]] = [(at, node)]
    while stack:
        here, value = stack.pop()
        if isinstance(value, dict):
            stack.extend(reversed([((*here, key), each) for key, each in value.items()]))
        elif isinstance(value, list):
            stack.extend(reversed([((*here, index), each) for index, each in enumerate(value)]))
        elif isinstance(value, str) and value:
            key = next((str(each) for each in reversed(here) if isinstance(each, str)), "")
            if key in OBJECT_KEYS | POD_KEYS and not is_word(here):
                yield Text(here, value, key in POD_KEYS)


def is_word(at: Path) -> bool:
    """Whether a path has the key of a jq text, but is not one, as in defaults and labels."""
    return "value" in at or "matchLabels" in at or "byInstance" in at
