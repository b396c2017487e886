"""The process that runs libjq: libjq.process starts it as a file, without any package."""

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
"""The type of the answer and the number of bytes that follow. No answer has messages of jq, which quote
the document."""
READY: Final = b"R"
OUTPUTS: Final = b"O"
NO_JQ: Final = b"S"
FAILED: Final = b"F"
TOO_MANY: Final = b"L"
REQUESTS, ANSWERS = 0, 1
PROGRAMS: Final = 256
Answer = tuple[bytes, bytes]


def main(library: str, memory: str, outputs: str, size: str) -> None:
    """Answer requests until there are no more; the limits are bytes, a count and bytes."""
    jq = load_library(library)
    confine(int(memory))
    send(READY, b"")
    programs: dict[bytes, Any] = {}
    while True:
        program, document, seconds = REQUEST.unpack(receive(REQUEST.size))
        text, value = receive(program), receive(document)
        allow_cpu(seconds)
        send(*answer_request(jq, programs, text, value, int(outputs), int(size)))


def load_library(library: str) -> Any:
    """Load the jq package, which is one compiled module, from its file."""
    loader = importlib.machinery.ExtensionFileLoader("jq", library)
    spec = importlib.util.spec_from_file_location("jq", library, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def confine(memory: int) -> None:
    """Drop the environment, and the rights to open files, to start processes, and to grow."""
    os.environ.clear()  # Python itself sets the locale
    # If the container runs out of memory, the kernel shall kill this process and not its parent.
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
    """End this process after so many more seconds of CPU, even without its parent."""
    until = int(time.process_time()) + 1 + seconds
    resource.setrlimit(resource.RLIMIT_CPU, (until, resource.RLIM_INFINITY))


def answer_request(
    jq: Any, programs: dict[bytes, Any], text: bytes, document: bytes, outputs: int, size: int
) -> Answer:
    """The answer to one request."""
    try:
        program = compile_program(jq, programs, text)
    except ValueError:
        return NO_JQ, b""
    if not document:
        return OUTPUTS, b"[]"
    try:
        return outputs_of(program, document.decode(), outputs, size)
    except (ValueError, RecursionError):
        return FAILED, b""


def compile_program(jq: Any, programs: dict[bytes, Any], text: bytes) -> Any:
    """Compile a program, with a cache because compiling takes longer than most evaluations."""
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
    """Read bytes from the parent; end the process if the parent is gone."""
    parts = []
    while size:
        part = os.read(REQUESTS, min(size, 1 << 20))
        if not part:
            sys.exit()
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def send(kind: bytes, payload: bytes) -> None:
    """Send an answer."""
    left = memoryview(ANSWER.pack(kind, len(payload)) + payload)
    while left:
        left = left[os.write(ANSWERS, left) :]


if __name__ == "__main__":
    main(*sys.argv[1:])
