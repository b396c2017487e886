"""security.serviceAccountName: the name of today and the deprecated one beside it."""

from __future__ import annotations

from typing import Any

from webhook.evaluation.state import Evaluation, is_held
from webhook.fields.pod import PodField
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
    """Whether the object is a Pod, in which the server names the account of who names none."""
    return ev.request.kind == "Pod" and not ev.request.group


class ServiceAccountField(PodField):
    """Who pods are towards the API server; the name of today counts where both are there."""

    __slots__ = ()

    def __init__(self, field: Field, leaf: Leaf) -> None:
        super().__init__(field, leaf, TODAY, None)

    def read(self, view: PodView) -> tuple[Path, Any]:
        """The place that counts, with its value; None when neither is set."""
        value = read_today(view.spec)
        if value is None and (older := read_deprecated(view.spec)) is not None:
            return (*view.spec_path, *DEPRECATED), older
        return (*view.spec_path, *TODAY), value

    def named(self, view: PodView, ev: Evaluation) -> list[tuple[Path, Any, Before]]:
        """What is written at either place, a copy that the server makes left out."""
        places = [
            ((*view.spec_path, *at), get(view.spec), self.before_at(view, at, get))
            for at, get in ((TODAY, read_today), (DEPRECATED, read_deprecated))
        ]
        found = [each for each in places if each[1] is not None]
        if len(found) == 2 and found[0][1] == found[1][1]:
            copied = ev.intent.stated(found[1][0]) and not ev.intent.stated(found[0][0])
            return found[1:] if copied else found[:1]
        return found

    def before_at(self, view: PodView, at: Path, get: Any) -> Before:
        """One place before the update, or what the other one meant for it."""
        if view.old is None:
            return None
        value = get(view.old.spec)
        return (*view.old.spec_path, *at), self.read(view.old)[1] if value is None else value

    def intent(self, view: PodView, ev: Evaluation) -> None:
        """Prohibitions on the names at both places."""
        if not self.rules.prohibitions:
            return
        server = UNNAMED if is_pod(ev) else None
        self.rules.judge_overridden(ev, view, self.at, intent=True)
        for path, native, before in self.named(view, ev):
            self.rules.judge_intent(ev, path, native, before, server)

    def fill(self, view: PodView, ev: Evaluation) -> None:
        """Write the name of today, and the deprecated one where the server has put it."""
        default = self.rules.default
        if default is None:
            return
        path, native = self.read(view)
        server = UNNAMED if is_pod(ev) else None
        wanted = self.rules.wanted(ev, path, native, server, self.before(view))
        older = (*view.spec_path, *DEPRECATED)
        both = read_deprecated(view.spec) is not None
        if wanted is None or (both and ev.intent.stated(older)):
            return
        kept, old = wanted
        value = old if kept == "kept" else default.value
        places = [(*view.spec_path, *TODAY)]
        if both:
            places.append(older)
        for place in places:
            if ev.can_write(place) and ev.now(place) != value:
                ev.write(self.field.path, place, value, kept, default.source)

    def final(self, view: PodView, ev: Evaluation) -> None:
        """Options on every name, on `default` where there is none; required outside Pods."""
        if self.rules.final:
            self.rules.judge_overridden(ev, view, self.at, intent=False)
        path, native = self.read(view)
        before = self.before(view)
        if native is None and not is_held(path):
            # Somebody else names it: a runtime, or the operator.
            self.rules.judge_required(ev, path, unchanged=False)
            for each, _ in () if self.rules.required else self.rules.final[:1]:
                lacking = ev.lacking(path)
                ev.warn(
                    "unmapped-rule", self.field.path, lacking, ev.request.kind, source=each.source
                )
            return
        if native is None:
            unchanged = before is not None and before[1] is None
            if not is_pod(ev):
                self.rules.judge_required(ev, path, unchanged=unchanged)
            self.rules.judge_value(ev, path, UNNAMED, unchanged=unchanged)
            return
        for place, value, held in self.named(view, ev) if self.rules.final else ():
            unchanged = held is not None and held[1] == value
            self.rules.judge_final(ev, place, value, unchanged=unchanged)
