"""Removes values from pod specs that the API server and its plugins fill in: they count as unset."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from webhook.evaluation.server_defaults import KindDefaults
from webhook.pods.pod_view import CONTAINER_LISTS

Json = dict[str, Any]
CONTEXT: Final = "securityContext"
SCC: Final = "openshift.io/scc"
# OpenShift gives every namespace a range of ids above this one, unless an administrator changes it.
FIRST_SCC_ID: Final = 1_000_000_000
DEFAULTS: Final = {
    "schedulerName": "default-scheduler",
    "serviceAccountName": "default",
    "serviceAccount": "default",
}


def is_of_scc_range(key: str, value: Any) -> bool:
    """Return whether a value is an id, or a list of ids, in the range of OpenShift's SCC plugin."""
    ids = value if isinstance(value, list) and value else [value]
    return key in IDS and all(isinstance(each, int) and each >= FIRST_SCC_ID for each in ids)


IDS: Final = ("runAsUser", "runAsGroup", "fsGroup", "supplementalGroups")
SAFE: Final[Mapping[str, Callable[[Any], bool]]] = {
    "runAsNonRoot": lambda value: value is True,
    "allowPrivilegeEscalation": lambda value: value is False,
    "readOnlyRootFilesystem": lambda value: value is True,
    "seccompProfile": lambda value: value == {"type": "RuntimeDefault"},
    "seLinuxOptions": lambda value: isinstance(value, dict) and set(value) == {"level"},
}
"""Other values that the SCC plugin writes. None of them is less safe than an absent value."""


def is_of_scc(metadata: Any) -> bool:
    """Return whether metadata has the annotation of OpenShift's SCC plugin."""
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    return isinstance(annotations, dict) and isinstance(annotations.get(SCC), str)


def complete_spec(spec: Json, server: KindDefaults) -> Json:
    """Return a pod spec with server defaults, for templates that the API server does not complete."""
    found: Json = server.apply({"spec": spec})["spec"]
    return found


def without_fillings(spec: Json, owner: Json | None = None) -> Json:
    """Return the pod spec without values of the API server and its plugins. Lists keep their order.

    `owner` is the pod spec that a Pod was made from, if OpenShift's SCC plugin completed the Pod.
    Values of the plugin are removed where the owner does not have them.
    """
    found = {key: value for key, value in spec.items() if DEFAULTS.get(key) != value}
    if owner is not None and CONTEXT in spec:
        found[CONTEXT] = without_scc(spec[CONTEXT], owner)
    hosted = spec.get("hostNetwork") is True
    for name in CONTAINER_LISTS:
        if isinstance(spec.get(name), list):
            before = {} if owner is None else by_name(owner.get(name))
            found[name] = [
                of_container(
                    each,
                    hosted,
                    None if owner is None else before.get(str(each.get("name")), {}),
                )
                if isinstance(each, dict)
                else each
                for each in spec[name]
            ]
    return found


def by_name(containers: Any) -> dict[str, Json]:
    """Return the containers of one list by name. Those without a name are left out."""
    listed = containers if isinstance(containers, list) else ()
    named = (each for each in listed if isinstance(each, dict))
    return {each["name"]: each for each in named if isinstance(each.get("name"), str)}


def of_container(body: Json, hosted: bool, owner: Json | None) -> Json:
    """Return one container without values of the API server and its plugins."""
    found = dict(body)
    # The server fills in Always or IfNotPresent by the image's tag, a plugin Always.
    if body.get("imagePullPolicy") in ("Always", "IfNotPresent"):
        del found["imagePullPolicy"]
    context = body.get(CONTEXT)
    if isinstance(context, dict):
        context = {k: v for k, v in context.items() if (k, v) != ("procMount", "Default")}
        found[CONTEXT] = context if owner is None else without_scc(context, owner)
    if hosted and isinstance(body.get("ports"), list):
        found["ports"] = [without_host_port(each) for each in body["ports"]]
    return found


def without_scc(context: Any, owner: Json) -> Any:
    """Return a security context without the values of the SCC plugin."""
    if not isinstance(context, dict):
        return context
    own = owner.get(CONTEXT) or {}
    return {
        key: value
        for key, value in context.items()
        if key in own or not (is_of_scc_range(key, value) or (key in SAFE and SAFE[key](value)))
    }


def without_host_port(port: Any) -> Any:
    """Return a port without the host port that the server adds in pods of the host network."""
    if not isinstance(port, dict) or port.get("hostPort") != port.get("containerPort"):
        return port
    return {key: value for key, value in port.items() if key != "hostPort"}
