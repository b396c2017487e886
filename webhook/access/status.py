"""The status of a workload: its phase and conditions, every state that matches, and one of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from webhook.access.errors import reraise_as
from webhook.interface.document import (
    ConditionMatch,
    ConditionsPath,
    Matcher,
    Mode,
    StatusMappings,
    StatusPaths,
)
from webhook.jq.expressions import Evaluator, text_of

EVALUATED: Final = (
    "Resuming",
    "Suspending",
    "Suspended",
    "Running",
    "Failed",
    "Completed",
    "Initializing",
    "Degraded",
)
"""The states in the order in which they are listed when several match."""
RESOLVED: Final = (
    "Failed",
    "Completed",
    "Suspended",
    "Suspending",
    "Resuming",
    "Degraded",
    "Running",
    "Initializing",
)
UNDEFINED: Final = "Undefined"


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition. `status` is None if the object has none, other absent texts are ""."""

    type: str
    status: str | None = None
    reason: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class Status:
    """The status of an object. `phase` is None if the definition has no phase.

    `matching` are all states that match, or only Undefined.
    """

    phase: str | None = None
    conditions: tuple[Condition, ...] = ()
    matching: tuple[str, ...] = (UNDEFINED,)

    @property
    def state(self) -> str:
        """The first matching state."""
        return next((each for each in RESOLVED if each in self.matching), UNDEFINED)


def entries(mappings: StatusMappings) -> list[tuple[str, list[Matcher] | None]]:
    """Return every state with its matchers, None if the definition does not have it."""
    given = mappings.model_fields_set
    return [
        (name, getattr(mappings, name.lower()) if name.lower() in given else None)
        for name in EVALUATED
    ]


def read_status(
    paths: StatusPaths, document: Any, evaluator: Evaluator, mode: Mode = "admission"
) -> Status:
    """Return the status of an object. Raises AccessError."""
    phase = read_phase(paths, document, evaluator)
    conditions = read_conditions(paths.conditions_definition, document, evaluator, mode)
    with reraise_as("match-failed", "the states are unknown"):
        matching = tuple(
            state
            for state, matchers in entries(paths.status_mappings)
            if any(holds(each, phase, conditions, document, evaluator) for each in matchers or ())
        )
    return Status(phase, conditions, matching or (UNDEFINED,))


def read_phase(paths: StatusPaths, document: Any, evaluator: Evaluator) -> str | None:
    """Return the phase, "" if the object has none yet, None if the definition has none."""
    if paths.phase_definition is None:
        return None
    with reraise_as("phase-failed", "the phase cannot be read"):
        found = evaluator.values(paths.phase_definition.path, document)
    return "" if not found or found[0] is None else text_of(found[0])


def read_conditions(
    paths: ConditionsPath | None, document: Any, evaluator: Evaluator, mode: Mode
) -> tuple[Condition, ...]:
    """Return the conditions in the object's order."""
    if paths is None:
        return ()
    with reraise_as("conditions-failed", "the conditions cannot be read"):
        found = evaluator.values(paths.path, document, lenient=mode == "admission")
    # Upstream leaves defaults to the API server, so it reads nothing that a definition omits.
    named = paths.model_fields_set if mode == "parity" else type(paths).model_fields.keys()
    reason = paths.reason_field_name if "reason_field_name" in named else ""
    message = paths.message_field_name if "message_field_name" in named else ""
    return tuple(
        Condition(
            text_at(each, paths.type_field_name) or "",
            text_at(each, paths.status_field_name),
            text_at(each, reason) or "",
            text_at(each, message) or "",
        )
        for each in flatten(found)
        if isinstance(each, dict)
    )


def flatten(found: Sequence[Any]) -> Iterable[Any]:
    """Return the outputs, with lists flattened."""
    for each in found:
        yield from each if isinstance(each, list) else (each,)


def text_at(condition: dict[str, Any], name: str) -> str | None:
    """Return a text of a condition, None if it is no text, or there is no field to read."""
    value = condition.get(name) if name else None
    return value if isinstance(value, str) else None


def holds(
    matcher: Matcher,
    phase: str | None,
    conditions: Sequence[Condition],
    document: Any,
    evaluator: Evaluator,
) -> bool:
    """Whether all members of a matcher that are set match. An empty matcher always matches."""
    if matcher.by_phase is not None and matcher.by_phase != phase:
        return False
    by_type = {each.type: each for each in conditions}
    if not all(fits(wanted, by_type.get(wanted.type)) for wanted in matcher.by_conditions):
        return False
    if matcher.by_expression is None:
        return True
    # Not compared in jq, because a quote in the expected text could become code.
    found = evaluator.values(matcher.by_expression.expression, document)
    return bool(found) and text_of(found[0]) == matcher.by_expression.expected_result


def fits(wanted: ConditionMatch, found: Condition | None) -> bool:
    """Whether a condition is present with the required status and reason."""
    if found is None or (wanted.status and wanted.status != (found.status or "")):
        return False
    return not wanted.reason or wanted.reason == found.reason
