"""Records what podgate answers to many inputs, and compares two recordings.

    python -m tools.answers record FILE [--count 100000] [--processes 2]
    python -m tools.answers compare BEFORE AFTER

A recording is JSON lines, compressed: one line for each input, with its id, the digest of the input,
the facts of the answer (patched object, violations, warnings, exemptions) and, apart, the messages.
Inputs are every golden case, every recorded review, every document of the corpus, and generated
reviews of one fixed seed. `compare` exits with 1 when facts differ; changed messages are listed by
reason and are no failure.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import multiprocessing
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any

import orjson

from tests import corpus
from tests.admission import test_recorded_reviews
from tests.building import catalog
from tests.fuzz import reviews
from tests.fuzz.disguises import Attempt
from tests.fuzz.engine import Generator
from tests.upstream import data
from webhook.admission.judge import decide_review
from webhook.admission.review import parse_review
from webhook.cases.case import BadCase
from webhook.cases.read import cases_in
from webhook.cases.run import run
from webhook.cases.run_offline import Place, evaluate_manifest, references_of
from webhook.catalog.catalog import Catalog
from webhook.decision.messages import problem_text, violation_text, warning_text
from webhook.documents.problem import Source
from webhook.evaluation.outcome import Allowed, Decision, Denied, Violation, Warning
from webhook.evaluation.references import References
from webhook.evaluation.request import Request, Stage

ROOT = Path(__file__).parent.parent
SEED = 15
CHUNK = 500
Line = dict[str, Any]


def describe(decision: Decision) -> Line:
    """The facts and the messages of one decision."""
    facts: Line = {
        "allowed": isinstance(decision, Allowed),
        "warnings": [of_warning(each) for each in decision.warnings],
        "audit": [of_violation(each) for each in decision.audit],
        "excused": [[of_violation(each), name] for each, name in decision.excused],
        "unresolved": sorted(decision.unresolved),
    }
    shown: list[Violation] = [*decision.audit]
    if isinstance(decision, Denied):
        facts["violations"] = [of_violation(each) for each in decision.violations]
        facts["problems"] = [[each.path, each.reason] for each in decision.problems]
        facts["needs"] = decision.needs and list(decision.needs)
        facts["owner"] = decision.report_to and list(decision.report_to)
        facts["completed"] = decision.completed
        shown += decision.violations
    else:
        facts["object"], facts["patch"] = decision.object, decision.patch
        facts["notEvaluated"] = decision.not_evaluated
        facts["changes"] = [
            [each.field, each.path, each.value, each.why, of_source(each.source)]
            for each in decision.changes
        ]
    messages = [[each.reason, violation_text(each)] for each in shown]
    messages += [[each.reason, warning_text(each)] for each in decision.warnings]
    if isinstance(decision, Denied):
        messages += [[each.reason, problem_text(each)] for each in decision.problems]
    return {"facts": facts, "messages": messages}


def of_violation(each: Violation) -> list[Any]:
    """The facts of a violation."""
    allowed = [each.value, each.allowed, each.rule, each.reason, each.key]
    return [each.field, each.path, *allowed, of_source(each.source)]


def of_warning(each: Warning) -> list[Any]:
    """The facts of a warning."""
    would_be = each.would_be and of_violation(each.would_be)
    return [each.reason, each.field, each.path, each.facts, of_source(each.source), would_be]


def of_source(source: Source | None) -> list[str] | None:
    """Which policy it is."""
    if source is None:
        return None
    return [source.scope, source.namespace, source.policy, source.enforcement]


def line(name: str, given: Any, answer: Line) -> bytes:
    """One line of a recording."""
    return orjson.dumps(
        {"id": name, "input": digest(given), **answer}, option=orjson.OPT_NON_STR_KEYS
    )


def digest(given: Any) -> str:
    """The digest of an input, whatever the order of its keys."""
    text = (
        given
        if isinstance(given, bytes)
        else json.dumps(given, sort_keys=True, default=str).encode()
    )
    return hashlib.sha256(text).hexdigest()[:20]


def golden() -> Iterator[bytes]:
    """Every golden case, and its variants."""
    for case in cases_in(ROOT / "tests" / "golden"):
        name = f"golden/{case.file.parent.relative_to(ROOT / 'tests' / 'golden')}/{case.name}"
        try:
            found = run(case)
        except BadCase as error:
            yield line(
                name, case.given, {"facts": {"bad": True}, "messages": [["bad", str(error)]]}
            )
            continue
        answer = describe(found.decision)
        answer["facts"]["lookups"] = found.lookups
        yield line(name, case.given, answer)


def both_passes(name: str, request: Request, built: Catalog) -> Iterator[bytes]:
    """A request in the mutating pass, then its result, or itself, in the validating one."""
    given = [request.object, request.old, request.user, request.operation, request.subresource]
    first = decide_review(request, built, References())
    yield line(f"{name}/mutate", given, describe(first))
    result = first.object if isinstance(first, Allowed) else request.object
    last = replace(request, object=result, stage=Stage.VALIDATE)
    yield line(f"{name}/validate", given, describe(decide_review(last, built, References())))


def recorded_reviews() -> Iterator[bytes]:
    """Every recorded review under each of the policies that its tests use."""
    files = sorted((data.folder() / "reviews").glob("*"))
    for policy, text in test_recorded_reviews.POLICIES.items():
        built = catalog(text)
        for file in files:
            request = parse_review(file.read_bytes(), Stage.MUTATE)
            if isinstance(request, Request):
                yield from both_passes(f"recorded/{policy}/{file.name}", request, built)


def documents() -> Iterator[bytes]:
    """Every document of the corpus, as `podgate apply` evaluates it, under two policies."""
    for origin in corpus.corpora():
        references = references_of(origin.objects, Place())
        for policy, built in (("usual", corpus.usual()), ("writing", corpus.writing())):
            for number, (source, raw) in enumerate(origin.objects):
                name = f"corpus/{origin.origin}/{policy}/{number}"
                found = evaluate_manifest(
                    raw, source, built, references, Place(time="2026-01-01T00:00:00Z")
                )
                yield line(name, raw, describe(found.decision))


GENERATORS: dict[int, Generator] = {}


def generate_reviews(indices: range) -> list[bytes]:
    """Generated reviews of some indices, in both passes."""
    generator = GENERATORS.setdefault(SEED, Generator(SEED))
    found: list[bytes] = []
    for index in indices:
        drawn = generator.attempt(index)
        if drawn is None:
            continue
        found += of_attempt(f"generated/{index}", *drawn)
    return found


def of_attempt(name: str, attempt: Attempt, built: Catalog) -> Iterator[bytes]:
    """One generated review in both passes."""
    body = reviews.review(attempt)
    first = reviews.decision(attempt, Stage.MUTATE, built)
    yield line(f"{name}/mutate", body, describe(first))
    if isinstance(first, Allowed):
        attempt = reviews.patched(attempt, first)
    second = reviews.decision(attempt, Stage.VALIDATE, built)
    yield line(f"{name}/validate", body, describe(second))


SECTIONS: Mapping[str, Callable[[], Iterator[bytes]]] = {
    "golden": golden,
    "recorded": recorded_reviews,
    "corpus": documents,
}


def record(file: Path, count: int, processes: int) -> int:
    """Write a recording; the digest of all inputs and of all facts is printed."""
    totals: Counter[str] = Counter()
    inputs, facts = hashlib.sha256(), hashlib.sha256()
    with gzip.open(file, "wb", compresslevel=3) as out:
        for name, each in lines(count, processes):
            out.write(each + b"\n")
            totals[name] += 1
            body = orjson.loads(each)
            inputs.update(body["input"].encode())
            facts.update(orjson.dumps(body["facts"], option=orjson.OPT_SORT_KEYS))
            if totals.total() % 5000 == 0:
                print(f"\r{totals.total():,} answers", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    done = ", ".join(f"{number:,} {name}" for name, number in totals.items())
    print(f"{commit()}: {done}; inputs {inputs.hexdigest()[:16]}, facts {facts.hexdigest()[:16]}")
    return 0


def lines(count: int, processes: int) -> Iterator[tuple[str, bytes]]:
    """Every line with the name of its section."""
    for name, section in SECTIONS.items():
        yield from ((name, each) for each in section())
    chunks = [range(first, min(first + CHUNK, count)) for first in range(0, count, CHUNK)]
    with multiprocessing.Pool(processes) as pool:
        for found in pool.imap(generate_reviews, chunks):
            yield from (("generated", each) for each in found)


def commit() -> str:
    """The commit that is checked out, marked where the tree differs from it."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=12"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def compare(before: Path, after: Path) -> int:
    """Report every difference: facts by input, messages by reason, old and new."""
    different: list[str] = []
    messages: dict[str, Counter[tuple[str, str]]] = {}
    number = 0
    for number, (old, new) in enumerate(zip_longest(read(before), read(after)), 1):
        if old is None or new is None or old["id"] != new["id"]:
            print(f"the recordings differ in their inputs from line {number} on")
            return 1
        if old["input"] != new["input"]:
            different.append(f"{old['id']}: another input")
        elif old["facts"] != new["facts"]:
            different.append(f"{old['id']}: {first_difference(old['facts'], new['facts'])}")
        for (reason, was), (_, now) in zip(old["messages"], new["messages"], strict=False):
            if was != now:
                messages.setdefault(reason, Counter())[was, now] += 1
    for each in islice(different, 50):
        print(f"DIFFERENT: {each}")
    for reason, changed in sorted(messages.items()):
        (was, now), _ = changed.most_common(1)[0]
        print(f"{reason}: {changed.total():,} messages changed, such as\n  - {was}\n  + {now}")
    print(f"{number:,} answers compared: the facts of {len(different):,} differ")
    return 1 if different else 0


def read(file: Path) -> Iterator[Line]:
    """The lines of a recording."""
    with gzip.open(file) as lines:
        for each in lines:
            yield orjson.loads(each)


def first_difference(old: Any, new: Any, path: str = "") -> str:
    """The first path at which two values differ, with both values."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted({*old, *new}):
            if old.get(key) != new.get(key):
                return first_difference(old.get(key), new.get(key), f"{path}.{key}")
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (one, other) in enumerate(zip(old, new, strict=True)):
            if one != other:
                return first_difference(one, other, f"{path}[{index}]")
    return f"{path}: {str(old)[:200]} became {str(new)[:200]}"


def main() -> int:
    """Record or compare."""
    parser = argparse.ArgumentParser(prog="python -m tools.answers", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    recording = commands.add_parser("record")
    recording.add_argument("file", type=Path)
    recording.add_argument("--count", type=int, default=100_000, help="generated reviews")
    recording.add_argument("--processes", type=int, default=2)
    comparing = commands.add_parser("compare")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    options = parser.parse_args()
    if options.command == "record":
        return record(options.file, options.count, options.processes)
    return compare(options.before, options.after)


if __name__ == "__main__":
    sys.exit(main())
