"""The webhook configurations of the API server, generated from the kinds that have definitions."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from webhook.controller.match_conditions import Definitions, Skips, conditions, skips_of
from webhook.controller.platforms import OPT_OUT
from webhook.controller.served import Served
from webhook.devices.definitions import has_devices
from webhook.evaluation.installation import GOVERNED_LABEL, NEVER_GOVERNED
from webhook.interface import names
from webhook.pods.definition import Definition

NAME = "podgate"
NAMESPACED, CLUSTER = "Namespaced", "Cluster"
POD_SUBRESOURCES = ("pods/ephemeralcontainers", "pods/resize")


@dataclass(frozen=True, slots=True)
class Target:
    """Where the API server reaches the webhook: a service, or a URL; `ca` is PEM, empty if none."""

    service: tuple[str, str, int] | None = None
    url: str = ""
    ca: bytes = b""

    def client_config(self, path: str) -> dict[str, Any]:
        """The clientConfig for one endpoint."""
        config: dict[str, Any] = {}
        if self.service is not None:
            namespace, name, port = self.service
            config["service"] = {"namespace": namespace, "name": name, "path": path, "port": port}
        else:
            config["url"] = self.url.rstrip("/") + path
        if self.ca:
            config["caBundle"] = base64.b64encode(self.ca).decode()
        return config


@dataclass(frozen=True, slots=True)
class Options:
    """The settings of the registration: namespaces, timeout and failure policy.

    Namespaces in `exempt` are never governed, since the cluster needs them to start. Requests of
    members of the groups in `break_glass` are not sent.
    """

    governed: str = "label"
    timeout_seconds: int = 3
    mutate_failure: str = "Ignore"
    validate_failure: str = "Fail"
    exempt: tuple[str, ...] = ()
    break_glass: tuple[str, ...] = ()


def rules_of(
    definitions: Definitions,
    *,
    subresources: bool,
    served: Served | None = None,
    scope: str = NAMESPACED,
) -> list[dict[str, Any]]:
    """One rule per group and set of versions, sorted, with exactly the defined versions.

    If `served` is known, only served versions are listed. Cluster-scoped kinds with pods are in no
    scope: podgate checks the pods that they create.
    """
    grouped: dict[tuple[str, tuple[str, ...]], set[str]] = {}
    for each in (d for found in definitions.values() for d in found):
        group, resource = each.interface.group, each.profile.resource
        if not resource or scope_of(each) != scope:
            continue
        for name in (resource, *(subresources_of(each) if subresources else ())):
            versions = tuple(
                version
                for version in sorted(each.versions)
                if served is None or served.has(group, version, name)
            )
            if versions:
                grouped.setdefault((group, versions), set()).add(name)
    return [
        {
            "apiGroups": [group],
            "apiVersions": list(versions),
            "operations": ["CREATE", "UPDATE"],
            "resources": sorted(resources),
            "scope": scope,
        }
        for (group, versions), resources in sorted(grouped.items())
    ]


def scope_of(definition: Definition) -> str:
    """The scope of the objects that are sent, "" if none are."""
    if not definition.profile.cluster_scoped:
        return NAMESPACED
    return CLUSTER if has_devices(definition) else ""


def subresources_of(definition: Definition) -> tuple[str, ...]:
    """The subresources that can change an object of a kind without a review of the object itself."""
    interface, profile = definition.interface, definition.profile
    found = [f"{profile.resource}/scale"] if profile.scale_subresource is not None else []
    pods = POD_SUBRESOURCES if (interface.group, interface.kind) == ("", "Pod") else ()
    return (*found, *pods)


def never_governed(target: Target) -> frozenset[str]:
    """The cluster's own namespaces and the webhook's own, where podgate could not start otherwise."""
    own = () if target.service is None else (target.service[0],)
    return frozenset((*NEVER_GOVERNED, *own))


def namespace_selector(governed: str, never: Iterable[str] = NEVER_GOVERNED) -> dict[str, Any]:
    """The namespaces to govern, by label or all; never the cluster's own nor podgate's."""
    expressions: list[dict[str, Any]] = [
        {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": sorted(never)}
    ]
    selector: dict[str, Any] = {"matchExpressions": expressions}
    if governed == "label":
        selector["matchLabels"] = {GOVERNED_LABEL: "true"}
    return selector


def metadata(name: str) -> dict[str, Any]:
    """The metadata of a configuration, which asks platforms not to change it."""
    return {
        "name": name,
        "labels": {"app.kubernetes.io/name": NAME},
        "annotations": dict(OPT_OUT),
    }


def webhook(
    kind: str,
    path: str,
    failure: str,
    rules: list[dict[str, Any]],
    target: Target,
    options: Options,
    matching: list[dict[str, str]],
) -> dict[str, Any]:
    """One webhook entry."""
    entry = {
        "name": f"{kind}.podgate.dev",
        "admissionReviewVersions": ["v1"],
        "clientConfig": target.client_config(path),
        "rules": rules,
        "namespaceSelector": namespace_selector(
            options.governed, {*never_governed(target), *options.exempt}
        ),
        **({"matchConditions": matching} if matching else {}),
        "matchPolicy": "Equivalent",
        # Either pass may reject what a controller makes; podgate then posts an event on the owner.
        "sideEffects": "NoneOnDryRun",
        "failurePolicy": failure,
        "timeoutSeconds": options.timeout_seconds,
    }
    if kind == "mutate":
        entry["reinvocationPolicy"] = "IfNeeded"
    return entry


def configurations(
    definitions: Definitions,
    target: Target,
    options: Options | None = None,
    served: Served | None = None,
    skips: Skips | None = None,
) -> list[dict[str, Any]]:
    """The mutating and the validating configuration, ready to apply.

    Subresources are only validated, since podgate writes nothing there. `skips` are the requests
    that the API server need not send; by default they follow from the definitions.
    """
    options, skips = options or Options(), skips or skips_of(definitions)
    found = []
    for kind, path, failure, name in (
        ("mutate", "/mutate", options.mutate_failure, "MutatingWebhookConfiguration"),
        ("validate", "/validate", options.validate_failure, "ValidatingWebhookConfiguration"),
    ):
        rules = rules_of(definitions, subresources=kind == "validate", served=served)
        matching = conditions(skips, definitions, options.break_glass, mutating=kind == "mutate")
        entries = [webhook(kind, path, failure, rules, target, options, matching)]
        if kind == "validate":
            entries += class_webhooks(definitions, target, options, served)
        found.append(
            {
                "apiVersion": "admissionregistration.k8s.io/v1",
                "kind": name,
                "metadata": metadata(NAME),
                "webhooks": entries,
            }
        )
    return [*found, documents_configuration(target, options)]


def class_webhooks(
    definitions: Definitions, target: Target, options: Options, served: Served | None
) -> list[dict[str, Any]]:
    """The webhook for device classes, none if they are not served.

    Administrators write them: a podgate that does not answer must not stop them.
    """
    rules = rules_of(definitions, subresources=False, served=served, scope=CLUSTER)
    if not rules:
        return []
    matching = conditions(Skips(unchanged=False), (), options.break_glass, mutating=False)
    entry = webhook("classes", "/validate", "Ignore", rules, target, options, matching)
    del entry["namespaceSelector"]
    return [entry]


def documents_configuration(target: Target, options: Options) -> dict[str, Any]:
    """The configuration that validates podgate's own kinds.

    It fails open: a broken document replaces no good version, and everybody can still repair
    documents.
    """
    plurals: dict[str, list[str]] = {}
    for each in names.ALL:
        plurals.setdefault(each.group, []).append(each.plural)
    entry = {
        "name": "documents.podgate.dev",
        "admissionReviewVersions": ["v1"],
        "clientConfig": target.client_config("/documents"),
        "rules": [
            {
                "apiGroups": [group],
                "apiVersions": ["v1alpha1"],
                "operations": ["CREATE", "UPDATE"],
                "resources": sorted(plurals[group]),
                "scope": "*",
            }
            for group in sorted(plurals)
        ],
        "matchPolicy": "Equivalent",
        "sideEffects": "None",
        "failurePolicy": "Ignore",
        "timeoutSeconds": options.timeout_seconds,
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": metadata(f"{NAME}-documents"),
        "webhooks": [entry],
    }
