"""A client that posts one large body back to back: `python -m bench.heavy PORT FOLDER FILE`."""

from __future__ import annotations

import sys
from pathlib import Path

from bench.https import Client

if __name__ == "__main__":
    port, folder, file = sys.argv[1:]
    client = Client(
        int(port), Path(folder) / "ca.crt", "/mutate?timeout=30s", Path(file).read_bytes()
    )
    while True:
        client.post()
