"""Tells of pods that an object does not state: objects that it refers to, and text that changes pods.

What comes of them is judged where the other object is made and on the pods; whoever sends the
object should know that its admission does not say so yet.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from webhook.evaluation.state import Evaluation
from webhook.interface.profile_values import PodText, Reference
from webhook.objects.path import Path, read
from webhook.pods.matching import matches
from webhook.pods.pod_view import PodView

REFERRED, AS_TEXT, UNSEEN = "referred-pods", "pods-as-text", "pods-unseen"
CHOSEN = "chosen by its controller"
Told = tuple[Path, str]


def tell_elsewhere(ev: Evaluation, views: Sequence[PodView]) -> None:
    """Warn of each reference that brings pods and of each text that changes them.

    An update is told only of what it changes.
    """
    found = False
    for definition in ev.definition.everyone:
        profile = definition.profile
        for reference in profile.references:
            for path, name in referred(reference, ev.request.object) if reference.pods else ():
                found = True
                tell(ev, REFERRED, path, name)
        for text in profile.pod_texts:
            for path, name in texts(text, ev.request.object):
                tell(ev, AS_TEXT, path, name)
    merged = any(
        each.children == "merged" or each.merged_with
        for one in ev.definition.everyone
        for each in one.profile.components.values()
    )
    if merged and not views and not found and not ev.updating:
        ev.warn(UNSEEN, "", ())


def tell(ev: Evaluation, reason: str, path: Path, name: str) -> None:
    """One warning, unless the place is as it was before the update."""
    if not ev.updating or read(ev.old, path) != read(ev.request.object, path):
        ev.warn(reason, "", path, name)


def referred(reference: Reference, document: Any) -> Iterator[Told]:
    """The place and the kind and name of each object that is referred to."""
    kinds = {}
    if reference.kind_place is not None:
        kinds = {each.bindings: each.value for each in matches((reference.kind_place,), document)}
    named = set()
    for path, value, bindings in matches((reference.place,), document):
        if value is None or value == "" or path is None:
            continue
        named.add(bindings)
        kind = kinds.get(bindings)
        name = value if isinstance(value, str) else "(unnamed)"
        yield path, f"{kind if isinstance(kind, str) and kind else reference.kind} {name}"
    if reference.implied_by is not None:
        for path, value, bindings in matches((reference.implied_by,), document):
            if value is not None and path is not None and bindings not in named:
                yield path, f"{reference.kind} {CHOSEN}"


def texts(text: PodText, document: Any) -> Iterator[Told]:
    """The place and the keys of each text that changes pods."""
    for path, value, _ in matches((text.place,), document):
        if path is None:
            continue
        if isinstance(value, str) and value and not text.keys:
            yield path, text.note
        elif isinstance(value, dict) and text.keys:
            for key in sorted(map(str, value)):
                if key.startswith(text.keys):
                    yield (*path, key), key
