"""Image fields. Rules do not apply to containers that a policy's own repositories add."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from webhook.evaluation.state import Evaluation
from webhook.fields.container import ContainerField, ServerDefault
from webhook.fields.container_security import (
    AppArmorField,
    EscalationField,
    PrivilegedField,
    SeccompField,
    TerminalField,
)
from webhook.fields.handler import FieldSource, PodHandler, container_paths
from webhook.fields.items.field import ItemsField
from webhook.fields.storage.git import GitStore
from webhook.fields.store_registry import items_field
from webhook.objects.path import Path
from webhook.pods.pod_view import Container, PodView
from webhook.policy.combine import Leaf
from webhook.policy.row import CONTAINER, Field


class ImageField(ContainerField):
    """A field of images. The installation, not the user, chooses the image of a checkout."""

    __slots__ = ("checkouts",)

    def __init__(
        self,
        row: Field,
        leaf: Leaf,
        server_default: ServerDefault | None,
        checkouts: ItemsField | None,
    ) -> None:
        super().__init__(row, leaf, server_default)
        self.checkouts = checkouts

    def bound(self, view: PodView, ev: Evaluation) -> Iterable[Container]:
        """Return the containers that rules apply to: all except those that default items add."""
        found = super().bound(view, ev)
        if self.checkouts is None:
            return found
        return [each for each in found if not self.is_own(view, each)]

    def is_own(self, view: PodView, container: Container) -> bool:
        """Return whether a container runs exactly what a default item makes."""
        checkouts = self.checkouts
        assert checkouts is not None
        store = checkouts.store
        return isinstance(store, GitStore) and any(
            store.is_made(view, container, item, checkouts.complete_item(item))
            for item in checkouts.items
        )


GIT = "storage.git"
SECURITY: dict[str, type[ContainerField]] = {
    "security.privileged": PrivilegedField,
    "security.allowPrivilegeEscalation": EscalationField,
    "security.seccompProfileType": SeccompField,
    "security.appArmorProfile.type": AppArmorField,
    "security.appArmorProfile.localhostProfile": AppArmorField,
}


class ContainerHandler(PodHandler):
    """Scalars of containers. Some rows are read or written differently."""

    name = CONTAINER

    def compile(self, source: FieldSource) -> ContainerField:
        """The field at its path in containers, with the default of the API server."""
        row, leaf, server = source.row, source.leaf, source.server.container(source.row.at)
        if row.path in ("image", "imagePullPolicy"):
            checkouts = source.of(GIT)
            own = items_field(checkouts) if checkouts.leaf.items else None
            return ImageField(row, leaf, server, own)
        if row.path == "tty":
            return TerminalField(row, leaf, server, source.effective.get("stdin"))
        at_pod = source.definition.profile.pod_security_context
        return SECURITY.get(row.path, ContainerField)(row, leaf, server, at_pod=at_pod)

    def pod_paths(self, row: Field) -> Sequence[Path]:
        """Where a pod template has the field."""
        return container_paths(row)
