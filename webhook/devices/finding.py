"""What a check of devices finds in an object."""

from __future__ import annotations

from typing import NamedTuple

from webhook.objects.path import Path


class Finding(NamedTuple):
    """A fault of an object at one path, with a reason of docs/reasons.md.

    `value` is what is there, `allowed` what may be there, both as text, None if there is no such
    text. `key` names what the fault depends on: a feature gate, a field, another path. `warning`:
    podgate only warns of it, whatever the settings are.
    """

    path: Path
    reason: str
    value: str | None = None
    allowed: str | None = None
    key: str = ""
    warning: bool = False
