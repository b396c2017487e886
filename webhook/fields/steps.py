"""Compiled fields by the phases of a review, computed defaults after what they follow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic

from webhook.fields.computed import ComputedField
from webhook.fields.handler import CompiledField, Subject
from webhook.policy.combine import RANK, Constraint
from webhook.policy.policy import DefaultFrom


@dataclass(frozen=True, slots=True)
class Steps(Generic[Subject]):
    """The fields of one component (or of the workload) by phase.

    `needed` are those of `fill` without whose defaults the object may be rejected, `locked` those
    whose default must be in the final object.
    """

    intent: tuple[CompiledField[Subject], ...] = ()
    fill: tuple[CompiledField[Subject], ...] = ()
    final: tuple[CompiledField[Subject], ...] = ()
    locked: tuple[CompiledField[Subject], ...] = ()
    needed: tuple[CompiledField[Subject], ...] = ()

    @property
    def empty(self) -> bool:
        """Whether nothing is checked or written here."""
        return not (self.intent or self.fill or self.final)


Fields = dict[str, CompiledField[Subject]]
Other = Callable[[str], CompiledField[Subject] | None]
"""Compiles a field that no policy names, where other defaults can be computed from it."""


def steps_of(fields: Fields[Subject], other: Other[Subject]) -> Steps[Subject]:
    """Order the fields: plain ones in table order, computed defaults after what they follow."""
    computed: Fields[Subject] = {}
    for path in list(fields):
        computed_field(path, fields, other, computed, ())
    ordered = [each for path, each in fields.items() if path not in computed]
    ordered += computed.values()
    fill = sorted((each for each in ordered if each.phases.fill), key=lambda each: each.order)
    return Steps(
        tuple(each for each in ordered if each.phases.intent),
        tuple(fill),
        tuple(each for each in ordered if each.phases.final),
        tuple(each for each in ordered if each.phases.locked),
        tuple(each for each in fill if each.phases.needed),
    )


def computed_field(
    path: str,
    fields: Fields[Subject],
    other: Other[Subject],
    computed: Fields[Subject],
    trail: tuple[str, ...],
) -> CompiledField[Subject] | None:
    """The field of a path, wrapped when its default is computed; a cycle is cut."""
    if path in computed:
        return computed[path]
    field = fields.get(path) or other(path)
    follows = None if field is None else winning_default_from(field)
    if field is None or follows is None or path in trail:
        return field
    source = computed_field(follows.argument.field, fields, other, computed, (*trail, path))
    if source is None:
        return field
    computed[path] = fields[path] = ComputedField(field, source, follows)
    return computed[path]


def winning_default_from(field: CompiledField[Subject]) -> Constraint | None:
    """The defaultFrom that beats the static default of its scope and of broader ones."""
    default = field.rules.default
    for each in field.rules.computed:
        assert isinstance(each.argument, DefaultFrom)
        if default is None or RANK[default.scope] <= RANK[each.policy.scope]:
            return each
    return None
