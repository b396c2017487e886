"""Components read and written exactly as upstream's library does, its errors and oddities included.

Values are paired with ids by position, null is a value, and what a fragment lacks in one instance
is written as empty when another instance has it. Admission never uses this.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any, Final

from webhook.access.component import Access, Form, Replicas, fragment_texts, path_text, scale_paths
from webhook.access.errors import AccessError, NotDefinedError, told_as
from webhook.access.status import Status, read_status
from webhook.documents.read_model import shown, sort
from webhook.interface.document import ComponentModel
from webhook.jq.expressions import Evaluator, put, text_of
from webhook.objects.path import Path
from webhook.pods.replicas import INT32, number_in

ORDER: Final = (
    "schedulerName",
    "priorityClassName",
    "image",
    "labels",
    "annotations",
    "resources",
    "podAffinity",
    "nodeAffinity",
    "container",
    "resourceClaims",
    "containers",
)
"""The fragments in the order in which they are written."""
TEXTS: Final = frozenset({"schedulerName", "priorityClassName", "image"})
LISTS: Final = frozenset({"resourceClaims", "containers"})


class ParityAccess(Access):
    """One object as upstream's accessor sees it; the object handed in stays untouched."""

    def __init__(self, document: Any, evaluator: Evaluator) -> None:
        self.evaluator = evaluator
        self._document = copy.deepcopy(document)

    @property
    def document(self) -> Any:
        return self._document

    def ids(self, model: ComponentModel) -> list[str]:
        if not model.instance_id_path:
            raise NotDefinedError(model.name, "instanceIdPath")
        found = self.read(model.instance_id_path)
        names = ["" if each is None else text_of(each) for each in found]
        if "" in names:
            listed = ",".join(names)
            text = f"an instance of `{shown(model.name)}` has no name: [{shown(listed)}]"
            raise AccessError("ids-empty", text, ids=names)
        return names

    def values(self, model: ComponentModel, form: Form) -> list[Any]:
        if form == "scale":
            return self.scales(model)
        if form == "fragments":
            return self.fragments(model)
        found = self.read(path_text(model, form))
        return [converted(each, form, index) for index, each in enumerate(found)]

    def scales(self, model: ComponentModel) -> list[Replicas]:
        """The numbers by position; shorter lists are filled up with what is absent."""
        paths = scale_paths(model)
        numbers = [
            [whole(each, index) for index, each in enumerate(self.read(text))] if text else []
            for text in (paths.replicas_path, paths.min_replicas_path, paths.max_replicas_path)
        ]
        return [Replicas(*each) for each in zip_longest(*numbers)]

    def fragments(self, model: ComponentModel) -> list[dict[str, Any]]:
        """The fragments by position, as many as the longest path gives."""
        texts = fragment_texts(model)
        found = {
            name: [converted(each, name, index) for index, each in enumerate(self.read(text))]
            for name, text in texts.items()
        }
        count = max(map(len, found.values()), default=0)
        return [
            {
                name: values[index]
                for name, values in found.items()
                if index < len(values) and values[index] is not None
            }
            for index in range(count)
        ]

    def status(self, model: ComponentModel) -> Status:
        if model.status_definition is None:
            raise NotDefinedError(model.name, "status")
        return read_status(model.status_definition, self._document, self.evaluator, "parity")

    def write(self, model: ComponentModel, form: Form, values: Sequence[Any]) -> None:
        if form == "scale":
            raise AccessError("not-writable", "scales cannot be updated")
        if form == "fragments":
            self.write_fragments(model, values)
        else:
            self.replace(model, path_text(model, form), values)

    def write_fragments(self, model: ComponentModel, values: Sequence[Mapping[str, Any]]) -> None:
        """Replace the fragments one by one; what is empty in all instances is left alone."""
        texts = fragment_texts(model)
        for name in ORDER:
            held = [each.get(name) for each in values]
            if not any(held):
                continue
            with told_as("fragment-failed", f"fragment `{name}` cannot be written", name=name):
                if name not in texts:
                    text = f"there are values of `{name}`, but no path"
                    raise AccessError("path-missing", text, name=name)
                self.replace(model, texts[name], [each or empty(name) for each in held])

    def replace(self, model: ComponentModel, text: str, values: Sequence[Any]) -> None:
        """Write values at the places of a path, in order; without ids the first one everywhere."""
        places = self.places(text)
        if not model.instance_id_path:
            values = [values[0] if values else None] * len(places)
        if len(places) != len(values):
            told = f"{len(places)} paths, but {len(values)} values"
            raise AccessError("length-mismatch", told, places=len(places), values=len(values))
        self.put_all(places, values)

    def assign(self, text: str, value: Any) -> None:
        places = self.places(text)
        self.put_all(places, [value] * len(places))

    def put_all(self, places: Sequence[Path], values: Sequence[Any]) -> None:
        """Write one value after the other; what was written before an error stays."""
        for place, value in zip(places, values, strict=True):
            with told_as("path-failed", "a value cannot be written"):
                self._document = put(self._document, place, plain(value))

    def read(self, text: str) -> list[Any]:
        """The outputs of a path; raises JqError."""
        return self.evaluator.values(text, self._document)

    def places(self, text: str) -> list[Path]:
        """The places of a path; raises JqError."""
        return self.evaluator.places(text, self._document)


def converted(value: Any, what: str, index: int) -> Any:
    """A value as its Go type would hold it: null is the empty value, a wrong type an error."""
    wanted: type = dict
    if what in TEXTS:
        wanted = str
    elif what in LISTS:
        wanted = list
    if value is None:
        return {} if what in {"template", "spec", "metadata"} else None
    inner = value if what == "template" and isinstance(value, dict) else {}
    parts = [inner.get(each) for each in ("metadata", "spec")]
    if not isinstance(value, wanted) or not all(
        each is None or isinstance(each, dict) for each in parts
    ):
        text = f"output {index} is {sort(value)}, which is no {what}"
        raise AccessError("wrong-type", text, index=index, what=what)
    return plain(value)


def plain(value: Any) -> Any:
    """A copy of a value as JSON; raises AccessError for what is none."""
    try:
        return json.loads(json.dumps(value))
    except (TypeError, ValueError, RecursionError) as error:
        text = "the value is no JSON"
        raise AccessError("wrong-type", text) from error


def whole(value: Any, index: int) -> int | None:
    """A number of replicas, which may be text; raises AccessError for what 32 bits do not hold."""
    value = number_in(value)
    if value is None:
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or value not in INT32:
        text = f"output {index} is {sort(value)}, which is no number of replicas"
        raise AccessError("wrong-type", text, index=index, what="scale")
    return value


def empty(name: str) -> Any:
    """What upstream writes where an instance lacks a fragment."""
    return "" if name in TEXTS else None
