"""What became of each definition where several are of one kind, for its author and its status."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from webhook.catalog.definition_order import Document, full_name
from webhook.documents.problem import Problem
from webhook.interface.interface import Interface


@dataclass(frozen=True, slots=True)
class Standing:
    """One document: the versions that it decides on, and why another one decides on the rest.

    `because` is empty for a document that decides wherever it could.
    """

    document: Document
    decides: tuple[str, ...]
    because: str = ""

    def notes(self) -> Iterator[Problem]:
        """What the author of a given document is told when another one decides."""
        stated = self.document
        if stated.shipped or not self.because:
            return
        line, column = stated.document.position(())
        full = full_name(stated.key)
        kept = "its paths to pods count" if is_interface(stated) else "its roles apply at its paths"
        found = f"a further {stated.sort} of {full}: {self.because}; {kept} all the same"
        fix = f"write --prefer-given {full} to let given ones decide" if SHIPPED in found else ""
        yield Problem(
            stated.document.origin, "", found, fix, "not-deciding", line, column, severity="note"
        )


SHIPPED = "the shipped one decides"


def is_interface(stated: Document) -> bool:
    """Whether it says where pods are."""
    return isinstance(stated.value, Interface)


def reason_of(stated: Document, rival: Document | None) -> str:
    """Why `rival` decides and not `stated`; None: what decides has nothing of the kind."""
    if rival is None:
        return "the definition that decides goes without"
    name = f"{rival.sort} {rival.value.name or rival.document.origin}"
    if rival.shipped != stated.shipped:
        return SHIPPED if rival.shipped else f"the settings prefer {name}"
    if stated.created != rival.created:
        return f"{name} is older and decides"
    return f"{name} is the first by name and decides"
