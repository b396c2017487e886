"""TABLES of defaults that need another one beside them, and of those that exclude each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from webhook.objects.path import Path
from webhook.policy.body import Draft
from webhook.policy.leaves import leaf_type
from webhook.policy.policy import Default

MIN_REPLICAS, MAX_REPLICAS = "autoscaling.minReplicas", "autoscaling.maxReplicas"
METRIC, THRESHOLD = "autoscaling.metric", "autoscaling.metricThreshold"
RETENTION = "autoscaling.scaleToZeroRetentionSeconds"
ESCALATION, PRIVILEGED = "security.allowPrivilegeEscalation", "security.privileged"
CAPABILITIES = "security.capabilities"
AFFINITY_TYPE, AFFINITY_KEY = "podAffinity.type", "podAffinity.key"
UID_SOURCE, UID, NON_ROOT = "security.uidGidSource", "security.runAsUid", "security.runAsNonRoot"
USERS, GROUPS = "servingPort.authorizedUsers", "servingPort.authorizedGroups"
PORTION, MEMORY = "compute.gpuPortionRequest", "compute.gpuMemoryRequest"
REQUEST_TYPE = "compute.gpuRequestType"

Given = Mapping[str, Any]
"""The default values that hold at a level, comparable, by field; None for a computed one."""


class Here(Protocol):
    """The level that is looked at, see `checks.Levels`."""

    draft: Draft
    level: str
    rules: Mapping[str, Mapping[str, Any]]
    defaults: Mapping[str, Default]

    def error(self, path: Path, reason: str, found: str, fix: str) -> None: ...
    def warn(self, path: Path, reason: str, found: str, fix: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Condition:
    """What is wrong with the default of `field` where `wrong` holds for all defaults of a level."""

    field: str
    wrong: Callable[[Given], bool]
    fix: str
    beside: str = ""


def scales(given: Given) -> bool:
    """Whether replicas vary for another reason than waking from zero; 0 as a maximum is no bound."""
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
"""Defaults that load, and that are of use only with something the policy does not say."""


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
"""Defaults that cannot hold together, so that every workload without own values fails."""


def given_at(here: Here) -> dict[str, Any]:
    """Every default of the level, and None for those that are computed."""
    computed = {leaf: None for leaf, said in here.rules.items() if "defaultFrom" in said}
    return {**computed, **{leaf: default.value for leaf, default in here.defaults.items()}}


def check(here: Here) -> None:
    """Tell defaults that lack a companion or contradict one."""
    given = given_at(here)
    for condition in INCOMPLETE:
        if condition.field in here.defaults and condition.wrong(given):
            found = f"default {shown(here, condition.field)} of {condition.field}"
            here.warn(place(here, condition.field), "incomplete-default", found, condition.fix)
    for condition in EXCLUSIVE:
        if condition.field in here.defaults and condition.wrong(given):
            other = condition.beside
            found = f"{condition.field} {shown(here, condition.field)} beside {other}"
            here.error(place(here, condition.field), "exclusive-defaults", found, condition.fix)


def shown(here: Here, field: str) -> str:
    """A default for people."""
    return leaf_type(field).show(here.defaults[field].value)


def place(here: Here, field: str) -> Path:
    """Where the default of a field is."""
    return here.draft.place("default", here.level, field)
