"""Checks of defaults that need another default, and of defaults that exclude each other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from webhook.documents.problem import Problem
from webhook.policy.checks.level import Level
from webhook.policy.leaves import leaf_type

MIN_REPLICAS, MAX_REPLICAS = "autoscaling.minReplicas", "autoscaling.maxReplicas"
METRIC, THRESHOLD = "autoscaling.metric", "autoscaling.metricThreshold"
RETENTION = "autoscaling.scaleToZeroRetentionSeconds"
ESCALATION, PRIVILEGED = "security.allowPrivilegeEscalation", "security.privileged"
CAPABILITIES = "security.capabilities"
AFFINITY_TYPE, AFFINITY_KEY = "podAffinity.type", "podAffinity.key"
APPARMOR_TYPE = "security.appArmorProfile.type"
APPARMOR_PROFILE = "security.appArmorProfile.localhostProfile"
UID_SOURCE, UID, NON_ROOT = "security.uidGidSource", "security.runAsUid", "security.runAsNonRoot"
USERS, GROUPS = "servingPort.authorizedUsers", "servingPort.authorizedGroups"
PORTION, MEMORY = "compute.gpuPortionRequest", "compute.gpuMemoryRequest"
REQUEST_TYPE = "compute.gpuRequestType"

Given = Mapping[str, Any]
"""The default values that apply at a level, by field, in comparable form; None if computed."""


@dataclass(frozen=True, slots=True)
class Condition:
    """The default of `field` is wrong if `wrong` returns True for the defaults of a level."""

    field: str
    wrong: Callable[[Given], bool]
    fix: str
    beside: str = ""


def scales(given: Given) -> bool:
    """Whether replicas change for another reason than scaling from zero. A maximum of 0 is no limit."""
    low, high = given.get(MIN_REPLICAS), given.get(MAX_REPLICAS)
    if low is None or high is None or (low, high) == (0, 1):
        return False
    return bool(high == 0 or low < high)


INCOMPLETE = (
    Condition(
        "tty",
        lambda given: given["tty"] is True and given.get("stdin") is not True,
        "give stdin: true too: a terminal without standard input takes no keys",
    ),
    Condition(
        "security.seccompProfileType",
        lambda given: given["security.seccompProfileType"] == "Localhost",
        "write RuntimeDefault, or see to it that every workload names its localhostProfile",
    ),
    Condition(
        APPARMOR_TYPE,
        lambda given: given[APPARMOR_TYPE] == "Localhost" and APPARMOR_PROFILE not in given,
        "give appArmorProfile.localhostProfile too, or see to it that every workload names one",
    ),
    Condition(
        UID_SOURCE,
        lambda given: given[UID_SOURCE] == "custom" and UID not in given,
        "give runAsUid too: custom needs an id",
    ),
    Condition(
        AFFINITY_TYPE,
        lambda given: AFFINITY_KEY not in given,
        "give podAffinity.key too, unless every workload does",
    ),
    Condition(
        AFFINITY_KEY,
        lambda given: AFFINITY_TYPE not in given,
        "give podAffinity.type too, unless every workload does",
    ),
    Condition(
        MIN_REPLICAS,
        lambda given: scales(given) and METRIC not in given,
        "give autoscaling.metric too, unless every workload does or the kind has one of its own",
    ),
    Condition(
        METRIC,
        lambda given: THRESHOLD not in given,
        "give autoscaling.metricThreshold too, unless every workload does",
    ),
    Condition(
        THRESHOLD,
        lambda given: METRIC not in given,
        "give autoscaling.metric too, unless every workload does",
    ),
    Condition(
        RETENTION,
        lambda given: (given.get(MIN_REPLICAS) or 0) > 0,
        "give autoscaling.minReplicas: 0, or remove it: above 0 no service scales to zero",
    ),
)
"""Defaults that load, but have an effect only with another value that the policy does not set."""


EXCLUSIVE = (
    Condition(
        GROUPS,
        lambda given: bool(given[GROUPS]) and bool(given.get(USERS)),
        "keep users or groups",
        USERS,
    ),
    Condition(
        ESCALATION,
        lambda given: given[ESCALATION] is False and given.get(PRIVILEGED) is True,
        "keep one of them: Kubernetes refuses privileged containers that cannot gain privileges",
        PRIVILEGED,
    ),
    Condition(
        ESCALATION,
        lambda given: given[ESCALATION] is False and "SYS_ADMIN" in given.get(CAPABILITIES, ()),
        "keep one of them: Kubernetes refuses SYS_ADMIN where privileges cannot be gained",
        CAPABILITIES,
    ),
    Condition(
        NON_ROOT,
        lambda given: given[NON_ROOT] is True and given.get(UID) == 0,
        "keep one of them: user 0 is root",
        UID,
    ),
    Condition(
        MEMORY,
        lambda given: PORTION in given and REQUEST_TYPE not in given,
        "keep one of them, or choose one in compute.gpuRequestType",
        PORTION,
    ),
)
"""Defaults that cannot apply together: every workload without values of its own would fail."""


class IncompleteDefault:
    """A default has an effect only with another value that the policy does not set."""

    ids: ClassVar = {"incomplete-default": "The default needs another value, which is not set."}
    severity = "warning"

    def run(self, level: Level) -> Iterator[Problem]:
        for each, shown in broken_conditions(level, INCOMPLETE):
            found = f"default {shown} of {each.field}"
            yield level.problem(self, level.at_default(each.field), found, each.fix)


class ExclusiveDefaults:
    """Defaults that cannot apply together."""

    ids: ClassVar = {"exclusive-defaults": "Two defaults exclude each other."}
    severity = "error"

    def run(self, level: Level) -> Iterator[Problem]:
        for each, shown in broken_conditions(level, EXCLUSIVE):
            found = f"{each.field} {shown} beside {each.beside}"
            yield level.problem(self, level.at_default(each.field), found, each.fix)


def broken_conditions(
    level: Level, conditions: tuple[Condition, ...]
) -> Iterator[tuple[Condition, str]]:
    """Return the conditions that the defaults of a level break, with the default as text."""
    # The value of a computed default is not known, only its presence.
    given: dict[str, Any] = {
        leaf: None for leaf, arguments in level.rules.items() if "defaultFrom" in arguments
    }
    given |= {leaf: default.value for leaf, default in level.defaults.items()}
    for each in conditions:
        if each.field in level.defaults and each.wrong(given):
            yield each, leaf_type(each.field).show(level.defaults[each.field].value)
