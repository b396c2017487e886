"""Locates wrapped objects, and pods in them that only the outer object names."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

from webhook.interface.interface import Component
from webhook.interface.profile import Embedded
from webhook.jq.path import Program, compile_query
from webhook.objects.path import Path, read
from webhook.pods.definition import Definition
from webhook.pods.locate import locate
from webhook.pods.location import PodLocation
from webhook.pods.matching import matches

STEP: Final = re.compile(r"([A-Za-z0-9_-]+)((?:\[\d{1,4}\])*)")
POD_SET: Final = "podSet"


@dataclass(frozen=True, slots=True)
class Embedding:
    """The value at the path of a wrapped object. `element` is the list element that contains it."""

    embedded: Embedded
    path: Path
    body: Any
    element: Path


def embeddings(definition: Definition, document: Any) -> list[Embedding]:
    """Return all values at paths of wrapped objects, in document order.

    Raises LocationError if a path cannot be read.
    """
    found: dict[Path, Embedding] = {}
    for embedded in definition.embedded:
        for path, body, bindings in matches((embedded.place,), document):
            if path is not None and body is not None and path not in found:
                element = bindings[-1] if bindings else ()
                found[path] = Embedding(embedded, path, body, element)
    return list(found.values())


def pod_sets_in(found: Iterable[Embedding], document: Any) -> dict[Path, list[tuple[Path, int]]]:
    """Return paths of pod templates, with their number of pods, by the path of each wrapped object.

    Texts that cannot be read, or that point elsewhere, are skipped.
    """
    sets: dict[Path, list[tuple[Path, int]]] = {}
    known: dict[str, dict[Path, list[Embedding]]] = {}
    for each in found:
        known.setdefault(each.embedded.place.text, {}).setdefault(each.element, []).append(each)
    for by_element in known.values():
        embedded = next(iter(by_element.values()))[0].embedded
        for element, path, count in pod_sets_of(embedded, by_element, document):
            for each in by_element[element]:
                if path[: len(each.path)] == each.path:
                    sets.setdefault(each.path, []).append((path[len(each.path) :], count))
    return sets


def pod_sets_of(
    embedded: Embedded, elements: Collection[Path], document: Any
) -> Iterator[tuple[Path, Path, int]]:
    """Yield the element, path and number of each set of pods that one `embedded` entry names."""
    if embedded.pod_sets is None:
        return
    numbers: dict[tuple[Path, ...], Any] = {}
    if embedded.replicas is not None:
        numbers = {each.bindings: each.value for each in matches((embedded.replicas,), document)}
    for _, text, bindings in matches((embedded.pod_sets,), document):
        steps = steps_of(text)
        if steps is None:
            continue
        number = numbers.get(bindings)
        # A bool is an int in Python, but not a number of pods.
        count = max(number, 0) if type(number) is int else 1
        for element in {(), *bindings}:
            if element in elements:
                yield element, (*element, *steps), count


def steps_of(text: Any) -> Path | None:
    """Return a path such as `template.spec.jobs[0].template` as steps, None for other text."""
    steps: list[str | int] = []
    for part in text.removeprefix(".").split(".") if isinstance(text, str) else ("",):
        match = STEP.fullmatch(part)
        if match is None:
            return None
        steps.append(match[1])
        steps += [int(each) for each in re.findall(r"\d+", match[2])]
    return tuple(steps)


def with_pod_templates(
    definition: Definition, document: Any, paths: tuple[Path, ...]
) -> Definition:
    """Return the definition with further pod templates at paths that it does not know."""
    if not paths:
        return definition
    known = locate(definition, document)
    inside = [each.path for each in embeddings(definition, document)]
    strange = [
        path
        for path in dict.fromkeys(paths)
        if isinstance(read(document, path), dict)
        and not any(is_known(each, path) for each in known)
        and not any(path[: len(each)] == each for each in inside)
    ]
    others = [at_place(definition, path) for path in strange]
    if not others:
        return definition
    own = definition.profile if definition.profiled else None
    made = Definition(definition.interface, own, (*definition.others, *others), definition.versions)
    made.proofs = definition.proofs
    return made


def is_known(location: PodLocation, path: Path) -> bool:
    """Return whether a pod location has the template at this path."""
    if location.fragments is None:
        return path in (location.place, location.spec_path, location.spec_path[:-1])
    known = location.fragments.known_paths()
    return any(path[: len(each)] == each or each[: len(path)] == path for each in known)


def at_place(definition: Definition, path: Path) -> Definition:
    """Return a definition with one pod template."""
    name = "".join(f"[{json.dumps(step)}]" for step in path)
    root = Component(definition.interface.root.name, root=True)
    pods = Component(f"{POD_SET} {name}", form="template", template=program_of(f".{name}"))
    return Definition(replace(definition.interface, components=(root, pods)))


@lru_cache(maxsize=256)
def program_of(text: str) -> Program:
    """Return the program of a plain path."""
    found = compile_query(text)
    assert isinstance(found, Program)  # keys and indices in brackets are native
    return found
