"""TABLE of bindings: for each shape of field that lives in pods, what reads, judges and fills it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from webhook.evaluation.installation import Vocabulary
from webhook.evaluation.server_defaults import KindDefaults
from webhook.fields.affinity import NodeAffinityField, PodAffinityField
from webhook.fields.amount import AmountField
from webhook.fields.container import ContainerField
from webhook.fields.container_security import (
    EscalationField,
    PrivilegedField,
    SeccompField,
    TerminalField,
)
from webhook.fields.gpu.count import GpuDevicesField
from webhook.fields.gpu.forms import gpu_form
from webhook.fields.host_network import HostNetworkField
from webhook.fields.host_ports import HostPortsField
from webhook.fields.identity import IdentityField
from webhook.fields.image import ImageField
from webhook.fields.items.field import ItemsField
from webhook.fields.names_in_use import PodSetField
from webhook.fields.node_pools import NodePoolsField
from webhook.fields.own_volumes import OwnVolumes
from webhook.fields.pod import NodeTypeField, PodField
from webhook.fields.probe import ProbeField
from webhook.fields.service_account import ServiceAccountField
from webhook.fields.serving_port import ServingPortField
from webhook.fields.storage.home_directory import HomeField, SharedMemoryField
from webhook.fields.store_registry import store_of
from webhook.fields.stores.pull_secrets import PullSecretsField
from webhook.pods.definition import Definition
from webhook.policy.combine import Effective, Leaf
from webhook.policy.row import (
    AMOUNT,
    CONTAINER,
    GPU,
    GPU_FORM,
    HOME,
    HOST_PORTS,
    IDENTITY,
    ITEMS,
    NODE_AFFINITY,
    NODE_POOLS,
    NODE_TYPE,
    POD,
    POD_AFFINITY,
    POD_SET,
    PROBE,
    PULL_SECRETS,
    SERVING_PORT,
    SHARED_MEMORY,
    Field,
)
from webhook.policy.table import TABLE

GIT = "storage.git"


@dataclass(frozen=True, slots=True)
class Given:
    """What a binding is made from: a row with its leaf, and where and for whom it is compiled."""

    row: Field
    leaf: Leaf
    effective: Effective
    component: str
    definition: Definition
    server: KindDefaults
    words: Vocabulary

    @property
    def attributes(self) -> dict[str, Leaf]:
        """The effective leaves of an itemized field's attributes by attribute name."""
        assert self.row.items is not None
        return {
            each.name: self.effective[f"{self.row.path}.{each.name}"]
            for each in self.row.items.attributes
            if f"{self.row.path}.{each.name}" in self.effective
        }


def container_field(given: Given) -> ContainerField:
    """The binding of a container's field; some rows are written in a way of their own."""
    row, leaf, server = given.row, given.leaf, given.server.container(given.row.at)
    if row.path in ("image", "imagePullPolicy"):
        return ImageField(row, leaf, server, checkouts(given))
    if row.path == "tty":
        return TerminalField(row, leaf, server, given.effective.get("stdin"))
    made = {
        "security.privileged": PrivilegedField,
        "security.allowPrivilegeEscalation": EscalationField,
        "security.seccompProfileType": SeccompField,
    }.get(row.path, ContainerField)
    return made(row, leaf, server, at_pod=given.definition.profile.pod_security_context)


def pod_field(given: Given) -> PodField:
    """The binding of a field of the pod spec; two rows have more than one place."""
    row, leaf, server = given.row, given.leaf, given.server.pod(given.row.at)
    if row.path == "security.hostNetwork":
        return HostNetworkField(row, leaf, server, given.effective.get("security.hostPorts"))
    if row.path == "security.serviceAccountName":
        return ServiceAccountField(row, leaf)
    return PodField(row, leaf, row.at, server)


def identity_field(given: Given) -> IdentityField:
    """The binding of the source of ids, which writes them where the kind takes them."""
    at_pod = given.definition.profile.pod_security_context
    uid = given.effective.get("security.runAsUid")
    gid = given.effective.get("security.runAsGid")
    return IdentityField(given.row, given.leaf, given.words, uid, gid, at_pod=at_pod)


def items_field(given: Given) -> ItemsField:
    """The binding of an itemized field with the store that its row names."""
    store = store_of(given.row, given.definition, given.words)
    return ItemsField(given.row, given.leaf, given.attributes, store)


def checkouts(given: Given) -> ItemsField | None:
    """The repositories that the same policies bring along; None for none."""
    leaf = given.effective.get(GIT)
    if leaf is None or not leaf.items:
        return None
    return items_field(replace(given, row=TABLE.fields[GIT], leaf=leaf))


def own_volumes(given: Given) -> OwnVolumes:
    """The defaults of the same policies that bring volumes along."""
    said = [
        (TABLE.fields[path], leaf) for path, leaf in given.effective.items() if path in TABLE.fields
    ]
    directories = {HOME: HomeField, SHARED_MEMORY: SharedMemoryField}
    return OwnVolumes(
        [directories[row.shape](row, leaf) for row, leaf in said if row.shape in directories],
        [
            items_field(replace(given, row=row, leaf=leaf))
            for row, leaf in said
            if leaf.items and row.path.startswith("storage.")
        ],
    )


def serving_port(given: Given) -> ServingPortField | None:
    """The binding of a serving port where the profile says that these pods carry it."""
    profile = given.definition.profile
    held = profile.fields.get(given.row.path)
    mains = held.main_port if held is not None else ()
    if not {given.component, profile.component(given.component).stands_in_for} & set(mains):
        return None
    return ServingPortField(given.row, given.leaf, frozenset(mains))


POD_BINDINGS: dict[str, Callable[[Given], Any]] = {
    CONTAINER: container_field,
    POD: pod_field,
    POD_SET: lambda g: PodSetField(g.row, g.leaf, own_volumes(g)),
    AMOUNT: lambda g: AmountField(g.row, g.leaf),
    GPU: lambda g: GpuDevicesField(g.row, g.leaf, g.words, g.effective),
    GPU_FORM: lambda g: gpu_form(g.row, g.leaf, g.words, g.effective),
    NODE_TYPE: lambda g: NodeTypeField(
        g.row, g.leaf, g.words.node_type_label, g.effective.get("nodeAffinityRequired")
    ),
    NODE_POOLS: lambda g: NodePoolsField(g.row, g.leaf, g.words),
    NODE_AFFINITY: lambda g: NodeAffinityField(g.row, g.leaf),
    POD_AFFINITY: lambda g: PodAffinityField(
        g.row, g.leaf, g.effective, g.definition.profile.name_label
    ),
    IDENTITY: identity_field,
    HOST_PORTS: lambda g: HostPortsField(g.row, g.leaf),
    HOME: lambda g: HomeField(g.row, g.leaf),
    SHARED_MEMORY: lambda g: SharedMemoryField(g.row, g.leaf),
    PROBE: lambda g: ProbeField(g.row, g.leaf, g.server.container(g.row.at), g.effective),
    PULL_SECRETS: lambda g: PullSecretsField(g.row, g.leaf, g.attributes),
    SERVING_PORT: serving_port,
    ITEMS: items_field,
}
