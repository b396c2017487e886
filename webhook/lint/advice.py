"""Advice on policies that load: what is legal and yet hardly what its author wants."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain

from webhook.documents.problem import Problem
from webhook.lint.coverage import uncovered_kinds
from webhook.lint.fields import (
    required_without_effect,
    uncarried,
    unknown_kinds,
    unknown_priorities,
    without_value,
)
from webhook.lint.kinds import World
from webhook.lint.losses import losses
from webhook.lint.selectors import selectors
from webhook.policy.policy import Policy


def lint(world: World) -> tuple[Problem, ...]:
    """Every piece of advice, in order of place."""
    found = chain.from_iterable(check(world, policy) for policy in world.own for check in CHECKS)
    problems = [*found, *losses(world)]
    return tuple(sorted(problems, key=lambda each: (each.origin, each.line, each.column)))


Check = Callable[[World, Policy], Iterator[Problem]]
CHECKS: tuple[Check, ...] = (
    uncovered_kinds,
    unknown_kinds,
    uncarried,
    without_value,
    required_without_effect,
    unknown_priorities,
    selectors,
)
