"""Ports for programs that cannot be given an open socket."""

from __future__ import annotations

import contextlib
import random
import socket


def free_port() -> int:
    """A port that nobody has, out of those that the system does not give to whoever asks for any."""
    while True:
        address = "127.0.0.1", random.randrange(10_000, 32_000)
        with contextlib.suppress(OSError), socket.create_server(address):
            return address[1]
