"""Recognizes documents that are not policies, or are outdated ones, and reports what to do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from webhook.policy.envelope import BODY, GROUP, POLICY_KINDS, VERSION
from webhook.policy.names import Found, closest
from webhook.policy.report import Report, show_value

OURS: Final = f"{GROUP}/{VERSION}"
INTERFACES: Final = "optimization.nvidia.com/v1alpha1"
KARTAS: Final = "run.ai/v1alpha1"
VERSIONS: Final[Mapping[str, str]] = {
    **dict.fromkeys((*POLICY_KINDS, "WorkloadAsset", "PolicyException", "WorkloadProfile"), OURS),
    "ResourceInterface": INTERFACES,
    "Karta": KARTAS,
}
"""The apiVersion of every kind of document that podgate reads."""
OTHER_ENGINES: Final[Mapping[str, str]] = {
    "kyverno.io": "a policy of Kyverno",
    "policies.kyverno.io": "a policy of Kyverno",
    "templates.gatekeeper.sh": "a policy of Gatekeeper",
    "constraints.gatekeeper.sh": "a policy of Gatekeeper",
    "policies.kubewarden.io": "a policy of Kubewarden",
    "admissionregistration.k8s.io": "an admission policy or webhook of Kubernetes",
}
ELSEWHERE: Final[Mapping[str, str]] = {
    "List": "give its items as documents of their own",
    "ConfigMap": "give the documents in its data as files",
    "CustomResourceDefinition": "give CRDs with --crds",
    "Kustomization": "build it first (kubectl kustomize), and give the result",
}
ANY: Final = f"write {' or '.join(BODY)} at the top, or a {' or '.join(POLICY_KINDS)}"

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
"""Sections that were directly below `rules`. The names of the other sections still exist."""
ASSETS_OF_2_16 = "dataSources"


def report_unknown_document(report: Report, data: Mapping[Any, Any]) -> None:
    """Report a mapping that is not a document of podgate."""
    kind, version = data.get("kind"), data.get("apiVersion")
    group = version.rpartition("/")[0] if isinstance(version, str) else ""
    if isinstance(kind, str) and kind in VERSIONS and group not in OTHER_ENGINES:
        # The kind is correct, only the apiVersion is not.
        found = (
            f"{kind} with apiVersion {show_value(version)}"
            if version
            else f"{kind} without apiVersion"
        )
        path = ("apiVersion",) if version else ()
        report.error(path, "wrong-version", found, f"write apiVersion: {VERSIONS[kind]}")
        return
    report.error((), "not-a-policy", *found_and_fix(data, kind, version, group))


def found_and_fix(data: Mapping[Any, Any], kind: Any, version: Any, group: str) -> tuple[str, str]:
    """Return what the document is, and what to do with it."""
    if not kind:
        if "apiVersion" in data or "metadata" in data:
            return "an object without kind", f"write kind: {' or '.join(VERSIONS)}"
        if "spec" in data:
            return "spec without apiVersion and kind", f"write kind: {' or '.join(VERSIONS)}"
        for key in data:
            if meant := closest(str(key), BODY):
                return show_value(key), f"did you mean {meant}?"
        return "a mapping of another kind", ANY
    if group in OTHER_ENGINES:
        fix = "remove it; podgate reads its own policies, and the two can run side by side"
        return f"kind {show_value(kind)}, {OTHER_ENGINES[group]}", fix
    if isinstance(kind, str) and kind in ELSEWHERE:
        return f"kind {show_value(kind)}", ELSEWHERE[kind]
    meant = closest(str(kind), VERSIONS) if group in ("", GROUP) else ""
    if meant and version != "v1":
        return f"kind {show_value(kind)}", f"did you mean {meant}?"
    if version:
        fix = "remove it; manifests are arguments of podgate apply and podgate explain"
        return (
            f"kind {show_value(kind)} of {show_value(version)}, which is no document of podgate",
            fix,
        )
    return f"kind {show_value(kind)}", ANY


def is_v1(data: Mapping[Any, Any]) -> bool:
    """Whether an object is a policy resource of the first generation."""
    version = data.get("apiVersion")
    in_group = isinstance(version, str) and version.startswith(V1_GROUP)
    return in_group and isinstance(kind := data.get("kind"), str) and kind in V1_KINDS


def report_v1(report: Report, data: Mapping[Any, Any]) -> None:
    """Report a policy resource of the first generation."""
    fix = "convert it with `podgate convert`; it is never admitted as it is"
    report.error(("kind",), "legacy-v1", show_value(data.get("kind")), fix)


def is_2_16(body: Mapping[str, Found]) -> Found | None:
    """Return the section that shows that a body is of version 2.16, if any."""
    rules, assets = body.get("rules"), body.get("imposedAssets")
    if rules is not None and isinstance(rules.raw, dict) and SECTIONS_OF_2_16 & set(rules.raw):
        return rules
    if assets is not None and isinstance(assets.raw, dict) and ASSETS_OF_2_16 in assets.raw:
        return assets
    return None


def report_2_16(report: Report, found: Found) -> None:
    """Report a body of version 2.16."""
    fix = "write data sources below storage, with instances and attributes, as policies do today"
    report.error(found.path, "legacy-2.16", f"{found.name} as in version 2.16", fix)
