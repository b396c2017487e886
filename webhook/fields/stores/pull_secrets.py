"""imagePullSecrets: items of names, with rules on the whole list beside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from webhook.documents.problem import Source
from webhook.evaluation.state import Evaluation, ratchets
from webhook.fields.handler import FieldSource, Phases, PodHandler, phases_of
from webhook.fields.items.field import ItemsField
from webhook.fields.scalar import Before, ScalarRules
from webhook.fields.store import Addition, NativeItem
from webhook.objects.path import Path
from webhook.pods.pod_view import MalformedPod, PodView, mapping, sequence
from webhook.policy import values
from webhook.policy.combine import EffectiveDefault, Leaf
from webhook.policy.row import PULL_SECRETS, Field

SECRETS: Final = "imagePullSecrets"


class PullSecretStore:
    """References to Secrets of the pod, by name."""

    def read(self, view: PodView) -> list[NativeItem]:
        """Every reference that names something, in order."""
        path = (*view.spec_path, SECRETS)
        found = []
        for index, entry in enumerate(sequence(view.spec.get(SECRETS), path)):
            place = (*path, index)
            name = mapping(entry, place).get("name") or ""
            at = (*place, "name")
            if not isinstance(name, str):
                raise MalformedPod(at, "text", name)
            if name:
                found.append(NativeItem(name, {"name": (name,)}, place, entry, {"name": (at,)}))
        return found

    def add(self, view: PodView, ev: Evaluation, new: Addition) -> None:
        """Append the reference."""
        self.put(view, ev, new.row, {"name": new.item.key}, new.why, new.item.source)

    def restore(self, view: PodView, ev: Evaluation, row: Field, item: NativeItem) -> bool:
        """Append the old reference."""
        self.put(view, ev, row, item.raw, "kept", None)
        return True

    def put(
        self, view: PodView, ev: Evaluation, row: Field, entry: Any, why: str, source: Source | None
    ) -> None:
        """Append one reference, unless another pod that shares the list has done so."""
        path = (*view.spec_path, SECRETS)
        shared = self.read(ev.current_pod(view)) if view.location.fragments is not None else ()
        name = entry.get("name") if isinstance(entry, dict) else entry
        if ev.can_write(path) and not any(each.key == name for each in shared):
            index = len(ev.now(path) or [])
            ev.append(path, entry)
            ev.note_item(row, (*path, index), entry, why, source)

    def belongs_elsewhere(self, item: NativeItem) -> bool:
        """Return False: no reference belongs to another field."""
        return False


def read_names(raw: Any) -> frozenset[str]:
    """Names of Secrets as a set, from a list of them or from one reference."""
    return values.parse_names([raw.get("name")] if isinstance(raw, dict) else raw, None)


class PullSecretsField(ItemsField):
    """The items, and the rules of an array on the set of their names."""

    __slots__ = ()

    def __init__(self, row: Field, leaf: Leaf, attributes: Mapping[str, Leaf]) -> None:
        super().__init__(row, leaf, attributes, PullSecretStore())
        codec = replace(values.NAMES, read=read_names)
        own = tuple(each for each in leaf.constraints if not each.type.of_items)
        listed = replace(leaf, constraints=own, default=self.whole(), items=())
        self.rules = ScalarRules(row.path, listed, codec, array=True, secret=row.secret)
        self.phases = self.find_phases()

    def whole(self) -> EffectiveDefault | None:
        """Return the default items as one list, with the source of the first."""
        if not self.items:
            return None
        names = [item.key for item in self.items]
        first = self.items[0]
        return EffectiveDefault(frozenset(names), names, first.source, first.scope)

    def find_phases(self) -> Phases:
        """The steps that items ask for, and rules on the whole list."""
        items, whole = super().find_phases(), phases_of(self.rules)
        intent, final = items.intent or whole.intent, items.final or whole.final
        return replace(items, intent=intent, final=final)

    @property
    def is_fixed(self) -> bool:
        """Return whether the list is written and may not be changed."""
        return bool(self.items) and any(e.type.fixes_default for e in self.rules.prohibitions)

    def place(self, view: PodView) -> Path:
        """Where the list is."""
        return (*view.spec_path, SECRETS)

    def names(self, view: PodView) -> list[str]:
        """Return the names in the list, sorted because their order has no meaning."""
        return sorted({each.key for each in self.store.read(view)})

    def before(self, view: PodView) -> Before:
        """The list of the same pod before the update."""
        return None if view.old is None else (self.place(view.old), self.names(view.old))

    def check_intent(self, view: PodView, ev: Evaluation) -> None:
        """Rules on items, then canEdit and blocked on the whole."""
        super().check_intent(view, ev)
        names = self.names(view) if self.rules.prohibitions else []
        if names:
            self.rules.check_intent(ev, self.place(view), names, self.before(view), None)

    def fill(self, view: PodView, ev: Evaluation) -> None:
        """Append missing names. A list that users may not choose is checked as it is."""
        if not (self.is_fixed and self.names(view)):
            super().fill(view, ev)

    def check_final(self, view: PodView, ev: Evaluation) -> None:
        """Rules on items, then options of each name, and `required` of the whole."""
        super().check_final(view, ev)
        if not self.rules.final and not self.rules.required:
            return
        found, before = self.store.read(view), self.before(view)
        known = frozenset(before[1]) if before is not None else frozenset()
        for native in found:
            self.check_option(ev, native, unchanged=native.key in known)
        if not found:
            unchanged = before is not None and not known
            self.rules.check_required(ev, self.place(view), unchanged=unchanged)

    def check_option(self, ev: Evaluation, native: NativeItem, *, unchanged: bool) -> None:
        """One name against the options of the list."""
        for each, holds in self.rules.final:
            if holds(frozenset({native.key}), each.argument) or (unchanged and ratchets(each)):
                continue
            shown = values.STRING.show(native.key)
            allowed = self.rules.show_argument(each)
            ev.violate(self.row.path, native.at["name"][0], shown, allowed, each, key=native.key)

    def current(self, view: PodView, ev: Evaluation) -> Any:
        """Return the names in the copy, None without any."""
        held = ev.now(self.place(view))
        names = [each.get("name") for each in held or () if isinstance(each, dict)]
        return names or None


class PullSecretsHandler(PodHandler):
    """The Secrets that images are pulled with."""

    name = PULL_SECRETS
    feeds_defaults = False

    def compile(self, source: FieldSource) -> PullSecretsField:
        """The field with its items, and the rules of the whole list."""
        return PullSecretsField(source.row, source.leaf, source.attributes)

    def pod_paths(self, row: Field) -> Sequence[Path]:
        """Where a pod template has the field."""
        return [("spec", SECRETS)]
