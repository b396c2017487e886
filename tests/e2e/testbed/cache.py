"""The folder of the user's cache that keeps what the test bed built."""

import contextlib
import fcntl
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent


def root() -> Path:
    """Return `$PODGATE_CACHE_DIR`, else `$XDG_CACHE_HOME/podgate`, else `~/.cache/podgate`."""
    own = os.environ.get("PODGATE_CACHE_DIR")
    if own:
        return Path(own).expanduser().resolve()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "podgate"


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold `folder` for one process; a second one waits and says so."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w", encoding="utf-8") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            tell(f"another process is building in {folder}; waiting for it")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def tell(message: str) -> None:
    """Write one line of progress to standard error."""
    sys.stderr.write(f"testbed: {message}\n")
    sys.stderr.flush()


@contextlib.contextmanager
def step(what: str) -> Iterator[None]:
    """Tell `what` begins, then how many seconds it took."""
    tell(f"{what} ...")
    begun = time.monotonic()
    yield
    tell(f"{what}: done in {time.monotonic() - begun:.0f} s")
