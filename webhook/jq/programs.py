"""Compiles the paths that documents state; only those of an interface may need jq itself."""

from __future__ import annotations

from webhook.documents.read_model import Report, shown
from webhook.jq.expressions import Compile, Evaluator, JqError, NotAPlaceError
from webhook.jq.external import ForeignProgram
from webhook.jq.path import Program, Unsupported, compile_query
from webhook.objects.path import Path

NATIVE_FORMS = (
    'native are fields, indices, [], pipes, to_entries[] | .key or .value, select(.k == "v"), '
    "// literal and + - * of them; other jq works in resource interfaces only"
)


def program(text: str | None, at: Path, report: Report, severity: str = "error") -> Program | None:
    """The text, which stands at `at`, as a program; absent and empty texts are skipped."""
    if not text:
        return None
    result = compile_query(text)
    if isinstance(result, Program):
        return result
    tell_unsupported(result, at, report, severity)
    return None


def of_interface(text: str | None, *, assignable: bool = False) -> Program | None:
    """A path of a resource interface as a program; what is not native is left to jq."""
    if not text:
        return None
    result = compile_query(text)
    return result if isinstance(result, Program) else ForeignProgram(text, assignable=assignable)


def place_of_interface(
    text: str | None, at: Path, report: Report, compile_jq: Compile | None
) -> Program | None:
    """The same for a path that must name places; of other jq only `compile_jq` can tell."""
    found = of_interface(text, assignable=True)
    if isinstance(found, ForeignProgram) and compile_jq is not None:
        try:
            Evaluator(compile_jq).places(found.text, None)
        except NotAPlaceError:
            tell_computed(found.text, at, report)
            return None
        except JqError:
            pass  # what fails without an object may work with one
    return assignable(found, at, report)


def by_number(program: Program | None, *, assignable: bool = False) -> Program | None:
    """The program as jq evaluates it, if it goes through a collection.

    Where one path of a component needs jq, results and ids are paired by their number.
    """
    if program is None or not program.iterators or isinstance(program, ForeignProgram):
        return program
    return ForeignProgram(program.text, assignable=assignable)


def tell_unsupported(fault: Unsupported, at: Path, report: Report, severity: str) -> None:
    """Say which expression is not native, from which position on, why, and what would be."""
    seen = f"`{shown(fault.text)}` is not native: at position {fault.position}, {fault.reason}"
    if fault.found and fault.found not in fault.reason:
        seen += f" (found `{shown(fault.found)}`)"
    fix = NATIVE_FORMS
    if fault.text[:1].isalpha() and fault.text.split(".", 1)[0].isidentifier():
        fix = f"begin a path with a dot, `.{shown(fault.text)}`; {fix}"
    report.add(at, seen, fix, "not-native", severity)


def place(text: str | None, at: Path, report: Report) -> Program | None:
    """The same for a path that must name places of the object rather than compute values."""
    return assignable(program(text, at, report), at, report)


def assignable(found: Program | None, at: Path, report: Report) -> Program | None:
    """The program, none and told where it computes a value."""
    if found is not None and not found.assignable:
        tell_computed(found.text, at, report)
        return None
    return found


def tell_computed(text: str, at: Path, report: Report) -> None:
    """Say that a path computes a value where pods must be."""
    told = f"`{shown(text)}` computes a value"
    report.add(at, told, "name a path in the object", "not-a-place")
