"""Builds a catalog from decoded documents, and collects every problem of all of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from webhook.catalog.catalog import Catalog
from webhook.catalog.definition_order import Document, KindName, Stated
from webhook.catalog.definitions import combine, with_undefined_kinds
from webhook.devices.definitions import device_definitions
from webhook.documents.problem import Problem
from webhook.documents.source import SourceDocument
from webhook.evaluation.exception import Named, PolicyException, is_exception, parse_exception
from webhook.evaluation.installation import InstallationConfig
from webhook.evaluation.server_defaults import ServerDefaults
from webhook.interface.interface import Interface, is_interface, parse_interface
from webhook.interface.kind_schema import KindSchema
from webhook.interface.profile import Profile
from webhook.interface.profile_document import is_profile, parse_profile
from webhook.jq.expressions import Compile
from webhook.objects.path import read
from webhook.pods.assemblers.registry import FORMS_OF
from webhook.pods.definition import Definition
from webhook.pods.schema_proof import find_uncovered_paths, find_ungoverned, prove
from webhook.policy import asset_document
from webhook.policy.checks import check_settings, check_together
from webhook.policy.combine import GUARDED
from webhook.policy.envelope import Context
from webhook.policy.policy import Asset, Policy
from webhook.policy.policy_document import parse_policy

CONFLICT = "conflict"
Name = tuple[str, ...]
Definitions = dict[tuple[str, str], tuple[Definition, ...]]


@dataclass(slots=True)
class Documents:
    """Documents by kind. `unusable` are kinds with a faulty interface."""

    policies: list[Policy] = field(default_factory=list)
    assets: dict[str, Asset] = field(default_factory=dict)
    interfaces: list[Stated[Interface]] = field(default_factory=list)
    profiles: list[Stated[Profile]] = field(default_factory=list)
    exceptions: list[PolicyException] = field(default_factory=list)
    unusable: set[KindName] = field(default_factory=set)
    problems: list[Problem] = field(default_factory=list)
    names: dict[Name, SourceDocument] = field(default_factory=dict)

    @property
    def has_errors(self) -> bool:
        """Return whether some document cannot be used."""
        return any(each.severity == "error" for each in self.problems)


@dataclass(frozen=True, slots=True)
class Choices:
    """Settings of an installation that affect documents."""

    combination: str = GUARDED
    config: InstallationConfig = field(default_factory=InstallationConfig)
    context: Context = field(default_factory=Context)


def add(
    documents: Documents,
    document: SourceDocument,
    context: Context,
    *,
    shipped: bool,
    compile_jq: Compile | None = None,
) -> None:
    """Parse one document by its kind. An unknown kind is a problem."""
    name: Name = ()
    if is_interface(document.data):
        interface, problems = parse_interface(document, compile_jq)
        if interface is not None:
            documents.interfaces.append(Stated(interface, document, shipped))
            name = definition_name(documents.interfaces[-1], interface.version)
        else:
            documents.unusable.add(kind_stated(document))
    elif is_profile(document.data):
        profile, problems = parse_profile(document, FORMS_OF)
        if profile is not None:
            documents.profiles.append(Stated(profile, document, shipped))
            name = definition_name(documents.profiles[-1], *profile.versions)
    elif is_exception(document.data):
        exception, problems = parse_exception(document, context.exceptions_namespace)
        if exception is not None:
            documents.exceptions.append(exception)
            name = ("exception", exception.namespace, exception.name)
    elif asset_document.is_asset(document):
        asset, problems = asset_document.parse_asset(document)
        if asset is not None:
            documents.assets.setdefault(asset.id, asset)
            name = ("asset", asset.id)
            if name not in documents.names:
                problems = (*problems, *check_object_name(documents, document))
    else:
        # Any other document is read as a policy, so that a typo is reported as one.
        policy, problems = parse_policy(document, context)
        if policy is not None:
            documents.policies.append(policy)
            name = ("policy", policy.scope, policy.namespace, policy.name)
    documents.problems.extend(problems)
    documents.problems.extend(check_name(documents, name, document))


def definition_name(stated: Document, *versions: str) -> Name:
    """Return a name that only one definition may have, () for a definition without a name."""
    name = stated.value.name
    return ("definition", stated.sort, *stated.key, *versions, name) if name else ()


def check_object_name(documents: Documents, document: SourceDocument) -> Iterator[Problem]:
    """Report an asset whose object has the name of another one in the same file.

    Policies refer to the id, but in a cluster the later of the two objects replaces the first.
    """
    name = read(document.data, ("metadata", "name"))
    if isinstance(name, str) and name:
        yield from check_name(documents, ("asset object", document.origin, name), document)


def check_name(documents: Documents, name: Name, document: SourceDocument) -> Iterator[Problem]:
    """Report a document whose name another one has, in the same file or in another."""
    first = documents.names.setdefault(name, document) if name else document
    if first is document:
        return
    path = "meta.id" if name[0] == "asset" else "metadata.name"
    sort = name[0].partition(" ")[0]
    line, column = document.position(())
    where = first.origin
    if first.origin == document.origin:
        where = f"line {first.position(())[0]}" if line else "this file"
    found = f"{sort} {name[-1]}, which is in {where} too"
    fix = f"delete one of the two, or give each {sort} its own {path.rpartition('.')[2]}"
    yield Problem(document.origin, path, found, fix, f"duplicate-{sort}", line, column)


def kind_stated(document: SourceDocument) -> KindName:
    """Return the kind of an interface, as far as a faulty document names it."""
    kind = read(document.data, ("spec", "structureDefinition", "rootComponent", "kind"))
    body = kind if isinstance(kind, dict) else {}
    return str(body.get("group")), str(body.get("kind"))


def prove_all(
    definitions: Definitions, schemas: Iterable[KindSchema], *, watched: bool = False
) -> Iterator[Problem]:
    """Prove each definition by the schemas of its versions, and yield what no definition covers.

    With `watched` documents the problem goes to the definition's author, who often is not the
    CRD's.
    """
    for schema in schemas:
        kind = schema.group, schema.kind
        several = definitions.get(kind, ())
        for each in several:
            if schema.version in each.versions:
                proof = prove(each, schema)
                proven = each.with_proof(schema.version, proof)
                definitions[kind] = tuple(proven if one is each else one for one in several)
                for problem in find_uncovered_paths(schema, proof, proven):
                    yield replace(problem, origin=each.interface.origin) if watched else problem
                break
        else:
            ungoverned = find_ungoverned(schema, other_versions=bool(several))
            if ungoverned is not None:
                yield ungoverned


def by_object(
    exceptions: Iterable[PolicyException],
) -> dict[Named, tuple[PolicyException, ...]]:
    """Return the exceptions by the objects that they name."""
    found: dict[Named, tuple[PolicyException, ...]] = {}
    for each in exceptions:
        for named in each.objects:
            found[named] = (*found.get(named, ()), each)
    return found


def pods_elsewhere(documents: Documents) -> set[str]:
    """Return the origins of definitions whose profile says that other objects have their pods."""
    kinds = {
        each.key for each in documents.profiles if each.value.embedded or each.value.references
    }
    return {each.value.origin for each in documents.interfaces if each.key in kinds}


def parse_documents(
    sources: Sequence[SourceDocument],
    context: Context,
    *,
    shipped: bool = False,
    compile_jq: Compile | None = None,
) -> Documents:
    """Parse documents, with all their problems. `assemble` may be called with them several times."""
    documents = Documents()
    for each in sources:
        add(documents, each, context, shipped=shipped, compile_jq=compile_jq)
    return documents


def merge_documents(several: Iterable[Documents]) -> Documents:
    """What several sets hold, in their order; of two assets of one id, or policies of one name, the
    first counts.
    """
    whole = Documents()
    names = set()
    for each in several:
        for policy in each.policies:
            name = (policy.name, policy.scope, policy.namespace)
            if name not in names:
                names.add(name)
                whole.policies.append(policy)
        whole.assets = {**each.assets, **whole.assets}
        whole.interfaces += each.interfaces
        whole.profiles += each.profiles
        whole.exceptions += each.exceptions
        whole.unusable |= each.unusable
        whole.problems += each.problems
    return whole


def assemble(
    shipped: Sequence[SourceDocument] | Documents,
    given: Sequence[SourceDocument] | Documents,
    choices: Choices,
    server_defaults: ServerDefaults | None = None,
    generation: int = 1,
    compile_jq: Compile | None = None,
    schemas: Sequence[KindSchema] = (),
    *,
    watched: bool = False,
) -> tuple[Catalog | None, tuple[Problem, ...]]:
    """Return the catalog of shipped and given documents, None if one has an error, and all problems.

    A given policy of scope system replaces the shipped one. `compile_jq` reports texts that are not
    jq. `schemas` are those of known CRDs. With `watched` documents, contradicting policies are only
    a warning: the stricter rules and the older default apply.
    """
    documents = (
        merge_documents([given])
        if isinstance(given, Documents)
        else parse_documents(given, choices.context, compile_jq=compile_jq)
    )
    own = (
        shipped
        if isinstance(shipped, Documents)
        else parse_documents(shipped, choices.context, shipped=True)
    )
    replaced = any(each.scope == "system" for each in documents.policies)
    policies = [each for each in own.policies if not (replaced and each.scope == "system")]
    documents.policies = policies + documents.policies
    documents.assets = {**own.assets, **documents.assets}
    documents.interfaces = own.interfaces + documents.interfaces
    documents.profiles = own.profiles + documents.profiles
    documents.problems = own.problems + documents.problems
    elsewhere = pods_elsewhere(documents)
    documents.problems = [
        each
        for each in documents.problems
        if each.reason != "no-pods" or each.origin not in elsewhere
    ]
    config = choices.config
    defined = {each.key for each in documents.interfaces}
    documents.profiles, gaps = with_undefined_kinds(documents.profiles, defined)
    documents.problems += gaps
    combined = combine(
        documents.interfaces, documents.profiles, config.prefer_given, documents.unusable
    )
    combined.definitions |= device_definitions()
    documents.problems += combined.problems
    documents.problems += check_together(documents.policies, documents.assets, choices.combination)
    documents.problems += check_settings(documents.policies, documents.assets, config)
    documents.problems += prove_all(combined.definitions, schemas, watched=watched)
    if watched:
        documents.problems = [
            replace(each, severity="warning") if each.reason == CONFLICT else each
            for each in documents.problems
        ]
    problems = tuple(documents.problems)
    if documents.has_errors:
        return None, problems
    catalog = Catalog(
        tuple(documents.policies),
        combined.definitions,
        documents.assets,
        choices.combination,
        config,
        server_defaults,
        generation,
        tuple(combined.statuses),
        exceptions=by_object(documents.exceptions),
    )
    return catalog, problems
