"""The CustomResourceDefinitions of resource interfaces, generated from the model that parses them.

Both kinds get the newer schema, which accepts every document of the older one. The tables below, by model and
key, add what a model cannot express: how lists are merged, and CEL rules.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from webhook.interface.document import InterfaceSpec
from webhook.interface.names import INTERFACES, PROVIDED, KindNames
from webhook.policy.envelope import VERSION

Schema = dict[str, Any]

ATOMIC: Final[Schema] = {"x-kubernetes-list-type": "atomic"}
SET: Final[Schema] = {"x-kubernetes-list-type": "set"}


def keyed_list(key: str) -> Schema:
    """A list whose items are identified by one key."""
    return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key]}


STATES: Final = (
    "initializing",
    "running",
    "completed",
    "failed",
    "degraded",
    "suspending",
    "suspended",
    "resuming",
)
MORE: Final[Mapping[tuple[str, str], Schema]] = {
    ("StructureDefinition", "childComponents"): keyed_list("name"),
    # By the kind alone, as upstream does: what is valid there must be valid here.
    ("StructureDefinition", "additionalChildKinds"): keyed_list("kind"),
    **{("StatusMappings", state): ATOMIC for state in STATES},
    ("Matcher", "byConditions"): ATOMIC,
    ("TypeSelector", "keyPath"): {"minLength": 1},
    ("SuspendPaths", "suspendActions"): ATOMIC,
    ("SuspendPaths", "resumeActions"): ATOMIC,
    ("SuspendAction", "value"): {"x-kubernetes-preserve-unknown-fields": True},
    ("GangScheduling", "podGroups"): keyed_list("name"),
    ("PodGroups", "members"): keyed_list("componentName"),
    ("Member", "groupByKeyPaths"): SET,
    ("Member", "filters"): SET,
    ("PodGroup", "subGroups"): keyed_list("componentName"),
}
"""The schema of a property besides its type."""

REQUIRED: Final[Mapping[str, tuple[str, ...]]] = {
    "KindName": ("group", "version", "kind"),
    "ComponentModel": ("name",),
    "ConditionsPath": ("path", "typeFieldName", "statusFieldName"),
}
"""Required members of a stored document that are optional in the model."""

RULES: Final[Mapping[str, tuple[tuple[str, str], ...]]] = {
    "TypeSelector": (
        ("has(self.keyPath) || has(self.matchLabels)", "keyPath, matchLabels or both must be set"),
        ("!has(self.value) || has(self.keyPath)", "value needs a keyPath to be compared with"),
    ),
}
"""CEL rules of a map, each with the message if it is violated."""


STRUCTURE: Final = ".spec.structureDefinition.rootComponent"
COLUMNS: Final = (
    {"name": "Framework", "type": "string", "jsonPath": f"{STRUCTURE}.kind.kind"},
    {"name": "Root Component", "type": "string", "jsonPath": f"{STRUCTURE}.name"},
    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
)
TEXT: Final[Schema] = {"type": "string"}
STATUS: Final[Schema] = {
    "type": "object",
    "description": "What those who use the definition found out about it.",
    "properties": {
        "conditions": {
            "type": "array",
            "description": "One condition for each question.",
            **keyed_list("type"),
            "items": {
                "type": "object",
                "description": "The answer to one question.",
                "required": ["lastTransitionTime", "message", "reason", "status", "type"],
                "properties": {
                    "type": {**TEXT, "maxLength": 316, "description": "The question."},
                    "status": {
                        **TEXT,
                        "enum": ["True", "False", "Unknown"],
                        "description": "The answer.",
                    },
                    "reason": {
                        **TEXT,
                        "minLength": 1,
                        "maxLength": 1024,
                        "description": "The answer's reason, one word for programs.",
                    },
                    "message": {
                        **TEXT,
                        "maxLength": 32768,
                        "description": "The answer's reason, a sentence for people.",
                    },
                    "lastTransitionTime": {
                        **TEXT,
                        "format": "date-time",
                        "description": "When the answer last changed.",
                    },
                    "observedGeneration": {
                        "type": "integer",
                        "format": "int64",
                        "minimum": 0,
                        "description": "The generation of the object that was evaluated.",
                    },
                },
            },
        }
    },
}


def definitions() -> Iterator[Schema]:
    """The CustomResourceDefinition of each kind."""
    for names in INTERFACES:
        yield definition(names)


def definition(names: KindNames) -> Schema:
    """The CustomResourceDefinition of one kind, as the API server takes it."""
    made: Schema = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": names.full, "labels": {PROVIDED: "true"}},
        "spec": {
            "group": names.group,
            "scope": "Cluster",
            "names": {
                "kind": names.kind,
                "listKind": f"{names.kind}List",
                "plural": names.plural,
                "singular": names.kind.lower(),
                "shortNames": [names.short],
            },
            "versions": [
                {
                    "name": VERSION,
                    "served": True,
                    "storage": True,
                    "additionalPrinterColumns": [dict(each) for each in COLUMNS],
                    "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": body(names)},
                }
            ],
        },
    }
    plain: Schema = copy_unshared(made)
    return plain


def copy_unshared(value: Any) -> Any:
    """A copy without shared parts, which YAML would write as references."""
    if isinstance(value, dict):
        return {key: copy_unshared(each) for key, each in value.items()}
    return [copy_unshared(each) for each in value] if isinstance(value, list) else value


def body(names: KindNames) -> Schema:
    """The structural schema of a whole document."""
    return {
        "type": "object",
        "description": f"A {names.kind} describes where a kind has its pods, replicas and status.",
        "required": ["spec"],
        "properties": {
            "apiVersion": {**TEXT, "description": f"{names.group}/{VERSION}"},
            "kind": {**TEXT, "description": names.kind},
            "metadata": {"type": "object"},
            "spec": spec(),
            "status": STATUS,
        },
    }


def spec() -> Schema:
    """The structural schema of the spec, made from the model."""
    given = InterfaceSpec.model_json_schema(by_alias=True)
    models = given.pop("$defs")
    return of_map("InterfaceSpec", given, models)


def of_map(name: str, schema: Schema, models: Mapping[str, Schema]) -> Schema:
    """The schema of one model."""
    required = sorted({*schema.get("required", ()), *REQUIRED.get(name, ())})
    result: Schema = {
        "type": "object",
        "description": schema["description"],
        "properties": {
            key: {**of_value(each, models), **MORE.get((name, key), {})}
            for key, each in schema["properties"].items()
        },
    }
    if required:
        result["required"] = required
    if name in RULES:
        result["x-kubernetes-validations"] = [
            {"rule": rule, "message": message} for rule, message in RULES[name]
        ]
    return result


def of_value(schema: Schema, models: Mapping[str, Schema]) -> Schema:
    """The schema of a property: without references, titles and null, which means absent."""
    inner = dict(schema)
    for title in ("title", "additionalProperties"):
        if not isinstance(inner.get(title), dict):
            inner.pop(title, None)
    # What is absent is not stored as null or as empty text.
    if inner.get("default", ...) in (None, ""):
        del inner["default"]
    if "anyOf" in inner:
        (only,) = (each for each in inner.pop("anyOf") if each.get("type") != "null")
        inner = {**of_value(only, models), **inner}
    if "$ref" in inner:
        name = inner.pop("$ref").rpartition("/")[2]
        inner = {**of_map(name, models[name], models), **inner}
    for below in ("items", "additionalProperties"):
        if isinstance(inner.get(below), dict):
            inner[below] = of_value(inner[below], models)
    return inner
