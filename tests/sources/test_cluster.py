"""Documents of files and of the cluster together, as a worker loads them from the Pod's snapshot."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.building import asset, policy
from tests.catalog.test_living import BROKEN, GOOD, KEY, A, B, allows, at, key
from tests.cluster.test_api_server import PATH, Objects, objects, server  # noqa: F401 - fixtures
from tests.listing import DEEP
from tests.server.test_http import ca  # noqa: F401 - a fixture
from tests.sources.test_configmaps import POLICY
from webhook.cli.serve import make_judge
from webhook.cluster.client import ApiServer
from webhook.cluster.list_and_watch import Collection
from webhook.policy.envelope import Context
from webhook.server.serve import LoadError
from webhook.sources.catalog_source import ClusterSources
from webhook.sources.load import Sources
from webhook.sources.reader import Watcher
from webhook.sources.snapshot import Snapshot

IMPOSING = """
apiVersion: podgate.dev/v1alpha1
kind: ClusterWorkloadPolicy
metadata: {name: imposing}
spec: {imposedAssets: [%s]}
"""
DATA = asset("data", "/data", "/mnt")


@pytest.fixture
def snapshot(tmp_path: Path) -> Snapshot:
    """A snapshot that the test writes."""
    folder = tmp_path / "snapshot"
    folder.mkdir()
    return Snapshot(folder)


def put(snapshot: Snapshot, serial: int, *documents: dict[str, Any]) -> None:
    snapshot.write(serial, {key(each): each for each in documents})


def test_what_does_not_fit_together_is_a_failed_load_so_that_metrics_tell(
    snapshot: Snapshot, tmp_path: Path
) -> None:
    file = tmp_path / "imposing.yaml"
    file.write_text(IMPOSING % "data", "utf-8")
    living = ClusterSources(Sources(policies=(str(file),)), snapshot)
    put(snapshot, 1, DATA, GOOD)
    assert living.load()[0] is not None
    file.write_text(IMPOSING % "nowhere", "utf-8")
    loaded = living.load()
    assert loaded[0] is None
    with pytest.raises(LoadError) as error:
        make_judge(*loaded, Context())
    assert [each.origin for each in error.value.problems] == [str(file)]
    (said,) = snapshot.acknowledgements()
    assert [*key(GOOD), 1] in said["in_force"], "the catalog before is what it judges by"
    file.write_text(IMPOSING % "data", "utf-8")
    assert living.load()[0] is not None


def test_a_worker_that_starts_begins_from_what_others_have_had_in_force(snapshot: Snapshot) -> None:
    put(snapshot, 1, at(BROKEN, 2))
    assert allows(ClusterSources(Sources(), snapshot).load()[0], B)
    snapshot.write_last_good({KEY: at(GOOD, 1)})
    late = ClusterSources(Sources(), snapshot)
    catalog, _ = late.load()
    assert not allows(catalog, B)
    assert allows(catalog, A)
    (said,) = snapshot.acknowledgements()
    assert said["in_force"] == [[*KEY, 1]]


def test_documents_in_configmaps_are_judged_by_between_files_and_the_cluster(
    snapshot: Snapshot, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    text = POLICY % ("images", B)
    place = ("ConfigMap", "podgate-system", "team")
    body = {"metadata": {"name": "team"}, "data": {"images.yaml": text}}
    snapshot.write(1, {KEY: at(GOOD, 1), place: body})
    living = ClusterSources(Sources(), snapshot)
    catalog, _ = living.load()
    assert allows(catalog, B)
    assert not allows(catalog, A)
    (said,) = snapshot.acknowledgements()
    in_force = {tuple(key): number for *key, number in said["in_force"]}
    assert in_force.pop(KEY) == 0
    ((key_of_text, number),) = in_force.items()
    assert key_of_text == (*place[:2], "team/images.yaml/ClusterWorkloadPolicy images")
    assert number
    assert "ClusterWorkloadPolicy images: metadata.name: found the name of" in caplog.text
    file = tmp_path / "images.yaml"
    file.write_text(text.replace(B, A), "utf-8")
    catalog, _ = ClusterSources(Sources(policies=(str(file),)), snapshot).load()
    assert allows(catalog, A)
    assert not allows(catalog, B)


def test_a_document_that_is_nested_deep_leaves_its_last_good_version_in_force_and_all_others(
    snapshot: Snapshot,
    server: ApiServer,  # noqa: F811 - the fixture
    objects: Objects,  # noqa: F811 - the fixture
) -> None:
    watcher = Watcher(server, snapshot, {KEY[0]: Collection(PATH)})
    living = ClusterSources(Sources(), snapshot)
    deep = at(GOOD, 2)
    deep["spec"] = {**GOOD["spec"], "more": DEEP}
    other = policy("rules: {image: {options: [{value: x}]}}", "other")
    for items in ([at(GOOD, 1)], [deep, other]):
        objects.items = items
        asyncio.run(watcher.collections[KEY[0]].read(server))
        watcher.write()
        catalog, _ = living.load()
    assert not allows(catalog, B)
    (said,) = snapshot.acknowledgements()
    assert said["in_force"] == [[*KEY, 1], [*key(other), 1]]
