"""The installation of a case: its documents besides the shipped ones, and its settings."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, get_type_hints

from pydantic import TypeAdapter, ValidationError

from webhook.cases.case import CRDS, DOCUMENTS, BadCase, Case
from webhook.cases.run_offline import Place, references_of
from webhook.catalog.build import Choices, Documents, assemble, parse_documents
from webhook.catalog.catalog import Catalog
from webhook.decision.messages import problem_text
from webhook.devices.gates import check_gates, check_mode
from webhook.documents.problem import Problem
from webhook.documents.read_model import Report, report_fault
from webhook.documents.source import SourceDocument
from webhook.evaluation.device_settings import DeviceSettings
from webhook.evaluation.installation import InstallationConfig
from webhook.evaluation.references import References
from webhook.evaluation.server_defaults import ServerDefaults
from webhook.evaluation.trusted_mutators import TrustedMutators, parse_trusted
from webhook.interface.injected_items import parse_injected
from webhook.interface.kind_schema import KindSchema, read_schemas
from webhook.interface.pruning import Shapes
from webhook.objects.path import Path, read
from webhook.policy.combine import COMBINATIONS, GUARDED
from webhook.policy.envelope import Context
from webhook.service.settings import minor_number
from webhook.sources import files
from webhook.sources.load import DEFAULT_MINOR, server_defaults, shipped_paths, trusted_list


@lru_cache(maxsize=4)
def load_shipped(*, with_system_policy: bool) -> Documents:
    """The shipped definitions, and the built-in system policy unless a case leaves it out."""
    paths = [each for each in shipped_paths() if with_system_policy or "system" not in each]
    documents, problems = files.read_all(paths)
    if problems:
        raise BadCase("; ".join(problem_text(each) for each in problems))
    return parse_documents(documents, Context(), shipped=True)


@lru_cache(maxsize=1)
def shipped_trusted() -> tuple[TrustedMutators, tuple[Problem, ...]]:
    """The shipped list of trusted mutators, and its problems."""
    return trusted_list(None)


def defaults_table(minor: str = DEFAULT_MINOR) -> ServerDefaults:
    """The server-default table of a minor version; raises BadCase if there is none."""
    table = server_defaults(minor)
    if not isinstance(table, ServerDefaults):
        raise BadCase(problem_text(table))
    return table


def inline(document: SourceDocument, at: Path, index: int) -> SourceDocument:
    """A member of a case's file as a document, with source positions and texts."""
    size = len(at)

    def below(table: Mapping[Path, Any]) -> dict[Path, Any]:
        return {path[size:]: found for path, found in table.items() if path[:size] == at}

    data = read(document.data, at)
    return SourceDocument(
        document.origin, index, data, below(document.positions), below(document.texts)
    )


def documents_of(case: Case) -> list[SourceDocument]:
    """Policies, assets and interfaces of a case, inline ones and those of files beside it."""
    found: list[SourceDocument] = []
    for key in DOCUMENTS:
        found += list_documents(case, key, len(found))
    return found


def list_documents(case: Case, key: str, before: int = 0) -> list[SourceDocument]:
    """The documents of one list, numbered after those before it."""
    found: list[SourceDocument] = []
    for index, each in enumerate(case.given.get(key) or ()):
        if isinstance(each, str):
            documents, unread = files.read_all([str(case.file.parent / each)])
            if unread:
                raise BadCase("; ".join(problem_text(one) for one in unread))
            found += documents
        else:
            found.append(inline(case.document, (key, index), before + len(found) + 1))
    return found


def schemas_for(case: Case, given: Sequence[KindSchema]) -> list[KindSchema]:
    """The schemas of the case's own CRDs, and the given schemas for other kinds."""
    shapes = Shapes()
    own: list[KindSchema] = []
    for document in list_documents(case, CRDS):
        found, problems = read_schemas(document, shapes)
        if problems:
            raise BadCase("\n".join(problem_text(each) for each in problems))
        own += found
    kinds = {(each.group, each.kind) for each in own}
    return own + [each for each in given if (each.group, each.kind) not in kinds]


def place_of(case: Case) -> Place:
    """The namespace of a case and its labels."""
    labels = case.given.get("namespaceLabels") or {}
    namespace, time = case.given.get("namespace"), case.given.get("time")
    return Place(str(namespace or "default"), labels, str(time or ""))


def catalog_of(case: Case, schemas: Sequence[KindSchema] = ()) -> Catalog:
    """The catalog of a case's documents and the shipped ones; raises BadCase for a bad document."""
    given = case.given
    combination = given.get("ruleCombination") or GUARDED
    if combination not in COMBINATIONS:
        raise BadCase(f"{case.file}: ruleCombination is one of {', '.join(COMBINATIONS)}")
    context = Context(workload_type=given.get("workloadType"), namespace=place_of(case).namespace)
    own = load_shipped(with_system_policy=given.get("systemPolicy") is not False)
    choices = Choices(combination, settings_of(case), context)
    known = schemas_for(case, schemas)
    table = defaults_table(minor_of(case))
    catalog, problems = assemble(own, documents_of(case), choices, table, schemas=known)
    if catalog is None:
        errors = [each for each in problems if each.severity == "error"]
        raise BadCase("\n".join(problem_text(each) for each in errors))
    return catalog


def settings_of(case: Case) -> InstallationConfig:
    """The settings of a case, by the names of `podgate serve`."""
    found: dict[str, Any] = {}
    devices: dict[str, Any] = {"kubernetes_minor": minor_number(minor_of(case))}
    for key, value in (case.given.get("settings") or {}).items():
        name = re.sub(r"(?<!^)(?=[A-Z])", "_", str(key)).lower()
        if key == MINOR:
            continue
        if name not in setting_types():
            raise BadCase(f"{case.file}: settings has no {key}")
        read = value if name in DOCUMENTS_OF_SETTINGS else setting(case, str(key), name, value)
        if name in DEVICE_SETTINGS:
            devices[DEVICE_SETTINGS[name]] = read
        else:
            found[name] = read
    found["devices"] = DeviceSettings(**devices)
    faults = [each for each in check_gates(found["devices"]) if not each.warning]
    for fault in (*faults, *check_mode(found["devices"])):
        raise BadCase(f"{case.file}: settings: found {fault.found}; {fault.fix}")
    if "injected" in found:
        injected, problems = parse_injected(inline(case.document, ("settings", "injected"), 1))
        if problems:
            raise BadCase("; ".join(problem_text(each) for each in problems))
        found["injected"] = injected
    if "trusted" in found:
        trusted, problems = parse_trusted(inline(case.document, ("settings", "trusted"), 1))
    else:
        trusted, problems = shipped_trusted()
    if problems:
        raise BadCase("; ".join(problem_text(each) for each in problems))
    found["trusted"] = trusted
    return InstallationConfig(**found)


DOCUMENTS_OF_SETTINGS = ("injected", "trusted")
"""Settings whose value is a document."""


MINOR = "kubernetesMinor"
DEVICE_SETTINGS = {
    "dra_driver_version": "driver_version",
    "dra_feature_gates": "gates",
    "dra_checks": "checks",
    "dra_unknown_version": "unknown_version",
    "dra_imex_mode": "imex_mode",
    "dra_max_nodes_per_domain": "most_nodes",
    "dra_controllers": "controllers",
    "device_classes": "class_types",
}
"""Settings of the server about devices, and what DeviceSettings calls them."""


def minor_of(case: Case) -> str:
    """The minor version of Kubernetes, such as 1.37."""
    return str((case.given.get("settings") or {}).get(MINOR) or DEFAULT_MINOR)


@lru_cache(maxsize=1)
def setting_types() -> dict[str, Any]:
    """The settings of cases with their types."""
    of_devices = get_type_hints(DeviceSettings)
    given = {name: of_devices[member] for name, member in DEVICE_SETTINGS.items()}
    others = get_type_hints(InstallationConfig)
    return {**{name: others[name] for name in others if name != "devices"}, **given}


@lru_cache
def reader(name: str) -> TypeAdapter[Any]:
    """The parser of a setting, by its type."""
    return TypeAdapter(setting_types()[name])


def setting(case: Case, key: str, name: str, value: Any) -> Any:
    """A setting converted to its type; raises BadCase if that fails."""
    try:
        return reader(name).validate_python(value)
    except ValidationError as error:
        report = Report(case.document)
        for fault in error.errors():
            report_fault(fault, value, ("settings", key), report)
        raise BadCase("\n".join(problem_text(each) for each in report.problems)) from None


def references_for(case: Case) -> References:
    """The other objects of the case: claims, classes and domains of devices, priority classes."""
    listed = [("references", each) for each in case.given.get("references") or ()]
    return references_of(listed, place_of(case))
