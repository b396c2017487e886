"""Sentences carry the facts, stay on one line, and give nothing away."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.decision.messages import (
    DEFINITION,
    LONGEST_PLACE,
    VIOLATIONS,
    WARNINGS,
    change_text,
    place,
    problem_text,
    refusal,
    violation_text,
    warning_text,
)
from webhook.documents.problem import Problem, Source
from webhook.evaluation.outcome import Change, Violation, Warning

SOURCE = Source("gpu-limits", "cluster", message="Ask us", docs_url="https://wiki/gpu")
PLACE = ("spec", "containers", 0, "resources", "limits", "nvidia.com/gpu")


def violation(
    reason: str, value: str | None, allowed: str | None, key: str = "", fix: str = ""
) -> Violation:
    """A violation of one reason."""
    return Violation("some.field", PLACE, value, allowed, reason, reason, SOURCE, key, fix)


def test_a_violation_names_field_place_value_allowed_policy_and_what_to_do() -> None:
    text = violation_text(violation("max", "8", "4"))
    assert text.startswith('some.field at spec.containers[0].resources.limits["nvidia.com/gpu"]: ')
    facts = ("8", "maximum 4", "(cluster policy gpu-limits)", "at most 4", "Ask us", "wiki/gpu")
    assert all(fact in text for fact in facts)


def test_a_policy_of_a_project_is_named_with_its_namespace() -> None:
    source = Source("p", "project", "team-a")
    text = violation_text(Violation("f", (), "1", "2", "min", "min", source))
    assert "(project policy team-a/p)" in text
    assert "(whole object)" in text


@pytest.mark.parametrize("reason", sorted(VIOLATIONS))
@pytest.mark.parametrize("value", [None, "VALUE"])
@pytest.mark.parametrize("allowed", [None, "ALLOWED"])
def test_every_reason_makes_a_sentence_from_whatever_is_known(
    reason: str, value: str | None, allowed: str | None
) -> None:
    text = violation_text(violation(reason, value, allowed, "KEY"))
    assert "\n" not in text
    assert "{" not in text
    assert len(text) < 320
    assert text.count("..") == 0


@pytest.mark.parametrize("reason", ["canEdit", "blocked", "canAdd", "locked", "options"])
def test_a_secret_field_names_its_key_only(reason: str) -> None:
    text = violation_text(violation(reason, None, None, "TOKEN"))
    assert "TOKEN" in text
    assert "not shown" not in text


def test_fixed_with_and_without_a_default_are_told_apart() -> None:
    assert "differs from the required value b" in violation_text(violation("canEdit", "a", "b"))
    text = violation_text(violation("canEdit", "a", None))
    assert "no value may be chosen" in text
    assert "required value" not in text


def test_what_is_required_and_missing_has_no_value_to_show() -> None:
    text = violation_text(violation("required", None, None))
    assert "a value is required" in text
    assert "not shown" not in text


def test_what_to_do_can_be_said_by_who_found_it() -> None:
    text = violation_text(violation("max", "8", "4", fix="Use two pods."))
    assert "Use two pods." in text
    assert "Ask for" not in text


def test_a_reason_without_a_row_still_tells_every_fact() -> None:
    text = violation_text(violation("very-new", "8", "4", "key"))
    assert "very new: key, found 8, allowed is 4" in text
    assert "very new (cluster" in violation_text(violation("very-new", None, None))


def test_whoever_cannot_tell_the_pods_of_an_object_is_quoted() -> None:
    found = Violation("", ("spec",), None, "no map is there", "path-failed", "path-failed", None)
    text = violation_text(found)
    assert text == f"spec: no map is there. {DEFINITION}"


def test_a_name_given_twice_is_first_of_all_for_the_user_to_mend() -> None:
    found = Violation("", (), None, "two parts are called w", "instance-ids", "instance-ids", None)
    assert "two parts are called w. Give each its own name" in violation_text(found)


def test_values_are_cut_at_eighty_characters_and_escaped() -> None:
    text = violation_text(violation("max", "\x1b[31m\n\u202e" + "x" * 500, "4"))
    assert text.isprintable()
    assert "\\x1b[31m\\n\\u202e" in text
    assert "x" * 80 not in text
    assert "…" in text


@given(st.text(), st.text(), st.text(), st.lists(st.text() | st.integers(0, 9)))
def test_nothing_that_anybody_writes_breaks_a_line(
    value: str, key: str, message: str, path: list[str | int]
) -> None:
    source = Source("p", "cluster", message=message)
    found = Violation("f", tuple(path), value, value, "max", "max", source, key)
    assert violation_text(found).isprintable()
    warned = Warning("trial", "f", tuple(path), (value,), source)
    assert warning_text(warned).isprintable()
    assert len(warning_text(warned, 120)) <= 120
    made = Change("f", tuple(path), {"k": value}, "default", source)
    assert change_text(made).isprintable()


def test_a_long_place_keeps_its_beginning_and_its_end() -> None:
    text = place(("spec", *(f"part{n}" for n in range(100)), "image"))
    assert len(text) <= LONGEST_PLACE
    assert text.startswith("spec.part0")
    assert text.endswith(".image")


def test_a_refusal_counts_in_plain_words() -> None:
    one = violation("max", "8", "4")
    assert refusal([one]).splitlines() == [
        "podgate refused this object: 1 rule is broken",
        f"- {violation_text(one)}",
    ]
    many = refusal([one] * 53).splitlines()
    assert many[0].endswith("53 rules are broken")
    assert many[-1] == "and 3 more"


@pytest.mark.parametrize("reason", [*sorted(WARNINGS), "not-listed-yet"])
@pytest.mark.parametrize("facts", [(), ("one", "two")])
def test_every_warning_makes_a_sentence(reason: str, facts: tuple[str, ...]) -> None:
    text = warning_text(Warning(reason, "some.field", PLACE, facts, SOURCE))
    assert text.startswith("some.field: ")
    assert "{" not in text
    assert "(cluster policy gpu-limits)" in text
    short = warning_text(Warning(reason, "some.field", PLACE, facts, SOURCE), 120)
    assert len(short) <= 120


def test_a_problem_is_told_as_compilers_do() -> None:
    found = Problem("a.yaml", "rules.image", "`imgae`", "write image", "unknown", 3, 5)
    assert problem_text(found) == "a.yaml:3:5: rules.image: found `imgae`; write image"
    warned = Problem("a.yaml", "", "x", "", "alias", severity="warning")
    assert problem_text(warned) == "a.yaml: warning: found x"


def test_a_change_shows_its_value_unless_it_is_secret() -> None:
    made = Change("f", PLACE, {"a": 1}, "default", SOURCE)
    assert '= {"a": 1}: set by default by cluster policy gpu-limits' in change_text(made)
    secret = Change("f", PLACE, "TOPSECRET", "default-item", None, secret=True)
    assert "TOPSECRET" not in change_text(secret)
