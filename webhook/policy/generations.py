"""Recognises policies of earlier generations, so that one sentence says what they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from webhook.policy.names import Found
from webhook.policy.report import Report, shown

V1_GROUP = "run.ai/"
V1_KINDS = frozenset(
    {
        "InteractivePolicy",
        "TrainingPolicy",
        "DistributedPolicy",
        "InferencePolicy",
        "DeploymentPolicy",
    }
)
SECTIONS_OF_2_16 = frozenset({"workspace", "hostPath", "nfs", "pvc", "git", "s3"})
"""Sections that stood directly below `rules`; the names of others still exist today."""
ASSETS_OF_2_16 = "dataSources"


def is_v1(data: Mapping[Any, Any]) -> bool:
    """Whether an object is a policy resource of the first generation."""
    version = data.get("apiVersion")
    in_group = isinstance(version, str) and version.startswith(V1_GROUP)
    return in_group and isinstance(kind := data.get("kind"), str) and kind in V1_KINDS


def tell_v1(report: Report, data: Mapping[Any, Any]) -> None:
    """The one problem of such a resource."""
    fix = "convert it with `podgate convert`; it is never admitted as it is"
    report.error(("kind",), "legacy-v1", shown(data.get("kind")), fix)


def is_2_16(body: Mapping[str, Found]) -> Found | None:
    """The section that shows a body to be of version 2.16, if any."""
    rules, assets = body.get("rules"), body.get("imposedAssets")
    if rules is not None and isinstance(rules.raw, dict) and SECTIONS_OF_2_16 & set(rules.raw):
        return rules
    if assets is not None and isinstance(assets.raw, dict) and ASSETS_OF_2_16 in assets.raw:
        return assets
    return None


def tell_2_16(report: Report, found: Found) -> None:
    """The one problem of such a body."""
    fix = "write data sources below storage, with instances and attributes, as policies do today"
    report.error(found.path, "legacy-2.16", f"{found.name} as in version 2.16", fix)
