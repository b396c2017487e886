"""Fields of parts of a GPU and of MIG profiles, one binding per row."""

from __future__ import annotations

from typing import Any

from webhook.core.policy.combine import Effective, Leaf
from webhook.core.policy.fields import Field
from webhook.core.workload.bindings.host_ports import HostPortsField
from webhook.core.workload.vocabulary import Vocabulary


def gpu_form(row: Field, leaf: Leaf, words: Vocabulary, effective: Effective) -> Any:
    """The binding of one row of shape gpu-form."""
    return HostPortsField(row, leaf)
