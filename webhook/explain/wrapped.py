"""Splits a decision into the part on the object itself and the parts on wrapped objects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from webhook.catalog.catalog import Catalog
from webhook.decision.wrapped import Wrapped, wrapped_objects
from webhook.evaluation.outcome import Allowed, Decision, Denied, Violation, Warning
from webhook.evaluation.request import Request
from webhook.objects.path import Path
from webhook.pods.location import LocationError

Below = Callable[[Path], bool]


class ObjectDecision(NamedTuple):
    """An object at its path in the whole, the decision on all of it, and on it alone."""

    path: Path
    request: Request
    decision: Decision
    own: Decision


def split_by_object(
    request: Request, decision: Decision, catalog: Catalog, path: Path = ()
) -> list[ObjectDecision]:
    """Return the object and every evaluated object in it, outermost first.

    Paths in each decision are relative to its object.
    """
    found = [each for each in find_wrapped(request, catalog) if each.request is not None]
    inner_paths = {each.path for each in found}
    own = filter_decision(decision, (), lambda at: not is_below(at, inner_paths))
    objects = [ObjectDecision(path, request, decision, own)]
    for each in found:
        assert each.request is not None
        inner = each.path
        rest = filter_decision(decision, inner, lambda at, inner=inner: is_below(at, {inner}))  # type: ignore[misc]
        objects += split_by_object(each.request, rest, catalog, (*path, *inner))
    return objects


def find_wrapped(request: Request, catalog: Catalog) -> Sequence[Wrapped]:
    """Return the objects that one wraps, none if they cannot be read, which the decision reports."""
    definition = catalog.definition(request.group, request.kind, request.version)
    if definition is None or not definition.embedded:
        return ()
    try:
        return wrapped_objects(request, definition, catalog)
    except LocationError:
        return ()


def is_below(path: Path, paths: set[Path]) -> bool:
    """Return whether a path is one of these paths or below one."""
    return any(path[: len(at)] == at for at in paths)


def filter_decision(decision: Decision, at: Path, below: Below) -> Decision:
    """Return the decision with only the findings that `below` selects, relative to `at`."""
    cut = len(at)

    def move_violation(violation: Violation) -> Violation:
        return replace(violation, path=violation.path[cut:])

    def move_warning(warning: Warning) -> Warning:
        would_be = warning.would_be
        return warning._replace(
            path=warning.path[cut:],
            would_be=move_violation(would_be) if would_be is not None else None,
        )

    warnings = tuple(move_warning(each) for each in decision.warnings if below(path_of(each)))
    audit = tuple(move_violation(each) for each in decision.audit if below(each.path))
    if isinstance(decision, Denied):
        violations = tuple(move_violation(each) for each in decision.violations if below(each.path))
        if violations:
            return Denied(violations, warnings, audit)
        return Allowed(None, warnings=warnings, audit=audit)
    return replace(decision, warnings=warnings, audit=audit)


def path_of(warning: Warning) -> Path:
    """Return the path of a warning, or of the violation that it would be."""
    return warning.would_be.path if warning.would_be is not None else warning.path
