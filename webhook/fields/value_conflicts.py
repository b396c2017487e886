"""Finds pairs of values that the API server or the kubelet rejects, and that a default can create."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from webhook.evaluation.state import Evaluation
from webhook.fields.container_security import added_capabilities
from webhook.fields.scalar import reader
from webhook.objects.path import Path
from webhook.pods.pod_view import PodView

CONTEXT = "securityContext"
ESCALATION = (CONTEXT, "allowPrivilegeEscalation")
PROFILE = (CONTEXT, "seccompProfile")
RUN_AS_NON_ROOT = reader((CONTEXT, "runAsNonRoot"))
RUN_AS_USER = reader((CONTEXT, "runAsUser"))
PRIVILEGED = reader((CONTEXT, "privileged"))
MAY_ESCALATE = reader(ESCALATION)
SECCOMP = reader(PROFILE)
PROC_MOUNT = reader((CONTEXT, "procMount"))
OF_HOST = (
    ("security.hostNetwork", "hostNetwork"),
    ("security.hostIpc", "hostIPC"),
    ("security.hostPid", "hostPID"),
)


@dataclass(frozen=True, slots=True)
class Conflict:
    """The field whose default is at fault, and the path of the conflicting value."""

    field: str
    path: Path
    value: str | None
    allowed: str


def root_and_non_root(view: PodView) -> Iterator[Conflict]:
    """Find user 0 with runAsNonRoot."""
    for container in view.everyone:
        user = RUN_AS_USER(container.body)
        user = RUN_AS_USER(view.spec) if user is None else user
        non_root = RUN_AS_NON_ROOT(container.body)
        non_root = RUN_AS_NON_ROOT(view.spec) if non_root is None else non_root
        if user == 0 and non_root is True:
            path = (*container.path, CONTEXT, "runAsUser")
            yield Conflict("security.runAsNonRoot", path, "0", "a user other than 0")


def privileged_without_escalation(view: PodView) -> Iterator[Conflict]:
    """Find a privileged container that may not escalate."""
    for container in view.everyone:
        if PRIVILEGED(container.body) is True and MAY_ESCALATE(container.body) is False:
            path = (*container.path, *ESCALATION)
            yield Conflict("security.privileged", path, "false", "true or absent")


def administrator_without_escalation(view: PodView) -> Iterator[Conflict]:
    """Find a container with SYS_ADMIN that may not escalate."""
    for container in view.everyone:
        if MAY_ESCALATE(container.body) is not False:
            continue
        if "SYS_ADMIN" in added_capabilities(container.body.get(CONTEXT)):
            path = (*container.path, *ESCALATION)
            yield Conflict("security.capabilities", path, "false", "true or absent")


def with_own_users(field: str, key: str) -> Callable[[PodView], Iterator[Conflict]]:
    """Return a function that finds a host namespace in a pod with its own user namespace."""

    def find(view: PodView) -> Iterator[Conflict]:
        if view.spec.get("hostUsers") is False and view.spec.get(key) is True:
            yield Conflict(field, (*view.spec_path, "hostUsers"), "false", "true or absent")

    return find


def other_ports_of_host(view: PodView) -> Iterator[Conflict]:
    """Find host ports that differ from the container's ports on the host network."""
    if view.spec.get("hostNetwork") is not True:
        return
    for container in view.everyone:
        ports = container.body.get("ports")
        for index, port in enumerate(ports if isinstance(ports, list) else ()):
            held = port.get("hostPort") if isinstance(port, dict) else None
            if held and held != port.get("containerPort"):
                path = (*container.path, "ports", index, "hostPort")
                wanted = str(port.get("containerPort"))
                yield Conflict("security.hostNetwork", path, str(held), wanted)


def seccomp_and_its_file(view: PodView) -> Iterator[Conflict]:
    """Find Localhost without its profile, and a profile with another type."""
    holders: list[tuple[Path, Any]] = [(view.spec_path, SECCOMP(view.spec))]
    holders += [(each.path, SECCOMP(each.body)) for each in view.everyone]
    for path, profile in holders:
        if not isinstance(profile, dict):
            continue
        local, named = profile.get("type") == "Localhost", bool(profile.get("localhostProfile"))
        if local != named:
            allowed = "a profile of the node" if local else "no profile beside this type"
            place = (*path, *PROFILE, "localhostProfile")
            yield Conflict("security.seccompProfileType", place, None, allowed)


def unmasked_with_users_of_host(view: PodView) -> Iterator[Conflict]:
    """Find an unmasked /proc in a pod that shares the users of the node."""
    if view.spec.get("hostUsers") is False:
        return
    for container in view.everyone:
        if PROC_MOUNT(container.body) == "Unmasked":
            path = (*view.spec_path, "hostUsers")
            yield Conflict("security.procMount", path, None, "false")
            return


Find = Callable[[PodView], Iterator[Conflict]]
PAIRS: tuple[tuple[frozenset[str], Find], ...] = (
    (
        frozenset({"security.runAsNonRoot", "security.runAsUid", "security.uidGidSource"}),
        root_and_non_root,
    ),
    (frozenset({"security.privileged"}), privileged_without_escalation),
    (frozenset({"security.capabilities"}), administrator_without_escalation),
    *((frozenset({field}), with_own_users(field, key)) for field, key in OF_HOST),
    (frozenset({"security.hostNetwork"}), other_ports_of_host),
    (frozenset({"security.seccompProfileType"}), seccomp_and_its_file),
    (frozenset({"security.procMount"}), unmasked_with_users_of_host),
)
"""Pairs: the fields, one of them written by podgate, and the function that finds the pair."""
CONFLICTING = frozenset(field for fields, _ in PAIRS for field in fields)


def pairs_written(ev: Evaluation) -> list[tuple[set[str], Find]]:
    """Return the functions for pairs with a default that podgate wrote, and the written fields."""
    written = ev.written.keys()
    if not written & CONFLICTING:
        return []
    return [(written & fields, find) for fields, find in PAIRS if written & fields]


def check_conflicts(view: PodView, ev: Evaluation, pairs: Sequence[tuple[set[str], Find]]) -> None:
    """Report contradictions that podgate's own defaults cause, before another component rejects them."""
    for written, find in pairs:
        for each in find(view):
            at_fault = each.field if each.field in written else min(written)
            ev.violate(
                each.field,
                each.path,
                each.value,
                each.allowed,
                None,
                reason="conflicting-default",
                source=ev.written[at_fault],
            )
