"""The offline twin against the cluster: the same decision, and the same object in the end."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.e2e.api import StatusError
from tests.e2e.conftest import HERE
from tests.e2e.gate import MANIFESTS, Gate
from tests.e2e.objects import Json, essence, pods_in
from tests.e2e.served import offline

pytestmark = pytest.mark.e2e

FILES = sorted(MANIFESTS.rglob("*.yaml"))
EVERY = pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(MANIFESTS)))


@pytest.fixture(scope="module")
def verdicts() -> dict[str, Json]:
    """What `podgate apply` says of every manifest, by file."""
    found, _ = offline(HERE / "policies", FILES, "governed")
    assert len(found) == len(FILES)
    return {str(each["source"]): each for each in found}


def in_cluster(gate: Gate, document: Json, namespace: str) -> Json | StatusError:
    """What the API server makes of a new object, or its refusal; nothing is stored."""
    try:
        return gate.api.create(document, namespace, dry_run=True)
    except StatusError as error:
        return error


@EVERY
def test_same_decision_and_same_object(gate: Gate, verdicts: dict[str, Json], file: Path) -> None:
    verdict = verdicts[str(file)]
    found = in_cluster(gate, yaml.safe_load(file.read_text("utf-8")), "governed")
    expected = sorted((each["message"], each["reason"]) for each in verdict["violations"])
    if isinstance(found, StatusError):
        assert found.status["code"] == 403, found.status
        assert sorted((each["message"], each["reason"]) for each in found.causes()) == expected
        assert expected
        return
    assert verdict["allowed"], expected
    elsewhere = in_cluster(gate, verdict["object"], "plain")
    assert not isinstance(elsewhere, StatusError), elsewhere
    assert in_order(essence(elsewhere)) == in_order(essence(found))


def in_order(document: Json) -> Json:
    """What admission plugins add to a Pod comes before what podgate adds, and here after."""
    for _, _, spec in pods_in(document):
        for volumes in (
            spec.get("volumes", []),
            *(each.get("volumeMounts", []) for each in spec["containers"]),
            *(each.get("volumeMounts", []) for each in spec.get("initContainers", ())),
        ):
            volumes.sort(key=lambda each: str(each["name"]))
        # So does the plugin that adds tolerations.
        spec.get("tolerations", []).sort(key=lambda each: str(each["key"]))
        spec.get("tolerations", []).sort(key=str)
    return document


def test_both_decisions_occur(verdicts: dict[str, Json]) -> None:
    refused = {file for file, each in verdicts.items() if not each["allowed"]}
    assert refused == {str(file) for file in FILES if file.parent.name == "refused"}
