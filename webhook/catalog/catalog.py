"""The immutable snapshot a request sees: policies, definitions, assets, indexed by kind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from webhook.catalog.definition_status import Standing
from webhook.catalog.plan import Plan, compile_plan
from webhook.evaluation.exception import Named, PolicyException
from webhook.evaluation.installation import Vocabulary
from webhook.evaluation.references import References
from webhook.evaluation.request import Request
from webhook.evaluation.server_defaults import KindDefaults, ServerDefaults
from webhook.interface.injected_items import Injected, united_lists
from webhook.pods.definition import Definition
from webhook.pods.operator_defaults import with_operator_defaults
from webhook.policy.combine import GUARDED
from webhook.policy.policy import Asset, Policy

PLANS_KEPT = 4096
REACH_KEPT = 16384

Kinds = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Plans:
    """What decides and writes, and the trial of Warn and Audit policies, None when there is none."""

    enforced: Plan
    trial: Plan | None


@dataclass(slots=True)
class Catalog:
    """Everything that changes rarely. Never changed once built; only its caches grow, bounded."""

    policies: tuple[Policy, ...] = ()
    definitions: Mapping[tuple[str, str], tuple[Definition, ...]] = field(default_factory=dict)
    assets: Mapping[str, Asset] = field(default_factory=dict)
    combination: str = GUARDED
    vocabulary: Vocabulary = field(default_factory=Vocabulary)
    server_defaults: ServerDefaults | None = None
    generation: int = 1
    standings: tuple[Standing, ...] = ()
    exceptions: Mapping[Named, tuple[PolicyException, ...]] = field(default_factory=dict)
    by_kind: dict[tuple[str, str], tuple[Policy, ...]] = field(default_factory=dict)
    plans: dict[tuple[object, ...], Plan] = field(default_factory=dict)
    reach: dict[tuple[object, ...], Plans] = field(default_factory=dict)
    variants: dict[tuple[object, ...], Any] = field(default_factory=dict)
    excusing: dict[Kinds, Injected] = field(default_factory=dict)
    makers: dict[tuple[str, str], Kinds] = field(default_factory=dict)
    has_foreign: bool | None = None

    def documents(self) -> dict[str, int]:
        """How many documents of each kind are in force, shipped ones included."""
        excused = {id(each) for rows in self.exceptions.values() for each in rows}
        return {
            "policy": len(self.policies),
            "definition": sum(map(len, self.definitions.values())),
            "asset": len(self.assets),
            "exception": len(excused),
        }

    def definition(self, group: str, kind: str, version: str) -> Definition | None:
        """The definition of a kind that covers this version."""
        for each in self.definitions.get((group, kind), ()):
            if version in each.versions:
                return each
        return None

    def any_definition(self, group: str, kind: str, version: str) -> Definition | None:
        """The definition of a kind for this version, else for another."""
        found = self.definitions.get((group, kind), ())
        return self.definition(group, kind, version) or next(iter(found), None)

    def definition_of_resource(self, group: str, resource: str, version: str) -> Definition | None:
        """The definition whose profile states this plural name (scale reviews name only that)."""
        for definitions in self.definitions.values():
            for each in definitions:
                named = (each.interface.group, each.profile.resource) == (group, resource)
                if named and version in each.versions:
                    return each
        return None

    def workload_type(self, group: str, kind: str) -> str:
        """The policy workload type of a kind; "" for one that has none."""
        definitions = self.definitions.get((group, kind), ())
        return (definitions[0].profile.workload_type or "") if definitions else ""

    def exceptions_for(
        self, request: Request, names: Iterable[tuple[str, str, str]]
    ) -> tuple[PolicyException, ...]:
        """The exceptions in force for objects of these groups, kinds and names."""
        found = (
            each
            for group, kind, name in names
            for each in self.exceptions.get(Named(group, kind, request.namespace, name), ())
        )
        return tuple(each for each in found if each.holds(request.time))

    def policies_of(self, group: str, kind: str) -> tuple[Policy, ...]:
        """The policies that govern a kind in some namespace."""
        key = (group, kind)
        if key not in self.by_kind:
            workload_type = self.workload_type(group, kind)
            self.by_kind[key] = tuple(
                each for each in self.policies if each.governs_kind(group, kind, workload_type)
            )
        return self.by_kind[key]

    @property
    def needs_jq(self) -> bool:
        """Whether some definition has paths that only jq can evaluate; every review asks."""
        if self.has_foreign is None:
            held = self.definitions.values()
            self.has_foreign = any(each.foreign for found in held for each in found)
        return self.has_foreign

    def needs_namespace_labels(self) -> bool:
        """Whether some policy selects namespaces by their labels."""
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
        known = self.reach.get(key)
        if known is None:
            known = self.build_plans(definition, namespace, labels, others)
            if len(self.reach) >= REACH_KEPT:
                self.reach.clear()
            self.reach[key] = known
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
        """What the policies of a workload's kind mean for the kind that its controller makes."""
        labels = references.namespaces.get(namespace, {})
        kinds = self.governed_kinds(*owner)
        return self.plans_of(definition, self.policies_for(kinds, namespace, labels))

    def policies_for(
        self, kinds: Iterable[tuple[str, str]], namespace: str, labels: Mapping[str, str]
    ) -> list[Policy]:
        """The policies in a namespace that govern any of these kinds, each once."""
        applying: list[Policy] = []
        for kind in kinds:
            applying += [
                each
                for each in self.policies_of(*kind)
                if each not in applying and each.governs_namespace(namespace, labels)
            ]
        return applying

    def makers_of(self, group: str, kind: str) -> Kinds:
        """The kinds whose controllers make objects of this kind, by the profiles."""
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
        """The policies to enforce alone; all of them as well, where some are on trial."""
        enforced = [each for each in applying if each.enforcement == "Enforce"]
        plan = self.plan(definition, enforced)
        trial = self.plan(definition, applying) if len(enforced) != len(applying) else None
        return Plans(plan, trial)

    def governed_kinds(self, group: str, kind: str) -> tuple[tuple[str, str], ...]:
        """The kind itself where it has a definition, else the nearest that it stands between for."""
        if (group, kind) in self.definitions:
            return ((group, kind),)
        between = {
            each: {kind for one in found for kind in one.profile.intermediate_kinds}
            for each, found in self.definitions.items()
        }
        found = [each for each, kinds in between.items() if (group, kind) in kinds]
        # What comes by way of another of them has been judged as that one.
        nearest = [each for each in found if not any(other in between[each] for other in found)]
        return tuple(nearest or found) or ((group, kind),)

    def plan(self, definition: Definition, policies: Sequence[Policy]) -> Plan:
        """One plan per kind, version and set of policies, shared by all namespaces."""
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
                self.vocabulary,
                self.server(definition),
            )
        return known

    def injected_for(self, kinds: Kinds) -> Injected:
        """What may be added to objects made of these kinds: by the settings, and by their operators."""
        if kinds not in self.excusing:
            adds = [
                one.profile.adds
                for kind in kinds
                for found in self.definitions.get(kind, ())
                for one in found.everyone
            ]
            self.excusing[kinds] = united_lists((self.vocabulary.injected, *adds))
        return self.excusing[kinds]

    def pod_defaults(self) -> KindDefaults:
        """What the API server fills in for Pods."""
        return (
            KindDefaults() if self.server_defaults is None else self.server_defaults.kind("", "Pod")
        )

    def server(self, definition: Definition) -> KindDefaults:
        """Return what the API server, or an operator that does the same, fills in for the kind."""
        interface = definition.interface
        if self.server_defaults is None:
            return KindDefaults()
        like = definition.profile.defaults_of or (interface.group, interface.kind)
        return self.server_defaults.kind(*like)

    def completed(self, definition: Definition, document: Any) -> Any:
        """Return a new document as the API server, the CRD and the operator's webhook complete it."""
        filled = with_operator_defaults(definition.profile, document)
        return self.server(definition).apply(filled)
