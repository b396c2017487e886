"""The time of a request, in the format of Kubernetes; decisions get it as an argument."""

from __future__ import annotations

import time


def moment() -> str:
    """Now, in UTC and whole seconds; the texts sort by time."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
