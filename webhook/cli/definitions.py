"""Definitions for the commands that work on one kind: from a file, or shipped ones by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path as FilePath
from typing import Any

from webhook.catalog.build import Choices, assemble
from webhook.cli import loading
from webhook.devices.kinds import KINDS
from webhook.documents import texts
from webhook.documents.problem import Problem
from webhook.documents.source import SourceDocument
from webhook.documents.suggestions import closest
from webhook.documents.texts import clean
from webhook.interface.crd_schema import Schema
from webhook.interface.interface import is_interface
from webhook.interface.profile_document import is_profile
from webhook.libjq.evaluator import get_evaluator
from webhook.pods.definition import Definition
from webhook.sources.files import STDIN, read_all
from webhook.sources.load import shipped_paths

KindName = tuple[str, str]
Known = Mapping[KindName, tuple[Definition, ...]]


def is_definition(data: Any) -> bool:
    """Whether a document is part of a definition."""
    return is_interface(data) or is_profile(data)


def assemble_definitions(
    documents: Sequence[SourceDocument],
) -> tuple[dict[KindName, tuple[Definition, ...]], list[Problem]]:
    """Definitions by group and kind, none if a document has an error; all problems."""
    compile_jq = get_evaluator().compile_jq
    catalog, problems = assemble([], documents, Choices(), compile_jq=compile_jq)
    found = catalog.definitions if catalog else {}
    # Kinds with devices have no document.
    return {key: each for key, each in found.items() if key not in KINDS}, list(problems)


def from_file(path: str) -> list[Definition]:
    """The definitions in a file or folder; BadInput after reporting their problems."""
    documents, problems = read_all([path])
    own = [each for each in documents if is_definition(each.data)]
    found, more = assemble_definitions(own)
    listed = [*problems, *more]
    loading.print_problems(listed)
    if any(each.severity == "error" for each in listed):
        raise loading.BadInput
    definitions = [each for several in found.values() for each in several]
    if not definitions:
        fix = "write one, or name a shipped kind"
        loading.complain(f"error: {clean(path)}: no ResourceInterface and no Karta in it; {fix}")
        raise loading.BadInput
    return definitions


def all_of(paths: Sequence[str]) -> Known:
    """The shipped definitions and those of files; BadInput after reporting problems of the files."""
    documents, _ = read_all(shipped_paths())
    given, problems = read_all(list(paths)) if paths else ([], [])
    wanted = [each for each in (*documents, *given) if is_definition(each.data)]
    found, more = assemble_definitions(wanted)
    listed = [*problems, *(more if given else ())]
    loading.print_problems(listed)
    if any(each.severity == "error" for each in listed):
        raise loading.BadInput
    return found


def find_shipped(name: str) -> list[Definition]:
    """The shipped definitions of a kind: Kind, kind.group, plural or plural.group, in any case."""
    return list(several_named(all_of([]), name))


def one_named(known: Known, name: str) -> Definition:
    """The definition of a kind's first version; BadInput as for `named`."""
    return several_named(known, name)[0]


def several_named(found: Known, name: str) -> tuple[Definition, ...]:
    """The definitions of the kind with a name; BadInput after reporting that there are none or several."""
    names: dict[str, list[KindName]] = {}
    for (group, kind), definitions in found.items():
        for word in {kind.casefold(), *(each.profile.resource for each in definitions)}:
            names.setdefault(word, []).append((group, kind))
            names.setdefault(f"{word}.{group}" if group else f"{word}.core", []).append(
                (group, kind)
            )
    matches = list(dict.fromkeys(names.get(name.casefold(), [])))
    if len(matches) == 1:
        return found[matches[0]]
    if matches:
        choices = " or ".join(sorted(f"{kind}.{group or 'core'}" for group, kind in matches))
        loading.complain(f"error: several kinds are called {name}; write {choices}")
    else:
        near = closest(name, names)
        fix = f"did you mean {near}?" if near else "name a shipped kind or a file"
        loading.complain(
            f"error: no shipped definition of {texts.quote(name)} and no such file; {fix}"
        )
    raise loading.BadInput


def finder(known: Known) -> Callable[[Any], Definition | None]:
    """Return a function that finds the definition of an object, by kind and version."""

    def find(data: Any) -> Definition | None:
        group, _, kind = kind_of_object(data)
        return fitting(known.get((group, kind), ()), data)

    return find


def definitions_of(given: str) -> list[Definition]:
    """The definitions of a file, a folder or a shipped kind; BadInput after reporting the problem."""
    looks_like_file = "/" in given or given.endswith((".yaml", ".yml", ".json"))
    if given == STDIN or looks_like_file or FilePath(given).exists():
        return from_file(given)
    return find_shipped(given)


def kind_of_object(data: Any) -> tuple[str, str, str]:
    """Group, version and kind of an object; empty texts for those that are missing."""
    if not isinstance(data, dict) or not isinstance(data.get("apiVersion"), str):
        return "", "", ""
    group, _, version = data["apiVersion"].rpartition("/")
    kind = data.get("kind")
    return group, version, kind if isinstance(kind, str) else ""


def fitting(definitions: Sequence[Definition], data: Any) -> Definition | None:
    """The definition of an object, by group, kind and version."""
    group, version, kind = kind_of_object(data)
    for each in definitions:
        same = (each.interface.group, each.interface.kind) == (group, kind)
        if same and version in each.versions:
            return each
    return None


def label(definition: Definition) -> str:
    """kind.group of a definition."""
    return f"{definition.interface.kind}.{definition.interface.group or 'core'}"


def unpack_lists(documents: Sequence[SourceDocument]) -> list[SourceDocument]:
    """The documents, with lists replaced by their items: kubectl prints several objects as a list."""
    found: list[SourceDocument] = []
    for each in documents:
        items = each.data.get("items") if isinstance(each.data, dict) else None
        if isinstance(items, list) and str(each.data.get("kind")).endswith("List"):
            found += [replace(each, data=item, positions={}, texts={}) for item in items]
        else:
            found.append(each)
    return found


def schemas_in(documents: Sequence[SourceDocument]) -> dict[tuple[str, str], dict[str, Schema]]:
    """The schemas of CRDs by group and kind, and then by version."""
    found: dict[tuple[str, str], dict[str, Schema]] = {}
    for document in unpack_lists(documents):
        spec = document.data.get("spec") if isinstance(document.data, dict) else None
        names = spec.get("names") if isinstance(spec, dict) else None
        if not isinstance(spec, dict) or not isinstance(names, dict):
            continue
        key = (str(spec.get("group")), str(names.get("kind")))
        versions = spec.get("versions")
        for each in versions if isinstance(versions, list) else ():
            body = each.get("schema") if isinstance(each, dict) else None
            schema = body.get("openAPIV3Schema") if isinstance(body, dict) else None
            if isinstance(schema, dict):
                found.setdefault(key, {})[str(each.get("name"))] = schema
    return found
