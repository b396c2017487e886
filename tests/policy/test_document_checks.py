"""Policies that contradict themselves, or one another."""

from __future__ import annotations

from typing import Any

import pytest

from tests.policy.test_document import accepted, clean, document, errors, parse, spec, warnings
from webhook.documents.problem import Problem
from webhook.policy.asset_document import parse_asset
from webhook.policy.checks import check_together
from webhook.policy.combine import GUARDED
from webhook.policy.ordered_defaults import PAIRS, Pair
from webhook.policy.policy import Asset, Policy

NFS = "{server: s, path: /p, mountPath: /m}"
EXCLUDED_A = "{instances: [{name: a, exclude: true}]}"
LOCKED_A = "{instances: {locked: [a]}}"
CONTRADICTIONS = [
    ("rules: {compute: {gpuDevicesRequest: {min: 5, max: 3}}}", "min-above-max"),
    ("rules: {compute: {cpuMemoryLimit: {min: 4Gi, max: 4G}}}", "min-above-max"),
    ("rules: {compute: {cpuCoreLimit: {step: 0}}}", "bad-step"),
    ("rules: {compute: {cpuCoreLimit: {step: -0.5}}}", "bad-step"),
    (
        "defaults: {backoffLimit: 9}\nrules: {backoffLimit: {max: 8}}",
        "default-outside-rules",
    ),
    (
        "defaults: {backoffLimit: 4}\nrules: {backoffLimit: {min: 1, step: 2}}",
        "default-outside-rules",
    ),
    ("defaults: {image: a}\nrules: {image: {options: [b]}}", "default-outside-rules"),
    (
        (
            "defaults: {security: {capabilities: [A, B]}}\n"
            "rules: {security: {capabilities: {options: [a]}}}"
        ),
        "default-outside-rules",
    ),
    (
        (
            "defaults: {storage: {nfs: {attributes: {server: x}}}}\n"
            "rules: {storage: {nfs: {attributes: {server: {options: [y]}}}}}"
        ),
        "default-outside-rules",
    ),
    (
        (
            f"defaults: {{storage: {{nfs: {{instances: [{NFS}]}}}}}}\n"
            "rules: {storage: {nfs: {attributes: {server: {options: [y]}}}}}"
        ),
        "default-outside-rules",
    ),
    (
        "defaults: {image: a}\nrules: {worker: {image: {options: [b]}}}",
        "default-outside-rules",
    ),
    ("rules: {image: {required: true, canEdit: false}}", "impossible-required"),
    ("rules: {image: {required: true, blocked: true}}", "impossible-required"),
    (
        "defaults: {image: ''}\nrules: {image: {required: true, canEdit: false}}",
        "impossible-required",
    ),
    (
        "rules: {storage: {nfs: {attributes: {server: {required: true, canEdit: false}}}}}",
        "impossible-required",
    ),
    ("rules: {image: {options: []}}", "empty-options"),
    ("rules: {imagePullPolicy: {options: [Sometimes]}}", "option-outside-enum"),
    ("rules: {tolerations: {attributes: {effect: {options: [Never]}}}}", "option-outside-enum"),
    ("defaults: {imagePullPolicy: ALWAYS}", "default-outside-enum"),
    (
        (
            "defaults: {storage: {nfs: {instances: [{name: a, server: s, mountPath: /m}]}}}\n"
            "rules: {storage: {nfs: {instances: {locked: [a]}}}}"
        ),
        "locked-item-incomplete",
    ),
    (
        (
            "defaults: {tolerations: {instances: [{name: a, key: b}]}}\n"
            "rules: {tolerations: "
            "{instances: {locked: [a]}, attributes: {seconds: {required: true}}}}"
        ),
        "locked-item-incomplete",
    ),
    (
        "rules: {compute: {cpuCoreLimit: {defaultFrom: {field: cpuCoreLimit}}}}",
        "default-from-self",
    ),
    (
        (
            "rules: {compute: {cpuCoreLimit: {defaultFrom: {field: cpuCoreRequest}}, "
            "cpuCoreRequest: {defaultFrom: {field: cpuCoreLimit}}}}"
        ),
        "default-from-cycle",
    ),
    (
        "rules: {compute: {cpuCoreLimit: {defaultFrom: {field: cpuCores}}}}",
        "default-from-unknown",
    ),
    (
        "rules: {compute: {cpuCoreLimit: {defaultFrom: {field: autoscaling.minReplicas}}}}",
        "default-from-elsewhere",
    ),
    (
        "rules: {autoscaling: {minReplicas: {defaultFrom: {field: scale.replicas}}}}",
        "default-from-elsewhere",
    ),
    (
        "rules: {autoscaling: {minReplicas: {defaultFrom: {field: terminationGracePeriodSeconds}}}}",
        "default-from-elsewhere",
    ),
    (
        "rules: {compute: {cpuCoreLimit: {defaultFrom: {field: worker.cpuCoreRequest}}}}",
        "default-from-elsewhere",
    ),
    (
        "rules: {master: {compute: {cpuCoreLimit: {defaultFrom: {field: worker.cpuCoreRequest}}}}}",
        "default-from-elsewhere",
    ),
    (
        "rules: {compute: {cpuCoreLimit: {defaultFrom: {field: cpuMemoryLimit}}}}",
        "default-from-type",
    ),
    (
        "rules: {compute: {cpuMemoryLimit: {defaultFrom: {field: cpuCoreLimit}}}}",
        "default-from-type",
    ),
    ("rules: {backoffLimit: {defaultFrom: {field: image}}}", "default-from-type"),
    ("rules: {compute: {cpuCoreLimit: {defaultFrom: {factor: 2}}}}", "missing-value"),
    (
        "rules: {compute: {cpuCoreLimit: {defaultFrom: {field: cpuCoreRequest, factor: 0}}}}",
        "bad-factor",
    ),
    ("defaults: {compute: {cpuCoreRequest: 2, cpuCoreLimit: 1}}", "request-above-limit"),
    ("defaults: {compute: {cpuMemoryRequest: 4Gi, cpuMemoryLimit: 4G}}", "request-above-limit"),
    (
        "defaults: {compute: {cpuCoreLimit: 1}, worker: {compute: {cpuCoreRequest: 2}}}",
        "request-above-limit",
    ),
    ("rules: {image: {min: a}}", "rule-not-for-type"),
    ("rules: {compute: {cpuMemoryLimit: {step: 1}}}", "rule-not-for-type"),
    ("rules: {backoffLimit: {options: [1]}}", "rule-not-for-type"),
    ("rules: {storage: {nfs: {required: true}}}", "rules-on-itemized"),
    ("rules: {storage: {nfs: {canAdd: false}}}", "rules-on-itemized"),
    ("rules: {storage: {nfs: {server: {required: true}}}}", "rules-on-itemized"),
    ("rules: {storage: {nfs: {instances: {canEdit: false}}}}", "rule-not-for-type"),
    (
        "rules: {environmentVariables: {attributes: {value: {required: true}}}}",
        "rule-not-for-type",
    ),
    (
        f"defaults: {{storage: {{nfs: {{instances: [{NFS}, {NFS}]}}}}}}",
        "duplicate-item",
    ),
    (
        f"{{defaults: {{labels: {EXCLUDED_A}}}, rules: {{labels: {LOCKED_A}}}}}",
        "excluded-default-item",
    ),
    (
        "defaults: {environmentVariables: {instances: [{name: A, value: x, secret: {name: s, key: k}}]}}",
        "exclusive-attributes",
    ),
    (
        "defaults: {tolerations: {instances: [{key: a, operator: Exists, value: b}]}}",
        "attribute-out-of-place",
    ),
    (
        "defaults: {tolerations: {instances: [{key: a, effect: NoSchedule, seconds: 5}]}}",
        "attribute-out-of-place",
    ),
    (
        "defaults: {tolerations: {instances: [{key: a, effect: NoExecute, seconds: 0}]}}",
        "value-out-of-range",
    ),
    ("defaults: {labels: {instances: [{value: x}]}}", "item-without-key"),
    ("defaults: {labels: {instances: [{name: 'a b'}]}}", "bad-label"),
    ("defaults: {labels: {instances: [{name: a, value: 'b c'}]}}", "bad-label"),
    ("defaults: {labels: {instances: [{name: UPPER/a}]}}", "bad-label"),
    ("defaults: {labels: {attributes: {value: a}}}", "no-attribute-defaults"),
    ("defaults: {labels: [{name: a}]}", "items-as-list"),
]


@pytest.mark.parametrize("text,reason", CONTRADICTIONS, ids=range(len(CONTRADICTIONS)))
def test_a_policy_that_contradicts_itself_is_refused_with_one_problem(
    text: str, reason: str
) -> None:
    assert [found for found, _ in errors(text)] == [reason]
    assert all(each.line and each.fix for each in parse(text)[1])


LEGAL = [
    "rules: {compute: {cpuMemoryLimit: {min: 4G, max: 4Gi}}}",
    "rules: {compute: {cpuMemoryLimit: {min: 0, max: '0'}}}",
    "defaults: {image: a}\nrules: {image: {required: true, canEdit: false}}",
    (
        "rules: {compute: {cpuCoreLimit: "
        "{required: true, canEdit: false, defaultFrom: {field: cpuCoreRequest}}}}"
    ),
    "defaults: {compute: {cpuCoreRequest: 1, cpuCoreLimit: 1}}",
    "defaults: {tolerations: {instances: [{key: a, effect: NoExecute, seconds: 5}]}}",
    "defaults: {tolerations: {instances: [{key: a, seconds: 5}], attributes: {effect: NoExecute}}}",
    "defaults: {image: a}\nrules: {image: {blocked: true, options: [a]}}",
    "defaults: {labels: {instances: [{name: example.com/team, value: vision}, {name: b}]}}",
    "rules: {compute: {cpuCoreLimit: {min: 1, max: 9, step: 4}}}",
]


@pytest.mark.parametrize("text", LEGAL, ids=range(len(LEGAL)))
def test_what_looks_like_a_contradiction_but_is_none_is_accepted(text: str) -> None:
    clean(text)


WARNINGS = [
    ("rules: {storage: {nfs: {instances: {locked: [a, a]}}}}", "locked-twice"),
    ("rules: {compute: {cpuCoreLimit: {blocked: true, max: 4}}}", "blocked-beside-rules"),
    ("rules: {image: {blocked: true, canEdit: true}}", "blocked-beside-rules"),
    ("rules: {compute: {gpuDevicesRequest: {min: 1, max: 8, step: 2}}}", "max-off-grid"),
    ("rules: {compute: {gpuDevicesRequest: {max: -1}}}", "bound-beyond-range"),
    ("rules: {compute: {cpuMemoryLimit: {min: -1Gi}}}", "bound-beyond-range"),
    ("rules: {ports: {attributes: {container: {min: 70000}}}}", "bound-beyond-range"),
    ("defaults: {compute: {cpuMemoryLimit: 100m}}", "milli-memory"),
    ("rules: {compute: {cpuMemoryLimit: {max: 100m}}}", "milli-memory"),
    (
        "defaults: {storage: {nfs: {instances: [{name: a, server: s, mountPath: /m}]}}}",
        "incomplete-item",
    ),
    ("imposedAssets: [a, a]", "imposed-twice"),
]


@pytest.mark.parametrize("text,reason", WARNINGS, ids=range(len(WARNINGS)))
def test_what_is_probably_a_mistake_is_accepted_with_a_warning(text: str, reason: str) -> None:
    assert [found for found, _ in warnings(text)] == [reason]


@pytest.mark.parametrize(
    "rule,found,fix",
    [
        ("backoffLimit: {max: -1}", "max -1, which rejects every value", "a number from 0"),
        ("backoffLimit: {min: -1}", "min -1, which has no effect", "a number from 0"),
        (
            "security: {runAsUid: {min: 3000000000}}",
            "min 3000000000, which rejects every value",
            "a number from 0 to 2147483647",
        ),
        (
            "security: {runAsUid: {max: 3000000000}}",
            "max 3000000000, which has no effect",
            "a number from 0 to 2147483647",
        ),
    ],
)
def test_a_bound_beyond_all_values_is_a_warning(rule: str, found: str, fix: str) -> None:
    policy, problems = parse(f"rules: {{{rule}}}")
    name = found.split()[0]
    assert policy is not None
    assert [(each.severity, each.found, each.fix) for each in problems] == [
        ("warning", found, f"write {fix}, or remove {name}")
    ]


def test_a_maximum_off_the_grid_names_the_steps_around_it() -> None:
    assert warnings("rules: {compute: {cpuCoreLimit: {min: 1, max: 8, step: 2}}}") == [
        ("max-off-grid", "write 7 or 9")
    ]


def test_requests_and_limits_are_paired_by_the_table() -> None:
    assert Pair("compute.cpuCoreRequest", "compute.cpuCoreLimit", "request-above-limit") in PAIRS
    assert (
        Pair("compute.cpuMemoryRequest", "compute.cpuMemoryLimit", "request-above-limit") in PAIRS
    )


@pytest.mark.parametrize(
    "types,text,reasons",
    [
        (["inference"], "rules: {backoffLimit: {max: 3}}", ["no-bound-type"]),
        (["training"], "rules: {numWorkers: {max: 3}}", ["no-bound-type"]),
        (["training"], "rules: {master: {image: {required: true}}}", ["no-bound-type"]),
        (["distributed"], "defaults: {leader: {image: a}}", ["no-bound-type"]),
        (["nimService"], "imposedAssets: [a]", ["no-bound-type"]),
        (["inference", "training"], "rules: {backoffLimit: {max: 3}}", ["some-types-only"]),
        (["inference"], "rules: {terminationGracePeriodSeconds: {max: 3}}", []),
        (["nimService"], "rules: {security: {privileged: {canEdit: false}}}", []),
        (["distributed"], "rules: {worker: {numWorkers: {max: 3}}}", []),
    ],
)
def test_only_fields_without_a_place_in_a_pod_are_limited_by_type(
    types: list[str], text: str, reasons: list[str]
) -> None:
    _, problems = parse(spec(f"workloadTypes: {types}\n{text}"))
    assert [each.reason for each in problems] == reasons


# documents together


def policy(body: str, name: str = "limits", scope: str = "cluster", **members: Any) -> Policy:
    extra = "".join(f"  {key}: {value}\n" for key, value in members.items())
    indented = "".join(f"  {line}\n" for line in body.splitlines())
    if scope == "project":
        head = "apiVersion: podgate.dev/v1alpha1\nkind: WorkloadPolicy\n"
        meta = f"metadata: {{name: {name}, namespace: vision}}\nspec:\n"
    else:
        head = "apiVersion: podgate.dev/v1alpha1\nkind: ClusterWorkloadPolicy\n"
        meta = f"metadata: {{name: {name}}}\nspec:\n  scope: {scope}\n"
    return accepted(head + meta + extra + indented)


def asset(kind: str = "nfs", name: str = "sets", identity: str = "id-1", more: str = "") -> Asset:
    specs = {
        "nfs": "server: s, path: /p, mountPath: /m",
        "compute": "",
    }
    text = f"meta: {{id: {identity}, name: {name}, kind: {kind}}}\nspec: {{{specs[kind]}{more}}}"
    found, problems = parse_asset(document(text))
    assert found is not None, problems
    return found


def together(
    *policies: Policy, assets: tuple[Asset, ...] = (), combination: str = GUARDED
) -> list[tuple[str, str, str]]:
    found = check_together(policies, {each.id: each for each in assets}, combination)
    assert all(each.found and each.fix and each.origin for each in found)
    return [(each.severity, each.reason, each.path) for each in found]


def test_imposed_assets_must_exist_and_be_fit_for_it() -> None:
    imposing = policy("imposedAssets: [id-1, id-2, id-3]")
    assert together(imposing, assets=(asset(), asset("compute", "c", "id-2"))) == [
        ("error", "asset-not-imposable", "spec.imposedAssets[1]"),
        ("error", "unknown-asset", "spec.imposedAssets[2]"),
    ]


def test_an_asset_with_a_credential_cannot_be_imposed() -> None:
    found = together(policy("imposedAssets: [id-1]"), assets=(asset(more=", credentialId: c-1"),))
    assert found == [("error", "asset-with-credential", "spec.imposedAssets[0]")]


def test_two_policies_of_one_scope_that_disagree_are_in_conflict() -> None:
    one = policy("rules: {backoffLimit: {max: 3}}", "one")
    two = policy("rules: {backoffLimit: {max: 4}}", "two")
    assert together(one, two) == [("error", "conflict", "spec.rules.backoffLimit.max")]
    assert together(two, one) == together(one, two)
    found = check_together([one, two], {}, GUARDED)[0]
    assert "policy one" in found.found
    assert "policy two" in found.found
    assert found.line == 6


@pytest.mark.parametrize(
    "one,two,severity",
    [
        ({"enforcement": "Warn"}, {"enforcement": "Audit"}, "error"),
        ({"workloadTypes": "[training]"}, {"workloadTypes": "[training, inference]"}, "error"),
        ({"workloadTypes": "[training]"}, {"kinds": "[{kind: Pod}]"}, "warning"),
        (
            {"namespaceSelector": "{matchLabels: {a: b}}"},
            {"namespaceSelector": "{matchLabels: {a: b, c: d}}"},
            "error",
        ),
        (
            {"namespaceSelector": "{matchLabels: {a: b}}"},
            {"namespaceSelector": "{matchLabels: {c: d}}"},
            "warning",
        ),
        ({"namespaceSelector": "{matchLabels: {a: b}}"}, {}, "error"),
    ],
)
def test_a_conflict_is_an_error_where_the_reaches_surely_meet(
    one: dict[str, str], two: dict[str, str], severity: str
) -> None:
    body = "defaults: {backoffLimit: "
    found = together(policy(body + "1}", "one", **one), policy(body + "2}", "two", **two))
    assert [each[:2] for each in found] == [(severity, "conflict")]


@pytest.mark.parametrize(
    "one,two",
    [
        ({"workloadTypes": "[training]"}, {"workloadTypes": "[workspace]"}),
        ({"kinds": "[{kind: Pod}]"}, {"kinds": "[{kind: Job, group: batch}]"}),
        (
            {"namespaceSelector": "{matchLabels: {a: b}}"},
            {"namespaceSelector": "{matchLabels: {a: c}}"},
        ),
        (
            {"namespaceSelector": "{matchLabels: {a: b}}"},
            {"namespaceSelector": "{matchExpressions: [{key: a, operator: DoesNotExist}]}"},
        ),
        (
            {"namespaceSelector": "{matchLabels: {a: b}}"},
            {"namespaceSelector": "{matchExpressions: [{key: a, operator: NotIn, values: [b]}]}"},
        ),
    ],
)
def test_policies_that_never_meet_are_in_no_conflict(
    one: dict[str, str], two: dict[str, str]
) -> None:
    body = "defaults: {backoffLimit: "
    assert not together(policy(body + "1}", "one", **one), policy(body + "2}", "two", **two))


def test_policies_that_agree_or_add_up_are_in_no_conflict() -> None:
    one = policy(
        "defaults: {compute: {cpuMemoryLimit: 1G}}\nrules: {backoffLimit: {max: 3}}", "one"
    )
    two = policy(
        "defaults: {compute: {cpuMemoryLimit: 1000M}}\nrules: {backoffLimit: {min: 1}}", "two"
    )
    assert not together(one, two)


def test_one_item_with_two_contents_in_one_scope_is_a_conflict() -> None:
    body = "defaults: {environmentVariables: {instances: [{name: A, value: "
    found = together(policy(body + "x}]}}", "one"), policy(body + "y}]}}", "two"))
    assert found == [
        ("error", "conflict", "spec.defaults.environmentVariables.instances[0]"),
    ]


ITEM = """\
defaults:
  storage: {nfs: {instances: [{name: sets, server: s, path: /p, mountPath: /m}]}}
"""
LOCKED = "rules: {storage: {nfs: {instances: {locked: [sets]}}}}"


def test_a_locked_key_without_item_is_warned_about() -> None:
    path = "spec.rules.storage.nfs.instances.locked"
    assert together(policy(LOCKED)) == [("warning", "locked-without-item", path)]


def test_a_locked_key_may_name_an_item_or_asset_of_a_broader_scope() -> None:
    locking = policy(LOCKED, "locking", "project")
    assert not together(locking, policy(ITEM, "giving"))
    assert not together(locking, policy("imposedAssets: [id-1]", "giving"), assets=(asset(),))
    by_id = policy(LOCKED.replace("sets", "id-1"), "locking", "project")
    assert not together(by_id, policy("imposedAssets: [id-1]", "giving"), assets=(asset(),))


def test_an_item_of_a_narrower_scope_does_not_serve_a_lock() -> None:
    found = together(policy(LOCKED, "locking"), policy(ITEM, "giving", "project"))
    assert {reason for _, reason, _ in found} == {"locked-without-item", "shut-out-by-lock"}


def test_a_default_outside_the_combined_rules_is_a_warning_on_its_policy() -> None:
    broad = policy("rules: {compute: {gpuDevicesRequest: {max: 2}}}", "broad")
    narrow = policy("defaults: {compute: {gpuDevicesRequest: 4}}", "narrow", "project")
    assert together(broad, narrow) == [
        ("warning", "default-outside-combined-rules", "spec.defaults.compute.gpuDevicesRequest")
    ]


def test_a_default_is_not_held_against_rules_of_other_types() -> None:
    broad = policy("rules: {backoffLimit: {max: 2}}", "broad", workloadTypes="[training]")
    narrow = policy("defaults: {backoffLimit: 4}", "n", "project", workloadTypes="[workspace]")
    assert not together(broad, narrow)


def test_a_default_item_outside_the_combined_rules_is_a_warning_on_its_policy() -> None:
    broad = policy("rules: {storage: {nfs: {attributes: {server: {options: [y]}}}}}", "broad")
    narrow = policy(
        "defaults: {storage: {nfs: {instances: [{name: a, server: s, path: /p, mountPath: /m}]}}}",
        "narrow",
        "project",
    )
    assert together(broad, narrow) == [
        (
            "warning",
            "default-outside-combined-rules",
            "spec.defaults.storage.nfs.instances[0].server",
        )
    ]


def test_a_default_that_a_broader_lock_shuts_out_is_a_warning_on_its_policy() -> None:
    broad = policy(
        "defaults: {security: {runAsUid: 1000}}\nrules: {security: {runAsUid: {canEdit: false}}}",
        "broad",
    )
    narrow = policy("defaults: {security: {runAsUid: 0}}", "narrow", "project")
    assert together(broad, narrow) == [
        ("warning", "shut-out-by-lock", "spec.defaults.security.runAsUid")
    ]


def test_a_trial_is_held_against_what_is_enforced() -> None:
    broad = policy("rules: {compute: {gpuDevicesRequest: {max: 2}}}", "broad")
    trial = policy(
        "defaults: {compute: {gpuDevicesRequest: 4}}", "trial", "project", enforcement="Warn"
    )
    assert [reason for _, reason, _ in together(broad, trial)] == ["default-outside-combined-rules"]


def test_a_trial_beside_what_is_in_force_is_no_conflict() -> None:
    enforced = policy("rules: {compute: {gpuDevicesRequest: {max: 2}}}", "enforced")
    trial = policy("rules: {compute: {gpuDevicesRequest: {max: 1}}}", "trial", enforcement="Warn")
    other = policy("rules: {compute: {gpuDevicesRequest: {max: 4}}}", "other", enforcement="Audit")
    assert together(enforced, trial) == []
    assert [reason for _, reason, _ in together(trial, other)] == ["conflict"]


def test_one_item_imposed_by_two_scopes_is_a_warning() -> None:
    found = together(
        policy("imposedAssets: [id-1]", "broad"),
        policy("imposedAssets: [id-2]", "narrow", "project"),
        assets=(asset(), asset(identity="id-2")),
    )
    assert found == [("warning", "imposed-twice", "spec.imposedAssets[0]")]


def test_policies_without_anything_in_common_give_no_problems() -> None:
    assert not check_together([], {}, GUARDED)
    found: tuple[Problem, ...] = check_together([policy("rules: {}")], {}, GUARDED)
    assert not found


@pytest.mark.parametrize(
    "selector,severity",
    [
        ("{matchLabels: {kubernetes.io/metadata.name: vision}}", ["shut-out-by-lock"]),
        ("{matchLabels: {kubernetes.io/metadata.name: other}}", []),
        ("{matchLabels: {team: vision}}", []),
    ],
)
def test_a_namespace_is_surely_selected_only_by_its_name(
    selector: str, severity: list[str]
) -> None:
    broad = policy("rules: {backoffLimit: {canEdit: false}}", "broad", namespaceSelector=selector)
    narrow = policy("defaults: {backoffLimit: 1}", "narrow", "project")
    assert [reason for _, reason, _ in together(broad, narrow)] == severity


def test_an_excluded_namespace_is_out_of_reach() -> None:
    broad = policy("rules: {backoffLimit: {canEdit: false}}", "b", excludeNamespaces="[vision]")
    assert not together(broad, policy("defaults: {backoffLimit: 1}", "narrow", "project"))


def test_policies_of_two_namespaces_never_meet() -> None:
    one = policy("defaults: {backoffLimit: 1}", "one", "project")
    text = (
        "apiVersion: podgate.dev/v1alpha1\nkind: WorkloadPolicy\n"
        "metadata: {name: two, namespace: speech}\nspec: {defaults: {backoffLimit: 2}}"
    )
    assert not together(one, accepted(text))


def test_a_conflict_at_one_role_is_found_behind_a_leaf_outside_all_roles() -> None:
    one = policy("rules: {backoffLimit: {max: 3}}", "one")
    two = policy("rules: {worker: {backoffLimit: {max: 4}}}", "two")
    assert together(one, two) == [("error", "conflict", "spec.rules.worker.backoffLimit.max")]


def test_shut_out_items_and_assets_are_told_at_their_place() -> None:
    closing = policy("rules: {storage: {nfs: {instances: {canAdd: false}}}}", "closing")
    imposing = policy("imposedAssets: [id-1]", "imposing", "project")
    assert together(closing, imposing, assets=(asset(),)) == [
        ("warning", "shut-out-by-lock", "spec.imposedAssets[0]")
    ]
