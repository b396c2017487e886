"""Parses policy documents: every accepted form into one `Policy`, or all problems at once."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from webhook.documents.problem import Problem
from webhook.documents.source import SourceDocument
from webhook.policy import other_documents
from webhook.policy.body import Draft
from webhook.policy.body_tree import read_default, read_imposed, read_rule, read_tree
from webhook.policy.checks import check_policy
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
from webhook.policy.names import word
from webhook.policy.policy import Policy
from webhook.policy.policy_spec import PolicySpec
from webhook.policy.report import Report, show_value

__all__ = ["Context", "is_policy", "parse_policy"]


def is_policy(document: SourceDocument) -> bool:
    """Whether a document is a policy: bare, in the API's form, our kinds, or an outdated kind."""
    data = document.data
    if not isinstance(data, dict):
        return False
    if "kind" in data or "apiVersion" in data:
        return is_object(data) or other_documents.is_v1(data)
    return is_api(data) or is_bare(data)


def is_object(data: Mapping[Any, Any]) -> bool:
    """Whether it is one of our custom resources, in any version."""
    version, kind = data.get("apiVersion"), data.get("kind")
    ours = isinstance(version, str) and version.partition("/")[0] == GROUP
    return ours and kind in POLICY_KINDS


def is_api(data: Mapping[Any, Any]) -> bool:
    """Whether it has the {meta, policy} form of the API."""
    return "meta" in data and "policy" in data


def is_bare(data: Mapping[Any, Any]) -> bool:
    """Whether it is a body without envelope."""
    return any(word(key, BODY) for key in data)


def parse_policy(
    document: SourceDocument, context: Context
) -> tuple[Policy | None, tuple[Problem, ...]]:
    """Return the policy, or None if any problem is an error, and all problems in order of line."""
    report = Report(document)
    envelope = read_envelope(report, document.data, context)
    if envelope is None:
        return None, sort_problems(report)
    draft = read_body(report, envelope)
    if report.has_errors:
        return None, sort_problems(report)
    return build_policy(envelope, draft), sort_problems(report)


def read_envelope(report: Report, data: Any, context: Context) -> Envelope | None:
    """Read the envelope in any of its forms. A document that is no policy is reported: None."""
    if not isinstance(data, dict):
        report.error((), "not-a-policy", show_value(data), "write a mapping with defaults or rules")
        return None
    if other_documents.is_v1(data):
        other_documents.report_v1(report, data)
        return None
    if is_object(data):
        return read_object(report, data, context)
    if "kind" not in data and is_api(data):
        return read_api(report, data, context)
    if "kind" not in data and (is_bare(data) or looks_like_body(data)):
        return read_bare(report, data, context)
    other_documents.report_unknown_document(report, data)
    return None


def read_body(report: Report, envelope: Envelope) -> Draft:
    """Read the body into a draft, and report all its problems."""
    draft = Draft(report, envelope.spec.workload_types)
    old = other_documents.is_2_16(envelope.body)
    if old is not None:
        other_documents.report_2_16(report, old)
        return draft
    readers = {"defaults": read_default, "rules": read_rule}
    for section, reader in readers.items():
        if section in envelope.body:
            found = envelope.body[section]
            read_tree(draft, found.raw, found.path, reader)
    if "imposedAssets" in envelope.body:
        read_imposed(draft, envelope.body["imposedAssets"])
    report.problems.extend(check_policy(draft))
    return draft


def sort_problems(report: Report) -> tuple[Problem, ...]:
    """Return the problems by line and column, equal ones in the order they were found."""
    return tuple(sorted(report.problems, key=lambda each: (each.line, each.column)))


def build_policy(envelope: Envelope, draft: Draft) -> Policy:
    """Build the policy of a document without errors."""
    report = draft.report
    positions = {key: (report.display(at), *report.position(at)) for key, at in draft.paths.items()}
    return Policy(
        name=envelope.name,
        scope=envelope.scope,
        body=draft.body(),
        namespace=envelope.namespace,
        namespace_selector=envelope.namespace_selector,
        created=envelope.created,
        origin=report.document.origin,
        digest=digest(envelope, draft),
        positions=positions,
        **common(envelope.spec),
    )


def common(spec: PolicySpec) -> dict[str, Any]:
    """Return the members that both kinds of policy have, by name."""
    return {each.name: getattr(spec, each.name) for each in fields(PolicySpec)}


def digest(envelope: Envelope, draft: Draft) -> str:
    """Return the SHA-256 of the policy's content. Notation, order of keys and file do not matter."""
    own = ("name", "scope", "namespace", "namespace_selector", "created")
    spec = {**common(envelope.spec), **{name: getattr(envelope, name) for name in own}}
    text = canonical((spec, shallow(draft.body())))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def shallow(value: Any) -> dict[str, Any]:
    """Return the members of a dataclass by name."""
    return {name: getattr(value, name) for name in value.__dataclass_fields__}


def canonical(value: Any) -> str:
    """Return a text that is equal only for equal values. Sets and mappings are sorted."""
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
