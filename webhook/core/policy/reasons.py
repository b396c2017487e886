"""TABLE of reasons: the stable word of every problem a policy or asset document can have."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

REASONS: Mapping[str, str] = MappingProxyType(
    {
        # the document as a whole
        "not-a-policy": "The document is no mapping, or none of the accepted forms.",
        "not-an-asset": "The document is no data source asset.",
        "wrong-version": "The document's apiVersion is not one that is read.",
        "legacy-v1": "A policy of the first generation; a command converts such documents.",
        "legacy-2.16": "A policy body of version 2.16, which was never read as what it is today.",
        "fragment-without-root": "Fields stand where defaults or rules must stand above them.",
        # the envelope
        "missing-name": "The document has no name.",
        "missing-id": "The document has no id that others could refer to.",
        "missing-namespace": "A project policy does not say which namespace it governs.",
        "missing-scope": "The document does not say its scope.",
        "unmapped-scope-id": "An id of the API is not mapped to namespaces of this cluster.",
        "department-without-selector": "A department policy does not select its namespaces.",
        "bad-selector": "A label selector that Kubernetes would refuse.",
        "bad-url": "A link that is no http or https address.",
        "types-and-kinds": "Workload types and kinds are both named; only one of them may be.",
        "empty-list": "A list that must name something is empty.",
        "value-outside-enum": "A word outside the closed set of its place.",
        # names and shapes
        "unknown-field": "A name that does not exist at this place.",
        "unknown-rule": "A word that is no rule.",
        "rule-not-for-type": "The rule does not apply to values of this type.",
        "rules-on-itemized": "Rules of an itemized field stand outside instances and attributes.",
        "wrong-type": "The value is not of the type that stands here.",
        "wrong-level": "The field cannot stand below this role.",
        "missing-value": "A member that must be given is absent.",
        "items-as-list": "Items stand as a plain list where instances must stand above them.",
        "no-attribute-defaults": "The field takes no defaults for attributes.",
        # accepted, with a better spelling
        "letter-case": "The name is known in other letter case.",
        "alias": "The name is known by another spelling.",
        "value-spelling": "The value is known by another spelling.",
        "spelled-twice": "One name stands there in two spellings; one of them is ignored.",
        "list-attributes": "Attributes stand as a list of maps, which is read as one map.",
        # values that cannot work
        "default-outside-rules": "The default breaks a rule of the same document.",
        "default-outside-enum": "The default is outside the closed set of the field's values.",
        "option-outside-enum": "The option is outside the closed set of the field's values.",
        "empty-options": "No value is allowed.",
        "min-above-max": "No value is at once as large as min and as small as max.",
        "bad-step": "The step is not above zero.",
        "bad-factor": "The factor of a computed default is not above zero.",
        "impossible-required": "A value is required, none may be given, and there is no default.",
        "request-above-limit": "The default request is above the default limit.",
        "min-default-above-max-default": "The default minimum is above the default maximum.",
        "default-from-self": "The default is computed from itself.",
        "default-from-cycle": "Defaults are computed from one another in a circle.",
        "default-from-unknown": "The default is computed from a field that does not exist.",
        "default-from-elsewhere": "The default is computed from another section, role or item.",
        "default-from-type": "The default is computed from a value of another type.",
        "no-bound-type": "No workload type that the policy is for can carry the field.",
        "some-types-only": "Only some of the workload types that the policy is for can carry it.",
        # items
        "duplicate-item": "Two default items have one key.",
        "excluded-default-item": "A default item excludes itself.",
        "item-without-key": "An item has neither its key nor a complete substitute.",
        "incomplete-item": "A default item lacks an attribute without which it cannot be used.",
        "locked-item-incomplete": "A locked default item lacks a required attribute.",
        "exclusive-attributes": "An item has attributes that exclude each other.",
        "attribute-out-of-place": "An item has an attribute that its other attributes rule out.",
        "value-out-of-range": "The number is outside the range that the attribute can have.",
        "bad-label": "A key or value that Kubernetes would refuse for labels or annotations.",
        "locked-without-item": "A key is locked for which there is no default or imposed item.",
        "locked-twice": "A key is locked twice.",
        # probably a mistake
        "blocked-beside-rules": "Other rules stand beside blocked and never apply.",
        "max-off-grid": "The largest value is no step, so the last step below it is the cap.",
        "milli-memory": "The suffix m makes thousandths of a byte.",
        # between documents
        "duplicate-policy": "Two policies of one scope and namespace have one name.",
        "duplicate-asset": "Two assets have one id.",
        "unknown-asset": "The imposed asset does not exist.",
        "asset-with-credential": "An asset that refers to a credential cannot be imposed.",
        "asset-not-imposable": "The asset is of a kind that cannot be imposed.",
        "imposed-twice": "Two imposed assets give one item.",
        "conflict": "Two policies of one scope give one leaf different values.",
        "default-outside-combined-rules": "The default breaks a rule of another policy.",
        "shut-out-by-lock": "A broader scope forbids changes, so what is said here does not count.",
        # conversion of older documents
        "not-expressed": "The old policy says something that today's language has no words for.",
        "field-not-known": "The field has a successor, which this version does not know.",
        "converted-inexactly": "What it became means slightly more or less than what it was.",
        "converted-choice": "It could mean several things today; this one was chosen.",
        # advice of `podgate lint` on policies that load
        "kinds-not-covered": "A user can choose another kind or type, where nobody says the rule.",
        "no-shipped-kind": "No kind that has a definition is governed by the policy.",
        "no-kind-carries": "No kind that the policy governs has a place for the field.",
        "prohibition-lost": "A prohibition is not in force where a broader scope claims the leaf.",
        "rules-lost": "Rules that are never in force, because another scope claims the leaf.",
        "default-never-written": "A default that no workload ever gets.",
        "single-option": "Only one value is allowed, and who leaves it out may get another one.",
        "bound-without-value": "A bound holds for given values only; who gives none passes.",
        "selector-negative": "The selector also matches namespaces that have no such label.",
        "selector-empty": "No namespace can match all that the selector asks for.",
        "selector-all": "An empty selector selects nothing apart: every namespace is governed.",
        "selector-name-label": "A label that looks like a namespace's name, and that nobody sets.",
        "exclusion-without-effect": "A namespace is excluded that the selector does not select.",
    }
)
