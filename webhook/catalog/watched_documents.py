"""The catalog of documents that come and go: a broken one keeps the last that was good.

Files are read whole or not at all, since their author is there to be told. In a cluster a document
may be broken while nobody looks: its last good version stays in force, and its status says so. So
does an asset that is gone while a policy imposes it. What cannot be put together at all changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from webhook.catalog.build import Choices, Documents, add, assemble, joined
from webhook.catalog.catalog import Catalog
from webhook.catalog.definition_order import KindName
from webhook.catalog.precedence import hidden, order
from webhook.documents import enclosed
from webhook.documents.enclosed import Unread, number_of, origin_of
from webhook.documents.problem import Problem
from webhook.evaluation.server_defaults import ServerDefaults
from webhook.interface.kind_schema import KindSchema
from webhook.jq.expressions import Compile

Key = enclosed.Key
Schemas = Callable[[Collection[KindName]], Sequence[KindSchema]]
"""What is known of the schemas of these kinds, and of others that hold pods."""


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a document, read: `number` is the generation that the API server counts, in
    texts a number of the content.
    """

    data: Any
    number: int
    documents: Documents

    @property
    def is_good(self) -> bool:
        """Whether it can be used by itself."""
        return not self.documents.failed


@dataclass(frozen=True, slots=True)
class Standing:
    """What became of one document: the generation in force, 0 for none, and what is wrong."""

    seen: int
    in_force: int
    problems: tuple[Problem, ...] = ()

    @property
    def is_accepted(self) -> bool:
        """Whether the document is in force as it is."""
        return self.seen == self.in_force


@dataclass(frozen=True, slots=True)
class Fixed:
    """What does not come from the cluster, and everything else that a catalog needs."""

    shipped: Documents
    given: Documents
    choices: Choices
    server_defaults: ServerDefaults | None = None
    compile_jq: Compile | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """A catalog, None where nothing may change, and what is to be told of each document."""

    catalog: Catalog | None
    standings: Mapping[Key, Standing]
    problems: tuple[Problem, ...] = ()


@dataclass(slots=True)
class Living:
    """The documents of a cluster as they were last seen, and their last good versions.

    These are in force but for `hidden` ones, whose name a document has that comes before.
    """

    seen: dict[Key, Version] = field(default_factory=dict)
    good: dict[Key, Version] = field(default_factory=dict)
    hidden: Mapping[Key, Problem] = field(default_factory=dict)
    started: bool = False

    def begin(
        self,
        documents: Mapping[Key, Any],
        remembered: Mapping[Key, Any],
        fixed: Fixed,
        schemas: Schemas = lambda _: (),
        generation: int = 1,
    ) -> Outcome:
        """The first catalog of a process; `remembered` are documents that others have had in force.

        Where something is wrong with what is there, these count as seen before, so that who starts
        now judges as those who have lived through it.
        """
        outcome = self.take(documents, fixed, schemas, generation)
        whole = outcome.catalog is not None
        if not remembered or (whole and all(e.is_accepted for e in outcome.standings.values())):
            return outcome
        self.seen, self.good, self.started = {}, {}, False
        before = self.take(remembered, fixed, schemas, generation)
        after = self.take(documents, fixed, schemas, generation)
        return replace(after, catalog=after.catalog or before.catalog)

    def in_force(self) -> dict[Key, Any]:
        """The last good versions as plain JSON, to be remembered."""
        return {key: enclosed.kept(each.data) for key, each in self.good.items()}

    def counting(self) -> list[Documents]:
        """What is in force, the first first."""
        return [
            self.good[key].documents for key in sorted(self.good.keys() - self.hidden, key=order)
        ]

    def take(
        self,
        documents: Mapping[Key, Any],
        fixed: Fixed,
        schemas: Schemas = lambda _: (),
        generation: int = 1,
    ) -> Outcome:
        """The catalog with these objects in place of all before; what did not change is not read.

        Before the first catalog there is no last good version: then broken documents are left out.
        """
        self.seen = {key: self.version(key, data, fixed) for key, data in documents.items()}
        for key in enclosed.still_there(self.good, documents):
            self.seen[key] = self.good[key]
        before = {key: each for key, each in self.good.items() if key in self.seen}
        chosen = {key: each if each.is_good else before.get(key) for key, each in self.seen.items()}
        told: dict[Key, list[Problem]] = {
            key: list(each.documents.problems) for key, each in self.seen.items()
        }
        origins = {origin_of(key): key for key in self.seen}
        known = schemas(kinds_of(fixed, (*self.seen.values(), *before.values())))
        while True:
            candidates = {key: each.documents for key, each in chosen.items() if each is not None}
            lost = hidden(fixed.given, candidates)
            kept = [candidates[key] for key in sorted(candidates.keys() - lost, key=order)]
            whole = joined([without_problems(each) for each in (fixed.given, *kept)])
            catalog, problems = assemble(
                fixed.shipped,
                whole,
                fixed.choices,
                fixed.server_defaults,
                generation,
                fixed.compile_jq,
                known,
                living=True,
            )
            errors = [each for each in problems if each.severity == "error"]
            if catalog is not None:
                self.good = {key: each for key, each in chosen.items() if each is not None}
                self.hidden, self.started = lost, True
                return Outcome(catalog, self.standings(told, problems, origins), problems)
            guilty = {origins[each.origin] for each in errors if each.origin in origins}
            for each in errors:
                if each.origin in origins:
                    told[origins[each.origin]].append(each)
            if guilty and self.replaced(chosen, before, guilty):
                continue
            if not self.brought_back(chosen):
                return Outcome(None, self.standings(told, (), origins), problems)

    def replaced(
        self, chosen: dict[Key, Version | None], before: Mapping[Key, Version], guilty: set[Key]
    ) -> bool:
        """Put the last good version in place of what does not fit; whether that changed anything."""
        changed = False
        for key in guilty:
            other = before.get(key)
            if chosen[key] is other and self.started:
                continue
            changed = changed or chosen[key] is not None
            chosen[key] = other if chosen[key] is not other else None
        return changed

    def brought_back(self, chosen: dict[Key, Version | None]) -> bool:
        """Put back the assets that were there before; whether that changed anything.

        Nobody may freeze all documents by taking away one that another needs.
        """
        lost = {
            key: each
            for key, each in self.good.items()
            if each.documents.assets and chosen.get(key) is not each
        }
        chosen.update(lost)
        return bool(lost)

    def version(self, key: Key, data: Any, fixed: Fixed) -> Version:
        """A document, read; one that did not change was read before."""
        known = self.seen.get(key)
        if known is not None and known.data == data:
            return known
        documents = Documents()
        if isinstance(data, Unread):
            return Version(data, 1, Documents(problems=list(data.problems)))
        source = enclosed.source_of(key, data)
        context = fixed.choices.context
        add(documents, source, context, shipped=False, compile_jq=fixed.compile_jq)
        return Version(data, number_of(data), documents)

    def standings(
        self,
        told: Mapping[Key, Sequence[Problem]],
        problems: Iterable[Problem],
        origins: Mapping[str, Key],
    ) -> dict[Key, Standing]:
        """What is said of each document."""
        more: dict[Key, list[Problem]] = {key: list(each) for key, each in told.items()}
        for each in (*problems, *self.hidden.values()):
            if each.origin in origins:
                more[origins[each.origin]].append(each)
        return {
            key: Standing(each.number, self.number_in_force(key), unique(more[key]))
            for key, each in self.seen.items()
        }

    def number_in_force(self, key: Key) -> int:
        """The generation of a document that is judged by, 0 for none."""
        version = None if key in self.hidden else self.good.get(key)
        return version.number if version is not None else 0


def kinds_of(fixed: Fixed, versions: Iterable[Version]) -> set[KindName]:
    """The kinds that some definition is of."""
    several = (fixed.shipped, fixed.given, *(each.documents for each in versions))
    return {stated.key for each in several for stated in each.interfaces}


def unique(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Each problem once."""
    return tuple(dict.fromkeys(problems))


def without_problems(documents: Documents) -> Documents:
    """The same without what was already told of it."""
    return replace(documents, problems=[])
