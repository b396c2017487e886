"""The immutable snapshot that a request uses: policies, definitions and assets, indexed by kind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from webhook.catalog.definition_status import DefinitionStatus
from webhook.catalog.plan import Plan, compile_plan
from webhook.evaluation.exception import Named, PolicyException
from webhook.evaluation.installation import InstallationConfig
from webhook.evaluation.references import References
from webhook.evaluation.request import Request
from webhook.evaluation.server_defaults import KindDefaults, ServerDefaults
from webhook.interface.injected_items import Injected, merge_lists
from webhook.pods.definition import Definition
from webhook.pods.operator_defaults import with_operator_defaults
from webhook.policy.combine import GUARDED
from webhook.policy.policy import Asset, Policy

PLANS_KEPT = 4096
SCOPES_KEPT = 16384

Kinds = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Plans:
    """The plan of enforced policies, and the plan with Warn and Audit policies too, None without any."""

    enforced: Plan
    with_warn: Plan | None


@dataclass(slots=True)
class Catalog:
    """All documents. Never changes once built, except for its bounded caches."""

    policies: tuple[Policy, ...] = ()
    definitions: Mapping[tuple[str, str], tuple[Definition, ...]] = field(default_factory=dict)
    assets: Mapping[str, Asset] = field(default_factory=dict)
    combination: str = GUARDED
    config: InstallationConfig = field(default_factory=InstallationConfig)
    server_defaults: ServerDefaults | None = None
    generation: int = 1
    statuses: tuple[DefinitionStatus, ...] = ()
    exceptions: Mapping[Named, tuple[PolicyException, ...]] = field(default_factory=dict)
    by_kind: dict[tuple[str, str], tuple[Policy, ...]] = field(default_factory=dict)
    plans: dict[tuple[object, ...], Plan] = field(default_factory=dict)
    plans_by_scope: dict[tuple[object, ...], Plans] = field(default_factory=dict)
    variants: dict[tuple[object, ...], Any] = field(default_factory=dict)
    excusing: dict[Kinds, Injected] = field(default_factory=dict)
    makers: dict[tuple[str, str], Kinds] = field(default_factory=dict)
    has_foreign: bool | None = None

    def documents(self) -> dict[str, int]:
        """Return the number of documents in force by kind, including shipped ones."""
        excused = {id(each) for rows in self.exceptions.values() for each in rows}
        return {
            "policy": len(self.policies),
            "definition": sum(map(len, self.definitions.values())),
            "asset": len(self.assets),
            "exception": len(excused),
        }

    def definition(self, group: str, kind: str, version: str) -> Definition | None:
        """Return the definition of a kind that covers this version."""
        for each in self.definitions.get((group, kind), ()):
            if version in each.versions:
                return each
        return None

    def any_definition(self, group: str, kind: str, version: str) -> Definition | None:
        """Return the definition of a kind for this version, else for another version."""
        found = self.definitions.get((group, kind), ())
        return self.definition(group, kind, version) or next(iter(found), None)

    def definition_of_resource(self, group: str, resource: str, version: str) -> Definition | None:
        """Return the definition whose profile has this plural name. Scale reviews have only that name."""
        for definitions in self.definitions.values():
            for each in definitions:
                named = (each.interface.group, each.profile.resource) == (group, resource)
                if named and version in each.versions:
                    return each
        return None

    def workload_type(self, group: str, kind: str) -> str:
        """Return the policy workload type of a kind, "" without one."""
        definitions = self.definitions.get((group, kind), ())
        return (definitions[0].profile.workload_type or "") if definitions else ""

    def exceptions_for(
        self, request: Request, names: Iterable[tuple[str, str, str]]
    ) -> tuple[PolicyException, ...]:
        """Return the active exceptions for objects of these groups, kinds and names."""
        found = (
            each
            for group, kind, name in names
            for each in self.exceptions.get(Named(group, kind, request.namespace, name), ())
        )
        return tuple(each for each in found if each.is_active(request.time))

    def policies_of(self, group: str, kind: str) -> tuple[Policy, ...]:
        """Return the policies that govern a kind in some namespace."""
        key = (group, kind)
        if key not in self.by_kind:
            workload_type = self.workload_type(group, kind)
            self.by_kind[key] = tuple(
                each for each in self.policies if each.governs_kind(group, kind, workload_type)
            )
        return self.by_kind[key]

    @property
    def needs_jq(self) -> bool:
        """Return whether some definition has paths that only jq can evaluate. Every review calls this."""
        if self.has_foreign is None:
            definitions = self.definitions.values()
            self.has_foreign = any(each.foreign for found in definitions for each in found)
        return self.has_foreign

    def needs_namespace_labels(self) -> bool:
        """Return whether some policy selects namespaces by their labels."""
        return any(each.namespace_selector is not None for each in self.policies)

    def plans_for(
        self,
        definition: Definition,
        namespace: str,
        references: References,
        labels: Mapping[str, str] | None = None,
        others: Kinds = (),
    ) -> Plans:
        """The plans for a kind in a namespace; `others` are kinds that bring their policies along.

        They are a Pod's owner and what an object is wrapped in.
        """
        if labels is None:
            labels = references.namespaces.get(namespace, {})
        interface = definition.interface
        key = (
            interface.group,
            interface.kind,
            definition.versions,
            namespace,
            frozenset(labels.items()),
            others,
        )
        known = self.plans_by_scope.get(key)
        if known is None:
            known = self.build_plans(definition, namespace, labels, others)
            if len(self.plans_by_scope) >= SCOPES_KEPT:
                self.plans_by_scope.clear()
            self.plans_by_scope[key] = known
        return known

    def build_plans(
        self, definition: Definition, namespace: str, labels: Mapping[str, str], others: Kinds
    ) -> Plans:
        """Compile, or find compiled, the plans of the policies that apply."""
        interface = definition.interface
        applying = [
            each
            for each in self.policies_of(interface.group, interface.kind)
            if each.governs_namespace(namespace, labels)
        ]
        for kind in others:
            applying += [
                each
                for each in self.policies_of(*kind)
                if each not in applying and each.governs_namespace(namespace, labels)
            ]
        return self.plans_of(definition, applying)

    def plans_for_child(
        self, definition: Definition, namespace: str, references: References, owner: tuple[str, str]
    ) -> Plans:
        """Return the plans that the policies of a workload's kind give the kind that its controller makes."""
        labels = references.namespaces.get(namespace, {})
        kinds = self.governed_kinds(*owner)
        return self.plans_of(definition, self.policies_for(kinds, namespace, labels))

    def policies_for(
        self, kinds: Iterable[tuple[str, str]], namespace: str, labels: Mapping[str, str]
    ) -> list[Policy]:
        """Return the policies in a namespace that govern any of these kinds, without duplicates."""
        applying: list[Policy] = []
        for kind in kinds:
            applying += [
                each
                for each in self.policies_of(*kind)
                if each not in applying and each.governs_namespace(namespace, labels)
            ]
        return applying

    def makers_of(self, group: str, kind: str) -> Kinds:
        """Return the kinds whose controllers make objects of this kind, by the profiles."""
        made = (group, kind)
        if made not in self.makers:
            self.makers[made] = tuple(
                each
                for each, found in self.definitions.items()
                if each != made
                and any(one.embedded or made in one.profile.intermediate_kinds for one in found)
            )
        return self.makers[made]

    def plans_of(self, definition: Definition, applying: Sequence[Policy]) -> Plans:
        """Return the plan of enforced policies, and the plan of all policies if some are not enforced."""
        enforced = [each for each in applying if each.enforcement == "Enforce"]
        plan = self.plan(definition, enforced)
        with_warn = self.plan(definition, applying) if len(enforced) != len(applying) else None
        return Plans(plan, with_warn)

    def governed_kinds(self, group: str, kind: str) -> tuple[tuple[str, str], ...]:
        """Return the kind itself if it has a definition, else the kinds it is an intermediate of."""
        if (group, kind) in self.definitions:
            return ((group, kind),)
        between = {
            each: {kind for one in found for kind in one.profile.intermediate_kinds}
            for each, found in self.definitions.items()
        }
        found = [each for each, kinds in between.items() if (group, kind) in kinds]
        # An object made through another one of them has been evaluated as that one.
        nearest = [each for each in found if not any(other in between[each] for other in found)]
        return tuple(nearest or found) or ((group, kind),)

    def plan(self, definition: Definition, policies: Sequence[Policy]) -> Plan:
        """Return the plan of a kind, version and set of policies. All namespaces share it."""
        interface = definition.interface
        digests = frozenset((each.digest, each.name, each.namespace) for each in policies)
        key = (interface.group, interface.kind, definition.versions, digests)
        known = self.plans.get(key)
        if known is None:
            if len(self.plans) >= PLANS_KEPT:
                self.plans.clear()
            known = self.plans[key] = compile_plan(
                policies,
                definition,
                self.combination,
                self.assets,
                self.config,
                self.server(definition),
            )
        return known

    def injected_for(self, kinds: Kinds) -> Injected:
        """Return the content that settings and operators may inject into objects made of these kinds."""
        if kinds not in self.excusing:
            adds = [
                one.profile.adds
                for kind in kinds
                for found in self.definitions.get(kind, ())
                for one in found.everyone
            ]
            self.excusing[kinds] = merge_lists((self.config.injected, *adds))
        return self.excusing[kinds]

    def pod_defaults(self) -> KindDefaults:
        """Return the defaults of the API server for Pods."""
        return (
            KindDefaults() if self.server_defaults is None else self.server_defaults.kind("", "Pod")
        )

    def server(self, definition: Definition) -> KindDefaults:
        """Return the defaults of the API server, or of an operator with the same ones, for the kind."""
        interface = definition.interface
        if self.server_defaults is None:
            return KindDefaults()
        like = definition.profile.defaults_of or (interface.group, interface.kind)
        return self.server_defaults.kind(*like)

    def complete(self, definition: Definition, document: Any) -> Any:
        """Return the document with the defaults of the API server, the CRD and the operator's webhook."""
        filled = with_operator_defaults(definition.profile, document)
        return self.server(definition).apply(filled)
