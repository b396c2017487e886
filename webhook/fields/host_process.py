"""Finds Windows host processes: containers that run on the node itself, like privileged ones on Linux."""

from __future__ import annotations

from typing import NamedTuple

from webhook.fields.scalar import reader
from webhook.objects.path import Path
from webhook.pods.pod_view import Container, PodView

HOST_PROCESS: Path = ("securityContext", "windowsOptions", "hostProcess")
read_host_process = reader(HOST_PROCESS)


class HostProcess(NamedTuple):
    """A path that makes host processes, and the container that has it; None for the pod's own."""

    path: Path
    container: Container | None


def is_host_process(view: PodView, container: Container) -> bool:
    """Return whether a container runs as a process of a Windows node."""
    own = read_host_process(container.body)
    return is_on(read_host_process(view.spec) if own is None else own)


def is_on(value: object) -> bool:
    """Return whether a native value switches host processes on; only absent and false do not."""
    return value is not None and value is not False


def host_processes(view: PodView) -> list[HostProcess]:
    """Return every path that makes host processes; the pod's own also where containers override it."""
    found = []
    if is_on(read_host_process(view.spec)):
        found.append(HostProcess((*view.spec_path, *HOST_PROCESS), None))
    for path, value in view.overridden(HOST_PROCESS):
        if is_on(value):
            found.append(HostProcess(path, None))
    makers = [each for each in view.everyone if is_on(read_host_process(each.body))]
    return found + [HostProcess((*each.path, *HOST_PROCESS), each) for each in makers]
