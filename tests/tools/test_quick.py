"""What `make quick` chooses to run for files that changed."""

from __future__ import annotations

from collections import Counter

from tools.quick import GOLDEN, choose, describe, find_tests


def test_a_module_is_tested_by_the_tests_of_its_package_and_those_that_import_it() -> None:
    about, others = find_tests("webhook/objects/quantity.py")
    assert about >= {"tests/objects/test_quantity.py"}
    assert all(each.startswith("tests/objects/") for each in about)
    assert "tests/objects/test_patch.py" in others
    assert "tests/evaluation/test_server_defaults.py" in others


def test_a_test_and_what_tests_share_are_run_by_whoever_uses_them() -> None:
    assert "tests/objects/test_patch.py" in choose(["tests/objects/test_patch.py"])[0]
    _, others = choose(["tests/definitions.py"])
    assert "tests/pods/test_locations.py" in others


def test_a_kind_and_a_case_are_tested_by_golden_cases() -> None:
    about, _ = choose(["policies/workloads/jobset.jobset.x-k8s.io.yaml"])
    assert any("[jobset/" in each for each in about)
    assert not any("[raycluster/" in each for each in about)
    about, others = choose(["tests/golden/job/example-18-system-policy/case.yaml"])
    assert len(about) == 3
    assert all(each.startswith(f"{GOLDEN}::test_case[job/example-18") for each in about)
    assert not others


def test_code_that_decides_is_tested_by_a_case_of_every_kind() -> None:
    about, _ = choose(["webhook/decision/decide.py"])
    kinds = {each.partition("[")[2].partition("/")[0] for each in about if GOLDEN in each}
    assert {"pod", "job", "raycluster", "workflow"} <= kinds


def test_one_line_says_what_was_run_and_what_was_left_out() -> None:
    chosen = ["tests/cli/test_apply.py", f"{GOLDEN}::test_case[a/b]"]
    line = describe(["a.py"], chosen, 7.2, Counter(passed=3))
    assert line.startswith(
        "1 files changed: lint, types, contracts, tests of cli/test_apply.py, 1 golden cases; 3 tests"
    )
    assert "left out: all other tests (make check)" in line
    assert "\n" not in line


def test_the_line_counts_the_chosen_tests_that_did_not_begin() -> None:
    line = describe([], ["tests/cli/test_apply.py"], 40.0, Counter(passed=3, failed=1, skipped=8))
    assert "4 tests ran in 40 s; left out: 8 of the chosen ones for want of time" in line
