"""A resource interface with its profile, ready to locate the pods of objects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from webhook.interface.interface import Interface
from webhook.interface.profile import Profile, without_profile
from webhook.jq.external import ForeignProgram, Results
from webhook.pods.assemblers.registry import ASSEMBLERS
from webhook.pods.component_plan import ComponentPlan, fragment_specs

if TYPE_CHECKING:
    from webhook.pods.schema_proof import Proof


class Definition:
    """A resource interface with its profile, ready to locate; `others` add their locations.

    `versions` are the API versions that it is for, all of the profile's unless stated.
    Without a profile every component is a worker and the whole object is walked for coverage.
    `proofs` are what is known by the CRD's schema, by version.
    """

    __slots__ = (
        "embedded",
        "foreign",
        "interface",
        "members",
        "others",
        "plans",
        "pods_elsewhere",
        "profile",
        "profiled",
        "proofs",
        "versions",
    )

    def __init__(
        self,
        interface: Interface,
        profile: Profile | None = None,
        others: tuple[Definition, ...] = (),
        versions: tuple[str, ...] = (),
    ) -> None:
        self.interface = interface
        self.profiled = profile is not None
        self.profile = (profile or without_profile(interface)).of_version(interface.version)
        self.others = others
        self.embedded = tuple(
            embedded for each in self.everyone for embedded in each.profile.embedded
        )
        self.proofs: dict[str, Proof] = {}
        # Found when first asked for (members_read.py), since proofs come later.
        self.members: frozenset[tuple[str, str]] | None = None
        self.foreign: tuple[ForeignProgram, ...] = tuple(
            program
            for each in (interface, *(other.interface for other in others))
            for component in each.components
            for program in component.foreign
        )
        # Of several definitions that differ in their versions, each set has its own union.
        self.versions = versions or self.profile.versions
        self.plans = tuple(
            ComponentPlan(
                component,
                self.profile.component(component.name),
                tuple(
                    each
                    for each in self.profile.extra_containers
                    if each.component == component.name
                ),
                fragment_specs(component, self.profile),
                ASSEMBLERS[self.profile.assembler],
            )
            for component in interface.components
            if component.form
        )
        self.pods_elsewhere = any(each.has_pods_elsewhere for each in self.everyone)

    def __repr__(self) -> str:
        return f"Definition({self.interface.kind}.{self.interface.group or 'core'})"

    def with_results(self, results: Results) -> Definition:
        """Return the definition for one object, with the results of its paths that need jq."""
        if not self.foreign:
            return self
        components = tuple(each.with_results(results) for each in self.interface.components)
        made = Definition(
            replace(self.interface, components=components),
            self.profile if self.profiled else None,
            tuple(each.with_results(results) for each in self.others),
            self.versions,
        )
        made.proofs, made.members = self.proofs, self.members
        return made

    def with_proof(self, version: str, proof: Proof) -> Definition:
        """Return the definition with what a schema proves; catalogs share the one without."""
        made = copy(self)
        made.proofs = {**self.proofs, version: proof}
        made.members = None
        return made

    def proof(self, document: Any) -> Proof | None:
        """What the schema of a document's version proves; None where no CRD is known."""
        if not self.proofs or not isinstance(document, dict):
            return None
        return self.proofs.get(str(document.get("apiVersion")).rpartition("/")[2])

    @property
    def has_pods_elsewhere(self) -> bool:
        """Whether this definition alone knows of pods that an object may not state, or not whole."""
        profile = self.profile
        return bool(
            profile.references
            or profile.pod_texts
            or profile.undefined_kinds
            or any(each.children == "merged" for each in profile.components.values())
            or any(each.merged_with for each in profile.components.values())
        )

    @property
    def only_wraps(self) -> bool:
        """Whether objects of this kind have no pods of their own, only those of wrapped objects."""
        return bool(self.embedded) and not any(each.plans for each in self.everyone)

    @property
    def everyone(self) -> Iterator[Definition]:
        """This definition and those whose locations are added."""
        yield self
        yield from self.others


def union(definitions: Sequence[Definition], versions: tuple[str, ...] = ()) -> Definition:
    """Several definitions of one kind as one: the first decides, the others add locations."""
    first, *rest = definitions
    if not rest and versions in ((), first.versions):
        return first
    return Definition(
        first.interface,
        first.profile if first.profiled else None,
        (*first.others, *rest),
        versions,
    )
