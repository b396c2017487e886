"""Every drill ends without a request that failed or was decided wrongly; and the oracle can tell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from tests.e2e.conftest import bed_or_skip
from tests.e2e.install.drills import stand
from tests.e2e.install.drills.attempts import EVIL, PYTHON, Attempt
from tests.e2e.install.drills.course import DRILLS, drilled
from tests.e2e.install.drills.load import Said, outcome_of
from tests.e2e.install.drills.rules import Rules
from tests.e2e.install.drills.stand import Stand
from tests.e2e.install.drills.tally import Answer, Row, table
from tests.e2e.objects import Json

RULES = Rules("one", frozenset({PYTHON}))
ASKED = 3.0
"""Requests of each second that must have been made, however slow the machine is."""


@pytest.fixture(scope="module")
def standing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    with bed_or_skip():
        cluster = stand.cluster()
    try:
        with stand.standing(cluster, tmp_path_factory.mktemp("drills")) as found:
            yield found
    finally:
        cluster.stop()


@pytest.mark.e2e
@pytest.mark.parametrize("name", DRILLS)
def test_nobody_is_failed_while_it_happens(name: str, standing: Stand) -> None:
    row = drilled(standing, name)
    print(f"\n{table([row])}")
    assert row.complaints == []
    assert row.count("right") > ASKED * (row.seconds - AWAY_AT_MOST.get(name, 0))
    assert not row.count("away") or name in AWAY_AT_MOST


AWAY_AT_MOST = {"API server restarted": 30.0, "etcd paused": 30.0}
"""The drills that take the API server away, and seconds for which it may be so."""


def pod(image: str, **more: object) -> Json:
    spec = {
        "containers": [{"name": "main", "image": image, **more}],
        "terminationGracePeriodSeconds": 30,
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {}, "spec": spec}


MARKED = {"env": [{"name": "DRILL", "value": "one"}]}
FAILED_CALL = 'Internal error occurred: failed calling webhook "validate.podgate.dev": EOF'


@pytest.mark.parametrize(
    "image, said, away, outcome",
    [
        (PYTHON, Said(pod(PYTHON, **MARKED)), False, "right"),
        (PYTHON, Said(pod(PYTHON)), False, "wrong"),
        (PYTHON, Said(pod(EVIL, **MARKED)), False, "wrong"),
        (PYTHON, Said(None, "podgate refused: - image at x", 403), False, "wrong"),
        (EVIL, Said(None, "podgate refused: - image at x", 403), False, "right"),
        (EVIL, Said(None, "podgate refused: - security.privileged at x", 403), False, "wrong"),
        (EVIL, Said(pod(EVIL, **MARKED)), True, "wrong"),
        (PYTHON, Said(None, "ConnectionRefusedError"), True, "away"),
        (PYTHON, Said(None, "ConnectionRefusedError"), False, "failed"),
        (PYTHON, Said(None, "etcdserver: request timed out", 500), True, "away"),
        (PYTHON, Said(None, FAILED_CALL, 500), True, "failed"),
        (PYTHON, Said(None, "pods is forbidden", 403), True, "failed"),
        (PYTHON, Said(None, "conflict", 409), True, "failed"),
    ],
)
def test_an_answer_is_right_only_where_the_rules_explain_it(
    image: str, said: Said, away: bool, outcome: str
) -> None:
    attempt = Attempt("create", "POST", "/", None, pod(image))
    assert outcome_of(attempt, said, {RULES}, away=away)[0] == outcome


def test_while_rules_change_either_may_explain_an_answer_and_later_only_one() -> None:
    later = Rules("two", frozenset({PYTHON, EVIL}))
    attempt = Attempt("create", "POST", "/", None, pod(EVIL))
    refused = Said(None, "podgate refused: - image at x", 403)
    assert outcome_of(attempt, refused, {RULES, later}, away=False)[0] == "right"
    assert outcome_of(attempt, refused, {later}, away=False)[0] == "wrong"


def test_where_nothing_is_governed_an_object_stays_as_it_came() -> None:
    attempt = Attempt("create", "POST", "/", None, pod(EVIL))
    assert outcome_of(attempt, Said(pod(EVIL)), {Rules()}, away=False)[0] == "right"
    assert outcome_of(attempt, Said(pod(EVIL, **MARKED)), {Rules()}, away=False)[0] == "wrong"


def test_figures_count_what_was_away_apart_and_complain_of_the_rest() -> None:
    answers = [
        *(Answer(0.0, seconds / 100, "right") for seconds in range(1, 101)),
        Answer(0.0, 30.0, "away", "refused"),
        Answer(0.0, 0.1, "failed", "EOF"),
        Answer(0.0, 0.1, "wrong", "stored"),
    ]
    row = Row("x", 5.0, answers, Counter({"validate.podgate.dev": 2}), "seen")
    assert row.cells() == ("x", "5", "103", "1", "1", "1", "2", "495", "950", "seen")
    assert row.complaints == [
        "failed: EOF",
        "wrong: stored",
        "2 failed calls: validate.podgate.dev",
    ]
    assert table([row]).splitlines()[0].startswith("drill")
