"""A case: its file, its input, the expected result and the actual outcome."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Any

from webhook.documents.source import SourceDocument
from webhook.evaluation.outcome import Decision
from webhook.objects.path import Path

FILE = "case.yaml"
DOCUMENTS = ("policies", "assets", "interfaces")
CRDS = "crds"
SUBMITTED = ("object", "request")


class BadCase(Exception):  # noqa: N818 - it names a state of the file
    """A case that cannot be run; the message says what is wrong with its file or documents."""


@dataclass(frozen=True, slots=True)
class Case:
    """One case to run: the file, its content, and the variant (None: the case itself).

    `given` is the input as kubectl reads it; `expect` is the expected result, None if it is not
    written yet.
    """

    file: FilePath
    name: str
    given: Mapping[str, Any]
    document: SourceDocument
    expect: Mapping[str, Any] | None
    at: Path

    @property
    def offline(self) -> bool:
        """Whether the input is a manifest and not a request."""
        return "object" in self.given


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a case: the decision, the object and patch, and the input object.

    `lookups` is the number of cluster objects that the decision needed.
    """

    decision: Decision
    submitted: Any
    object: Any
    patch: tuple[dict[str, Any], ...]
    lookups: int = 0
