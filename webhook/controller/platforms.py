"""Known changes that hosting platforms make to all webhook configurations, and CAs that others set.

podgate keeps them: a platform would restore them within seconds. Only exact, documented or reported content
is recognised, since each addition excludes namespaces from podgate.
"""

from __future__ import annotations

from typing import Any, Final

Json = dict[str, Any]
NAME_LABEL: Final = "kubernetes.io/metadata.name"
OPT_OUT: Final = {"admissions.enforcer/disabled": "true"}
"""With this annotation the Admissions Enforcer of AKS does not change a configuration."""
AKS: Final = (
    {"key": "control-plane", "operator": "DoesNotExist"},
    {"key": "control-plane", "operator": "NotIn", "values": ["true"]},
    {"key": "kubernetes.azure.com/managedby", "operator": "NotIn", "values": ["aks"]},
)
PLATFORM_NAMESPACES: Final = ("kube-", "gke-", "gmp-")
"""Prefixes of the namespaces of Kubernetes and GKE Autopilot."""


def additions(wanted: Json, found: Json) -> tuple[str, ...] | None:
    """Return what a platform added to a namespace selector; None if anything else differs."""
    rest, other = ({k: v for k, v in one.items() if k != EXPRESSIONS} for one in (wanted, found))
    if rest != other:
        return None
    left, more = list(found.get(EXPRESSIONS) or ()), list[str]()
    for each in wanted.get(EXPRESSIONS) or ():
        match = next((one for one in left if beyond(each, one) is not None), None)
        if match is None:
            return None
        left.remove(match)
        more += beyond(each, match) or ()
    if not all(is_platforms(each) for each in left):
        return None
    return (*more, *map(text_of, left))


def injected_ca(wanted: Json, found: Json) -> bool:
    """Whether two clientConfigs differ only by a CA that podgate leaves to others: it sets none."""
    return "caBundle" not in wanted and wanted == {
        k: v for k, v in found.items() if k != "caBundle"
    }


EXPRESSIONS: Final = "matchExpressions"


def beyond(wanted: Json, found: Json) -> tuple[str, ...] | None:
    """Return the platform's namespaces that one expression excludes and another does not, else None."""
    if wanted == found:
        return ()
    if (wanted["key"], wanted["operator"]) != (NAME_LABEL, "NotIn") or any(
        wanted[key] != found.get(key) for key in ("key", "operator")
    ):
        return None
    added = set(found.get("values") or ()) - set(wanted["values"])
    if not set(wanted["values"]) <= set(found.get("values") or ()) or not are_platforms(added):
        return None
    return (text_of({**found, "values": sorted(added)}),) if added else ()


def is_platforms(expression: Json) -> bool:
    """Whether a platform adds this expression."""
    if expression in AKS:
        return True
    is_name = (expression.get("key"), expression.get("operator")) == (NAME_LABEL, "NotIn")
    return is_name and are_platforms(set(expression.get("values") or ()))


def are_platforms(names: set[str]) -> bool:
    """Whether all namespaces of these names belong to the platform."""
    return all(name.startswith(PLATFORM_NAMESPACES) for name in names)


def text_of(expression: Json) -> str:
    """Return an expression as kubectl would print it."""
    values = ", ".join(expression.get("values") or ())
    return f"{expression['key']} {expression['operator']}" + (f" [{values}]" if values else "")
