"""Reads and writes components exactly like the upstream library, including its errors.

Values are paired with ids by position, and null is a value. A fragment that only some instances
have is written as empty to the others. Admission never uses this module.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any, Final

from webhook.access.component import Access, Form, Replicas, fragment_texts, path_text, scale_paths
from webhook.access.errors import AccessError, NotDefinedError, reraise_as
from webhook.access.status import Status, read_status
from webhook.documents.read_model import show_value, sort
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
    """One object as upstream's accessor reads it. The given object stays unchanged."""

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
            text = f"an instance of `{show_value(model.name)}` has no name: [{show_value(listed)}]"
            raise AccessError("ids-empty", text, ids=names)
        return names

    def values(self, model: ComponentModel, form: Form) -> list[Any]:
        if form == "scale":
            return self.scales(model)
        if form == "fragments":
            return self.fragments(model)
        found = self.read(path_text(model, form))
        return [convert_value(each, form, index) for index, each in enumerate(found)]

    def scales(self, model: ComponentModel) -> list[Replicas]:
        """Return the numbers by position. Shorter lists are padded with None."""
        paths = scale_paths(model)
        numbers = [
            [whole(each, index) for index, each in enumerate(self.read(text))] if text else []
            for text in (paths.replicas_path, paths.min_replicas_path, paths.max_replicas_path)
        ]
        return [Replicas(*each) for each in zip_longest(*numbers)]

    def fragments(self, model: ComponentModel) -> list[dict[str, Any]]:
        """Return the fragments by position, as many as the longest path finds."""
        texts = fragment_texts(model)
        found = {
            name: [convert_value(each, name, index) for index, each in enumerate(self.read(text))]
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
        """Replace the fragments one by one. A fragment that is empty in all instances is skipped."""
        texts = fragment_texts(model)
        for name in ORDER:
            held = [each.get(name) for each in values]
            if not any(held):
                continue
            with reraise_as("fragment-failed", f"fragment `{name}` cannot be written", name=name):
                if name not in texts:
                    text = f"there are values of `{name}`, but no path"
                    raise AccessError("path-missing", text, name=name)
                self.replace(model, texts[name], [each or empty(name) for each in held])

    def replace(self, model: ComponentModel, text: str, values: Sequence[Any]) -> None:
        """Write values to the results of a path, in order. Without ids, write the first one to all."""
        places = self.places(text)
        if not model.instance_id_path:
            values = [values[0] if values else None] * len(places)
        if len(places) != len(values):
            problem = f"{len(places)} paths, but {len(values)} values"
            raise AccessError("length-mismatch", problem, places=len(places), values=len(values))
        self.put_all(places, values)

    def assign(self, text: str, value: Any) -> None:
        places = self.places(text)
        self.put_all(places, [value] * len(places))

    def put_all(self, places: Sequence[Path], values: Sequence[Any]) -> None:
        """Write the values one by one. Values that were written before an error stay."""
        for place, value in zip(places, values, strict=True):
            with reraise_as("path-failed", "a value cannot be written"):
                self._document = put(self._document, place, plain(value))

    def read(self, text: str) -> list[Any]:
        """Return the outputs of a path. Raises JqError."""
        return self.evaluator.values(text, self._document)

    def places(self, text: str) -> list[Path]:
        """Return the paths that a text finds. Raises JqError."""
        return self.evaluator.places(text, self._document)


def convert_value(value: Any, what: str, index: int) -> Any:
    """Convert a value like its Go type: null is the empty value, a wrong type an error."""
    wanted: type = dict
    if what in TEXTS:
        wanted = str
    elif what in LISTS:
        wanted = list
    if value is None:
        return {} if what in {"template", "spec", "metadata"} else None
    inner = value if what == "template" and isinstance(value, dict) else {}
    found = [inner.get(each) for each in ("metadata", "spec")]
    if not isinstance(value, wanted) or not all(
        each is None or isinstance(each, dict) for each in found
    ):
        text = f"output {index} is {sort(value)}, which is no {what}"
        raise AccessError("wrong-type", text, index=index, what=what)
    return plain(value)


def plain(value: Any) -> Any:
    """Return a copy of a value as JSON. Raises AccessError if it is not JSON."""
    try:
        return json.loads(json.dumps(value))
    except (TypeError, ValueError, RecursionError) as error:
        text = "the value is no JSON"
        raise AccessError("wrong-type", text) from error


def whole(value: Any, index: int) -> int | None:
    """Return a number of replicas, which can be text. Raises AccessError above 32 bits."""
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
    """Return what upstream writes if an instance lacks a fragment."""
    return "" if name in TEXTS else None
