"""Which tests run which line of the decision code: recorded once, then asked for each mutant.

A test that takes what a cached function or a fixture of a wider scope made runs its lines too, though
only the first such test is seen doing so. Their lines are recorded under the name of the cache or
fixture, and the tests that use it count for them.
"""

from __future__ import annotations

import difflib
import functools
import gc
import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import coverage
import pytest

PLAIN_CACHE = functools.lru_cache
WATCHED = ("tests.", "webhook.cases", "webhook.sources.load")
SAVED_EVERY = 200  # tests


@dataclass(frozen=True)
class Runs:
    """The tests that run a line, and whether an import or the reading of shipped documents does."""

    tests: set[str]
    at_import: bool
    by_loading: bool


class Recording:
    """A folder with the lines that each test ran, its CPU time, and the sources at that time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lines_file, self.tests_file = folder / "lines", folder / "tests.json"
        known = json.loads(self.tests_file.read_text()) if self.tests_file.exists() else {}
        self.seconds: dict[str, float] = known.get("seconds", {})
        self.uses: dict[str, list[str]] = known.get("uses", {})
        self.sources: dict[str, str] = known.get("sources", {})
        self.complete: bool = known.get("complete", False)

    def delete(self) -> None:
        """Delete the files, so that everything is recorded anew."""
        self.lines_file.unlink(missing_ok=True)
        self.tests_file.unlink(missing_ok=True)

    def save(self) -> None:
        """Write the part that coverage does not keep."""
        held = {
            "seconds": self.seconds,
            "uses": self.uses,
            "sources": self.sources,
            "complete": self.complete,
        }
        self.folder.mkdir(exist_ok=True)
        self.tests_file.write_text(json.dumps(held))

    @functools.cached_property
    def lines(self) -> coverage.CoverageData:
        """The recorded lines."""
        data = coverage.CoverageData(str(self.lines_file))
        data.read()
        return data

    @functools.cached_property
    def users(self) -> dict[str, set[str]]:
        """The tests that use a cache or a fixture."""
        found: dict[str, set[str]] = defaultdict(set)
        for test, names in self.uses.items():
            waiting = list(names)
            while waiting:  # what a cache uses, its users use
                name = waiting.pop()
                if test not in found[name]:
                    found[name].add(test)
                    waiting += self.uses.get(name, ())
        return found

    @functools.lru_cache(maxsize=512)  # noqa: B019 (one recording lives as long as the program)
    def contexts(self, file: str) -> dict[int, list[str]]:
        """The contexts of each line, by its number in the recorded source."""
        full = next((each for each in self.lines.measured_files() if each.endswith(file)), file)
        return self.lines.contexts_by_lineno(full)

    @functools.cached_property
    def sizes(self) -> dict[str, int]:
        """How many lines each test runs: one that runs few is about those."""
        found: dict[str, int] = defaultdict(int)
        for file in self.lines.measured_files():
            for contexts in self.lines.contexts_by_lineno(file).values():
                for test in contexts:
                    found[test] += 1
        return found

    def runs_of(self, file: str, source: str, first: int, last: int) -> Runs:
        """What runs any line of a range."""
        old = self.sources.get(file, source)
        by_line = self.contexts(file)
        lines = recorded_lines(old, source, first, last)
        contexts = {each for line in lines for each in by_line.get(line, ())}
        tests = {test for each in contexts for test in self.users.get(each, {each})}
        loads = any(each.startswith("@webhook.") for each in contexts)
        return Runs(tests & self.seconds.keys(), "" in contexts, loads)


@functools.lru_cache(maxsize=512)
def map_lines(old: str, new: str) -> dict[int, int]:
    """The old number of each line that is in both texts."""
    matcher = difflib.SequenceMatcher(None, old.splitlines(), new.splitlines(), autojunk=False)
    return {
        block.b + at + 1: block.a + at + 1
        for block in matcher.get_matching_blocks()
        for at in range(block.size)
    }


def recorded_lines(old: str, new: str, first: int, last: int) -> set[int]:
    """Lines of the recorded text for a range of the present one; for new lines those around."""
    if old == new:
        return set(range(first, last + 1))
    lines = map_lines(old, new)
    found = {lines[each] for each in range(first, last + 1) if each in lines}
    distance = 0
    while not found and distance < 20:
        distance += 1
        found = {lines[each] for each in (first - distance, last + distance) if each in lines}
    return found


class Recorder:
    """Runs tests under coverage, each under its own context."""

    def __init__(self, recording: Recording, sources: dict[str, str]) -> None:
        self.recording = recording
        recording.sources = sources
        self.coverage = coverage.Coverage(
            data_file=str(recording.lines_file),
            config_file=False,
            include=[str(Path(each).resolve()) for each in sources],
        )
        self.context = ""
        self.used: set[str] = set()
        self.own: list[Any] = []
        self.running = False

    def start(self) -> None:
        """Start before the program is imported; what runs at import has the empty context."""
        self.coverage.load()
        self.coverage.start()
        self.running = True
        functools.lru_cache = self.watch
        functools.cache = self.watch(maxsize=None)

    def watch(self, maxsize: Any = 128, typed: bool = False) -> Any:
        """`functools.lru_cache` whose misses are recorded under a name of their own."""
        if callable(maxsize):
            return self.watch()(maxsize)

        def decorate(function: Callable[..., Any]) -> Any:
            if not str(getattr(function, "__module__", "")).startswith(WATCHED):
                self.own.append(PLAIN_CACHE(maxsize, typed)(function))
                return self.own[-1]
            name = f"@{function.__module__}.{function.__qualname__}"

            def run(*args: Any, **kwargs: Any) -> Any:
                with self.within(name):
                    return function(*args, **kwargs)

            cached = PLAIN_CACHE(maxsize, typed)(run)

            @functools.wraps(function)
            def call(*args: Any, **kwargs: Any) -> Any:
                self.note(name)
                return cached(*args, **kwargs)

            call.cache_clear = cached.cache_clear  # type: ignore[attr-defined]
            call.cache_info = cached.cache_info  # type: ignore[attr-defined]
            return call

        return decorate

    def within(self, name: str) -> Any:
        """A block whose lines are recorded under a name."""
        return Within(self, name)

    def note(self, name: str) -> None:
        """The running test, or the cache that is being filled, uses this cache or fixture."""
        self.used.add(name)
        if self.context.startswith("@"):
            names = self.recording.uses.setdefault(self.context, [])
            names += [name] if name not in names else []

    def switch(self, context: str) -> None:
        """Lines from here on are of this context."""
        self.context = context
        if self.running:
            self.coverage.switch_context(context)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any, request: Any) -> Iterator[Any]:
        """A fixture of a wider scope is recorded under its own name."""
        if fixturedef.scope == "function":
            return (yield)
        with self.within(f"@{fixturedef.argname}"):
            return (yield)

    def record(self, items: list[pytest.Item]) -> None:
        """Run the tests that are not recorded yet; leave out those that fail."""
        from _pytest.runner import runtestprotocol

        left = [each for each in items if each.nodeid not in self.recording.seconds]
        for number, (item, after) in enumerate(zip(left, [*left[1:], None], strict=True), 1):
            self.used = {f"@{name}" for name in getattr(item, "fixturenames", ())}
            for cache in self.own:  # or only the first test would be seen running its lines
                cache.cache_clear()
            self.switch(item.nodeid)
            began = time.process_time()
            reports = runtestprotocol(item, log=False, nextitem=after)
            if any(each.failed for each in reports):
                print(f"fails without a mutant, left out: {item.nodeid}")
            elif not any(each.skipped for each in reports):
                self.recording.seconds[item.nodeid] = time.process_time() - began
                self.recording.uses[item.nodeid] = sorted(self.used)
            if number % SAVED_EVERY == 0:
                self.save()
        self.coverage.stop()
        self.recording.complete = True
        self.save()

    def save(self) -> None:
        """Write what was recorded so far; a recording that is stopped goes on there."""
        self.coverage.save()
        self.recording.save()


class Within:
    """A block of lines under a context; the former one comes back behind it."""

    def __init__(self, recorder: Recorder, name: str) -> None:
        self.recorder, self.name, self.before = recorder, name, ""

    def __enter__(self) -> None:
        self.before = self.recorder.context
        self.recorder.switch(self.name)

    def __exit__(self, *_: object) -> None:
        self.recorder.switch(self.before)
        self.recorder.note(self.name)


def forget_caches() -> None:
    """Empty every cache, so that a mutant cannot hide behind what was made before it."""
    for each in gc.get_objects():
        if isinstance(each, functools._lru_cache_wrapper):
            each.cache_clear()
