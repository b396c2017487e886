"""Keeps the catalog of documents that change at run time.

Files are read whole or not at all, because their author sees the error. In a cluster nobody may
notice a broken document. Its last good version stays in force, and its status reports that. The
same goes for a deleted asset that a policy imposes. A set of documents that cannot be combined
changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from webhook.catalog.build import Choices, Documents, add, assemble, merge_documents
from webhook.catalog.catalog import Catalog
from webhook.catalog.definition_order import KindName
from webhook.catalog.precedence import hidden, order
from webhook.documents import enclosed
from webhook.documents.enclosed import Unread, number_of, origin_of
from webhook.documents.problem import Problem
from webhook.evaluation.server_defaults import ServerDefaults
from webhook.interface.kind_schema import KindSchema
from webhook.jq.expressions import Compile
from webhook.policy.scalars import too_deep

DEEPEST = 200
"""Levels of a document, as of files. What the API server has may go deeper, and is then not whole."""
Key = enclosed.Key
Schemas = Callable[[Collection[KindName]], Sequence[KindSchema]]
"""Returns the known schemas of these kinds, and of others with pods."""


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a document. `number` is its generation, for texts a number of the content."""

    data: Any
    number: int
    documents: Documents

    @property
    def is_good(self) -> bool:
        """Whether it has no errors of its own."""
        return not self.documents.has_errors


@dataclass(frozen=True, slots=True)
class DocumentStatus:
    """The status of one document: its generation, the generation in force (0 for none), and problems."""

    observed: int
    in_force: int
    problems: tuple[Problem, ...] = ()

    @property
    def is_accepted(self) -> bool:
        """Whether the current generation is in force."""
        return self.observed == self.in_force


@dataclass(frozen=True, slots=True)
class Fixed:
    """Documents from elsewhere, and all other inputs of a catalog."""

    shipped: Documents
    given: Documents
    choices: Choices
    server_defaults: ServerDefaults | None = None
    compile_jq: Compile | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """A catalog, None if nothing may change, and the status of each document."""

    catalog: Catalog | None
    statuses: Mapping[Key, DocumentStatus]
    problems: tuple[Problem, ...] = ()


@dataclass(slots=True)
class WatchedDocuments:
    """The current documents of a cluster, and their last good versions.

    The good versions are in force, except `hidden` ones: an earlier document has their name.
    """

    observed: dict[Key, Version] = field(default_factory=dict)
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
        """Return the first catalog of a process. `remembered` are documents of other processes.

        If a current document has a problem, the remembered ones count as read before, so that a new
        process decides like one that has read them.
        """
        outcome = self.take(documents, fixed, schemas, generation)
        whole = outcome.catalog is not None
        if not remembered or (whole and all(e.is_accepted for e in outcome.statuses.values())):
            return outcome
        self.observed, self.good, self.started = {}, {}, False
        before = self.take(remembered, fixed, schemas, generation)
        after = self.take(documents, fixed, schemas, generation)
        return replace(after, catalog=after.catalog or before.catalog)

    def in_force(self) -> dict[Key, Any]:
        """Return the last good versions as plain JSON, to be stored."""
        return {key: enclosed.to_plain_json(each.data) for key, each in self.good.items()}

    def counting(self) -> list[Documents]:
        """Return the documents in force, in order."""
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
        """Return the catalog with these objects instead of all earlier ones. Unchanged ones are not parsed.

        Before the first catalog there is no last good version: broken documents are left out.
        """
        self.observed = {key: self.version(key, data, fixed) for key, data in documents.items()}
        for key in enclosed.still_there(self.good, documents):
            self.observed[key] = self.good[key]
        before = {key: each for key, each in self.good.items() if key in self.observed}
        chosen = {
            key: each if each.is_good else before.get(key) for key, each in self.observed.items()
        }
        problems_by_key: dict[Key, list[Problem]] = {
            key: list(each.documents.problems) for key, each in self.observed.items()
        }
        origins = {origin_of(key): key for key in self.observed}
        known = schemas(kinds_of(fixed, (*self.observed.values(), *before.values())))
        while True:
            candidates = {key: each.documents for key, each in chosen.items() if each is not None}
            lost = hidden(fixed.given, candidates)
            kept = [candidates[key] for key in sorted(candidates.keys() - lost, key=order)]
            whole = merge_documents([without_problems(each) for each in (fixed.given, *kept)])
            catalog, problems = assemble(
                fixed.shipped,
                whole,
                fixed.choices,
                fixed.server_defaults,
                generation,
                fixed.compile_jq,
                known,
                watched=True,
            )
            errors = [each for each in problems if each.severity == "error"]
            if catalog is not None:
                self.good = {key: each for key, each in chosen.items() if each is not None}
                self.hidden, self.started = lost, True
                return Outcome(catalog, self.statuses(problems_by_key, problems, origins), problems)
            guilty = {origins[each.origin] for each in errors if each.origin in origins}
            for each in errors:
                if each.origin in origins:
                    problems_by_key[origins[each.origin]].append(each)
            if guilty and self.restore_last_good(chosen, before, guilty):
                continue
            if not self.restore_assets(chosen):
                return Outcome(None, self.statuses(problems_by_key, (), origins), problems)

    def restore_last_good(
        self, chosen: dict[Key, Version | None], before: Mapping[Key, Version], guilty: set[Key]
    ) -> bool:
        """Replace unusable documents by their last good version. Return whether that changed anything."""
        changed = False
        for key in guilty:
            other = before.get(key)
            if chosen[key] is other and self.started:
                continue
            changed = changed or chosen[key] is not None
            chosen[key] = other if chosen[key] is not other else None
        return changed

    def restore_assets(self, chosen: dict[Key, Version | None]) -> bool:
        """Restore the assets that were there before. Return whether that changed anything.

        Otherwise anyone could block all documents by deleting an asset that another one needs.
        """
        lost = {
            key: each
            for key, each in self.good.items()
            if each.documents.assets and chosen.get(key) is not each
        }
        chosen.update(lost)
        return bool(lost)

    def version(self, key: Key, data: Any, fixed: Fixed) -> Version:
        """Return a parsed document, from the cache if it did not change."""
        known = self.observed.get(key)
        if known is not None and known.data == data:
            return known
        documents = Documents()
        if isinstance(data, Unread):
            return Version(data, 1, Documents(problems=list(data.problems)))
        if too_deep(data, DEEPEST):
            found = f"nested deeper than {DEEPEST} levels"
            problem = Problem(origin_of(key), "", found, "nest less", "bad-yaml")
            return Version(data, number_of(data), Documents(problems=[problem]))
        source = enclosed.source_of(key, data)
        context = fixed.choices.context
        add(documents, source, context, shipped=False, compile_jq=fixed.compile_jq)
        return Version(data, number_of(data), documents)

    def statuses(
        self,
        problems_by_key: Mapping[Key, Sequence[Problem]],
        problems: Iterable[Problem],
        origins: Mapping[str, Key],
    ) -> dict[Key, DocumentStatus]:
        """Return the status of each document."""
        more: dict[Key, list[Problem]] = {key: list(each) for key, each in problems_by_key.items()}
        for each in (*problems, *self.hidden.values()):
            if each.origin in origins:
                more[origins[each.origin]].append(each)
        return {
            key: DocumentStatus(each.number, self.number_in_force(key), unique(more[key]))
            for key, each in self.observed.items()
        }

    def number_in_force(self, key: Key) -> int:
        """Return the generation of a document that is in force, 0 for none."""
        version = None if key in self.hidden else self.good.get(key)
        return version.number if version is not None else 0


def kinds_of(fixed: Fixed, versions: Iterable[Version]) -> set[KindName]:
    """Return the kinds with a definition."""
    several = (fixed.shipped, fixed.given, *(each.documents for each in versions))
    return {stated.key for each in several for stated in each.interfaces}


def unique(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Return the problems without duplicates."""
    return tuple(dict.fromkeys(problems))


def without_problems(documents: Documents) -> Documents:
    """Return the documents without their own problems, which are already reported."""
    return replace(documents, problems=[])
