"""Drafts the statusDefinition of a kind, from enumerations and printer columns."""

from __future__ import annotations

import re
from typing import Any

from webhook.interface.crd_schema import Schema, node_at, takes

PHASES = ("phase", "state", "jobDeploymentStatus", "jobState", "status")
TYPE_IN_COLUMN = re.compile(r"""\.status\.conditions\[\?\(@\.type\s*==\s*['"]([A-Za-z]+)['"]\)\]""")
WORDS = {
    "initializing": "pending initializing creating starting queued new submitted waiting preparing",
    "running": "running ready active available inprogress healthy started",
    "completed": "completed complete succeeded success finished done",
    "failed": "failed failure error errored aborted terminated",
    "degraded": "degraded unhealthy notready restarting",
    "suspending": "suspending",
    "suspended": "suspended paused stopped",
    "resuming": "resuming",
}
STATUS_OF = {word: status for status, words in WORDS.items() for word in words.split()}


def status(
    schema: Schema, columns: Any
) -> tuple[dict[str, Any], list[tuple[tuple[str, ...], str]]]:
    """Return the statusDefinition and comments by path. `columns` are the CRD's printer columns."""
    made: dict[str, Any] = {}
    notes: list[tuple[tuple[str, ...], str]] = []
    mappings: dict[str, list[dict[str, Any]]] = {}
    if phase := phase_of(schema):
        made["phaseDefinition"] = {"path": f".status.{phase}"}
        words = node_at(schema, ("status", phase)).get("enum")
        phases = [str(word) for word in words if word] if isinstance(words, list) else []
        sort_in(mappings, phases, lambda word: {"byPhase": word})
        notes.append((("phaseDefinition",), phase_note(phases)))
    if has_conditions(schema):
        made["conditionsDefinition"] = {
            "path": ".status.conditions",
            "typeFieldName": "type",
            "statusFieldName": "status",
            "messageFieldName": "message",
            "reasonFieldName": "reason",
        }
        types = types_in(columns)
        sort_in(mappings, types, lambda word: {"byConditions": [{"type": word, "status": "True"}]})
    made["statusMappings"] = mappings
    notes.append((("statusMappings",), mapping_note(made, mappings)))
    return made, notes


def phase_of(schema: Schema) -> str | None:
    """Return the path of the phase in the status."""
    return next(
        (name for name in PHASES if takes(node_at(schema, ("status", name)), "string")), None
    )


def has_conditions(schema: Schema) -> bool:
    """Whether the status has conditions of type and status."""
    items = node_at(schema, ("status", "conditions", "[]")).get("properties")
    return isinstance(items, dict) and {"type", "status"} <= set(items)


def types_in(columns: Any) -> list[str]:
    """Return the condition types in the printer columns."""
    paths = (
        [each.get("jsonPath") for each in columns if isinstance(each, dict)]
        if isinstance(columns, list)
        else []
    )
    found = [match[1] for path in paths for match in TYPE_IN_COLUMN.finditer(str(path))]
    return list(dict.fromkeys(found))


def sort_in(mappings: dict[str, list[dict[str, Any]]], words: list[str], matcher: Any) -> None:
    """Add a matcher for each known word."""
    for word in words:
        if meaning := STATUS_OF.get(word.casefold()):
            mappings.setdefault(meaning, []).append(matcher(word))


def phase_note(words: list[str]) -> str:
    """Return the comment on the phases."""
    if not words:
        return "the schema does not list the phases: add a byPhase matcher for each below"
    strange = [word for word in words if word.casefold() not in STATUS_OF]
    task = f"; fill in what these mean: {', '.join(strange)}" if strange else ""
    return f"a guess by the values that the schema lists{task}"


def mapping_note(made: dict[str, Any], mappings: dict[str, Any]) -> str:
    """Return the comment on the mappings."""
    if mappings:
        return "a guess by the names of phases and printed conditions; compare with the operator"
    if len(made) > 1:
        return "the schema names no phase and no condition: fill in which of them mean what"
    return "the status has neither a phase nor conditions: byExpression can read its counts"
