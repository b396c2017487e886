"""Turns violations, warnings, changes and problems into text. No other module does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from webhook.documents.problem import Problem, Source
from webhook.documents.texts import clean, cut, show_value
from webhook.evaluation.outcome import Change, Violation, Warning
from webhook.objects.path import Path, display
from webhook.policy.rules import TABLE as RULES
from webhook.policy.rules.rule_type import Sentence

LONGEST_PLACE = 240
LONGEST_ADVICE = 200
MOST_VIOLATIONS = 50
HIDDEN = "(not shown)"
EMPTY = "an empty value"
# fmt: off
SENTENCES = frozenset({
    "bad-yaml", "component-empty", "component-unknown", "component-unnamed", "condition-open",
    "conditions-undefined", "converted-choice", "empty-value", "field-source", "field-unknown",
    "forbidden-function", "gang-of-root", "groups-differ", "ids-missing", "instance-ids",
    "instance-ids-missing", "instance-selector-missing", "kind-differs", "kind-repeated",
    "kind-ungoverned", "member-unknown", "metadata-without-spec", "missing-field", "modifying-operator",
    "name-not-unique", "no-instances", "no-pods", "not-a-place", "not-a-pod", "not-in-schema", "not-jq",
    "not-native", "not-paired", "null-unsafe", "owner-cycle", "owner-missing", "owner-unknown",
    "parts-ignored", "phase-undefined", "place-uncovered", "pod-selector-missing", "recursive-descent",
    "root-kind", "root-owner", "root-status", "scale-target", "selector-empty", "selectors-overlap",
    "several-forms", "unreadable", "value-not-json", "write-unknown",
})
# fmt: on
"""Reasons whose `found` is a sentence. For all others it is a value or a name."""


NOTE = (
    "If you did not write this: the policy or another webhook has changed it since podgate completed"
    " the object. Apply the object again."
)
"""Ends a refusal of the validating pass of an object that the mutating pass let through."""


FAILS: Final = {
    "devices.config": "it would fail on the node",
    "devices.computeDomain": "the driver's controller would fail",
}
"""Where a fault would show that podgate finds before: no policy is the reason."""


VIOLATIONS: dict[str, Sentence] = {
    **{rule.name: rule.sentence for rule in RULES.values() if rule.sentence},
    "canAdd/envFrom": Sentence(
        "envFrom adds variables, and none may be added",
        "Remove envFrom.",
    ),
    "locked/excluded": Sentence(
        "item {key} is locked and cannot be excluded",
        "Remove it from the annotation podgate.dev/exclude.",
    ),
    "locked/missing": Sentence("item {key} is locked, but missing", "Add it."),
    "locked/shadowed by another mount": Sentence(
        "item {key} is locked, but another mount hides it or is hidden below it",
        "Mount the other volume elsewhere.",
    ),
    "max/no limit is set": Sentence(
        "no limit is set, and the maximum is {allowed}", "Write at most {allowed}."
    ),
    "max/no limit applies": Sentence(
        "the operator ignores this number as the object is, and the maximum is {allowed}",
        "Choose a setting under which it counts (for Spark, restartPolicy.type: OnFailure).",
    ),
    "max/unlimited": Sentence(
        "the number is unlimited, and the maximum is {allowed}", "Write at most {allowed}."
    ),
    "uncovered": Sentence(
        "the definition of {key} knows no {value} here",
        "Move it to where {key} has its pods. If it is right, an administrator adds the path to the"
        " kind's definition, or to notPods in its profile.",
        bare="the kind's definition knows no container here",
    ),
    "invalid-value": Sentence(
        "{value} cannot be read as {allowed}",
        "Write {allowed}.",
        bare="{key} cannot be read",
        lone="{value} cannot be read",
        lone_fix="Correct it, or remove it.",
    ),
    "invalid-value/devices.config": Sentence(
        "the driver does not take {value} here", "Write {allowed}.", lone_fix="Correct it."
    ),
    "invalid-value/devices.computeDomain": Sentence(
        "no object can have the name {value}", "Write {allowed}."
    ),
    "request-exceeds-limit": Sentence(
        "the request {value} is above the limit {allowed}", "Lower the request or raise the limit."
    ),
    "places-disagree": Sentence(
        "{value} differs from {allowed}, which another path of the object has",
        "Write the same value everywhere.",
        bare="{key} differs from the one at another path of the object",
    ),
    "bounds-disagree": Sentence(
        "{value} is below the minimum of the object: {allowed}", "Raise it, or lower the minimum."
    ),
    "name-clash": Sentence(
        "{key} is already used by {value}, and the policy needs it for an item of its own",
        "Rename yours, or mount it elsewhere.",
        bare="{key} is already used, and the policy needs it for an item of its own",
    ),
    "unbounded": Sentence(
        "the devices of {key} cannot be counted",
        "Request an exact count; a claim or claim template must exist first.",
    ),
    "claim-unknown": Sentence(
        "{key} is not there, so podgate does not know which devices it requests",
        "Create it first.",
    ),
    "two-gpu-forms": Sentence(
        "GPUs are requested in more than one form: {value}",
        "Keep one form.",
        bare="GPUs are requested in more than one form",
    ),
    "other-namespace": Sentence(
        "the wrapped object names namespace {value} instead of {allowed}",
        "Write {allowed}, or leave the namespace out.",
    ),
    "reserved": Sentence(
        "only {key} may write this, because it goes into the pods",
        "Remove it, and write it in the pod templates. An administrator can trust another"
        " controller (--trusted-mutators).",
    ),
    "reserved/ComputeDomainClique": Sentence(
        "only {key} may write a ComputeDomainClique: nodes start pods by it",
        "Create a ComputeDomain. If the driver is in another namespace, an administrator sets"
        " --dra-controllers.",
    ),
    "config-unreadable": Sentence(
        "the driver cannot read {value}, only {allowed}",
        "Correct the parameters.",
        bare="the driver needs {key}: {allowed}",
    ),
    "config-unreadable/a repeated key": Sentence(
        "a key is given twice, so the driver cannot read the parameters", "Keep one of the two."
    ),
    "config-unknown-field": Sentence(
        "the driver's configuration has no field {value}",
        "Did you mean {allowed}?",
        lone="this version of the driver has no field {value}",
        lone_fix="Remove it. For a newer driver an administrator sets --dra-driver-version.",
    ),
    "config-gate": Sentence(
        "{value} needs the driver's feature gate {key}, which is off",
        "Remove it. An administrator can turn the gate on, and set --dra-feature-gates.",
    ),
    "config-conflict": Sentence(
        "{value} conflicts with {key}: only {allowed} is possible",
        "Change one of the two.",
        lone="{value} conflicts with {key}",
        lone_fix="Change one of the two.",
    ),
    "config-mismatch": Sentence(
        "{value} ({key}) does not fit here, only {allowed}",
        "Change the configuration, or what it is for.",
    ),
    "config-admin-access": Sentence(
        "the driver grants administrative access only to whole GPUs, and without a configuration",
        "Remove adminAccess, or the configuration.",
    ),
    "wrapped-kind": Sentence(
        "no definition describes where the wrapped {value} has its pods",
        "Create that object by itself, or have an administrator add a definition"
        " (`podgate interface infer` drafts one).",
    ),
    "conflicting-default": Sentence(
        "{value} conflicts with the policy's default, which needs {allowed}",
        "Write {allowed}, or set {field} in the object.",
        bare="the policy's default needs {allowed}",
    ),
    "missing-claim": Sentence(
        "the {allowed} comes from the user's claim {key}, which gives no number",
        "Sign in with a token that has this claim.",
    ),
}
"""By reason, or by reason and value where a value has its own sentence."""

# If the pods of an object are unreadable, `allowed` of the violation describes the problem. These
# reasons have no row above, only a fix.
DEFINITION = (
    "Correct the object there; if it is right, an administrator corrects the kind's definition."
)
FIXES: dict[str, str] = {
    "instance-ids": "Give each its own name; if each has one, the kind's definition is wrong.",
    "path-failed": DEFINITION,
    "wrong-type": "Correct the object there.",
    "not-a-number": "Write a whole number.",
    "too-deep": "Use fewer levels.",
    "too-large": "Make it smaller.",
    "too-many-containers": "Split it into smaller objects.",
    "too-many-entries": "Split it into smaller objects.",
    "too-long-key": "Give it a shorter key.",
    "too-many-locations": "Split it into smaller objects.",
    "too-many-values": "Split it into smaller objects.",
}

# Kubernetes advises short warnings: the facts come first, the path is added where it fits.
FACTS = "{facts}"
WARNINGS: dict[str, str] = {
    "unmapped-default": "this kind has no path for it, so its default is not written",
    "pruned-default": "its schema has no path for it, so its default is not written: {facts}",
    "unmapped-rule": "this kind has no path for it, so its rules are not evaluated",
    "forbidden-rule": "this object may not set it, so `required` does not apply",
    "asked-of-children": "this kind has no path for it, so it is required in the pods made from it",
    "not-enforceable": "no Kubernetes object has it, so it is neither written nor evaluated",
    "forbidden-default": "this object may not set it, so its default is not written: {facts}",
    "absent-limit": "no limit is set, so its maximum does not apply; the policy should require one",
    "image-decides": "no value is set, so the image chooses the user; set or require one",
    "unknown-exclude": "the annotation podgate.dev/exclude names an unknown item; {facts}",
    "bad-exclude": "the annotation podgate.dev/exclude cannot be read; write it like {facts}",
    "env-from": "variables also come from envFrom, which the rules do not see: {facts}",
    "excused": "a violation is excused by exception {facts}",
    "owner-unreadable": "would be refused, but its owner may not be read: {facts}",
    "trial": "warn mode: would be refused: {facts}",
    "limit-raised": "the limit is raised to the request: {facts}",
    "request-lowered": "the request is lowered to the limit: {facts}",
    "audit": "audit mode: {facts}",
    "uncovered": "the kind's definition knows no such path: {facts}",
    "referred-pods": "its pods come from another object; podgate evaluates that one and them: {facts}",
    "pods-as-text": "text may change its pods; podgate evaluates them when they are made: {facts}",
    "pods-unseen": "it describes no pods; podgate evaluates them when its controller makes them",
    "wrapped-kind": "no definition describes where the wrapped object has its pods: {facts}",
    "unknown-kind": "no definition covers this kind: the pods in it are not evaluated: {facts}",
    "unknown-version": "no definition covers this version: it is not evaluated: {facts}",
    "asset-conflict": "two imposed assets have one key; the broader scope's applies: {facts}",
    "migProfile": "accepted for older manifests; request MIG devices as a resource instead",
    "unbounded": "the GPUs of a claim cannot be counted: {facts}",
    "missing-claim": "the user's claims give no ids, so none are written: {facts}",
    "no-claim-created": (
        "a default claim has neither a claimName nor `ephemeral` with a size: not written: {facts}"
    ),
    "no-git-image": "a default checkout needs the setting gitImage: {facts}",
    "no-git-key": "a default checkout cannot use an SSH key, which is a file: {facts}",
    "no-s3-driver": "a default bucket needs one entry in the setting s3Drivers: {facts}",
    "no-data-volume": "the setting dataVolumes lacks a default data volume: {facts}",
    "inert-annotation": "this annotation has no effect unless schedulerName is {facts}",
    "unseen-gpus": "the devices of a pod are not described here, so the total is not evaluated",
    "one-gpu-only": "the default of several GPUs is not written: only whole GPUs can be several",
    "unnamed-workload": "the workload's name fits no label, so its default is not written",
    "config-unused": "the driver does not use this: {facts}",
    "name-clash": "another object has the name, so the driver creates no template: {facts}",
    "class-rule": "a claim with this would be refused: {facts}",
    "default-needs-other": "its default is not written, because it needs {facts}",
}

NOT_EVALUATED: dict[str, str] = {
    "unknown-kind": "no definition covers this kind",
    "unknown-version": "no definition covers this version",
    "no-pods": "this kind has no pods",
    "ungoverned-namespace": "podgate does not govern its namespace",
    "exempt-sender": "a controller made it of an object that was evaluated",
    "no-policy": "no policy applies to it",
    "other-operation": "only CREATE and UPDATE are evaluated",
    "unchanged": "its spec is unchanged",
    "immutable": "its spec cannot change, so it was evaluated when it was created",
}
CHANGES: dict[str, str] = {
    "default": "set by default",
    "default item": "added by default",
    "attribute default": "completed by default",
    "imposed asset": "added as an imposed asset",
    "computed": "computed from another field",
    "completed": "the driver needs it",
    "kept": "kept from before the update",
    "reconciled": "adjusted to its request or limit",
}


def place(path: Path, longest: int = LONGEST_PLACE) -> str:
    """Return a path as text. A long path keeps its beginning and most of its end."""
    text = clean(display(path))
    if len(text) <= longest:
        return text
    head = longest // 4
    return f"{text[:head]}…{text[len(text) - (longest - head - 1) :]}"


def words(reason: str) -> str:
    """Return a reason as separate words, for reasons without a row."""
    return clean(reason.replace("-", " ").replace("_", " "))


def problem_text(problem: Problem) -> str:
    """Return one problem of a document: `file:line:col: path: found …; what to do`."""
    where = f"{clean(problem.place())}: " + (f"{clean(problem.path)}: " if problem.path else "")
    severity = "" if problem.severity == "error" else f"{clean(problem.severity)}: "
    fix = f"; {cut(problem.fix, LONGEST_ADVICE)}" if problem.fix else ""
    return f"{where}{severity}{found_text(problem)}{fix}"


def found_text(problem: Problem) -> str:
    """Return the problem as a sentence, or as `found` and a value."""
    found = cut(problem.found, LONGEST_ADVICE)
    return found if problem.reason in SENTENCES else f"found {found}"


def violation_text(violation: Violation) -> str:
    """Return one line: field, path, value, what is allowed, policy and scope, what to do."""
    what, fix = violation_sentences(violation)
    source = f" ({clean(violation.source.label())})" if violation.source else ""
    if violation.source is None and violation.field in FAILS:
        source = f" ({FAILS[violation.field]})"
    head = " at ".join(filter(None, (clean(violation.field), place(violation.path))))
    advice = cut(violation.fix, LONGEST_ADVICE) if violation.fix else fix
    return " ".join(filter(None, (f"{head}: {what}{source}.", advice, *author(violation.source))))


def violation_sentences(violation: Violation) -> tuple[str, str]:
    """Return the problem and the fix from the table. Reasons without a row get a generic text."""
    value, allowed = violation.value, violation.allowed or None
    facts = {
        "value": cut(value) or EMPTY if value is not None else HIDDEN,
        "allowed": cut(allowed, LONGEST_ADVICE) if allowed is not None else HIDDEN,
        "key": cut(violation.key) if violation.key else "its value",
        "field": clean(violation.field),
    }
    special = (f"{violation.reason}/{value}", f"{violation.reason}/{violation.field}")
    row = next((VIOLATIONS[each] for each in special if each in VIOLATIONS), None)
    row = row or VIOLATIONS.get(violation.reason)
    if row is None and value is None and allowed is not None and violation.source is None:
        return facts["allowed"], FIXES.get(violation.reason, "")
    if row is None:
        return generic(violation.reason, value, allowed, violation.key), ""
    message, fix = row.message, row.fix
    if value is None and row.bare and (allowed is None or "{value}" in message):
        listed = (
            allowed is not None and "{allowed}" in message and "{allowed}" not in row.bare + fix
        )
        message = f"{row.bare}: {{allowed}}" if listed else row.bare
    elif allowed is None and value is not None and row.lone:
        message, fix = row.lone, row.lone_fix or row.fix
    if allowed is None and "{allowed}" in fix:
        fix = row.lone_fix
    return message.format_map(facts), fix.format_map(facts)


def generic(reason: str, value: str | None, allowed: str | None, key: str) -> str:
    """Return the text of a reason without a row: its words and every known fact."""
    facts = [
        cut(key) if key else "",
        f"found {cut(value)}" if value is not None else "",
        f"allowed is {cut(allowed, LONGEST_ADVICE)}" if allowed is not None else "",
    ]
    listed = ", ".join(filter(None, facts))
    return f"{words(reason)}: {listed}" if listed else words(reason)


def author(source: Source | None) -> tuple[str, str]:
    """Return the message and the URL that a policy's author adds to refusals."""
    if source is None:
        return "", ""
    return cut(source.message, LONGEST_ADVICE), cut(source.docs_url, LONGEST_ADVICE)


def refusal(violations: Sequence[Violation]) -> str:
    """Return the whole refusal: the number of broken rules, then a line for each of the first 50."""
    return refusal_of(
        [violation_text(each) for each in violations[:MOST_VIOLATIONS]], len(violations)
    )


def refusal_of(lines: Sequence[str], total: int) -> str:
    """Return the refusal from finished lines. `total` is the number of all violations."""
    counted = "1 rule is broken" if total == 1 else f"{total} rules are broken"
    rest = [f"and {total - len(lines)} more"] if total > len(lines) else []
    return "\n".join([f"podgate refused this object: {counted}", *(f"- {x}" for x in lines), *rest])


def faults_of(lines: Sequence[str], total: int) -> str:
    """Return the refusal of one of podgate's own documents, from finished lines."""
    counted = "1 problem" if total == 1 else f"{total} problems"
    rest = [f"and {total - len(lines)} more"] if total > len(lines) else []
    return "\n".join(
        [f"podgate refused this document: {counted}", *(f"- {x}" for x in lines), *rest]
    )


def warning_text(warning: Warning, longest: int = 0) -> str:
    """Return one warning on one line. To fit `longest`, drop the path, then the policy."""
    listed = cut(", ".join(filter(None, warning.facts)), LONGEST_ADVICE)
    if warning.would_be is not None:
        listed = violation_sentences(warning.would_be)[0]
    alone = FACTS if warning.would_be is not None else f"{words(warning.reason)}: {FACTS}"
    what = WARNINGS.get(warning.reason) or alone
    head, mark, tail = what.partition(FACTS)
    if mark:
        what = f"{head}{listed}{tail}" if listed else f"{head.rstrip(' :;')}{tail}"
    text = f"{clean(warning.field)}: {what}" if warning.field else what
    where = f" at {place(warning.path)}" if warning.path else ""
    source = f" ({clean(warning.source.label())})" if warning.source else ""
    for whole in (f"{text}{where}{source}", f"{text}{source}", text):
        if not longest or len(whole) <= longest:
            return whole
    return cut(text, longest)


def not_evaluated_text(reason: str, warnings: Sequence[Warning] = ()) -> str:
    """Return why an object is not evaluated, and what podgate does not check then."""
    text = NOT_EVALUATED.get(reason) or words(reason)
    known = next((each for each in warnings if each.reason == reason), None)
    if known is not None:
        named = cut(", ".join(known.facts), LONGEST_ADVICE)
        what = "its pods" if reason == "unknown-version" else "the pods that it seems to have"
        return f"{text} ({named}); {what} are not evaluated"
    return text


def change_text(change: Change) -> str:
    """Return what the decision wrote and why, without the value of a secret field."""
    why = CHANGES.get(change.why) or words(change.why)
    source = f" by {clean(change.source.label())}" if change.source else ""
    value = "" if change.secret else f" = {show_value(change.value)}"
    return f"{clean(change.field)} at {place(change.path)}{value}: {why}{source}"
