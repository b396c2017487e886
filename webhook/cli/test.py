"""podgate test: runs the cases of policy authors, in the format of `webhook/cases`."""

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

from webhook.cases.case import FILE, BadCase, Case
from webhook.cases.compare import compare
from webhook.cases.read import cases_of
from webhook.cases.rewrite import rewrite
from webhook.cases.run import run
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
    typer.Option("--update", help="Write the actual result into cases that expect something else."),
]
Crds = Annotated[
    list[str] | None,
    typer.Option("--crds", metavar="PATH", help="File or folder with CRDs, for cases without any."),
]
Strict = Annotated[
    bool, typer.Option("--strict", help="Fail cases whose manifest podgate does not evaluate.")
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
    """Run policy cases. Each is a folder with a case.yaml: policies, an object, the expected result.

    If a manifest is not evaluated, reports the reason. With --strict such a case fails, unless it
    expects `notEvaluated: REASON`.
    Exit code 0: all passed, 1: a case failed, 2: bad input.
    """
    try:
        schemas = loading.known_schemas(crds)
        results = run_files(files_in(folders), update=update, schemas=schemas, strict=strict)
        if junit is not None:
            write_junit(results, junit)
    except loading.BadInput:
        raise typer.Exit(loading.BAD_INPUT) from None
    raise typer.Exit(exit_code(results))


@dataclass(frozen=True, slots=True)
class Found:
    """One file of cases, and its title: its folder relative to the given one."""

    file: Path
    label: str


@dataclass(slots=True)
class Result:
    """The result of one case: `problems` are its differences, or why it cannot be run.

    `reason` says why the manifest was not evaluated, unless the case expects that; `fault` is set
    if podgate itself failed.
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
        """The folder, and the name of the variant."""
        return clean(f"{self.folder}: {self.name}" if self.name else self.folder)


def files_in(folders: Sequence[str]) -> list[Found]:
    """Every file of cases below the folders, in order, each once; BadInput if there is none."""
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


def run_files(
    files: Sequence[Found],
    *,
    update: bool,
    schemas: Sequence[KindSchema] = (),
    strict: bool = False,
) -> list[Result]:
    """Run every case and print a line for each, then the totals."""
    console = Console(highlight=False, markup=False, emoji=False, soft_wrap=True)
    results: list[Result] = []
    for each in files:
        for result in results_of(each, schemas, update=update):
            if strict and result.reason and result.state == PASSED:
                result.state, result.problems = FAILED, [not_evaluated(result)]
            print_result(console, result)
            results.append(result)
    console.print(
        Text(summary(results), style="bold green" if not exit_code(results) else "bold red")
    )
    return results


def results_of(found: Found, schemas: Sequence[KindSchema], *, update: bool) -> Iterator[Result]:
    """The results of one file's case and variants; one error when the file cannot be read."""
    try:
        listed = cases_of(found.file)
    except (BadCase, OSError) as error:
        yield Result(found.label, "", ERROR, [str(error)])
        return
    except Exception as error:
        yield faulty(found.label, "", error)
        return
    for case in listed:
        yield result_of(case, found.label, schemas, update=update)


def result_of(case: Case, folder: str, schemas: Sequence[KindSchema], *, update: bool) -> Result:
    """Run one case; if requested, write the result into its file."""
    name = case.name.removeprefix(case.file.parent.name).removeprefix(": ")
    start = time.perf_counter()
    try:
        outcome = run(case, schemas)
        problems = [NO_EXPECTATION]
        if case.expect is not None:
            problems = compare(case.expect, outcome)
        state = FAILED if problems else PASSED
        if problems and update:
            rewrite(case, outcome)
            state, problems = UPDATED, []
    except BadCase as error:
        return Result(folder, name, ERROR, [str(error)])
    except Exception as error:
        return faulty(folder, name, error)
    expected = {"judged", "notEvaluated"} & set(case.expect or ())
    reason = "" if expected or not case.offline else why_not_evaluated(outcome.decision)
    return Result(folder, name, state, problems, time.perf_counter() - start, reason)


def faulty(folder: str, name: str, error: Exception) -> Result:
    """The result of a case on which podgate itself failed; PODGATE_TRACEBACK raises the error instead."""
    if os.environ.get("PODGATE_TRACEBACK"):
        raise error
    lines = [loading.fault_text(error), loading.SEE_FAULT]
    return Result(folder, name, ERROR, lines, fault=True)


def not_evaluated(result: Result) -> str:
    """The message that a manifest was not evaluated, and how the case may expect it."""
    return f"not evaluated: {result.reason}; expect notEvaluated: {result.reason} if that is meant"


def print_result(console: Console, result: Result) -> None:
    """Print a line for the case, and every difference below it."""
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
    """The number of cases with this outcome."""
    return sum(1 for each in results if each.state == state)


def summary(results: Sequence[Result]) -> str:
    """`N passed, N failed`, and other totals."""
    more = "".join(
        f", {number} {word}"
        for state, word in ((UPDATED, "updated"), (ERROR, "cannot be run"))
        if (number := count(results, state))
    )
    unseen = sum(1 for each in results if each.reason)
    more += f", {unseen} not evaluated" if unseen else ""
    return f"{count(results, PASSED)} passed, {count(results, FAILED)} failed{more}"


def exit_code(results: Sequence[Result]) -> int:
    """0 if all cases pass, 1 if a case failed, 2 if one cannot be run, 70 if podgate itself failed."""
    if any(each.fault for each in results):
        return loading.FAULT
    if count(results, ERROR):
        return loading.BAD_INPUT
    return 1 if count(results, FAILED) else 0


def write_junit(results: Sequence[Result], path: str) -> None:
    """Write the results as JUnit XML, one suite per folder; BadInput if the file cannot be written."""
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
                element = ElementTree.SubElement(case, tag, {"message": xml(first)})
                element.text = xml("\n".join(each.problems))
    ElementTree.indent(root)
    try:
        ElementTree.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)
    except OSError as error:
        loading.complain(f"error: --junit: cannot write {clean(path)}: {error.strerror}")
        raise loading.BadInput from error


def counts(results: Sequence[Result]) -> dict[str, str]:
    """The totals of a suite."""
    return {
        "tests": str(len(results)),
        "failures": str(count(results, FAILED)),
        "errors": str(count(results, ERROR)),
        "time": f"{sum(each.seconds for each in results):.3f}",
    }


def xml(text: str) -> str:
    """Remove the characters that XML cannot contain."""
    return NOT_XML.sub("?", text)
