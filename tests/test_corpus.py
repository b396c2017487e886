"""Real manifests and upstream's samples: nothing goes wrong, and no pod of theirs is missed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from tests import corpus
from tests.corpus import EXPLAINED, UNGOVERNED, Corpus
from tests.e2e.testbed.missing import MissingTestbed
from webhook.catalog.catalog import Catalog
from webhook.evaluation.outcome import Allowed

pytestmark = pytest.mark.long

POLICIES = {"usual": corpus.usual, "writing": corpus.writing}


def samples(project: str) -> Corpus:
    """The samples of an archive; skipped where it cannot be fetched, but not on CI."""
    try:
        return corpus.samples(project)
    except MissingTestbed as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"no samples of {project}: {error.reason} {error.how_to_get_it}")


def check(found: Corpus, catalog: Catalog, least: int) -> None:
    seen = list(corpus.judged(found, catalog))
    assert len(seen) >= least
    assert [f"{each.source}: {each.fault}" for each in seen if each.fault] == []
    assert [place for each in seen for place in corpus.unexplained(each)] == []
    unknown = set(corpus.ungoverned(found, catalog)) - set(UNGOVERNED)
    assert not unknown, "kinds with pods and without a definition"
    for each in seen:
        decision = each.verdict and each.verdict.decision
        if isinstance(decision, Allowed):
            assert each.verdict is not None
            assert each.verdict.object is not None, each.source


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("project", corpus.ORIGINS)
def test_every_sample_is_judged_and_none_of_its_pods_is_missed(project: str, policy: str) -> None:
    # Some archives have samples of other kinds only, or none.
    check(samples(project), POLICIES[policy](), 0)


def test_the_archives_have_samples() -> None:
    seen = [
        each for name in corpus.PROJECTS for each in corpus.judged(samples(name), corpus.usual())
    ]
    assert len(seen) > 500


def test_a_default_of_every_field_is_written_nearly_everywhere(upstream_data: Path) -> None:
    seen = list(corpus.judged(corpus.real_manifests(upstream_data), corpus.writing()))
    allowed = [each for each in seen if each.verdict and each.verdict.is_allowed]
    assert len(allowed) > 0.9 * len(seen)
    assert all(each.verdict and each.verdict.patch for each in allowed)


def test_every_explanation_is_of_something_that_is_there() -> None:
    places = {
        (seen.kind, place)
        for each in map(samples, corpus.ORIGINS)
        for seen in corpus.judged(each, corpus.usual())
        for place in seen.uncovered
    }
    assert places == set(EXPLAINED)


def test_the_kinds_that_are_said_to_be_tried_are_those_that_there_are() -> None:
    found = {
        corpus.kind_of(raw)
        for each in map(samples, corpus.ORIGINS)
        for _, raw in each.objects
        if corpus.definition_of(raw, corpus.usual()) is not None
    }
    assert found >= corpus.SAMPLED, "take what is gone out of SAMPLED"
    assert len(found - corpus.SAMPLED) < 5, "add what is new to SAMPLED"


def read(text: str) -> object:
    return list(yaml.safe_load_all(text))


@pytest.mark.parametrize("project", corpus.PROJECTS)
def test_a_sample_that_is_left_out_is_no_yaml_to_others_either(project: str) -> None:
    reader: Callable[[str], object] = read
    for name in samples(project).unreadable:
        with pytest.raises(yaml.YAMLError):
            reader(Path(name).read_text("utf-8"))
