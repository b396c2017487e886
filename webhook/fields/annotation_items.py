"""Fields with items in an annotation of the workload, as a JSON list."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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
from webhook.fields.handler import FieldSource, FieldValue, WorkloadField, WorkloadHandler
from webhook.fields.items.attribute_rules import AttributeRules
from webhook.fields.items.attributes import to_native
from webhook.fields.items.field import ItemsField
from webhook.fields.notation import PathValue
from webhook.fields.store import NativeItem
from webhook.interface.profile import MainConvention
from webhook.objects.path import Path, display, read
from webhook.pods.location import PodLocation
from webhook.pods.pod_view import PodView
from webhook.policy.combine import EffectiveItem, Leaf
from webhook.policy.policy import Default
from webhook.policy.row import WORKLOAD_ITEMS, Field

# Rules of the first also apply to choosing the second.
CHOICES: Final = {"customUrl": "url"}
# An item has at most one of them, by its type.
ACCESS_TYPE: Final = "authorizationType"
ACCESS: Final = ("authorizedUsers", "authorizedGroups")


UNREADABLE: Final = "the annotation cannot be read"


class ListedItems(ItemsField):
    """The items of such a field, evaluated like items of pods."""

    __slots__ = ("annotation",)

    def __init__(self, row: Field, leaf: Leaf, attributes: Mapping[str, Leaf]) -> None:
        assert row.items is not None
        store = AnnotationItemStore(row.items)
        super().__init__(row, leaf, attributes, store)
        self.annotation = store.path
        self.attributes += [
            rules
            for choice, name in CHOICES.items()
            if choice in attributes
            for rules in [self.choice(attributes, choice, name)]
            if rules.rules.prohibitions
        ]
        self.closed = any(each.rules.prohibitions for each in self.attributes)
        self.phases = self.find_phases()

    def choice(self, leaves: Mapping[str, Leaf], choice: str, name: str) -> AttributeRules:
        """Return prohibitions on choosing an attribute as prohibitions on its value."""
        attribute, chosen = self.schema.attribute(choice), self.schema.attribute(name)
        assert attribute is not None
        assert chosen is not None
        constraints = tuple(each for each in leaves[choice].constraints if each.prohibits)
        default = leaves[name].default if name in leaves else None
        leaf = Leaf(leaves[choice].path, constraints, default)
        rules = AttributeRules(self.row, replace(chosen, name=choice), leaf)
        rules.attribute = chosen
        return rules

    def excluded_keys(self, view: PodView, ev: Evaluation) -> frozenset[str]:
        """Return item keys that the workload's annotation excludes at any level."""
        return ev.excluded_at(
            tuple(name for name in ev.excluded if name.rpartition(":")[2] == self.row.path)
        )

    def is_written_by_user(
        self, ev: Evaluation, native: NativeItem, name: str, position: int
    ) -> bool:
        """Return whether the user wrote the annotation."""
        return ev.intent.is_written_by_user(self.annotation)

    def completes(self, ev: Evaluation, native: NativeItem, name: str) -> bool:
        """Return whether this pass sets an item's unset attribute to the value of the policy's item."""
        return ev.writes and not native.values.get(name)

    def fill_attribute(
        self,
        ev: Evaluation,
        native: NativeItem,
        name: str,
        default: Default,
        item: EffectiveItem | None,
    ) -> None:
        """Write one attribute that an entry leaves unset."""
        attribute = self.schema.attribute(name)
        assert isinstance(native, ListedItem)
        entries = parse(ev.now(self.annotation))
        entry = entries[native.index]
        is_open = entry.get(name) in (None, "", []) and not is_decided_by_user(native, name)
        if attribute is None or not is_open or not ev.can_write(self.annotation):
            return
        entry[name] = to_native(attribute, default.value, default.raw)
        source = item.source if item is not None else self.source_of(name)
        field = f"{self.row.path}.{name}"
        ev.write(field, self.annotation, render(entries), "attribute default", source)

    def source_of(self, name: str) -> Any:
        """Return the source of an attribute's default."""
        defaults = [e.rules.default for e in self.attributes if e.attribute.name == name]
        return next((each.source for each in defaults if each is not None), None)


def is_decided_by_user(native: NativeItem, name: str) -> bool:
    """Return whether the user set access in a way that contradicts a default."""
    if name != ACCESS_TYPE and name not in ACCESS:
        return False
    access_types = native.values.get(ACCESS_TYPE)
    return any(native.values.get(each) for each in ACCESS) or (
        access_types is not None and name not in access_types
    )


class AnnotationItemsField(WorkloadField):
    """One such field of the workload. The rules of every component apply."""

    __slots__ = ("items",)

    def __init__(self, row: Field, leaf: Leaf, attributes: Mapping[str, Leaf]) -> None:
        super().__init__(row)
        self.items = ListedItems(row, leaf, attributes)
        # Locked items are checked as items. An unreadable annotation is always reported.
        self.phases = replace(self.items.phases, final=True, locked=False)

    def text(self, document: Any) -> Any:
        """Return the value of the annotation, None if absent."""
        return read(document, self.items.annotation) or None

    def compared_values(
        self, ev: Evaluation, document: Any, views: Sequence[PodView]
    ) -> list[PathValue]:
        """Everything that is read of a document."""
        return [PathValue(self.items.annotation, self.text(document), "annotation")]

    def view(self, ev: Evaluation, document: Any) -> PodView | None:
        """Return the workload as a view with items, None if the annotation cannot be read."""
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

    def check_intent(self, views: Sequence[PodView], ev: Evaluation) -> None:
        """Check rules on the items in the user's object."""
        view = self.view(ev, ev.request.object)
        if view is not None:
            self.items.check_intent(view, ev)

    def fill(self, views: Sequence[PodView], ev: Evaluation) -> None:
        """Write missing items into the annotation."""
        view = self.view(ev, ev.request.object)
        if view is not None:
            self.items.fill(view, ev)

    def read(self, views: Sequence[PodView], ev: Evaluation) -> Iterable[FieldValue]:
        """The items that the annotation lists."""
        view = self.view(ev, ev.draft.document)
        if view is not None:
            return self.items.read(view, ev)
        text = self.text(ev.draft.document)
        return [FieldValue(self.items.annotation, text, note=UNREADABLE, hidden=True)]

    def check_final(self, views: Sequence[PodView], ev: Evaluation) -> None:
        """Check rules on the items of the result. An unreadable annotation is refused."""
        view = self.view(ev, ev.draft.document)
        if view is not None:
            self.items.check_final(view, ev)
        elif ev.old is None or self.text(ev.old) != self.text(ev.request.object):
            path = self.items.annotation
            wanted = f"{display(path)} must be a JSON list of items such as {{name: …}}"
            ev.violate(self.row.path, path, None, wanted, None, reason="wrong-type")


def workload_view(document: Any, path: Path, old: PodView | None = None) -> PodView:
    """Return a view of the workload as a pod without containers: its items are in its own metadata."""
    metadata = document.get("metadata") if isinstance(document, dict) else None
    held = metadata if isinstance(metadata, dict) else {}
    location = PodLocation(
        component="",
        instance="",
        roles=(),
        place=path,
        metadata_path=("metadata",),
        spec_path=path,
        metadata=held,
        spec={},
        extra=(),
        main=MainConvention(),
        children="derived",
    )
    return PodView(location, {}, held, [], [], None, windows=False, old=old)


class WorkloadItemsHandler(WorkloadHandler):
    """Lists of items that an annotation of the workload keeps."""

    name = WORKLOAD_ITEMS
    of_every_kind = True

    def compile(self, source: FieldSource) -> AnnotationItemsField:
        """The field with the items and the attribute rules of all components."""
        return AnnotationItemsField(source.row, source.leaf, source.attributes)
