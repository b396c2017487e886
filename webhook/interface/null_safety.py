"""Finds paths of a definition that fail if an optional value is absent, by running them.

Most of an object is optional: a status comes later, numbers have defaults, pods lack labels.
`.spec.replicas * .spec.size` and `.status.conditions[] | …` are errors then, and with them the
whole scale or status cannot be read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from webhook.documents.read_model import Report, show_value
from webhook.documents.source import SourceDocument
from webhook.interface.jq_paths import Text, texts
from webhook.jq.expressions import Evaluator, JqError
from webhook.jq.path import Program
from webhook.objects.path import Path

ALONE: Final = frozenset({"expression", "groupByKeyPaths", "filters"})
"""Keys of texts that must not fail on an object, or a pod, with only a name."""
SCALES: Final = frozenset({"replicasPath", "minReplicasPath", "maxReplicasPath"})
"""Keys of texts that must not fail if their lists have one empty item."""
PLAIN: Final = re.compile(r"\.([A-Za-z_]\w*)")


def check_null_safety(document: SourceDocument, evaluator: Evaluator, report: Report) -> None:
    """Warn of each text of a definition that fails if the value it reads is absent."""
    for each in texts(document.data):
        if each.key not in ALONE | SCALES:
            continue
        bare = {"metadata": {"name": "a"}}
        if each.key in SCALES:
            bare |= skeleton(each.program)
        try:
            evaluator.values(each.text, bare, lenient=each.key in SCALES)
        except JqError:
            fix = (
                'give what may be absent a default: `(.a // 1)`, `.a[]?`, `(.a // "0") | tonumber`'
            )
            found = f"`{show_value(each.text)}` fails where what it reads is absent"
            report.warn(each.at, found, fix, "null-unsafe")
        else:
            check_default(each, report)


def check_default(each: Text, report: Report) -> None:
    """Warn of a default for a whole stream: it drops the items that need it."""
    program = each.program
    if program is None or not program.iterators or program.elementwise:
        return
    found = f"`{show_value(each.text)}` applies its default to the list as a whole; upstream drops items"
    report.warn(each.at, found, "put it behind a pipe: `.a[] | (.n // 1)`", "null-unsafe")


def skeleton(program: Program | None) -> dict[str, Any]:
    """Return an object in which each list on a native path has one empty item."""
    found: dict[str, Any] = {}
    for text in program.iterators if program is not None else ():
        put(found, tuple(keys_of(text)))
    return found


def keys_of(text: str) -> Iterator[str | int]:
    """Return the keys of a path of fields and `[]`; nothing for any other path."""
    for section in text.split("[]"):
        names = PLAIN.findall(section)
        if "".join(f".{name}" for name in names) != section:
            return
        yield from names
        yield 0


def put(document: dict[str, Any], keys: Path) -> None:
    """Create a path of maps and one-item lists, unless it exists."""
    node: Any = document
    for key, following in zip(keys, (*keys[1:], ""), strict=True):
        empty: Any = [{}] if following == 0 else {}
        node = node[0] if key == 0 else node.setdefault(str(key), empty)
        if not isinstance(node, (dict, list)):
            return
