"""TABLE of policy fields: name, value type, where each lands in a pod, and what a default writes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from webhook.core.pointer import ABSENT, Path
from webhook.core.policy import values
from webhook.core.policy.values import Codec

ALL_TYPES = (
    "workspace",
    "training",
    "distributed",
    "inference",
    "distributedInference",
    "nimService",
)
BATCH_TYPES = ("workspace", "training", "distributed")
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


@dataclass(frozen=True, slots=True)
class Attribute:
    """One attribute of an item; `at` names its place for the store that reads the item."""

    name: str
    value: str
    at: tuple[str, ...] = ()
    enum: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    absent: Any = ABSENT
    required: bool = False
    takes_rules: bool = True
    native: bool = True


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
    default goes: main, absent-main, every, pod, never. `absent` is what a missing value means.
    """

    path: str
    value: str
    binding: Binding
    shape: str
    at: Path = ()
    pod_at: Path = ()
    writes: str = "main"
    absent: Any = ABSENT
    aliases: tuple[str, ...] = ()
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


STRING_ITEM = (Attribute("exclude", "boolean", takes_rules=False, native=False),)
ENVIRONMENT = Items(
    "name",
    (),
    (
        Attribute("name", "string", ("name",), required=True, takes_rules=False),
        Attribute("value", "string", ("value",), takes_rules=False),
        Attribute("secret", "object", ("valueFrom", "secretKeyRef"), takes_rules=False),
        Attribute("configMap", "object", ("valueFrom", "configMapKeyRef"), takes_rules=False),
        Attribute("podFieldRef", "object", ("valueFrom", "fieldRef"), takes_rules=False),
        Attribute("userCredential", "object", takes_rules=False, native=False),
        Attribute("description", "string", takes_rules=False, native=False),
        *STRING_ITEM,
    ),
    store="environment",
    attribute_defaults=False,
)
NAMED_VALUES = (
    Attribute("name", "string", ("name",), required=True, takes_rules=False),
    Attribute("value", "string", ("value",), takes_rules=False),
    *STRING_ITEM,
)
TOLERATIONS = Items(
    "name",
    (("key", "operator", "value", "effect"),),
    (
        Attribute("name", "string", takes_rules=False, native=False),
        Attribute("operator", "string", ("operator",), ("Equal", "Exists"), absent="Equal"),
        Attribute("key", "string", ("key",)),
        Attribute("value", "string", ("value",)),
        Attribute(
            "effect",
            "string",
            ("effect",),
            ("NoSchedule", "NoExecute", "PreferNoSchedule", "Any"),
            absent="Any",
        ),
        Attribute("seconds", "integer", ("tolerationSeconds",)),
        Attribute("exclude", "boolean", native=False),
    ),
    store="tolerations",
)
HOST_PATH = Items(
    "name",
    (("path", "mountPath"), ("path",)),
    (
        Attribute("name", "string", ("name",)),
        Attribute("path", "string", ("source", "path"), required=True),
        Attribute("readOnly", "boolean", ("mount", "readOnly"), absent=False),
        Attribute("mountPath", "string", ("mount", "mountPath"), aliases=("mount",), required=True),
        Attribute(
            "mountPropagation",
            "string",
            ("mount", "mountPropagation"),
            ("None", "HostToContainer"),
            absent="None",
        ),
        *STRING_ITEM,
    ),
    store="hostPath",
)
NFS = Items(
    "name",
    (("server", "path", "mountPath"), ("server", "path")),
    (
        Attribute("name", "string", ("name",), takes_rules=False),
        Attribute("path", "string", ("source", "path"), required=True),
        Attribute(
            "server",
            "string",
            ("source", "server"),
            aliases=("nfsServer",),
            required=True,
        ),
        Attribute("mountPath", "string", ("mount", "mountPath"), required=True),
        Attribute("readOnly", "boolean", ("both", "readOnly"), absent=False),
        *STRING_ITEM,
    ),
    store="nfs",
)

CONTAINER, POD, AMOUNT, GPU, ITEMS = "container", "pod", "amount", "gpu", "items"
WORKLOAD, SCALE, PRIORITY, NODE_TYPE = "workload", "scale", "priority", "node-type"
SECURITY = "securityContext"

ROWS: tuple[Field, ...] = (
    Field("image", "string", Binding.SAFETY, CONTAINER, ("image",), writes="absent-main"),
    Field(
        "imagePullPolicy",
        "string",
        Binding.SAFETY,
        CONTAINER,
        ("imagePullPolicy",),
        writes="every",
        enum=("Always", "Never", "IfNotPresent"),
        spellings=(
            ("always", "Always"),
            ("ifNotPresent", "IfNotPresent"),
            ("never", "Never"),
        ),
    ),
    Field("workingDir", "string", Binding.MAIN, CONTAINER, ("workingDir",)),
    Field(
        "command",
        "string",
        Binding.MAIN,
        CONTAINER,
        ("command",),
        codec=values.COMMAND,
        secret=True,
    ),
    Field(
        "args",
        "string",
        Binding.MAIN,
        CONTAINER,
        ("args",),
        aliases=("arguments",),
        codec=values.COMMAND,
        secret=True,
    ),
    Field(
        "environmentVariables",
        "itemized",
        Binding.MAIN,
        ITEMS,
        aliases=("environment",),
        items=ENVIRONMENT,
        secret=True,
    ),
    Field(
        "labels",
        "itemized",
        Binding.METADATA,
        ITEMS,
        items=Items("name", (), NAMED_VALUES, store="labels", attribute_defaults=False),
    ),
    Field("tolerations", "itemized", Binding.POD, ITEMS, items=TOLERATIONS),
    Field("nodeType", "string", Binding.POD, NODE_TYPE, writes="pod"),
    Field(
        "priorityClass",
        "string",
        Binding.WORKLOAD,
        PRIORITY,
        spellings=(("medium- low", "medium-low"),),
    ),
    Field(
        "terminationGracePeriodSeconds",
        "integer",
        Binding.POD,
        POD,
        ("terminationGracePeriodSeconds",),
        writes="pod",
    ),
    Field("backoffLimit", "integer", Binding.WORKLOAD, WORKLOAD, types=BATCH_TYPES),
    Field(
        "numWorkers",
        "integer",
        Binding.WORKLOAD,
        WORKLOAD,
        types=("distributed",),
        levels=("worker",),
    ),
    Field(
        "scale.replicas",
        "integer",
        Binding.WORKLOAD,
        SCALE,
        writes="never",
        rules=frozenset({"min", "max", "step"}),
    ),
    Field(
        "compute.cpuCoreRequest",
        "number",
        Binding.AMOUNT,
        AMOUNT,
        ("resources", "requests", "cpu"),
        aliases=("compute.cpuCoresRequest",),
        codec=values.CORES,
    ),
    Field(
        "compute.cpuCoreLimit",
        "number",
        Binding.AMOUNT,
        AMOUNT,
        ("resources", "limits", "cpu"),
        codec=values.CORES,
    ),
    Field(
        "compute.cpuMemoryRequest",
        "quantity",
        Binding.AMOUNT,
        AMOUNT,
        ("resources", "requests", "memory"),
    ),
    Field(
        "compute.cpuMemoryLimit",
        "quantity",
        Binding.AMOUNT,
        AMOUNT,
        ("resources", "limits", "memory"),
    ),
    Field(
        "compute.gpuDevicesRequest",
        "integer",
        Binding.AMOUNT,
        GPU,
        ("resources", "limits", "nvidia.com/gpu"),
        aliases=(
            "compute.gpuDeviceRequest",
            "compute.gpuDeviceRequests",
            "compute.gpuDevices",
        ),
    ),
    Field(
        "security.privileged",
        "boolean",
        Binding.SAFETY,
        CONTAINER,
        (SECURITY, "privileged"),
        writes="every",
        absent=False,
        aliases=("privileged",),
        safety=True,
        windows=False,
    ),
    Field(
        "security.runAsUid",
        "integer",
        Binding.SAFETY,
        CONTAINER,
        (SECURITY, "runAsUser"),
        pod_at=(SECURITY, "runAsUser"),
        writes="pod",
        safety=True,
        windows=False,
    ),
    Field(
        "security.runAsNonRoot",
        "boolean",
        Binding.SAFETY,
        CONTAINER,
        (SECURITY, "runAsNonRoot"),
        pod_at=(SECURITY, "runAsNonRoot"),
        writes="pod",
        absent=False,
        safety=True,
    ),
    Field(
        "security.capabilities",
        "array",
        Binding.SAFETY,
        CONTAINER,
        (SECURITY, "capabilities", "add"),
        writes="main",
        codec=values.CAPABILITIES,
        safety=True,
        windows=False,
    ),
    Field("storage.hostPath", "itemized", Binding.POD, ITEMS, items=HOST_PATH),
    Field("storage.nfs", "itemized", Binding.POD, ITEMS, items=NFS),
)


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The rows by path, the attribute leaves of itemized rows, and every alias."""

    fields: dict[str, Field] = field(default_factory=dict)
    attributes: dict[str, tuple[Field, Attribute]] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)

    def leaf_rules(self, path: str) -> frozenset[str]:
        """The rules that may stand at a leaf: a field, or `<field>.<attribute>`."""
        if path in self.fields:
            return self.fields[path].legal_rules
        attribute = self.attributes[path][1]
        return values.TABLE[attribute.value].rules if attribute.takes_rules else frozenset()

    def leaf_codec(self, path: str) -> Codec:
        """How the values of a leaf are read and compared."""
        if path in self.fields:
            return self.fields[path].reading()
        return values.TABLE[self.attributes[path][1].value].codec

    def owner(self, path: str) -> Field:
        """The row that a leaf belongs to."""
        return self.fields[path] if path in self.fields else self.attributes[path][0]


def attribute_leaves(row: Field) -> Iterator[tuple[str, Attribute]]:
    """Each attribute of an itemized row with its leaf path, such as storage.nfs.server."""
    for attribute in row.items.attributes if row.items else ():
        yield f"{row.path}.{attribute.name}", attribute


def build(rows: tuple[Field, ...]) -> Catalogue:
    """Index the rows; a path or alias given twice is a fault of the table."""
    catalogue = Catalogue()
    for row in rows:
        if row.path in catalogue.fields:
            raise ValueError(f"field {row.path} stands twice in the table")
        catalogue.fields[row.path] = row
        for alias in row.aliases:
            if catalogue.aliases.setdefault(alias, row.path) != row.path:
                raise ValueError(f"alias {alias} stands for two fields")
        for leaf, attribute in attribute_leaves(row):
            catalogue.attributes[leaf] = (row, attribute)
            for alias in attribute.aliases:
                catalogue.aliases[f"{row.path}.{alias}"] = leaf
    return catalogue


TABLE = build(ROWS)
