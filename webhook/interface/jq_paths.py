"""Every jq text of a resource interface or a profile, with its place and what it is for."""

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
"""Keys whose values are looked for in the object."""
POD_KEYS = frozenset(["keyPath", "idPath", "groupByKeyPaths", "filters"])
"""Keys whose values are looked for in a pod."""


class Text(NamedTuple):
    """One jq text: its place in the document, and whether it is looked for in the object or a pod."""

    at: Path
    text: str
    of_pod: bool

    @property
    def key(self) -> str:
        """The last key of its place."""
        return next((str(each) for each in reversed(self.at) if isinstance(each, str)), "")

    @property
    def program(self) -> Program | None:
        """The text as a native program, None where it is left to jq."""
        found = compile_query(self.text)
        return found if isinstance(found, Program) else None


def texts(data: Any, version: str = "") -> Iterator[Text]:
    """The jq texts of a document's spec, without those of other versions than the one named."""
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
    """The texts below one place."""
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
    """Whether a place only shares its key's name with paths: defaults and labels may."""
    return "value" in at or "matchLabels" in at or "byInstance" in at
