"""Compiles the paths in documents. Only those of a resource interface can need jq itself."""

from __future__ import annotations

from webhook.documents.model import fault
from webhook.documents.read_model import Report, show_value
from webhook.jq.expressions import Compile, Evaluator, JqError, NotAPlaceError
from webhook.jq.external import ForeignProgram
from webhook.jq.path import Program, compile_query
from webhook.objects.path import Path

NATIVE_FORMS = (
    'native are fields, indices, [], pipes, to_entries[] | .key or .value, select(.k == "v"), '
    "// literal and + - * of them; other jq works in resource interfaces only"
)


def compile_path(text: str) -> Program:
    """Compile a path of a profile, which can compute a value. Raises an error of the document."""
    result = compile_query(text)
    if isinstance(result, Program):
        return result
    found = f"`{show_value(text)}` is not native: at position {result.position}, {result.reason}"
    if result.found and result.found not in result.reason:
        found += f" (found `{show_value(result.found)}`)"
    fix = NATIVE_FORMS
    if text[:1].isalpha() and text.split(".", 1)[0].isidentifier():
        fix = f"begin a path with a dot, `.{show_value(text)}`; {fix}"
    raise fault("not-native", found, fix)


def compile_place(text: str) -> Program:
    """Compile a path of a profile that must not compute a value."""
    found = compile_path(text)
    if not found.assignable:
        raise fault("not-a-place", *computed(text))
    return found


def of_interface(text: str | None, *, assignable: bool = False) -> Program | None:
    """Compile a path of a resource interface. Texts that are not native are left to jq."""
    if not text:
        return None
    result = compile_query(text)
    return result if isinstance(result, Program) else ForeignProgram(text, assignable=assignable)


def place_of_interface(
    text: str | None, at: Path, report: Report, compile_jq: Compile | None
) -> Program | None:
    """Compile a path that must not compute a value. For other jq, `compile_jq` checks this."""
    found = of_interface(text, assignable=True)
    if isinstance(found, ForeignProgram) and compile_jq is not None:
        try:
            Evaluator(compile_jq).places(found.text, None)
        except NotAPlaceError:
            report_computed(found.text, at, report)
            return None
        except JqError:
            pass  # what fails without an object may work with one
    return assignable(found, at, report)


def by_number(program: Program | None, *, assignable: bool = False) -> Program | None:
    """Return the program for evaluation by jq, if it iterates over a collection.

    If one path of a component needs jq, results and ids are paired by number.
    """
    if program is None or not program.iterators or isinstance(program, ForeignProgram):
        return program
    return ForeignProgram(program.text, assignable=assignable)


def assignable(found: Program | None, at: Path, report: Report) -> Program | None:
    """Return the program. One that computes a value is reported, and returns None."""
    if found is not None and not found.assignable:
        report_computed(found.text, at, report)
        return None
    return found


def report_computed(text: str, at: Path, report: Report) -> None:
    """Report that a path of pods computes a value."""
    report.add(at, *computed(text), "not-a-place")


def computed(text: str) -> tuple[str, str]:
    """Return the problem of a path that computes a value, and what to write."""
    return f"`{show_value(text)}` computes a value", "name a path in the object"
