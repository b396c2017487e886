"""Reviews of objects that people create from samples of other projects, kept without those samples.

A file of `samples/` has the review and, for its objects, a JSON patch on a sample in a pinned archive,
so that nothing of another project is copied here. Objects of our own are kept whole.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import jsonpatch

from tests.e2e.testbed import upstream
from webhook.documents.yaml_source import read_documents

FOLDER = Path(__file__).with_name("samples")
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}


@functools.cache
def sample(project: str, path: str, index: int) -> Any:
    """One object of a sample file; raises MissingTestbed."""
    data = (upstream.module_dir(project) / path).read_bytes()
    documents, _ = read_documents(data, path, kubernetes=True)
    return documents[index].data


def applied_text(sent: Any) -> str:
    """The annotation that `kubectl apply` makes of an object."""
    text = json.dumps(sent, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    for char, escape in _ESCAPES.items():
        text = text.replace(char, escape)
    return f"{text}\n"


def patched(base: Any, kept: Any, sent: Any) -> Any:
    """An object of a review: kept whole, or a patch on `base`; `sent` is what was applied."""
    if not isinstance(kept, list):
        return kept
    found = jsonpatch.apply_patch(base, kept)
    notes = found.get("metadata", {}).get("annotations") or {}
    if notes.get(LAST_APPLIED) == "":
        notes[LAST_APPLIED] = applied_text(sent)
    return found


def review(file: Path) -> Any:
    """The review of one file, whole; raises MissingTestbed."""
    kept = json.loads(file.read_text("utf-8"))
    if "sample" not in kept:
        return kept
    base = sample(*kept.pop("sample"))
    sent = jsonpatch.apply_patch(base, kept.pop("applied", []))
    request = kept["request"]
    for key in ("object", "oldObject"):
        request[key] = patched(base, request[key], sent)
    return kept


def write(into: Path) -> None:
    """Write every review, whole, into a new folder; raises MissingTestbed."""
    into.mkdir()
    for file in sorted(FOLDER.glob("*.json")):
        (into / file.name).write_text(json.dumps(review(file)), "utf-8")
