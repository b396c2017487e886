"""Where default items say what they say, and what completes them at one level."""

from __future__ import annotations

from webhook.objects.path import Path
from webhook.policy.companions import Here
from webhook.policy.leaves import items_of
from webhook.policy.policy import Default, DefaultItem
from webhook.policy.row import Field


def attribute_defaults(here: Here, row: Field) -> dict[str, Default]:
    """The attribute defaults of a field that hold at this level, by attribute name."""
    found = (
        (each.name, here.defaults.get(f"{row.path}.{each.name}"))
        for each in items_of(row).attributes
    )
    return {name: default for name, default in found if default is not None}


def place_of(here: Here, row: Field, item: DefaultItem, name: str) -> Path:
    """Where an item gives an attribute, else where the item is."""
    place = here.draft.place("attribute", here.level, f"{row.path}.{name}", item.key)
    return place or here.draft.place("item", here.level, row.path, item.key)
