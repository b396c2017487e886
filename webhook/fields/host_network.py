"""security.hostNetwork: the pod's own switch, and Windows processes of the node, which imply it."""

from __future__ import annotations

from typing import Any

from webhook.evaluation.state import Evaluation
from webhook.fields.host_process import host_processes, is_host_process
from webhook.fields.pod import PodField
from webhook.pods.pod_view import PodView
from webhook.policy.combine import Leaf
from webhook.policy.row import Field


def forbids_host_ports(leaf: Leaf | None) -> bool:
    """Whether the rules of hostPorts let no container use a port of the node."""
    if leaf is None or not any(each.prohibits for each in leaf.constraints):
        return False
    allowed = leaf.default is not None and leaf.default.value is True
    return not allowed or any(each.rule == "blocked" for each in leaf.constraints if each.prohibits)


def runs_host_process(view: PodView) -> bool:
    """Return whether some container runs as a process of a Windows node."""
    return any(is_host_process(view, each) for each in view.everyone)


class HostNetworkField(PodField):
    """Whether a pod shares the network of its node, by itself or by a process of the node."""

    __slots__ = ("no_host_ports",)

    def __init__(
        self, field: Field, leaf: Leaf, server_default: Any, host_ports: Leaf | None
    ) -> None:
        super().__init__(field, leaf, field.at, server_default)
        self.no_host_ports = forbids_host_ports(host_ports)

    def intent(self, view: PodView, ev: Evaluation) -> None:
        """Prohibitions on the switch; where it is off, on every process of the node."""
        super().intent(view, ev)
        if not self.rules.prohibitions or self.get(view.spec) is True:
            return
        unchanged = view.old is not None and self.shared_before(view, view.old)
        for path, _ in host_processes(view):
            self.rules.judge_intent(ev, path, True, (path, True) if unchanged else None, None)

    def shared_before(self, view: PodView, old: PodView) -> bool:
        """Whether the pod shared the network before the update, or only states it, as before."""
        if self.get(old.spec) is True or runs_host_process(old):
            return True
        return not runs_host_process(view) and bool(host_processes(old))

    def fill(self, view: PodView, ev: Evaluation) -> None:
        """Write the default; with true every port is one of the node, which a rule may forbid."""
        changes = len(ev.findings.changes)
        super().fill(view, ev)
        if not self.no_host_ports or len(ev.findings.changes) == changes:
            return
        path = (*view.spec_path, *self.at)
        if ev.now(path) is not True or not any(each.body.get("ports") for each in view.everyone):
            return
        default = self.rules.default
        ev.violate(
            self.field.path,
            path,
            "true",
            "false while ports are listed and ports of the node are forbidden",
            None,
            reason="conflicting-default",
            source=default.source if default is not None else None,
        )
