"""Which claims the controller creates, and where; what it reports of each. See docs/decisions/0039."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from webhook.catalog.catalog import Catalog
from webhook.catalog.plan import component_roles
from webhook.catalog.watched_documents import Key
from webhook.documents.enclosed import origin_of
from webhook.documents.problem import Problem
from webhook.evaluation.installation import InstallationConfig
from webhook.fields.storage.claims import ClaimStore
from webhook.objects import quantity
from webhook.policy.checks.settings import claims_of
from webhook.policy.checks.storage import PVC, is_to_be_created, needed_of_claim
from webhook.policy.combine import combine, view
from webhook.policy.leaves import items_of
from webhook.policy.policy import Default, Policy, component_level, role_level
from webhook.policy.table import TABLE

Json = dict[str, Any]
Name = tuple[str, str]
"""Namespace and name of a claim."""
LABEL: Final = "podgate.dev/created-claim"
SELECTOR: Final = f"{LABEL}=true"
COMPARED: Final = ("accessModes", "storageClassName", "volumeMode")
FOREIGN_SOURCES: Final = ("dataSource", "dataSourceRef", "selector")
"""Members that podgate never writes: a labelled claim with one of them has data of somebody else."""
STORE: Final = ClaimStore(items_of(TABLE.fields[PVC]), InstallationConfig())
EPHEMERAL: Final = {"ephemeral": Default(True, True)}
PRESENT, FOREIGN, REFUSED, PENDING = "present", "foreign", "refused", "pending"
UNMET: Final = "error"
"""The severity of a problem that keeps a document from becoming Ready."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """One claim that a policy wants; `origin` names the policy."""

    origin: str
    spec: Json


@dataclass(frozen=True, slots=True)
class Found:
    """The state of a claim, and the API server's reason if it refused the claim."""

    state: str
    reason: str = ""


Claims = dict[Name, tuple[Wanted, ...]]
Labels = Mapping[str, str]


def wanted_claims(catalog: Catalog, namespaces: Mapping[str, Labels]) -> Claims:
    """Return the claims that policies in force mount in these namespaces and nobody provides.

    If several policies want a claim, the first one counts, and the others are compared with it.
    """
    enforced = [each for each in catalog.policies if each.enforcement == "Enforce"]
    own: dict[str, list[Policy]] = {}
    for each in enforced:
        own.setdefault(each.namespace, []).append(each)
    asking = {id(each) for each in enforced if wants_claim(each, catalog)}
    known: dict[tuple[int, ...], Mapping[str, tuple[Wanted, ...]]] = {}
    found: Claims = {}
    for namespace, labels in namespaces.items() if asking else ():
        here = [
            each
            for each in (*own.get("", ()), *own.get(namespace, ()))
            if each.governs_namespace(namespace, labels)
        ]
        key = tuple(map(id, here))
        if asking.isdisjoint(key):
            continue
        if key not in known:
            known[key] = claims_by_name(here, catalog)
        found |= {(namespace, name): several for name, several in known[key].items()}
    return found


def wants_claim(policy: Policy, catalog: Catalog) -> bool:
    """Whether a policy has a claim to create."""
    return any(is_to_be_created(each) for _, _, each in claims_of(policy, catalog.assets))


def claims_by_name(
    policies: Sequence[Policy], catalog: Catalog
) -> Mapping[str, tuple[Wanted, ...]]:
    """Return the claims that these policies together mount in the pods of any kind."""
    origins = {each.source: each.origin for each in policies}
    found: dict[str, dict[str, Wanted]] = {}
    seen: set[object] = set()
    for (group, kind), definitions in catalog.definitions.items():
        workload_type = catalog.workload_type(group, kind)
        applying = [each for each in policies if each.governs_kind(group, kind, workload_type)]
        for component, roles in levels_of(applying, definitions):
            key = (*map(id, applying), component, roles)
            if key in seen:
                continue
            seen.add(key)
            effective = combine(
                [view(each, roles, component) for each in applying],
                catalog.combination,
                catalog.assets,
            )
            leaf = effective.get(PVC)
            given = {
                each.name: Default(held.default.value, held.default.raw)
                for each in STORE.items.attributes
                if (held := effective.get(f"{PVC}.{each.name}")) is not None and held.default
            }
            for item in leaf.items if leaf is not None else ():
                attributes = {**given, **item.attributes}
                if is_to_be_created(attributes) and needed_of_claim(attributes) <= set(attributes):
                    origin = origins[item.source]
                    name = str(attributes["claimName"].value)
                    found.setdefault(name, {}).setdefault(
                        origin, Wanted(origin, spec_of(attributes))
                    )
    return {name: tuple(several.values()) for name, several in found.items()}


def levels_of(
    policies: Iterable[Policy], definitions: Iterable[Any]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The components and roles of a kind that the policies name."""
    bodies = [each.body for each in policies]
    tables = [(each.defaults, each.items, each.rules, each.imposed) for each in bodies]
    named = {level for several in tables for table in several for level in table}
    for definition in definitions:
        for component, roles in component_roles(definition):
            is_named = any(role_level(each) in named for each in roles)
            own = component if component_level(component) in named else ""
            yield own, roles if is_named else ()


def spec_of(attributes: Mapping[str, Default]) -> Json:
    """Return the spec of a claim. Without access modes it is ReadWriteOnce, as for ephemeral claims."""
    return STORE.claim_spec(STORE.complete_attributes({**attributes, **EPHEMERAL}))


def body_of(name: Name, wanted: Wanted) -> Json:
    """Return the object to create."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": name[1],
            "namespace": name[0],
            "labels": {LABEL: "true", "app.kubernetes.io/managed-by": "podgate"},
            "annotations": {"podgate.dev/policy": wanted.origin},
        },
        "spec": wanted.spec,
    }


def brief_of(claim: Json) -> Json:
    """Summarize a claim in the cluster."""
    metadata, spec = claim.get("metadata") or {}, claim.get("spec") or {}
    labels = metadata.get("labels") or {}
    found = {name: spec.get(name) for name in COMPARED}
    found["size"] = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    sources = any(spec.get(each) for each in FOREIGN_SOURCES)
    ours = labels.get(LABEL) == "true" and not sources
    return {"ours": ours, "ends": bool(metadata.get("deletionTimestamp")), "spec": found}


def found_of(brief: Json) -> Found:
    """Return the state of an existing claim."""
    if not brief["ours"]:
        return Found(FOREIGN)
    return Found(PENDING, "it is being deleted") if brief["ends"] else Found(PRESENT)


def differences(spec: Json, brief: Json) -> str:
    """Return how a claim of podgate differs from what a policy wants, "" if it does not."""
    held = brief["spec"]
    texts = [
        f"{name} is {held[name] or 'none'}, not {spec[name] or 'none'}"
        for name in COMPARED
        if name in spec and (held[name] or "") != (spec[name] or "")
    ]
    size = spec["resources"]["requests"]["storage"]
    if held["size"] is None or quantity.parse(held["size"]) < quantity.parse(size):
        texts.append(f"size is {held['size']}, not {size}")
    return ", ".join(texts)


def notes_on(
    wanted: Claims, found: Mapping[Name, Found], briefs: Mapping[Name, Json], keys: Iterable[Key]
) -> dict[Key, tuple[Problem, ...]]:
    """Return the problems for the status of each policy; with severity UNMET a policy is not Ready."""
    by_origin = {origin_of(key): key for key in keys}
    notes: dict[Key, list[Problem]] = {}
    for name, several in sorted(wanted.items(), key=lambda each: each[0]):
        for each in several:
            key = by_origin.get(each.origin)
            problem = problem_of(name, each, found.get(name, Found(PENDING)), briefs.get(name))
            if key is not None and problem is not None:
                notes.setdefault(key, []).append(problem)
    return {key: tuple(several) for key, several in notes.items()}


def problem_of(name: Name, wanted: Wanted, found: Found, brief: Json | None) -> Problem | None:
    """Return the problem of a claim, with its fix; None if there is none."""
    namespace, claim = name
    where = f"not Ready in namespace {namespace}: PersistentVolumeClaim {claim}"
    if found.state == PRESENT:
        difference = differences(wanted.spec, brief) if brief is not None else ""
        text = f"PersistentVolumeClaim {claim} in namespace {namespace} differs: {difference}"
        fix = "podgate neither resizes nor deletes claims: change it, or the policy"
        row = ("claim-differs", text, fix, "warning") if difference else None
    elif found.state == FOREIGN:
        fix = (
            "check its data; then delete it, and podgate creates it, or give it the label"
            f" {SELECTOR} if it may be used"
        )
        text = f"{where} was not created by podgate, which does not adopt it"
        row = ("claim-not-adopted", text, fix, UNMET)
    elif found.state == REFUSED:
        quota = "quota" in found.reason
        fix = (
            "raise the quota of the namespace, or free what counts in it" if quota else "mend that"
        )
        fix += "; podgate tries again"
        row = ("claim-refused", f"{where} cannot be created: {found.reason}", fix, UNMET)
    else:
        text = f"{where} is not there yet" + (f": {found.reason}" if found.reason else "")
        row = ("claim-pending", text, "wait", UNMET)
    if row is None:
        return None
    return Problem(wanted.origin, "spec", row[1], row[2], row[0], severity=row[3])


def unread_notes(catalog: Catalog, why: str, keys: Iterable[Key]) -> dict[Key, tuple[Problem, ...]]:
    """Return the problem for each policy with claims while namespaces or claims cannot be read."""
    by_origin = {origin_of(key): key for key in keys}
    fix = "give the controller the rights of the ClusterRole podgate-claims"
    text = f"no claim is created: {why}"
    return {
        by_origin[each.origin]: (
            Problem(each.origin, "spec", text, fix, "claim-pending", severity=UNMET),
        )
        for each in catalog.policies
        if each.origin in by_origin and wants_claim(each, catalog)
    }
