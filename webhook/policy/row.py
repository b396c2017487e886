"""A row of the field table: a policy field, its path in the object, and the rules it accepts."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal, get_args

from webhook.objects.path import ABSENT, Path
from webhook.policy import values
from webhook.policy.rules import rules_for
from webhook.policy.values import Codec

WorkloadType = Literal[
    "workspace",
    "training",
    "distributed",
    "inference",
    "distributedInference",
    "nimService",
]
ALL_TYPES: tuple[WorkloadType, ...] = get_args(WorkloadType)
BATCH_TYPES = ("workspace", "training", "distributed")
NATIVE_TYPES = (*BATCH_TYPES, "inference")
DISTRIBUTED = ("distributed",)
INFERENCE = ("inference",)
GROUPS = ("distributedInference",)
NIM = ("nimService",)
BROADEST_FIRST = frozenset({"compute", "security", "devices", "total", "scale", "scheduling"})


class Binding(Enum):
    """What a field applies to: the classes of the field catalogue."""

    MAIN = "B1"
    SAFETY = "B2"
    AMOUNT = "B3"
    POD = "B4"
    METADATA = "B5"
    WORKLOAD = "B6"
    NOTHING = "B7"
    REQUEST = "B8"
    CONFIG = "B9"
    DOMAIN = "B10"
    ATTRIBUTE = "attr"


# How a field is read and written: the names of handlers, which webhook/fields/registry.py lists.
CONTAINER, POD, POD_SET, ITEMS = "container", "pod", "pod-set", "items"
AMOUNT, GPU, GPU_FORM = "amount", "gpu", "gpu-form"
PROBE, HOME, SHARED_MEMORY, HOST_PORTS = "probe", "home", "shared-memory", "host-ports"
IDENTITY, PULL_SECRETS = "identity", "pull-secrets"
NODE_TYPE, NODE_POOLS, NODE_AFFINITY = "node-type", "node-pools", "node-affinity"
POD_AFFINITY = "pod-affinity"
WORKLOAD, WORKLOAD_ITEMS, SERVING_PORT = "workload", "workload-items", "serving-port"
SCALE, TOTAL_GPUS, PRIORITY, PREEMPTIBILITY = "scale", "total-gpus", "priority", "preemptibility"
DEVICE, DEVICE_LIST, DEVICE_SUM = "device", "device-list", "device-sum"
NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Attribute:
    """One attribute of an item. `at` is its path for the store that reads the item.

    `native` is False if no native object carries it. `codec` and `extra_rules` are for amounts
    that are typed as strings.
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
        """The rules that this leaf accepts."""
        if not self.takes_rules:
            return frozenset()
        return rules_for(self.value) | self.extra_rules

    def reading(self) -> Codec:
        """Return the codec that reads, compares, writes and shows values of this attribute."""
        return self.codec or values.TABLE[self.value].codec


@dataclass(frozen=True, slots=True)
class Items:
    """The items of an itemized field: key, fallback identities in order, attributes and store."""

    key: str
    fallbacks: tuple[tuple[str, ...], ...]
    attributes: tuple[Attribute, ...]
    store: str
    attribute_defaults: bool = True

    def attribute(self, name: str) -> Attribute | None:
        """Return the attribute with this canonical name."""
        return next((each for each in self.attributes if each.name == name), None)


@dataclass(frozen=True, slots=True)
class Field:
    """One row. `shape` decides what `at` is relative to: a container, the pod spec, its metadata.

    `pod_at` is the path in the pod spec that the container's path overrides. `writes` is where a
    default is written: main, absent-main, every, pod, never. `absent` is the meaning of a missing
    value; if the row is `explicit`, the rule `required` asks for it in writing.
    `types` limits fields that pods do not have to some workload types. `typed_aliases` mean this
    field only if the policy applies to these types alone. `safety` marks fields that are enforced
    on child objects if a kind has no path for them.
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
        """The first segment of a grouped field, else root. It decides the scope order of rules."""
        return self.path.partition(".")[0] if "." in self.path else "root"

    @property
    def broadest_first(self) -> bool:
        """Whether the broadest scope's rules win for this field (compute, security, ...)."""
        return self.section in BROADEST_FIRST

    @property
    def legal_rules(self) -> frozenset[str]:
        """The rules that this leaf accepts."""
        rules = rules_for(self.value) if self.rules is None else self.rules
        return rules | self.extra_rules

    def reading(self) -> Codec:
        """Return the codec that reads, compares, writes and shows values of this field."""
        return self.codec or values.TABLE[self.value].codec
