"""Reviews podgate's own kinds: reports every problem of a policy or definition before it is stored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from webhook.catalog import precedence
from webhook.catalog.build import Documents, add
from webhook.catalog.catalog import Catalog
from webhook.decision.messages import found_text
from webhook.documents.enclosed import origin_of
from webhook.documents.problem import Problem
from webhook.documents.source import SourceDocument
from webhook.evaluation.outcome import (
    OTHER_OPERATION,
    UNCHANGED,
    UNKNOWN_KIND,
    Allowed,
    Decision,
    Denied,
    Warning,
)
from webhook.evaluation.request import Request
from webhook.jq.expressions import Compile
from webhook.policy import asset_document
from webhook.policy.checks import check_settings, check_together
from webhook.policy.envelope import Context
from webhook.policy.policy import Policy

OURS = ("podgate.dev", "optimization.nvidia.com", "run.ai")


def review_document(
    request: Request, catalog: Catalog, context: Context, compile_jq: Compile | None = None
) -> Decision:
    """Decide whether a document of podgate may be stored. Errors deny it, other problems are warnings.

    An update that leaves the spec alone passes: podgate does not evaluate finalizers and status.
    """
    if request.operation not in ("CREATE", "UPDATE") or request.group not in OURS:
        ours = request.group in OURS
        return Allowed(request.object, not_evaluated=OTHER_OPERATION if ours else UNKNOWN_KIND)
    if request.old is not None and request.old.get("spec") == request.object.get("spec"):
        return Allowed(request.object, not_evaluated=UNCHANGED)
    documents = Documents()
    origin = origin_of((request.kind, request.namespace, request.name))
    source = SourceDocument(origin, 1, complete_name(request), {}, {})
    add(documents, source, context, shipped=False, compile_jq=compile_jq)
    problems = [*documents.problems]
    if not documents.has_errors:
        problems += beside_others(documents, catalog)
        problems += hidden_by_others(documents, catalog, origin)
    errors = tuple(each for each in problems if each.severity == "error")
    warnings = tuple(
        Warning(each.reason, "", (), (f"{each.path}: {found_text(each)}; {each.fix}",))
        for each in problems
        if each.severity == "warning"
    )
    if errors:
        return Denied((), warnings, problems=tuple(dict.fromkeys(errors)))
    return Allowed(request.object, warnings=warnings)


def complete_name(request: Request) -> Any:
    """Return the object with a name, because the API server may generate it later."""
    metadata = {**(request.object.get("metadata") or {})}
    metadata.setdefault("name", request.name or str(metadata.get("generateName") or ""))
    if request.namespace:
        metadata.setdefault("namespace", request.namespace)
    return {**request.object, "metadata": metadata}


def beside_others(documents: Documents, catalog: Catalog) -> Iterator[Problem]:
    """Yield the problems of a document together with those in force, and the problems it causes there."""
    if not documents.policies and not documents.assets:
        return
    policies = [each for each in catalog.policies if not replaced_by(each, documents.policies)]
    merged = {**catalog.assets, **documents.assets}
    before = set(check_together(policies, catalog.assets, catalog.combination))
    own = {each.origin for each in documents.policies}
    own |= {each.origin for each in documents.assets.values()}
    for each in check_together([*policies, *documents.policies], merged, catalog.combination):
        if each not in before:
            # The response is about one document, so the message must name the other one.
            yield (
                each if each.origin in own else replace(each, found=f"{each.origin}: {each.found}")
            )
    yield from check_settings(documents.policies, merged, catalog.config)
    for asset in documents.assets.values():
        known = catalog.assets.get(asset.id)
        if known is not None and known.origin != asset.origin and in_cluster(known.origin):
            found, fix = f"id {asset.id} is that of {known.origin} too", "give it an id of its own"
            yield Problem(asset.origin, "spec.meta.id", found, fix, "duplicate-asset")


def hidden_by_others(documents: Documents, catalog: Catalog, origin: str) -> Iterator[Problem]:
    """Warn of a name that a file or a ConfigMap has: the document will not count.

    A policy of scope system replaces the shipped one under any name.
    """
    policies = [each for each in catalog.policies if each.scope != "system"]
    taken = dict(
        precedence.name_documents(Documents(policies=policies, assets=dict(catalog.assets)))
    )
    for name, _ in precedence.name_documents(documents):
        winner = taken.get(name, origin)
        if winner != origin and not in_cluster(winner):
            yield replace(precedence.hidden_problem(origin, name, winner), severity="warning")


def in_cluster(origin: str) -> bool:
    """Return whether an asset is from the cluster. Files may replace such assets."""
    return origin.partition(" ")[0] == asset_document.KIND


def replaced_by(policy: Policy, newer: Iterable[Policy]) -> bool:
    """Return whether a newer policy is a version of this one, or replaces the system policy.

    A version may have another scope than the one before.
    """
    name = (policy.name, policy.scope, policy.namespace)
    return any(
        policy.origin == each.origin
        or name == (each.name, each.scope, each.namespace)
        or each.scope == policy.scope == "system"
        for each in newer
    )
