"""security.serviceAccountName: the current field and the deprecated one beside it."""

from __future__ import annotations

from typing import Any

from webhook.evaluation.state import Evaluation
from webhook.fields.pod import PodSpecField
from webhook.fields.scalar import Before, reader
from webhook.objects.path import Path
from webhook.pods.pod_view import PodView
from webhook.policy.combine import Leaf
from webhook.policy.row import Field

TODAY, DEPRECATED = ("serviceAccountName",), ("serviceAccount",)
read_today, read_deprecated = reader(TODAY), reader(DEPRECATED)
UNNAMED = "default"
"""The service account of pods that name none; the server writes it into Pods."""


def is_pod(ev: Evaluation) -> bool:
    """Return whether the object is a Pod, in which the server sets a missing account."""
    return ev.request.kind == "Pod" and not ev.request.group


class ServiceAccountField(PodSpecField):
    """The identity of pods at the API server. If both fields are set, the current one counts."""

    __slots__ = ()

    def __init__(self, row: Field, leaf: Leaf) -> None:
        super().__init__(row, leaf, TODAY, None)

    def find(self, view: PodView) -> tuple[Path, Any]:
        """Return the path that counts with its value, None if neither is set."""
        value = read_today(view.spec)
        if value is None and (older := read_deprecated(view.spec)) is not None:
            return (*view.spec_path, *DEPRECATED), older
        return (*view.spec_path, *TODAY), value

    def find_names(self, view: PodView, ev: Evaluation) -> list[tuple[Path, Any, Before]]:
        """Return the values at both paths, without a copy that the server makes."""
        paths = [
            ((*view.spec_path, *at), get(view.spec), self.before_at(view, at, get))
            for at, get in ((TODAY, read_today), (DEPRECATED, read_deprecated))
        ]
        found = [each for each in paths if each[1] is not None]
        if len(found) == 2 and found[0][1] == found[1][1]:
            copied = ev.intent.is_written(found[1][0]) and not ev.intent.is_written(found[0][0])
            return found[1:] if copied else found[:1]
        return found

    def before_at(self, view: PodView, at: Path, get: Any) -> Before:
        """Return the value of one path before the update, or the other path's meaning for it."""
        if view.old is None:
            return None
        value = get(view.old.spec)
        return (*view.old.spec_path, *at), self.find(view.old)[1] if value is None else value

    def check_intent(self, view: PodView, ev: Evaluation) -> None:
        """Check prohibitions on the names at both paths."""
        if not self.rules.prohibitions:
            return
        server = UNNAMED if is_pod(ev) else None
        self.rules.check_overridden(ev, view, self.at, intent=True)
        for path, native, before in self.find_names(view, ev):
            self.rules.check_intent(ev, path, native, before, server)

    def fill(self, view: PodView, ev: Evaluation) -> None:
        """Write the current field, and the deprecated one if the server has set it."""
        default = self.rules.default
        if default is None:
            return
        path, native = self.find(view)
        server = UNNAMED if is_pod(ev) else None
        wanted = self.rules.choose_value(ev, path, native, server, self.before(view))
        older = (*view.spec_path, *DEPRECATED)
        both = read_deprecated(view.spec) is not None
        if wanted is None or (both and ev.intent.is_written(older)):
            return
        kept, old = wanted
        value = old if kept == "kept" else default.value
        paths = [(*view.spec_path, *TODAY)]
        if both:
            paths.append(older)
        for place in paths:
            if ev.can_write(place) and ev.now(place) != value:
                ev.write(self.row.path, place, value, kept, default.source)

    def check_final(self, view: PodView, ev: Evaluation) -> None:
        """Check options on every name, on `default` if there is none, and required outside Pods."""
        if self.rules.final:
            self.rules.check_overridden(ev, view, self.at, intent=False)
        path, native = self.find(view)
        before = self.before(view)
        if native is None and not ev.exists(path):
            # Somebody else names it: a runtime, or the operator.
            self.rules.check_required(ev, path, unchanged=False)
            for each, _ in () if self.rules.required else self.rules.final[:1]:
                lacking = ev.lacking(path)
                ev.warn(
                    "unmapped-rule", self.row.path, lacking, ev.request.kind, source=each.source
                )
            return
        if native is None:
            unchanged = before is not None and before[1] is None
            if not is_pod(ev):
                self.rules.check_required(ev, path, unchanged=unchanged)
            self.rules.check_value(ev, path, UNNAMED, unchanged=unchanged)
            return
        for place, value, held in self.find_names(view, ev) if self.rules.final else ():
            unchanged = held is not None and held[1] == value
            self.rules.check_final(ev, place, value, unchanged=unchanged)
