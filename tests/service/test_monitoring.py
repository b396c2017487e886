"""Alerts and dashboard ask for metrics that exist, and every alert says what to do."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.generated import ROOT
from webhook.service.metric_rows import ADMISSION, CONTROLLER, Row

FOLDER = ROOT / "deploy" / "monitoring"
ROWS: dict[str, list[Row]] = {}
for each_row in (*ADMISSION, *CONTROLLER):
    ROWS.setdefault(each_row.name, []).append(each_row)
NAME = re.compile(r"\bpodgate_[a-z_]+")
SELECTED = re.compile(r"(\bpodgate_[a-z_]+)\{([^}]*)\}")
MATCHER = re.compile(r'([a-z_]+)(=~|!=|!~|=)"([^"]*)"')
GROUPED = re.compile(r"\bby \(([^)]*)\)")
RATED = re.compile(r"\b(?:rate|increase)\(\s*(podgate_[a-z_]+)")
SUFFIX = re.compile(r"_(bucket|sum|count)$")
OF_PROMETHEUS = {"pod", "namespace", "instance", "job"}


def alerts() -> list[dict[str, Any]]:
    body = yaml.safe_load((FOLDER / "alerts.yaml").read_text("utf-8"))
    return [rule for group in body["spec"]["groups"] for rule in group["rules"]]


def queries() -> Iterator[tuple[str, str]]:
    """Every query with the name of what asks it."""
    for rule in alerts():
        yield rule["alert"], rule["expr"]
    board = json.loads((FOLDER / "grafana.json").read_text("utf-8"))
    for panel in board["panels"]:
        for target in panel.get("targets") or ():
            yield panel["title"], target["expr"]
    for variable in board["templating"]["list"]:
        if variable["type"] == "query":
            yield variable["name"], variable["query"]


def row_of(name: str) -> Row:
    """The row that a name in a query stands for."""
    if name in ROWS:
        row = ROWS[name][0]
        assert row.kind != "histogram", (
            f"{name} is a histogram: ask for its _bucket, _sum or _count"
        )
        return row
    base = SUFFIX.sub("", name)
    assert base in ROWS, f"there is no metric {name}"
    assert ROWS[base][0].kind == "histogram", f"{base} is no histogram"
    return ROWS[base][0]


def labels_of(name: str) -> set[str]:
    """The labels that a series of a name may have."""
    return {*row_of(name).labels, *OF_PROMETHEUS} | ({"le"} if name.endswith("_bucket") else set())


def faults_of(query: str) -> Iterator[str]:
    """What is wrong with a query: values that a label never has, labels that are not there."""
    names = NAME.findall(query)
    for name, matchers in SELECTED.findall(query):
        for label, operator, value in MATCHER.findall(matchers):
            if label not in labels_of(name):
                yield f"{name} has no label {label}"
            found = row_of(name).labels.get(label)
            if isinstance(found, tuple):
                wanted = value.split("|") if "~" in operator else [value]
                yield from (f"{label} is never {one}" for one in wanted if one not in found)
    for grouped in GROUPED.findall(query):
        for label in grouped.split(", "):
            if not any(label in labels_of(name) for name in names):
                yield f"nothing in it has a label {label}"
    rated = set(RATED.findall(query))
    for name in names:
        counts = row_of(name).kind != "gauge"
        if counts != (name in rated):
            yield f"{name} is {'no ' if not counts else 'a '}count, and is {'not ' * counts}rated"


@pytest.mark.parametrize("name, query", list(queries()))
def test_a_query_asks_for_what_there_is(name: str, query: str) -> None:
    assert NAME.findall(query), f"{name} asks for nothing of podgate's"
    assert list(faults_of(query)) == []


@pytest.mark.parametrize(
    "query, fault",
    [
        ("sum(podgate_requests)", "there is no metric podgate_requests"),
        ("podgate_request_wait_seconds", "is a histogram"),
    ],
)
def test_a_name_that_is_none_is_found(query: str, fault: str) -> None:
    with pytest.raises(AssertionError, match=fault):
        list(faults_of(query))


@pytest.mark.parametrize(
    "query, fault",
    [
        ('podgate_leader{what="x"}', "podgate_leader has no label what"),
        ('podgate_reload_failing{what="jq"}', "what is never jq"),
        ("sum by (policy) (podgate_leader)", "nothing in it has a label policy"),
        ("rate(podgate_leader[5m])", "podgate_leader is no count, and is rated"),
        ("podgate_jq_deaths_total > 0", "podgate_jq_deaths_total is a count, and is not rated"),
    ],
)
def test_a_query_that_never_fires_is_found(query: str, fault: str) -> None:
    assert list(faults_of(query)) == [fault]


def test_the_same_metric_means_the_same_in_both_programs() -> None:
    assert {name: rows for name, rows in ROWS.items() if len(set(map(id, rows))) > 1} == {}


def test_every_alert_has_its_entry_in_the_runbooks_and_no_entry_is_left_over() -> None:
    page = (ROOT / "docs" / "runbooks.md").read_text("utf-8")
    headings = re.findall(r"^## (\w+)$", page, re.MULTILINE)
    rules = alerts()
    assert sorted(headings) == sorted(each["alert"] for each in rules)
    for each in rules:
        assert each["annotations"]["runbook"] == f"docs/runbooks.md#{each['alert'].lower()}"
        assert each["labels"]["severity"] in {"warning", "critical"}


def test_every_metric_is_on_the_dashboard() -> None:
    board = (FOLDER / "grafana.json").read_text("utf-8")
    shown = {SUFFIX.sub("", name) for name in NAME.findall(board)}
    assert set(ROWS) - shown == set()
