"""Pairs of values that the API server or the kubelet refuses, and that a default can create."""

from __future__ import annotations

from webhook.core.workload.bindings.scalar import reader
from webhook.core.workload.evaluation import Evaluation
from webhook.core.workload.podspec import PodView

RUN_AS_NON_ROOT = reader(("securityContext", "runAsNonRoot"))
RUN_AS_USER = reader(("securityContext", "runAsUser"))
PRIVILEGED = reader(("securityContext", "privileged"))
ESCALATION = reader(("securityContext", "allowPrivilegeEscalation"))
CONFLICTING = frozenset({"security.runAsNonRoot", "security.runAsUid", "security.privileged"})


def judge_conflicts(view: PodView, ev: Evaluation) -> None:
    """Refuse what our own writing made contradictory, with the reason, before anybody else does."""
    written = ev.written & CONFLICTING
    if not written:
        return
    for container in view.everyone:
        user = RUN_AS_USER(container.body)
        user = RUN_AS_USER(view.spec) if user is None else user
        non_root = RUN_AS_NON_ROOT(container.body)
        non_root = RUN_AS_NON_ROOT(view.spec) if non_root is None else non_root
        if (
            user == 0
            and non_root is True
            and written & {"security.runAsNonRoot", "security.runAsUid"}
        ):
            path = (*container.path, "securityContext", "runAsUser")
            ev.violate(
                "security.runAsNonRoot",
                path,
                "0",
                "a user other than 0",
                None,
                reason="conflicting-default",
                source=source_of(ev, "security.runAsNonRoot"),
            )
        if (
            "security.privileged" in written
            and PRIVILEGED(container.body) is True
            and ESCALATION(container.body) is False
        ):
            path = (*container.path, "securityContext", "allowPrivilegeEscalation")
            ev.violate(
                "security.privileged",
                path,
                "false",
                "true or absent",
                None,
                reason="conflicting-default",
                source=source_of(ev, "security.privileged"),
            )


def source_of(ev: Evaluation, field: str):  # type: ignore[no-untyped-def]
    """The policy whose default was written for a field."""
    return next((c.source for c in ev.findings.changes if c.field == field), None)
