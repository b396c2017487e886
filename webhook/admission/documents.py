"""Our own kinds under admission: every problem of a policy or a definition at once, before it is stored."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from webhook.core.assemble import Documents, add
from webhook.core.catalog import Catalog
from webhook.core.decision import Allowed, Decision, Denied, Problem, Warning
from webhook.core.policy.envelope import Context
from webhook.core.policy.model import Policy
from webhook.core.policy.needs import check_settings
from webhook.core.policy.together import check_together
from webhook.core.request import Request
from webhook.core.source import SourceDocument
from webhook.core.workload.expressions import Compile

OURS = ("podgate.dev", "optimization.nvidia.com", "run.ai")


def judge_document(
    request: Request, catalog: Catalog, context: Context, compile_jq: Compile | None = None
) -> Decision:
    """Whether a document of ours may be stored; refused with all its problems, warned of the rest.

    An update that leaves the spec alone passes: finalizers and status are not ours to judge.
    """
    if request.operation not in ("CREATE", "UPDATE") or request.group not in OURS:
        return Allowed(request.object, judged=False)
    if request.old is not None and request.old.get("spec") == request.object.get("spec"):
        return Allowed(request.object, judged=False)
    documents = Documents()
    source = SourceDocument(f"{request.kind} {request.name}", 1, named(request), {}, {})
    add(documents, source, context, shipped=False, compile_jq=compile_jq)
    problems = [*documents.problems]
    if not documents.failed:
        problems += beside_others(documents, catalog)
    errors = tuple(each for each in problems if each.severity == "error")
    warnings = tuple(
        Warning(each.reason, "", (), (f"{each.path}: found {each.found}; {each.fix}",))
        for each in problems
        if each.severity != "error"
    )
    if errors:
        return Denied((), warnings, problems=tuple(dict.fromkeys(errors)))
    return Allowed(request.object, warnings=warnings)


def named(request: Request) -> Any:
    """The object with its name: the API server may still have to make one."""
    metadata = {**(request.object.get("metadata") or {})}
    metadata.setdefault("name", request.name or str(metadata.get("generateName") or ""))
    if request.namespace:
        metadata.setdefault("namespace", request.namespace)
    return {**request.object, "metadata": metadata}


def beside_others(documents: Documents, catalog: Catalog) -> Iterable[Problem]:
    """What is wrong with a document beside those that are in force, and with them because of it."""
    policies = [each for each in catalog.policies if not replaced_by(each, documents.policies)]
    assets = {**catalog.assets, **documents.assets}
    if not documents.policies:
        return ()
    together = [*policies, *documents.policies]
    before = set(check_together(policies, assets, catalog.combination))
    found = check_together(together, assets, catalog.combination)
    told = [each for each in found if each not in before]
    return (*told, *check_settings(documents.policies, assets, catalog.vocabulary))


def replaced_by(policy: Policy, newer: Iterable[Policy]) -> bool:
    """Whether one of the newer policies is a version of this one, or takes the system's place."""
    name = (policy.name, policy.scope, policy.namespace)
    return any(
        name == (each.name, each.scope, each.namespace) or each.scope == policy.scope == "system"
        for each in newer
    )
