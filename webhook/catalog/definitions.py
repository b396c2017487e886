"""Several definitions of one kind as one: all add their pod locations, the first decides the rest."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from webhook.catalog.definition_order import KindName, Stated, V, full_name, kind_name
from webhook.catalog.definition_status import Standing, reason_of
from webhook.documents.problem import Problem
from webhook.interface.interface import Interface
from webhook.interface.profile import Profile
from webhook.interface.profile_rules import check_profile
from webhook.pods.definition import Definition, union


@dataclass(slots=True)
class Combined:
    """Definitions by kind, the standing of every document, and what people are told."""

    definitions: dict[KindName, tuple[Definition, ...]] = field(default_factory=dict)
    standings: list[Standing] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


def combine(
    interfaces: Sequence[Stated[Interface]],
    profiles: Sequence[Stated[Profile]],
    prefer_given: Iterable[str] = (),
    unusable: Collection[KindName] = (),
) -> Combined:
    """All definitions, joined with their profiles; `prefer_given` names kinds as KIND.GROUP.

    Of the kinds in `unusable` there is an interface that has been left out for its faults.
    """
    preferred = {kind_name(each) for each in prefer_given}
    result = Combined()
    beside = by_kind(profiles, preferred)
    for key, several in by_kind(interfaces, preferred).items():
        OneKind(several, beside.pop(key, [])).add_to(result)
    for key, lost in beside.items():
        result.problems += [without_interface(each, key in unusable) for each in lost]
    given = {each.key for each in interfaces if not each.shipped}
    given |= {each.key for each in profiles if not each.shipped}
    result.problems += map(unknown_kind, sorted(preferred - given))
    result.problems += [note for each in result.standings for note in each.notes()]
    return result


def by_kind(
    documents: Iterable[Stated[V]], preferred: Collection[KindName]
) -> dict[KindName, list[Stated[V]]]:
    """Documents of each kind, the first that decides first."""
    found: dict[KindName, list[Stated[V]]] = {}
    for each in documents:
        found.setdefault(each.key, []).append(each)
    for several in found.values():
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

    def fits(self, profile: Stated[Profile], interface: Stated[Interface]) -> bool:
        """Whether a profile speaks of an interface's version and components alone."""
        return not any(each.severity == "error" for each in self.faults[profile, interface])

    def partner(self, interface: Stated[Interface]) -> Stated[Profile] | None:
        """The profile that goes with an interface, None when there is none.

        The interface that decides takes the first that fits it. Any other keeps to profiles of its
        own origin, and to one of its own name: one's roles say nothing of another's components.
        """
        fitting = [each for each in self.profiles if self.fits(each, interface)]
        if interface is not self.interfaces[0]:
            fitting = [each for each in fitting if each.shipped == interface.shipped]
            fitting.sort(key=lambda each: each.value.name != interface.value.name)
        return fitting[0] if fitting else None

    def add_to(self, result: Combined) -> None:
        """Add what there is of this kind."""
        result.definitions[self.interfaces[0].key] = tuple(self.by_version())
        for profile in self.profiles:
            result.problems += self.faults[profile, self.counterpart(profile)]
        result.problems += self.without_profile()
        for index, interface in enumerate(self.interfaces):
            result.standings.append(self.standing_of_interface(index, interface))
        result.standings += map(self.standing_of_profile, self.profiles)

    def by_version(self) -> Iterator[Definition]:
        """One definition for each set of versions that the same definitions cover."""
        groups: dict[tuple[int, ...], list[str]] = {}
        for version in self.deciding:
            covering = [
                index for index, each in enumerate(self.definitions) if version in each.versions
            ]
            groups.setdefault(tuple(covering), []).append(version)
        for covering_all, versions in groups.items():
            yield union([self.definitions[index] for index in covering_all], tuple(versions))

    def counterpart(self, profile: Stated[Profile]) -> Stated[Interface]:
        """The interface that a profile goes with, or else should have gone with."""
        pairs = zip(self.interfaces, self.partners, strict=True)
        own = [each for each, partner in pairs if partner is profile]
        fitting = [each for each in self.interfaces if self.fits(profile, each)]
        like = [each for each in self.interfaces if each.shipped == profile.shipped]
        return (*own, *fitting, *like, *self.interfaces)[0]

    def without_profile(self) -> Iterator[Problem]:
        """Warn when what decides has components that the kind's profiles do not know."""
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

    def standing_of_interface(self, own: int, interface: Stated[Interface]) -> Standing:
        """The versions that an interface decides on."""
        versions = self.definitions[own].versions
        lost = [each for each in versions if self.deciding[each] != own]
        decides = tuple(each for each in versions if self.deciding[each] == own)
        rival = self.interfaces[self.deciding[lost[0]]] if lost else None
        return Standing(interface, decides, reason_of(interface, rival) if lost else "")

    def standing_of_profile(self, profile: Stated[Profile]) -> Standing:
        """The versions that a profile decides on: those that its interface does."""
        versions = [each for each in profile.value.versions if each in self.deciding]
        by = {each: self.partners[self.deciding[each]] for each in versions}
        lost = [each for each in versions if by[each] is not profile]
        decides = tuple(each for each in versions if by[each] is profile)
        return Standing(profile, decides, reason_of(profile, by[lost[0]]) if lost else "")


def without_interface(profile: Stated[Profile], faulty: bool) -> Problem:
    """A profile of a kind that no interface is of, or only a faulty one."""
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
    """A kind in the settings that nobody gave a definition of."""
    found = f"`{full_name(key)}`, and no definition of it is given"
    fix = "write KIND.GROUP of a definition in --interfaces, or leave it out"
    return Problem("settings", "prefer-given", found, fix, "unknown-kind", severity="warning")
