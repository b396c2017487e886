"""Takes the decision on an object apart: what of it is about the object, what about wrapped ones."""

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


class Apart(NamedTuple):
    """An object at its place in the whole; the decision on all of it, and on it alone."""

    path: Path
    request: Request
    decision: Decision
    own: Decision


def taken_apart(
    request: Request, decision: Decision, catalog: Catalog, path: Path = ()
) -> list[Apart]:
    """The object and every object in it that is decided on, outermost first.

    What a decision says of an object has places from there.
    """
    found = [each for each in inside(request, catalog) if each.request is not None]
    taken = {each.path for each in found}
    own = part_of(decision, (), lambda at: not is_below(at, taken))
    parts = [Apart(path, request, decision, own)]
    for each in found:
        assert each.request is not None
        place = each.path
        rest = part_of(decision, place, lambda at, place=place: is_below(at, {place}))  # type: ignore[misc]
        parts += taken_apart(each.request, rest, catalog, (*path, *place))
    return parts


def inside(request: Request, catalog: Catalog) -> Sequence[Wrapped]:
    """The objects that one wraps; what cannot be read is told by the decision."""
    definition = catalog.definition(request.group, request.kind, request.version)
    if definition is None or not definition.embedded:
        return ()
    try:
        return wrapped_objects(request, definition, catalog)
    except LocationError:
        return ()


def is_below(path: Path, places: set[Path]) -> bool:
    """Whether a path is one of these places or leads through it."""
    return any(path[: len(place)] == place for place in places)


def part_of(decision: Decision, place: Path, below: Below) -> Decision:
    """The decision with what is told of some places only, which then begin at `place`."""
    cut = len(place)

    def moved(violation: Violation) -> Violation:
        return replace(violation, path=violation.path[cut:])

    def warned(warning: Warning) -> Warning:
        would_be = warning.would_be
        return warning._replace(
            path=warning.path[cut:], would_be=moved(would_be) if would_be is not None else None
        )

    warnings = tuple(warned(each) for each in decision.warnings if below(where(each)))
    audit = tuple(moved(each) for each in decision.audit if below(each.path))
    if isinstance(decision, Denied):
        violations = tuple(moved(each) for each in decision.violations if below(each.path))
        if violations:
            return Denied(violations, warnings, audit)
        return Allowed(None, warnings=warnings, audit=audit)
    return replace(decision, warnings=warnings, audit=audit)


def where(warning: Warning) -> Path:
    """The place of a warning, or of the violation that it would be."""
    return warning.would_be.path if warning.would_be is not None else warning.path
