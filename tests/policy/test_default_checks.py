"""Defaults that no object can hold, that lack a companion, clash, or need settings; and values."""

from __future__ import annotations

from typing import Any

import pytest

from tests.policy.test_document import accepted, clean, document, errors, parse, reasons, warnings
from webhook.evaluation.installation import InstallationConfig
from webhook.policy.asset_document import parse_asset
from webhook.policy.checks import check_settings
from webhook.policy.policy import EVERYWHERE
from webhook.policy.report import LONGEST, cut

PROBE = "defaults: {probes: {readiness: "
HTTP = "{handler: {httpGet: {port: "
AUTOSCALING = "defaults: {autoscaling: "


@pytest.mark.parametrize(
    "text",
    [
        f"{PROBE}{{initialDelaySeconds: -1}}}}}}",
        f"{PROBE}{{periodSeconds: 0}}}}}}",
        f"{PROBE}{{timeoutSeconds: 0}}}}}}",
        f"{PROBE}{{successThreshold: 0}}}}}}",
        f"{PROBE}{{failureThreshold: 0}}}}}}",
        f"{PROBE}{HTTP}0}}}}}}}}}}",
        f"{PROBE}{HTTP}65536}}}}}}}}}}",
        "defaults: {compute: {gpuPortionRequest: 0}}",
        "defaults: {compute: {gpuPortionRequest: 1.5}}",
        "defaults: {compute: {gpuPortionRequest: -0.5}}",
        "defaults: {compute: {gpuPortionLimit: 1.1}}",
        "defaults: {compute: {gpuMemoryRequest: '0'}}",
        "defaults: {compute: {cpuMemoryRequest: -1G}}",
        "defaults: {compute: {cpuCoreRequest: -1}}",
        "defaults: {compute: {gpuDevicesRequest: -1}}",
        "defaults: {security: {runAsUid: -1}}",
        "defaults: {security: {runAsGid: 2147483648}}",
        "defaults: {terminationGracePeriodSeconds: -1}",
        "defaults: {backoffLimit: -1}",
        "defaults: {servingPort: {container: 70000}}",
        f"{AUTOSCALING}{{minReplicas: -1}}}}",
        f"{AUTOSCALING}{{metricThresholdPercentage: 120}}}}",
        f"{AUTOSCALING}{{scaleDownDelaySeconds: 3601}}}}",
        "defaults: {ports: {attributes: {container: 0}}}",
        "defaults: {ports: {instances: [{name: a, container: 65536}]}}",
        "defaults: {compute: {extendedResources: {instances: [{resource: a.b/c, quantity: '1.5'}]}}}",
        "defaults: {compute: {extendedResources: {attributes: {quantity: 100m}}}}",
        (
            "defaults: {storage: {pvc: {instances: [{name: a, path: /a, ephemeral: true, "
            "claimInfo: {size: '0'}}]}}}"
        ),
        "defaults: {storage: {emptyDirVolume: {attributes: {sizeLimit: -1Gi}}}}",
        "defaults: {modelStore: {pvc: {claimInfo: {size: '0'}}}}",
    ],
)
def test_a_number_that_the_field_cannot_hold_is_refused(text: str) -> None:
    assert [reason for reason, _ in errors(text)] == ["value-out-of-range"]


@pytest.mark.parametrize(
    "text",
    [
        f"{PROBE}{{initialDelaySeconds: 0, periodSeconds: 1}}}}}}",
        f"{PROBE}{HTTP}65535}}}}}}}}}}",
        "defaults: {compute: {gpuPortionRequest: 0.5, gpuPortionLimit: 1}}",
        "defaults: {compute: {gpuPortionRequest: 2}}",
        "defaults: {compute: {gpuDevicesRequest: 0, cpuCoreRequest: 0}}",
        "defaults: {security: {runAsUid: 0, runAsGid: 2147483647}}",
        "defaults: {backoffLimit: 0, autoDeletionTimeAfterCompletionSeconds: 0}",
        f"{AUTOSCALING}{{minReplicas: 0, maxReplicas: 1}}}}",
        f"{AUTOSCALING}{{minReplicas: 2, maxReplicas: 0, metric: throughput, metricThreshold: 5}}}}",
        f"{AUTOSCALING}{{concurrencyHardLimit: 0}}}}",
        "defaults: {compute: {extendedResources: {instances: [{resource: a.b/c, quantity: 4M}]}}}",
        "defaults: {tty: true, stdin: true}",
        "defaults: {tty: false}",
        "defaults: {servingPort: {protocol: grpc}}",
        "defaults: {tolerations: {instances: [{key: gpu, operator: Exists}]}}",
        "defaults: {security: {seccompProfileType: RuntimeDefault}}",
        "defaults: {security: {uidGidSource: custom, runAsUid: 1000}}",
        "defaults: {podAffinity: {type: Required, key: zone}}",
        "defaults: {imagePullSecrets: [a, registry.example.com]}",
        (
            "defaults: {imagePullSecrets: {instances: [a, {name: b}]}}\n"
            "rules: {imagePullSecrets: {instances: {locked: [a]}, required: true, options: [a, b]}}"
        ),
        "defaults: {storage: {pvc: {instances: [{claimName: c, existingPvc: true, path: /c}]}}}",
        (
            "defaults: {storage: {pvc: {instances: [{name: c, path: /c}], "
            "attributes: {ephemeral: true, claimInfo: {size: 1Gi}}}}}"
        ),
    ],
)
def test_what_works_is_accepted_without_a_word(text: str) -> None:
    clean(text)


@pytest.mark.parametrize(
    "text, reason",
    [
        ("defaults: {tty: true}", "incomplete-default"),
        ("defaults: {tty: true, stdin: false}", "incomplete-default"),
        ("defaults: {security: {seccompProfileType: Localhost}}", "incomplete-default"),
        ("defaults: {security: {uidGidSource: custom}}", "incomplete-default"),
        ("defaults: {podAffinity: {type: Required}}", "incomplete-default"),
        ("defaults: {podAffinity: {key: zone}}", "incomplete-default"),
        (f"{AUTOSCALING}{{minReplicas: 1, maxReplicas: 3}}}}", "incomplete-default"),
        (f"{AUTOSCALING}{{minReplicas: 1, maxReplicas: 0}}}}", "incomplete-default"),
        (f"{AUTOSCALING}{{metric: throughput}}}}", "incomplete-default"),
        (f"{AUTOSCALING}{{metricThreshold: 5}}}}", "incomplete-default"),
        (
            f"{AUTOSCALING}{{minReplicas: 1, scaleToZeroRetentionSeconds: 5}}}}",
            "incomplete-default",
        ),
        (
            "defaults: {storage: {pvc: {instances: [{name: c, path: /c, ephemeral: true}]}}}",
            "incomplete-item",
        ),
        (
            "defaults: {storage: {pvc: {instances: [{name: c, path: /c, existingPvc: true}]}}}",
            "incomplete-item",
        ),
        (
            (
                "defaults: {storage: {hostPath: {instances: [{name: a, path: /a, mountPath: /a}, "
                "{name: b, path: /b, mountPath: /b, mountPropagation: HostToContainer}]}}}"
            ),
            "mixed-propagation",
        ),
        ("defaults: {category: Train}", "not-enforceable"),
        ("defaults: {exposedUrls: {instances: [{container: 80}]}}", "not-enforceable"),
        ("rules: {servingPort: {authorizationType: {required: true}}}", "not-enforceable"),
        ("rules: {ports: {attributes: {serviceType: {canEdit: false}}}}", "not-enforceable"),
        (
            "rules: {servingPort: {authorizedUsers: {required: true, options: [a]}}}",
            "not-enforceable",
        ),
        ("rules: {modelStore: {pvc: {path: {canEdit: false}}}}", "not-enforceable"),
        ("rules: {compute: {migProfile: {canEdit: false}}}", "outdated-field"),
        ("defaults: {storage: {emptyDirVolume: {attributes: {sizeLimit: 100m}}}}", "milli-memory"),
    ],
)
def test_what_works_with_something_else_only_is_told_once(text: str, reason: str) -> None:
    assert [found for found, _ in warnings(text)] == [reason]


@pytest.mark.parametrize(
    "text, reason",
    [
        (
            "defaults: {servingPort: {authorizedUsers: [a], authorizedGroups: [b]}}",
            "exclusive-defaults",
        ),
        (
            "defaults: {security: {privileged: true, allowPrivilegeEscalation: false}}",
            "exclusive-defaults",
        ),
        (
            "defaults: {security: {capabilities: [CAP_SYS_ADMIN], allowPrivilegeEscalation: false}}",
            "exclusive-defaults",
        ),
        ("defaults: {security: {runAsNonRoot: true, runAsUid: 0}}", "exclusive-defaults"),
        (
            "defaults: {compute: {gpuPortionRequest: 0.5, gpuMemoryRequest: 4G}}",
            "exclusive-defaults",
        ),
        (
            "defaults: {compute: {gpuPortionRequest: 0.5, gpuPortionLimit: 0.4}}",
            "request-above-limit",
        ),
        (
            "defaults: {compute: {gpuMemoryRequest: 4Gi, gpuMemoryLimit: 4G}}",
            "request-above-limit",
        ),
        (f"{AUTOSCALING}{{minReplicas: 4, maxReplicas: 3}}}}", "min-default-above-max-default"),
        ("defaults: {minReplicas: 4, maxReplicas: 3}", "min-default-above-max-default"),
        (
            f"{AUTOSCALING}{{maxReplicas: 0}}}}\nrules: {{autoscaling: {{maxReplicas: {{max: 5}}}}}}",
            "default-outside-rules",
        ),
        ("defaults: {imagePullSecrets: [Registry]}", "bad-name"),
        ("defaults: {security: {serviceAccountName: a_b}}", "bad-name"),
        (
            (
                "defaults: {storage: {pvc: {instances: [{name: c, path: /c, existingPvc: true, "
                "ephemeral: true, claimName: c, claimInfo: {size: 1Gi}}]}}}"
            ),
            "exclusive-attributes",
        ),
        (
            (
                "defaults: {storage: {pvc: {instances: [{name: c, path: /c, ephemeral: true}]}}}\n"
                "rules: {storage: {pvc: {instances: {locked: [c]}}}}"
            ),
            "locked-item-incomplete",
        ),
        (
            (
                "defaults: {storage: {nfs: {instances: [{name: a, server: s, path: /p, mountPath: /m}]},"
                " emptyDirVolume: {instances: [{name: b, path: /m/}]}}}"
            ),
            "items-clash",
        ),
        (
            (
                "defaults: {storage: {nfs: {instances: [{name: a, server: s, path: /p, mountPath: /m}]},"
                " emptyDirVolume: {instances: [{name: a, path: /n}]}}}"
            ),
            "items-clash",
        ),
        (
            (
                "defaults: {exposedUrls: {attributes: {authorizedUsers: [a]}, instances: "
                "[{container: 80, authorizedGroups: [b]}]}}"
            ),
            "exclusive-attributes",
        ),
        (
            (
                "defaults: {exposedUrls: {instances: "
                "[{container: 80, authorizedUsers: [a], authorizedGroups: [b]}]}}"
            ),
            "exclusive-attributes",
        ),
        (
            "defaults: {environmentVariables: {instances: [{name: A, secret: {name: s, kye: k}}]}}",
            "unknown-field",
        ),
        (
            (
                "defaults: {storage: {secretVolume: {instances: "
                "[{secret: a, mountPath: /a, defaultMode: 0999}]}}}"
            ),
            "wrong-type",
        ),
        ("defaults: {security: {supplementalGroups: '1 and 2'}}", "wrong-type"),
        ("rules: {compute: {cpuMemoryLimit: {max: 1..2}}}", "wrong-type"),
        ("defaults: {nodeAffinityRequired: {nodeSelectorTerms: []}}", "empty-list"),
        (
            (
                "defaults: {nodeAffinityRequired: {nodeSelectorTerms: "
                "[{matchExpressions: [{key: a, operator: in, values: [b]}]}]}}"
            ),
            "value-outside-enum",
        ),
        (
            (
                "defaults: {nodeAffinityRequired: {nodeSelectorTerms: "
                "[{matchExpressions: [{key: a, operator: Exists, values: [b]}]}]}}"
            ),
            "bad-selector",
        ),
    ],
)
def test_what_cannot_work_is_refused(text: str, reason: str) -> None:
    found = [each for each, _ in errors(text)]
    assert reason in found
    assert set(found) <= {reason, "missing-value"}
    assert all(each.line and each.fix for each in parse(text)[1])


@pytest.mark.parametrize(
    ("operator", "fix"),
    [
        ("in", "did you mean In?"),
        ("Between", "write one of In, NotIn, Exists, DoesNotExist, Gt, Lt"),
        ("[In]", "write one of In, NotIn, Exists, DoesNotExist, Gt, Lt"),
    ],
)
def test_the_fix_of_an_unknown_operator_is_the_nearest_one_or_all(operator: str, fix: str) -> None:
    _, problems = parse(
        "defaults: {nodeAffinityRequired: {nodeSelectorTerms: "
        f"[{{matchExpressions: [{{key: a, operator: {operator}, values: [b]}}]}}]}}}}"
    )
    assert [each.fix for each in problems if each.reason == "value-outside-enum"] == [fix]


def test_values_of_a_selector_that_are_no_list_are_refused() -> None:
    text = (
        "defaults: {nodeAffinityRequired: {nodeSelectorTerms: "
        "[{matchExpressions: [{key: a, operator: In, values: 7}]}]}}"
    )
    assert {reason for reason, _ in errors(text)} == {"wrong-type"}


def test_what_is_shown_of_a_value_is_never_longer_than_the_limit() -> None:
    assert cut("x" * LONGEST) == "x" * LONGEST
    assert cut("x" * (LONGEST + 1)) == "x" * (LONGEST - 1) + "…"


def test_a_computed_default_counts_as_given() -> None:
    text = (
        "defaults: {security: {uidGidSource: custom, runAsGid: 5}}\n"
        "rules: {security: {runAsUid: {defaultFrom: {field: runAsGid}}}}"
    )
    clean(text)


def test_what_one_role_lacks_is_found_there() -> None:
    text = "defaults: {worker: {tty: true}, master: {tty: true, stdin: true}}"
    _, problems = parse(text)
    assert [(each.reason, each.path) for each in problems] == [
        ("incomplete-default", "defaults.worker.tty")
    ]


def test_a_field_that_nothing_carries_is_told_once_at_its_first_place() -> None:
    text = (
        "defaults: {servingPort: {authorizedUsers: [a]}}\n"
        "rules: {servingPort: {authorizedUsers: {required: true, canEdit: false}}}"
    )
    _, problems = parse(text)
    assert [(each.reason, each.line) for each in problems] == [("not-enforceable", 1)]


def test_serving_ports_are_for_services() -> None:
    assert reasons("rules: {servingPort: {protocol: {required: true}}}", workload_type="training")
    assert not reasons(
        "rules: {servingPort: {protocol: {required: true}}}", workload_type="inference"
    )


# values


def test_texts_keep_the_notation_of_their_author() -> None:
    text = """\
    defaults:
      workingDir: 22:30
      nodeType: on
      image: 0644
      priorityClass: 1e9
      security: {supplementalGroups: 1;2}
      labels: {instances: [{name: a, value: 0x10}]}
      storage: {configMapVolume: {instances: [{configMap: c, mountPath: /c, defaultMode: 0644}]}}
      compute: {extendedResources: {instances: [{resource: example.com/fpga, quantity: 2}]}}
      ports: {instances: [{name: web, container: "8080"}]}
    """
    body = clean(text).body
    defaults, items = body.defaults[EVERYWHERE], body.items[EVERYWHERE]
    told = {name: default.value for name, default in defaults.items()}
    assert told == {
        "workingDir": "22:30",
        "nodeType": "on",
        "image": "0644",
        "priorityClass": "1e9",
        "security.supplementalGroups": frozenset({1, 2}),
    }
    given = {
        field: {name: each.value for name, each in found[0].attributes.items()}
        for field, found in items.items()
    }
    assert given["labels"]["value"] == "0x10"
    assert given["storage.configMapVolume"]["defaultMode"] == "0644"
    assert given["compute.extendedResources"]["quantity"] == 2 * 10**9
    assert given["ports"]["container"] == 8080


def test_amounts_typed_as_text_are_equal_in_every_notation() -> None:
    text = (
        "defaults: {storage: {emptyDirVolume: {attributes: {sizeLimit: 1000M}}}}\n"
        "rules: {storage: {emptyDirVolume: {attributes: "
        "{sizeLimit: {options: [1G, {value: 2Gi}], min: 1e9, max: 4Gi}}}}}"
    )
    clean(text)
    assert errors(text.replace("1000M", "1001M"))[0][0] == "default-outside-rules"


@pytest.mark.parametrize("value", ["on", "yes", "1"])
def test_words_of_yaml_for_true_are_no_booleans(value: str) -> None:
    assert errors(f"defaults: {{tty: {value}}}")[0][0] == "wrong-type"


# settings

GIT = "{name: code, repository: 'https://git.example.com/a', path: /code}"
NEEDY = [
    (f"defaults: {{storage: {{git: {{instances: [{GIT}]}}}}}}", {"git_image": "git-sync:v4"}),
    (
        "defaults: {storage: {s3: {instances: [{name: data, bucket: b, path: /data}]}}}",
        {"s3_drivers": {"s3.csi.example.com": "bucketName"}},
    ),
    (
        "defaults: {storage: {dataVolume: {instances: [{id: 11-22, mountPath: /d}]}}}",
        {"data_volumes": {"11-22": "claim"}},
    ),
    ("imposedAssets: [code]", {"git_image": "git-sync:v4"}),
    (
        "defaults: {compute: {gpuDevicesRequest: 2, gpuPortionRequest: 0.5}}",
        {"several_devices": True},
    ),
]


def told_with(text: str, **words: Any) -> list[tuple[str, str]]:
    """Severity and reason of what the settings lack for a policy."""
    asset, _ = parse_asset(
        document(
            "meta: {id: code, name: code, kind: git}\n"
            "spec: {repository: 'https://git.example.com/a', path: /code}"
        )
    )
    assert asset is not None
    found = check_settings([accepted(text)], {asset.id: asset}, InstallationConfig(**words))
    assert all(each.line and each.fix for each in found)
    return [(each.severity, each.reason) for each in found]


@pytest.mark.parametrize("text, words", NEEDY, ids=range(len(NEEDY)))
def test_a_default_that_needs_a_setting_is_refused_without_it(
    text: str, words: dict[str, Any]
) -> None:
    assert told_with(text) == [("error", "needs-settings")]
    assert told_with(text, **words) == []


def test_a_data_volume_has_to_be_known_by_its_own_id() -> None:
    text = NEEDY[2][0]
    assert told_with(text, data_volumes={"other": "claim"}) == [("error", "needs-settings")]


def test_ids_of_a_token_need_to_be_mapped_or_nothing_is_written() -> None:
    text = "defaults: {security: {uidGidSource: fromIdpToken}}"
    assert told_with(text) == [("warning", "needs-settings")]
    assert told_with(text, identity_claims={"uid": "uid"}) == []


@pytest.mark.parametrize("field", ["git", "s3", "dataVolume"])
def test_rules_on_what_nobody_recognises_are_told(field: str) -> None:
    assert told_with(f"rules: {{storage: {{{field}: {{instances: {{canAdd: false}}}}}}}}") == [
        ("warning", "blind-without-settings")
    ]
    assert told_with(f"rules: {{storage: {{{field}: {{instances: {{canAdd: true}}}}}}}}") == []
    attributes = f"defaults: {{storage: {{{field}: {{attributes: {{exclude: false}}}}}}}}"
    assert told_with(attributes) == []


CLAIM = (
    "defaults: {storage: {pvc: {instances: [{claimName: c, path: /c, claimInfo: {size: 1Gi}}]}}}"
)


@pytest.mark.parametrize(
    "text",
    [
        CLAIM,
        CLAIM.replace("claimName: c,", "claimName: c, existingPvc: false, ephemeral: false,"),
        f"defaults: {{worker: {CLAIM.removeprefix('defaults: ')}}}",
    ],
)
def test_who_creates_a_claim_follows_the_setting(text: str) -> None:
    assert told_with(text) == [("warning", "claim-not-created")]
    assert told_with(text, create_claims=True) == [("note", "claim-created")]


@pytest.mark.parametrize(
    "text",
    [
        CLAIM.replace("claimName: c,", "claimName: c, existingPvc: true,"),
        CLAIM.replace("claimName: c,", "name: c, ephemeral: true,"),
        CLAIM.replace("{pvc: {", "{pvc: {attributes: {existingPvc: true}, "),
        "defaults: {storage: {pvc: {instances: [{name: c, exclude: true}]}}}",
    ],
)
def test_nobody_has_to_create_other_claims(text: str) -> None:
    assert told_with(text) == told_with(text, create_claims=True) == []
