"""Every command over documents broken in many ways: no fault, no neighbour lost, each error named.

`make every-command` tries 20,000 (COUNT=, SEED=); some hundreds are tried here, MUTANTS= of them.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import podgate
from tests.every import sources
from tests.every.commands import SORTS
from tests.every.run import Table, batches, faults_in, share_of, shipped_once
from tests.mutated import LAUGHS, trees_of
from webhook.catalog.build import parse_documents
from webhook.documents.source import SourceDocument
from webhook.policy.envelope import Context

COUNT = int(os.environ.get("MUTANTS") or 160)
SEED = 15
GOOD = "apiVersion: v1\nkind: Pod\nmetadata: {name: good}\nspec: {containers: [{name: a, image: a:1}]}\n"


@pytest.fixture(scope="module", autouse=True)
def shipped() -> Iterator[None]:
    """Definitions are read once for all commands."""
    with shipped_once():
        yield


@pytest.mark.parametrize("sort", SORTS)
def test_nothing_that_is_broken_breaks_a_command(sort: str, tmp_path: Path) -> None:
    table = Table(tmp_path)
    count = max(8, share_of(sort, COUNT))
    for work in batches(sort, count, SEED):
        work(table)
    assert table.documents.total() >= count
    assert table.wrong == []


def values_in(tree: Any, shape: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any, Any]]:
    """Every value of a document: its place without positions in lists, its container, its key."""
    keys = list(tree) if isinstance(tree, dict) else range(len(tree))
    for key in keys:
        place = (*shape, key if isinstance(tree, dict) else "*")
        yield place, tree, key
        if isinstance(tree[key], dict | list):
            yield from values_in(tree[key], place)


@pytest.mark.parametrize("sort", ["policies", "definitions"])
def test_a_value_of_another_type_is_a_problem_in_every_place(sort: str) -> None:
    seen: set[tuple[str, ...]] = set()
    for text in getattr(sources, sort)():
        for tree in copy.deepcopy(trees_of(text)):
            for shape, container, key in values_in(tree, (str(tree.get("kind")),)):
                if shape in seen:
                    continue
                seen.add(shape)
                value = container[key]
                for other in ([], {}, -1, "x"):
                    container[key] = other
                    parse_documents([SourceDocument("a.yaml", 1, tree, {}, {})], Context())
                container[key] = value
    assert len(seen) > 700


BYTES: dict[str, bytes] = {
    "nothing": b"",
    "a byte order mark alone": b"\xef\xbb\xbf",
    "UTF-16": GOOD.encode("utf-16"),
    "UTF-32": GOOD.encode("utf-32"),
    "no text": b"\xff\xfe\x00\x80" * 50,
    "NUL": GOOD.encode().replace(b"good", b"go\x00od"),
    "a surrogate": GOOD.encode().replace(b"good", b"\xed\xa0\x80"),
    "one long line": b"a: " + b"x" * 200_000,
    "a long key": b"k" * 100_000 + b": 1",
    "deep lists": b"a: " + b"[" * 5_000,
    "deep maps": b"{a: " * 5_000,
    "deep indentation": "\n".join(" " * n + "a:" for n in range(500)).encode(),
    "an alias of itself": b"a: &a [*a]",
    "a number without end": GOOD.encode().replace(b"a:1", b"9" * 10_000),
    "1e400": GOOD.encode().replace(b"a:1", b"1e400"),
    "tabs": GOOD.replace("kind", "\tkind").encode(),
    "only a comment and dashes": b"# nothing\n---\n---\n...\n",
    "lists": b"[[[1, {a: [null]}]]]",
    "a date": b"2026-01-01",
    "objects as lines of JSON": b'{"apiVersion": 1}\n{"kind": 2}\n[3]\n',
}
READING = (
    ("apply",),
    ("apply", "-o", "json"),
    ("explain",),
    ("lint",),
    ("convert",),
    ("review",),
    ("interface", "check"),
    ("interface", "infer"),
    ("interface", "show"),
    ("interface", "extract", "deployments.apps"),
    ("interface", "suspend", "jobs.batch"),
    ("interface", "tree", "deployment.apps/a"),
    ("test",),
)


@pytest.mark.parametrize("command", READING, ids=" ".join)
def test_bytes_that_are_no_document_are_errors_of_their_files(
    command: tuple[str, ...], tmp_path: Path
) -> None:
    for number, data in enumerate(BYTES.values()):
        file = tmp_path / str(number) / "case.yaml"
        file.parent.mkdir()
        file.write_bytes(data)
    read = [str(tmp_path)] if command != ("review",) else map(str, tmp_path.rglob("*.yaml"))
    for path in read:
        arguments = (*command, path)
        result = podgate(*arguments)
        assert list(faults_in(arguments, result, path)) == []
        assert result.exit_code in (1, 2)


@pytest.mark.parametrize("command", [("apply",), ("lint",)], ids=" ".join)
def test_billions_of_values_are_an_error(
    command: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The real bound is tried where files are read: to reach it takes seconds.
    monkeypatch.setattr("webhook.documents.yaml_source.MAX_NODES", 20_000)
    file = tmp_path / "a.yaml"
    file.write_text(LAUGHS)
    result = podgate(*command, str(file))
    assert result.exit_code == 2
    assert "more than 20000 values when aliases are expanded" in result.output


@pytest.mark.parametrize("command", READING, ids=" ".join)
def test_paths_that_are_no_file_are_errors_that_name_them(
    command: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "link.yaml").symlink_to("nowhere")
    (tmp_path / "folder.yaml").mkdir()
    closed = tmp_path / "closed.yaml"
    closed.write_text(GOOD)
    closed.chmod(0)
    os.mkfifo(tmp_path / "pipe.yaml")
    for name in ("link.yaml", "folder.yaml", "pipe.yaml", "absent.yaml", "closed.yaml/inside.yaml"):
        path = str(tmp_path / name)
        result = podgate(*command, path)
        assert list(faults_in((*command, path), result, path)) == []
        assert result.exit_code == 2
        assert path in result.output
