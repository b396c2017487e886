"""CRDs of kinds whose project is in no registry, built from an outline of their fields.

An outline (`outlines.yaml`) states facts only: the name of each field and its type. A name that ends
in `!` is required, `type=value` is a default, `[x]` a list, `{'*': x}` a map. A type that begins with
a capital is one of Kubernetes' own: its schema is read from the Pod template of a pinned CRD.
`newer.yaml` has, in the same notation, what releases after the pinned ones add to a CRD; there
`@PATH` is the schema that the CRD has at another path and `any` an object of unknown fields.
"""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any

import yaml

from tests.e2e.testbed import upstream

Schema = dict[str, Any]
FILE = Path(__file__).with_name("outlines.yaml")
NEWER = Path(__file__).with_name("newer.yaml")
STEP = re.compile(r"\.([^.\[{]+)|(\[\])|(\{\})")
SCALARS = frozenset({"string", "integer", "number", "boolean"})
OPEN: Schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
QUANTITY: Schema = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "x-kubernetes-int-or-string": True,
}
_POD = ("spec", "leaderWorkerTemplate", "leaderTemplate", "spec")
_MAIN = (*_POD, "containers", "[]")
TYPES = {
    "Affinity": (*_POD, "affinity"),
    "PodAffinity": (*_POD, "affinity", "podAffinity"),
    "Tolerations": (*_POD, "tolerations"),
    "EnvVars": (*_MAIN, "env"),
    "Port": (*_MAIN, "ports", "[]"),
    "Probe": (*_MAIN, "livenessProbe"),
    "ResourceRequirements": (*_MAIN, "resources"),
    "Condition": ("status", "conditions", "[]"),
}
"""Where the CRD of LeaderWorkerSet has each type of Kubernetes."""


def named(name: str) -> Schema:
    """The schema of one of Kubernetes' types; raises MissingTestbed."""
    crd = upstream.crd("lws", "leaderworkersets.leaderworkerset.x-k8s.io")
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    for step in TYPES[name]:
        schema = schema["items"] if step == "[]" else schema["properties"][step]
    return dict(schema)


def steps(path: str) -> list[str]:
    """The steps of a path such as .spec.list[].map{}: names of fields, items and values."""
    return [name or items or values for name, items, values in STEP.findall(path)]


def at(schema: Schema, path: list[str]) -> Schema:
    """The schema at a path that is there."""
    for step in path:
        key = {"[]": "items", "{}": "additionalProperties"}.get(step)
        schema = schema[key] if key else schema["properties"][step]
    return schema


def with_newer(file: str, crd: Any) -> Any:
    """A pinned CRD with what newer releases add to it."""
    crd = copy.deepcopy(crd)
    newer = yaml.load(NEWER.read_text("utf-8"), yaml.CSafeLoader).get(file, {})
    for version in crd["spec"]["versions"]:
        root = version["schema"]["openAPIV3Schema"]
        for path, outline in newer.get(version["name"], {}).items():
            *above, last = steps(path)
            holder = at(root, above)
            if outline == "any":
                holder["properties"][last] = {"x-kubernetes-preserve-unknown-fields": True}
                continue
            found = schema_of(outline, root)
            if last in ("[]", "{}"):
                known = at(holder, [last])
            else:
                known = holder.setdefault("properties", {}).setdefault(last, {})
            known.pop("default", None)
            known.update(found)
    return crd


def schema_of(outline: Any, root: Schema | None = None) -> Schema:
    """The OpenAPI schema of one outline; `root` is what `@PATH` refers to."""
    if isinstance(outline, list):
        return {"type": "array", "items": schema_of(outline[0], root)}
    if isinstance(outline, dict):
        if "*" in outline:
            return {"type": "object", "additionalProperties": schema_of(outline["*"], root)}
        fields = {name.rstrip("!"): schema_of(each, root) for name, each in outline.items()}
        required = [name[:-1] for name in outline if name.endswith("!")]
        found: Schema = {"type": "object", "properties": fields}
        return {**found, "required": required} if required else found
    word, _, default = str(outline).partition("=")
    if word.startswith("@") and root is not None:
        return copy.deepcopy(at(root, steps(word[1:])))
    if word in SCALARS:
        return {"type": word, **({"default": json.loads(default)} if default else {})}
    return {"object": OPEN, "quantity": QUANTITY}.get(word) or named(word)


def crds() -> dict[str, Any]:
    """Every outlined CRD by name; raises MissingTestbed."""
    found = {}
    for name, outline in yaml.safe_load(FILE.read_text("utf-8")).items():
        plural, _, group = name.partition(".")
        kind, version = outline["kind"], outline["version"]
        schema = schema_of({key: outline[key] for key in outline.keys() - {"kind", "version"}})
        meta = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}}
        schema["properties"] |= {**meta, "metadata": {"type": "object"}}
        names = {
            "kind": kind,
            "listKind": f"{kind}List",
            "plural": plural,
            "singular": kind.lower(),
        }
        served = {
            "name": version,
            "served": True,
            "storage": True,
            "schema": {"openAPIV3Schema": schema},
            **({"subresources": {"status": {}}} if "status" in outline else {}),
        }
        found[name] = {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": name},
            "spec": {"group": group, "names": names, "scope": "Namespaced", "versions": [served]},
        }
    return found
