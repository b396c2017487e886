"""Compiles the paths that a document of ours states, telling of each that is not native jq."""

from __future__ import annotations

from webhook.core.pointer import Path
from webhook.core.workload.query import Program, Unsupported, compile_query
from webhook.core.workload.typed import Report, shown

NATIVE_FORMS = (
    'native are fields, indices, [], pipes, to_entries[] | .key or .value, select(.k == "v"), '
    "// literal and + - * of them; other jq comes with a later version"
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
    found = program(text, at, report)
    if found is not None and not found.assignable:
        told = f"`{shown(found.text)}` computes a value"
        report.add(at, told, "name a place in the object", "not-a-place")
        return None
    return found
