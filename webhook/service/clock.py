"""The moment of a request, as Kubernetes writes one; decisions get it as an argument."""

from __future__ import annotations

import time


def moment() -> str:
    """Now, in UTC and whole seconds: of two such texts the later one is the greater."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
