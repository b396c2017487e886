"""security.hostNetwork: the pod's own switch, and Windows processes of the node, which imply it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from webhook.evaluation.state import Evaluation
from webhook.fields.handler import FieldSource, PodHandler
from webhook.fields.host_process import host_processes, is_host_process
from webhook.fields.pod import PodSpecField
from webhook.fields.service_account import ServiceAccountField
from webhook.objects.path import Path
from webhook.pods.pod_view import PodView
from webhook.policy.combine import Leaf
from webhook.policy.row import POD, Field


def forbids_host_ports(leaf: Leaf | None) -> bool:
    """Return whether the rules of hostPorts allow no container to use a host port."""
    if leaf is None or not any(each.prohibits for each in leaf.constraints):
        return False
    allowed = leaf.default is not None and leaf.default.value is True
    return not allowed or not all(
        each.type.fixes_default for each in leaf.constraints if each.prohibits
    )


def runs_host_process(view: PodView) -> bool:
    """Return whether some container runs as a process of a Windows node."""
    return any(is_host_process(view, each) for each in view.everyone)


class HostNetworkField(PodSpecField):
    """Return whether a pod uses the host network, by its own field or by a host process."""

    __slots__ = ("no_host_ports",)

    def __init__(
        self, row: Field, leaf: Leaf, server_default: Any, host_ports: Leaf | None
    ) -> None:
        super().__init__(row, leaf, row.at, server_default)
        self.no_host_ports = forbids_host_ports(host_ports)

    def check_intent(self, view: PodView, ev: Evaluation) -> None:
        """Check prohibitions on the field. If it is off, check every host process."""
        super().check_intent(view, ev)
        if not self.rules.prohibitions or self.get(view.spec) is True:
            return
        unchanged = view.old is not None and self.shared_before(view, view.old)
        for path, _ in host_processes(view):
            self.rules.check_intent(ev, path, True, (path, True) if unchanged else None, None)

    def shared_before(self, view: PodView, old: PodView) -> bool:
        """Return whether the pod used the host network before, or only sets it now as before."""
        if self.get(old.spec) is True or runs_host_process(old):
            return True
        return not runs_host_process(view) and bool(host_processes(old))

    def fill(self, view: PodView, ev: Evaluation) -> None:
        """Write the default. With true every port is a host port, which a rule may forbid."""
        changes = len(ev.findings.changes)
        super().fill(view, ev)
        if not self.no_host_ports or len(ev.findings.changes) == changes:
            return
        path = (*view.spec_path, *self.at)
        if ev.now(path) is not True or not any(each.body.get("ports") for each in view.everyone):
            return
        default = self.rules.default
        ev.violate(
            self.row.path,
            path,
            "true",
            "false while ports are listed and ports of the node are forbidden",
            None,
            reason="conflicting-default",
            source=default.source if default is not None else None,
        )


class PodSpecHandler(PodHandler):
    """Scalars of the pod spec; two rows have more than one path."""

    name = POD

    def compile(self, source: FieldSource) -> PodSpecField:
        """The field at its path, with the default of the API server."""
        row, leaf, server = source.row, source.leaf, source.server.pod(source.row.at)
        if row.path == "security.hostNetwork":
            return HostNetworkField(row, leaf, server, source.effective.get("security.hostPorts"))
        if row.path == "security.serviceAccountName":
            return ServiceAccountField(row, leaf)
        return PodSpecField(row, leaf, row.at, server)

    def pod_paths(self, row: Field) -> Sequence[Path]:
        """Where a pod template has the field."""
        return [("spec", *row.at)]
