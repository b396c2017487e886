"""Combines the definitions of a kind: all add their pod locations, the first decides the rest."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from webhook.catalog.definition_order import KindName, Stated, V, full_name, kind_name
from webhook.catalog.definition_status import DefinitionStatus, reason_of
from webhook.documents.problem import Problem
from webhook.interface.interface import Interface
from webhook.interface.profile import Profile
from webhook.interface.profile_document import SPEC
from webhook.interface.profile_rules import check_profile
from webhook.objects.path import display
from webhook.pods.definition import Definition, union

UNDEFINED_KIND = "intermediate-kind"
UNDEFINED_KIND_FIX = (
    "give a ResourceInterface for it, with a WorkloadProfile where its pods have roles"
)


@dataclass(slots=True)
class Combined:
    """Definitions by kind, the status of every document, and problems."""

    definitions: dict[KindName, tuple[Definition, ...]] = field(default_factory=dict)
    statuses: list[DefinitionStatus] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


def combine(
    interfaces: Sequence[Stated[Interface]],
    profiles: Sequence[Stated[Profile]],
    prefer_given: Iterable[str] = (),
    unusable: Collection[KindName] = (),
) -> Combined:
    """Combine all definitions with their profiles. `prefer_given` contains kinds as KIND.GROUP.

    For kinds in `unusable` an interface was left out because of its faults.
    """
    preferred = {kind_name(each) for each in prefer_given}
    result = Combined()
    beside = by_kind(profiles, preferred)
    for key, several in by_kind(interfaces, preferred).items():
        documents = tuple(several), tuple(beside.pop(key, ()))
        shipped = all(each.shipped for sort in documents for each in sort)
        one = combine_shipped(*documents) if shipped else OneKind(*documents)
        result.definitions[key] = one.by_version
        result.statuses += one.statuses
        result.problems += one.problems
    for key, lost in beside.items():
        result.problems += [without_interface(each, key in unusable) for each in lost]
    given = {each.key for each in interfaces if not each.shipped}
    given |= {each.key for each in profiles if not each.shipped}
    result.problems += map(unknown_kind, sorted(preferred - given))
    result.problems += [note for each in result.statuses for note in each.notes()]
    return result


def by_kind(
    documents: Iterable[Stated[V]], preferred: Collection[KindName]
) -> dict[KindName, list[Stated[V]]]:
    """Return the documents by kind, in the order in which they decide."""
    found: dict[KindName, list[Stated[V]]] = {}
    for each in documents:
        found.setdefault(each.key, []).append(each)
    for several in found.values():
        if len(several) > 1:
            several.sort(key=lambda each: each.rank(preferred))
    return found


class OneKind:
    """The documents of one kind, in the order in which they decide."""

    def __init__(
        self, interfaces: Sequence[Stated[Interface]], profiles: Sequence[Stated[Profile]]
    ) -> None:
        self.interfaces = interfaces
        self.profiles = profiles
        self.faults = {
            (profile, interface): check_profile(profile.value, interface.value, profile.document)
            for profile in profiles
            for interface in interfaces
        }
        self.partners = [self.partner(each) for each in interfaces]
        self.definitions = [
            Definition(each.value, partner.value if partner is not None else None)
            for each, partner in zip(interfaces, self.partners, strict=True)
        ]
        self.deciding: dict[str, int] = {}
        for index, each in enumerate(self.definitions):
            for version in each.versions:
                self.deciding.setdefault(version, index)
        self.by_version = tuple(self.unite_by_version())
        self.problems = tuple(self.find_problems())
        self.statuses = (
            *(self.status_of_interface(index, each) for index, each in enumerate(interfaces)),
            *map(self.status_of_profile, profiles),
        )

    def fits(self, profile: Stated[Profile], interface: Stated[Interface]) -> bool:
        """Return whether a profile fits an interface's version and components."""
        return not any(each.severity == "error" for each in self.faults[profile, interface])

    def partner(self, interface: Stated[Interface]) -> Stated[Profile] | None:
        """Return the profile of an interface, None if there is none.

        The deciding interface takes the first profile that fits. Any other takes only profiles of
        its own origin, and prefers its own name, because roles of one say nothing about components
        of another.
        """
        fitting = [each for each in self.profiles if self.fits(each, interface)]
        if interface is not self.interfaces[0]:
            fitting = [each for each in fitting if each.shipped == interface.shipped]
            fitting.sort(key=lambda each: each.value.name != interface.value.name)
        return fitting[0] if fitting else None

    def find_problems(self) -> Iterator[Problem]:
        """Yield the problems between the profiles and the interfaces of this kind."""
        for profile in self.profiles:
            yield from self.faults[profile, self.counterpart(profile)]
        yield from self.without_profile()

    def unite_by_version(self) -> Iterator[Definition]:
        """Yield one definition for each set of versions that the same definitions cover."""
        groups: dict[tuple[int, ...], list[str]] = {}
        for version in self.deciding:
            covering = [
                index for index, each in enumerate(self.definitions) if version in each.versions
            ]
            groups.setdefault(tuple(covering), []).append(version)
        for covering_all, versions in groups.items():
            yield union([self.definitions[index] for index in covering_all], tuple(versions))

    def counterpart(self, profile: Stated[Profile]) -> Stated[Interface]:
        """Return the interface of a profile, or the one that it should belong to."""
        pairs = zip(self.interfaces, self.partners, strict=True)
        own = [each for each, partner in pairs if partner is profile]
        fitting = [each for each in self.interfaces if self.fits(profile, each)]
        like = [each for each in self.interfaces if each.shipped == profile.shipped]
        return (*own, *fitting, *like, *self.interfaces)[0]

    def without_profile(self) -> Iterator[Problem]:
        """Warn if the deciding interface has components that no profile of the kind knows."""
        first = self.interfaces[0]
        if self.profiles and self.partners[0] is None and not first.shipped:
            line, column = first.document.position(())
            full = full_name(first.key)
            found = f"a definition of {full} that decides, and that no profile of the kind fits"
            fix = "give it a WorkloadProfile; without one every component is a worker"
            yield Problem(
                first.document.origin,
                "",
                found,
                fix,
                "profile-not-fitting",
                line,
                column,
                severity="warning",
            )

    def status_of_interface(self, own: int, interface: Stated[Interface]) -> DefinitionStatus:
        """Return the versions that an interface decides on."""
        versions = self.definitions[own].versions
        lost = [each for each in versions if self.deciding[each] != own]
        decides = tuple(each for each in versions if self.deciding[each] == own)
        rival = self.interfaces[self.deciding[lost[0]]] if lost else None
        return DefinitionStatus(interface, decides, reason_of(interface, rival) if lost else "")

    def status_of_profile(self, profile: Stated[Profile]) -> DefinitionStatus:
        """Return the versions that a profile decides on: those of its interface."""
        versions = [each for each in profile.value.versions if each in self.deciding]
        by = {each: self.partners[self.deciding[each]] for each in versions}
        lost = [each for each in versions if by[each] is not profile]
        decides = tuple(each for each in versions if by[each] is profile)
        return DefinitionStatus(profile, decides, reason_of(profile, by[lost[0]]) if lost else "")


@lru_cache(maxsize=512)
def combine_shipped(
    interfaces: tuple[Stated[Interface], ...], profiles: tuple[Stated[Profile], ...]
) -> OneKind:
    """The shipped documents of one kind; every catalog of a process has the same ones."""
    return OneKind(interfaces, profiles)


def without_interface(profile: Stated[Profile], faulty: bool) -> Problem:
    """Return the problem of a profile without an interface, or with only a faulty one."""
    found, fix = "without a resource interface", "add the kind's ResourceInterface"
    if faulty:
        found, fix = "whose resource interface cannot be used", "correct that one first"
    line, column = profile.document.position(("spec", "kind"))
    return Problem(
        profile.document.origin,
        "spec.kind",
        f"a profile of {profile.value.kind} {found}",
        fix,
        "profile-without-interface",
        line,
        column,
    )


def unknown_kind(key: KindName) -> Problem:
    """Return the problem of a kind in the settings without a given definition."""
    found = f"`{full_name(key)}`, and no definition of it is given"
    fix = "write KIND.GROUP of a definition in --interfaces, or leave it out"
    return Problem("settings", "prefer-given", found, fix, "unknown-kind", severity="warning")


def with_undefined_kinds(
    profiles: Iterable[Stated[Profile]], defined: Collection[KindName]
) -> tuple[list[Stated[Profile]], list[Problem]]:
    """Mark profiles with undefined intermediate kinds, so that children are merged, and warn of each.

    No rule applies to an object of an undefined kind that a tenant edits, and its controller copies
    the pods from it. So these pods are evaluated, whatever the profile has for its components.
    """
    found, problems = [], []
    for stated in profiles:
        marked = mark_undefined_kinds(stated.value, defined)
        found.append(stated if marked is stated.value else replace(stated, value=marked))
        several = (marked, *marked.others.values())
        missing = {kind for each in several for kind in each.undefined_kinds}
        problems += [warn_of_undefined_kind(stated, kind) for kind in sorted(missing)]
    return found, problems


def mark_undefined_kinds(profile: Profile, defined: Collection[KindName]) -> Profile:
    """Return the profile with its intermediate kinds without a definition, by version."""
    others = {
        version: mark_undefined_kinds(each, defined) for version, each in profile.others.items()
    }
    missing = frozenset(each for each in profile.intermediate_kinds if each not in defined)
    if not missing and all(others[version] is each for version, each in profile.others.items()):
        return profile
    return replace(profile, undefined_kinds=missing, others=others)


def warn_of_undefined_kind(stated: Stated[Profile], kind: KindName) -> Problem:
    """Return the warning about one kind."""
    path = (*SPEC, "intermediateKinds")
    line, column = stated.document.position(path)
    name = ".".join(filter(None, reversed(kind)))
    found = f"{name} has no definition, so its pods are evaluated as if children were merged"
    origin = stated.document.origin
    return Problem(
        origin,
        display(path),
        found,
        UNDEFINED_KIND_FIX,
        UNDEFINED_KIND,
        line,
        column,
        severity="warning",
    )
