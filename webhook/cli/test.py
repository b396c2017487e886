"""podgate test: the authors' test runner, over folders of cases in the form of `webhook/cases`."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated
from xml.etree import ElementTree

import typer
from rich.console import Console
from rich.text import Text

from webhook.cases import compare as comparing
from webhook.cases import read as reading
from webhook.cases import rewrite as rewriting
from webhook.cases import run as running
from webhook.cases.case import FILE, BadCase, Case
from webhook.cli import loading
from webhook.documents.texts import clean
from webhook.evaluation.outcome import why_not_evaluated
from webhook.interface.kind_schema import KindSchema

PASSED, FAILED, UPDATED, ERROR = "passed", "failed", "updated", "error"
STYLES = {PASSED: "green", FAILED: "red", UPDATED: "yellow", ERROR: "bold red"}
NO_EXPECTATION = "the case has no expect; --update writes what comes of it"
NOT_XML = re.compile(r"[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

Folders = Annotated[
    list[str],
    typer.Argument(metavar="DIR…", help=f"Folders with {FILE} files, or such files."),
]
Update = Annotated[
    bool,
    typer.Option("--update", help="Write what came into the cases that expect something else."),
]
Crds = Annotated[
    list[str] | None,
    typer.Option(
        "--crds", metavar="PATH", help="File or folder with CRDs, for cases that give none."
    ),
]
Strict = Annotated[
    bool, typer.Option("--strict", help="Fail cases whose manifest is not evaluated.")
]
JUnit = Annotated[
    str | None, typer.Option("--junit", metavar="FILE", help="Write the results as JUnit XML.")
]


def run_cases(
    folders: Folders,
    update: Update = False,
    junit: JUnit = None,
    crds: Crds = None,
    strict: Strict = False,
) -> None:
    """Run policy cases: a folder each, with a case.yaml that holds policies, an object and what is
    expected of them.

    A case whose manifest nobody evaluates is reported with the reason, and fails with --strict,
    unless it expects `notEvaluated: REASON`.
    Exit code 0: all passed, 1: some case failed, 2: bad input, such as a case that cannot be read.
    """
    try:
        schemas = loading.known_schemas(crds)
        results = run(files_in(folders), update=update, schemas=schemas, strict=strict)
        if junit is not None:
            write_junit(results, junit)
    except loading.BadInput:
        raise typer.Exit(loading.BAD_INPUT) from None
    raise typer.Exit(exit_code(results))


@dataclass(frozen=True, slots=True)
class Found:
    """One file of cases, and what it is called: its folder below the one that was given."""

    file: Path
    label: str


@dataclass(slots=True)
class Result:
    """What came of one case: `problems` are its differences, or why it cannot be run.

    `reason` says why nobody evaluated the manifest, where the case does not expect that; `fault`
    whether podgate itself failed on the case.
    """

    folder: str
    name: str
    state: str
    problems: list[str] = field(default_factory=list)
    seconds: float = 0.0
    reason: str = ""
    fault: bool = False

    @property
    def title(self) -> str:
        """The folder, and the variant where it is one."""
        return clean(f"{self.folder}: {self.name}" if self.name else self.folder)


def files_in(folders: Sequence[str]) -> list[Found]:
    """Every file of cases below the folders, in order, each once; BadInput where there is none."""
    found: dict[Path, Found] = {}
    for given in folders:
        start = Path(given)
        if not start.exists():
            loading.complain(f"error: {clean(given)}: no such file or folder; check the path")
            raise loading.BadInput
        listed = [start] if start.is_file() else sorted(start.rglob(FILE))
        if not listed:
            loading.complain(f"error: {clean(given)}: no {FILE} in it; write one there")
            raise loading.BadInput
        for file in listed:
            found.setdefault(file.resolve(), Found(file, str(file.parent)))
    return list(found.values())


def run(
    files: Sequence[Found],
    *,
    update: bool,
    schemas: Sequence[KindSchema] = (),
    strict: bool = False,
) -> list[Result]:
    """Run every case, a line for each as it ends, then the sum."""
    console = Console(highlight=False, markup=False, emoji=False, soft_wrap=True)
    results: list[Result] = []
    for each in files:
        for result in results_of(each, schemas, update=update):
            if strict and result.reason and result.state == PASSED:
                result.state, result.problems = FAILED, [not_evaluated(result)]
            tell(console, result)
            results.append(result)
    console.print(
        Text(summary(results), style="bold green" if not exit_code(results) else "bold red")
    )
    return results


def results_of(found: Found, schemas: Sequence[KindSchema], *, update: bool) -> Iterator[Result]:
    """The results of one file's case and variants; one error when the file cannot be read."""
    try:
        listed = reading.cases_of(found.file)
    except (BadCase, OSError) as error:
        yield Result(found.label, "", ERROR, [str(error)])
        return
    except Exception as error:
        yield faulty(found.label, "", error)
        return
    for case in listed:
        yield result_of(case, found.label, schemas, update=update)


def result_of(case: Case, folder: str, schemas: Sequence[KindSchema], *, update: bool) -> Result:
    """Run one case, and rewrite what it expects where that is asked for."""
    name = case.name.removeprefix(case.file.parent.name).removeprefix(": ")
    start = time.perf_counter()
    try:
        outcome = running.run(case, schemas)
        problems = [NO_EXPECTATION]
        if case.expect is not None:
            problems = comparing.compare(case.expect, outcome)
        state = FAILED if problems else PASSED
        if problems and update:
            rewriting.rewrite(case, outcome)
            state, problems = UPDATED, []
    except BadCase as error:
        return Result(folder, name, ERROR, [str(error)])
    except Exception as error:
        return faulty(folder, name, error)
    expected = {"judged", "notEvaluated"} & set(case.expect or ())
    reason = "" if expected or not case.offline else why_not_evaluated(outcome.decision)
    return Result(folder, name, state, problems, time.perf_counter() - start, reason)


def faulty(folder: str, name: str, error: Exception) -> Result:
    """The result of a case that podgate itself fails on; PODGATE_TRACEBACK raises it instead."""
    if os.environ.get("PODGATE_TRACEBACK"):
        raise error
    told = [loading.fault_text(error), loading.SEE_FAULT]
    return Result(folder, name, ERROR, told, fault=True)


def not_evaluated(result: Result) -> str:
    """That nobody evaluated the manifest of a case, and how the case may expect it."""
    return f"not evaluated: {result.reason}; expect notEvaluated: {result.reason} if that is meant"


def tell(console: Console, result: Result) -> None:
    """A line for the case, and below it every difference."""
    line = Text(f"{result.state:<7} ", style=STYLES[result.state])
    note = f" (not evaluated: {result.reason})" if result.reason else ""
    console.print(line.append(f"{result.title}{note}", style="default"))
    for problem in result.problems:
        for each in problem.splitlines():
            console.print(Text(f"    {clean(each)}", style=style_of(each)))


def style_of(line: str) -> str:
    """The colour of a line of a difference."""
    if line.startswith(("---", "+++", "@@")):
        return "dim"
    return {"-": "red", "+": "green"}.get(line[:1], "")


def count(results: Sequence[Result], state: str) -> int:
    """How many cases ended so."""
    return sum(1 for each in results if each.state == state)


def summary(results: Sequence[Result]) -> str:
    """`N passed, N failed`, and what else there was."""
    more = "".join(
        f", {number} {word}"
        for state, word in ((UPDATED, "updated"), (ERROR, "cannot be run"))
        if (number := count(results, state))
    )
    unseen = sum(1 for each in results if each.reason)
    more += f", {unseen} not evaluated" if unseen else ""
    return f"{count(results, PASSED)} passed, {count(results, FAILED)} failed{more}"


def exit_code(results: Sequence[Result]) -> int:
    """0 when all is as expected, 1 when a case failed, 2 when one cannot be run, 70 for a fault."""
    if any(each.fault for each in results):
        return loading.FAULT
    if count(results, ERROR):
        return loading.BAD_INPUT
    return 1 if count(results, FAILED) else 0


def write_junit(results: Sequence[Result], path: str) -> None:
    """The results as JUnit XML, a suite for each folder; BadInput when it cannot be written."""
    root = ElementTree.Element("testsuites", counts(results))
    for folder in dict.fromkeys(each.folder for each in results):
        own = [each for each in results if each.folder == folder]
        suite = ElementTree.SubElement(root, "testsuite", {"name": xml(folder), **counts(own)})
        for each in own:
            body = {
                "classname": xml(folder),
                "name": xml(each.name or Path(folder).name),
                "time": f"{each.seconds:.3f}",
            }
            case = ElementTree.SubElement(suite, "testcase", body)
            if each.problems:
                tag = "error" if each.state == ERROR else "failure"
                first = each.problems[0].splitlines()[0]
                told = ElementTree.SubElement(case, tag, {"message": xml(first)})
                told.text = xml("\n".join(each.problems))
    ElementTree.indent(root)
    try:
        ElementTree.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)
    except OSError as error:
        loading.complain(f"error: --junit: cannot write {clean(path)}: {error.strerror}")
        raise loading.BadInput from error


def counts(results: Sequence[Result]) -> dict[str, str]:
    """The numbers that a suite states."""
    return {
        "tests": str(len(results)),
        "failures": str(count(results, FAILED)),
        "errors": str(count(results, ERROR)),
        "time": f"{sum(each.seconds for each in results):.3f}",
    }


def xml(text: str) -> str:
    """Text without the characters that XML cannot hold."""
    return NOT_XML.sub("?", text)
