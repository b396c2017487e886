"""Reads the cases of a folder; every mistake in a file is told, none is ignored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path as FilePath
from typing import Any

from webhook.cases.case import (
    ANY,
    CASE_KEYS,
    CRDS,
    DOCUMENTS,
    EXPECT_KEYS,
    FILE,
    SUBMITTED,
    VARIANT_KEYS,
    VIOLATION_KEYS,
    BadCase,
    Case,
)
from webhook.cases.run_offline import not_an_object
from webhook.cases.variants import with_places_set
from webhook.documents.source import SourceDocument
from webhook.documents.yaml_source import read_documents
from webhook.evaluation.request import Stage
from webhook.objects.path import Path


def cases_in(folder: FilePath) -> list[Case]:
    """Every case and variant below a folder, in order of path; BadCase for a file that is none."""
    return [case for file in sorted(folder.rglob(FILE)) for case in cases_of(file)]


def cases_of(file: FilePath) -> list[Case]:
    """The case of one file, then its variants."""
    document = one_document(file, kubernetes=False)
    submitted = one_document(file, kubernetes=True).data
    data = document.data
    refuse_unknown(data, CASE_KEYS, file, "a case")
    if sum(key in data for key in SUBMITTED) != 1:
        raise BadCase(f"{file}: a case needs either object or request")
    refuse_misshapen(data, file)
    given = {**data, **{key: submitted[key] for key in SUBMITTED if key in data}}
    found: list[Case] = []
    if "expect" in data or "variants" not in data:
        found.append(Case(file, file.parent.name, given, document, expected(file, data), ()))
    for index, body in enumerate(data.get("variants") or ()):
        refuse_unknown(body, VARIANT_KEYS, file, f"variants[{index}]")
        name = f"{file.parent.name}: {body.get('name') or index}"
        changed = {**given, **with_places_set(given, submitted["variants"][index].get("set") or {})}
        at: Path = ("variants", index)
        found.append(Case(file, name, changed, document, expected(file, body), at))
    return found


LISTS = (*DOCUMENTS, CRDS, "references", "variants")
MAPS = ("namespaceLabels", "settings", "request", "expect")
"""Parts of a case that are lists and maps."""
PARTS: Mapping[str, Mapping[str, type]] = {
    "request": {
        "resource": dict,
        "groups": list,
        "extra": dict,
        "cluster": list,
        "old": dict,
        "stage": str,
    },
    "expect": {
        "violations": list,
        "audit": list,
        "changes": dict,
        "object": dict,
        "patch": list,
    },
}
"""What is in such a map has its own type."""
WORDS: Mapping[type, str] = {list: "a list", dict: "a map", str: "text"}


def refuse_misshapen(data: Mapping[str, Any], file: FilePath) -> None:
    """Parts that are no list, map or object where a case has one are mistakes too."""
    refuse_parts(data, dict.fromkeys(LISTS, list) | dict.fromkeys(MAPS, dict), file, "")
    refuse_others(data.get("references"), file, "references")
    request = data.get("request") or {}
    refuse_parts(request, PARTS["request"], file, "request.")
    refuse_others(request.get("cluster"), file, "request.cluster")
    refuse_parts(request.get("extra") or {}, dict.fromkeys(request.get("extra") or (), list), file,
                 "request.extra.")  # fmt: skip
    stages = [each.value for each in Stage]
    if request.get("stage") not in (None, *stages):
        raise BadCase(f"{file}: request.stage is one of {', '.join(stages)}")
    submitted = data.get("object") if data.get("request") is None else request.get("object")
    refuse_others([submitted], file, "object")
    bodies = [("", data)]
    for index, each in enumerate(data.get("variants") or ()):
        at = f"variants[{index}]."
        refuse_unknown(each, VARIANT_KEYS, file, at.rstrip("."))
        refuse_parts(each, {"set": dict, "expect": dict}, file, at)
        bodies.append((at, each))
    for at, each in bodies:
        refuse_parts(each.get("expect") or {}, PARTS["expect"], file, f"{at}expect.")
        warnings = (each.get("expect") or {}).get("warnings")
        if not is_words(warnings) and warnings != ANY:
            raise BadCase(f"{file}: {at}expect.warnings must be a list of reasons, or {ANY}")


def refuse_parts(data: Any, types: Mapping[str, type], file: FilePath, at: str) -> None:
    """A part of another type is a mistake; one that is absent or null is none."""
    for key, kind in types.items():
        if data.get(key) is not None and not isinstance(data[key], kind):
            raise BadCase(f"{file}: {at}{key} must be {WORDS[kind]}")


def refuse_others(listed: Any, file: FilePath, at: str) -> None:
    """Whatever is no object of Kubernetes among some is a mistake."""
    for each in listed or ():
        if why := not_an_object(each):
            raise BadCase(f"{file}: {at} must be a map with apiVersion and kind: found {why}")


def is_words(value: Any) -> bool:
    """Whether a value is a list of texts, or none."""
    return value is None or (
        isinstance(value, list) and all(isinstance(each, str) for each in value)
    )


def one_document(file: FilePath, *, kubernetes: bool) -> SourceDocument:
    """The single document of a case's file."""
    documents, faults = read_documents(file.read_bytes(), str(file), kubernetes=kubernetes)
    if faults:
        raise BadCase("; ".join(f"{file}:{each.line}: {each.message}" for each in faults))
    if len(documents) != 1 or not isinstance(documents[0].data, dict):
        raise BadCase(f"{file}: a case is one YAML map")
    return documents[0]


def refuse_unknown(data: Any, known: Sequence[str], file: FilePath, what: str) -> None:
    """Unknown keys are mistakes, never ignored."""
    if not isinstance(data, dict):
        raise BadCase(f"{file}: {what} must be a map")
    if strange := [str(key) for key in data if key not in known]:
        raise BadCase(f"{file}: {what} has unknown keys: {', '.join(strange)}")


def expected(file: FilePath, data: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The checked `expect` of a case or variant."""
    expect = data.get("expect")
    if not expect:
        return None
    refuse_unknown(expect, EXPECT_KEYS, file, "expect")
    for key in ("violations", "audit"):
        for each in expect.get(key) or ():
            refuse_unknown(each, VIOLATION_KEYS, file, f"expect.{key}[]")
    if expect.get("violations") and expect.get("allowed"):
        raise BadCase(f"{file}: expect is either allowed or has violations")
    return dict(expect)
