"""The policies in force in a namespace as YAML that podgate can load again with the same decisions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from webhook.catalog.catalog import Catalog
from webhook.cli import loading
from webhook.cli.convert import as_yaml
from webhook.cli.outcomes import is_built_in, list_names, policy_text
from webhook.convert.policy import convert
from webhook.convert.write_policy import object_name
from webhook.documents import texts
from webhook.documents.yaml_source import read_documents
from webhook.explain.namespaces import InForce, bound, explain_namespace, policies_in
from webhook.policy.envelope import Context
from webhook.policy.policy import Policy
from webhook.policy.policy_document import parse_policy
from webhook.sources.files import read_all
from webhook.sources.load import Sources


def policies_yaml(
    catalog: Catalog, namespace: str, labels: Mapping[str, str], sources: Sources
) -> str:
    """Every policy in force except the built-in one, after comments on what applies to which kinds."""
    applying = [each for each in policies_in(catalog, namespace, labels) if not is_built_in(each)]
    written = documents_of(sources)
    found = InForce(catalog, namespace, labels)
    documents = []
    for each in applying:
        body = written.get(key_of(each))
        if body is None:
            name = policy_text(each.source)
            loading.complain(f"error: {name}: its document cannot be read again; give it as a file")
            raise loading.BadInput
        shorter = found.without_lost(each, body, namespace)
        if has_content(shorter):
            documents.append(shorter if is_sound(shorter) else bound(body, namespace))
    if any(each.body.imposed for each in applying):
        loading.complain(
            "note: imposed assets are not printed; give --assets again with the policies"
        )
    head = "".join(f"# {texts.clean(line)}\n" for line in comments(catalog, namespace, labels))
    return head + (as_yaml(documents) if documents else "")


def has_content(document: Any) -> bool:
    """Whether a policy still has a default, rule or imposed asset."""
    return any(document["spec"].get(each) for each in ("defaults", "rules", "imposedAssets"))


def is_sound(document: Any) -> bool:
    """Whether a policy loads; it does not if it lacks a default that its rules need."""
    documents, _ = read_documents(as_yaml([document]), "policy")
    policy, problems = parse_policy(documents[0], Context())
    return policy is not None and not any(each.severity == "error" for each in problems)


def comments(catalog: Catalog, namespace: str, labels: Mapping[str, str]) -> Iterator[str]:
    """Comments on what applies to which kinds."""
    yield f"The policies in force in namespace {namespace}, without what has no effect there:"
    for each in explain_namespace(catalog, namespace, labels):
        name = each.workload_type or "kinds without a workload type"
        policies = ", ".join(map(policy_text, each.policies)) or "none"
        yield f"{name} ({list_names(each.kinds)}): {policies}"


def documents_of(sources: Sources) -> dict[tuple[str, str], Any]:
    """Each given policy in canonical form, by namespace and name."""
    paths = [each for each in sources.policies if each != "-"]
    found = {}
    for document in read_all(paths)[0]:
        body = convert(document, sources.choices.context).policy
        if body is not None:
            metadata = body["metadata"]
            found[metadata.get("namespace") or "", object_name(str(metadata["name"]))] = body
    return found


def key_of(policy: Policy) -> tuple[str, str]:
    """The namespace and name that identify a policy."""
    return policy.namespace, object_name(policy.name)
