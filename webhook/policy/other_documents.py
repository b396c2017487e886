"""Recognises documents that are no policy, so that one sentence says what they are and what to do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from webhook.policy.envelope import BODY, GROUP, POLICY_KINDS, VERSION
from webhook.policy.names import closest
from webhook.policy.report import Report, shown

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


def tell(report: Report, data: Mapping[Any, Any]) -> None:
    """The one problem of a mapping that is no document of podgate."""
    kind, version = data.get("kind"), data.get("apiVersion")
    group = version.rpartition("/")[0] if isinstance(version, str) else ""
    if isinstance(kind, str) and kind in VERSIONS and group not in OTHER_ENGINES:
        # The kind is right, and spelled as it should be.
        found = (
            f"{kind} with apiVersion {shown(version)}" if version else f"{kind} without apiVersion"
        )
        path = ("apiVersion",) if version else ()
        report.error(path, "wrong-version", found, f"write apiVersion: {VERSIONS[kind]}")
        return
    report.error((), "not-a-policy", *found_and_fix(data, kind, version, group))


def found_and_fix(data: Mapping[Any, Any], kind: Any, version: Any, group: str) -> tuple[str, str]:
    """What a document is, and what to do with it."""
    if not kind:
        if "apiVersion" in data or "metadata" in data:
            return "an object without kind", f"write kind: {' or '.join(VERSIONS)}"
        if "spec" in data:
            return "spec without apiVersion and kind", f"write kind: {' or '.join(VERSIONS)}"
        for key in data:
            if meant := closest(str(key), BODY):
                return shown(key), f"did you mean {meant}?"
        return "a mapping of another kind", ANY
    if group in OTHER_ENGINES:
        fix = "remove it; podgate reads its own policies, and the two can run side by side"
        return f"kind {shown(kind)}, {OTHER_ENGINES[group]}", fix
    if isinstance(kind, str) and kind in ELSEWHERE:
        return f"kind {shown(kind)}", ELSEWHERE[kind]
    meant = closest(str(kind), VERSIONS) if group in ("", GROUP) else ""
    if meant and version != "v1":
        return f"kind {shown(kind)}", f"did you mean {meant}?"
    if version:
        fix = "remove it; manifests are arguments of podgate apply and podgate explain"
        return f"kind {shown(kind)} of {shown(version)}, which is no document of podgate", fix
    return f"kind {shown(kind)}", ANY
