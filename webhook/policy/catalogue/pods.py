"""Fields of the pod: its metadata, where it is scheduled, how it is stopped."""

from __future__ import annotations

from webhook.policy import values
from webhook.policy.catalogue.containers import EXCLUDE
from webhook.policy.row import (
    ITEMS,
    NODE_AFFINITY,
    NODE_POOLS,
    NODE_TYPE,
    POD,
    POD_AFFINITY,
    PULL_SECRETS,
    Attribute,
    Binding,
    Field,
    Items,
)
from webhook.policy.rules import rules_for


def named_values(what: str, store: str) -> Items:
    """Items with a name and a value. The name is the key."""
    return Items(
        "name",
        (),
        (
            Attribute(
                "name",
                "string",
                ("name",),
                required=True,
                takes_rules=False,
                note=f"Key of the {what}; the key of the item.",
            ),
            Attribute(
                "value", "string", ("value",), takes_rules=False, note=f"Value of the {what}."
            ),
            EXCLUDE,
        ),
        store=store,
        attribute_defaults=False,
    )


TOLERATIONS = Items(
    "name",
    (("key", "operator", "value", "effect"),),
    (
        Attribute(
            "name",
            "string",
            takes_rules=False,
            native=False,
            note="Name of the item; lives in the policy only.",
        ),
        Attribute(
            "operator",
            "string",
            ("operator",),
            ("Equal", "Exists"),
            absent="Equal",
            note="How the taint's value is compared.",
        ),
        Attribute("key", "string", ("key",), note="Key of the taint."),
        Attribute("value", "string", ("value",), note="Value of the taint; with Equal."),
        Attribute(
            "effect",
            "string",
            ("effect",),
            ("NoSchedule", "NoExecute", "PreferNoSchedule", "Any"),
            absent="Any",
            note="Effect of the taint; Any is an absent effect.",
        ),
        Attribute(
            "seconds",
            "integer",
            ("tolerationSeconds",),
            note="How long the taint is borne, with NoExecute; for ever when absent.",
        ),
        Attribute("exclude", "boolean", native=False, note=EXCLUDE.note),
    ),
    store="tolerations",
)

SECRETS = Items(
    "name",
    (),
    (
        Attribute("name", "string", ("name",), required=True, note="Name of the Secret; the key."),
        Attribute(
            "userCredential",
            "boolean",
            aliases=("userCredentials",),
            native=False,
            note="The Secret comes from the platform's credentials; no native form.",
        ),
        EXCLUDE,
    ),
    store="pull-secrets",
    attribute_defaults=False,
)

PODS: tuple[Field, ...] = (
    Field(
        "labels",
        "itemized",
        Binding.METADATA,
        ITEMS,
        items=named_values("label", "labels"),
        note="Labels of the pods.",
    ),
    Field(
        "annotations",
        "itemized",
        Binding.METADATA,
        ITEMS,
        items=named_values("annotation", "annotations"),
        secret=True,
        note="Annotations of the pods; values are never printed.",
    ),
    Field(
        "imagePullSecrets",
        "itemized",
        Binding.POD,
        PULL_SECRETS,
        items=SECRETS,
        extra_rules=rules_for("array"),
        note="Secrets for the registry, as items or as a plain list of names.",
    ),
    Field(
        "tolerations",
        "itemized",
        Binding.POD,
        ITEMS,
        items=TOLERATIONS,
        note="Taints that the pods bear.",
    ),
    Field(
        "nodeType",
        "string",
        Binding.POD,
        NODE_TYPE,
        writes="pod",
        note="Named group of machines: the node selector's run.ai/type (a setting).",
    ),
    Field(
        "nodePools",
        "array",
        Binding.METADATA,
        NODE_POOLS,
        writes="pod",
        codec=values.ORDERED,
        note="Node pools in order of preference.",
    ),
    Field(
        "nodeAffinityRequired",
        "object",
        Binding.POD,
        NODE_AFFINITY,
        writes="pod",
        codec=values.NODE_TERMS,
        note="Hard node affinity, {nodeSelectorTerms: […]}; compared as one value.",
    ),
    Field(
        "podAffinity.type",
        "string",
        Binding.POD,
        POD_AFFINITY,
        ("type",),
        writes="pod",
        aliases=("PodAffinitySchedulingRule", "podAffinitySchedulingRule"),
        enum=("Required", "Preferred"),
        spellings=(
            ("hard", "Required"),
            ("required", "Required"),
            ("soft", "Preferred"),
            ("preferred", "Preferred"),
        ),
        note="Whether the pods of a workload must, or should, be together.",
    ),
    Field(
        "podAffinity.key",
        "string",
        Binding.POD,
        POD_AFFINITY,
        ("key",),
        writes="pod",
        aliases=("podAffinityTopology",),
        note="Node label whose value makes one topology domain.",
    ),
    Field(
        "terminationGracePeriodSeconds",
        "integer",
        Binding.POD,
        POD,
        ("terminationGracePeriodSeconds",),
        writes="pod",
        note="Seconds that a pod has to end by itself.",
    ),
    Field(
        "scheduling.nodeName",
        "string",
        Binding.POD,
        POD,
        ("nodeName",),
        writes="pod",
        safety=True,
        note="Placement on one node, past the scheduler.",
    ),
    Field(
        "scheduling.schedulerName",
        "string",
        Binding.POD,
        POD,
        ("schedulerName",),
        writes="pod",
        safety=True,
        note="Scheduler of the pods; fractions of GPUs need one that knows them.",
    ),
    Field(
        "scheduling.runtimeClassName",
        "string",
        Binding.POD,
        POD,
        ("runtimeClassName",),
        writes="pod",
        safety=True,
        note="RuntimeClass of the pods.",
    ),
)
