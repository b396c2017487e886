"""What an unknown name was probably meant to be."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any, get_args

from pydantic import BaseModel


def closest(name: str, known: Iterable[str]) -> str | None:
    """The known name that was probably meant."""
    folded = {each.casefold(): each for each in known}
    near = difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=0.7)
    return folded[near[0]] if near else None


def keys_at(model: type[BaseModel], place: tuple[int | str, ...]) -> list[str]:
    """The keys that the object at `place` below `model` may have."""
    here: Any = model
    for step in place:
        nested = model_in(here)
        if isinstance(step, str) and nested is not None and not is_container(here):
            fields = {
                each.alias or name: each.annotation for name, each in nested.model_fields.items()
            }
            here = fields.get(step)
        else:
            here = next((each for each in reversed(get_args(plain(here))) if model_in(each)), None)
    nested = model_in(here)
    return [each.alias or name for name, each in nested.model_fields.items()] if nested else []


def plain(annotation: Any) -> Any:
    """The annotation without `| None`."""
    kinds = [each for each in get_args(annotation) if each is not type(None)]
    optional = len(kinds) == 1 and len(get_args(annotation)) == 2
    return kinds[0] if optional else annotation


def is_container(annotation: Any) -> bool:
    """Whether the annotation is a list or map of something."""
    return bool(get_args(plain(annotation)))


def model_in(annotation: Any) -> type[BaseModel] | None:
    """The model that an annotation holds, directly or inside a list, a map or `| None`."""
    if isinstance(annotation, type) and not get_args(annotation):
        return annotation if issubclass(annotation, BaseModel) else None
    return next((found for each in get_args(annotation) if (found := model_in(each))), None)
