"""Prints the result of `podgate interface check` as text or JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from webhook.cli import lint
from webhook.cli.definitions import kind_of_object
from webhook.documents.problem import Problem
from webhook.documents.source import SourceDocument
from webhook.interface.jq_paths import Text
from webhook.lint.definition import Count
from webhook.objects.path import display


@dataclass(slots=True)
class Findings:
    """The result of a check: problems, all jq texts, and what the samples contain."""

    problems: list[Problem] = field(default_factory=list)
    texts: list[tuple[SourceDocument, Text]] = field(default_factory=list)
    samples: list[tuple[SourceDocument, tuple[Count, ...]]] = field(default_factory=list)


def severity_of(text: Text) -> str:
    """The severity of a jq text."""
    program = text.program
    if program is None:
        return "jq"
    return "assignable" if program.assignable else "read-only"


def as_text(findings: Findings) -> None:
    """Print the problems as `lint` prints them, then the paths, then the samples."""
    lint.as_text(findings.problems)
    for document, text in findings.texts:
        line, _ = document.position(text.at)
        print(f"{document.origin}:{line}: {severity_of(text)}: {text.text}")
    for document, counts in findings.samples:
        print(f"{document.origin}: {kind_of_object(document.data)[2]}")
        for each in counts:
            if not each.pods and not each.scales:
                continue
            ids = "" if each.ids is None else f", {each.ids} ids"
            replicas = "" if each.replicas is None else f", {each.replicas} replicas"
            print(f"  {each.component}: {each.pods} pods{ids}{replicas}")


def as_json(findings: Findings) -> None:
    """One document."""
    counts = Counter(each.severity for each in findings.problems)
    lint.write_json(
        {
            "errors": counts["error"],
            "warnings": counts["warning"],
            "problems": [problem_json(each) for each in findings.problems],
            "paths": [path_json(document, text) for document, text in findings.texts],
            "samples": [
                {
                    "file": document.origin,
                    "kind": kind_of_object(document.data)[2],
                    "components": [each._asdict() for each in rows],
                }
                for document, rows in findings.samples
            ],
        }
    )


def path_json(document: SourceDocument, text: Text) -> dict[str, Any]:
    """One jq text."""
    line, column = document.position(text.at)
    return {
        "file": document.origin,
        "line": line,
        "column": column,
        "path": display(text.at),
        "text": text.text,
        "native": text.program is not None,
        "assignable": text.program is not None and text.program.assignable,
        "of": "pod" if text.of_pod else "object",
    }


def problem_json(problem: Problem) -> dict[str, Any]:
    """One problem, in the JSON format of `lint`."""
    return {
        "file": problem.origin,
        "line": problem.line,
        "column": problem.column,
        "path": problem.path,
        "severity": problem.severity,
        "reason": problem.reason,
        "meaning": lint.meaning(problem.reason),
        "found": problem.found,
        "fix": problem.fix,
    }


FORMATS: dict[str, Callable[[Findings], None]] = {"text": as_text, "json": as_json}
