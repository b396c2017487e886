"""Gates of the start: what it costs to read and compile every shipped definition."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import yaml

from bench.timing import ROUNDS, Gate, settle
from webhook.catalog.build import Choices, assemble, parse_documents
from webhook.jq.path import compile_query
from webhook.policy.envelope import Context
from webhook.sources import files
from webhook.sources.load import DEFAULT_MINOR, server_defaults, shipped_paths


def compiled() -> None:
    """What the first load of a process does beside what is given: read, check, compile, join."""
    compile_query.cache_clear()
    documents, problems = files.read_all(shipped_paths())
    table = server_defaults(DEFAULT_MINOR)
    shipped = parse_documents(documents, Context(), shipped=True)
    catalog, more = assemble(shipped, (), Choices(), None)
    if catalog is None or problems or not hasattr(table, "kinds"):
        raise SystemExit(f"the shipped documents do not load: {problems} {more}")


def decoded(texts: list[bytes]) -> None:
    """The same files by the plain loader of the YAML library, without places and checks."""
    for text in texts:
        list(yaml.load_all(text, Loader=yaml.CSafeLoader))


def once(run: Callable[[], None]) -> float:
    """CPU seconds of one call."""
    started = time.process_time()
    run()
    return time.process_time() - started


def gates() -> Iterator[Gate]:
    """S1 in seconds, S2 beside decoding the same files."""
    names, _ = files.files_of(shipped_paths())
    texts = [Path(each).read_bytes() for each in names]
    compiled()
    settle()
    pairs = [(once(compiled), once(lambda: decoded(texts))) for _ in range(ROUNDS)]
    ours = statistics.median(one for one, _ in pairs)
    theirs = statistics.median(two for _, two in pairs)
    detail = f"{len(names)} files, {sum(map(len, texts)) / 1000:.0f} KB: {ours * 1e3:.0f} ms"
    yield Gate("S1", "seconds to compile every shipped definition", ours, 0.5, detail)
    figure = statistics.median(one / two for one, two in pairs)
    detail = f"{ours * 1e3:.0f} ms beside {theirs * 1e3:.0f} ms"
    yield Gate("S2", "the same ÷ decoding these files as plain YAML", figure, 4.0, detail)
