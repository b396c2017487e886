"""The JSON Schema of every form of policies and assets, for editors."""

from __future__ import annotations

from tools.schemas.definitions import BODY_TEXTS
from tools.schemas.fields import attributes_of
from tools.schemas.forms import ANYTHING, TEXT, Schema, any_case, choice, closed, ref
from webhook.policy import asset_document as assets
from webhook.policy import forms
from webhook.policy.envelope import (
    BODY,
    CLUSTER_KIND,
    CONTAINERS,
    ENFORCEMENTS,
    EXISTING,
    GROUP,
    NAMESPACED_KIND,
    OBJECT_MEMBERS,
    VERSION,
)
from webhook.policy.leaves import items_of
from webhook.policy.policy import SCOPES
from webhook.policy.row import ALL_TYPES, Field

BARE, API = "bare", "api"


def body() -> dict[str, Schema]:
    """The three sections."""
    described_body = {name: {"description": text, **ref(name)} for name, text in BODY_TEXTS.items()}
    return {**described_body, "imposedAssets": ref("imposedAssets")}


def treatment() -> dict[str, Schema]:
    """What policies of both kinds say beside the body."""
    kind = closed({"group": TEXT, "kind": {"type": "string", "minLength": 1}}, required=("kind",))
    address: Schema = {"type": ["string", "null"], "pattern": "^(https?://.*)?$"}
    types: Schema = {"type": ["array", "null"], "minItems": 1, "items": {"enum": list(ALL_TYPES)}}
    names: Schema = {"type": ["array", "null"], "items": {"type": "string"}}
    kinds: Schema = {"type": ["array", "null"], "minItems": 1, "items": kind}
    return {
        "excludeNamespaces": {"description": "Namespaces left out, by name.", **names},
        "workloadTypes": {"description": "The types it is for; absent: all kinds.", **types},
        "kinds": {"description": "The kinds it is for, instead of workloadTypes.", **kinds},
        "enforcement": choice(ENFORCEMENTS, "Warn and Audit refuse and write nothing."),
        "existing": choice(EXISTING, "strict: what is unchanged is evaluated too."),
        "containers": choice(CONTAINERS, "Which containers prohibitions bind."),
        "message": {"description": "Shown with every refusal by this policy.", **TEXT},
        "docsURL": {"description": "Shown with every refusal by this policy.", **address},
    }


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
    return closed(members, kind, required=("apiVersion", "kind", "metadata", "spec"))


def cluster_policy() -> Schema:
    """A ClusterWorkloadPolicy."""
    scopes = [each for each in SCOPES if each != "project"]
    members = {
        "scope": choice(scopes, "Broader scopes come first; absent: cluster."),
        "namespaceSelector": {"description": "The namespaces it governs.", **ref("selector")},
        **treatment(),
        **body(),
    }
    spec = closed(members, required=(), other_case=any_case(BODY))
    spec["type"] = "object"
    is_department = {"properties": {"scope": {"const": "department"}}, "required": ["scope"]}
    selecting = {"required": ["namespaceSelector"]}
    spec["allOf"] = [NOT_BOTH, {"if": is_department, "then": selecting}]
    return custom_resource(CLUSTER_KIND, f"{GROUP}/{VERSION}", spec)


def namespaced_policy() -> Schema:
    """A WorkloadPolicy."""
    spec = closed({**treatment(), **body()}, other_case=any_case(BODY))
    spec |= {"type": "object", "allOf": [NOT_BOTH]}
    return custom_resource(NAMESPACED_KIND, f"{GROUP}/{VERSION}", spec)


def bare_policy() -> Schema:
    """A body as an admin types it."""
    schema = closed(body(), "A policy without envelope", other_case=any_case(BODY))
    return {**schema, "type": "object", "minProperties": 1}


def api_policy() -> Schema:
    """The form of the API."""
    members: dict[str, Schema] = dict.fromkeys(forms.META_MEMBERS, TEXT)
    members |= dict.fromkeys(forms.META_IGNORED, ANYTHING)
    members |= {"name": {"type": "string", "minLength": 1}, "scope": {"enum": list(SCOPES)}}
    meta = closed(members, required=("name", "scope"))
    inner = closed({**body(), "status": ANYTHING}, other_case=any_case(BODY))
    ignored = dict.fromkeys(forms.API_IGNORED, ANYTHING)
    parts = {"meta": meta, "policy": inner, **ignored}
    return closed(parts, "A policy in the form of the API", required=("meta", "policy"))


def asset_pair() -> Schema:
    """What an asset says: `meta`, and the item by its kind."""
    rows = {each: assets.field_of(each) for each in assets.SOURCES}
    rows |= {other: rows[name] for other, name in assets.OTHER_SPELLINGS.items()}
    known = [name for name, row in rows.items() if row is not None]
    members: dict[str, Schema] = dict.fromkeys(assets.META_MEMBERS, TEXT)
    members |= dict.fromkeys(assets.META_IGNORED, ANYTHING)
    members |= {"kind": {"enum": [*known, *assets.NO_SOURCES]}, "scope": choice(SCOPES)}
    meta = closed(members, required=("id", "kind"))
    parts: dict[str, Schema] = {"meta": meta, "spec": {"type": ["object", "null"]}}
    parts |= dict.fromkeys(assets.RESPONSE_MEMBERS, ANYTHING)
    schema = closed(parts, "A data source", required=("meta", "spec"))
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
    others = (*assets.CREDENTIAL_IDS, *assets.SPEC_IGNORED)
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
        assets.KIND: {
            "oneOf": [custom_resource(assets.KIND, f"{GROUP}/{VERSION}", pair), pair],
            "description": "A data source that policies can impose",
        },
    }
