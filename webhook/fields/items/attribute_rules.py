"""The rules and the default of one attribute of an itemized field."""

from __future__ import annotations

from typing import Any

from webhook.documents.texts import show_value
from webhook.evaluation.state import Evaluation
from webhook.fields.items.attributes import Unreadable
from webhook.fields.scalar import INVALID, ScalarRules
from webhook.fields.secret_paths import is_secret_path
from webhook.fields.store import NativeItem
from webhook.objects.path import ABSENT, Path
from webhook.policy.combine import Leaf
from webhook.policy.row import Attribute, Field


class AttributeRules:
    """The rules and the default of one attribute leaf."""

    __slots__ = ("attribute", "rules")

    def __init__(self, field: Field, attribute: Attribute, leaf: Leaf) -> None:
        self.attribute = attribute
        name = f"{field.path}.{attribute.name}"
        array = attribute.value == "array"
        codec = attribute.reading()
        self.rules = ScalarRules(name, leaf, codec, array=array, secret=field.secret)

    def read(self, value: Any) -> Any:
        """Return the comparable value of a store's value, INVALID if it has none."""
        if isinstance(value, Unreadable):
            return INVALID
        known = self.attribute.codec is not None or isinstance(value, tuple)
        return value if known else self.rules.read(value)

    def show_at(self, path: Path, value: Any) -> str | None:
        """Return a store's value as text, None if it may not be shown."""
        if isinstance(value, Unreadable):
            hidden = self.rules.secret or is_secret_path(path)
            return None if hidden else show_value(value.raw)
        return self.rules.show_at(path, value)

    def check_item(self, ev: Evaluation, native: NativeItem, *, unchanged: bool) -> None:
        """Check final rules on this attribute of one item."""
        name, absent = self.attribute.name, self.attribute.absent
        if name in native.unresolved:
            return
        paths, found_values = native.at.get(name, ()), native.values.get(name, ())
        if not found_values:
            if absent is None or absent is ABSENT:
                path = paths[0] if paths else native.path
                self.rules.check_required(ev, path, unchanged=unchanged, key=native.shown_key)
                return
            found_values = (absent,)
        for position, value in enumerate(found_values):
            path = paths[position] if position < len(paths) else native.path
            comparable = self.read(value)
            if comparable is not INVALID:
                self.rules.check_value(
                    ev, path, comparable, unchanged=unchanged, key=native.shown_key
                )
            elif not unchanged:
                seen_as = value if isinstance(value, Unreadable) else Unreadable(value)
                self.rules.refuse_invalid(ev, path, seen_as.raw, seen_as.wanted)
