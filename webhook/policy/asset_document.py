"""Parses data source assets, which policies may impose as locked items."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from webhook.documents.model import DocumentPart, keys_at
from webhook.documents.problem import Problem
from webhook.documents.source import SourceDocument
from webhook.objects.path import Path
from webhook.policy.body_items import EXCLUDE, check_label, read_attributes
from webhook.policy.checks.storage import needed_of_claim
from webhook.policy.envelope import GROUP, check_version
from webhook.policy.leaves import items_of
from webhook.policy.members import choice_at, text_at
from webhook.policy.names import closest, unknown
from webhook.policy.policy import SCOPES, Asset, Default, Scope
from webhook.policy.report import Report, show_value
from webhook.policy.row import Field
from webhook.policy.table import TABLE

KIND = "WorkloadAsset"
SOURCES = ("pvc", "nfs", "hostPath", "git", "s3", "config-map", "secret-volume")
OTHER_SPELLINGS = {"config_map": "config-map", "secret": "secret-volume"}
NO_SOURCES = (
    "data-volume",
    "compute",
    "environment",
    "workload-template",
    "registry",
    "model",
    "accessKey",
    "dockerRegistry",
    "password",
    "genericSecret",
    "ngcApiKey",
)
"""Asset kinds that are not data sources, or not mounted as such. They cannot be imposed."""
ALWAYS_CREDENTIAL = frozenset({"secret-volume"})
CREDENTIAL_IDS = ("credentialId", "passwordAssetId", "accessKeyAssetId", "credentialAssetId")
CREDENTIAL_WORDS = ("secret", "credential", "password", "accesskey")
SPEC_IGNORED = ("dataSharing",)
NEEDED = {"git": ("repository",), "s3": ("bucket",)}
"""Attributes that an asset must have, by store."""
META_IGNORED = (
    "tenantId",
    "workloadSupportedTypes",
    "createdBy",
    "createdAt",
    "updatedBy",
    "updatedAt",
)
RESPONSE_MEMBERS = ("usedBy", "usageTimes", "compliance", "status")


@dataclass(frozen=True, slots=True)
class AssetMeta(DocumentPart):
    """Which asset it is."""

    id: str
    """The id that policies use to refer to the asset."""
    kind: str
    """Kind of the data source. It decides the members of spec."""
    name: str = ""
    """Key of the item that the asset becomes; absent: the name of the object."""
    scope: Scope = "tenant"
    """Scope of the asset in the platform. podgate ignores it."""
    project_id: Any = None
    """Id of the project, for scope project."""
    department_id: Any = None
    """Id of the department, for scope department."""
    cluster_id: Any = None
    """Id of the cluster, for scope cluster."""


META_MEMBERS = keys_at(AssetMeta, ())


def is_asset(document: SourceDocument) -> bool:
    """Whether a document is an asset: our kind, or a bare {meta, spec} pair."""
    data = document.data
    if not isinstance(data, dict):
        return False
    if "kind" in data or "apiVersion" in data:
        version = data.get("apiVersion")
        ours = isinstance(version, str) and version.partition("/")[0] == GROUP
        return ours and data.get("kind") == KIND
    return "meta" in data and "spec" in data


def parse_asset(document: SourceDocument) -> tuple[Asset | None, tuple[Problem, ...]]:
    """Return the asset, or None if any problem is an error, and all problems."""
    report = Report(document)
    if not is_asset(document):
        fix = f"write meta and spec, or a {KIND} whose spec has them"
        report.error((), "not-an-asset", show_value(document.data), fix)
        return None, tuple(report.problems)
    is_object = "kind" in document.data
    pair, path, name = read_object(report, document.data) if is_object else (document.data, (), "")
    asset = read_pair(report, pair, path, name)
    return None if report.has_errors else asset, tuple(report.problems)


def read_object(report: Report, data: Mapping[Any, Any]) -> tuple[Mapping[Any, Any], Path, str]:
    """Return the {meta, spec} pair inside a WorkloadAsset, its path, and the object's name."""
    check_version(report, data)
    for key in data:
        if key not in ("apiVersion", "kind", "metadata", "spec", "status"):
            unknown(report, (), key, closest(str(key), ("metadata", "spec")))
    metadata = report.mapping(data.get("metadata"), ("metadata",))
    name = text_at(report, metadata, "name", ("metadata",))
    return report.mapping(data.get("spec"), ("spec",)), ("spec",), name


def read_pair(report: Report, pair: Mapping[Any, Any], path: Path, object_name: str) -> Asset:
    """Read an asset in the form of the API: `meta` identifies it, `spec` is the item."""
    for key in pair:
        if key not in ("meta", "spec", *RESPONSE_MEMBERS):
            unknown(report, path, key, closest(str(key), ("meta", "spec")), "write meta and spec")
    here = (*path, "meta")
    meta = report.mapping(pair.get("meta"), here)
    for key in meta:
        if key not in META_MEMBERS and key not in META_IGNORED:
            unknown(report, here, key, closest(str(key), META_MEMBERS))
    identity = text_at(report, meta, "id", here)
    name = text_at(report, meta, "name", here) or object_name
    if not identity:
        report.error(here, "missing-id", "no id", "write meta.id, which policies refer to")
    if not name:
        report.error(here, "missing-name", "no name", "write meta.name, the key of the item")
    kind = kind_of(report, meta, here)
    scope = "tenant"
    if meta.get("scope") is not None:
        scope = choice_at(report, meta, "scope", here, SCOPES)
    spec_path = (*path, "spec")
    spec = report.mapping(pair.get("spec"), spec_path)
    if kind not in SOURCES:
        return Asset(identity, name, kind, "", scope, {}, origin=report.document.origin)
    row = field_of(kind)
    if row is None:
        fix = "use an asset of another kind"
        report.error((*here, "kind"), "value-outside-enum", show_value(kind), fix)
        return Asset(identity, name, kind, "", scope, {}, origin=report.document.origin)
    attributes, credential = read_spec(report, row, spec, spec_path)
    credential = credential or kind in ALWAYS_CREDENTIAL
    if not credential:
        check_complete(report, row, attributes, spec_path)
    check_label(report, row, name, attributes, spec_path)
    origin = report.document.origin
    return Asset(identity, name, kind, row.path, scope, attributes, credential, origin)


def kind_of(report: Report, meta: Mapping[Any, Any], path: Path) -> str:
    """Return the asset's kind in its canonical spelling. An unknown kind is reported, and empty."""
    raw = meta.get("kind")
    known = (*SOURCES, *NO_SOURCES)
    if isinstance(raw, str) and raw in OTHER_SPELLINGS:
        return OTHER_SPELLINGS[raw]
    if isinstance(raw, str) and raw in known:
        return raw
    meant = closest(raw, known) if isinstance(raw, str) else ""
    fix = f"did you mean {meant}?" if meant else f"write one of {', '.join(SOURCES)}"
    report.error((*path, "kind"), "value-outside-enum", show_value(raw), fix)
    return ""


def field_of(kind: str) -> Field | None:
    """Return the itemized field for a kind of asset: the field with the same name."""
    plain = kind.replace("-", "").lower()
    for row in TABLE.fields.values():
        last = row.path.rpartition(".")[2].lower()
        if row.items is not None and last in (plain, f"{plain}volume"):
            return row
    return None


def read_spec(
    report: Report, row: Field, spec: Mapping[Any, Any], path: Path
) -> tuple[dict[str, Default], bool]:
    """Return the attributes of the item, and whether it refers to a credential."""
    item = {
        key: raw
        for key, raw in spec.items()
        if key not in CREDENTIAL_IDS and key not in SPEC_IGNORED
    }
    credential = any(spec.get(key) is not None for key in CREDENTIAL_IDS)
    found = read_attributes(report, row, item, path)
    for name in (items_of(row).key, EXCLUDE):
        if name in found:
            fix = "remove it: the key of an imposed item is meta.name, and it cannot be excluded"
            report.error(found[name][1], "unknown-field", name, fix)
    secrets = (name for name in found if any(each in name.lower() for each in CREDENTIAL_WORDS))
    return {name: value for name, (value, _) in found.items()}, credential or any(secrets)


def check_complete(
    report: Report, row: Field, attributes: Mapping[str, Default], path: Path
) -> None:
    """Check that an imposed item is complete. No request adds attributes to it."""
    names = [each.name for each in items_of(row).attributes if each.required]
    needed = {*names, *needed_of(row, attributes)} - {items_of(row).key}
    missing = sorted(needed - set(attributes))
    if missing:
        found = f"spec without {' and '.join(missing)}"
        report.error(path, "missing-value", found, f"write {', '.join(missing)}")


def needed_of(row: Field, attributes: Mapping[str, Default]) -> tuple[str, ...]:
    """Return attributes that an asset must have, although a policy can leave them to requests."""
    if items_of(row).store != "pvc":
        return NEEDED.get(items_of(row).store, ())
    return tuple(needed_of_claim(attributes))
