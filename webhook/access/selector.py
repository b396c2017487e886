"""One pod and the selectors of a component: what the pod is, which instance, which replica."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from webhook.access.errors import AccessError, told_as
from webhook.documents.read_model import shown
from webhook.interface.document import Member, Mode, PodSelector, TypeSelector
from webhook.jq.expressions import Evaluator, native, text_of


class PodQuery:
    """Answers questions about one pod. Methods raise JqError for text that fails, AccessError else.

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
        """The pod's name, as far as it has one."""
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
        """Whether the type selector selects the pod; without one it does not."""
        by_type = selector.component_type_selector if selector else None
        if by_type is None or not (by_type.key_path or by_type.match_labels):
            return False
        wanted = by_type.match_labels or {}
        if any(self.labels.get(key) != value for key, value in wanted.items()):
            return False
        return not by_type.key_path or self.has_key(by_type, by_type.key_path)

    def has_key(self, by_type: TypeSelector, key_path: str) -> bool:
        """Whether the key path gives the value, or anything where no value is asked for."""
        if by_type.value is None:
            return any(each is not None for each in self.values(key_path))
        program = native(key_path)
        alone = program is not None and "//" not in key_path
        if self.mode == "admission" or alone:
            return any(each == by_type.value for each in self.values(key_path))
        # Upstream appends the comparison to the text, where it binds tighter than `//`.
        found = self.values(f"{key_path} == {json.dumps(by_type.value)}")
        return any(each is True for each in found)

    def instance_id(self, selector: PodSelector | None) -> str | None:
        """What the pod says its instance is; None where nobody asks."""
        by_instance = selector.component_instance_selector if selector else None
        text = by_instance.id_path if by_instance else ""
        with told_as("instance-id-failed", "the pod's instance cannot be read", path=text):
            return text_of(self.one(text)) if text else None

    def replica_key(self, selector: PodSelector | None) -> str | None:
        """What the pod says its replica is; None where nobody asks."""
        by_replica = selector.replica_selector if selector else None
        text = by_replica.key_path if by_replica else ""
        with told_as("replica-key-failed", "the pod's replica cannot be read", path=text):
            return text_of(self.one(text)) if text else None

    def group_keys(self, member: Member) -> list[str]:
        """The keys by which the pods of a member are grouped; empty: by owner."""
        return [self.group_key(text) for text in member.group_by_key_paths]

    def group_key(self, text: str) -> str:
        """One such key."""
        with told_as("group-key-failed", "a group key cannot be read", path=text):
            return text_of(self.one(text))

    def passes(self, filters: Sequence[str]) -> bool:
        """Whether every filter gives true."""
        for text in filters:
            with told_as("filter-failed", f"filter `{shown(text)}`", filter=text):
                if self.one(text) is not True:
                    return False
        return True

    def matching_id(self, selector: PodSelector | None, ids: Sequence[str]) -> str:
        """The instance that the pod belongs to, one of `ids`."""
        name = self.instance_id(selector)
        if name is None:
            if list(ids) == [""]:
                return ""
            text = "there are instances, but nothing shows which one the pod belongs to"
            raise AccessError("instance-selector-missing", text, ids=list(ids))
        if name not in ids:
            text = f"the pod is of instance `{shown(name)}`, which is none of {len(ids)}"
            raise AccessError("instance-unmatched", text, id=name, ids=list(ids))
        return name

    def one(self, text: str) -> Any:
        """The only output of a text, which is neither null nor ""."""
        found = self.values(text)
        if len(found) != 1:
            told = f"`{shown(text)}` gives {len(found)} results where one is wanted"
            raise AccessError("several-results", told, count=len(found))
        if found[0] is None or found[0] == "":
            raise AccessError("no-result", f"`{shown(text)}` gives nothing")
        return found[0]

    def values(self, text: str) -> list[Any]:
        """The outputs of a text on the pod."""
        return self.evaluator.values(text, self.pod)
