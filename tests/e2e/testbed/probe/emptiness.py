"""Finds out which defaults also replace a value that is present and empty."""

import copy
from collections.abc import Callable, Iterator
from typing import Any

from tests.e2e.testbed.probe.client import RefusedError
from tests.e2e.testbed.probe.conditions import Explained
from tests.e2e.testbed.probe.kinds import Json
from tests.e2e.testbed.probe.observations import Answer, Path, parents

Send = Callable[[Answer, Json], Json]


def replaced(path: Path, rule: Explained, send: Send) -> bool:
    """Tell whether the default of `rule` at `path` replaces an empty value of its type.

    `send` sends an answer's object with another scope in the place of the one it had, and returns
    what became of that scope. A refusal counts as not replaced.
    """
    value = rule.seen[0].value
    empty: Any = type(value)()
    if value == empty:
        return False
    refused = 0
    for answer in _distinct(rule):
        sent = copy.deepcopy(answer.sent)
        acted = [one.parent for one in rule.seen if one.answer is answer]
        for original, changed in parents(answer.sent, sent, path[:-1]):
            if any(original is one for one in acted):
                changed[path[-1]] = copy.deepcopy(empty)
        try:
            got = send(answer, sent)
        except RefusedError:
            refused += 1
            if refused == 3:
                return False
            continue
        return all(_same(answer, sent, got, path, rule))
    return False


def _distinct(rule: Explained) -> list[Answer]:
    found: list[Answer] = []
    for one in rule.seen:
        if not any(one.answer is other for other in found):
            found.append(one.answer)
    return found


def _same(answer: Answer, sent: Json, got: Json, path: Path, rule: Explained) -> Iterator[bool]:
    wanted = {id(one.parent): one.value for one in rule.seen}
    originals = [original for original, _ in parents(answer.sent, sent, path[:-1])]
    answers = [changed for _, changed in parents(sent, got, path[:-1])]
    for original, changed in zip(originals, answers, strict=True):
        if id(original) in wanted:
            yield changed.get(path[-1]) == wanted[id(original)]
