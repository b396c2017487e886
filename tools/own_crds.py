"""The CustomResourceDefinitions of podgate's own kinds, generated from the tables and models that parse them.

Policies keep unknown keys below `defaults` and `rules`: other spellings are accepted there, and a rule that
the API server silently dropped would be a security hole. The webhook for podgate's own kinds checks what a
schema cannot.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from tools.definition_crd import STATUS, TEXT, Schema, copy_unshared, of_map
from tools.schemas.definitions import BODY_TEXTS
from tools.schemas.leaves import describe_leaf
from tools.schemas.models import model_schema
from webhook.evaluation.exception import PolicyException
from webhook.interface.names import OWN, PROVIDED, KindNames
from webhook.interface.profile import Profile
from webhook.policy.asset_document import AssetMeta
from webhook.policy.body_tree import ATTRIBUTES, INSTANCES
from webhook.policy.catalogue import GROUPS
from webhook.policy.envelope import GROUP, VERSION
from webhook.policy.leaves import leaf_type
from webhook.policy.policy import COMPONENTS, ROLES
from webhook.policy.policy_spec import ClusterPolicySpec, PolicySpec
from webhook.policy.table import TABLE

OPEN: Final[Schema] = {"x-kubernetes-preserve-unknown-fields": True}
"""Any value: a number or its text, a list or one of its members."""
OPEN_MAP: Final[Schema] = {"type": "object", "nullable": True, **OPEN}
AGE: Final[Schema] = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}
READY: Final[Schema] = {
    "name": "Ready",
    "type": "string",
    "jsonPath": '.status.conditions[?(@.type=="Ready")].status',
}
REASON: Final[Schema] = {
    "name": "Reason",
    "type": "string",
    "priority": 1,
    "jsonPath": '.status.conditions[?(@.type=="Ready")].message',
}


@dataclass(frozen=True, slots=True)
class Kind:
    """One of podgate's kinds: its names, its spec, and its columns in `kubectl get`."""

    names: KindNames
    about: str
    spec: Schema
    columns: tuple[Schema, ...] = ()


def column(name: str, path: str, kind: str = "string") -> Schema:
    """One column of `kubectl get`."""
    return {"name": name, "type": kind, "jsonPath": path}


def kinds() -> Iterator[Kind]:
    """podgate's kinds, in the order of semantics §9."""
    # From the status, since a spec may omit it.
    enforcement = column("Enforcement", ".status.enforcement")
    policies, cluster_policies, data_sources, profiles, excuses = OWN
    yield Kind(
        policies,
        "A policy for the workloads of its namespace.",
        policy_spec(cluster=False),
        (enforcement,),
    )
    yield Kind(
        cluster_policies,
        "A policy for workloads of all namespaces, or of those that it selects.",
        policy_spec(cluster=True),
        (column("Scope", ".status.scope"), enforcement),
    )
    yield Kind(
        data_sources,
        "A data source that policies impose by its ID.",
        asset_spec(),
        (column("Kind", ".spec.meta.kind"), column("Id", ".spec.meta.id")),
    )
    yield Kind(
        profiles,
        "Where policy fields are in the workloads of one kind.",
        profile_spec(),
        (column("Group", ".spec.group"), column("Kind", ".spec.kind")),
    )
    yield Kind(
        excuses,
        "Objects that are exempt from rules, by name, up to a value and until a date.",
        exception_spec(),
        (column("Until", ".spec.until"), column("Why", ".spec.reason")),
    )


def definitions() -> Iterator[Schema]:
    """The CustomResourceDefinition of each of our kinds."""
    for each in kinds():
        yield definition(each)


def definition(kind: Kind) -> Schema:
    """One CustomResourceDefinition, as the API server takes it."""
    made: Schema = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": kind.names.full, "labels": {PROVIDED: "true"}},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced" if kind.names.namespaced else "Cluster",
            "names": {
                "kind": kind.names.kind,
                "listKind": f"{kind.names.kind}List",
                "plural": kind.names.plural,
                "singular": kind.names.kind.lower(),
                "shortNames": [kind.names.short],
                "categories": ["podgate"],
            },
            "versions": [
                {
                    "name": VERSION,
                    "served": True,
                    "storage": True,
                    "additionalPrinterColumns": [*kind.columns, READY, REASON, AGE],
                    "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": body(kind)},
                }
            ],
        },
    }
    plain: Schema = copy_unshared(made)
    return plain


def body(kind: Kind) -> Schema:
    """The structural schema of a whole document."""
    return {
        "type": "object",
        "description": kind.about,
        "required": ["spec"],
        "properties": {
            "apiVersion": {**TEXT, "description": f"{GROUP}/{VERSION}"},
            "kind": {**TEXT, "description": kind.names.kind},
            "metadata": {"type": "object"},
            "spec": kind.spec,
            "status": status(),
        },
    }


def status() -> Schema:
    """What the controller reports: conditions, problems, where the document is in force."""
    number: Schema = {"type": "integer", "format": "int64"}
    problem: Schema = {
        "type": "object",
        "description": "One problem of the document.",
        "properties": {
            key: {**TEXT, "description": text}
            for key, text in (
                ("path", "Where it is."),
                ("found", "What is there."),
                ("fix", "What to write instead."),
                ("reason", "One word for programs."),
                ("severity", "error, warning or note."),
            )
        },
    }
    more: Schema = {
        "observedGeneration": {**number, "description": "The generation that was evaluated."},
        "generationInForce": {
            **number,
            "description": "The lowest generation that a webhook process uses.",
        },
        "scope": {**TEXT, "description": "The scope of a policy, also if it sets none."},
        "enforcement": {
            **TEXT,
            "description": "The enforcement of a policy, also if it sets none.",
        },
        "workers": {**number, "description": "How many webhook processes have reported it."},
        "kinds": {
            "type": "array",
            "description": "The kinds of workloads that it governs, the first hundred.",
            "items": dict(TEXT),
        },
        "withoutDefinition": {
            "type": "array",
            "description": "Kinds and versions that the cluster serves and it would govern, if they"
            " had a definition; the first hundred.",
            "items": dict(TEXT),
        },
        "problems": {
            "type": "array",
            "description": "All problems of the document.",
            "items": problem,
        },
    }
    return {**STATUS, "properties": {**STATUS["properties"], **more}}


# Policies


def policy_spec(*, cluster: bool) -> Schema:
    """The spec of a policy of either kind."""
    model = structural(ClusterPolicySpec if cluster else PolicySpec)
    properties: Schema = without_defaults(model)["properties"] | {
        **{name: section(name, text) for name, text in BODY_TEXTS.items()},
        "imposedAssets": {"description": GROUPS["imposedAssets"], **OPEN},
    }
    rules = [
        rule("!has(self.workloadTypes) || !has(self.kinds)", "workloadTypes or kinds, not both")
    ]
    if cluster:
        selected = "!has(self.scope) || self.scope != 'department' || has(self.namespaceSelector)"
        rules.append(rule(selected, "scope department needs a namespaceSelector"))
    return {
        "type": "object",
        "description": "What the policy governs, its enforcement, defaults and rules.",
        "properties": properties,
        "x-kubernetes-validations": rules,
    }


def without_defaults(schema: Any) -> Any:
    """A schema without defaults."""
    if isinstance(schema, dict):
        return {key: without_defaults(each) for key, each in schema.items() if key != "default"}
    return schema


def rule(text: str, message: str) -> Schema:
    """A check that the API server itself makes."""
    return {"rule": text, "message": message}


def section(name: str, text: str) -> Schema:
    """`defaults` or `rules`: every field by its canonical name, other spellings kept."""
    tree: dict[str, Any] = {}
    for row in TABLE.fields.values():
        put(tree, row.path.split("."), leaf(row.path, name))
    roles = {role: {"description": GROUPS[role], **OPEN_MAP} for role in ROLES}
    components = {"description": "By component name.", **OPEN_MAP}
    return {**group(tree, ""), "description": text} | {
        "properties": {**group(tree, "")["properties"], **roles, COMPONENTS: components}
    }


def put(tree: dict[str, Any], steps: list[str], schema: Schema) -> None:
    """Put a leaf below its groups."""
    for step in steps[:-1]:
        tree = tree.setdefault(step, {})
    tree[steps[-1]] = {LEAF: schema}


LEAF: Final = ""


def group(tree: Mapping[str, Any], path: str) -> Schema:
    """A group of fields; a field with other fields below it accepts anything."""
    properties = {}
    for name, below in tree.items():
        if name == LEAF:
            continue
        here = f"{path}.{name}" if path else name
        if LEAF in below:
            properties[name] = below[LEAF]
        else:
            properties[name] = {**group(below, here), "description": GROUPS.get(here, name)}
    return {**OPEN_MAP, "properties": properties}


def leaf(path: str, section_name: str) -> Schema:
    """The value of a field: a value or items below defaults, an object below rules."""
    description = {"description": describe_leaf(leaf_type(path))}
    row = TABLE.fields[path]
    if row.items is not None and not row.extra_rules:
        parts = {INSTANCES: dict(OPEN), ATTRIBUTES: dict(OPEN)}
        return {**OPEN_MAP, **description, "properties": parts}
    if section_name == "rules":
        return {**OPEN_MAP, **description}
    return {**OPEN, **description}


# Others


def asset_spec() -> Schema:
    """An asset as the Assets API has it: meta and spec."""
    meta = loosen(structural(AssetMeta))
    del meta["required"]
    return {
        "type": "object",
        "description": "The metadata and spec of a data source.",
        "required": ["meta", "spec"],
        "properties": {
            "meta": {**meta, **OPEN_MAP},
            "spec": {**OPEN_MAP, "description": "The data source, by its kind."},
        },
    }


def profile_spec() -> Schema:
    """The body of a WorkloadProfile."""
    return loosen(structural(Profile))


def exception_spec() -> Schema:
    """The body of a PolicyException."""
    return loosen(structural(PolicyException))


def structural(model: type) -> Schema:
    """The structural schema of a model."""
    return of_map(model.__name__, *model_schema(model))


def loosen(schema: Schema) -> Schema:
    """The schema without defaults, with any value where one text may replace a list of texts."""
    inner = schema.get("items", {})
    if schema.get("type") == "array" and inner.get("type") == "string":
        return {key: each for key, each in schema.items() if key == "description"} | OPEN
    made = {key: each for key, each in schema.items() if key != "default"}
    if "properties" in made:
        made["properties"] = {key: loosen(each) for key, each in made["properties"].items()}
    for below in ("items", "additionalProperties"):
        if isinstance(made.get(below), dict):
            made[below] = loosen(made[below])
    described_map = "properties" in made or "additionalProperties" in made
    if "type" not in made or (made["type"] == "object" and not described_map):
        made |= OPEN
    return made
