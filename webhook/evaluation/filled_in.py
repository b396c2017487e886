"""Values in pod specs that the API server and its plugins fill in, taken out so that they count as unset."""

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
    """Whether a value is an id, or a list of ids, as OpenShift's SCC plugin chooses them."""
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
"""What else the SCC plugin writes where nobody has: never less safe than nothing."""


def is_of_scc(metadata: Any) -> bool:
    """Whether metadata has the annotation in which OpenShift's SCC plugin says that it completed a pod."""
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    return isinstance(annotations, dict) and isinstance(annotations.get(SCC), str)


def completed(spec: Json, server: KindDefaults) -> Json:
    """A pod spec with the defaults of Pods, for templates that the API server does not complete."""
    found: Json = server.apply({"spec": spec})["spec"]
    return found


def without_fillings(spec: Json, owner: Json | None = None) -> Json:
    """The pod spec without values that the API server or a plugin has filled in; lists keep their order.

    `owner` is for a Pod that OpenShift's SCC plugin completed: the pod spec that it was made of. What
    the plugin chose is removed where the owner does not have it.
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
    """Containers of one list by name; what has none, as in owners that nobody checks, is no one's."""
    listed = containers if isinstance(containers, list) else ()
    named = (each for each in listed if isinstance(each, dict))
    return {each["name"]: each for each in named if isinstance(each.get("name"), str)}


def of_container(body: Json, hosted: bool, owner: Json | None) -> Json:
    """The same for one container."""
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
    """A security context without what the SCC plugin chose."""
    if not isinstance(context, dict):
        return context
    own = owner.get(CONTEXT) or {}
    return {
        key: value
        for key, value in context.items()
        if key in own or not (is_of_scc_range(key, value) or (key in SAFE and SAFE[key](value)))
    }


def without_host_port(port: Any) -> Any:
    """A port without the host port that the server repeats in pods of the host's network."""
    if not isinstance(port, dict) or port.get("hostPort") != port.get("containerPort"):
        return port
    return {key: value for key, value in port.items() if key != "hostPort"}
