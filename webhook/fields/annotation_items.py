"""Itemized fields that live in an annotation of the workload as a JSON list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from webhook.evaluation.state import Evaluation
from webhook.fields.annotation_list import (
    AnnotationItemStore,
    ListedItem,
    MalformedItems,
    parse,
    render,
)
from webhook.fields.items.attribute_rules import AttributeRules
from webhook.fields.items.attributes import written
from webhook.fields.items.field import ItemsField
from webhook.fields.notation import Place
from webhook.fields.stores.environment import NativeItem
from webhook.interface.profile_values import MainConvention
from webhook.objects.path import Path, display, read
from webhook.pods.location import PodLocation
from webhook.pods.pod_view import PodView
from webhook.policy.combine import EffectiveItem, Leaf
from webhook.policy.policy import Default
from webhook.policy.row import Field

# Rules of the first speak of whether the second may be chosen.
CHOICES: Final = {"customUrl": "url"}
# An item names one of them at most, its type says which.
ACCESS_TYPE: Final = "authorizationType"
ACCESS: Final = ("authorizedUsers", "authorizedGroups")


class ListedItems(ItemsField):
    """The items of such a field, judged as items of pods are."""

    __slots__ = ("annotation",)

    def __init__(self, field: Field, leaf: Leaf, attributes: Mapping[str, Leaf]) -> None:
        assert field.items is not None
        store = AnnotationItemStore(field.items)
        super().__init__(field, leaf, attributes, store)
        self.annotation = store.path
        self.attributes += [
            rules
            for choice, name in CHOICES.items()
            if choice in attributes
            for rules in [self.choice(attributes, choice, name)]
            if rules.rules.prohibitions
        ]
        self.closed = any(each.rules.prohibitions for each in self.attributes)

    def choice(self, leaves: Mapping[str, Leaf], choice: str, name: str) -> AttributeRules:
        """Prohibitions on choosing an attribute, as prohibitions on its value."""
        attribute, chosen = self.row.attribute(choice), self.row.attribute(name)
        assert attribute is not None
        assert chosen is not None
        constraints = tuple(each for each in leaves[choice].constraints if each.prohibits)
        default = leaves[name].default if name in leaves else None
        leaf = Leaf(leaves[choice].path, constraints, default)
        rules = AttributeRules(self.field, replace(chosen, name=choice), leaf)
        rules.attribute = chosen
        return rules

    def excluded(self, view: PodView, ev: Evaluation) -> frozenset[str]:
        """Item keys that the workload's annotation takes out, at whatever level."""
        return ev.excluded_at(
            tuple(name for name in ev.excluded if name.rpartition(":")[2] == self.field.path)
        )

    def shown(self, ev: Evaluation, native: NativeItem, name: str, position: int) -> bool:
        """Whether the user is shown to have written the annotation."""
        return ev.intent.shown(self.annotation)

    def completes(self, ev: Evaluation, native: NativeItem, name: str) -> bool:
        """Whether this pass gives an item's open attribute the value of the policy's item."""
        return ev.writes and not native.values.get(name)

    def fill_attribute(
        self,
        ev: Evaluation,
        native: NativeItem,
        name: str,
        default: Default,
        item: EffectiveItem | None,
    ) -> None:
        """Write one attribute where an entry leaves it open."""
        attribute = self.row.attribute(name)
        assert isinstance(native, ListedItem)
        entries = parse(ev.now(self.annotation))
        entry = entries[native.index]
        is_open = entry.get(name) in (None, "", []) and not decided(native, name)
        if attribute is None or not is_open or not ev.can_write(self.annotation):
            return
        entry[name] = written(attribute, default.value, default.raw)
        source = item.source if item is not None else self.source_of(name)
        field = f"{self.field.path}.{name}"
        ev.write(field, self.annotation, render(entries), "attribute default", source)

    def source_of(self, name: str) -> Any:
        """Who gave the default of an attribute."""
        defaults = [e.rules.default for e in self.attributes if e.attribute.name == name]
        return next((each.source for each in defaults if each is not None), None)


def decided(native: NativeItem, name: str) -> bool:
    """Whether the user said who has access in a way that a default would contradict."""
    if name != ACCESS_TYPE and name not in ACCESS:
        return False
    said = native.values.get(ACCESS_TYPE)
    return any(native.values.get(each) for each in ACCESS) or (
        said is not None and name not in said
    )


class AnnotationItemsField:
    """One such field of the workload; the rules of every component bind it."""

    __slots__ = ("field", "items")

    def __init__(self, field: Field, leaf: Leaf, attributes: Mapping[str, Leaf]) -> None:
        self.field = field
        self.items = ListedItems(field, leaf, attributes)

    @property
    def judges_intent(self) -> bool:
        """Whether there is anything to judge before defaults."""
        return self.items.judges_intent

    @property
    def fills(self) -> bool:
        """Whether there is anything to write."""
        return self.items.fills

    @property
    def judges_final(self) -> bool:
        """Whether the annotation can be read is always judged."""
        return True

    @property
    def is_fixed(self) -> bool:
        """Locked items are judged as such."""
        return False

    def text(self, document: Any) -> Any:
        """What the annotation holds; None when it is absent."""
        return read(document, self.items.annotation) or None

    def seen(self, ev: Evaluation, document: Any, views: Sequence[PodView]) -> list[Place]:
        """Everything that is read of a document."""
        return [Place(self.items.annotation, self.text(document), "annotation")]

    def view(self, ev: Evaluation, document: Any) -> PodView | None:
        """The workload as what carries the items; None where the annotation cannot be read."""
        try:
            parse(self.text(document))
        except MalformedItems:
            return None
        old = None
        if ev.old is not None:
            old = workload_view(ev.old, self.items.annotation)
            try:
                self.items.store.read(old)
            except MalformedItems:
                old = None
        return workload_view(document, self.items.annotation, old)

    def intent(self, views: Sequence[PodView], ev: Evaluation) -> None:
        """Rules on the items as the user gave them."""
        view = self.view(ev, ev.request.object)
        if view is not None:
            self.items.intent(view, ev)

    def fill(self, views: Sequence[PodView], ev: Evaluation) -> None:
        """Write what is missing into the annotation."""
        view = self.view(ev, ev.request.object)
        if view is not None:
            self.items.fill(view, ev)

    def final(self, views: Sequence[PodView], ev: Evaluation) -> None:
        """Rules on the items of the result; an annotation that cannot be read is refused."""
        view = self.view(ev, ev.draft.document)
        if view is not None:
            self.items.final(view, ev)
        elif ev.old is None or self.text(ev.old) != self.text(ev.request.object):
            path = self.items.annotation
            wanted = f"{display(path)} must be a JSON list of items such as {{name: …}}"
            ev.violate(self.field.path, path, None, wanted, None, reason="wrong-type")


def workload_view(document: Any, place: Path, old: PodView | None = None) -> PodView:
    """A workload seen as a pod without containers: its items stand in its own metadata."""
    metadata = document.get("metadata") if isinstance(document, dict) else None
    held = metadata if isinstance(metadata, dict) else {}
    location = PodLocation(
        component="",
        instance="",
        roles=(),
        place=place,
        metadata_path=("metadata",),
        spec_path=place,
        metadata=held,
        spec={},
        extra=(),
        main=MainConvention(),
        children="derived",
    )
    return PodView(location, {}, held, [], [], None, windows=False, old=old)
