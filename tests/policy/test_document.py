"""Reading policy documents: forms, names, values, places."""

from __future__ import annotations

import dataclasses
import textwrap
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from webhook.documents.model import keys_at
from webhook.documents.problem import Problem
from webhook.documents.read_model import reader
from webhook.documents.source import SourceDocument
from webhook.documents.yaml_source import read_documents
from webhook.lint.advice import REASONS
from webhook.objects.quantity import NANO
from webhook.policy.policy import EVERYWHERE, DefaultFrom, Policy, component_level, role_level
from webhook.policy.policy_document import Context, is_policy, parse_policy
from webhook.policy.policy_spec import ClusterPolicySpec
from webhook.policy.rules.requirements import Step

POLICIES = Path(__file__).parents[2] / "policies"
HEAD = """\
apiVersion: podgate.dev/v1alpha1
kind: ClusterWorkloadPolicy
metadata: {name: limits}
spec:
"""


def document(text: str, origin: str = "limits.yaml") -> SourceDocument:
    found, faults = read_documents(textwrap.dedent(text), origin)
    assert not faults
    return found[0]


def parse(text: str, **context: Any) -> tuple[Policy | None, tuple[Problem, ...]]:
    return parse_policy(document(text), Context(**context))


def accepted(text: str, **context: Any) -> Policy:
    policy, problems = parse(text, **context)
    assert policy is not None, problems
    return policy


def clean(text: str, **context: Any) -> Policy:
    policy, problems = parse(text, **context)
    assert not problems, problems
    assert policy is not None
    return policy


def reasons(text: str, **context: Any) -> list[str]:
    return [each.reason for each in parse(text, **context)[1]]


def errors(text: str, **context: Any) -> list[tuple[str, str]]:
    _, problems = parse(text, **context)
    return [(each.reason, each.path) for each in problems if each.severity == "error"]


def warnings(text: str, **context: Any) -> list[tuple[str, str]]:
    policy, problems = parse(text, **context)
    assert policy is not None, problems
    return [(each.reason, each.fix) for each in problems]


def spec(text: str) -> str:
    return HEAD + textwrap.indent(textwrap.dedent(text), "  ")


# forms


@pytest.mark.parametrize(
    "path", sorted(POLICIES.glob("examples/*.yaml")), ids=lambda each: each.stem
)
def test_every_example_policy_is_faultless(path: Path) -> None:
    found, faults = read_documents(path.read_text("utf-8"), str(path))
    assert found
    assert not faults
    for each in found:
        assert is_policy(each)
        policy, problems = parse_policy(each, Context())
        assert policy is not None
        assert not problems


def test_the_system_policy_forbids_privileged_pods_and_bounds_the_grace_period() -> None:
    policy = clean((POLICIES / "system.yaml").read_text("utf-8"))
    assert policy.scope == "system"
    assert policy.body.rules[EVERYWHERE] == {
        "security.privileged": {"canEdit": False},
        "terminationGracePeriodSeconds": {"max": 300},
    }
    defaults = policy.body.defaults[EVERYWHERE]
    assert defaults["security.privileged"].value is False
    assert defaults["terminationGracePeriodSeconds"].value == 30


def test_a_bare_body_is_a_cluster_policy_for_all_types_named_after_its_file() -> None:
    policy = clean("rules: {image: {required: true}}")
    assert (policy.name, policy.scope, policy.workload_types) == ("limits", "cluster", None)


def test_a_later_document_of_a_file_is_named_with_its_index() -> None:
    found, _ = read_documents("rules: {}\n---\nrules: {}\n", "/etc/policies/team.yaml")
    names = [parse_policy(each, Context())[0] for each in found]
    assert [each.name for each in names if each] == ["team", "team#2"]


def test_a_bare_body_takes_type_and_namespace_from_the_context() -> None:
    policy = clean(
        "rules: {}", workload_type="training", default_scope="project", namespace="vision"
    )
    assert (policy.scope, policy.namespace) == ("project", "vision")
    assert policy.workload_types == frozenset({"training"})


def test_a_bare_project_policy_without_namespace_is_refused() -> None:
    assert errors("rules: {}", default_scope="project") == [("missing-namespace", "(whole object)")]


API = """\
meta: {name: vision-limits, scope: project, projectId: "4510", id: x, createdAt: now}
policy:
  defaults: null
  rules: {compute: {gpuDevicesRequest: {max: 4}}}
  imposedAssets: null
  status: {validation: {errorMessage: ''}}
effective: {rules: {nonsense: 1}}
effectiveUpdatedAt: now
"""


def test_the_api_form_maps_its_project_to_a_namespace() -> None:
    policy = clean(API, scope_names={"4510": ("runai-vision",)})
    assert (policy.name, policy.scope, policy.namespace) == (
        "vision-limits",
        "project",
        "runai-vision",
    )
    assert policy.body.rules[EVERYWHERE] == {"compute.gpuDevicesRequest": {"max": 4}}


def test_an_unmapped_project_says_how_to_map_it() -> None:
    _, problems = parse(API)
    assert [(each.reason, each.path) for each in problems] == [
        ("unmapped-scope-id", "meta.projectId")
    ]
    assert "4510" in problems[0].fix


def test_an_api_department_selects_the_namespaces_that_its_id_stands_for() -> None:
    text = "meta: {name: d, scope: department, departmentId: 7}\npolicy: {rules: {}}"
    policy = clean(text, scope_names={"7": ("a", "b")})
    assert policy.governs_namespace("a", {"kubernetes.io/metadata.name": "a"})
    assert not policy.governs_namespace("c", {"kubernetes.io/metadata.name": "c"})


def test_api_members_that_are_missing_or_unknown_are_told_together() -> None:
    assert errors("meta: {scoop: x}\npolicy: {rules: {}}\nreset: []") == [
        ("missing-name", "meta"),
        ("missing-scope", "meta"),
        ("unknown-field", "meta.scoop"),
        ("unknown-field", "reset"),
    ]


def test_a_cluster_policy_says_whom_it_governs_and_how() -> None:
    policy = clean(
        spec("""\
        scope: department
        namespaceSelector:
          matchLabels: {department: vision}
          matchExpressions: [{key: tier, operator: NotIn, values: [dev]}]
        excludeNamespaces: [sandbox]
        workloadTypes: [training, distributed]
        enforcement: Audit
        existing: strict
        containers: main
        message: Ask in the platform channel
        docsURL: https://wiki.example.com/gpu
        """)
    )
    assert policy.workload_types == frozenset({"training", "distributed"})
    assert (policy.enforcement, policy.tolerates_existing, policy.containers) == (
        "Audit",
        False,
        "main",
    )
    assert policy.governs_namespace("a", {"department": "vision"})
    assert not policy.governs_namespace("a", {"department": "vision", "tier": "dev"})
    assert not policy.governs_namespace("sandbox", {"department": "vision"})


def test_kinds_may_stand_instead_of_workload_types() -> None:
    policy = clean(spec("kinds: [{group: ray.io, kind: RayCluster}, {kind: Pod}]"))
    assert policy.kinds == frozenset({("ray.io", "RayCluster"), ("", "Pod")})


def test_workload_types_and_kinds_together_are_refused() -> None:
    text = spec("workloadTypes: [training]\nkinds: [{kind: Pod}]")
    assert errors(text) == [("types-and-kinds", "spec.kinds")]


@pytest.mark.parametrize(
    "member,reason",
    [
        ("scope: project", "value-outside-enum"),
        ("scope: department", "department-without-selector"),
        ("workloadTypes: [trainings]", "value-outside-enum"),
        ("workloadTypes: []", "empty-list"),
        ("kinds: []", "empty-list"),
        ("kinds: [{group: x}]", "missing-value"),
        ("enforcement: enforce", "value-outside-enum"),
        ("docsURL: 'javascript:alert(1)'", "bad-url"),
        ("namespaceSelector: {matchLabel: {a: b}}", "unknown-field"),
        ("namespaceSelector: {matchLabels: {a: 1}}", "bad-selector"),
        ("namespaceSelector: {matchExpressions: [{key: a, operator: in}]}", "bad-selector"),
        ("namespaceSelector: {matchExpressions: [{key: a, operator: [In]}]}", "bad-selector"),
        ("namespaceSelector: {matchExpressions: [{key: a, operator: In}]}", "bad-selector"),
        ("excludeNamespace: [a]", "unknown-field"),
        ("existing: [strict]", "value-outside-enum"),
        ("message: [a]", "wrong-type"),
        ("compute: {}", "fragment-without-root"),
    ],
)
def test_each_member_of_the_envelope_is_checked(member: str, reason: str) -> None:
    assert [found for found, _ in errors(spec(member))] == [reason]


def test_an_envelope_member_in_another_spelling_is_named() -> None:
    _, problems = parse(spec("docsUrl: https://x"))
    assert [(each.line, each.fix) for each in problems] == [(5, "did you mean docsURL?")]


WORKLOAD_POLICY = """\
apiVersion: podgate.dev/v1alpha1
kind: WorkloadPolicy
metadata: {name: limits, creationTimestamp: 2026-01-02T03:04:05Z}
spec: {rules: {image: {required: true}}}
"""


def test_a_workload_policy_governs_its_own_namespace() -> None:
    own = WORKLOAD_POLICY.replace("name: limits", "name: limits, namespace: vision")
    policy = clean(own, namespace="elsewhere")
    assert (policy.scope, policy.namespace) == ("project", "vision")
    assert policy.created == "2026-01-02T03:04:05Z"


def test_a_workload_policy_may_get_its_namespace_from_the_context() -> None:
    assert clean(WORKLOAD_POLICY, namespace="vision").namespace == "vision"
    assert errors(WORKLOAD_POLICY) == [("missing-namespace", "metadata")]


def test_a_workload_policy_has_neither_scope_nor_selector() -> None:
    text = WORKLOAD_POLICY.replace("spec: {", "spec: {scope: cluster, namespaceSelector: {}, ")
    assert errors(text, namespace="vision") == [
        ("unknown-field", "spec.scope"),
        ("unknown-field", "spec.namespaceSelector"),
    ]


def test_other_versions_of_our_kinds_are_policies_and_refused() -> None:
    text = WORKLOAD_POLICY.replace("v1alpha1", "v1")
    assert is_policy(document(text))
    assert errors(text, namespace="a") == [("wrong-version", "apiVersion")]


@pytest.mark.parametrize(
    "text,expected",
    [
        ("Rules: {}", True),
        ("DEFAULTS: {}", True),
        ("imposedassets: []", True),
        ("meta: {}\npolicy: {}", True),
        ("apiVersion: podgate.dev/v1alpha1\nkind: ClusterWorkloadPolicy", True),
        ("apiVersion: run.ai/v2alpha1\nkind: TrainingPolicy", True),
        ("apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nrules: []", False),
        ("kind: Role\nrules: []", False),
        ("apiVersion: rbac.authorization.k8s.io/v1\nrules: []", False),
        ("apiVersion: podgate.dev/v1alpha1\nkind: WorkloadAsset", False),
        ("meta: {}\nspec: {}", False),
        ("- rules", False),
    ],
)
def test_policies_are_told_from_other_documents(text: str, expected: bool) -> None:
    assert is_policy(document(text)) is expected


def test_first_generation_policies_are_named_as_such() -> None:
    text = "apiVersion: run.ai/v2alpha1\nkind: TrainingPolicy\nspec: {gpu: {value: '1'}}"
    assert errors(text) == [("legacy-v1", "kind")]


def test_bodies_of_version_2_16_are_named_as_such() -> None:
    assert errors("rules: {hostPath: {canAdd: false}, workspace: {}}") == [("legacy-2.16", "rules")]
    assert errors("imposedAssets: {dataSources: {nfs: {canAdd: false}}}") == [
        ("legacy-2.16", "imposedAssets")
    ]


def test_rules_without_their_root_are_refused_with_a_hint() -> None:
    _, problems = parse("compute: {gpuDevicesRequest: {max: 4}}\nimage: {required: true}")
    assert [each.reason for each in problems] == ["fragment-without-root"] * 2
    assert all("below rules:" in each.fix for each in problems)


def test_a_leaf_without_its_section_is_refused_with_the_full_name() -> None:
    _, problems = parse("rules: {gpuDevicesRequest: {max: 4}}")
    assert [(each.reason, each.fix) for each in problems] == [
        ("unknown-field", "did you mean compute.gpuDevicesRequest?")
    ]


# names


def test_example_23_loads_with_warnings_that_give_the_canonical_names() -> None:
    text = """\
    Rules:
      compute: {gpuDeviceRequest: {Max: 2, min: null}}
      storage:
        nfs:
          Attributes: {nfsServer: {options: [nfs.example.com]}}
          Instances: {canadd: false}
    """
    policy, problems = parse(text)
    assert policy is not None
    assert {(each.reason, each.fix) for each in problems} == {
        ("letter-case", "write rules"),
        ("alias", "write compute.gpuDevicesRequest"),
        ("letter-case", "write max"),
        ("letter-case", "write attributes"),
        ("alias", "write server"),
        ("letter-case", "write instances"),
        ("letter-case", "write canAdd"),
    }
    assert policy.body.rules[EVERYWHERE] == {
        "compute.gpuDevicesRequest": {"max": 2},
        "storage.nfs": {"canAdd": False},
        "storage.nfs.server": {"options": frozenset({"nfs.example.com"})},
    }


@pytest.mark.parametrize("word", ["canedit", "can-edit", "can_edit", "CANEDIT"])
def test_rule_words_are_known_in_every_spelling(word: str) -> None:
    policy = accepted(f"rules: {{image: {{{word}: false}}}}")
    assert policy.body.rules[EVERYWHERE]["image"] == {"canEdit": False}


@pytest.mark.parametrize("word", ["defaultfrom", "default-from", "default_from", "defaulFrom"])
def test_default_from_is_known_in_every_spelling(word: str) -> None:
    text = f"rules: {{compute: {{cpuCoreRequest: {{{word}: {{field: cpuCoreLimit}}}}}}}}"
    assert "defaultFrom" in accepted(text).body.rules[EVERYWHERE]["compute.cpuCoreRequest"]


def test_a_root_level_alias_leads_into_its_section() -> None:
    text = "rules: {privileged: {canEdit: false}}"
    assert warnings(text) == [("alias", "write security.privileged")]
    assert list(accepted(text).body.rules[EVERYWHERE]) == ["security.privileged"]


def test_the_canonical_spelling_wins_over_others() -> None:
    text = """\
    rules:
      Image: {options: [c]}
      compute: {gpuDevices: {max: 1}, gpuDevicesRequest: {max: 2}}
      image: {options: [a]}
    """
    policy = accepted(text)
    assert policy.body.rules[EVERYWHERE] == {
        "image": {"options": frozenset({"a"})},
        "compute.gpuDevicesRequest": {"max": 2},
    }
    assert reasons(text).count("spelled-twice") == 2


def test_null_is_absent_everywhere() -> None:
    text = """\
    defaults: {compute: null, image: null, tolerations: {instances: null, attributes: null}}
    rules: {image: null, compute: {cpuCoreLimit: {max: null, wrong: null}}, master: null}
    imposedAssets: null
    """
    assert reasons(text) == ["unknown-rule"]
    body = clean(text.replace(", wrong: null", "")).body
    assert not body.rules
    assert not body.defaults


def test_dotted_keys_are_refused_with_the_nested_form() -> None:
    _, problems = parse("rules: {compute.cpuCoreLimit: {max: 1}}")
    assert [(each.reason, each.fix) for each in problems] == [
        ("unknown-field", "write it nested, as compute: {cpuCoreLimit: …}")
    ]


# levels


def test_example_16_keeps_master_and_worker_apart() -> None:
    text = """\
    defaults: {master: {security: {runAsUid: 1500}}, worker: {security: {runAsUid: 2500}}}
    rules:
      master: {command: {options: [{value: ./lead.sh}]}}
      worker:
        command: {options: [{value: ./run.sh, displayed: Run}]}
        numWorkers: {max: 4}
        storage: {nfs: {instances: {canAdd: false}}}
    """
    body = clean(text, workload_type="distributed").body
    master, worker = role_level("master"), role_level("worker")
    assert body.defaults[master]["security.runAsUid"].value == 1500
    assert body.defaults[worker]["security.runAsUid"].value == 2500
    assert body.rules[master] == {"command": {"options": frozenset({("./lead.sh",)})}}
    assert body.rules[worker]["command"] == {"options": frozenset({("./run.sh",)})}
    assert body.rules[worker]["numWorkers"] == {"max": 4}
    assert body.rules[worker]["storage.nfs"] == {"canAdd": False}


def test_components_and_observed_role_names_are_levels() -> None:
    text = """\
    rules:
      masterSpec: {image: {required: true}}
      components: {head: {image: {required: true}}}
    """
    policy = accepted(text)
    assert set(policy.body.rules) == {role_level("master"), component_level("head")}
    assert warnings(text) == [("alias", "write master")]


def test_a_worker_field_below_master_is_refused() -> None:
    assert errors("rules: {master: {numWorkers: {max: 4}}}") == [
        ("wrong-level", "rules.master.numWorkers")
    ]


def test_imposed_assets_may_stand_per_role() -> None:
    body = clean("imposedAssets: {master: [a], worker: [a, b], components: {x: [c]}}").body
    assert body.imposed == {
        role_level("master"): ("a",),
        role_level("worker"): ("a", "b"),
        component_level("x"): ("c",),
    }


# values and rules


def test_bounds_are_in_the_units_of_their_leaf() -> None:
    text = """\
    rules:
      compute:
        cpuCoreRequest: {min: 1, max: "9", step: 4}
        cpuMemoryRequest: {min: '1M', max: 4G}
        cpuMemoryLimit: {max: 4000000000}
        gpuDevicesRequest: {min: 0, max: 6, step: 2}
    """
    rules = clean(text).body.rules[EVERYWHERE]
    assert rules["compute.cpuCoreRequest"] == {
        "min": NANO,
        "max": 9 * NANO,
        "step": Step(4 * NANO, NANO),
    }
    assert rules["compute.cpuMemoryRequest"] == {"min": 10**6 * NANO, "max": 4 * 10**9 * NANO}
    assert rules["compute.cpuMemoryLimit"] == {"max": 4 * 10**9 * NANO}
    assert rules["compute.gpuDevicesRequest"] == {"min": 0, "max": 6, "step": Step(2, 0)}


def test_options_are_values_with_or_without_a_label() -> None:
    text = """\
    rules:
      image: {options: [{value: 'a:1', displayed: Base}, 'b:2']}
      imagePullPolicy: {options: [always, {value: Never}]}
      security: {capabilities: {options: [cap_net_admin, {value: SYS_TIME}]}}
    """
    rules = accepted(text).body.rules[EVERYWHERE]
    assert rules["image"]["options"] == frozenset({"a:1", "b:2"})
    assert rules["imagePullPolicy"]["options"] == frozenset({"Always", "Never"})
    assert rules["security.capabilities"]["options"] == frozenset({"NET_ADMIN", "SYS_TIME"})


def test_text_keeps_what_its_author_wrote() -> None:
    text = """\
    defaults: {workingDir: 0644, nodeType: on}
    rules: {priorityClass: {options: [1e9, yes, 22:30]}}
    """
    body = clean(text).body
    assert body.defaults[EVERYWHERE]["workingDir"].value == "0644"
    assert body.defaults[EVERYWHERE]["nodeType"].value == "on"
    assert body.rules[EVERYWHERE]["priorityClass"]["options"] == frozenset({"1e9", "yes", "22:30"})


@pytest.mark.parametrize(
    "leaf",
    [
        "security: {privileged: yes}",
        "security: {privileged: 1}",
        "security: {runAsUid: 0644}",
        "security: {runAsUid: 22:30}",
        "security: {runAsUid: 1.5}",
        "security: {runAsUid: true}",
        "compute: {cpuCoreLimit: .inf}",
        "compute: {cpuCoreLimit: .nan}",
        "compute: {cpuCoreLimit: 500m}",
        "compute: {cpuMemoryLimit: 4GB}",
        "compute: {cpuMemoryLimit: 1..2}",
        "compute: {cpuMemoryLimit: true}",
        "image: [a]",
        "image: {name: a}",
        "security: {capabilities: NET_ADMIN}",
        "security: {capabilities: [{a: b}]}",
        'command: "echo \'open"',
    ],
)
def test_values_of_another_type_are_refused(leaf: str) -> None:
    assert [reason for reason, _ in errors(f"defaults: {{{leaf}}}")] == ["wrong-type"]


def test_a_refused_value_is_shown_as_its_author_wrote_it() -> None:
    _, problems = parse("defaults: {security: {privileged: yes, runAsUid: 1.50}}")
    assert [each.found for each in problems] == ["yes", "1.50"]


@pytest.mark.parametrize(
    ("operator", "least", "most"),
    [
        ("In", 1, 3),
        ("NotIn", 1, 3),
        ("Exists", 0, 0),
        ("DoesNotExist", 0, 0),
        ("Gt", 1, 1),
        ("Lt", 1, 1),
    ],
)
def test_an_operator_of_a_node_affinity_takes_so_many_values(
    operator: str, least: int, most: int
) -> None:
    for count in range(4):
        values = ["1", "2", "3"][:count]
        terms = f"[{{matchExpressions: [{{key: a, operator: {operator}, values: {values}}}]}}]"
        found = reasons(f"defaults: {{nodeAffinityRequired: {{nodeSelectorTerms: {terms}}}}}")
        assert found == ([] if least <= count <= most else ["bad-selector"]), count


def test_a_default_outside_its_options_is_told_what_it_may_be() -> None:
    defaults = "{imagePullPolicy: Always, security: {capabilities: [SYS_ADMIN]}}"
    options = "{imagePullPolicy: {options: [Never, IfNotPresent]}, "
    options += "security: {capabilities: {options: [NET_ADMIN, CHOWN]}}}"
    _, problems = parse(f"defaults: {defaults}\nrules: {options}")
    assert [(each.reason, each.fix) for each in problems] == [
        ("default-outside-rules", 'keep to options "IfNotPresent", "Never", or change the rule'),
        ("default-outside-rules", "keep to options CHOWN, NET_ADMIN, or change the rule"),
    ]


def test_a_quantity_with_an_unknown_suffix_names_the_known_ones() -> None:
    _, problems = parse("defaults: {compute: {cpuMemoryLimit: 64K}}")
    assert [each.fix for each in problems] == ["write 64k or 64Ki"]


def test_defaults_keep_their_notation() -> None:
    defaults = clean(
        "defaults: {compute: {cpuMemoryLimit: 2048Mi, cpuCoreLimit: 0.50}, command: 'sh -c x'}"
    ).body.defaults[EVERYWHERE]
    memory = defaults["compute.cpuMemoryLimit"]
    assert (memory.value, memory.raw) == (2**31 * NANO, "2048Mi")
    assert defaults["compute.cpuCoreLimit"].value == NANO // 2
    assert defaults["command"].value == ("sh", "-c", "x")


def test_spellings_of_values_are_accepted_with_a_warning() -> None:
    text = "defaults: {imagePullPolicy: always}"
    assert warnings(text) == [("value-spelling", "write Always")]
    assert accepted(text).body.defaults[EVERYWHERE]["imagePullPolicy"].value == "Always"


def test_example_15_computes_defaults_from_fields_by_any_of_their_names() -> None:
    text = """\
    defaults: {compute: {cpuCoreLimit: 6, cpuCoreRequest: 1, cpuMemoryLimit: 3G}}
    rules:
      compute:
        cpuCoreRequest: {min: 1, defaultFrom: {field: compute.cpuCoreLimit, factor: 0.25}}
        cpuMemoryRequest: {defaultFrom: {field: cpuMemoryLimit, factor: 0.1}}
      worker: {compute: {cpuCoreRequest: {defaultFrom: {field: worker.cpuCoreLimit}}}}
    """
    rules = accepted(text).body.rules
    assert rules[role_level("worker")]["compute.cpuCoreRequest"]["defaultFrom"] == DefaultFrom(
        "compute.cpuCoreLimit", Fraction(1)
    )
    assert rules[EVERYWHERE]["compute.cpuCoreRequest"]["defaultFrom"] == DefaultFrom(
        "compute.cpuCoreLimit", Fraction(1, 4)
    )
    assert rules[EVERYWHERE]["compute.cpuMemoryRequest"]["defaultFrom"] == DefaultFrom(
        "compute.cpuMemoryLimit", Fraction(1, 10)
    )


# items


def test_example_12_gives_items_their_key_and_keeps_the_lock() -> None:
    text = """\
    defaults:
      environmentVariables:
        instances: [{name: HTTP_PROXY, value: 'http://p:3128'}, {name: LOG_LEVEL, value: info}]
    rules: {environmentVariables: {instances: {locked: [HTTP_PROXY]}}}
    """
    body = clean(text).body
    items = body.items[EVERYWHERE]["environmentVariables"]
    assert [(each.key, each.attributes["value"].value) for each in items] == [
        ("HTTP_PROXY", "http://p:3128"),
        ("LOG_LEVEL", "info"),
    ]
    assert body.rules[EVERYWHERE]["environmentVariables"] == {"locked": frozenset({"HTTP_PROXY"})}


def test_example_13_reads_a_list_of_attribute_maps_as_one_map() -> None:
    text = """\
    defaults:
      storage:
        hostPath:
          instances: [{name: models, path: /models, mountPath: /models}]
          attributes: [{readOnly: true}, {mountPropagation: HostToContainer}]
    rules:
      storage:
        hostPath: {attributes: {readOnly: {canEdit: false}, mountPath: {required: true}}}
    """
    policy = accepted(text)
    defaults = policy.body.defaults[EVERYWHERE]
    assert defaults["storage.hostPath.readOnly"].value is True
    assert defaults["storage.hostPath.mountPropagation"].value == "HostToContainer"
    assert reasons(text) == ["list-attributes"]


def test_example_22_keys_tolerations_without_names_by_their_content() -> None:
    text = """\
    defaults:
      tolerations:
        instances:
          - {key: gpu, operator: Equal, value: h100, effect: NoExecute}
          - {key: spot, operator: Exists}
    rules:
      tolerations: {instances: {canAdd: false}, attributes: {seconds: {max: 120}}}
      labels: {instances: {canAdd: false}}
    """
    body = clean(text).body
    keys = [each.key for each in body.items[EVERYWHERE]["tolerations"]]
    assert keys == ["gpu+Equal+h100+NoExecute", "spot+Exists++Any"]
    assert body.rules[EVERYWHERE]["tolerations.seconds"] == {"max": 120}
    assert body.rules[EVERYWHERE]["labels"] == {"canAdd": False}


def test_items_without_name_take_the_first_complete_fallback() -> None:
    text = """\
    defaults:
      storage:
        nfs: {instances: [{server: s, path: /p, mountPath: /m}, {server: s, path: /q}]}
    """
    items = accepted(text).body.items[EVERYWHERE]["storage.nfs"]
    assert [each.key for each in items] == ["s+/p+/m", "s+/q"]
    assert reasons(text) == ["incomplete-item"]


def test_example_17_imposes_an_asset_beside_a_closed_list() -> None:
    text = """\
    defaults: null
    rules: {storage: {nfs: {instances: {canAdd: false}}}}
    imposedAssets: [5f0d7c1e-58c5-4b0b-9d46-0f1f8c6b2a77]
    """
    body = clean(text).body
    assert body.imposed == {EVERYWHERE: ("5f0d7c1e-58c5-4b0b-9d46-0f1f8c6b2a77",)}


WORKED_EXAMPLES = {
    "1": """
        defaults:
          imagePullPolicy: Always
          security: {runAsNonRoot: true, runAsUid: 2000}
          compute: {cpuMemoryRequest: 512M}
        rules:
          compute: {cpuMemoryRequest: {required: true}, cpuCoreRequest: {required: true}}
          workingDir: {required: true}
        """,
    "2": """
        rules:
          compute:
            gpuDevicesRequest: {min: 1, max: 6}
            cpuCoreRequest: {required: true, min: 0, max: 6}
          security: {runAsUid: {min: 1000, max: 60000}}
        """,
    "3": """
        rules:
          compute: {cpuMemoryRequest: {min: '1M', max: 4G}, cpuMemoryLimit: {max: 4Gi}}
        """,
    "4": "rules: {compute: {cpuCoreRequest: {min: 1, max: 9, step: 4}}}",
    "5": """
        rules:
          image: {options: [{value: 'r/b:1.4', displayed: Base 1.4}, 'r/c:12']}
          imagePullPolicy: {required: true, options: [{value: Always}, {value: Never}]}
        """,
    "6": """
        defaults: {security: {capabilities: [NET_ADMIN, SYS_PTRACE]}}
        rules: {security: {capabilities: {canEdit: false}}}
        """,
    "7": """
        defaults: {compute: {cpuMemoryLimit: 2G, cpuCoreLimit: 0.5}, security: {runAsUid: 1200}}
        rules:
          compute: {cpuMemoryLimit: {canEdit: false}, cpuCoreLimit: {canEdit: false}}
          security: {runAsUid: {canEdit: false}}
        """,
    "8": """
        rules:
          compute: {cpuMemoryRequest: {canEdit: false}}
          security: {runAsUid: {blocked: true}}
        """,
    "19": """
        rules:
          compute: {gpuDevicesRequest: {max: 8}}
          priorityClass: {options: [{value: low}]}
        """,
}


@pytest.mark.parametrize("text", WORKED_EXAMPLES.values(), ids=WORKED_EXAMPLES)
def test_worked_examples_are_faultless(text: str) -> None:
    clean(text)


@pytest.mark.parametrize(
    "text,found",
    [
        ("rules: {image: true}", ("wrong-type", "rules.image")),
        ("rules: {image: {required: yes}}", ("wrong-type", "rules.image.required")),
        ("rules: {image: {required: 1}}", ("wrong-type", "rules.image.required")),
        ("rules: {image: {options: a}}", ("wrong-type", "rules.image.options")),
        (
            "rules: {image: {options: [{displayed: a}]}}",
            ("missing-value", "rules.image.options[0]"),
        ),
        (
            "rules: {image: {options: [{value: a, label: b}]}}",
            ("unknown-field", "rules.image.options[0].label"),
        ),
        (
            "rules: {security: {capabilities: {options: [[A]]}}}",
            ("wrong-type", "rules.security.capabilities.options[0]"),
        ),
        ("rules: {storage: {nfs: [a]}}", ("wrong-type", "rules.storage.nfs")),
        (
            "rules: {storage: {nfs: {instances: {locked: sets}}}}",
            ("wrong-type", "rules.storage.nfs.instances.locked"),
        ),
        (
            "rules: {storage: {nfs: {instances: {locked: [{a: b}]}}}}",
            ("wrong-type", "rules.storage.nfs.instances.locked[0]"),
        ),
        ("rules: {compute: [a]}", ("wrong-type", "rules.compute")),
        ("rules: [a]", ("wrong-type", "rules")),
        ("defaults: {storage: {nfs: sets}}", ("wrong-type", "defaults.storage.nfs")),
        (
            "defaults: {storage: {nfs: {instances: {a: b}}}}",
            ("wrong-type", "defaults.storage.nfs.instances"),
        ),
        (
            "defaults: {storage: {nfs: {instances: [a]}}}",
            ("wrong-type", "defaults.storage.nfs.instances[0]"),
        ),
        (
            "defaults: {storage: {nfs: {attributes: {exclude: true}}}}",
            ("excluded-default-item", "defaults.storage.nfs.attributes.exclude"),
        ),
        (
            "defaults: {storage: {nfs: {items: []}}}",
            ("unknown-field", "defaults.storage.nfs.items"),
        ),
        ("imposedAssets: x", ("wrong-type", "imposedAssets")),
        ("imposedAssets: {everyone: [a]}", ("unknown-field", "imposedAssets.everyone")),
        (
            "rules: {compute: {cpuCoreLimit: {defaultFrom: cpuCoreRequest}}}",
            ("wrong-type", "rules.compute.cpuCoreLimit.defaultFrom"),
        ),
        (
            "rules: {compute: {cpuCoreLimit: {defaultFrom: {field: cpuCoreRequest, factor: a}}}}",
            ("wrong-type", "rules.compute.cpuCoreLimit.defaultFrom.factor"),
        ),
    ],
)
def test_each_shape_is_checked_where_it_stands(text: str, found: tuple[str, str]) -> None:
    assert errors(text) == [found]


def test_levels_are_known_in_any_letter_case() -> None:
    text = "rules: {Components: {head: {image: {required: true}}}, Worker: {image: {min: null}}}"
    assert {fix for _, fix in warnings(text)} == {"write components", "write worker"}
    assert warnings("imposedAssets: {workerSpec: [a]}") == [("alias", "write worker")]


def test_numbers_may_be_keys_and_names_where_text_is_meant() -> None:
    text = """\
    defaults: {labels: {instances: [{name: 5, value: 1.5}, null]}}
    rules: {labels: {instances: {locked: [5]}}}
    imposedAssets: [7]
    """
    body = clean(text).body
    assert [each.key for each in body.items[EVERYWHERE]["labels"]] == ["5"]
    assert body.rules[EVERYWHERE]["labels"]["locked"] == frozenset({"5"})
    assert body.imposed[EVERYWHERE] == ("7",)


def test_an_api_scope_without_its_id_is_refused() -> None:
    text = "meta: {name: a, scope: project}\npolicy: {rules: {}}"
    assert errors(text) == [("missing-value", "meta")]
    named = "meta: {name: a, scope: project, projectId: x}\npolicy: {rules: {}}"
    assert clean(named, namespace="vision").namespace == "vision"
    assert errors(named, scope_names={"x": ("a", "b")}) == [("unmapped-scope-id", "meta.projectId")]


# places and problems


def test_ten_faults_are_ten_problems_each_with_its_line_path_and_fix() -> None:
    text = spec("""\
    enforcement: enforce
    defaults:
      imagePullPolicy: Sometimes
      compute: {cpuMemoryLimit: 64K}
      security: {runAsUid: 500}
    rules:
      compute:
        cpuCoreRequest: {min: 5, max: 3}
        cpuMemoryRequest: {step: 2}
        gpuDeviceReqests: {max: 1}
      security:
        runAsUid: {min: 1000}
        runAsNonRoot: {required: true, canEdit: false}
      image: {options: []}
      workingDir: {mustExist: true}
    """)
    policy, problems = parse(text)
    assert policy is None
    assert [(each.line, each.path, each.reason) for each in problems] == [
        (5, "spec.enforcement", "value-outside-enum"),
        (7, "spec.defaults.imagePullPolicy", "default-outside-enum"),
        (8, "spec.defaults.compute.cpuMemoryLimit", "wrong-type"),
        (9, "spec.defaults.security.runAsUid", "default-outside-rules"),
        (12, "spec.rules.compute.cpuCoreRequest.min", "min-above-max"),
        (13, "spec.rules.compute.cpuMemoryRequest.step", "rule-not-for-type"),
        (14, "spec.rules.compute.gpuDeviceReqests", "unknown-field"),
        (17, "spec.rules.security.runAsNonRoot.required", "impossible-required"),
        (18, "spec.rules.image.options", "empty-options"),
        (19, "spec.rules.workingDir.mustExist", "unknown-rule"),
    ]
    assert len(problems) == 10
    assert all(each.fix and each.column for each in problems)
    assert all(each.origin == "limits.yaml" and each.severity == "error" for each in problems)


def test_secret_values_are_never_printed() -> None:
    text = """\
    defaults:
      command: "hunter2 'open"
      args: {hunter2: x}
      environmentVariables:
        instances:
          - {name: TOKEN, value: hunter2, secret: {name: a, key: b}}
          - {name: TOKEN, value: [hunter2]}
    rules:
      command: {options: [[{hunter2: 1}], "hunter2 '"]}
    """
    _, problems = parse(text)
    assert len(problems) == 7
    assert not any("hunter2" in f"{each.found}{each.fix}" for each in problems)


def test_equal_documents_have_equal_digests_in_any_notation() -> None:
    one = clean("rules: {compute: {cpuMemoryLimit: {max: 4G}, cpuCoreLimit: {max: 1}}}")
    same = accepted("Rules: {compute: {cpuCoreLimit: {max: '1'}, cpuMemoryLimit: {max: 4000M}}}")
    other = clean("rules: {compute: {cpuMemoryLimit: {max: 4G}, cpuCoreLimit: {max: 2}}}")
    assert one.digest == same.digest
    assert one.digest != other.digest


def test_a_policy_knows_the_places_of_what_it_says() -> None:
    policy = clean("rules:\n  image: {required: true}\n")
    assert policy.positions["rule", EVERYWHERE, "image", "required"] == (
        "rules.image.required",
        2,
        11,
    )


# hostile documents


def raw(data: Any) -> SourceDocument:
    return SourceDocument("hostile", 1, data, {}, {})


def nested(depth: int, key: str = "rules") -> Any:
    value: Any = {}
    for _ in range(depth):
        value = {key: value}
    return value


HOSTILE: list[Any] = [
    None,
    [],
    "rules",
    5,
    float("nan"),
    {},
    {None: None},
    {("a", "b"): 1, b"x": 2, 3: {}, True: False},
    nested(5000),
    {"rules": nested(5000, "compute")},
    {"defaults": {"environmentVariables": nested(5000, "instances")}},
    {
        "defaults": {
            "environmentVariables": {"instances": [{"name": "a", "secret": nested(5000, "x")}]}
        }
    },
    {"rules": {"image": {"options": [nested(5000)]}, "command": {"options": [[[[]]]]}}},
    {"rules": {f"key{index}": {"max": index} for index in range(10_000)}},
    {f"key{index}": index for index in range(10_000)},
    {"rules": {"master": {"master": {"components": {5: {None: 3}}}}, "components": []}},
    {"meta": [], "policy": 5},
    {"meta": {"name": [], "scope": {}}, "policy": {"rules": []}},
    {"apiVersion": "podgate.dev/v1alpha1", "kind": "WorkloadPolicy", "metadata": 7, "spec": []},
    {"apiVersion": [], "kind": {}},
    {
        "apiVersion": "podgate.dev/v1alpha1",
        "kind": "ClusterWorkloadPolicy",
        "metadata": {"name": 5},
        "spec": {
            "scope": [],
            "namespaceSelector": {"matchLabels": 3, "matchExpressions": [None, {"key": {}}]},
            "workloadTypes": {"a": 1},
            "kinds": [None, 3, {"group": [], "kind": {}}],
            "imposedAssets": [[], {}, None],
            "message": {},
            "excludeNamespaces": [3, {}],
        },
    },
    {"rules": {"compute": {"cpuCoreRequest": {"defaultFrom": {"field": [], "factor": {}}}}}},
    {"rules": {"compute": {"cpuCoreRequest": {"step": float("inf"), "min": float("nan")}}}},
    {"rules": {"image": {"options": {"a": 1}, "required": "yes", "x" * 100_000: 1}}},
    {"rules": {"image": {"options": [float("inf"), "\x1b[2J", "\ud800"]}}},
    {"defaults": {"image": "\ud800", "compute": {"cpuMemoryLimit": "9" * 10_000}}},
    {"imposedAssets": {"master": 5, "components": {3: [3]}, "x": []}},
]


@pytest.mark.parametrize("data", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_documents_give_problems_and_never_raise(data: Any) -> None:
    is_policy(raw(data))
    _, problems = parse_policy(raw(data), Context())
    assert all(each.reason in REASONS and each.found and each.fix for each in problems)
    assert all("\x1b" not in f"{each.found}{each.path}{each.fix}" for each in problems)


def test_each_reason_has_a_meaning() -> None:
    assert all(word.replace("-", "").replace(".", "").isalnum() for word in REASONS)
    assert all(meaning.endswith(".") for meaning in REASONS.values())


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("defaults: {compute: {cpuMemoryRequest: 4}}", "few-bytes"),
        ("rules: {image: {options: ['docker.io/*']}}", "literal-star"),
        (
            (
                "apiVersion: podgate.dev/v1alpha1\nkind: ClusterWorkloadPolicy\n"
                "metadata: {name: a, namespace: b}\nspec: {rules: {}}"
            ),
            "namespace-of-all",
        ),
    ],
)
def test_what_is_hardly_meant_is_a_warning(text: str, reason: str) -> None:
    policy, problems = parse(text)
    assert policy is not None
    assert [(each.severity, each.reason) for each in problems] == [("warning", reason)]


def test_amounts_in_plain_bytes_may_be_meant() -> None:
    assert not reasons("defaults: {compute: {cpuMemoryRequest: 4294967296}}")
    assert not reasons("defaults: {compute: {cpuMemoryRequest: 4k}}")


def test_a_kind_that_is_nearly_ours_is_told_as_that() -> None:
    _, problems = parse("apiVersion: podgate.dev/v1alpha1\nkind: WorkloadPolcy\nspec: {}")
    assert [each.fix for each in problems] == ["did you mean WorkloadPolicy?"]


@pytest.mark.parametrize(
    ("text", "found", "fix"),
    [
        ("spec: {}", "spec without apiVersion and kind", "write "),
        ("kind: ''\nspec: {}", "spec without apiVersion and kind", "write "),
        ("metadata: {name: a}\nspec: {}", "an object without kind", "write kind: "),
        ("apiVersion: v1\nspec: {}", "an object without kind", "write kind: "),
        (
            "apiVersion: kyverno.io/v1\nkind: ClusterPolicy",
            "ClusterPolicy, a policy of Kyverno",
            "",
        ),
        ("apiVersion: v1\nkind: List\nitems: []", "kind List", "give its items"),
        ("apiVersion: v1\nkind: ConfigMap", "kind ConfigMap", "give the documents in its data"),
        ("kind: WorkloadPolcy", "kind WorkloadPolcy", "did you mean WorkloadPolicy?"),
        ("apiVersion: v1\nkind: WorkloadPolcy", "kind WorkloadPolcy of v1, which", "remove it"),
        ("apiVersion: apps/v1\nkind: Deployment", "kind Deployment of apps/v1, which", "remove it"),
        ("kind: Deployment", "kind Deployment", "write "),
        ("kind: WorkloadPolicy", "WorkloadPolicy without apiVersion", "write apiVersion: "),
        ("apiVersion: a/v1\nkind: WorkloadPolicy", "WorkloadPolicy with apiVersion a/v1", "write "),
    ],
)
def test_a_document_of_something_else_is_told_as_what_it_is(
    text: str, found: str, fix: str
) -> None:
    policy, (problem,) = parse(text)
    assert policy is None
    assert found in problem.found.replace('"', "")
    assert problem.fix.startswith(fix)


def test_a_value_where_rules_belong_is_answered_with_the_usual_rule() -> None:
    _, problems = parse("rules: {compute: {gpuDevicesRequest: 4}}")
    assert "{max: …}" in problems[0].fix


def test_what_the_schemas_are_made_of_reads_a_spec_as_we_do() -> None:
    spec = {
        "excludeNamespaces": ["a"],
        "kinds": [{"kind": "Pod"}, {"group": "apps", "kind": "Deployment"}],
        "enforcement": "Warn",
        "existing": "strict",
        "containers": "main",
        "message": "m",
        "docsURL": "https://example.com",
        "scope": "department",
        "namespaceSelector": {
            "matchLabels": {"department": "vision"},
            "matchExpressions": [{"key": "old", "operator": "NotIn", "values": ["b", "a"]}],
        },
    }
    assert set(spec) | {"workloadTypes"} == set(keys_at(ClusterPolicySpec, ()))
    data = {
        "apiVersion": "podgate.dev/v1alpha1",
        "kind": "ClusterWorkloadPolicy",
        "metadata": {"name": "p"},
        "spec": spec,
    }
    policy, problems = parse_policy(SourceDocument("p.yaml", 1, data, {}, {}), Context())
    assert policy is not None, problems
    read = reader(ClusterPolicySpec).validate_python(spec)
    for each in dataclasses.fields(ClusterPolicySpec):
        assert getattr(policy, each.name) == getattr(read, each.name), each.name
