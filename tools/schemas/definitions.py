"""Every definition that the schemas of documents refer to."""

from __future__ import annotations

from tools.schemas.fields import (
    attribute_rules_of,
    attributes_name,
    attributes_of,
    default_of,
    fields_tree,
    rule_of,
)
from tools.schemas.forms import (
    TEXTS,
    Schema,
    anycase_closed,
    deprecated_spelling,
    ref,
)
from tools.schemas.rulesets import rule_leaves, ruleset, ruleset_name
from webhook.policy.catalogue import GROUPS
from webhook.policy.default_from import ROLE_WORDS
from webhook.policy.policy import COMPONENTS, ROLES
from webhook.policy.table import TABLE

BODY_TEXTS = {
    "defaults": "Values for what a workload leaves open.",
    "rules": "What workloads may set; the same tree as defaults.",
}


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
    found["metadata"] = {
        "type": "object",
        "properties": {"name": {"type": "string", "minLength": 1}, "namespace": {"type": "string"}},
        "required": ["name"],
    }
    return found


def level_name(section: str, role: str = "") -> str:
    """The definition of the members of a role or component; most roles accept all fields."""
    limited = role and any(row.levels and role not in row.levels for row in TABLE.fields.values())
    return f"{section}:{role}" if limited else f"{section}:component"


def levels(section: str) -> dict[str, Schema]:
    """Roles, their other spellings and components."""
    found = {
        word: {"description": GROUPS[role], **ref(level_name(section, role))}
        if word == role
        else deprecated_spelling(ref(level_name(section, role)), role)
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
