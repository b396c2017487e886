"""What a soak has shown: a table of figures, and all that speaks against podgate."""

from __future__ import annotations

import re
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tests.e2e.operators.bed import Bed
from tests.e2e.soak.figures import Figures, Labels
from tests.e2e.soak.people import Crowd
from tests.e2e.soak.watch import Watch, figures_of

CALLS = "apiserver_admission_webhook_"
DURATION = "podgate_request_duration_seconds"
FINE = {"allowed", "patched", "denied", "not-evaluated"}
DENIED = re.compile(
    r"(?P<time>\d\d:\d\d:\d\d) .* denied .* namespace=(?P<space>\S+) name=(?P<name>\S+)"
    r" user=(?P<user>\S+) dry_run=False "
)
Ended = Mapping[tuple[str, str], float]
"""When objects were deleted, by namespace and name."""
SAID = ("podgate refused", 'podgate.dev" denied')
NODES = ("kube-scheduler", "kwok")
UNEVALUATED = "not-evaluated"
MOST_UNEVALUATED = 0.10
"""The share of reviews that may come to nothing: what need not be sent is left out by conditions."""
MEGABYTE = 1024 * 1024
SPARE = 2 * MEGABYTE
"""What a worker may hold more of by chance."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Rows of (what, figure), and complaints; none when all is well."""

    rows: Sequence[tuple[str, str]]
    complaints: Sequence[str]


def judge(bed: Bed, crowd: Crowd, watch: Watch, growth: float) -> Verdict:
    """Put together what is known; memory may grow by the factor `growth` in the last third."""
    raw = bed.gate.kubectl("get", "--raw=/metrics").stdout
    calls = Figures(raw, (CALLS, f"# TYPE {CALLS}"))
    ours = figures_of(bed.gate.podgate)
    log = bed.gate.podgate.log()
    complaints = [
        *crowd.surprises,
        *watch.complaints,
        *of_calls(calls),
        *of_ours(ours, log),
        *of_refusals(log, crowd.done["refused"], crowd.pool.ended),
        *of_programs(bed),
        *of_memory(watch.memory, growth),
    ]
    return Verdict(
        [*rows(bed, crowd, watch, calls, ours), ("complaints", str(len(complaints)))], complaints
    )


def rows(
    bed: Bed, crowd: Crowd, watch: Watch, calls: Figures, ours: Figures
) -> Iterator[tuple[str, str]]:
    """The figures."""
    done = sorted(crowd.done.items())
    yield "operators", ", ".join(name for name in bed.running if name not in NODES) or "none"
    yield "done by people", str(sum(crowd.done.values()))
    yield from ((f"  {name}", str(count)) for name, count in done)
    yield "policy changes", str(watch.waves)
    yield "pods judged by the oracle", str(len(watch.judged))
    yield "calls of podgate by the API server", whole(calls.total(f"{CALLS}request_total", is_ours))
    for labels, value in grouped(ours):
        yield f"  {labels}", whole(value)
    yield "reviews that were not evaluated", f"{100 * unevaluated(ours):.1f} %"
    for stage in ("mutate", "validate"):

        def same(labels: Labels, stage: str = stage) -> bool:
            return labels["stage"] == stage

        half, most = (ours.quantile(DURATION, share, same) * 1000 for share in (0.5, 0.99))
        yield f"{stage}, p50 and p99", f"{half:.1f} and {most:.1f} ms"
    seen = f"{CALLS}admission_duration_seconds"
    half, most = (calls.quantile(seen, share, is_ours) * 1000 for share in (0.5, 0.99))
    yield "seen by the API server, p50 and p99", f"{half:.1f} and {most:.1f} ms"
    for number, parts in enumerate(map(thirds, watch.memory.values()), 1):
        told = ", ".join(f"{part / MEGABYTE:.1f}" for part in parts)
        yield f"worker {number}, memory by thirds", f"{told} MB"


def is_ours(labels: Labels) -> bool:
    """Whether a series of the API server is about podgate."""
    return labels.get("name", "").endswith("podgate.dev")


def grouped(ours: Figures) -> list[tuple[str, float]]:
    """Reviews by outcome."""
    found: dict[str, float] = {}
    for labels, value in ours.of("podgate_requests_total"):
        found[labels["outcome"]] = found.get(labels["outcome"], 0) + value
    return sorted(found.items())


def unevaluated(ours: Figures) -> float:
    """The share of reviews that were not evaluated; 0 when there were none."""
    counts = dict(grouped(ours))
    return counts.get(UNEVALUATED, 0) / (sum(counts.values()) or 1)


def of_calls(calls: Figures) -> Iterator[str]:
    """Calls that failed, as the API server has it."""
    for labels, value in calls.of(f"{CALLS}rejection_count"):
        if is_ours(labels) and value and labels["error_type"] != "no_error":
            yield f"{value:.0f} failed calls: {dict(labels)}"
    for labels, value in calls.of(f"{CALLS}fail_open_count"):
        if is_ours(labels) and value:
            yield f"{value:.0f} passed without us: {dict(labels)}"
    for labels, value in calls.of(f"{CALLS}request_total"):
        if is_ours(labels) and value and labels["code"] not in ("200", "403"):
            yield f"{value:.0f} answers of podgate: {dict(labels)}"
    if not calls.total(f"{CALLS}request_total", is_ours):
        yield "the API server never called podgate"


def of_ours(ours: Figures, log: str) -> Iterator[str]:
    """What podgate itself tells of errors."""
    for outcome, value in grouped(ours):
        if outcome not in FINE and value:
            yield f"{value:.0f} reviews with outcome {outcome}"
    if unevaluated(ours) > MOST_UNEVALUATED:
        yield f"{100 * unevaluated(ours):.1f} % of the reviews were not evaluated"
    failures = ours.total("podgate_reload_failures_total")
    if failures:
        yield f"podgate_reload_failures_total is {failures:.0f}"
    for line in log.splitlines():
        if " error " in line or " warning " in line or "Traceback" in line:
            yield f"podgate's log: {line[:500]}"


def of_refusals(log: str, meant: int, ended: Ended) -> Iterator[str]:
    """Programs of the cluster that were refused, and too few refusals of people.

    A controller may go on for a moment after its object was deleted. A refusal of people is told
    to them; the API server may ask twice where it compared with an object that is no longer new.
    """
    found = [each for each in map(DENIED.search, log.splitlines()) if each]
    programs = [each for each in found if each["user"].startswith("system:")]
    for each in programs:
        if not is_of_ended(each, ended):
            yield f"a controller was refused: {each.string[:500]}"
    if len(found) - len(programs) < meant:
        yield f"people were refused {meant} times; podgate refused {len(found) - len(programs)}"


def is_of_ended(denied: re.Match[str], ended: Ended) -> bool:
    """Whether what was refused would be part of an object that was deleted before."""
    return any(
        space == denied["space"]
        and denied["name"].startswith(f"{name}-")
        and time.strftime("%H:%M:%S", time.gmtime(at)) <= denied["time"]
        for (space, name), at in ended.items()
    )


def of_programs(bed: Bed) -> Iterator[str]:
    """Operators that ended, and those of the control plane and them that tell of refusals."""
    for running in bed.running.values():
        if running.process.poll() is not None:
            yield f"{running.name} ended"
    logs = {name: path.read_text("utf-8", "replace") for name, path in bed.cluster.logs().items()}
    # The first tells of the people's refusals; those of the second are in podgate's own log.
    del logs["kube-apiserver"], logs["kube-controller-manager"]
    for name, log in (*logs.items(), *((each.name, each.log()) for each in bed.running.values())):
        for line in log.splitlines():
            if any(each in line for each in SAID):
                yield f"{name} says: {line[:500]}"


def of_memory(memory: Mapping[int, list[tuple[float, int]]], growth: float) -> Iterator[str]:
    """Workers whose memory grows, or that did not live all the time; and the reader, which is like them."""
    if len(memory) != 3:
        yield f"two workers and a reader were to run; there were {len(memory)}: {list(memory)}"
    for pid, samples in memory.items():
        _, second, last = thirds(samples)
        if last > second * growth + SPARE:
            told = f"{second / MEGABYTE:.1f} and then {last / MEGABYTE:.1f} MB"
            yield f"the memory of process {pid} grows: {told}"


def thirds(samples: Sequence[tuple[float, int]]) -> list[float]:
    """The median in each third of the time."""
    begin, end = samples[0][0], samples[-1][0]
    parts: list[list[int]] = [[], [], []]
    for at, held in samples:
        parts[min(2, int(3 * (at - begin) / (end - begin or 1)))].append(held)
    return [statistics.median(part or [samples[-1][1]]) for part in parts]


def whole(number: float) -> str:
    """A count."""
    return f"{number:.0f}"
