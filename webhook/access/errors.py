"""The errors of reading and writing components."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from webhook.documents.read_model import show_value
from webhook.jq.expressions import JqError


class AccessError(Exception):
    """A value that cannot be read or written: a stable reason, a sentence, and its facts."""

    def __init__(self, reason: str, text: str, **facts: Any) -> None:
        super().__init__(text)
        self.reason = reason
        self.facts = facts

    @property
    def reasons(self) -> tuple[str, ...]:
        """Return the reasons of this error and its causes, outermost first."""
        cause = self.__cause__
        if isinstance(cause, AccessError):
            return (self.reason, *cause.reasons)
        return (self.reason, cause.reason) if isinstance(cause, JqError) else (self.reason,)


class NotDefinedError(AccessError):
    """The definition does not have the path. `missing` names what is missing."""

    def __init__(self, component: str, missing: str) -> None:
        text = f"component `{show_value(component)}` has no definition of its {missing}"
        super().__init__("not-defined", text, component=component, part=missing)


@contextmanager
def reraise_as(reason: str, text: str, **facts: Any) -> Iterator[None]:
    """Raise an AccessError inside the block again as another one, with the first as its cause."""
    try:
        yield
    except (AccessError, JqError) as error:
        raise AccessError(reason, f"{text}: {error}", **facts) from error
