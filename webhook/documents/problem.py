"""Problems of documents, their checks, and the policies that rules and defaults come from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

Subject_contra = TypeVar("Subject_contra", contravariant=True)


@dataclass(frozen=True, slots=True)
class Source:
    """The policy of a rule or default: name, scope, namespace, and its author's message and link."""

    policy: str
    scope: str
    namespace: str = ""
    enforcement: str = "Enforce"
    message: str = ""
    docs_url: str = ""

    def label(self) -> str:
        """Return the policy's name for messages, such as "cluster policy gpu-limits"."""
        where = f"{self.namespace}/" if self.namespace else ""
        return f"{self.scope} policy {where}{self.policy}"


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem of a document: where it is, what was found, what to write instead."""

    origin: str
    path: str
    found: str
    fix: str
    reason: str
    line: int = 0
    column: int = 0
    severity: str = "error"

    def place(self) -> str:
        """Return `file:line:column` like compilers, or only the origin if there is no line."""
        return f"{self.origin}:{self.line}:{self.column}" if self.line else self.origin


class Check(Protocol[Subject_contra]):
    """One check of valid documents. Checks are stateless and listed in the table of their package.

    `ids` are its reasons, each with its meaning: scripts rely on the reason, and docs/reasons.md has
    both. `severity` is the default severity of its problems.
    """

    @property
    def ids(self) -> Mapping[str, str]: ...

    @property
    def severity(self) -> str: ...

    def run(self, subject: Subject_contra) -> Iterable[Problem]:
        """Return the problems of the subject. Raises nothing and changes nothing."""
