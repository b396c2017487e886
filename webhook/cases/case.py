"""What a case is: a file, what is submitted, what is expected, and what came of it."""

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
PLACE = (
    "namespace",
    "namespaceLabels",
    "workloadType",
    "ruleCombination",
    "systemPolicy",
    "settings",
    "time",
)
SUBMITTED = ("object", "request")
CASE_KEYS = (*DOCUMENTS, CRDS, *PLACE, *SUBMITTED, "references", "expect", "variants")
VARIANT_KEYS = ("name", "set", "expect")
REQUEST_KEYS = (
    "operation",
    "object",
    "old",
    "user",
    "groups",
    "extra",
    "fieldManager",
    "replaces",
    "subresource",
    "resource",
    "stage",
    "dryRun",
    "cluster",
)
EXPECT_KEYS = (
    "lookups",
    "allowed",
    "judged",
    "notEvaluated",
    "object",
    "patch",
    "changes",
    "violations",
    "warnings",
    "audit",
)
VIOLATION_KEYS = (
    "field",
    "path",
    "rule",
    "reason",
    "value",
    "allowed",
    "policy",
    "scope",
    "key",
    "message",
)
ANY = "any"


class BadCase(Exception):  # noqa: N818 - it names a state of the file
    """A case that cannot be run: what is wrong with its file or documents."""


@dataclass(frozen=True, slots=True)
class Case:
    """One thing to try: the file, its content, and which variant (None: the case itself).

    `given` holds what is submitted as kubectl reads it; `expect` what should come of it, None
    while nobody has said.
    """

    file: FilePath
    name: str
    given: Mapping[str, Any]
    document: SourceDocument
    expect: Mapping[str, Any] | None
    at: Path

    @property
    def offline(self) -> bool:
        """Whether a manifest is judged, not a request."""
        return "object" in self.given


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a case: the decision, the object and patch, and what they started from.

    `lookups` is how many objects of the cluster the decision needed.
    """

    decision: Decision
    submitted: Any
    object: Any
    patch: tuple[dict[str, Any], ...]
    lookups: int = 0
