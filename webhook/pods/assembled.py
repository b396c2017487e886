"""Locates pods that a workload states piece by piece."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from webhook.interface.fragment import Part
from webhook.interface.profile import MainConvention
from webhook.jq.pair import matches_within, paired
from webhook.jq.path import QueryError
from webhook.objects.path import Path
from webhook.pods.assemble import Found, PodParts, found_in, parts_of, step_of
from webhook.pods.component_plan import ComponentPlan
from webhook.pods.located import Taken, makes_container
from webhook.pods.location import LocationError, PodLocation, wrong_type


def locate_parts(
    plan: ComponentPlan, document: Any, found: list[PodLocation], taken: Taken | None = None
) -> None:
    """Append the pods of a component that are stated piece by piece."""
    try:
        named = (
            [(name, each.bindings) for name, each in paired(plan.ids, plan.ids, document)]
            if plan.ids is not None
            else [("", ())]
        )
        for instance, bindings in named:
            free = plan.parts if taken is None else not_taken(plan, document, bindings, taken)
            given = found_in(free, document, bindings)
            parts = parts_of(free, bindings, given)
            if parts is not None:
                found.append(assembled(plan, instance, parts, given))
    except QueryError as error:
        raise LocationError((), "path-failed", str(error)) from error


def not_taken(
    plan: ComponentPlan, document: Any, bindings: tuple[Path, ...], taken: Taken
) -> tuple[Part, ...]:
    """The pieces of a pod that no pod has yet; none when only such are left as make no container."""
    free = tuple(
        part
        for part in plan.parts
        if not any(
            each.path is not None and taken.holds(each.path)
            for each in matches_within(part.place, document, bindings)
        )
    )
    if len(free) == len(plan.parts) or any(makes_container(each) for each in free):
        return free
    return ()


def assembled(
    plan: ComponentPlan, instance: str, parts: PodParts, given: Sequence[Found]
) -> PodLocation:
    """The location of a pod in pieces; its paths begin with a step that knows them."""
    pod = parts.settle(given)
    for place, what, value in parts.refused:
        raise wrong_type(place, what, value)
    step = step_of(f"{plan.component}/{instance}", parts)
    profile = plan.profile
    return PodLocation(
        plan.component,
        instance,
        plan.roles or profile.roles(instance),
        parts.root,
        (step, "metadata"),
        (step, "spec"),
        pod["metadata"],
        pod["spec"],
        (),
        MainConvention(index=0),
        profile.children,
        parts,
    )
