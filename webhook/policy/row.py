"""A row of the field table: what one policy field is, where it lands, and what may be said of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

from webhook.objects.path import ABSENT, Path
from webhook.policy import values
from webhook.policy.values import Codec

ALL_TYPES = (
    "workspace",
    "training",
    "distributed",
    "inference",
    "distributedInference",
    "nimService",
)
BATCH_TYPES = ("workspace", "training", "distributed")
NATIVE_TYPES = (*BATCH_TYPES, "inference")
DISTRIBUTED = ("distributed",)
INFERENCE = ("inference",)
GROUPS = ("distributedInference",)
NIM = ("nimService",)
SERVING_TYPES = (*INFERENCE, *GROUPS, *NIM)
BROADEST_FIRST = frozenset({"compute", "security", "devices", "total", "scale", "scheduling"})


class Binding(Enum):
    """What a field binds to; the classes of the field catalogue."""

    MAIN = "B1"
    SAFETY = "B2"
    AMOUNT = "B3"
    POD = "B4"
    METADATA = "B5"
    WORKLOAD = "B6"
    NOTHING = "B7"
    ATTRIBUTE = "attr"


# How a field is read and written; each word is a binding of `workload/bindings`.
CONTAINER, POD, POD_SET, ITEMS = "container", "pod", "pod-set", "items"
AMOUNT, GPU, GPU_FORM = "amount", "gpu", "gpu-form"
PROBE, HOME, SHARED_MEMORY, HOST_PORTS = "probe", "home", "shared-memory", "host-ports"
IDENTITY, PULL_SECRETS = "identity", "pull-secrets"
NODE_TYPE, NODE_POOLS, NODE_AFFINITY = "node-type", "node-pools", "node-affinity"
POD_AFFINITY = "pod-affinity"
WORKLOAD, WORKLOAD_ITEMS, SERVING_PORT = "workload", "workload-items", "serving-port"
SCALE, TOTAL_GPUS, PRIORITY, PREEMPTIBILITY = "scale", "total-gpus", "priority", "preemptibility"
NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Attribute:
    """One attribute of an item; `at` names its place for the store that reads the item.

    `native` is False for what no native object carries; `codec` and `extra_rules` are for amounts
    that are typed as text.
    """

    name: str
    value: str
    at: tuple[str, ...] = ()
    enum: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    absent: Any = ABSENT
    required: bool = False
    takes_rules: bool = True
    native: bool = True
    codec: Codec | None = None
    extra_rules: frozenset[str] = frozenset()
    note: str = ""

    @property
    def legal_rules(self) -> frozenset[str]:
        """The rule names that may stand at this leaf."""
        if not self.takes_rules:
            return frozenset()
        return values.TABLE[self.value].rules | self.extra_rules

    def reading(self) -> Codec:
        """How values of this attribute are read, compared, written and shown."""
        return self.codec or values.TABLE[self.value].codec


@dataclass(frozen=True, slots=True)
class Items:
    """What makes a field itemized: its key, fallback identities in order, attributes and store."""

    key: str
    fallbacks: tuple[tuple[str, ...], ...]
    attributes: tuple[Attribute, ...]
    store: str
    attribute_defaults: bool = True

    def attribute(self, name: str) -> Attribute | None:
        """The attribute of that canonical name."""
        return next((each for each in self.attributes if each.name == name), None)


@dataclass(frozen=True, slots=True)
class Field:
    """One row. `at` is relative to what `shape` says: a container, the pod spec, its metadata.

    `pod_at` is the place in the pod spec that a container place overlays; `writes` says where a
    default goes: main, absent-main, every, pod, never. `absent` is what a missing value means; `required`
    asks for it in writing where the row is `explicit`.
    `types` limits fields without a place in a pod to workload types; `typed_aliases` are spellings
    that mean this field only where a policy is for its types alone. `safety` marks fields that are
    enforced on children where a kind has no place for them.
    """

    path: str
    value: str
    binding: Binding
    shape: str
    at: Path = ()
    pod_at: Path = ()
    writes: str = "main"
    absent: Any = ABSENT
    explicit: bool = False
    aliases: tuple[str, ...] = ()
    typed_aliases: tuple[str, ...] = ()
    enum: tuple[str, ...] = ()
    spellings: tuple[tuple[str, str], ...] = ()
    types: tuple[str, ...] = ALL_TYPES
    levels: tuple[str, ...] = ()
    items: Items | None = None
    codec: Codec | None = None
    rules: frozenset[str] | None = None
    extra_rules: frozenset[str] = frozenset()
    secret: bool = False
    safety: bool = False
    windows: bool = True
    note: str = ""

    @property
    def section(self) -> str:
        """The first segment of a grouped field, else root: it decides the scope order of rules."""
        return self.path.partition(".")[0] if "." in self.path else "root"

    @property
    def broadest_first(self) -> bool:
        """Whether the broadest scope's rules win for this field (compute, security, ...)."""
        return self.section in BROADEST_FIRST

    @property
    def legal_rules(self) -> frozenset[str]:
        """The rule names that may stand at this leaf."""
        rules = values.TABLE[self.value].rules if self.rules is None else self.rules
        return rules | self.extra_rules

    def reading(self) -> Codec:
        """How values of this field are read, compared, written and shown."""
        return self.codec or values.TABLE[self.value].codec
