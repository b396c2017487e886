"""Reads the cases of a folder; every mistake in a file is told, none is ignored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path as FilePath
from typing import Any

from webhook.adapters.yaml_source import read_documents
from webhook.cases.case import (
    CASE_KEYS,
    DOCUMENTS,
    EXPECT_KEYS,
    FILE,
    SUBMITTED,
    VARIANT_KEYS,
    VIOLATION_KEYS,
    BadCase,
    Case,
)
from webhook.cases.variants import with_places_set
from webhook.core.pointer import Path
from webhook.core.source import SourceDocument


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


def refuse_misshapen(data: Mapping[str, Any], file: FilePath) -> None:
    """Parts that are no list, map or object where a case has one are mistakes too."""
    wanted: list[tuple[str, Any, type]] = []
    wanted += [(key, data.get(key), list) for key in (*DOCUMENTS, "references", "variants")]
    wanted += [
        (key, data.get(key), dict) for key in ("namespaceLabels", "settings", "request", "expect")
    ]
    variants = data.get("variants")
    for index, each in enumerate(variants if isinstance(variants, list) else ()):
        if isinstance(each, dict):
            at = f"variants[{index}]"
            wanted += [(f"{at}.{key}", each.get(key), dict) for key in ("set", "expect")]
    for key, value, kind in wanted:
        if value is not None and not isinstance(value, kind):
            raise BadCase(f"{file}: {key} must be a {'list' if kind is list else 'map'}")
    request = data.get("request")
    submitted = data.get("object") if request is None else request.get("object")
    named = isinstance(submitted, dict) and submitted.get("apiVersion") and submitted.get("kind")
    if not named:
        raise BadCase(f"{file}: object must be a map with apiVersion and kind")


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
