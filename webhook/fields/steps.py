"""Bindings by what they have to do, computed defaults after what they follow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from webhook.fields.annotation_items import AnnotationItemsField
from webhook.fields.computed import ComputedField
from webhook.fields.gpu.count import GpuField
from webhook.fields.items.field import ItemsField
from webhook.fields.priority import PriorityField
from webhook.policy.combine import RANK, Constraint
from webhook.policy.policy import DefaultFrom


@dataclass(frozen=True, slots=True)
class Steps:
    """The bindings of one component (or of the workload) by what they have to do.

    `needed` are those of `fill` without whose defaults the object may be refused, `fixed` those
    whose default must be there in the final object.
    """

    intent: tuple[Any, ...] = ()
    fill: tuple[Any, ...] = ()
    final: tuple[Any, ...] = ()
    fixed: tuple[Any, ...] = ()
    needed: tuple[Any, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether nothing is judged or written here."""
        return not (self.intent or self.fill or self.final)


def steps_of(bindings: dict[str, Any], other: Callable[[str], Any]) -> Steps:
    """Order the bindings: plain ones in table order, computed defaults after what they follow."""
    computed: dict[str, Any] = {}
    for path in list(bindings):
        computed_binding(path, bindings, other, computed, ())
    ordered = [each for path, each in bindings.items() if path not in computed]
    ordered += computed.values()
    fill = tuple(sorted((each for each in ordered if fills(each)), key=fills_late))
    return Steps(
        tuple(each for each in ordered if judges_intent(each)),
        fill,
        tuple(each for each in ordered if judges_final(each)),
        tuple(each for each in ordered if is_fixed(each)),
        tuple(each for each in fill if is_needed(each)),
    )


def computed_binding(
    path: str,
    bindings: dict[str, Any],
    other: Callable[[str], Any],
    computed: dict[str, Any],
    trail: tuple[str, ...],
) -> Any:
    """The binding of a path, wrapped when its default is computed; a cycle is cut."""
    if path in computed:
        return computed[path]
    binding = bindings.get(path) or other(path)
    constraint = following(binding)
    if constraint is None or path in trail:
        return binding
    source = computed_binding(constraint.argument.field, bindings, other, computed, (*trail, path))
    if source is None:
        return binding
    computed[path] = bindings[path] = ComputedField(binding, source, constraint)
    return computed[path]


def following(binding: Any) -> Constraint | None:
    """The defaultFrom that beats the static default of its scope and of broader ones."""
    rules = getattr(binding, "rules", None)
    if rules is None or isinstance(binding, ComputedField):
        return None
    for each in rules.computed:
        assert isinstance(each.argument, DefaultFrom)
        default = rules.default
        if default is None or RANK[default.scope] <= RANK[each.policy.scope]:
            return each  # type: ignore[no-any-return]
    return None


def judges_intent(binding: Any) -> bool:
    """Whether the binding has anything to judge before defaults."""
    if isinstance(binding, ItemsField | AnnotationItemsField):
        return binding.judges_intent
    return bool(binding.rules.prohibitions)


def fills_late(binding: Any) -> bool:
    """Containers that defaults bring along come first, so that they get the other defaults too."""
    return not getattr(binding, "adds_containers", False)


def fills(binding: Any) -> bool:
    """Whether the binding has a default to write."""
    if isinstance(binding, ItemsField | AnnotationItemsField):
        return binding.fills
    return isinstance(binding, ComputedField) or binding.rules.default is not None


def is_fixed(binding: Any) -> bool:
    """Whether the binding writes a default that nobody may change."""
    if isinstance(binding, ItemsField):
        return binding.is_fixed or binding.fixes_attributes
    if isinstance(binding, AnnotationItemsField):
        return binding.is_fixed
    return fills(binding) and any(each.rule == "canEdit" for each in binding.rules.prohibitions)


def is_needed(binding: Any) -> bool:
    """Whether an object without the binding's defaults may be refused.

    Items decide for themselves which of them are needed.
    """
    if isinstance(binding, ItemsField | AnnotationItemsField):
        return True
    return is_fixed(binding) or bool(binding.rules.required)


def judges_final(binding: Any) -> bool:
    """Whether the binding has anything to judge on the result."""
    if isinstance(binding, ItemsField | AnnotationItemsField):
        return binding.judges_final
    if isinstance(binding, PriorityField | GpuField):
        return True
    return bool(binding.rules.final or binding.rules.required)
