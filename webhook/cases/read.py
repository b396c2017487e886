"""Reads the cases of a folder, and reports every mistake in a file."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path as FilePath
from typing import Any

import yaml

from webhook.cases.case import FILE, SUBMITTED, BadCase, Case
from webhook.cases.case_document import CaseFile, CaseRequest
from webhook.cases.run_offline import not_an_object
from webhook.decision.messages import problem_text
from webhook.documents.model import DocumentPart
from webhook.documents.read_model import Report, read
from webhook.documents.source import SourceDocument
from webhook.documents.yaml_source import read_documents
from webhook.objects.path import Path

STEP = re.compile(r'\.?([A-Za-z_][A-Za-z0-9_-]*)|\[(\d+)\]|\[("(?:[^"\\]|\\.)*")\]')


def cases_in(folder: FilePath) -> list[Case]:
    """Every case and variant below a folder, in order of path; raises BadCase for an invalid file."""
    return [case for file in sorted(folder.rglob(FILE)) for case in cases_of(file)]


def cases_of(file: FilePath) -> list[Case]:
    """The case of one file, then its variants."""
    document = one_document(file, kubernetes=False)
    submitted = one_document(file, kubernetes=True).data
    data = document.data
    read_part(CaseFile, data, document)
    if sum(key in data for key in SUBMITTED) != 1:
        raise BadCase(f"{file}: a case needs either object or request")
    refuse_others(data.get("references"), file, "references")
    refuse_others((data.get("request") or {}).get("cluster"), file, "request.cluster")
    body = data.get("request") or data
    refuse_others([body.get("object")], file, "object")
    given = {**data, **{key: submitted[key] for key in SUBMITTED if key in data}}
    found: list[Case] = []
    if "expect" in data or "variants" not in data:
        found.append(
            Case(file, file.parent.name, given, document, read_expectation(file, data), ())
        )
    for index, body in enumerate(data.get("variants") or ()):
        name = f"{file.parent.name}: {body.get('name') or index}"
        changed = {**given, **set_paths(given, submitted["variants"][index].get("set") or {})}
        at: Path = ("variants", index)
        if "request" in changed:
            read_part(CaseRequest, changed["request"], document, ("request",))
        found.append(Case(file, name, changed, document, read_expectation(file, body), at))
    return found


def read_part(
    model: type[DocumentPart], data: Any, document: SourceDocument, at: Path = ()
) -> None:
    """Raises BadCase with all problems of one member of a case."""
    report = Report(document)
    read(model, data, at, report, ignores_unknown=False)
    if report.problems:
        raise BadCase("\n".join(problem_text(each) for each in report.problems))


def refuse_others(listed: Any, file: FilePath, at: str) -> None:
    """Raises BadCase if a list has something other than a Kubernetes object."""
    for each in listed or ():
        if why := not_an_object(each):
            raise BadCase(f"{file}: {at} must be a map with apiVersion and kind: found {why}")


def one_document(file: FilePath, *, kubernetes: bool) -> SourceDocument:
    """The single document of a case's file."""
    documents, faults = read_documents(file.read_bytes(), str(file), kubernetes=kubernetes)
    if faults:
        raise BadCase("; ".join(f"{file}:{each.line}: {each.message}" for each in faults))
    if len(documents) != 1 or not isinstance(documents[0].data, dict):
        raise BadCase(f"{file}: a case is one YAML map")
    return documents[0]


def read_expectation(file: FilePath, data: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The checked `expect` of a case or variant."""
    expect = data.get("expect")
    if not expect:
        return None
    if expect.get("violations") and expect.get("allowed"):
        raise BadCase(f"{file}: expect is either allowed or has violations")
    return dict(expect)


def set_paths(given: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the input with some values set; null removes a value.

    Paths are display paths within the object, or within the request for a case with a request.
    """
    key = next(key for key in SUBMITTED if key in given)
    holder = {key: copy.deepcopy(given[key])}
    for text, value in values.items():
        try:
            set_path(holder, (key, *path_of(text)), value)
        except (LookupError, TypeError, AttributeError) as error:
            raise BadCase(f"{text} cannot be set: its parent is of another type") from error
    return holder


def path_of(text: str) -> Path:
    """A display path such as `spec.containers[0].image` as steps."""
    steps: list[str | int] = []
    end = 0
    while end < len(text):
        match = STEP.match(text, end)
        if match is None:
            raise BadCase(
                f"found {text}, which is no path; write one such as spec.containers[0].image"
            )
        name, index, quoted = match.groups()
        if quoted is not None:
            steps.append(yaml.safe_load(quoted))
        else:
            steps.append(name if name is not None else int(index))
        end = match.end()
    return tuple(steps)


def set_path(document: Any, path: Path, value: Any) -> None:
    """Set the value at one path of a mutable document; create missing maps on the way."""
    node = document
    for step, following in pairwise(path):
        if isinstance(node, dict) and node.get(step) is None:
            node[step] = [] if isinstance(following, int) else {}
        node = node[step]
    last = path[-1]
    if isinstance(node, list) and isinstance(last, int):
        node[last : last + 1] = [] if value is None else [value]
    elif value is None:
        node.pop(last, None)
    else:
        node[last] = value
