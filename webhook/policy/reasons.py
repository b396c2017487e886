"""TABLE of reasons: the stable ids of problems in reading and converting documents.

Checks have their own reasons, see `policy/checks` and `lint`. `lint.advice.REASONS` has all of them.
"""

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
        "fragment-without-root": "Fields are at the top instead of below defaults or rules.",
        # the envelope
        "missing-name": "The document has no name.",
        "missing-id": "The document has no id that others could refer to.",
        "missing-namespace": "A project policy does not name the namespace that it governs.",
        "missing-scope": "The document does not name its scope.",
        "unmapped-scope-id": "An id of the API is not mapped to namespaces of this cluster.",
        "department-without-selector": "A department policy does not select its namespaces.",
        "bad-selector": "A label selector that Kubernetes would refuse.",
        "bad-url": "A link that is no http or https address.",
        "types-and-kinds": "Workload types and kinds are both named; only one of them may be.",
        "empty-list": "A list that must name something is empty.",
        "value-outside-enum": "A value outside the closed set of its field.",
        # names and shapes
        "unknown-field": "A name that does not exist at this path.",
        "unknown-rule": "A word that is no rule.",
        "rule-not-for-type": "The rule does not apply to values of this type.",
        "rules-on-itemized": "Rules of an itemized field are outside instances and attributes.",
        "wrong-type": "The value is not of the type of this field.",
        "wrong-level": "The field cannot be set below this role.",
        "missing-value": "A member that must be given is absent.",
        "items-as-list": "Items are a plain list instead of a list below instances.",
        "no-attribute-defaults": "The field takes no defaults for attributes.",
        # accepted, with a better spelling
        "letter-case": "The name is known in other letter case.",
        "alias": "The name is known by another spelling.",
        "value-spelling": "The value is known by another spelling.",
        "spelled-twice": "One name is written in two spellings; one of them is ignored.",
        "list-attributes": "Attributes are written as a list of maps, which is read as one map.",
        # values that cannot work
        "default-outside-enum": "The default is outside the closed set of the field's values.",
        "option-outside-enum": "The option is outside the closed set of the field's values.",
        "empty-options": "No value is allowed.",
        "bad-step": "The step is not above zero.",
        "bad-factor": "The factor of a computed default is not above zero.",
        "default-from-self": "The default is computed from itself.",
        "default-from-unknown": "The default is computed from a field that does not exist.",
        "default-from-elsewhere": "The default is computed from another role, item or kind of field.",
        "default-from-type": "The default is computed from a value of another type.",
        # items
        "duplicate-item": "Two default items have one key.",
        "excluded-default-item": "A default item is locked and excluded, or attributes exclude all items.",
        "item-without-key": "An item has neither its key nor a complete substitute.",
        "bad-name": "A name that Kubernetes would refuse for that object.",
        "bad-label": "A key or value that Kubernetes would refuse for labels or annotations.",
        "locked-twice": "A key is locked twice.",
        # probably a mistake
        "milli-memory": "The suffix m makes thousandths of a byte.",
        "few-bytes": "A number without suffix is bytes, and so few of them are hardly meant.",
        "literal-star": "Options are compared exactly: a * in one is no wildcard.",
        "namespace-of-all": "A cluster policy has no namespace: it governs all that it selects.",
        # between documents
        "duplicate-policy": "Two policies of one scope and namespace have one name.",
        "duplicate-asset": "Two assets have one id, or one file has two of one name.",
        "duplicate-definition": "Two definitions of one kind and version have one name.",
        "duplicate-exception": "Two exceptions of one namespace have one name.",
        "imposed-twice": "Two imposed assets give one item.",
        # conversion of older documents
        "not-expressed": "The old policy has something that today's language cannot express.",
        "field-not-known": "The field has a successor, which this version does not know.",
        "converted-inexactly": "What it became means slightly more or less than what it was.",
        "converted-choice": "It could mean several things today; this one was chosen.",
        # advice of `podgate lint` on policies that load
        "no-document": "A file or folder that is given has no document.",
    }
)
