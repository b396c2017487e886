"""Checks the tests: how many single-operator mutants of the decision code do they catch?

`make mutants SEED=1 COUNT=500` draws mutants by a seed, runs for each the tests that run its line, and
lists those that no test catches. The first run records which test runs which line (kept in .mutants/).
Results are kept by seed, so that a run that was stopped goes on where it was; `AGAIN=1` tries the
survivors of a former run again, after tests were added.

Each mutant runs in a forked process with limits of CPU time and memory. A mutant within a function is
compiled and put in its place there; one at the level of a module, or in code that runs while tests
are collected, gets a process that imports everything anew.
"""

from __future__ import annotations

import argparse
import ast
import gc
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import random
import resource
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import pytest

from tools import mutations
from tools.selecting import Recorder, Recording, Runs, forget_caches

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / ".mutants"
EQUIVALENT = Path(__file__).parent / "equivalent_mutants.yaml"
DECISION = tuple(
    f"webhook/{each}"
    for each in (
        *("objects", "documents", "jq", "policy", "interface", "pods", "evaluation", "fields"),
        *("catalog", "decision", "admission", "access", "drafting", "convert"),
    )
)
TEXTS = ("webhook/decision/messages.py",)
TESTS = (
    "tests/test_golden.py",
    *(f"tests/{each.removeprefix('webhook/')}" for each in DECISION),
    *("tests/explain", "tests/lint", "tests/cases", "tests/conformance"),
    *("tests/controller/test_control.py", "tests/controller/test_served.py"),
    *("tests/tools/test_schema.py", "tests/policy/test_tables.py", "tests/test_generated.py"),
)
TABLE_TESTS = (
    "tests/test_generated.py",
    "tests/policy/test_catalogue.py",
    "tests/tools/test_schema.py",
)
SWAPS = 0.2  # swapped arguments are a quarter of all mutants, and nearly all raise at once
MEMORY = 2 << 30  # bytes on top of what the process has
BUDGET = 20.0  # seconds of CPU time for one mutant
CAUGHT, SURVIVED, SLOW, BROKEN, UNFINISHED = 1, 0, 2, 3, 4
VERDICTS = {
    CAUGHT: "caught",
    SURVIVED: "survived",
    SLOW: "caught (too slow)",
    BROKEN: "not run",
    UNFINISHED: "survived so far",
}


@dataclass(frozen=True)
class Mutant:
    """One mutant, as it is kept in the results; `verdict` is empty until it ran."""

    file: str
    number: int
    line: int
    column: int
    change: str
    text: str
    in_function: bool
    verdict: str = ""
    by: str = ""
    tests: int = 0
    seconds: float = 0.0

    @property
    def key(self) -> str:
        """What names the mutant as long as its line reads the same."""
        return f"{self.file} | {self.text} | {self.column} | {self.change}"

    @property
    def identity(self) -> tuple[str, str, str]:
        """What names the mutant in the list of equivalent ones: its own line."""
        return self.file, self.text.rpartition(" ↵ ")[2], self.change


def sources() -> dict[str, str]:
    """The decision code, by path."""
    files = sorted(each for folder in DECISION for each in (ROOT / folder).rglob("*.py"))
    names = [each.relative_to(ROOT).as_posix() for each in files]
    return {name: (ROOT / name).read_text() for name in names if not name.startswith(TEXTS)}


def drawn(seed: int, count: int) -> list[Mutant]:
    """The sample: the same for a seed as long as the sources are."""
    found, chance = [], random.Random(seed)
    for file, source in sources().items():
        lines = source.splitlines()
        for number, site in enumerate(mutations.sites_of(source)):
            if "swapped" in site.change and chance.random() > SWAPS:
                continue
            around = [each.strip() for each in lines[max(0, site.line - 2) : site.line]]
            where = site.line, site.column, site.change, " ↵ ".join(around)
            found.append(Mutant(file, number, *where, site.in_function))
    return chance.sample(found, min(count, len(found)))


class Runner:
    """The pytest plugin that runs mutants instead of the collected tests."""

    def __init__(self, recording: Recording, mutants: Sequence[Mutant], results: Path) -> None:
        self.recording, self.mutants, self.results = recording, mutants, results
        self.items: dict[str, pytest.Item] = {}
        self.sound: dict[str, bool] = {}
        self.catchers: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        self.left: list[tuple[Mutant, list[str]]] = []

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run every mutant that can be put in place; keep the others for a fresh process."""
        self.items = {each.nodeid: each for each in session.items}
        forget_caches()
        read_shipped_documents()
        functions = functions_by_file()  # before the next line, which hides objects
        gc.freeze()
        for mutant in self.mutants:
            runs = self.runs_of(mutant)
            tests = self.order(mutant, runs)
            if not mutant.in_function:
                self.left.append((mutant, tests))
                continue
            began = time.monotonic()
            verdict, by, ran = run_in_child(lambda: self.run(mutant, tests, runs, functions))  # noqa: B023
            while verdict == CAUGHT and not self.is_sound(by):
                tests.remove(by)
                verdict, by, ran = run_in_child(lambda: self.run(mutant, tests, runs, functions))  # noqa: B023
            if verdict == BROKEN or (verdict in (SURVIVED, UNFINISHED) and runs.at_import):
                self.left.append((mutant, tests))
                continue
            self.write(mutant, verdict, by, ran, began)
        return True

    def is_sound(self, test: str) -> bool:
        """Whether a test passes without a mutant; it is run once."""
        if test not in self.sound:
            alone = run_in_child(lambda: run_tests([self.items[test]], self.recording.seconds))
            self.sound[test] = alone[0] == SURVIVED
            if not self.sound[test]:
                print(f"fails without a mutant, left out: {test}")
        return self.sound[test]

    def write(self, mutant: Mutant, verdict: int, by: str, ran: int, began: float) -> None:
        """Keep and print one result."""
        seconds = round(time.monotonic() - began, 2)
        done = replace(mutant, verdict=VERDICTS[verdict], by=by, tests=ran, seconds=seconds)
        if by:
            self.catchers[mutant.file][by] += 1
        with self.results.open("a") as out:
            out.write(json.dumps(asdict(done)) + "\n")
        if not done.verdict.startswith("caught"):
            print(f"{done.verdict}: {ran} tests, {done.identity}")
        sys.stdout.flush()

    def runs_of(self, mutant: Mutant) -> Runs:
        """What runs the statement that the mutant is in."""
        source = (ROOT / mutant.file).read_text()
        return self.recording.runs_of(mutant.file, source, *span(source, mutant.line))

    def order(self, mutant: Mutant, runs: Runs) -> list[str]:
        """The tests to run: those that caught others of the file, then the smallest of each group."""
        found = runs.tests if mutant.in_function else set(self.recording.seconds)
        found &= self.items.keys()
        caught = self.catchers[mutant.file]
        known = sorted(found & caught.keys(), key=lambda each: -caught[each])
        tables = [each for each in self.items if each.startswith(TABLE_TESTS)]
        start = known if mutant.in_function else [*known, *tables]
        added = [each for each in self.items if each not in self.recording.seconds]
        ordered = [*start, *round_robin(found, self.recording.sizes), *added]
        return list(dict.fromkeys(ordered))

    def run(
        self, mutant: Mutant, tests: list[str], runs: Runs, functions: Functions
    ) -> tuple[int, str, int]:
        """In the forked process: put the mutant in place and run the tests."""
        if not put_in_place(mutant, functions):
            return BROKEN, "", 0
        if runs.by_loading:
            forget_caches()
        return run_tests([self.items[each] for each in tests], self.recording.seconds)


def read_shipped_documents() -> None:
    """Fill the caches that nearly every test asks, and that most mutants do not concern."""
    from webhook.cases import installation
    from webhook.sources import load as loader

    for with_system_policy in (True, False):
        installation.load_shipped(with_system_policy=with_system_policy)
    installation.defaults_table()
    loader.shipped_documents()


Functions = dict[str, list[FunctionType]]


def functions_by_file() -> Functions:
    """Every function of the program that is alive, by the file of its text."""
    found: Functions = defaultdict(list)
    for each in gc.get_objects():
        if isinstance(each, FunctionType):
            found[each.__code__.co_filename].append(each)
    return found


def put_in_place(mutant: Mutant, functions: Functions) -> bool:
    """Give the functions of a module their mutated code; False where that cannot be done."""
    path = str(ROOT / mutant.file)
    source = Path(path).read_text()
    codes = codes_of(compile(mutations.mutate(source, mutant.number), path, "exec"))
    changed = False
    for function in functions.get(path, ()):
        new = codes.get(key_of(function.__code__))
        if new is None or new == function.__code__:
            continue
        if new.co_freevars != function.__code__.co_freevars:
            return False
        function.__code__ = new
        changed = True
    return changed


def key_of(code: CodeType) -> tuple[object, ...]:
    """What names a code object in its module."""
    return code.co_qualname, code.co_firstlineno, code.co_varnames


def codes_of(code: CodeType) -> dict[tuple[object, ...], CodeType]:
    """All code objects of a module."""
    found, waiting = {}, [code]
    while waiting:
        each = waiting.pop()
        found[key_of(each)] = each
        waiting += [inner for inner in each.co_consts if isinstance(inner, CodeType)]
    return found


def span(source: str, line: int) -> tuple[int, int]:
    """The lines of the statement that a line is in: tests are recorded by statement."""
    found = (line, line)
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.stmt) or not node.lineno <= line <= (node.end_lineno or 0):
            continue
        bodies = [held[0].lineno for held in bodies_of(node)]
        last = min(bodies) - 1 if bodies else node.end_lineno or node.lineno
        if line <= last:
            found = (node.lineno, last)
    return found


def bodies_of(node: ast.stmt) -> Iterator[list[ast.stmt]]:
    """The blocks of a compound statement."""
    for name in ("body", "orelse", "handlers", "finalbody", "cases"):
        held = getattr(node, name, None)
        if held and name == "cases":
            yield held[0].body
        elif held:
            yield held


def round_robin(tests: Iterable[str], sizes: Mapping[str, int]) -> list[str]:
    """The smallest test of each kind or file, then the second of each, and so on."""
    groups: dict[str, list[str]] = defaultdict(list)
    for each in sorted(tests, key=lambda test: (sizes[test], test)):
        file, _, name = each.partition("::")
        groups[name.partition("/")[0] if "test_golden" in file else file].append(each)
    ranks = [
        (rank, sizes[each], each) for held in groups.values() for rank, each in enumerate(held)
    ]
    return [each for _, _, each in sorted(ranks)]


def run_tests(items: Sequence[pytest.Item], seconds: dict[str, float]) -> tuple[int, str, int]:
    """Run tests until one fails: (verdict, its name, how many ran)."""
    from _pytest.runner import runtestprotocol

    ends = time.process_time() + BUDGET
    for count, item in enumerate(items):
        if time.process_time() > ends:
            return UNFINISHED, "", count
        limit = 5 + 10 * seconds.get(item.nodeid, 1.0)
        signal.setitimer(signal.ITIMER_PROF, limit)  # its signal ends the process
        reports = runtestprotocol(item, log=False, nextitem=None)
        if any(each.failed for each in reports):
            return CAUGHT, item.nodeid, count + 1
    return SURVIVED, "", len(items)


def run_in_child(work: Any) -> tuple[int, str, int]:
    """The result of work done in a child with limits; a child that is ended by them was too slow."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        os._exit(answer(work, writing))
    os.close(writing)
    with os.fdopen(reading) as pipe:
        text = pipe.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGINT, signal.SIGTERM):
        raise KeyboardInterrupt
    if not text:
        killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        return (BROKEN if killed else SLOW), "", 0
    verdict, by, ran = json.loads(text)
    return verdict, by, ran


def answer(work: Any, writing: int) -> int:
    """In the child: limit memory, silence output, do the work and send its result."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    end_when_idle()
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)
    try:
        result = work()
    except Exception as error:  # a fault of this tool catches nothing
        result = BROKEN, f"{type(error).__name__}: {error}"[:200], 0
    os.write(writing, json.dumps(result).encode())
    return 0


def end_when_idle() -> None:
    """End this process when it waits for two minutes without using the CPU."""
    before = time.process_time()

    def check(*_: object) -> None:
        nonlocal before
        if time.process_time() - before < 0.01:
            os._exit(1)
        before = time.process_time()
        signal.alarm(120)

    signal.signal(signal.SIGALRM, check)
    signal.alarm(120)


class Fresh(importlib.abc.MetaPathFinder, importlib.machinery.SourceFileLoader):  # type: ignore[misc]
    """Imports one module mutated."""

    def __init__(self, mutant: Mutant) -> None:
        self.mutant = mutant
        self.name_of_module = mutant.file.removesuffix(".py").replace("/", ".")
        self.name_of_module = self.name_of_module.removesuffix(".__init__")
        importlib.machinery.SourceFileLoader.__init__(
            self, self.name_of_module, str(ROOT / mutant.file)
        )

    def find_spec(self, fullname: str, path: Any, target: ModuleType | None = None) -> Any:
        """A spec for the mutated module only."""
        if fullname != self.name_of_module:
            return None
        return importlib.util.spec_from_file_location(fullname, self.path, loader=self)

    def get_code(self, fullname: str) -> CodeType:
        """The compiled mutant."""
        tree = mutations.mutate(Path(self.path).read_text(), self.mutant.number)
        return compile(tree, self.path, "exec")


class FreshRunner:
    """The pytest plugin in a process that imported the mutant."""

    def __init__(self, tests: list[str], seconds: dict[str, float]) -> None:
        self.tests, self.seconds = tests, seconds
        self.result = CAUGHT, "collection", 0

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run the tests in their order."""
        items = {each.nodeid: each for each in session.items}
        if missing := [each for each in self.tests if each not in items]:
            self.result = CAUGHT, f"{missing[0]} is not collected", 0
        else:
            self.result = run_tests([items[each] for each in self.tests], self.seconds)
        return True


def run_fresh(mutant: Mutant, tests: list[str], seconds: dict[str, float]) -> tuple[int, str, int]:
    """In a forked process that imported nothing of the program: collect and run the tests."""
    sys.meta_path.insert(0, Fresh(mutant))
    signal.setitimer(signal.ITIMER_PROF, 120)
    runner = FreshRunner(tests, seconds)
    files = list(dict.fromkeys(each.partition("::")[0] for each in tests))
    pytest.main([*QUIET, *files], plugins=[Undisturbed(), runner])
    return runner.result


QUIET = ["-o", "addopts=", "-p", "no:cacheprovider", "-p", "no:terminal", "-m", "not e2e"]


class Undisturbed:
    """The pytest plugin that keeps time and chance out of generated examples."""

    def pytest_collection(self) -> None:
        """Before the tests are imported."""
        settle_examples()


class Recorded:
    """The pytest plugin that records."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Record instead of reporting."""
        self.recorder.record(session.items)
        return True


def record(recording: Recording) -> None:
    """Make the recording in a process of its own, or go on with one of the same sources."""
    recording.folder.mkdir(exist_ok=True)
    if recording.sources != sources():
        recording.delete()
        recording = Recording(recording.folder)
    child = os.fork()
    if child == 0:
        recorder = Recorder(recording, sources())
        recorder.start()
        pytest.main([*QUIET, *TESTS], plugins=[recorder, Undisturbed(), Recorded(recorder)])
        sys.stdout.flush()
        os._exit(0)
    os.waitpid(child, 0)


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw, run, report; 1 when fewer than 95 % of the mutants are caught."""
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument(
        "--record", action="store_true", help="record anew which test runs which line"
    )
    parser.add_argument("--again", action="store_true", help="try the survivors again")
    options = parser.parse_args(arguments)
    os.nice(10)
    os.chdir(ROOT)
    recording = Recording(FOLDER)
    if options.record:
        recording.delete()
    if options.record or not recording.complete:
        record(Recording(FOLDER))
        recording = Recording(FOLDER)
    results = FOLDER / f"seed-{options.seed}.jsonl"
    mutants = drawn(options.seed, options.count)
    done = read_results(results)
    wanted = [
        each
        for each in mutants
        if each.key not in done
        or (options.again and not done[each.key].verdict.startswith("caught"))
    ]
    run_all(recording, wanted, results)
    return report(options.seed, mutants, read_results(results))


def settle_examples() -> None:
    """Generated examples are the same in each run, without a time limit; a failing one stays as it is."""
    import hypothesis  # pytest wants to be the first to import it

    health = list(hypothesis.HealthCheck)
    hypothesis.settings.register_profile(
        "mutants",
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=health,
        phases=(hypothesis.Phase.explicit, hypothesis.Phase.generate),
    )
    hypothesis.settings.load_profile("mutants")


def read_results(file: Path) -> dict[str, Mutant]:
    """The last result of each mutant."""
    lines = file.read_text().splitlines() if file.exists() else []
    found = [Mutant(**json.loads(each)) for each in lines]
    return {each.key: each for each in found}


def run_all(recording: Recording, mutants: Sequence[Mutant], results: Path) -> None:
    """Run the mutants that can be put in place, then those that need a fresh process."""
    if not mutants:
        return
    left = FOLDER / "left.json"
    child = os.fork()
    if child == 0:
        runner = Runner(recording, mutants, results)
        pytest.main([*QUIET, *TESTS], plugins=[Undisturbed(), runner])
        left.write_text(json.dumps([(asdict(each), tests) for each, tests in runner.left]))
        sys.stdout.flush()
        os._exit(0)
    os.waitpid(child, 0)
    runner = Runner(recording, (), results)
    for body, tests in json.loads(left.read_text()):
        mutant, began = Mutant(**body), time.monotonic()
        verdict, by, ran = run_in_child(lambda: run_fresh(mutant, tests, recording.seconds))  # noqa: B023
        runner.write(mutant, verdict, by, ran, began)


def report(seed: int, mutants: Sequence[Mutant], done: dict[str, Mutant]) -> int:
    """Print the survivors and the share that was caught."""
    import yaml

    known = yaml.safe_load(EQUIVALENT.read_text()) if EQUIVALENT.exists() else []
    equivalent = {(each["file"], each["text"], each["change"]) for each in known}
    ran = [done[each.key] for each in mutants if each.key in done]
    survivors = [each for each in ran if not each.verdict.startswith("caught")]
    same = [each for each in survivors if each.identity in equivalent]
    open_ones = [each for each in survivors if each.identity not in equivalent]
    for each in sorted(open_ones, key=lambda mutant: (mutant.file, mutant.line)):
        print(f"{each.file}:{each.line}  {each.change}  ({each.tests} tests)  {each.text}")
    caught = sum(each.verdict.startswith("caught") for each in ran)
    share = 100 * caught / max(1, len(ran) - len(same))
    print(
        f"seed {seed}: {len(ran)} of {len(mutants)} mutants ran, {caught} caught, "
        f"{len(same)} equivalent, {len(open_ones)} survived: {share:.1f} % of the others are caught"
    )
    return 0 if share >= 95 and len(ran) == len(mutants) else 1


if __name__ == "__main__":
    sys.exit(main())
