"""The CustomResourceDefinitions of podgate's own kinds, made from the tables and models that read them.

Policies keep unknown keys below `defaults` and `rules`: other spellings are accepted there, and a
rule that the API server dropped in silence would be a hole. The webhook for our own kinds judges
what a schema cannot.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from tools.definition_crd import STATUS, TEXT, Schema, of_map, unshared
from tools.schemas.definitions import BODY_TEXTS
from tools.schemas.leaves import described
from webhook.evaluation import exception as exceptions
from webhook.interface.names import OWN, PROVIDED, KindNames
from webhook.interface.profile_document import ProfileSpec
from webhook.policy.body_tree import ATTRIBUTES, INSTANCES
from webhook.policy.catalogue import GROUPS
from webhook.policy.envelope import CONTAINERS, ENFORCEMENTS, EXISTING, GROUP, VERSION
from webhook.policy.leaves import leaf_type
from webhook.policy.policy import COMPONENTS, ROLES, SCOPES
from webhook.policy.row import ALL_TYPES
from webhook.policy.selectors import OPERATORS
from webhook.policy.table import TABLE

OPEN: Final[Schema] = {"x-kubernetes-preserve-unknown-fields": True}
"""Anything: numbers stand beside their text, and lists beside one of their members."""
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
    """What the API calls one of our kinds, its spec, and what `kubectl get` shows of it."""

    names: KindNames
    about: str
    spec: Schema
    columns: tuple[Schema, ...] = ()


def column(name: str, path: str, kind: str = "string") -> Schema:
    """One column of `kubectl get`."""
    return {"name": name, "type": kind, "jsonPath": path}


def kinds() -> Iterator[Kind]:
    """Our kinds, in the order of semantics §9."""
    # Of the status, since a spec that says nothing has one too.
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
        "A data source that policies impose by its id.",
        asset_spec(),
        (column("Kind", ".spec.meta.kind"), column("Id", ".spec.meta.id")),
    )
    yield Kind(
        profiles,
        "How policy fields land on the workloads of one kind.",
        profile_spec(),
        (column("Group", ".spec.group"), column("Kind", ".spec.kind")),
    )
    yield Kind(
        excuses,
        "Objects that are excused from rules, by name, up to a value and until a date.",
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
    plain: Schema = unshared(made)
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
    """What the controller found out: conditions, problems, where the document is in force."""
    number: Schema = {"type": "integer", "format": "int64"}
    problem: Schema = {
        "type": "object",
        "description": "One fault of the document.",
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
        "scope": {**TEXT, "description": "The scope of a policy, also where it sets none."},
        "enforcement": {
            **TEXT,
            "description": "The enforcement of a policy, also where it sets none.",
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
            "description": "Everything that is wrong with it.",
            "items": problem,
        },
    }
    return {**STATUS, "properties": {**STATUS["properties"], **more}}


# Policies


def policy_spec(*, cluster: bool) -> Schema:
    """The spec of a policy of either kind."""
    properties: Schema = dict(cluster_members()) if cluster else {}
    properties |= {
        "excludeNamespaces": texts("Namespaces left out, by name."),
        "workloadTypes": {
            **texts("The types it is for; absent: all kinds.", ALL_TYPES),
            "minItems": 1,
        },
        "kinds": {
            "type": "array",
            "description": "The kinds it is for, instead of workloadTypes.",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ["kind"],
                "properties": {"group": dict(TEXT), "kind": {**TEXT, "minLength": 1}},
            },
        },
        "enforcement": choice(ENFORCEMENTS, "Warn and Audit refuse and write nothing."),
        "existing": choice(EXISTING, "strict: what is unchanged is evaluated too."),
        "containers": choice(CONTAINERS, "Which containers prohibitions bind."),
        "message": {**TEXT, "description": "Shown with every refusal by this policy."},
        "docsURL": {
            **TEXT,
            "pattern": "^(https?://.*)?$",
            "description": "Shown with every refusal by this policy.",
        },
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
        "description": "Whom the policy governs, how, and its defaults and rules.",
        "properties": properties,
        "x-kubernetes-validations": rules,
    }


def rule(text: str, message: str) -> Schema:
    """A check that the API server itself makes."""
    return {"rule": text, "message": message}


def choice(words: Iterable[str], description: str) -> Schema:
    """One of some words."""
    return {**TEXT, "enum": list(words), "description": description}


def texts(description: str, words: Iterable[str] = ()) -> Schema:
    """A list of texts, or of some words."""
    item = {**TEXT, "enum": list(words)} if words else dict(TEXT)
    return {"type": "array", "description": description, "items": item}


def cluster_members() -> Mapping[str, Schema]:
    """What only a policy of the cluster has."""
    scopes = [each for each in SCOPES if each != "project"]
    expression: Schema = {
        "type": "object",
        "required": ["key", "operator"],
        "properties": {
            "key": {**TEXT, "minLength": 1},
            "operator": {**TEXT, "enum": list(OPERATORS)},
            "values": {"type": "array", "items": dict(TEXT)},
        },
    }
    return {
        "scope": choice(scopes, "Broader scopes come first; absent: cluster."),
        "namespaceSelector": {
            "type": "object",
            "description": "The namespaces it governs, by their labels.",
            "properties": {
                "matchLabels": {"type": "object", "additionalProperties": dict(TEXT)},
                "matchExpressions": {"type": "array", "items": expression},
            },
        },
    }


def section(name: str, text: str) -> Schema:
    """`defaults` or `rules`: every field by its canonical name, other spellings kept."""
    tree: dict[str, Any] = {}
    for row in TABLE.fields.values():
        put(tree, row.path.split("."), leaf(row.path, name))
    roles = {role: {"description": GROUPS[role], **OPEN_MAP} for role in ROLES}
    components = {"description": "By the name of the component.", **OPEN_MAP}
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
    """A group of fields; a field that has others below it takes anything."""
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
    """What may stand for a field: a value or items below defaults, an object below rules."""
    told = {"description": described(leaf_type(path))}
    row = TABLE.fields[path]
    if row.items is not None and not row.extra_rules:
        parts = {INSTANCES: dict(OPEN), ATTRIBUTES: dict(OPEN)}
        return {**OPEN_MAP, **told, "properties": parts}
    if section_name == "rules":
        return {**OPEN_MAP, **told}
    return {**OPEN, **told}


# Others


def asset_spec() -> Schema:
    """An asset as the Assets API has it: meta and spec."""
    return {
        "type": "object",
        "description": "The pair that describes a data source.",
        "required": ["meta", "spec"],
        "properties": {
            "meta": {
                **OPEN_MAP,
                "description": "Which asset it is: id, name, kind, scope.",
                "properties": {
                    "id": dict(TEXT),
                    "name": dict(TEXT),
                    "kind": dict(TEXT),
                    "scope": dict(TEXT),
                },
            },
            "spec": {**OPEN_MAP, "description": "The data source, by its kind."},
        },
    }


def profile_spec() -> Schema:
    """The body of a WorkloadProfile."""
    return loosened(model_schema(ProfileSpec))


def exception_spec() -> Schema:
    """The body of a PolicyException."""
    schema = loosened(model_schema(exceptions.ExceptionSpec))
    values = schema["properties"]["rules"]["items"]["properties"]
    values["value"] = {**OPEN, "description": "Up to which value, or which values, it is excused."}
    schema["properties"]["until"] = {**TEXT, "pattern": f"^{exceptions.TIME.pattern}$"}
    return schema


def model_schema(model: Any) -> Schema:
    """The structural schema of one of our models."""
    given = model.model_json_schema(by_alias=True)
    models = given.pop("$defs", {})
    return of_map(model.__name__, given, models)


def loosened(schema: Schema) -> Schema:
    """The schema with anything where one text may stand for a list of them; it fills in nothing."""
    inner = schema.get("items", {})
    if schema.get("type") == "array" and inner.get("type") == "string":
        return dict(OPEN)
    made = {key: each for key, each in schema.items() if key != "default"}
    if "properties" in made:
        made["properties"] = {key: loosened(each) for key, each in made["properties"].items()}
    for below in ("items", "additionalProperties"):
        if isinstance(made.get(below), dict):
            made[below] = loosened(made[below])
    described_map = "properties" in made or "additionalProperties" in made
    if "type" not in made or (made["type"] == "object" and not described_map):
        made |= OPEN
    return made
