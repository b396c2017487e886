"""What podgate has no field for: each remedy takes it out of a pod, so that evaluators agree."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

LEVELS = ("baseline", "restricted")
LISTS = ("containers", "initContainers", "ephemeralContainers")
Json = dict[str, Any]


def containers_of(pod: Json) -> Iterator[Json]:
    """The containers of all lists."""
    for name in LISTS:
        yield from pod["spec"].get(name) or ()


def contexts_of(pod: Json) -> Iterator[Json]:
    """The security contexts of the pod and its containers."""
    for body in (pod["spec"], *containers_of(pod)):
        context = body.get("securityContext")
        if isinstance(context, dict):
            yield context


def without_selinux(pod: Json) -> None:
    """Takes SELinux options out."""
    for context in contexts_of(pod):
        context.pop("seLinuxOptions", None)


def without_hosts(pod: Json) -> None:
    """Takes the hosts of probes and lifecycle handlers out."""
    for body in containers_of(pod):
        handlers = [body.get(f"{name}Probe") for name in ("liveness", "readiness", "startup")]
        handlers += (body.get("lifecycle") or {}).values()
        for handler in filter(None, handlers):
            for way in ("httpGet", "tcpSocket"):
                (handler.get(way) or {}).pop("host", None)


def without_user_namespace(pod: Json) -> None:
    """Puts the pod into the user namespace of its node, which relaxes no check."""
    pod["spec"].pop("hostUsers", None)


def with_all_dropped(pod: Json) -> None:
    """Has every container drop all capabilities."""
    for body in containers_of(pod):
        context = body.get("securityContext") or {}
        capabilities = context.get("capabilities") or {}
        capabilities = {**capabilities, "drop": ["ALL"]}
        body["securityContext"] = {**context, "capabilities": capabilities}


def with_plain_names(pod: Json) -> None:
    """Names capabilities as Kubernetes does: runtimes read `chown` and `CAP_CHOWN` as CHOWN."""
    for body in containers_of(pod):
        held = (body.get("securityContext") or {}).get("capabilities") or {}
        if "add" in held:
            held["add"] = [name.upper().removeprefix("CAP_") for name in held["add"]]


class Missing(NamedTuple):
    """Something that podgate has no field for: at which levels it matters, and what takes it out."""

    name: str
    levels: tuple[str, ...]
    remedy: Callable[[Json], None]


MISSING = (
    Missing("seLinuxOptions", LEVELS, without_selinux),
    Missing("hosts of probes and lifecycle handlers", LEVELS, without_hosts),
    Missing("spelling of capabilities", LEVELS, with_plain_names),
    Missing("capabilities.drop", ("restricted",), with_all_dropped),
)
"""What is let in although a level forbids it, or spells it otherwise."""
RELAXING = Missing("hostUsers", LEVELS, without_user_namespace)
"""What is refused although a level lets it in."""


def remedied(pod: Json, level: str, but: Missing | None = None) -> Json:
    """The pod without what podgate has no field for, `but` one."""
    pod = json.loads(json.dumps(pod))  # a quarter of the time of a deepcopy
    for volume in pod["spec"].get("volumes") or ():
        if len(volume) == 1:
            volume["emptyDir"] = {}  # as the API server fills it in, before any admission
    for each in (*MISSING, RELAXING):
        if each is not but and level in each.levels:
            each.remedy(pod)
    return pod
