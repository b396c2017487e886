"""security.hostNetwork: the pod's own switch, and Windows processes of the node, which imply it."""

from __future__ import annotations

from typing import Any

from webhook.core.pointer import Path
from webhook.core.policy.combine import Leaf
from webhook.core.policy.row import Field
from webhook.core.workload.bindings.containers import host_process
from webhook.core.workload.bindings.pods import PodField
from webhook.core.workload.evaluation import Evaluation
from webhook.core.workload.podspec import PodView


def forbids_host_ports(leaf: Leaf | None) -> bool:
    """Whether the rules of hostPorts let no container use a port of the node."""
    if leaf is None or not any(each.prohibits for each in leaf.constraints):
        return False
    allowed = leaf.default is not None and leaf.default.value is True
    return not allowed or any(each.rule == "blocked" for each in leaf.constraints if each.prohibits)


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
        shared = view.old is not None and (
            self.get(view.old.spec) is True or bool(self.process_places(view.old))
        )
        for place in self.process_places(view):
            self.rules.judge_intent(ev, place, True, (place, True) if shared else None, None)

    def process_places(self, view: PodView) -> list[Path]:
        """Where containers become processes of the node, each place once."""
        places = (host_process(view, each) for each in view.everyone)
        return list(dict.fromkeys(place for place in places if place is not None))

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
