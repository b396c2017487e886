"""The process that runs libjq: started as a file, without any package, by jq_process and by nobody else."""

from __future__ import annotations

import contextlib
import importlib.machinery
import importlib.util
import json
import os
import resource
import struct
import sys
import time
from itertools import islice
from typing import Any, Final

REQUEST: Final = struct.Struct("!III")
"""Bytes of the program, bytes of the document (0: only compile), seconds of CPU."""
ANSWER: Final = struct.Struct("!cI")
"""What it is and how many bytes follow. No answer carries text of jq's, which quotes the document."""
READY: Final = b"R"
OUTPUTS: Final = b"O"
NO_JQ: Final = b"S"
FAILED: Final = b"F"
TOO_MANY: Final = b"L"
REQUESTS, ANSWERS = 0, 1
PROGRAMS: Final = 256
Answer = tuple[bytes, bytes]


def main(library: str, memory: str, outputs: str, size: str) -> None:
    """Answer requests until there are no more; the bounds are bytes, a count and bytes."""
    jq = loaded(library)
    confine(int(memory))
    send(READY, b"")
    programs: dict[bytes, Any] = {}
    while True:
        program, document, seconds = REQUEST.unpack(receive(REQUEST.size))
        text, value = receive(program), receive(document)
        allow_cpu(seconds)
        send(*answered(jq, programs, text, value, int(outputs), int(size)))


def loaded(library: str) -> Any:
    """The jq package, which is one compiled module, from its file."""
    loader = importlib.machinery.ExtensionFileLoader("jq", library)
    spec = importlib.util.spec_from_file_location("jq", library, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def confine(memory: int) -> None:
    """Give up the environment, and the right to open anything, to start anything, to grow."""
    os.environ.clear()  # Python itself put the locale there
    # If the container runs out of memory, this process is to be taken and not its parent.
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:  # noqa: PTH123
        file.write("1000")
    # A limit is one above the highest descriptor: with three in use there is none for a file.
    for limit, value in (
        (resource.RLIMIT_NOFILE, 3),
        (resource.RLIMIT_NPROC, 0),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_AS, memory),
    ):
        resource.setrlimit(limit, (value, value))


def allow_cpu(seconds: int) -> None:
    """End this process after so many more seconds of CPU, even if its parent is gone."""
    until = int(time.process_time()) + 1 + seconds
    resource.setrlimit(resource.RLIMIT_CPU, (until, resource.RLIM_INFINITY))


def answered(
    jq: Any, programs: dict[bytes, Any], text: bytes, document: bytes, outputs: int, size: int
) -> Answer:
    """The answer to one request."""
    try:
        program = compiled(jq, programs, text)
    except ValueError:
        return NO_JQ, b""
    if not document:
        return OUTPUTS, b"[]"
    try:
        return outputs_of(program, document.decode(), outputs, size)
    except (ValueError, RecursionError):
        return FAILED, b""


def compiled(jq: Any, programs: dict[bytes, Any], text: bytes) -> Any:
    """The program, kept because compiling takes longer than most evaluations."""
    program = programs.get(text)
    if program is None:
        program = jq.compile(text.decode())
        if len(programs) >= PROGRAMS:
            del programs[next(iter(programs))]
        programs[text] = program
    return program


def outputs_of(program: Any, document: str, outputs: int, size: int) -> Answer:
    """All outputs as one JSON list."""
    found, length = [], 1
    for value in islice(program.input_text(document), outputs + 1):
        part = json.dumps(value, separators=(",", ":"), allow_nan=False)
        found.append(part)
        length += len(part) + 1
        if len(found) > outputs or length > size:
            return TOO_MANY, b""
    return OUTPUTS, f"[{','.join(found)}]".encode()


def receive(size: int) -> bytes:
    """So many bytes of the parent's; without a parent the process ends."""
    parts = []
    while size:
        part = os.read(REQUESTS, min(size, 1 << 20))
        if not part:
            sys.exit()
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def send(kind: bytes, payload: bytes) -> None:
    """Give an answer."""
    left = memoryview(ANSWER.pack(kind, len(payload)) + payload)
    while left:
        left = left[os.write(ANSWERS, left) :]


if __name__ == "__main__":
    main(*sys.argv[1:])
