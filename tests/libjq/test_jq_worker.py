"""jq at a distance: the same results, and no program that harms anything but its own request."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jq
import pytest

from tests.conformance.fixtures import RUNNER_POD, evaluator
from webhook.jq.expressions import Evaluator, JqError, JqLimitError, JqSyntaxError
from webhook.libjq import process as jq_process
from webhook.libjq import worker as jq_worker
from webhook.libjq.process import Bounds
from webhook.libjq.worker import (
    JqBusyError,
    JqCancelledError,
    JqDeadlineError,
    JqDiedError,
    JqRefusedError,
    JqWorker,
)

POD = json.dumps(RUNNER_POD).encode()
QUEUE_TIMEOUT = 60.0
SLACK = 60.0
ENDLESS = "[range(infinite) | empty]"
"""It keeps nothing: one that grows ends by itself when its memory is used up."""


def unguarded(**options: Any) -> JqWorker:
    """A worker that runs anything."""
    return JqWorker(queue_timeout=QUEUE_TIMEOUT, refuse=lambda text: None, **options)


@pytest.fixture(scope="module")
def worker() -> Iterator[JqWorker]:
    """A worker as it is used, but with time for a crowded machine."""
    with JqWorker(deadline=60, queue_timeout=QUEUE_TIMEOUT) as found:
        yield found


@pytest.fixture(scope="module")
def open_worker() -> Iterator[JqWorker]:
    """One that refuses nothing, with the usual deadline."""
    with unguarded() as found:
        yield found


def process_of(worker: JqWorker, number: int = 0) -> int:
    """The id of a running process."""
    process = worker.processes[number].process
    assert process is not None
    return process.pid


def lives(process: int) -> bool:
    """Whether a process exists, be it as a zombie."""
    return Path(f"/proc/{process}").exists()


def until(condition: Callable[[], bool]) -> None:
    """Wait for something that happens elsewhere."""
    for _ in range(3000):
        if condition():
            return
        time.sleep(0.02)
    raise AssertionError("it did not happen")


def in_thread(call: Callable[[], Any]) -> tuple[threading.Thread, list[Any]]:
    """A call in another thread, and where its result or error will be."""
    found: list[Any] = []

    def run() -> None:
        try:
            found.append(call())
        except JqError as error:
            found.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, found


@pytest.mark.parametrize(
    "text",
    [
        ".",
        "empty",
        ".metadata | keys",
        ".spec.containers[] | .name, .image",
        ".spec.containers | map(select(.name | startswith(\"w\"))) | length",
        'if (.metadata.labels | has("app")) then "yes" else "no" end',
        "[.spec.containers[].ports[]?.containerPort] | add",
        ".metadata.labels | to_entries | map(.value) | sort | join(\",\")",
        ".spec.containers | any(.name == \"web\"), all(.name == \"web\")",
        'try error("x") catch .',
        "[.a, .b?, (.c // 1.5)]",
        "reduce .spec.containers[] as $each (0; . + 1)",
        '"é\\u0000 \\(.metadata.name)"',
        "[1e1000, -0, 1.0, 9007199254740993, 1e-7]",
        "[.spec.containers[] | {(.name): .image}] | add",
        "path(.spec.containers[] | select(.name == \"web\") | .ports[])",
    ],
)  # fmt: skip
def test_the_results_are_those_of_the_package(worker: JqWorker, text: str) -> None:
    assert worker.evaluate(text, POD) == list(jq.compile(text).input_value(RUNNER_POD))


@pytest.mark.parametrize("document", ["null", "7", '"text"', "[]", '{"é": "\\ud83d\\ude00"}'])
def test_any_json_is_a_document(worker: JqWorker, document: str) -> None:
    assert worker.evaluate("[.]", document.encode()) == [[json.loads(document)]]


def test_a_large_document_goes_through_the_pipe(worker: JqWorker) -> None:
    large = {"items": [{"name": f"{index}" * 50} for index in range(5000)]}
    assert worker.evaluate(".items | length", json.dumps(large).encode()) == [5000]
    assert worker.evaluate(".items | map(.name) | join(\"\") | length", encoded(large)) == [
        sum(len(each["name"]) for each in large["items"])
    ]  # fmt: skip


def encoded(document: Any) -> bytes:
    """A document as bytes."""
    return json.dumps(document).encode()


def test_evaluator_uses_it(worker: JqWorker) -> None:
    near, far = evaluator(), Evaluator(worker.compile)
    texts = (".spec.containers | map(.name)", ".spec.containers | length", "keys")
    for text in texts:
        assert far.values(text, RUNNER_POD) == near.values(text, RUNNER_POD)
    text = ".spec.containers | first | .name"
    assert far.places(text, RUNNER_POD) == near.places(text, RUNNER_POD)
    with pytest.raises(JqSyntaxError):
        far.check(".invalid[[[")
    with pytest.raises(JqLimitError):
        Evaluator(worker.compile, limit=2).values("keys | .[]", RUNNER_POD)


def test_a_document_that_is_no_json_is_a_fault(worker: JqWorker) -> None:
    endless: list[Any] = []
    endless.append(endless)
    for document in (endless, {"a": object()}, [float("nan")]):
        with pytest.raises(JqError, match="no JSON"):
            worker.compile("length")(document)
    for broken in (b"{", b"\xff", b"x"):
        with pytest.raises(JqError, match="fails on this document"):
            worker.evaluate("length", broken)
    with pytest.raises(JqRefusedError):
        worker.evaluate("length", b"")
    with pytest.raises(JqRefusedError):
        worker.evaluate("length", b" " * (jq_worker.DOCUMENT + 1))


@pytest.mark.parametrize("text", ["", " ", ".a[", ".\0", ".a ..b", "\ud800", "|"])
def test_what_is_no_jq_has_its_own_error(worker: JqWorker, text: str) -> None:
    with pytest.raises(JqError) as error:
        worker.evaluate(text, b"null")
    assert isinstance(error.value, (JqSyntaxError, JqRefusedError))
    assert worker.evaluate(".", b"1") == [1]


@pytest.mark.parametrize(
    "text", [".metadata.name | error", ".metadata.name | tonumber", ".metadata.name | .x"]
)
def test_no_message_quotes_the_document(worker: JqWorker, text: str) -> None:
    with pytest.raises(JqError) as error:
        worker.evaluate(text, POD)
    assert RUNNER_POD["metadata"]["name"] not in f"{error.value} {error.value.__cause__!r}"  # type: ignore[index]


FORBIDDEN = (
    *(f"{name}" for name in ("env", "input", "inputs", "debug", "stderr", "halt", "halt_error")),
    *("input_filename", "input_line_number", "get_search_list", "now", "localtime", "builtins"),
    *("range(3)", "limit(1; .)", "until(true; .)", "while(false; .)", "repeat(.)", "recurse"),
    *("combinations", "paths", "walk(.)", "del(.a)", "delpaths([])", "setpath([]; 1)", "to_json"),
    *('test("a")', 'match("a")', 'sub("a"; "b")', 'scan("a")', 'splits("a")', 'capture("a")'),
    *("def f: .; f", "label $out | .", "modulemeta", 'import "x" as $x; .', 'include "x"; .'),
    *("$ENV", "$__loc__", "$__prog_args", "..", ".a = 1", ".a |= 1", ".a += 1", ".a -= 1"),
    *(".a *= 1", ".a /= 1", ".a %= 1", ".a //= 1", ". # rest", "path(env)", "path(.a) | env"),
    *("getpath($ENV)", '"\\(env)"', "ltrimstr(input)", "path(path(.a))", "pathenv", "splits"),
)


@pytest.mark.parametrize("text", FORBIDDEN)
def test_a_forbidden_text_is_not_sent(text: str) -> None:
    with JqWorker() as worker:
        for call in (lambda: worker.evaluate(text, b"null"), lambda: worker.compile(text)):
            with pytest.raises(JqRefusedError, match="not allowed"):
                call()
        assert worker.processes[0].process is None


def test_a_text_that_is_too_long_is_not_sent(worker: JqWorker) -> None:
    with pytest.raises(JqRefusedError):
        worker.evaluate("." + " " * jq_worker.PROGRAM, b"null")


HOSTILE = (
    ENDLESS,
    "[range(1e9)]",
    "last(range(1e9))",
    "[limit(1e9;repeat(1))]",
    "until(false;.)",
    "while(true;.)|empty",
    "def f: f; f",
    "[range(60)]|combinations(5)|select(false)",
    "def f: [f]; f",
    "def f: 1+f; f",
    ".a.b[100000000]=1",
    "reduce range(1e6) as $i (null;[.])",
    '"x"*1e9',
    '"x"*1e300',
    '("a"*50) | test("(a*)*(a*)*b")',
    "input",
    "input_line_number",
    '"x"|error',
)


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_program_harms_only_its_request(open_worker: JqWorker, text: str) -> None:
    open_worker.evaluate(".", b"null", SLACK)
    begin = time.monotonic()
    try:
        open_worker.evaluate(text, b"null")
    except JqError:
        assert time.monotonic() - begin < jq_worker.DEADLINE + SLACK
    else:
        assert "test(" in text, "only the expression that libjq itself bounds may come to an end"
    assert open_worker.evaluate("[.]", b"1", SLACK) == [[1]]


@pytest.mark.parametrize("text", ["halt", "halt_error", "[inputs]", "input_filename", "debug"])
def test_a_harmless_program_leaves_the_process_alone(open_worker: JqWorker, text: str) -> None:
    open_worker.evaluate(".", b"null", SLACK)
    process = process_of(open_worker)
    open_worker.evaluate(text, b"null", SLACK)
    assert process_of(open_worker) == process


@pytest.mark.parametrize("text", ['"x"*1e9', "reduce range(1e6) as $i (null;[.])"])
def test_a_program_that_ends_the_process_is_a_fault(text: str) -> None:
    with unguarded(deadline=60) as worker:
        with pytest.raises(JqDiedError):
            worker.evaluate(text, b"null")
        assert worker.evaluate(".", b"1") == [1]


def test_the_environment_is_empty(
    open_worker: JqWorker, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    monkeypatch.setenv("PODGATE_PLANTED", "1")
    with unguarded() as worker:
        assert worker.evaluate("[$ENV, env, env.PATH]", b"null") == [[{}, {}, None]]
        process = process_of(worker)
        assert Path(f"/proc/{process}/environ").read_bytes() == b""


@pytest.mark.parametrize(
    "text",
    ['import "x" as $p {{search:"{0}"}}; $p', 'include "y" {{search:"{0}"}}; f'],
)
def test_no_file_is_read(open_worker: JqWorker, tmp_path: Path, text: str) -> None:
    (tmp_path / "x.json").write_text("1")
    (tmp_path / "y.jq").write_text("def f: 1;")
    program = text.format(tmp_path)
    assert list(jq.compile(program).input_value(None)) != []
    with pytest.raises(JqSyntaxError):
        open_worker.evaluate(program, b"null")


def test_the_process_is_confined(open_worker: JqWorker) -> None:
    open_worker.evaluate(".", b"null")
    place = Path(f"/proc/{process_of(open_worker)}")
    rows = {
        row[:26].strip(): row[26:].split() for row in (place / "limits").read_text().split("\n")
    }
    assert rows["Max open files"][:2] == ["3", "3"]
    assert rows["Max processes"][:2] == ["0", "0"]
    assert rows["Max address space"][:2] == [str(512 << 20)] * 2
    assert rows["Max file size"][:2] == ["0", "0"]
    assert rows["Max core file size"][:2] == ["0", "0"]
    assert 0 < int(rows["Max cpu time"][0]) < 10
    assert (place / "cwd").readlink() == Path("/")
    assert sorted(each.name for each in (place / "fd").iterdir()) == ["0", "1", "2"]
    assert (place / "fd" / "2").readlink() == Path("/dev/null")
    assert os.getpgid(process_of(open_worker)) == process_of(open_worker)
    assert (place / "oom_score_adj").read_text() == "1000\n"


def test_memory_is_bounded() -> None:
    text = '[("x" * 1e6) as $x | range(500) | $x + "y"] | length'
    with unguarded(deadline=60) as worker:
        assert worker.evaluate('("x" * 1e6) | length', b"null") == [1_000_000]
        with pytest.raises(JqDiedError):
            worker.evaluate(text, b"null")
    with unguarded(deadline=60, bounds=Bounds(memory=1 << 30)) as worker:
        assert worker.evaluate(text, b"null") == [500]


def test_outputs_are_bounded() -> None:
    with unguarded(deadline=60, bounds=Bounds(outputs=10, size=100)) as worker:
        assert worker.evaluate("range(10)", b"null") == list(range(10))
        for text in ("range(11)", "range(1e9)", '"x" * 100', '("x" * 40) | (., ., .)'):
            with pytest.raises(JqLimitError):
                worker.evaluate(text, b"null")
        assert worker.evaluate('"x" * 96', b"null") == ["x" * 96]
        process = process_of(worker)
        assert worker.evaluate(".", b"1") == [1]
        assert process_of(worker) == process


def test_a_kill_in_the_middle_costs_one_request() -> None:
    with unguarded(deadline=60) as worker:
        worker.evaluate(".", b"null")
        process = process_of(worker)
        first, failed = in_thread(lambda: worker.evaluate(ENDLESS, b"null"))
        until(worker.idle.empty)
        second, found = in_thread(lambda: worker.evaluate(".", b"2"))
        os.kill(process, signal.SIGKILL)
        first.join()
        second.join()
        assert [type(each) for each in failed] == [JqDiedError]
        assert found == [[2]]
        assert not lives(process)


def test_a_kill_between_requests_costs_none() -> None:
    with unguarded(deadline=60) as worker:
        worker.evaluate(".", b"null")
        process = process_of(worker)
        os.kill(process, signal.SIGKILL)
        os.waitid(os.P_PID, process, os.WEXITED | os.WNOWAIT)
        assert worker.evaluate(".", b"1") == [1]


def test_a_request_that_waits_behind_a_late_one_is_answered() -> None:
    in_line = threading.Event()

    class Held(threading.Event):
        """Is asked when a call has a process: it goes on once another one waits."""

        def is_set(self) -> bool:
            assert in_line.wait(SLACK)
            return False

    with unguarded() as worker:
        worker.evaluate(".", b"null", SLACK)
        process = process_of(worker)
        first, failed = in_thread(lambda: worker.evaluate(ENDLESS, b"null", 1, Held()))
        until(worker.idle.empty)
        second, found = in_thread(lambda: worker.evaluate(".", b"2", SLACK))
        until(lambda: worker.line._value == jq_worker.WAITING - 1)
        in_line.set()
        first.join()
        second.join()
        assert found == [[2]]
        assert [type(each) for each in failed] == [JqDeadlineError]
        assert not lives(process)


def test_many_threads_each_get_their_own_answer() -> None:
    with JqWorker(2, deadline=60, queue_timeout=60) as worker:
        texts = ("[., 1]", "[., 2]", ".[")

        def ask(number: int) -> list[Any]:
            found: list[Any] = []
            for count in range(15):
                text = texts[count % 3]
                try:
                    found.append(worker.evaluate(text, f"{number}{count}".encode()))
                except JqSyntaxError:
                    found.append(None)
            return found

        numbers = range(1, 9)
        calls = [in_thread(lambda number=number: ask(number)) for number in numbers]  # type: ignore[misc]
        for number, (thread, found) in zip(numbers, calls, strict=True):
            thread.join()
            assert found == [
                [
                    None if count % 3 == 2 else [[int(f"{number}{count}"), count % 3 + 1]]
                    for count in range(15)
                ]
            ]


def test_the_line_is_bounded() -> None:
    with unguarded(deadline=60, waiting=0) as worker:
        worker.evaluate(".", b"null")
        thread, found = in_thread(lambda: worker.evaluate(ENDLESS, b"null"))
        until(worker.idle.empty)
        with pytest.raises(JqBusyError):
            worker.evaluate(".", b"null")
        os.kill(process_of(worker), signal.SIGKILL)
        thread.join()
        assert [type(each) for each in found] == [JqDiedError]
        assert worker.evaluate(".", b"1") == [1]


def test_the_wait_for_a_process_ends() -> None:
    with unguarded(deadline=60) as worker:
        worker.evaluate(".", b"null")
        thread, _ = in_thread(lambda: worker.evaluate(ENDLESS, b"null"))
        until(worker.idle.empty)
        worker.queue_timeout = 0.01
        with pytest.raises(JqBusyError):
            worker.evaluate(".", b"null")
        os.kill(process_of(worker), signal.SIGKILL)
        thread.join()


def test_a_cancelled_call_does_not_begin(worker: JqWorker) -> None:
    cancelled = threading.Event()
    run = worker.compiler(cancelled=cancelled)("length")
    assert run([1]) == [1]
    cancelled.set()
    with pytest.raises(JqCancelledError):
        run([1])


def test_without_time_nothing_is_sent(worker: JqWorker) -> None:
    worker.evaluate(".", b"1")
    process = process_of(worker)
    for deadline in (0, -1):
        with pytest.raises(JqDeadlineError):
            worker.evaluate(".", b"1", deadline)
    assert worker.evaluate(".", b"1") == [1]
    assert process_of(worker) == process


def test_closing_ends_every_process() -> None:
    worker = unguarded(processes=2, deadline=60)
    calls = [in_thread(lambda: worker.evaluate(ENDLESS, b"null")) for _ in range(2)]
    until(lambda: all(each.is_ready for each in worker.processes))
    waiting, refused = in_thread(lambda: worker.evaluate(".", b"null"))
    processes = [process_of(worker, number) for number in range(2)]
    worker.close()
    for thread, found in (*calls, (waiting, refused)):
        thread.join()
        assert [type(each) for each in found] == [JqDiedError]
    assert [each for each in processes if lives(each)] == []
    with pytest.raises(JqDiedError):
        worker.evaluate(".", b"null")
    worker.close()
    assert [each.process for each in worker.processes] == [None, None]


def test_a_process_ends_with_its_parent() -> None:
    code = (
        "from webhook.libjq.worker import JqWorker\n"
        "worker = JqWorker(deadline=60, queue_timeout=60)\n"
        "worker.evaluate('.', b'1')\n"
        "print(worker.processes[0].process.pid, flush=True)\n"
        "import time; time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        process = int(parent.stdout.readline())
        assert lives(process)
        parent.kill()
    until(lambda: not lives(process) or is_zombie(process))


def is_zombie(process: int) -> bool:
    """Whether only the place in the table is left, for whoever adopted the process."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return True
    return stat.rsplit(")", 1)[-1].split()[0] == "Z"


def test_a_process_that_cannot_start_is_a_fault(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    silent = tmp_path / "silent.py"
    silent.write_text("import time; time.sleep(60)")
    nonsense = tmp_path / "nonsense.py"
    nonsense.write_text("print('x' * 100)")
    with unguarded(deadline=60) as worker:
        for child in (tmp_path / "missing.py", nonsense):
            with monkeypatch.context() as patch:
                patch.setattr(jq_process, "CHILD", child)
                with pytest.raises(JqDiedError):
                    worker.evaluate(".", b"1")
        with monkeypatch.context() as patch:
            patch.setattr(jq_process, "CHILD", silent)
            patch.setattr(jq_process, "STARTING", 0.0)
            worker.queue_timeout = 0.2
            with pytest.raises(JqBusyError):
                worker.evaluate(".", b"1")
            assert worker.processes[0].process is None
        with monkeypatch.context() as patch:
            patch.setattr(jq_process.importlib.util, "find_spec", lambda name: None)
            with pytest.raises(JqDiedError):
                worker.evaluate(".", b"1")
        worker.queue_timeout = QUEUE_TIMEOUT
        assert worker.evaluate(".", b"1") == [1]


@pytest.mark.parametrize(
    "answer, error",
    [
        ((b"O", b"{"), JqError),
        ((b"O", b"1"), JqError),
        ((b"O", b"[" * 100_000), JqError),
        ((b"?", b""), JqError),
        ((b"S", b""), JqSyntaxError),
        ((b"L", b""), JqLimitError),
    ],
)
def test_an_answer_is_not_trusted(answer: tuple[bytes, bytes], error: type[JqError]) -> None:
    with pytest.raises(error):
        jq_worker.read(".", answer)


def test_a_text_is_compiled_once_and_few_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jq_worker, "KNOWN", 2)
    with JqWorker(deadline=60, queue_timeout=QUEUE_TIMEOUT) as worker:
        for count in range(5):
            worker.compile(f"[., {count}]")
            assert len(worker.known) <= 2
        for count in range(300):
            assert worker.evaluate(f"[{count}]", b"null") == [[count]]
