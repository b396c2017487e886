"""Suspending and resuming a workload as its definition says."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from webhook.access.component import Access
from webhook.access.errors import AccessError
from webhook.interface.document import ComponentModel, SuspendAction


def suspend(model: ComponentModel, access: Access) -> None:
    """Write what suspends the component; nothing where the definition has no such actions."""
    if model.suspend_definition is not None:
        apply(model.suspend_definition.suspend_actions, access)


def resume(model: ComponentModel, access: Access) -> None:
    """Write what lets the component go on; nothing where the definition has no such actions."""
    if model.suspend_definition is not None:
        apply(model.suspend_definition.resume_actions, access)


def apply(actions: Sequence[SuspendAction], access: Access) -> None:
    """Write the values of the actions, in order; raises AccessError."""
    for action in actions:
        access.assign(action.path, meant(action.value))


def meant(value: Any) -> Any:
    """The value of an action: text holds JSON, anything else is the value itself."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError) as error:
        raise AccessError("value-not-json", "the value of an action is no JSON") from error
