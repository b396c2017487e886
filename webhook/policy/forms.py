"""Reads the forms of a policy that are not custom resources: a bare body, and the API's form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from webhook.policy.envelope import Context, Envelope, body_of
from webhook.policy.members import choice_at, text_at
from webhook.policy.names import closest, unknown
from webhook.policy.policy import SCOPES
from webhook.policy.policy_spec import Selector
from webhook.policy.report import Report, show_value
from webhook.policy.selectors import NAME_LABEL

META_MEMBERS = ("name", "scope", "projectId", "departmentId", "clusterId")
META_IGNORED = ("id", "tenantId", "createdBy", "createdAt", "updatedBy", "updatedAt")
API_IGNORED = ("effective", "effectiveUpdatedAt")


def read_bare(report: Report, data: Mapping[Any, Any], context: Context) -> Envelope:
    """Read a body without envelope. Everything else comes from the context."""
    envelope = Envelope(name=name_of(report), scope=context.default_scope)
    envelope.body = body_of(report, data, (), ())
    bind_to_type(envelope, context)
    if envelope.scope == "project":
        envelope.namespace = context.namespace or ""
        if not envelope.namespace:
            fix = "name the namespace on the command line"
            report.error((), "missing-namespace", "a project policy without namespace", fix)
    return envelope


def bind_to_type(envelope: Envelope, context: Context) -> None:
    """Set the workload type of the context, for documents that cannot set one."""
    if context.workload_type is not None:
        types = frozenset({context.workload_type})
        envelope.spec = replace(envelope.spec, workload_types=types)


def name_of(report: Report) -> str:
    """Return the name of a bare document: its file, and its index in the file."""
    document = report.document
    base = document.origin.rstrip("/").rpartition("/")[2]
    stem = base.rpartition(".")[0] or base or "policy"
    return f"{stem}#{document.index}" if document.index > 1 else stem


def read_api(report: Report, data: Mapping[Any, Any], context: Context) -> Envelope:
    """Read the {meta, policy} form of the API. Members that only responses have are ignored."""
    envelope = Envelope()
    for key in data:
        if key not in ("meta", "policy", *API_IGNORED):
            unknown(report, (), key, closest(str(key), ("meta", "policy")), "write meta and policy")
    meta = report.mapping(data.get("meta"), ("meta",))
    for key in meta:
        if key not in META_MEMBERS and key not in META_IGNORED:
            unknown(report, ("meta",), key, closest(str(key), META_MEMBERS))
    envelope.name = text_at(report, meta, "name", ("meta",))
    if not envelope.name:
        report.error(("meta",), "missing-name", "no name", "write meta.name")
    if meta.get("scope") is None:
        report.error(("meta",), "missing-scope", "no scope", f"write one of {', '.join(SCOPES)}")
    else:
        envelope.scope = choice_at(report, meta, "scope", ("meta",), SCOPES)
        read_scope_id(report, envelope, meta, context)
    policy = report.mapping(data.get("policy"), ("policy",))
    envelope.body = body_of(report, policy, ("policy",), ("status",))
    bind_to_type(envelope, context)
    return envelope


def read_scope_id(
    report: Report, envelope: Envelope, meta: Mapping[Any, Any], context: Context
) -> None:
    """Read a project's or department's id, and set the namespaces that the settings map it to."""
    if envelope.scope not in ("project", "department"):
        return
    member = f"{envelope.scope}Id"
    identity = text_at(report, meta, member, ("meta",))
    if not identity:
        report.error(("meta",), "missing-value", f"no {member}", f"write meta.{member}")
        return
    names = tuple(context.scope_names.get(identity, ()))
    if not names and envelope.scope == "project" and context.namespace:
        names = (context.namespace,)
    if not names or (envelope.scope == "project" and len(names) > 1):
        wanted = "one namespace" if envelope.scope == "project" else "namespaces"
        fix = f"map the id {identity} to {wanted} in the settings (scopeNames)"
        report.error(("meta", member), "unmapped-scope-id", show_value(identity), fix)
    elif envelope.scope == "project":
        envelope.namespace = names[0]
    else:
        envelope.namespace_selector = Selector(((NAME_LABEL, "In", tuple(sorted(set(names)))),))
