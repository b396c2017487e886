"""Runs commands over broken documents in this process, and says what is wrong with their answers."""

from __future__ import annotations

import json
import os
import re
import shutil
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from click.testing import Result

from tests import corpus
from tests.cli.running import podgate
from tests.every import cluster, neighbours, sources
from tests.every.commands import SETTINGS, SORTS
from tests.mutated import Mutant, mutants, objects
from webhook.cli import definitions
from webhook.documents.yaml_source import read_documents
from webhook.pods.definition import Definition

BATCH = 40
NEIGHBOURS = 4
"""One of so many is between two sound documents, and each folder has some."""
POLICY = str(corpus.POLICY)
GROUND = re.compile(r"podgate has a fault|Traceback \(most recent call last\)")
UNANSWERED = re.compile(r"the API server (?:failed|did not answer)")
ADVICE = re.compile(r"; |\b(?:write|give|name|check|did you mean|add)\b")


def refused(word: str) -> Any:
    """NaN and Infinity are no JSON."""
    raise ValueError(word)


class Wrong(NamedTuple):
    """One answer that is not as it must be, and the document that led to it."""

    command: str
    document: str
    what: str


@dataclass(slots=True)
class Table:
    """What was run: documents by command, exit codes, and what is wrong.

    `name` is the file below `folder` that keeps it, so that a run that was stopped can go on.
    """

    folder: Path
    name: str = "all"
    documents: Counter[str] = field(default_factory=Counter)
    codes: dict[str, Counter[int]] = field(default_factory=dict)
    wrong: list[Wrong] = field(default_factory=list)
    uncovered: Counter[str] = field(default_factory=Counter)

    def take(self, command: str, documents: int, code: int) -> None:
        """Count one run."""
        self.documents[command] += documents
        self.codes.setdefault(command, Counter())[code] += 1

    def complain(self, command: str, document: str, what: str) -> None:
        """Keep what is wrong."""
        self.wrong.append(Wrong(command, document, what[-3000:]))

    def add(self, other: Table) -> None:
        """Take in what another table has."""
        self.documents.update(other.documents)
        self.uncovered.update(other.uncovered)
        for command, codes in other.codes.items():
            self.codes.setdefault(command, Counter()).update(codes)
        self.wrong += other.wrong

    def write(self) -> None:
        """Keep this table as a file."""
        codes = {command: list(found.items()) for command, found in self.codes.items()}
        row = {"documents": self.documents, "uncovered": self.uncovered, "codes": codes}
        text = json.dumps({**row, "wrong": self.wrong})
        (self.folder / f"{self.name}.json").write_text(text, "utf-8")

    @classmethod
    def read(cls, folder: Path, name: str) -> Table | None:
        """The table that was kept; None without one."""
        file = folder / f"{name}.json"
        if not file.exists():
            return None
        row = json.loads(file.read_text("utf-8"))
        codes = {command: Counter(dict(found)) for command, found in row["codes"].items()}
        wrong = [Wrong(*each) for each in row["wrong"]]
        documents, uncovered = Counter(row["documents"]), Counter(row["uncovered"])
        return cls(folder, name, documents, codes, wrong, uncovered)


def title_of(arguments: Sequence[str]) -> str:
    """A command with its options, without what it reads."""
    return " ".join(each for each in arguments if "/" not in each and not each.startswith("{"))


def run(arguments: Sequence[str]) -> Result | str:
    """The outcome of a command, or the traceback that it ends with."""
    try:
        return podgate(*arguments)
    except Exception:
        return traceback.format_exc()


def faults_in(arguments: Sequence[str], result: Result | str, known: str) -> Iterator[str]:
    """What no answer may be: a fault of podgate, an error that names nothing or advises nothing."""
    if isinstance(result, str):
        yield result
        return
    if result.exit_code not in (0, 1, 2):
        yield f"exit code {result.exit_code}: {result.stderr[-1500:]}"
    elif GROUND.search(result.output):
        yield result.output[-1500:]
    errors = [each for each in result.stderr.splitlines() if each.startswith("error: ")]
    for each in errors:
        if UNANSWERED.search(each):
            continue
        if known not in each and neighbours.folder() not in each:
            yield f"names no document: {each}"
        elif not ADVICE.search(each.rpartition(".yaml")[2]):
            yield f"says nothing to write: {each}"
    if result.exit_code == 2 and not errors and "error" not in result.stdout:
        yield f"exit code 2 without an error: {result.output[-500:]}"
    if arguments[0] in ("apply", "explain", "audit", "lint") and "json" in arguments:
        texts = [result.stdout] if arguments[0] == "lint" else result.stdout.strip("\n").split("\n")
        try:
            for each in filter(None, texts):
                json.loads(each, parse_constant=refused)
        except ValueError as error:
            yield f"the output is no JSON: {error}"
    try:
        result.output.encode()
    except UnicodeEncodeError as error:
        yield f"the output is no UTF-8: {error}"


def is_empty(data: bytes) -> bool:
    """Whether there is no document in a text."""
    return read_documents(data, "x") == ([], [])


class Place(NamedTuple):
    """A mutant and where it is written: `own` is the folder or file that its messages name."""

    mutant: Mutant
    own: Path
    file: Path


def written(sort: str, several: Sequence[Mutant], folder: Path) -> list[Place]:
    """The mutants as files, each in a folder of its own where it is a case."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    found = []
    for each in several:
        if sort == "cases":
            own = folder / each.name[:100]
            own.mkdir()
            file = own / "case.yaml"
        else:
            own = file = folder / f"{each.name[:100]}.yaml"
        file.write_bytes(each.data)
        found.append(Place(each, own, file))
    return found


def filled(arguments: Sequence[str], values: dict[str, str]) -> list[str] | None:
    """The arguments of one run; None where something that they need is not known."""
    if any(each.startswith("{") and not values.get(each) for each in arguments):
        return None
    return [values.get(each, each) for each in arguments]


def turns(commands: Sequence[tuple[str, ...]], turn: int) -> Iterator[tuple[str, ...]]:
    """Of each command one form, by turns."""
    forms: dict[str, list[tuple[str, ...]]] = {}
    for each in commands:
        forms.setdefault(" ".join(each[: 1 + (each[0] == "interface")]), []).append(each)
    for several in forms.values():
        yield several[turn % len(several)]


def check_together(table: Table, sort: str, several: Sequence[Mutant], turn: int) -> None:
    """Every command that reads a folder, over many at once; then what of its answer is lost."""
    inside = [
        each if number % NEIGHBOURS else neighbours.between(sort, each)
        for number, each in enumerate(several)
    ]
    places = written(sort, inside, table.folder / sort)
    (table.folder / sort / "mistake.yaml").write_text(neighbours.MISTAKE)
    kinds = Counter(kind for each in several if (kind := values_of(each.data).get("{kind}", "")))
    common = kinds.most_common(1)[0][0] if kinds else ""
    values = {"{folder}": str(table.folder / sort), "{policy}": POLICY, "{kind}": common}
    for command in turns(SORTS[sort].together, turn):
        arguments = filled(command, values)
        if arguments is None:
            continue
        result = run(arguments)
        title = title_of(command)
        table.take(title, len(several), 70 if isinstance(result, str) else result.exit_code)
        found = list(faults_in(arguments, result, str(table.folder)))
        if not isinstance(result, str):
            found += neighbours.lost(sort, command, result, inside)
            if command[0] == "test" or (command[0] in ("apply", "explain") and "-o" in command):
                found += unnamed(places, result)
            if command[0] == "lint" and "shoutOut" not in result.stdout:
                found.append("the mistake of another file is lost")
        for each in found:
            table.complain(title, str(table.folder / sort), each)
        if found:
            keep(table, places)


def unnamed(places: Sequence[Place], result: Result) -> Iterator[str]:
    """Files that hold documents, and that no line of an answer is about."""
    for each in places:
        if str(each.own) not in result.output and not is_empty(each.mutant.data):
            yield f"{each.own} is in no line"


def keep(table: Table, places: Sequence[Place]) -> None:
    """Keep the files of a wrong answer beside the table."""
    folder = table.folder / "wrong" / f"{table.name}-{len(table.wrong):04}"
    shutil.copytree(places[0].file.parent, folder, dirs_exist_ok=True)


def check_alone(table: Table, sort: str, several: Sequence[Mutant]) -> None:
    """Every command that reads one file, over each."""
    for turn, place in enumerate(written(sort, several, table.folder / sort)):
        values = {"{file}": str(place.file), "{policy}": POLICY, **values_of(place.mutant.data)}
        environment = {}
        if sort == "settings":
            environment = {SETTINGS[len(place.mutant.name) % len(SETTINGS)]: str(place.file)}
        commands = SORTS[sort].alone
        for command in (commands[turn % len(commands)],):
            arguments = filled(command, values)
            if arguments is None:
                continue
            with mock.patch.dict(os.environ, environment):
                result = run(arguments)
            title = title_of(command)
            table.take(title, 1, 70 if isinstance(result, str) else result.exit_code)
            if not isinstance(result, str) and "extract" in command:
                table.uncovered[title] += result.stdout.count("not covered: ")
            for each in faults_in(arguments, result, str(place.file)):
                table.complain(title, place.file.name, each)
                keep(table, [place])


def values_of(data: bytes) -> dict[str, str]:
    """What the arguments of a command follow from the first document of a text."""
    documents, _ = read_documents(data, "x", kubernetes=True)
    found: dict[str, str] = neighbours.files()
    for each in documents:
        definition = definition_of(each.data)
        if definition is None:
            continue
        interface = definition.interface
        metadata = each.data.get("metadata")
        name = metadata.get("name") if isinstance(metadata, dict) else None
        found["{kind}"] = str(interface.origin)
        with_pods = [one.name for one in interface.components if one.form is not None]
        found["{component}"] = with_pods[0] if with_pods else ""
        if isinstance(name, str) and name and "/" not in name and name.isprintable():
            group = interface.group or "core"
            found["{object}"] = f"{interface.kind}.{group}/{name}"
        return found
    return found


def definition_of(data: Any) -> Definition | None:
    """The shipped definition of an object, or of what a definition or CRD is about."""
    if not isinstance(data, dict):
        return None
    catalog = corpus.usual()
    spec = data.get("spec")
    if data.get("kind") == "CustomResourceDefinition" and isinstance(spec, dict):
        names = spec.get("names")
        kind = names.get("kind") if isinstance(names, dict) else None
        found = catalog.definitions.get((str(spec.get("group")), str(kind)))
        return found[0] if found else None
    if not isinstance(data.get("apiVersion"), str) or not isinstance(data.get("kind"), str):
        return None
    return corpus.definition_of(data, catalog)


def check_live(table: Table, several: Sequence[tuple[str, Any]], turn: int) -> None:
    """`audit` in two of its forms over a cluster that has these objects."""
    forms = SORTS["live"].together
    for command in (forms[turn % 3], forms[3 + turn % 2]):
        arguments = filled(command, {"{policy}": POLICY})
        assert arguments is not None
        with cluster.playing([body for _, body in several]) as server:
            result = run(arguments)
        title = title_of(command)
        table.take(title, len(several), 70 if isinstance(result, str) else result.exit_code)
        found = list(cluster.wrong_in(result, command, server))
        for each in found:
            table.complain(title, ", ".join(name for name, _ in several), each)
        if found:
            folder = table.folder / "wrong"
            folder.mkdir(parents=True, exist_ok=True)
            text = json.dumps(several, default=str)
            (folder / f"{table.name}-{len(table.wrong):04}.json").write_text(text, "utf-8")


def batches(sort: str, count: int, seed: int) -> Iterator[Callable[[Table], None]]:
    """The work on so many broken documents of one sort, in parts."""
    if sort == "live":
        every: list[Any] = list(objects(sources.live(), count, seed))
    else:
        every = list(mutants(getattr(sources, sort)(), count, seed))
    for turn, start in enumerate(range(0, count, BATCH)):
        yield partial(check, sort, every[start : start + BATCH], turn)


def unbroken(sort: str) -> Iterator[Callable[[Table], None]]:
    """The work on all documents of one sort as they are, in parts."""
    found = getattr(sources, sort)()
    every: list[Any] = [(f"{number:05}", each) for number, each in enumerate(found)]
    if sort != "live":
        every = [Mutant(name, each.encode(), whole=False) for name, each in every]
    for turn, start in enumerate(range(0, len(every), BATCH)):
        yield partial(check, sort, every[start : start + BATCH], turn)


def check(sort: str, several: Sequence[Any], turn: int, table: Table) -> None:
    """Every command over one part of a sort."""
    if sort == "live":
        check_live(table, several, turn)
        return
    if SORTS[sort].together:
        check_together(table, sort, several, turn)
    if SORTS[sort].alone:
        check_alone(table, sort, several)


def share_of(sort: str, count: int) -> int:
    """How many of so many documents are of a sort."""
    return max(1, count * SORTS[sort].share // 1000)


@contextmanager
def shipped_once() -> Iterator[None]:
    """The shipped definitions are read once: three seconds of each command that names a kind."""
    whole, shipped = definitions.all_of, cache(definitions.all_of)
    with mock.patch.object(
        definitions, "all_of", lambda paths: whole(paths) if paths else shipped(())
    ):
        yield
