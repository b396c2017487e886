"""The JSON Schema of every form of policies and assets, for editors."""

from __future__ import annotations

from tools.schemas.definitions import BODY_TEXTS
from tools.schemas.fields import attributes_of
from tools.schemas.forms import (
    ANYTHING,
    TEXT,
    Schema,
    any_case,
    closed_map,
    for_editors,
    ref,
)
from tools.schemas.models import model_schema
from webhook.policy import asset_document, forms
from webhook.policy.asset_document import AssetMeta
from webhook.policy.envelope import (
    BODY,
    CLUSTER_KIND,
    GROUP,
    NAMESPACED_KIND,
    OBJECT_MEMBERS,
    VERSION,
)
from webhook.policy.leaves import items_of
from webhook.policy.policy import SCOPES
from webhook.policy.policy_spec import ClusterPolicySpec, PolicySpec
from webhook.policy.row import Field

BARE, API = "bare", "api"


def body() -> dict[str, Schema]:
    """The three sections."""
    described_body = {name: {"description": text, **ref(name)} for name, text in BODY_TEXTS.items()}
    return {**described_body, "imposedAssets": ref("imposedAssets")}


def editor_members(model: type) -> dict[str, Schema]:
    """The members of a class."""
    schema, models = model_schema(model)
    return {key: for_editors(each, models) for key, each in schema["properties"].items()}


NOT_BOTH: Schema = {
    "not": {
        "properties": {"workloadTypes": {"type": "array"}, "kinds": {"type": "array"}},
        "required": ["workloadTypes", "kinds"],
    }
}


def custom_resource(kind: str, version: str, spec: Schema) -> Schema:
    """A document with apiVersion, kind, metadata and spec."""
    members: dict[str, Schema] = dict.fromkeys(OBJECT_MEMBERS, ANYTHING)
    members |= {"apiVersion": {"const": version}, "kind": {"const": kind}}
    members |= {"metadata": ref("metadata"), "spec": spec}
    return closed_map(members, kind, required=("apiVersion", "kind", "metadata", "spec"))


def cluster_policy() -> Schema:
    """A ClusterWorkloadPolicy."""
    members = {**editor_members(ClusterPolicySpec), **body()}
    spec = closed_map(members, required=(), other_case=any_case(BODY))
    spec["type"] = "object"
    is_department = {"properties": {"scope": {"const": "department"}}, "required": ["scope"]}
    selecting = {"required": ["namespaceSelector"]}
    spec["allOf"] = [NOT_BOTH, {"if": is_department, "then": selecting}]
    return custom_resource(CLUSTER_KIND, f"{GROUP}/{VERSION}", spec)


def namespaced_policy() -> Schema:
    """A WorkloadPolicy."""
    spec = closed_map({**editor_members(PolicySpec), **body()}, other_case=any_case(BODY))
    spec |= {"type": "object", "allOf": [NOT_BOTH]}
    return custom_resource(NAMESPACED_KIND, f"{GROUP}/{VERSION}", spec)


def bare_policy() -> Schema:
    """A body as an admin types it."""
    schema = closed_map(body(), "A policy without envelope", other_case=any_case(BODY))
    return {**schema, "type": "object", "minProperties": 1}


def api_policy() -> Schema:
    """The form of the API."""
    members: dict[str, Schema] = dict.fromkeys(forms.META_MEMBERS, TEXT)
    members |= dict.fromkeys(forms.META_IGNORED, ANYTHING)
    members |= {"name": {"type": "string", "minLength": 1}, "scope": {"enum": list(SCOPES)}}
    meta = closed_map(members, required=("name", "scope"))
    inner = closed_map({**body(), "status": ANYTHING}, other_case=any_case(BODY))
    ignored = dict.fromkeys(forms.API_IGNORED, ANYTHING)
    parts = {"meta": meta, "policy": inner, **ignored}
    return closed_map(parts, "A policy in the form of the API", required=("meta", "policy"))


def asset_pair() -> Schema:
    """What an asset says: `meta`, and the item by its kind."""
    rows = {each: asset_document.field_of(each) for each in asset_document.SOURCES}
    rows |= {other: rows[name] for other, name in asset_document.OTHER_SPELLINGS.items()}
    known = [name for name, row in rows.items() if row is not None]
    members = editor_members(AssetMeta) | dict.fromkeys(asset_document.META_IGNORED, ANYTHING)
    kinds = {"enum": [*known, *asset_document.NO_SOURCES]}
    members["kind"] = {"description": members["kind"]["description"], **kinds}
    meta = closed_map(members, required=("id", "kind"))
    parts: dict[str, Schema] = {"meta": meta, "spec": {"type": ["object", "null"]}}
    parts |= dict.fromkeys(asset_document.RESPONSE_MEMBERS, ANYTHING)
    schema = closed_map(parts, "A data source", required=("meta", "spec"))
    schema["allOf"] = [
        {
            "if": {"properties": {"meta": {"properties": {"kind": {"const": name}}}}},
            "then": {"properties": {"spec": asset_spec(row)}},
        }
        for name, row in rows.items()
        if row is not None
    ]
    return schema


def asset_spec(row: Field) -> Schema:
    """The item that an asset becomes, without its key."""
    schema = attributes_of(row, (items_of(row).key, "exclude"))
    others = (*asset_document.CREDENTIAL_IDS, *asset_document.SPEC_IGNORED)
    schema["properties"] |= dict.fromkeys(others, ANYTHING)
    return schema


def documents() -> dict[str, Schema]:
    """The schema of every form of policies and assets, by kind."""
    pair = asset_pair()
    return {
        CLUSTER_KIND: cluster_policy(),
        NAMESPACED_KIND: namespaced_policy(),
        BARE: bare_policy(),
        API: api_policy(),
        asset_document.KIND: {
            "oneOf": [custom_resource(asset_document.KIND, f"{GROUP}/{VERSION}", pair), pair],
            "description": "A data source that policies can impose",
        },
    }
