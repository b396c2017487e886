"""The errors of reading and writing components: what cannot be given or taken, and why."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from webhook.documents.read_model import shown
from webhook.jq.expressions import JqError


class AccessError(Exception):
    """What a component cannot give or take: a stable reason, a sentence, the facts in it."""

    def __init__(self, reason: str, text: str, **facts: Any) -> None:
        super().__init__(text)
        self.reason = reason
        self.facts = facts

    @property
    def reasons(self) -> tuple[str, ...]:
        """The reason of this error and of those that caused it, outermost first."""
        cause = self.__cause__
        if isinstance(cause, AccessError):
            return (self.reason, *cause.reasons)
        return (self.reason, cause.reason) if isinstance(cause, JqError) else (self.reason,)


class NotDefinedError(AccessError):
    """The definition does not say where that is; `part` names what is missing."""

    def __init__(self, component: str, part: str) -> None:
        text = f"component `{shown(component)}` has no definition of its {part}"
        super().__init__("not-defined", text, component=component, part=part)


@contextmanager
def told_as(reason: str, text: str, **facts: Any) -> Iterator[None]:
    """Tell what fails inside as one more error, the cause kept."""
    try:
        yield
    except (AccessError, JqError) as error:
        raise AccessError(reason, f"{text}: {error}", **facts) from error
