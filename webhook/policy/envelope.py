"""Reads the envelope of the policy CRDs: scope, enforcement, and where the body is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final, Literal, get_args, get_origin

from webhook.documents.model import keys_at, members, plain
from webhook.objects.path import Path
from webhook.policy.default_from import ROLE_WORDS
from webhook.policy.leaves import FIELD_NAMES
from webhook.policy.members import choice_at, text_at, texts_at
from webhook.policy.names import Found, closest, pick_spellings, unknown, warn_of_spelling, word
from webhook.policy.policy_spec import ClusterPolicySpec, PolicySpec, Selector
from webhook.policy.report import Report, label, show_value
from webhook.policy.selectors import read_selector

GROUP, VERSION = "podgate.dev", "v1alpha1"
CLUSTER_KIND, NAMESPACED_KIND = "ClusterWorkloadPolicy", "WorkloadPolicy"
POLICY_KINDS = (NAMESPACED_KIND, CLUSTER_KIND)
BODY = ("defaults", "rules", "imposedAssets")
OBJECT_MEMBERS = ("apiVersion", "kind", "metadata", "spec", "status")


Reader = Callable[[Report, Mapping[Any, Any], Path], Any]


@dataclass(frozen=True, slots=True)
class Context:
    """What a document can leave out: workload type, scope, namespace, the namespaces of API ids.

    PolicyExceptions count only in `exceptions_namespace`; "" accepts them in every namespace.
    """

    workload_type: str | None = None
    default_scope: str = "cluster"
    namespace: str | None = None
    scope_names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    exceptions_namespace: str = ""


@dataclass(slots=True)
class Envelope:
    """The envelope as read, with the three sections of the body."""

    name: str = ""
    scope: str = "cluster"
    namespace: str = ""
    namespace_selector: Selector | None = None
    spec: PolicySpec = field(default_factory=PolicySpec)
    created: str = ""
    types_path: Path = ()
    body: dict[str, Found] = field(default_factory=dict)


def body_of(
    report: Report, mapping: Mapping[Any, Any], path: Path, others: Iterable[str]
) -> dict[str, Found]:
    """Return the sections of the body, ignoring letter case. Unknown members are reported."""
    known = tuple(others)
    found: list[Found] = []
    for key, raw in mapping.items():
        section = word(key, BODY)
        if section is None:
            if key not in known:
                report_unknown_key(report, key, path, known)
        elif raw is not None:
            if section != key:
                warn_of_spelling(report, (*path, key), key, section)
            found.append(Found(section, (*path, key), raw, section == key))
    return {each.name: each for each in pick_spellings(found, report)}


def report_unknown_key(report: Report, key: Any, path: Path, known: tuple[str, ...]) -> None:
    """Report a member that neither the body nor the envelope has."""
    if is_of_tree(key):
        whole = without_section(key)
        fix = f"write {whole}" if whole else "write it"
        fix += " below rules: or below defaults:"
        report.error((*path, key), "fragment-without-root", label(key), fix)
        return
    names = (*known, *BODY)
    of_cluster = key in keys_at(ClusterPolicySpec, ())
    hint = f"only {CLUSTER_KIND} has it" if of_cluster else f"known: {', '.join(names)}"
    unknown(report, path, key, "" if of_cluster else closest(str(key), names), hint)


def is_of_tree(key: Any) -> bool:
    """Whether a key is a field, a section or a role. These belong below defaults or rules."""
    known = any(FIELD_NAMES.resolve("", key)) or bool(without_section(key))
    return known or (isinstance(key, str) and key.lower() in ROLE_WORDS)


def without_section(key: Any) -> str:
    """Return the full name of a field that is written without its section, else ""."""
    if not isinstance(key, str) or any(FIELD_NAMES.resolve("", key)):
        return ""
    meant = FIELD_NAMES.suggest("", key)
    return meant if meant.rpartition(".")[2].casefold() == key.casefold() else ""


def looks_like_body(data: Mapping[Any, Any]) -> bool:
    """Whether a mapping has fields at the top that belong below defaults or rules."""
    return any(is_of_tree(key) for key in data)


def read_object(report: Report, data: Mapping[Any, Any], context: Context) -> Envelope:
    """Read the envelope of a ClusterWorkloadPolicy or WorkloadPolicy."""
    cluster = data.get("kind") == CLUSTER_KIND
    envelope = Envelope()
    check_version(report, data)
    for key in data:
        if key not in OBJECT_MEMBERS:
            unknown(report, (), key, closest(str(key), OBJECT_MEMBERS))
    metadata = report.mapping(data.get("metadata"), ("metadata",))
    envelope.name = text_at(report, metadata, "name", ("metadata",))
    envelope.created = text_at(report, metadata, "creationTimestamp", ("metadata",))
    if not envelope.name:
        report.error(("metadata",), "missing-name", "no name", "write metadata.name")
    if "{{" in envelope.name:
        fix = "render the template first, as helm template does, and give the result"
        report.error(("metadata", "name"), "bad-name", show_value(envelope.name), fix)
    spec, path = report.mapping(data.get("spec"), ("spec",)), ("spec",)
    if data.get("spec") is None:
        report.error((), "missing-value", "no spec", "write spec: with defaults or rules below")
    model = ClusterPolicySpec if cluster else PolicySpec
    envelope.body = body_of(report, spec, path, keys_at(model, ()))
    envelope.types_path = (*path, "workloadTypes")
    if cluster:
        if metadata.get("namespace"):
            found = show_value(metadata["namespace"])
            fix = f"remove it, or write kind: {NAMESPACED_KIND} to govern that namespace alone"
            report.warn(("metadata", "namespace"), "namespace-of-all", found, fix)
        read_cluster_scope(report, envelope, spec, path)
    else:
        envelope.spec = PolicySpec(**read_members(report, spec, path, COMMON))
        read_namespace(report, envelope, metadata, context)
    return envelope


def check_version(report: Report, data: Mapping[Any, Any]) -> None:
    """Check the apiVersion. Only one version of our kinds exists."""
    if data.get("apiVersion") != f"{GROUP}/{VERSION}":
        found = show_value(data.get("apiVersion"))
        report.error(("apiVersion",), "wrong-version", found, f"write {GROUP}/{VERSION}")


def read_cluster_scope(
    report: Report, envelope: Envelope, spec: Mapping[Any, Any], path: Path
) -> None:
    """Read the spec of a ClusterWorkloadPolicy, with its scope and namespace selector."""
    if spec.get("scope") == "project":
        fix = f"write kind: {NAMESPACED_KIND}, in the namespace that it governs"
        report.error((*path, "scope"), "value-outside-enum", "project", fix)
        spec = {**spec, "scope": None}
    read = ClusterPolicySpec(**read_members(report, spec, path, OF_CLUSTER))
    envelope.spec, envelope.scope = read, read.scope
    envelope.namespace_selector = read.namespace_selector
    if read.scope == "department" and read.namespace_selector is None:
        here = (*path, "namespaceSelector")
        place = here if "namespaceSelector" in spec else (*path, "scope")
        fix = "write namespaceSelector: {matchLabels: {department: …}}"
        report.error(place, "department-without-selector", "no selector", fix)


def read_namespace(
    report: Report, envelope: Envelope, metadata: Mapping[Any, Any], context: Context
) -> None:
    """Read the namespace of a WorkloadPolicy: its own, else that of the context."""
    envelope.scope = "project"
    own = text_at(report, metadata, "namespace", ("metadata",))
    envelope.namespace = own or context.namespace or ""
    if not envelope.namespace:
        fix = "write metadata.namespace, or name the namespace on the command line"
        report.error(("metadata",), "missing-namespace", "no namespace", fix)


def read_members(
    report: Report, spec: Mapping[Any, Any], path: Path, known: Mapping[str, Reader]
) -> dict[str, Any]:
    """Read the members of a spec, by attribute name."""
    if spec.get("kinds") is not None and spec.get("workloadTypes") is not None:
        fix = "keep workloadTypes or kinds, not both"
        report.error((*path, "kinds"), "types-and-kinds", "kinds beside workloadTypes", fix)
    return {name: read(report, spec, path) for name, read in known.items()}


def make_readers(model: type[PolicySpec]) -> Mapping[str, Reader]:
    """Return the function that reads each member of a spec, by attribute name."""
    typed = zip(fields(model), members(model).items(), strict=True)
    return {
        each.name: OTHERS.get(key) or make_reader(key, plain(kind)) for each, (key, kind) in typed
    }


def make_reader(key: str, kind: Any) -> Reader:
    """Return the function that reads a member: an enum, a string, or a list of names."""
    if get_origin(kind) is Literal:
        return lambda report, spec, path: choice_at(report, spec, key, path, get_args(kind))
    if kind is str:
        return lambda report, spec, path: text_at(report, spec, key, path)
    words = get_args(plain(get_args(kind)[0]))
    return lambda report, spec, path: texts_at(report, spec, key, path, words)


def read_kinds(
    report: Report, spec: Mapping[Any, Any], path: Path
) -> frozenset[tuple[str, str]] | None:
    """Read the kinds that a policy applies to. None is all kinds."""
    raw, here = spec.get("kinds"), (*path, "kinds")
    if raw is None:
        return None
    listed = report.sequence(raw, here, "a list of {group, kind}")
    if isinstance(raw, list) and not raw:
        report.error(here, "empty-list", "[]", "name at least one, or leave kinds out")
    found = [read_kind(report, each, (*here, index)) for index, each in enumerate(listed)]
    return frozenset(each for each in found if each is not None)


def read_kind(report: Report, raw: Any, path: Path) -> tuple[str, str] | None:
    """Read one {group, kind}. The core group is empty."""
    if not isinstance(raw, dict):
        report.wrong_type(path, raw, "{group: …, kind: …}")
        return None
    for key in raw:
        if key not in ("group", "kind"):
            unknown(report, path, key, closest(str(key), ("group", "kind")), "write group and kind")
    kind = text_at(report, raw, "kind", path)
    if not kind:
        report.error(path, "missing-value", "an entry without kind", "write kind: …")
        return None
    return (text_at(report, raw, "group", path), kind)


def read_address(report: Report, spec: Mapping[Any, Any], path: Path) -> str:
    """Read the URL of a page about the policy."""
    address = text_at(report, spec, "docsURL", path)
    if address and not address.startswith(("https://", "http://")):
        fix = "write an address that begins with https://"
        report.error((*path, "docsURL"), "bad-url", show_value(address), fix)
    return address


def read_namespaces(report: Report, spec: Mapping[Any, Any], path: Path) -> frozenset[str]:
    """Read the excluded namespaces."""
    return texts_at(report, spec, "excludeNamespaces", path) or frozenset()


OTHERS: Final[Mapping[Any, Reader]] = {
    "docsURL": read_address,
    "excludeNamespaces": read_namespaces,
    "kinds": read_kinds,
    "namespaceSelector": lambda report, spec, path: read_selector(
        report, spec.get("namespaceSelector"), (*path, "namespaceSelector")
    ),
}
"""Functions for members that are neither enums, strings nor lists of names."""
COMMON: Final = make_readers(PolicySpec)
OF_CLUSTER: Final = make_readers(ClusterPolicySpec)
