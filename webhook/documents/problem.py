"""Faults of documents, and the policies that rules and defaults come from."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Source:
    """Which policy said it: its name, scope and namespace, and what its author wants people told."""

    policy: str
    scope: str
    namespace: str = ""
    enforcement: str = "Enforce"
    message: str = ""
    docs_url: str = ""

    def label(self) -> str:
        """How the policy is named to people, such as "cluster policy gpu-limits"."""
        where = f"{self.namespace}/" if self.namespace else ""
        return f"{self.scope} policy {where}{self.policy}"


@dataclass(frozen=True, slots=True)
class Problem:
    """One fault of a document of ours: where it is, what was found, what to write instead."""

    origin: str
    path: str
    found: str
    fix: str
    reason: str
    line: int = 0
    column: int = 0
    severity: str = "error"

    def place(self) -> str:
        """`file:line:column`, as editors and compilers print it; just the origin without a line."""
        return f"{self.origin}:{self.line}:{self.column}" if self.line else self.origin
