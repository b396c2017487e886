"""Parses policy documents: every accepted form into one `Policy`, or all problems at once."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import is_dataclass
from typing import Any

from webhook.documents.problem import Problem
from webhook.documents.source import SourceDocument
from webhook.policy import body_tree as tree
from webhook.policy import generations as legacy
from webhook.policy import other_documents as strangers
from webhook.policy.body import Draft
from webhook.policy.checks import one_policy as checks
from webhook.policy.checks import unenforceable
from webhook.policy.checks import workload_types as bound_types
from webhook.policy.envelope import (
    BODY,
    GROUP,
    POLICY_KINDS,
    Context,
    Envelope,
    looks_like_body,
    read_object,
)
from webhook.policy.forms import read_api, read_bare
from webhook.policy.imposed_assets import read_imposed
from webhook.policy.names import word
from webhook.policy.policy import Policy
from webhook.policy.report import Report, shown

__all__ = ["Context", "is_policy", "parse_policy"]


def is_policy(document: SourceDocument) -> bool:
    """Whether a document is meant as a policy: bare, of the API, our kinds, or an outdated kind."""
    data = document.data
    if not isinstance(data, dict):
        return False
    if "kind" in data or "apiVersion" in data:
        return is_object(data) or legacy.is_v1(data)
    return is_api(data) or is_bare(data)


def is_object(data: Mapping[Any, Any]) -> bool:
    """Whether it is one of our custom resources, of whatever version."""
    version, kind = data.get("apiVersion"), data.get("kind")
    ours = isinstance(version, str) and version.partition("/")[0] == GROUP
    return ours and kind in POLICY_KINDS


def is_api(data: Mapping[Any, Any]) -> bool:
    """Whether it has the {meta, policy} form of the API."""
    return "meta" in data and "policy" in data


def is_bare(data: Mapping[Any, Any]) -> bool:
    """Whether it is a body as an admin types it."""
    return any(word(key, BODY) for key in data)


def parse_policy(
    document: SourceDocument, context: Context
) -> tuple[Policy | None, tuple[Problem, ...]]:
    """The policy, None when any problem is an error, and all problems in order of place."""
    report = Report(document)
    envelope = read_envelope(report, document.data, context)
    if envelope is None:
        return None, ordered(report)
    draft = read_body(report, envelope)
    if report.failed:
        return None, ordered(report)
    return finished(envelope, draft), ordered(report)


def read_envelope(report: Report, data: Any, context: Context) -> Envelope | None:
    """The envelope by the form of the document; None, with the problem told, for no policy."""
    if not isinstance(data, dict):
        report.error((), "not-a-policy", shown(data), "write a mapping with defaults or rules")
        return None
    if legacy.is_v1(data):
        legacy.tell_v1(report, data)
        return None
    if is_object(data):
        return read_object(report, data, context)
    if "kind" not in data and is_api(data):
        return read_api(report, data, context)
    if "kind" not in data and (is_bare(data) or looks_like_body(data)):
        return read_bare(report, data, context)
    strangers.tell(report, data)
    return None


def read_body(report: Report, envelope: Envelope) -> Draft:
    """The body as a draft, with all its problems told."""
    draft = Draft(report, envelope.workload_types)
    old = legacy.is_2_16(envelope.body)
    if old is not None:
        legacy.tell_2_16(report, old)
        return draft
    readers = {"defaults": tree.read_default, "rules": tree.read_rule}
    for section, reader in readers.items():
        if section in envelope.body:
            found = envelope.body[section]
            tree.read_tree(draft, found.raw, found.path, reader)
    if "imposedAssets" in envelope.body:
        read_imposed(draft, envelope.body["imposedAssets"])
    checks.check(draft)
    bound_types.check(draft, envelope.workload_types)
    unenforceable.check(draft)
    return draft


def ordered(report: Report) -> tuple[Problem, ...]:
    """The problems by line and column, equal ones in the order they were found."""
    return tuple(sorted(report.problems, key=lambda each: (each.line, each.column)))


def finished(envelope: Envelope, draft: Draft) -> Policy:
    """The policy that a faultless document describes."""
    report = draft.report
    places = {key: (report.display(at), *report.position(at)) for key, at in draft.places.items()}
    return Policy(
        name=envelope.name,
        scope=envelope.scope,
        body=draft.body(),
        namespace=envelope.namespace,
        enforcement=envelope.enforcement,
        tolerates_existing=envelope.existing == "tolerate",
        containers=envelope.containers,
        message=envelope.message,
        docs_url=envelope.docs_url,
        workload_types=envelope.workload_types,
        kinds=envelope.kinds,
        namespace_selector=envelope.namespace_selector,
        exclude_namespaces=envelope.exclude_namespaces,
        created=envelope.created,
        origin=report.document.origin,
        digest=digest(envelope, draft),
        places=places,
    )


def digest(envelope: Envelope, draft: Draft) -> str:
    """SHA-256 over what the policy says, whatever its notation, order of keys or file."""
    said = {
        key: value for key, value in shallow(envelope).items() if key not in ("body", "types_path")
    }
    text = canonical((said, shallow(draft.body())))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def shallow(value: Any) -> dict[str, Any]:
    """The members of a dataclass by name."""
    return {name: getattr(value, name) for name in value.__dataclass_fields__}


def canonical(value: Any) -> str:
    """A text that is equal exactly for equal values; sets and mappings are sorted."""
    if is_dataclass(value) and not isinstance(value, type):
        return f"{type(value).__name__}{canonical(shallow(value))}"
    if isinstance(value, Mapping):
        pairs = sorted((canonical(key), canonical(each)) for key, each in value.items())
        return "{" + ",".join(f"{key}:{each}" for key, each in pairs) + "}"
    if isinstance(value, frozenset | set):
        return "<" + ",".join(sorted(map(canonical, value))) + ">"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(canonical, value)) + "]"
    return repr(value)
