"""What is submitted with some places set to other values."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import yaml

from webhook.cases.case import SUBMITTED, BadCase
from webhook.objects.path import Path

STEP = re.compile(r'\.?([A-Za-z_][A-Za-z0-9_-]*)|\[(\d+)\]|\[("(?:[^"\\]|\\.)*")\]')


def with_places_set(given: Mapping[str, Any], places: Mapping[str, Any]) -> dict[str, Any]:
    """What is submitted with some places set; null takes a place out.

    Places are display paths within the object, or within the request for a case with a request.
    """
    key = next(key for key in SUBMITTED if key in given)
    holder = {key: copy.deepcopy(given[key])}
    for text, value in places.items():
        try:
            set_place(holder, (key, *path_of(text)), value)
        except (LookupError, TypeError, AttributeError) as error:
            raise BadCase(f"{text} cannot be set: its parent is of another type") from error
    return holder


def path_of(text: str) -> Path:
    """A display path such as `spec.containers[0].image` as steps."""
    steps: list[str | int] = []
    end = 0
    while end < len(text):
        match = STEP.match(text, end)
        if match is None:
            raise BadCase(f"not a path: {text}")
        name, index, quoted = match.groups()
        if quoted is not None:
            steps.append(yaml.safe_load(quoted))
        else:
            steps.append(name if name is not None else int(index))
        end = match.end()
    return tuple(steps)


def set_place(document: Any, path: Path, value: Any) -> None:
    """Set one place of a document that may be changed; missing maps on the way are made."""
    node = document
    for step, following in pairwise(path):
        if isinstance(node, dict) and node.get(step) is None:
            node[step] = [] if isinstance(following, int) else {}
        node = node[step]
    last = path[-1]
    if isinstance(node, list) and isinstance(last, int):
        node[last : last + 1] = [] if value is None else [value]
    elif value is None:
        node.pop(last, None)
    else:
        node[last] = value
