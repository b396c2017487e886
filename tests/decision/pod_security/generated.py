"""Generated pods: a compliant one with a few changes, each of which may break a level."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator
from typing import Any

from tests.decision.pod_security.missing import LISTS, containers_of, contexts_of

IMAGE = "registry.example.com/app:1"
Json = dict[str, Any]
Change = Callable[[random.Random, Json, Json], None]


def context_of(body: Json) -> Json:
    """The security context of a pod spec or container, made where there is none."""
    made: Json = body.setdefault("securityContext", {})
    return made


def set_at(where: str, *path: str, values: tuple[Any, ...]) -> Change:
    """A change that sets, or takes away, a place of security contexts to one of these values."""

    def change(chance: random.Random, spec: Json, body: Json) -> None:
        value = chance.choice(values)
        levels = {"pod": (spec,), "container": (body,), "both": (spec, body)}[where]
        for each in levels if chance.random() < 0.3 else (chance.choice(levels),):
            inner = context_of(each)
            for step in path[:-1]:
                inner = inner.setdefault(step, {})
            if value is None:
                inner.pop(path[-1], None)
            else:
                inner[path[-1]] = copy.deepcopy(value)

    return change


def set_in_pod(key: str, *values: Any) -> Change:
    """A change of one key of the pod spec."""

    def change(chance: random.Random, spec: Json, body: Json) -> None:
        spec[key] = copy.deepcopy(chance.choice(values))

    return change


def add_volume(chance: random.Random, spec: Json, body: Json) -> None:
    """A volume of any type."""
    source = chance.choice(SOURCES)
    volumes = spec.setdefault("volumes", [])
    volumes.append({"name": f"v{len(volumes)}", **copy.deepcopy(source)})


def add_port(chance: random.Random, spec: Json, body: Json) -> None:
    """A port, of the node or not."""
    port = {"containerPort": 80, **chance.choice([{}, {"hostPort": 0}, {"hostPort": 8080}])}
    body.setdefault("ports", []).append(port)


def add_handler(chance: random.Random, spec: Json, body: Json) -> None:
    """A probe or lifecycle handler, of another host or not."""
    way = chance.choice(["httpGet", "tcpSocket"])
    handler = {way: {"port": 80, **chance.choice([{}, {"host": "10.0.0.1"}])}}
    key = chance.choice(["livenessProbe", "readinessProbe", "startupProbe", "postStart", "preStop"])
    if key.endswith("Probe"):
        body[key] = handler
    else:
        body.setdefault("lifecycle", {})[key] = handler


def become_windows(chance: random.Random, spec: Json, body: Json) -> None:
    """A Windows pod."""
    spec["os"] = {"name": "windows"}


def as_the_api_server_takes_it(spec: Json) -> None:
    """Takes out what the API server refuses in a Windows pod, or fills in with the node's network."""
    for body in containers_of({"spec": spec}) if spec.get("hostNetwork") else ():
        body["ports"] = [each for each in body.get("ports", ()) if each.get("hostPort") != 0]
    if "os" not in spec:
        return
    for key in ("hostPID", "hostIPC", "hostUsers"):
        spec.pop(key, None)
    for context in contexts_of({"spec": spec}):
        for key in context.keys() - {"runAsNonRoot", "windowsOptions"}:
            del context[key]


def add_container(chance: random.Random, spec: Json, body: Json) -> None:
    """One more container, of any list; like the first or with nothing of its own."""
    name = chance.choice(LISTS)
    held = spec.setdefault(name, [])
    more = copy.deepcopy(spec["containers"][0]) if chance.random() < 0.6 else {"image": IMAGE}
    more["name"] = f"{name}-{len(held)}".lower()
    if name == "ephemeralContainers":
        for key in ("ports", "lifecycle", "livenessProbe", "readinessProbe", "startupProbe"):
            more.pop(key, None)
    held.append(more)


def add_apparmor_annotation(chance: random.Random, spec: Json, body: Json) -> None:
    """Marks the pod for an annotation, which is no part of its spec."""
    spec["annotation"] = chance.choice(["runtime/default", "unconfined"])


HOST_PATH = {"hostPath": {"path": "/"}}
SOURCES: tuple[Json, ...] = (
    {"emptyDir": {}},
    {"configMap": {"name": "c"}},
    {"secret": {"secretName": "s"}},
    {"projected": {"sources": []}},
    {"downwardAPI": {"items": []}},
    {"persistentVolumeClaim": {"claimName": "c"}},
    {"csi": {"driver": "d"}},
    {"image": {"reference": "r"}},
    {"ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
    HOST_PATH,
    HOST_PATH,
    {"nfs": {"server": "s", "path": "/"}},
    {"gitRepo": {"repository": "r"}},
    {"iscsi": {"targetPortal": "t", "iqn": "i", "lun": 0}},
    {"cephfs": {"monitors": ["m"]}},
    {"flexVolume": {"driver": "d"}},
    {"rbd": {"monitors": ["m"], "image": "i"}},
)
PROFILES = (
    {"type": "RuntimeDefault"},
    {"type": "Localhost", "localhostProfile": "p"},
    {"type": "Unconfined"},
    None,
)
SYSCTLS = ("kernel.shm_rmid_forced", "net.ipv4.tcp_rmem", "net.core.somaxconn", "kernel.msgmax")
CHANGES: tuple[Change, ...] = (
    set_in_pod("hostNetwork", True, False),
    set_in_pod("hostPID", True, False),
    set_in_pod("hostIPC", True, False),
    set_in_pod("hostUsers", True, False),
    set_at("container", "privileged", values=(True, False)),
    set_at("container", "allowPrivilegeEscalation", values=(True, False, None)),
    set_at("container", "procMount", values=("Default", "Unmasked")),
    set_at("container", "readOnlyRootFilesystem", values=(True, False)),
    set_at(
        "container",
        *("capabilities", "add"),
        values=(
            ["NET_BIND_SERVICE"],
            ["CHOWN"],
            ["chown", "CAP_NET_BIND_SERVICE"],
            ["net_bind_service"],
            ["SYS_ADMIN"],
            ["cap_sys_admin"],
            ["ALL"],
            ["NET_BIND_SERVICE", "NET_RAW"],
            [],
        ),
    ),
    set_at("container", "capabilities", "drop", values=(["ALL"], ["NET_RAW"], None)),
    set_at("both", "runAsNonRoot", values=(True, False, None)),
    set_at("both", "runAsUser", values=(0, 1, 1000, None)),
    set_at("both", "runAsGroup", values=(0, 1000)),
    set_at("both", "seccompProfile", values=PROFILES),
    set_at("both", "windowsOptions", values=({"hostProcess": True}, {"hostProcess": False}, {})),
    set_at("both", "appArmorProfile", values=({"type": "RuntimeDefault"}, {"type": "Unconfined"})),
    set_at(
        "both",
        "seLinuxOptions",
        values=({"type": "container_t"}, {"type": "spc_t"}, {"user": "u"}, {"level": "s0"}),
    ),
    set_at(
        "pod",
        "sysctls",
        values=tuple([{"name": name, "value": "1"}] for name in SYSCTLS),
    ),
    add_volume,
    add_port,
    add_handler,
    become_windows,
    add_container,
    add_apparmor_annotation,
)


def overriding(chance: random.Random, spec: Json) -> None:
    """Values at the pod that all its containers override with better ones."""
    worse = {
        "runAsUser": 0,
        "runAsNonRoot": False,
        "seccompProfile": {"type": "Unconfined"},
        "windowsOptions": {"hostProcess": True},
    }
    better = {
        "runAsUser": 1000,
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
        "windowsOptions": {"hostProcess": False},
    }
    for key in chance.sample(sorted(worse), chance.randint(1, 2)):
        context_of(spec)[key] = copy.deepcopy(worse[key])
        for name in LISTS:
            for body in spec.get(name, ()):
                context_of(body)[key] = copy.deepcopy(better[key])


def compliant() -> Json:
    """A pod spec that satisfies both levels, and a container more so than its pod."""
    context = {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "runAsNonRoot": True,
    }
    pod = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    one = {"name": "main", "image": IMAGE, "securityContext": context}
    return {"restartPolicy": "Never", "securityContext": pod, "containers": [one]}


def generated(seed: int, number: int) -> Iterator[Json]:
    """Pods with up to four changes to a compliant one, the same for the same seed."""
    chance = random.Random(seed)
    for _ in range(number):
        spec = compliant()
        if chance.random() < 0.15:
            del spec["securityContext"]
        for _ in range(chance.choice([0, 1, 1, 1, 2, 2, 3, 4])):
            everyone = [each for name in LISTS for each in spec.get(name, ())]
            chance.choice(CHANGES)(chance, spec, chance.choice(everyone))
        if chance.random() < 0.1:
            overriding(chance, spec)
        as_the_api_server_takes_it(spec)
        annotation = spec.pop("annotation", None)
        key = "container.apparmor.security.beta.kubernetes.io/main"
        annotations = {"annotations": {key: annotation}} if annotation else {}
        yield {"metadata": {"name": "web", **annotations}, "spec": spec}
