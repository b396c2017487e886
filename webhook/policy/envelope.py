"""Reads the envelope of our custom resources: whom a policy governs, how, and where its body is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from webhook.objects.path import Path
from webhook.policy.default_from import ROLE_WORDS
from webhook.policy.leaves import FIELD_NAMES
from webhook.policy.members import choice_at, text_at, texts_at
from webhook.policy.names import Found, closest, picked, respelled, unknown, word
from webhook.policy.policy import SCOPES, Selector
from webhook.policy.report import Report, label, shown
from webhook.policy.row import ALL_TYPES
from webhook.policy.selectors import read_selector

GROUP, VERSION = "podgate.dev", "v1alpha1"
CLUSTER_KIND, NAMESPACED_KIND = "ClusterWorkloadPolicy", "WorkloadPolicy"
POLICY_KINDS = (NAMESPACED_KIND, CLUSTER_KIND)
BODY = ("defaults", "rules", "imposedAssets")
OBJECT_MEMBERS = ("apiVersion", "kind", "metadata", "spec", "status")
COMMON_MEMBERS = (
    "excludeNamespaces",
    "workloadTypes",
    "kinds",
    "enforcement",
    "existing",
    "containers",
    "message",
    "docsURL",
)
CLUSTER_MEMBERS = ("scope", "namespaceSelector", *COMMON_MEMBERS)
ENFORCEMENTS = ("Enforce", "Warn", "Audit")
EXISTING = ("tolerate", "strict")
CONTAINERS = ("all", "main")


@dataclass(frozen=True, slots=True)
class Context:
    """What a document does not say itself: workload type, scope, namespace, what API ids mean.

    `exceptions_namespace` is the only one whose PolicyExceptions count; "" is any.
    """

    workload_type: str | None = None
    default_scope: str = "cluster"
    namespace: str | None = None
    scope_names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    exceptions_namespace: str = ""


@dataclass(slots=True)
class Envelope:
    """The envelope as read, with the places of the three sections of the body."""

    name: str = ""
    scope: str = "cluster"
    namespace: str = ""
    enforcement: str = "Enforce"
    existing: str = "tolerate"
    containers: str = "all"
    message: str = ""
    docs_url: str = ""
    workload_types: frozenset[str] | None = None
    kinds: frozenset[tuple[str, str]] | None = None
    namespace_selector: Selector | None = None
    exclude_namespaces: frozenset[str] = frozenset()
    created: str = ""
    types_path: Path = ()
    body: dict[str, Found] = field(default_factory=dict)


def body_of(
    report: Report, mapping: Mapping[Any, Any], path: Path, others: Iterable[str]
) -> dict[str, Found]:
    """The sections of the body, letter case aside; strangers among the members are reported."""
    known = tuple(others)
    found: list[Found] = []
    for key, raw in mapping.items():
        section = word(key, BODY)
        if section is None:
            if key not in known:
                tell_stranger(report, key, path, known)
        elif raw is not None:
            if section != key:
                respelled(report, (*path, key), key, section)
            found.append(Found(section, (*path, key), raw, section == key))
    return {each.name: each for each in picked(found, report)}


def tell_stranger(report: Report, key: Any, path: Path, known: tuple[str, ...]) -> None:
    """A member that is no section of the body and unknown to the envelope."""
    if is_of_tree(key):
        whole = without_section(key)
        fix = f"write {whole}" if whole else "write it"
        fix += " below rules: or below defaults:"
        report.error((*path, key), "fragment-without-root", label(key), fix)
        return
    names = (*known, *BODY)
    meant = closest(str(key), names)
    hint = f"only {CLUSTER_KIND} has it" if key in CLUSTER_MEMBERS else f"known: {', '.join(names)}"
    unknown(report, path, key, "" if key in CLUSTER_MEMBERS else meant, hint)


def is_of_tree(key: Any) -> bool:
    """Whether a key is a field, a section or a role, which stand below defaults and rules."""
    known = any(FIELD_NAMES.resolve("", key)) or bool(without_section(key))
    return known or (isinstance(key, str) and key.lower() in ROLE_WORDS)


def without_section(key: Any) -> str:
    """The whole name of a field that is given without its section; "" for all else."""
    if not isinstance(key, str) or any(FIELD_NAMES.resolve("", key)):
        return ""
    meant = FIELD_NAMES.suggest("", key)
    return meant if meant.rpartition(".")[2].casefold() == key.casefold() else ""


def looks_like_body(data: Mapping[Any, Any]) -> bool:
    """Whether a mapping is what stands below defaults or rules, without them."""
    return any(is_of_tree(key) for key in data)


def read_object(report: Report, data: Mapping[Any, Any], context: Context) -> Envelope:
    """The envelope of our custom resources."""
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
        report.error(("metadata", "name"), "bad-name", shown(envelope.name), fix)
    spec, path = report.mapping(data.get("spec"), ("spec",)), ("spec",)
    if data.get("spec") is None:
        report.error((), "missing-value", "no spec", "write spec: with defaults or rules below")
    envelope.body = body_of(report, spec, path, CLUSTER_MEMBERS if cluster else COMMON_MEMBERS)
    read_reach(report, envelope, spec, path)
    read_treatment(report, envelope, spec, path)
    if cluster:
        if metadata.get("namespace"):
            found = shown(metadata["namespace"])
            fix = f"remove it, or write kind: {NAMESPACED_KIND} to govern that namespace alone"
            report.warn(("metadata", "namespace"), "namespace-of-all", found, fix)
        read_cluster_scope(report, envelope, spec, path)
    else:
        read_namespace(report, envelope, metadata, context)
    return envelope


def check_version(report: Report, data: Mapping[Any, Any]) -> None:
    """Only one version of our kinds exists."""
    if data.get("apiVersion") != f"{GROUP}/{VERSION}":
        found = shown(data.get("apiVersion"))
        report.error(("apiVersion",), "wrong-version", found, f"write {GROUP}/{VERSION}")


def read_cluster_scope(
    report: Report, envelope: Envelope, spec: Mapping[Any, Any], path: Path
) -> None:
    """`scope` and `namespaceSelector` of a ClusterWorkloadPolicy."""
    if spec.get("scope") == "project":
        fix = f"write kind: {NAMESPACED_KIND}, in the namespace that it governs"
        report.error((*path, "scope"), "value-outside-enum", "project", fix)
        return
    scopes = ("cluster", *(each for each in SCOPES if each not in ("cluster", "project")))
    envelope.scope = choice_at(report, spec, "scope", path, scopes)
    here = (*path, "namespaceSelector")
    envelope.namespace_selector = read_selector(report, spec.get("namespaceSelector"), here)
    if envelope.scope == "department" and envelope.namespace_selector is None:
        place = here if "namespaceSelector" in spec else (*path, "scope")
        fix = "write namespaceSelector: {matchLabels: {department: …}}"
        report.error(place, "department-without-selector", "no selector", fix)


def read_namespace(
    report: Report, envelope: Envelope, metadata: Mapping[Any, Any], context: Context
) -> None:
    """The namespace of a WorkloadPolicy: its own, else the one it is going to be put into."""
    envelope.scope = "project"
    own = text_at(report, metadata, "namespace", ("metadata",))
    envelope.namespace = own or context.namespace or ""
    if not envelope.namespace:
        fix = "write metadata.namespace, or name the namespace on the command line"
        report.error(("metadata",), "missing-namespace", "no namespace", fix)


def read_reach(report: Report, envelope: Envelope, spec: Mapping[Any, Any], path: Path) -> None:
    """Workload types or kinds, and the namespaces that are left out."""
    excluded = texts_at(report, spec, "excludeNamespaces", path)
    envelope.exclude_namespaces = excluded or frozenset()
    envelope.workload_types = texts_at(report, spec, "workloadTypes", path, ALL_TYPES)
    envelope.types_path = (*path, "workloadTypes")
    raw, here = spec.get("kinds"), (*path, "kinds")
    if raw is None:
        return
    if envelope.workload_types is not None:
        fix = "keep workloadTypes or kinds, not both"
        report.error(here, "types-and-kinds", "kinds beside workloadTypes", fix)
    listed = report.sequence(raw, here, "a list of {group, kind}")
    if isinstance(raw, list) and not raw:
        report.error(here, "empty-list", "[]", "name at least one, or leave kinds out")
    found = [read_kind(report, each, (*here, index)) for index, each in enumerate(listed)]
    envelope.kinds = frozenset(each for each in found if each is not None)


def read_kind(report: Report, raw: Any, path: Path) -> tuple[str, str] | None:
    """One {group, kind}; the core group is empty."""
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


def read_treatment(report: Report, envelope: Envelope, spec: Mapping[Any, Any], path: Path) -> None:
    """How the policy is enforced, and what people are told."""
    envelope.enforcement = choice_at(report, spec, "enforcement", path, ENFORCEMENTS)
    envelope.existing = choice_at(report, spec, "existing", path, EXISTING)
    envelope.containers = choice_at(report, spec, "containers", path, CONTAINERS)
    envelope.message = text_at(report, spec, "message", path)
    envelope.docs_url = text_at(report, spec, "docsURL", path)
    if envelope.docs_url and not envelope.docs_url.startswith(("https://", "http://")):
        fix = "write an address that begins with https://"
        report.error((*path, "docsURL"), "bad-url", shown(envelope.docs_url), fix)
