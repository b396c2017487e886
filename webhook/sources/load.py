"""Loads documents from files, shipped ones included, into a catalog; reports every problem."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

import yaml

from webhook.catalog.build import Choices, Documents, assemble, parse_documents
from webhook.catalog.catalog import Catalog
from webhook.catalog.definition_order import Stated, V
from webhook.documents.problem import Problem
from webhook.documents.source import SourceDocument
from webhook.evaluation.server_defaults import ServerDefaults
from webhook.evaluation.trusted_controllers import TrustedControllers, parse_controllers
from webhook.evaluation.trusted_mutators import TrustedMutators, parse_trusted
from webhook.interface.injected_items import Injected, parse_injected
from webhook.interface.kind_schema import KindSchema, read_schemas
from webhook.interface.pruning import Shapes
from webhook.libjq.evaluator import get_evaluator
from webhook.policy.envelope import Context
from webhook.sources import files

DEFAULT_MINOR = "1.37"
DEEP = 3  # source positions of deeper paths in shipped documents are dropped


@dataclass(frozen=True, slots=True)
class Sources:
    """The paths of the documents, and the options for them."""

    policies: tuple[str, ...] = ()
    interfaces: tuple[str, ...] = ()
    assets: tuple[str, ...] = ()
    kubernetes_minor: str = DEFAULT_MINOR
    choices: Choices = field(default_factory=Choices)
    crds: tuple[str, ...] = ()

    @property
    def paths(self) -> tuple[str, ...]:
        """All given paths of podgate's documents."""
        return (*self.policies, *self.interfaces, *self.assets)


def server_defaults(minor: str) -> ServerDefaults | Problem:
    """The shipped table of the defaults that API servers of this minor version set.

    It is read again only when its file has changed.
    """
    return read_table(minor, files.fingerprint([str(table_path(minor))]))


def table_path(minor: str) -> Path:
    """The path of the table for a minor version, None if there is none."""
    return files.shipped_folder() / "server-defaults" / f"{minor}.yaml"


@lru_cache(maxsize=2)
def read_table(minor: str, mark: object) -> ServerDefaults | Problem:
    """Read the table; `mark` is the state of the file, for the cache."""
    path = table_path(minor)
    if not path.is_file():
        known = sorted(each.stem for each in path.parent.glob("*.yaml"))
        fix = f"choose one of {', '.join(known)}"
        return Problem(str(path), "", f"no table for Kubernetes {minor}", fix, "unknown-minor")
    try:
        return ServerDefaults.parse(yaml.load(path.read_bytes(), Loader=yaml.CSafeLoader))
    except (ValueError, yaml.YAMLError) as error:
        return Problem(str(path), "", str(error), "install podgate again", "bad-yaml")


def shipped_paths() -> list[str]:
    """The built-in system policy and the shipped workload definitions."""
    folder = files.shipped_folder()
    return [str(folder / "system.yaml"), str(folder / "workloads")]


def shipped_documents() -> tuple[Documents, Sequence[Problem]]:
    """The shipped documents and their problems; read again only when a file has changed."""
    return read_shipped(files.fingerprint(shipped_paths()))


@lru_cache(maxsize=2)
def read_shipped(mark: object) -> tuple[Documents, Sequence[Problem]]:
    """Read the shipped documents; `mark` is the state of the files, for the cache."""
    documents, problems = files.read_all(shipped_paths())
    return drop_deep_positions(parse_documents(documents, Context(), shipped=True)), tuple(problems)


def drop_deep_positions(documents: Documents) -> Documents:
    """Drop the source positions deep in correct documents: they take 8 MB in every worker."""

    def trim(stated: Stated[V]) -> Stated[V]:
        whole = stated.document
        places = {path: place for path, place in whole.positions.items() if len(path) < DEEP}
        return replace(stated, document=replace(whole, positions=places))

    interfaces = [trim(each) for each in documents.interfaces]
    return replace(
        documents, interfaces=interfaces, profiles=[trim(each) for each in documents.profiles]
    )


def schemas_of(paths: Sequence[str]) -> tuple[tuple[KindSchema, ...], tuple[Problem, ...]]:
    """The schemas in CRD files, and their problems; read again only when a file has changed."""
    given = tuple(remove_repeats(paths))
    return read_crds(given, files.fingerprint(given)) if given else ((), ())


@lru_cache(maxsize=2)
def read_crds(
    paths: tuple[str, ...], mark: object
) -> tuple[tuple[KindSchema, ...], tuple[Problem, ...]]:
    """Read CRDs one at a time, as some are large; `mark` is the state of the files, for the cache."""
    schemas: list[KindSchema] = []
    names, problems = files.files_of(paths)
    shapes = Shapes()
    for name in names:
        documents, faults = files.read_all([name], kubernetes=True)
        problems += faults
        for each in documents:
            found, more = read_schemas(each, shapes)
            schemas += found
            problems += more
    return tuple(schemas), tuple(problems)


def injected_list(path: object) -> tuple[Injected, tuple[Problem, ...]]:
    """The list of items that other webhooks add, and the problems of its file."""
    if path is None:
        return Injected(), ()
    document, problems = single(str(path), "injected-items")
    return parse_injected(document) if document is not None else (Injected(), problems)


def trusted_list(path: object) -> tuple[TrustedMutators, tuple[Problem, ...]]:
    """The list of trusted mutators (the shipped one without a path), and its problems."""
    file = files.shipped_folder() / "trusted-mutators.yaml" if path is None else path
    document, problems = single(str(file), "trusted-mutators")
    return parse_trusted(document) if document is not None else (TrustedMutators(), problems)


def controllers_list(
    path: object, ungoverned: Iterable[str]
) -> tuple[TrustedControllers, tuple[Problem, ...]]:
    """The list of trusted controllers, and its problems; `ungoverned` are namespaces."""
    if path is None:
        return TrustedControllers(), ()
    document, problems = single(str(path), "trusted-controllers")
    if document is None:
        return TrustedControllers(), problems
    return parse_controllers(document, frozenset(ungoverned))


def single(path: str, code: str) -> tuple[SourceDocument | None, tuple[Problem, ...]]:
    """The only document of a file, None if it has none or several."""
    documents, problems = files.read_all([path])
    if problems or len(documents) != 1:
        found = Problem(path, "", "no single document", "write one list", code)
        return None, tuple(problems) or (found,)
    return documents[0], ()


def load(sources: Sources, generation: int = 1) -> tuple[Catalog | None, tuple[Problem, ...]]:
    """The catalog of all documents in the paths, None if something cannot be used; and all problems."""
    shipped, own_problems = shipped_documents()
    given, problems = files.read_all(remove_repeats(sources.paths))
    table = server_defaults(sources.kubernetes_minor)
    if isinstance(table, Problem):
        return None, (*own_problems, *problems, table)
    compile_jq = get_evaluator().compile_jq
    schemas, unread = schemas_of(sources.crds)
    catalog, more = assemble(
        shipped, given, sources.choices, table, generation, compile_jq, schemas
    )
    found = (*own_problems, *problems, *unread, *more)
    if any(each.severity == "error" for each in found):
        return None, found
    return catalog, found


def remove_repeats(paths: Sequence[str]) -> list[str]:
    """Remove duplicates, in order."""
    return list(dict.fromkeys(paths))


def change_detector(sources: Sources) -> Callable[[], bool]:
    """Return a function that reports whether the files have changed since its last call."""
    paths = (*sources.paths, *sources.crds)
    seen = files.fingerprint(paths)

    def has_changed() -> bool:
        nonlocal seen
        now = files.fingerprint(paths)
        if now == seen:
            return False
        seen = now
        return True

    return has_changed
