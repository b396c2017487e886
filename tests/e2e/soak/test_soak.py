"""A soak of seconds, so that `make soak` cannot rot, and what it must find."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.conftest import bed_or_skip
from tests.e2e.soak.__main__ import soak
from tests.e2e.soak.figures import Figures
from tests.e2e.soak.verdict import MEGABYTE, of_calls, of_memory, of_ours, of_refusals

SECONDS = 20.0
REFUSED = (
    "04:00:00 info    denied uid=1 kind=Pod.v1 namespace=soak name=x-1 user={} dry_run={} rules=[]"
)


@pytest.mark.e2e
def test_people_at_work_for_some_seconds_find_nothing_wrong(tmp_path: Path) -> None:
    with bed_or_skip():
        verdict = soak(SECONDS, [], 1, tmp_path)
    assert list(verdict.complaints) == []
    figures = dict(verdict.rows)
    for what in ("done by people", "  refused", "policy changes", "pods judged by the oracle"):
        assert int(figures[what]) > 0, figures


def test_a_refused_controller_is_told_but_for_what_was_deleted_before() -> None:
    log = REFUSED.format("system:serviceaccount:kube-system:job-controller", False)
    four = 4 * 3600.0
    for ended, told in (
        ({}, 1),
        ({("soak", "x"): four}, 0),
        ({("soak", "x"): four + 1}, 1),
        ({("soak", "other"): four, ("other", "x"): four}, 1),
    ):
        assert len(list(of_refusals(log, 0, ended))) == told, ended


def test_refusals_of_people_are_at_least_as_many_as_they_were_told() -> None:
    log = "\n".join((REFUSED.format("alice", False), REFUSED.format("alice", True)))
    assert list(of_refusals(log, 1, {})) == []
    assert list(of_refusals(log, 0, {})) == []
    assert len(list(of_refusals(log, 2, {}))) == 1


def test_memory_that_grows_is_told_and_three_flat_processes_are_not() -> None:
    flat = [(float(second), 80 * MEGABYTE) for second in range(30)]
    grows = [(float(second), (80 + second) * MEGABYTE) for second in range(30)]
    assert list(of_memory({1: flat, 2: flat, 3: flat}, 1.05)) == []
    assert len(list(of_memory({1: flat, 2: grows, 3: flat}, 1.05))) == 1
    assert len(list(of_memory({1: flat, 2: flat}, 1.05))) == 1


def test_a_failed_call_and_an_answer_of_500_are_told() -> None:
    ours = 'name="mutate.podgate.dev"'
    name = "apiserver_admission_webhook"
    text = (
        f"# TYPE {name}_request_total counter\n"
        f'{name}_request_total{{code="200",{ours}}} 7\n'
        f'{name}_request_total{{code="500",{ours}}} 1\n'
        f'{name}_request_total{{code="500",name="other.example.com"}} 1\n'
        f"# TYPE {name}_rejection_count counter\n"
        f'{name}_rejection_count{{error_type="no_error",{ours}}} 3\n'
        f'{name}_rejection_count{{error_type="calling_webhook_error",{ours}}} 2\n'
        f"# TYPE {name}_fail_open_count counter\n"
        f"{name}_fail_open_count{{{ours}}} 1\n"
    )
    told = list(of_calls(Figures(text, (name, "# TYPE"))))
    assert [each.split()[0] for each in told] == ["2", "1", "1"], told
    assert list(of_calls(Figures("", (name,)))) == ["the API server never called podgate"]


def test_an_error_that_podgate_counts_or_logs_is_told() -> None:
    text = (
        "# TYPE podgate_requests counter\n"
        'podgate_requests_total{outcome="denied"} 4\n'
        'podgate_requests_total{outcome="error"} 1\n'
    )
    figures = Figures(text, ("podgate_", "# TYPE"))
    assert list(of_ours(figures, "04:00:00 info    fine")) == ["1 reviews with outcome error"]
    assert len(list(of_ours(figures, "04:00:00 error   evaluation failed"))) == 2


def test_reviews_for_nothing_are_told_when_they_are_many() -> None:
    def said(count: int) -> list[str]:
        text = (
            "# TYPE podgate_requests counter\n"
            'podgate_requests_total{outcome="allowed"} 90\n'
            f'podgate_requests_total{{outcome="not-evaluated"}} {count}\n'
        )
        return list(of_ours(Figures(text, ("podgate_", "# TYPE")), ""))

    assert said(10) == []
    assert said(11) == ["10.9 % of the reviews were not evaluated"]


def test_a_quantile_lies_even_within_its_bucket() -> None:
    text = (
        "# TYPE h histogram\n"
        'h_bucket{le="0.1"} 50\nh_bucket{le="0.2"} 90\nh_bucket{le="+Inf"} 100\n'
        "h_sum 1\nh_count 100\n"
    )
    figures = Figures(text, ("h_", "# TYPE"))
    quantiles = [figures.quantile("h", share, lambda _: True) for share in (0.25, 0.7, 0.99)]
    assert quantiles == pytest.approx([0.05, 0.15, 0.2])
    assert figures.quantile("other", 0.5, lambda _: True) == 0
