"""imagePullSecrets: items of names, with rules on the whole list beside."""

from __future__ import annotations

from collections.abc import Mapping

from webhook.core.policy.combine import Leaf
from webhook.core.policy.fields import Field
from webhook.core.workload.bindings.items import ItemsField
from webhook.core.workload.bindings.stores import TolerationStore


class PullSecretsField(ItemsField):
    """To be written."""

    def __init__(self, field: Field, leaf: Leaf, attributes: Mapping[str, Leaf]) -> None:
        super().__init__(field, leaf, attributes, TolerationStore())
