"""The loader: documents from files, shipped ones included, into a catalog, or every problem."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

import yaml

from webhook.catalog.build import Choices, Documents, assemble, parsed
from webhook.catalog.catalog import Catalog
from webhook.catalog.definition_order import Stated, V
from webhook.documents.problem import Problem
from webhook.documents.source import SourceDocument
from webhook.evaluation.server_defaults import ServerDefaults
from webhook.evaluation.trusted_controllers import TrustedControllers, parse_controllers
from webhook.evaluation.trusted_list import parse_trusted
from webhook.evaluation.trusted_mutators import TrustedMutators
from webhook.interface.injected_items import Injected, parse_injected
from webhook.interface.kind_schema import KindSchema, read_schemas
from webhook.interface.pruning import Shapes
from webhook.libjq import evaluator as jq
from webhook.policy.envelope import Context
from webhook.sources import files

DEFAULT_MINOR = "1.37"
DEEP = 3  # steps of a path from which on nobody asks for the place in a shipped document


@dataclass(frozen=True, slots=True)
class Sources:
    """The paths that the documents come from, and what is chosen beside them."""

    policies: tuple[str, ...] = ()
    interfaces: tuple[str, ...] = ()
    assets: tuple[str, ...] = ()
    kubernetes_minor: str = DEFAULT_MINOR
    choices: Choices = field(default_factory=Choices)
    crds: tuple[str, ...] = ()

    @property
    def paths(self) -> tuple[str, ...]:
        """Every given path of documents of ours."""
        return (*self.policies, *self.interfaces, *self.assets)


def server_defaults(minor: str) -> ServerDefaults | Problem:
    """The shipped table of what the API server of this minor version fills in.

    It is read again only when its file has changed.
    """
    return read_table(minor, files.fingerprint([str(table_path(minor))]))


def table_path(minor: str) -> Path:
    """Where the table for a minor version is, if there is one."""
    return files.shipped_folder() / "server-defaults" / f"{minor}.yaml"


@lru_cache(maxsize=2)
def read_table(minor: str, mark: object) -> ServerDefaults | Problem:
    """The same for one state of the file, which `mark` stands for."""
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
    """What the shipped files hold, and their problems; read again only when a file has changed."""
    return read_shipped(files.fingerprint(shipped_paths()))


@lru_cache(maxsize=2)
def read_shipped(mark: object) -> tuple[Documents, Sequence[Problem]]:
    """The same for one state of the files, which `mark` stands for."""
    documents, problems = files.read_all(shipped_paths())
    return without_places(parsed(documents, Context(), shipped=True)), tuple(problems)


def without_places(documents: Documents) -> Documents:
    """The same without the places deep in documents that are faultless: 8 MB in every worker."""

    def kept(stated: Stated[V]) -> Stated[V]:
        whole = stated.document
        places = {path: place for path, place in whole.positions.items() if len(path) < DEEP}
        return replace(stated, document=replace(whole, positions=places))

    interfaces = [kept(each) for each in documents.interfaces]
    return replace(
        documents, interfaces=interfaces, profiles=[kept(each) for each in documents.profiles]
    )


def schemas_of(paths: Sequence[str]) -> tuple[tuple[KindSchema, ...], tuple[Problem, ...]]:
    """What the CRDs of files say, and their problems; read again only when a file has changed."""
    given = tuple(unrepeated(paths))
    return read_crds(given, files.fingerprint(given)) if given else ((), ())


@lru_cache(maxsize=2)
def read_crds(
    paths: tuple[str, ...], mark: object
) -> tuple[tuple[KindSchema, ...], tuple[Problem, ...]]:
    """The same for one state of the files; one CRD is in memory at a time, as some are large."""
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
    """The list of what other webhooks add, and everything that is wrong with the file."""
    if path is None:
        return Injected(), ()
    document, problems = single(str(path), "injected-items")
    return parse_injected(document) if document is not None else (Injected(), problems)


def trusted_list(path: object) -> tuple[TrustedMutators, tuple[Problem, ...]]:
    """The list of trusted mutators, the shipped one without a path, and all that is wrong with it."""
    file = files.shipped_folder() / "trusted-mutators.yaml" if path is None else path
    document, problems = single(str(file), "trusted-mutators")
    return parse_trusted(document) if document is not None else (TrustedMutators(), problems)


def controllers_list(
    path: object, ungoverned: Iterable[str]
) -> tuple[TrustedControllers, tuple[Problem, ...]]:
    """The list of trusted controllers, and all its problems; `ungoverned` are namespaces."""
    if path is None:
        return TrustedControllers(), ()
    document, problems = single(str(path), "trusted-controllers")
    if document is None:
        return TrustedControllers(), problems
    return parse_controllers(document, frozenset(ungoverned))


def single(path: str, code: str) -> tuple[SourceDocument | None, tuple[Problem, ...]]:
    """The only document of a file, None when it has none or several."""
    documents, problems = files.read_all([path])
    if problems or len(documents) != 1:
        found = Problem(path, "", "no single document", "write one list", code)
        return None, tuple(problems) or (found,)
    return documents[0], ()


def load(sources: Sources, generation: int = 1) -> tuple[Catalog | None, tuple[Problem, ...]]:
    """The catalog of everything the paths hold, None when something cannot be used; all problems."""
    shipped, own_problems = shipped_documents()
    given, problems = files.read_all(unrepeated(sources.paths))
    table = server_defaults(sources.kubernetes_minor)
    if isinstance(table, Problem):
        return None, (*own_problems, *problems, table)
    compile_jq = jq.evaluator().compile_jq
    schemas, unread = schemas_of(sources.crds)
    catalog, more = assemble(
        shipped, given, sources.choices, table, generation, compile_jq, schemas
    )
    found = (*own_problems, *problems, *unread, *more)
    if any(each.severity == "error" for each in found):
        return None, found
    return catalog, found


def unrepeated(paths: Sequence[str]) -> list[str]:
    """The paths in order, each once."""
    return list(dict.fromkeys(paths))


def change_detector(sources: Sources) -> Callable[[], bool]:
    """A function that says whether the files differ from when it last said so."""
    paths = (*sources.paths, *sources.crds)
    seen = files.fingerprint(paths)

    def changed() -> bool:
        nonlocal seen
        now = files.fingerprint(paths)
        if now == seen:
            return False
        seen = now
        return True

    return changed
