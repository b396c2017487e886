"""Image fields: containers that a policy's own repositories bring along are spared, exactly those."""

from __future__ import annotations

from collections.abc import Iterable

from webhook.evaluation.state import Evaluation
from webhook.fields.container import ContainerField, ServerDefault
from webhook.fields.items.field import ItemsField
from webhook.fields.storage.git import GitStore
from webhook.pods.pod_view import Container, PodView
from webhook.policy.combine import Leaf
from webhook.policy.row import Field


class ImageField(ContainerField):
    """A field of images. The image of a checkout is the installation's, and not the user's choice."""

    __slots__ = ("checkouts",)

    def __init__(
        self,
        field: Field,
        leaf: Leaf,
        server_default: ServerDefault | None,
        checkouts: ItemsField | None,
    ) -> None:
        super().__init__(field, leaf, server_default)
        self.checkouts = checkouts

    def bound(self, view: PodView, ev: Evaluation) -> Iterable[Container]:
        """The containers that rules look at: all but those that default items bring along."""
        found = super().bound(view, ev)
        if self.checkouts is None:
            return found
        return [each for each in found if not self.is_own(view, each)]

    def is_own(self, view: PodView, container: Container) -> bool:
        """Whether a container is as a default item makes it in all that it runs."""
        checkouts = self.checkouts
        assert checkouts is not None
        store = checkouts.store
        return isinstance(store, GitStore) and any(
            store.is_made(view, container, item, checkouts.completed(item))
            for item in checkouts.items
        )
