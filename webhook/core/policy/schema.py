"""Writes the JSON Schema of policies and assets from the tables, for editors.

What the parser accepts is valid, other letter case and the aliases included: those are deprecated.
What only the parser can see (bounds, references, contradictions) is left to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from webhook.core.policy import assets, forms, object_shapes, rules, values
from webhook.core.policy.catalogue import GROUPS
from webhook.core.policy.default_from import ROLE_WORDS
from webhook.core.policy.envelope import (
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
from webhook.core.policy.fields import TABLE
from webhook.core.policy.leaves import LeafType, items_of, leaf_type
from webhook.core.policy.model import ROLES, SCOPES
from webhook.core.policy.row import ALL_TYPES, Field, Items
from webhook.core.policy.rule_objects import ITEM_RULES
from webhook.core.policy.selectors import OPERATORS
from webhook.core.policy.spelling import join
from webhook.core.policy.tree import ATTRIBUTES, COMPONENTS, INSTANCES

Schema = dict[str, Any]
DIALECT = "https://json-schema.org/draft/2020-12/schema"
BARE, API = "bare", "api"
NULL: Schema = {"type": "null"}
TEXT: Schema = {"type": ["string", "number", "boolean", "null"]}
"""Text, and what YAML makes of it: the parser goes by the source text."""
TEXTS: Schema = {"type": ["array", "null"], "items": {"type": ["string", "number", "boolean"]}}
FILE_MODE: Schema = {"type": ["string", "integer", "null"], "pattern": "^0?[0-7]{3}$"}
FLAG: Schema = {"enum": [True, False, "true", "false", None]}
ANYTHING: Schema = {}

BODY_TEXTS = {
    "defaults": "Values for what a workload leaves open.",
    "rules": "What workloads may say; the same tree as defaults.",
}

VALUES: Mapping[str, Schema] = {
    "boolean": FLAG,
    "string": TEXT,
    "integer": {"type": ["integer", "string", "null"], "pattern": r"^[+-]?[0-9]{1,19}$"},
    "number": {
        "type": ["number", "string", "null"],
        "pattern": r"^[+-]?[0-9.]+([eE][+-]?[0-9]+)?$",
    },
    "quantity": {
        "type": ["number", "string", "null"],
        "pattern": r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]+)?$",
    },
    "array": TEXTS,
    "object": {"type": ["object", "null"]},
}
"""The schema of each type of value; a type that is not here takes anything."""


def ref(name: str) -> Schema:
    """A reference to a definition."""
    return {"$ref": f"#/$defs/{name}"}


def closed(
    properties: Mapping[str, Schema],
    description: str = "",
    *,
    required: Iterable[str] = (),
    other_case: str = "",
) -> Schema:
    """A map that has these members only, or null; `other_case` is a pattern for more of them."""
    schema: Schema = {"type": ["object", "null"]}
    if description:
        schema["description"] = description
    schema["properties"] = dict(properties)
    if other_case:
        schema["patternProperties"] = {other_case: True}
    if listed := sorted(required):
        schema["required"] = listed
        schema["type"] = "object"
    schema["additionalProperties"] = False
    return schema


def any_case(names: Iterable[str], between: str = "") -> str:
    """A pattern for names in whatever letter case, with `between` allowed between letters."""
    return f"^(?:{'|'.join(between.join(letters(name)) for name in sorted(names))})$"


def letters(name: str) -> list[str]:
    """Each character of a name as a pattern for both its cases."""
    return [f"[{c.lower()}{c.upper()}]" if c.isalpha() else f"[{c}]" for c in name]


def anycase_closed(properties: Mapping[str, Schema], description: str = "") -> Schema:
    """A map whose members' letter case does not matter."""
    return closed(properties, description, other_case=any_case(properties))


# Leaves


def sentence(text: str) -> str:
    """The first letter a capital, a full stop at the end."""
    return f"{text[:1].upper()}{text[1:].rstrip('.')}." if text else ""


def described(leaf: LeafType) -> str:
    """What an editor shows of a leaf: the note in the table, else what is to be written."""
    note = TABLE.attributes[leaf.path][1].note if leaf.is_attribute else leaf.row.note
    return sentence(note or leaf.wanted)


def value_of(leaf: LeafType) -> Schema:
    """What may be written as a value of a leaf."""
    if leaf.enum:
        words = [*leaf.enum, *(spelled for spelled, _ in leaf.spellings)]
        schema: Schema = {"enum": [*words, None]}
        return {"type": ["array", "null"], "items": {"enum": words}} if leaf.is_array else schema
    if leaf.path in object_shapes.MEMBERS:
        names = object_shapes.MEMBERS[leaf.path]
        return {**closed(dict.fromkeys(names, TEXT), required=names), "type": ["object", "null"]}
    if leaf.codec is values.AMOUNT_TEXT:
        return VALUES["quantity"]
    if leaf.codec is values.FILE_MODE:
        return FILE_MODE
    schema = dict(VALUES.get(leaf.value, ANYTHING))
    if leaf.value == "string" and takes_list(leaf):
        schema = {"anyOf": [schema, TEXTS]}
    return schema


def takes_list(leaf: LeafType) -> bool:
    """Whether a list may stand for the text, as it may for command lines."""
    try:
        leaf.codec.parse(["a"], None)
    except (ValueError, TypeError):
        return False
    return True


def rules_of(leaf: LeafType, legal: frozenset[str]) -> Schema:
    """The rules object of a leaf: that of its type of value, with what the leaf is."""
    return {"description": described(leaf), **ref(ruleset_name(leaf, legal))}


def ruleset_name(leaf: LeafType, legal: frozenset[str]) -> str:
    """What distinguishes a rules object: the type of value, its words, and what is legal there."""
    own = values.TABLE[leaf.value].rules
    more = [f"with-{each}" for each in sorted(legal - own)]
    less = [f"without-{each}" for each in sorted(own - legal)]
    words = [*leaf.enum] if leaf.enum else ["or-list"] if takes_list(leaf) else []
    if leaf.codec in (values.AMOUNT_TEXT, values.FILE_MODE):
        words = ["amount" if leaf.codec is values.AMOUNT_TEXT else "file-mode"]
    return ":".join(("ruleset", leaf.value, *words, *more, *less))


def ruleset(leaf: LeafType, legal: frozenset[str]) -> Schema:
    """The rules object of leaves like this one."""
    properties = {
        name: {"description": sentence(rules.TABLE[name].meaning), **argument_of(leaf, name)}
        for name in rules.TABLE
        if name in legal
    }
    return closed(properties, other_case=any_case(legal, "[-_]*"))


def rule_leaves() -> Iterator[tuple[LeafType, frozenset[str]]]:
    """Every leaf that takes rules, with those that it takes."""
    for row in TABLE.fields.values():
        leaf = leaf_type(row.path)
        if row.items is None:
            yield leaf, leaf.legal
            continue
        yield leaf, ITEM_RULES
        if row.extra_rules:
            yield as_array(row), row.extra_rules
        for each in row.items.attributes:
            inner = leaf_type(f"{row.path}.{each.name}")
            if inner.legal:
                yield inner, inner.legal


def as_array(row: Field) -> LeafType:
    """An itemized field that takes array rules too, as an array."""
    return LeafType(row.path, "array", values.ARRAY, row)


def argument_of(leaf: LeafType, name: str) -> Schema:
    """The argument of a rule."""
    match rules.TABLE[name].argument:
        case "boolean":
            return FLAG
        case "keys":
            return TEXTS
        case "source":
            factor = {"type": ["number", "string", "null"], "exclusiveMinimum": 0}
            return anycase_closed({"field": {"type": "string"}, "factor": factor})
        case "options":
            element: Schema = TEXT if leaf.is_array and not leaf.enum else value_of(leaf)
            if leaf.is_array and leaf.enum:
                element = {"enum": list(leaf.enum)}
            option = anycase_closed({"value": element, "displayed": TEXT})
            return {
                "type": ["array", "null"],
                "minItems": 1,
                "items": {"anyOf": [element, option]},
            }
        case _:
            return value_of(leaf)


# Trees


class Tree:
    """Sections and leaves by their dotted names, made into nested maps."""

    def __init__(self) -> None:
        self.members: dict[str, Tree | Schema] = {}

    def add(self, name: str, schema: Schema) -> None:
        """Put a leaf at its place, unless one stands there or above it; a section gives way to it."""
        head, _, rest = name.partition(".")
        if not rest:
            if isinstance(self.members.get(head), Tree):
                del self.members[head]
            self.members.setdefault(head, schema)
            return
        below = self.members.setdefault(head, Tree())
        if isinstance(below, Tree):
            below.add(rest, schema)

    def properties(self, prefix: str = "") -> dict[str, Schema]:
        """The members as schemas; groups are described by their dotted names below `prefix`."""
        found: dict[str, Schema] = {}
        for name, below in self.members.items():
            path = join(prefix, name)
            if isinstance(below, Tree):
                text = sentence(GROUPS.get(path, ""))
                found[name] = anycase_closed(below.properties(path), text)
            else:
                found[name] = below
        return found


def deprecated(schema: Schema, name: str) -> Schema:
    """The schema of another spelling."""
    return {**schema, "deprecated": True, "description": f"Write {name}."}


def tree_of(leaves: Mapping[str, Schema], aliases: Mapping[str, str]) -> Tree:
    """The leaves at their names, then at their other spellings."""
    tree = Tree()
    for name, schema in leaves.items():
        tree.add(name, schema)
    for alias, name in aliases.items():
        if name in leaves:
            tree.add(alias, deprecated(leaves[name], name))
    return tree


def attribute_aliases(row: Field) -> dict[str, str]:
    """Other spellings of the attributes of a field."""
    prefix = f"{row.path}."
    return {
        alias.removeprefix(prefix): name.removeprefix(prefix)
        for alias, name in TABLE.aliases.items()
        if name in TABLE.attributes and alias.startswith(prefix) and name.startswith(prefix)
    }


def attributes_of(row: Field, without: Iterable[str] = ()) -> Schema:
    """An item of a field, or the defaults of its attributes."""
    left_out = set(without)
    leaves = {
        each.name: {"description": described(leaf), **value_of(leaf)}
        for each in items_of(row).attributes
        if each.name not in left_out
        for leaf in (leaf_type(f"{row.path}.{each.name}"),)
    }
    return anycase_closed(tree_of(leaves, attribute_aliases(row)).properties(row.path))


def map_or_list(schema: Schema) -> Schema:
    """A map, or deprecated a list of such maps."""
    return {"anyOf": [schema, {"type": "array", "items": schema, "deprecated": True}]}


def default_of(row: Field) -> Schema:
    """What may stand for a field below `defaults`."""
    leaf = leaf_type(row.path)
    if row.items is None:
        return {"description": described(leaf), **value_of(leaf)}
    item = ref(attributes_name("defaults", row))
    names: list[Schema] = [{"type": "string"}] if row.extra_rules else []
    listed: Schema = {"type": ["array", "null"], "items": {"anyOf": [item, NULL, *names]}}
    parts: dict[str, Schema] = {INSTANCES: {"description": items_text(row.items), **listed}}
    if row.items.attribute_defaults:
        parts[ATTRIBUTES] = map_or_list(item)
    schema = anycase_closed(parts, described(leaf))
    return {"anyOf": [schema, listed]} if row.extra_rules else schema


def items_text(items: Items) -> str:
    """How items are told apart."""
    ways = [items.key, *(" and ".join(fallback) for fallback in items.fallbacks)]
    return f"Default items, each known by {', else by '.join(ways)}."


def rule_of(row: Field) -> Schema:
    """What may stand for a field below `rules`."""
    leaf = leaf_type(row.path)
    if row.items is None:
        return rules_of(leaf, leaf.legal)
    parts: dict[str, Schema] = {INSTANCES: rules_of(leaf, ITEM_RULES)}
    if attribute_rules_of(row)["properties"]:
        parts[ATTRIBUTES] = map_or_list(ref(attributes_name("rules", row)))
    schema = anycase_closed(parts, described(leaf))
    if row.extra_rules:
        own = ruleset(as_array(row), row.extra_rules)
        names = (*own["properties"], *parts)
        schema["properties"] |= own["properties"]
        schema["patternProperties"] = {any_case(names, "[-_]*"): True}
    return schema


def attributes_name(section: str, row: Field) -> str:
    """The name of the definition of a field's attributes."""
    return f"{section}.{row.path}.{ATTRIBUTES}"


def attribute_rules_of(row: Field) -> Schema:
    """The rules of the attributes of a field."""
    leaves = {
        each.name: rules_of(leaf, leaf.legal)
        for each in items_of(row).attributes
        for leaf in (leaf_type(f"{row.path}.{each.name}"),)
        if leaf.legal
    }
    return anycase_closed(tree_of(leaves, attribute_aliases(row)).properties(row.path))


def field_aliases() -> dict[str, str]:
    """Other spellings of fields."""
    return {alias: name for alias, name in TABLE.aliases.items() if name in TABLE.fields}


def fields_tree(section: str, role: str = "") -> dict[str, Schema]:
    """The fields that may stand below `defaults` or `rules`, or there below a role."""
    leaves = {
        row.path: ref(f"{section}.{row.path}")
        for row in TABLE.fields.values()
        if not role or not row.levels or role in row.levels
    }
    return tree_of(leaves, field_aliases()).properties()


def definitions() -> dict[str, Schema]:
    """Every definition that the documents refer to."""
    found = {ruleset_name(leaf, legal): ruleset(leaf, legal) for leaf, legal in rule_leaves()}
    for row in TABLE.fields.values():
        found[f"defaults.{row.path}"] = default_of(row)
        found[f"rules.{row.path}"] = rule_of(row)
        if row.items is not None:
            found[attributes_name("defaults", row)] = attributes_of(row)
            found[attributes_name("rules", row)] = attribute_rules_of(row)
    for section in BODY_TEXTS:
        for role in ("", *ROLES):
            found[level_name(section, role)] = anycase_closed(fields_tree(section, role))
        found[section] = anycase_closed({**fields_tree(section), **levels(section)})
    found["imposedAssets"] = imposed_assets()
    found["selector"] = selector()
    found["metadata"] = {
        "type": "object",
        "properties": {"name": {"type": "string", "minLength": 1}, "namespace": {"type": "string"}},
        "required": ["name"],
    }
    return found


def level_name(section: str, role: str = "") -> str:
    """The definition of what may stand below a role or a component; most roles take all fields."""
    limited = role and any(row.levels and role not in row.levels for row in TABLE.fields.values())
    return f"{section}:{role}" if limited else f"{section}:component"


def levels(section: str) -> dict[str, Schema]:
    """Roles, their other spellings and components."""
    found = {
        word: {"description": GROUPS[role], **ref(level_name(section, role))}
        if word == role
        else deprecated(ref(level_name(section, role)), role)
        for word, role in sorted(ROLE_WORDS.items())
    }
    below = {"type": ["object", "null"], "additionalProperties": ref(level_name(section))}
    return {**found, COMPONENTS: {"description": "By the name of the component.", **below}}


def imposed_assets() -> Schema:
    """Ids of assets, for all or by role and component."""
    by_name = {"type": ["object", "null"], "additionalProperties": TEXTS}
    split = anycase_closed({**dict.fromkeys(ROLE_WORDS, TEXTS), COMPONENTS: by_name})
    return {
        "description": GROUPS["imposedAssets"],
        "anyOf": [TEXTS, split],
    }


def selector() -> Schema:
    """A label selector."""
    key: Schema = {"type": "string", "minLength": 1}
    one = closed(
        {"key": key, "operator": {"enum": list(OPERATORS)}, "values": TEXTS},
        required=("key", "operator"),
    )
    labels: Schema = {"type": ["object", "null"], "additionalProperties": TEXT}
    listed: Schema = {"type": ["array", "null"], "items": one}
    return closed({"matchLabels": labels, "matchExpressions": listed})


# Documents


def choice(words: Iterable[str], description: str = "") -> Schema:
    """One of some words."""
    schema: Schema = {"enum": [*words, None]}
    return {"description": description, **schema} if description else schema


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
        "existing": choice(EXISTING, "strict: what is unchanged is judged too."),
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


def complete(schemas: Mapping[str, Schema], more: Mapping[str, Schema], title: str) -> Schema:
    """One document: the schema, or one of several, with only the definitions that it needs."""
    known = {**definitions(), **more}
    top = next(iter(schemas.values())) if len(schemas) == 1 else {"oneOf": list(schemas.values())}
    needed: dict[str, Schema] = {}
    pending = sorted(references(top))
    while pending:
        name = pending.pop()
        if name not in needed:
            needed[name] = known[name]
            pending += sorted(references(known[name]))
    used = {name: needed[name] for name in sorted(needed)}
    return {"$schema": DIALECT, "title": title, **top, "$defs": used}


def references(schema: Any) -> set[str]:
    """The definitions that a schema refers to directly."""
    found: set[str] = set()
    pending = [schema]
    while pending:
        each = pending.pop()
        if isinstance(each, dict):
            target = each.get("$ref")
            if isinstance(target, str):
                found.add(target.removeprefix("#/$defs/"))
            pending += each.values()
        elif isinstance(each, list):
            pending += each
    return found
