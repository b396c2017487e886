"""Files, ConfigMaps and the cluster at once: of one name the first counts, and what it hides is told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests import building
from tests.building import asset, policy
from tests.catalog.test_living import GOOD, KEY, A, B, allows, at, key
from webhook.catalog.build import Choices, Documents, parse_documents
from webhook.catalog.watched_documents import Fixed, Key, Outcome, WatchedDocuments
from webhook.controller.status import Effect, LoadedGenerations, find_loaded, status_of
from webhook.decision.messages import problem_text
from webhook.documents.source import SourceDocument
from webhook.policy.envelope import Context
from webhook.sources.configmaps import ConfigMaps
from webhook.sources.last_good import documents_of, write_configmap

MAP: Key = ("ConfigMap", "podgate-system", "team")
ENCLOSED: Key = (*MAP[:2], "team/images.yaml/ClusterWorkloadPolicy images")
POLICY = """
apiVersion: podgate.dev/v1alpha1
kind: ClusterWorkloadPolicy
metadata: {name: %s}
spec: {rules: {image: {options: ["%s"]}}}
"""
OTHER = policy(f"rules: {{image: {{options: [{B!r}]}}}}", "images")
SHORT = "podgate-system/team, key images.yaml"


def of_file(*documents: dict[str, Any]) -> Fixed:
    """What files hold."""
    sources = [SourceDocument("p.yaml", n, each, {}, {}) for n, each in enumerate(documents)]
    given = parse_documents(sources, Context()) if sources else Documents()
    return Fixed(building.shipped(), given, Choices(), building.table())


def of_map(*texts: str, **files: str) -> dict[Key, Any]:
    """A ConfigMap with these keys of data, images.yaml for what has no name."""
    whole = {"images.yaml": "---\n".join(texts)} if texts else {}
    return {MAP: {"metadata": {"name": "team"}, "data": {**whole, **files}}}


def opened(*several: Mapping[Key, Any]) -> dict[Key, Any]:
    return ConfigMaps().unpack({key: body for each in several for key, body in each.items()})


def take(watched: WatchedDocuments, fixed: Fixed, *several: Mapping[Key, Any]) -> Outcome:
    return watched.take(opened(*several), fixed)


def test_a_configmap_hides_a_document_of_the_cluster_and_a_file_hides_both() -> None:
    watched, cluster = WatchedDocuments(), {KEY: at(GOOD, 4)}
    both = take(watched, of_file(), of_map(POLICY % ("images", B)), cluster)
    assert not allows(both.catalog, A)
    assert allows(both.catalog, B)
    assert both.statuses[ENCLOSED].is_accepted
    (told,) = both.statuses[KEY].problems
    assert (told.reason, told.severity) == ("hidden", "error")
    assert problem_text(told) == (
        f"ClusterWorkloadPolicy images: metadata.name: found the name of ConfigMap {SHORT},"
        " ClusterWorkloadPolicy images, which comes first; delete one of the two, or rename it"
    )
    three = take(watched, of_file(GOOD), of_map(POLICY % ("images", B)), cluster)
    assert not allows(three.catalog, B)
    for hidden in (KEY, ENCLOSED):
        assert [each.reason for each in three.statuses[hidden].problems] == ["hidden"]
        assert three.statuses[hidden].in_force == 0
    alone = take(watched, of_file(), cluster)
    assert not allows(alone.catalog, B)
    assert alone.statuses[KEY].is_accepted


def test_the_status_of_a_hidden_document_says_hidden() -> None:
    outcome = take(WatchedDocuments(), of_file(GOOD), {KEY: at(OTHER, 4)})
    loaded = LoadedGenerations(1, {KEY: 0})
    status = status_of(outcome.statuses[KEY], loaded, KEY, Effect(), {}, "now")
    told = {each["type"]: (each["status"], each["reason"]) for each in status["conditions"]}
    assert told == {"Accepted": ("False", "Hidden"), "Ready": ("False", "Hidden")}


def test_a_hidden_document_keeps_its_last_good_version_for_when_it_counts_again() -> None:
    watched = WatchedDocuments()
    take(watched, of_file(), {KEY: at(GOOD, 1)})
    broken = {**at(GOOD, 2), "spec": {"rules": {"imagee": {}}}}
    hidden = take(watched, of_file(), of_map(POLICY % ("images", B)), {KEY: broken})
    assert allows(hidden.catalog, B)
    assert hidden.statuses[KEY].in_force == 0
    assert not allows(take(watched, of_file(), {KEY: broken}).catalog, B)


def test_what_is_broken_hides_nothing() -> None:
    broken = (POLICY % ("images", B)).replace("image:", "imagee:")
    outcome = take(WatchedDocuments(), of_file(), of_map(broken), {KEY: at(GOOD, 1)})
    assert not allows(outcome.catalog, B)
    assert outcome.statuses[KEY].is_accepted
    assert [each.reason for each in outcome.statuses[ENCLOSED].problems] == ["unknown-field"]


def test_of_two_assets_with_one_id_the_one_that_does_not_count_is_told() -> None:
    one, two = asset("data", "/one", "/mnt"), asset("data", "/two", "/mnt")
    two["metadata"]["name"] = "a-second"
    outcome = take(WatchedDocuments(), of_file(), {key(one): one, key(two): two})
    assert outcome.statuses[key(two)].is_accepted
    (told,) = outcome.statuses[key(one)].problems
    assert (told.path, told.reason) == ("spec.meta.id", "hidden")


def test_faults_in_a_configmap_name_its_key_their_line_and_path() -> None:
    text = POLICY % ("others", A) + "---\n" + (POLICY % ("images", A)).replace("image:", "imagee:")
    outcome = take(WatchedDocuments(), of_file(), of_map(text))
    (told,) = outcome.statuses[ENCLOSED].problems
    assert problem_text(told).startswith(
        f"ConfigMap {SHORT}, ClusterWorkloadPolicy images:11:16: spec.rules.imagee: found"
    )
    assert not allows(outcome.catalog, B), "its neighbour counts"


def test_the_last_good_version_of_each_document_of_a_configmap_stays_in_force() -> None:
    watched = WatchedDocuments()
    good = POLICY % ("images", A)
    take(watched, of_file(), of_map(good, POLICY % ("others", A)))
    second = take(watched, of_file(), of_map(good.replace("image:", "imagee:")))
    assert not allows(second.catalog, B)
    assert not second.statuses[ENCLOSED].is_accepted
    assert second.statuses[ENCLOSED].in_force
    assert {name for _, _, name in second.statuses} == {ENCLOSED[2]}, "the other is gone"
    assert allows(take(watched, of_file()).catalog, B)


def test_a_text_that_is_no_yaml_narrows_nothing_until_it_is_mended_or_goes() -> None:
    watched = WatchedDocuments()
    take(watched, of_file(), of_map(POLICY % ("images", A)))
    torn = take(watched, of_file(), of_map("spec: [", **{"b.yaml": POLICY % ("more", A)}))
    assert not allows(torn.catalog, B)
    (told,) = torn.statuses[*MAP[:2], "team/images.yaml"].problems
    assert problem_text(told).startswith(f"ConfigMap {SHORT}:2:1:")
    assert torn.statuses[ENCLOSED].is_accepted
    again = take(watched, of_file(), of_map("spec: ["))
    assert not allows(again.catalog, B)
    assert allows(take(watched, of_file(), of_map("")).catalog, B)


def test_who_starts_late_knows_the_last_good_version_of_a_text_as_it_was_written() -> None:
    watched = WatchedDocuments()
    unquoted = (POLICY % ("images", A)).replace("]}", ", 1.10]}")
    take(watched, of_file(), of_map(unquoted))
    remembered = documents_of(write_configmap("podgate-system", watched.in_force())[0])
    assert remembered[ENCLOSED]["texts"][0][1] == "1.10"
    late = WatchedDocuments()
    torn = opened(of_map("spec: ["))
    assert not allows(late.begin(torn, remembered, of_file()).catalog, B)
    assert late.in_force() == remembered


def test_processes_that_differ_on_a_text_have_it_in_force_nowhere() -> None:
    for numbers, lowest in (((7, 7), 7), ((7, 8), 0), ((8, 7), 0)):
        said = [{"in_force": [[*ENCLOSED, number]]} for number in numbers]
        assert find_loaded(said).lowest[ENCLOSED] == lowest
    assert find_loaded([{"in_force": [[*KEY, 7]]}, {"in_force": [[*KEY, 8]]}]).lowest[KEY] == 7


def test_other_keys_are_left_alone_and_a_configmap_without_documents_is_told() -> None:
    texts = {"readme.md": "not: [ours", "more.json": '{"kind": "ClusterWorkloadPolicy"}'}
    assert {each[2] for each in opened(of_map(**texts))} == {"team/more.json/document 1"}
    outcome = take(WatchedDocuments(), of_file(), of_map(**{"readme.md": ""}))
    (told,) = outcome.statuses[*MAP[:2], "team/"].problems
    assert problem_text(told) == (
        "ConfigMap podgate-system/team: data: found no key of data that ends in .yaml, .yml, .json;"
        " name the key as a file of documents, or take the label podgate.dev/documents away"
    )


def test_two_documents_of_one_name_in_one_text_are_told() -> None:
    outcome = take(
        WatchedDocuments(), of_file(), of_map(POLICY % ("images", A), POLICY % ("images", B))
    )
    assert not allows(outcome.catalog, B)
    second: Key = (*MAP[:2], f"{ENCLOSED[2]} in document 2")
    assert [each.reason for each in outcome.statuses[second].problems] == ["hidden"]


def test_a_text_that_did_not_change_is_not_read_again() -> None:
    several = ConfigMaps()
    first = several.unpack(of_map(POLICY % ("images", A)))
    again = several.unpack(of_map(POLICY % ("images", A), **{"b.yaml": POLICY % ("b", A)}))
    assert again[ENCLOSED] is first[ENCLOSED]
    assert len(again) == 2
