"""Samples of the upstream projects: podgate offline and behind the API server decide alike."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.e2e.api import PLURALS, Json, StatusError
from tests.e2e.conftest import CRDS, HERE, bed_or_skip
from tests.e2e.gate import Gate
from tests.e2e.objects import LAST_APPLIED, essence
from tests.e2e.served import offline
from tests.e2e.test_twin import in_order
from tests.e2e.testbed import upstream

pytestmark = pytest.mark.e2e

# In `governed` hardly a sample passes, for its images; in `samples` most do.
SPACES = ("governed", "samples")
CASES = (("governed", "client-side"), ("samples", "client-side"), ("samples", "server-side"))


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A file for each upstream object of our kinds, without its namespace."""
    folder = tmp_path_factory.mktemp("samples")
    with bed_or_skip():
        documents = [each for project in CRDS for each in documents_of(project)]
    found = []
    for number, document in enumerate(documents):
        document["metadata"].pop("namespace", None)
        found.append(folder / f"{number:03}-{document['kind'].lower()}.json")
        found[-1].write_text(json.dumps(document), "utf-8")
    return found


def documents_of(project: str) -> Iterator[Json]:
    """Every object of our kinds among the samples of a project."""
    for path in upstream.samples(project):
        for document in yaml.load_all(path.read_text("utf-8"), yaml.CSafeLoader):
            kind = str((document or {}).get("kind"))
            if kind in PLURALS and document["apiVersion"] == PLURALS[kind][0]:
                yield document


def made(gate: Gate, document: Json, space: str, way: str) -> Json | StatusError:
    """What the API server would store of a new object, or its refusal."""
    try:
        if way == "server-side":
            return gate.api.server_side_apply(document, space)
        # As kubectl does, which is what `podgate apply` stands for.
        text = json.dumps(document)
        notes = {**document["metadata"].get("annotations", {}), LAST_APPLIED: text}
        sent = {**document, "metadata": {**document["metadata"], "annotations": notes}}
        return gate.api.create(sent, space, dry_run=True)
    except StatusError as error:
        return error


@pytest.fixture(scope="module")
def verdicts(samples: list[Path]) -> dict[str, list[Json]]:
    """What `podgate apply` says of every sample in both namespaces."""
    return {space: offline(HERE / "policies", samples, space)[0] for space in SPACES}


@pytest.mark.parametrize(("space", "way"), CASES)
def test_same_decision_and_same_object(
    gate: Gate, samples: list[Path], verdicts: dict[str, list[Json]], space: str, way: str
) -> None:
    assert [each["source"] for each in verdicts[space]] == [str(path) for path in samples]
    allowed = refused = 0
    problems = []
    for path, verdict in zip(samples, verdicts[space], strict=True):
        document = json.loads(path.read_text("utf-8"))
        if way == "server-side" and "name" not in document["metadata"]:
            continue
        found = made(gate, document, space, way)
        if isinstance(found, StatusError) and "podgate" not in str(found):
            assert isinstance(made(gate, document, "plain", way), StatusError), found
            continue
        if isinstance(found, StatusError):
            refused += 1
            told = sorted((each["message"], each["reason"]) for each in found.causes())
            if told != sorted((each["message"], each["reason"]) for each in verdict["violations"]):
                problems.append(f"{path.name}: {told} offline {verdict['violations']}")
            continue
        allowed += 1
        if not verdict["allowed"]:
            problems.append(f"{path.name}: allowed, offline {verdict['violations']}")
            continue
        elsewhere = made(gate, verdict["object"], "plain", way)
        assert not isinstance(elsewhere, StatusError), f"{path.name}: {elsewhere}"
        one, other = in_order(essence(found)), in_order(essence(elsewhere))
        problems += [f"{path.name}: {each}" for each in differences(one, other, "")]
    assert not problems, "\n".join(problems)
    assert allowed + refused > 50
    assert (refused if space == "governed" else allowed) > 20


def differences(one: object, other: object, place: str) -> Iterator[str]:
    """Where two documents differ."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in {**one, **other}:
            yield from differences(one.get(key), other.get(key), f"{place}.{key}")
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for index, (each, counterpart) in enumerate(zip(one, other, strict=True)):
            yield from differences(each, counterpart, f"{place}[{index}]")
    elif one != other:
        yield f"{place} is {one!r} in the cluster and {other!r} offline"
