"""Evaluates the selectors of a component on a pod: its type, instance and replica."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from webhook.access.errors import AccessError, reraise_as
from webhook.documents.read_model import show_value
from webhook.interface.document import Member, Mode, PodSelector, TypeSelector
from webhook.jq.expressions import Evaluator, native, text_of


class PodQuery:
    """Evaluates selectors on one pod. Methods raise JqError for text that fails, else AccessError.

    In parity a key path with `//` binds against the value as upstream writes it; admission
    compares what the key path gives.
    """

    def __init__(
        self, pod: Any, evaluator: Evaluator | None = None, mode: Mode = "admission"
    ) -> None:
        self.pod = pod
        self.evaluator = evaluator or Evaluator()
        self.mode = mode

    @property
    def name(self) -> str:
        """The pod's name, or "" if it has none."""
        metadata = self.pod.get("metadata") if isinstance(self.pod, dict) else None
        name = metadata.get("name") if isinstance(metadata, dict) else None
        return name if isinstance(name, str) else ""

    @property
    def labels(self) -> Mapping[str, Any]:
        """The pod's labels."""
        metadata = self.pod.get("metadata") if isinstance(self.pod, dict) else None
        labels = metadata.get("labels") if isinstance(metadata, dict) else None
        return labels if isinstance(labels, dict) else {}

    def is_of_type(self, selector: PodSelector | None) -> bool:
        """Whether there is a type selector that selects the pod."""
        by_type = selector.component_type_selector if selector else None
        if by_type is None or not (by_type.key_path or by_type.match_labels):
            return False
        wanted = by_type.match_labels or {}
        if any(self.labels.get(key) != value for key, value in wanted.items()):
            return False
        return not by_type.key_path or self.has_key(by_type, by_type.key_path)

    def has_key(self, by_type: TypeSelector, key_path: str) -> bool:
        """Whether the key path finds the value, or any value if the selector has none."""
        if by_type.value is None:
            return any(each is not None for each in self.values(key_path))
        program = native(key_path)
        alone = program is not None and "//" not in key_path
        if self.mode == "admission" or alone:
            return any(each == by_type.value for each in self.values(key_path))
        # Upstream appends the comparison to the text. It binds tighter than `//`.
        found = self.values(f"{key_path} == {json.dumps(by_type.value)}")
        return any(each is True for each in found)

    def instance_id(self, selector: PodSelector | None) -> str | None:
        """Return the instance id in the pod, None without a selector."""
        by_instance = selector.component_instance_selector if selector else None
        text = by_instance.id_path if by_instance else ""
        with reraise_as("instance-id-failed", "the pod's instance cannot be read", path=text):
            return text_of(self.one(text)) if text else None

    def replica_key(self, selector: PodSelector | None) -> str | None:
        """Return the replica id in the pod, None without a selector."""
        by_replica = selector.replica_selector if selector else None
        text = by_replica.key_path if by_replica else ""
        with reraise_as("replica-key-failed", "the pod's replica cannot be read", path=text):
            return text_of(self.one(text)) if text else None

    def group_keys(self, member: Member) -> list[str]:
        """Return the keys by which the pods of a member are grouped. Empty: by owner."""
        return [self.group_key(text) for text in member.group_by_key_paths]

    def group_key(self, text: str) -> str:
        """Return one such key."""
        with reraise_as("group-key-failed", "a group key cannot be read", path=text):
            return text_of(self.one(text))

    def passes(self, filters: Sequence[str]) -> bool:
        """Whether every filter returns true."""
        for text in filters:
            with reraise_as("filter-failed", f"filter `{show_value(text)}`", filter=text):
                if self.one(text) is not True:
                    return False
        return True

    def matching_id(self, selector: PodSelector | None, ids: Sequence[str]) -> str:
        """Return the instance that the pod belongs to, one of `ids`."""
        name = self.instance_id(selector)
        if name is None:
            if list(ids) == [""]:
                return ""
            text = "there are instances, but nothing shows which one the pod belongs to"
            raise AccessError("instance-selector-missing", text, ids=list(ids))
        if name not in ids:
            text = f"the pod is of instance `{show_value(name)}`, which is none of {len(ids)}"
            raise AccessError("instance-unmatched", text, id=name, ids=list(ids))
        return name

    def one(self, text: str) -> Any:
        """Return the only output of a text, which must be neither null nor ""."""
        found = self.values(text)
        if len(found) != 1:
            problem = f"`{show_value(text)}` gives {len(found)} results where one is wanted"
            raise AccessError("several-results", problem, count=len(found))
        if found[0] is None or found[0] == "":
            raise AccessError("no-result", f"`{show_value(text)}` gives nothing")
        return found[0]

    def values(self, text: str) -> list[Any]:
        """Return the outputs of a text on the pod."""
        return self.evaluator.values(text, self.pod)
