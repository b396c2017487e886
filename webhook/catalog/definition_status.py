"""Reports which of several definitions of a kind decides, for its author and its status."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from webhook.catalog.definition_order import Document, full_name
from webhook.documents.problem import Problem
from webhook.interface.interface import Interface


@dataclass(frozen=True, slots=True)
class DefinitionStatus:
    """One document: the versions that it decides on, and why another one decides on the others.

    `because` is empty for a document that decides on all its versions.
    """

    document: Document
    decides: tuple[str, ...]
    because: str = ""

    def notes(self) -> Iterator[Problem]:
        """Yield the note to the author of a given document for which another one decides."""
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
    """Return whether the document is an interface, which has the paths of pods."""
    return isinstance(stated.value, Interface)


def reason_of(stated: Document, rival: Document | None) -> str:
    """Return why `rival` decides, not `stated`. None: the deciding definition has no such document."""
    if rival is None:
        return "the definition that decides goes without"
    name = f"{rival.sort} {rival.value.name or rival.document.origin}"
    if rival.shipped != stated.shipped:
        return SHIPPED if rival.shipped else f"the settings prefer {name}"
    if stated.creation_time != rival.creation_time:
        return f"{name} is older and decides"
    return f"{name} is the first by name and decides"
