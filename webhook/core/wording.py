"""The sentences: the one place that turns violations, warnings, changes and problems into text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from webhook.core import decision, pointer
from webhook.core.decision import Change, Problem, Source, Violation

LONGEST_VALUE = 80
LONGEST_PLACE = 240
LONGEST_ADVICE = 200
MOST_VIOLATIONS = 50
HIDDEN = "(not shown)"
SENTENCES = frozenset({"bad-yaml", "unreadable"})
"""Reasons whose `found` says by itself what is wrong."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """One row: what is wrong, with and without a value that may be shown, and what to do.

    `bare` is told when the value may not be shown, `lone` when a value is there but nothing is
    allowed instead of it; both fall back to `told`. Places: {value} {allowed} {key}.
    """

    told: str
    fix: str
    bare: str = ""
    lone: str = ""
    lone_fix: str = ""


VIOLATIONS: dict[str, Sentence] = {
    "canEdit": Sentence(
        "{value} differs from the fixed value {allowed}",
        "Leave it out, or write the fixed value.",
        bare="{key} differs from what is fixed",
        lone="{value} is set, but nobody may choose a value here",
        lone_fix="Leave it out.",
    ),
    "blocked": Sentence(
        "{value} is set, but this must stay unset", "Leave it out.", bare="{key} must stay unset"
    ),
    "canAdd": Sentence(
        "item {key} is not one of those fixed for it: {allowed}",
        "Take the item out.",
        bare="item {key} is not one of those fixed for it",
        lone="item {key} is not one of those fixed for it",
    ),
    "locked": Sentence(
        "item {key} is {value}, but it has to stay {allowed}",
        "Leave the item to the policy.",
        bare="item {key} differs from what is locked, or is gone",
        lone="item {key} is locked, but not as the policy has it ({value})",
    ),
    "required": Sentence(
        "there is no value, and one is needed",
        "Set it.",
        bare="there is no value, and one is needed",
        lone="{value} does not count as a value, and one is needed",
    ),
    "min": Sentence("{value} is less than the minimum {allowed}", "Ask for at least {allowed}."),
    "max": Sentence("{value} is more than the maximum {allowed}", "Ask for at most {allowed}."),
    "step": Sentence("{value} is not on the grid {allowed}", "Choose a value on that grid."),
    "options": Sentence(
        "{value} is not on the list {allowed}",
        "Choose one from the list.",
        bare="{key} is not on the list",
    ),
    "uncovered": Sentence(
        "{value} stands outside the pod places known for {key}",
        "Name the place in the kind's definition, or under notPods in its profile.",
        bare="a container stands outside the pod places known for this kind",
    ),
    "unknown-kind": Sentence(
        "no definition says where this kind keeps its pods",
        "Give a ResourceInterface for it with --interfaces.",
    ),
    "invalid-value": Sentence(
        "{value} cannot be read, {allowed} is wanted",
        "Write {allowed}.",
        bare="the value of {key} cannot be read",
        lone="{value} cannot be read",
        lone_fix="Correct it.",
    ),
    "request-exceeds-limit": Sentence(
        "the request {value} is above the limit {allowed}", "Lower the request or raise the limit."
    ),
    "places-disagree": Sentence(
        "the places that carry it disagree: {value}", "Write one value in all of them."
    ),
    "bounds-disagree": Sentence(
        "{value} is below the smallest number: {allowed}", "Raise it, or lower the smallest number."
    ),
    "name-clash": Sentence(
        "{key} is already taken by {value}, and the policy brings another one",
        "Rename yours or move its mount.",
        bare="{key} is already taken, and the policy brings another one",
    ),
    "unbounded": Sentence(
        "the GPUs of {key} cannot be counted",
        "Ask for an exact count; a claim or its template has to exist.",
    ),
    "two-gpu-forms": Sentence(
        "GPUs are asked for in more than one form: {value}",
        "Keep one form.",
        bare="GPUs are asked for in more than one form",
    ),
    "immutable": Sentence("{value} cannot be changed any more", "Make a new object."),
    "other-namespace": Sentence(
        "what is wrapped names the namespace {value} instead of {allowed}",
        "Wrap objects of the same namespace only.",
    ),
    "reserved": Sentence(
        "this ends in the pods, and {key} writes it, nobody else",
        "Leave it out; what is to be in the pods belongs into their templates. An administrator can "
        "trust another controller (--trusted-mutators).",
        bare="this ends in the pods, and {key} writes it, nobody else",
    ),
    "wrapped-kind": Sentence(
        "no definition says where {value}, which is wrapped here, keeps its pods",
        "Add its ResourceInterface and WorkloadProfile (podgate interface infer drafts them), or "
        "send it by itself.",
    ),
    "conflicting-default": Sentence(
        "{value} does not go with the policy's default, which needs {allowed}",
        "Change it, or set the field yourself.",
        bare="the policy's default needs {allowed}",
    ),
    "missing-claim": Sentence(
        "the claim {key} of the user has to give the {allowed}, and gives no number",
        "Sign in where the claim is given, or ask for it.",
    ),
}

# Whoever cannot tell an object's pods says why in words of its own, as `allowed`; this is what to
# do then. Such reasons have no row above.
DEFINITION = "An administrator has to correct the kind's definition."
FIXES: dict[str, str] = {
    "instance-ids": "Give each a name of its own; where each has one, the kind's definition is wrong.",
    "path-failed": DEFINITION,
    "not-a-number": "Write a whole number.",
    "too-deep": "Flatten it.",
    "too-large": "Make it smaller.",
    "too-many-containers": "Split it into smaller objects.",
    "too-many-entries": "Split it into smaller objects.",
    "too-long-key": "Give it a shorter key.",
    "too-many-locations": "Split it into smaller objects.",
    "too-many-values": "Split it into smaller objects.",
}

# Kubernetes advises short warnings: the facts come first, the place is added where it fits.
FACTS = "{facts}"
WARNINGS: dict[str, str] = {
    "unmapped-default": "this kind has no place for it, so its default was not written",
    "pruned-default": "its schema has no place for it, so its default was not written{facts}",
    "unmapped-rule": "this kind has no place for it, so its rule is not judged",
    "forbidden-rule": "this object may not carry it, so required cannot be met and does not count",
    "asked-of-children": "this kind has no place for it, so it is required of the pods made of it",
    "not-enforceable": "no native object carries it, so it is neither written nor judged",
    "forbidden-default": "this object may not carry it, so its default was not written{facts}",
    "absent-limit": "without a limit its maximum cannot hold; the policy should require one",
    "image-decides": "without a value the image picks the user; set it or require it",
    "unknown-exclude": "the exclude annotation names an item that is not there{facts}",
    "bad-exclude": "the exclude annotation cannot be read{facts}",
    "env-from": "variables also come from elsewhere (envFrom), unseen by the rules{facts}",
    "excused": "against the rules, and excused by the exception{facts}",
    "trial": "on trial, would be refused{facts}",
    "limit-raised": "the limit was raised to the request{facts}",
    "request-lowered": "the request was lowered to the limit{facts}",
    "audit": "noted for the report{facts}",
    "uncovered": "a container stands outside the pod places known for this kind{facts}",
    "referred-pods": (
        "pods come from another object: rules hold where that is made and on the pods{facts}"
    ),
    "pods-as-text": "text may change its pods, unread here: rules hold on the pods{facts}",
    "pods-unseen": "it states no pods: rules hold on those that its controller makes",
    "wrapped-kind": "no definition says where what is wrapped keeps its pods{facts}",
    "unknown-kind": "no definition covers this kind: nobody evaluates the pods in it{facts}",
    "unknown-version": "no definition covers this version: nobody evaluates it{facts}",
    "asset-conflict": "two imposed assets have one key; the broader one counts{facts}",
    "migProfile": "accepted for older manifests; MIG is better asked for as a resource",
    "unbounded": "the GPUs of a claim cannot be counted{facts}",
    "missing-claim": "the user's claims give no ids, so none were written{facts}",
    "no-claim-created": (
        "a default claim has neither a claimName nor ephemeral with a size: not written{facts}"
    ),
    "no-git-image": "without gitImage in the settings a default checkout cannot be made{facts}",
    "no-git-key": "a default checkout by ssh key is not made, as keys are files{facts}",
    "no-s3-driver": "without one s3Drivers entry a default bucket cannot be mounted{facts}",
    "no-data-volume": "dataVolumes of the settings lacks a default data volume{facts}",
    "not-judged": "passed without judgement{facts}",
    "inert-annotation": "no GPU comes of this annotation unless schedulerName is{facts}",
    "unseen-gpus": "the GPUs of a pod are not seen here, so the total is not judged",
    "one-gpu-only": "the default of several GPUs was left out: only whole ones can be several",
    "unnamed-workload": "without a name that a label can hold, its default was not written",
    "default-needs-other": "its default was not written, as one is missing{facts}",
}

NOT_EVALUATED: dict[str, str] = {
    "unknown-kind": "no definition covers this kind",
    "unknown-version": "no definition covers this version",
    "no-pods": "this kind holds no pods",
    "ungoverned-namespace": "podgate does not govern its namespace",
    "exempt-sender": "a controller made it of an object that was evaluated",
    "no-policy": "no policy in force applies to it",
    "other-operation": "only CREATE and UPDATE are evaluated",
    "unchanged": "its spec stays as it was",
}
DEVICES = "podgate counts the devices of a claim only for the workloads that refer to it"

DEVICE_GROUPS = ("resource.k8s.io", "resource.nvidia.com")

CHANGES: dict[str, str] = {
    "default": "set by default",
    "default-item": "added by default",
    "attribute default": "completed by default",
    "imposed": "imposed",
    "computed": "computed from another field",
    "kept": "kept as it was",
    "reconciled": "brought in line with its request or limit",
}


def clean(text: str) -> str:
    """`text` on one line: control, formatting and other invisible characters are escaped."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape", "backslashreplace").decode()
        for char in text
    )


def cut(text: str, longest: int = LONGEST_VALUE) -> str:
    """`text`, cleaned, with at most `longest` characters; what is cut is marked with `…`."""
    shown = clean(text[: longest + 1])
    return shown if len(shown) <= longest else f"{shown[: longest - 1]}…"


def place(path: pointer.Path, longest: int = LONGEST_PLACE) -> str:
    """Where it is, for people; a long place keeps its beginning and, above all, its end."""
    text = clean(pointer.display(path))
    if len(text) <= longest:
        return text
    head = longest // 4
    return f"{text[:head]}…{text[len(text) - (longest - head - 1) :]}"


def words(reason: str) -> str:
    """A stable reason as words, for reasons that have no row yet."""
    return clean(reason.replace("-", " ").replace("_", " "))


def problem_text(problem: Problem) -> str:
    """One fault of a document: `file:line:col: path: found …; what to do`."""
    where = f"{clean(problem.place())}: " + (f"{clean(problem.path)}: " if problem.path else "")
    severity = "" if problem.severity == "error" else f"{clean(problem.severity)}: "
    found = "" if problem.reason in SENTENCES else "found "
    fix = f"; {cut(problem.fix, LONGEST_ADVICE)}" if problem.fix else ""
    return f"{where}{severity}{found}{cut(problem.found, LONGEST_ADVICE)}{fix}"


def violation_text(violation: Violation) -> str:
    """One line: field, place, value seen, what is allowed, which policy and scope, what to do."""
    what, fix = told(violation)
    said = f" ({clean(violation.source.label())})" if violation.source else ""
    head = " at ".join(filter(None, (clean(violation.field), place(violation.path))))
    advice = cut(violation.fix, LONGEST_ADVICE) if violation.fix else fix
    return " ".join(filter(None, (f"{head}: {what}{said}.", advice, *author(violation.source))))


def told(violation: Violation) -> tuple[str, str]:
    """What is wrong and what to do, from the table; reasons without a row get plain words."""
    value, allowed = violation.value, violation.allowed
    facts = {
        "value": cut(value) if value is not None else HIDDEN,
        "allowed": cut(allowed, LONGEST_ADVICE) if allowed is not None else HIDDEN,
        "key": cut(violation.key) if violation.key else "its value",
    }
    row = VIOLATIONS.get(violation.reason)
    if row is None and value is None and allowed is not None and violation.source is None:
        return facts["allowed"], FIXES.get(violation.reason, "")
    if row is None:
        return generic(violation.reason, value, allowed, violation.key), ""
    told, fix = row.told, row.fix
    if value is None and row.bare and (allowed is None or "{value}" in told):
        listed = allowed is not None and "{allowed}" in told and "{allowed}" not in fix
        told = f"{row.bare}: {{allowed}}" if listed else row.bare
    elif allowed is None and row.lone:
        told, fix = row.lone, row.lone_fix or row.fix
    return told.format_map(facts), fix.format_map(facts)


def generic(reason: str, value: str | None, allowed: str | None, key: str) -> str:
    """The sentence of a reason that has no row: its words and every fact there is."""
    facts = [
        cut(key) if key else "",
        f"found {cut(value)}" if value is not None else "",
        f"allowed is {cut(allowed, LONGEST_ADVICE)}" if allowed is not None else "",
    ]
    listed = ", ".join(filter(None, facts))
    return f"{words(reason)}: {listed}" if listed else words(reason)


def author(source: Source | None) -> tuple[str, str]:
    """What a policy's author wants people told beside a refusal: a message and an address."""
    if source is None:
        return "", ""
    return cut(source.message, LONGEST_ADVICE), cut(source.docs_url, LONGEST_ADVICE)


def refusal(violations: Sequence[Violation]) -> str:
    """The whole refusal: how many rules are broken, then a line for each of the first fifty."""
    return refusal_of(
        [violation_text(each) for each in violations[:MOST_VIOLATIONS]], len(violations)
    )


def refusal_of(lines: Sequence[str], total: int) -> str:
    """The refusal from lines that are already written, `total` being how many there would be."""
    counted = "1 rule is broken" if total == 1 else f"{total} rules are broken"
    rest = [f"and {total - len(lines)} more"] if total > len(lines) else []
    return "\n".join([f"podgate refused this object: {counted}", *(f"- {x}" for x in lines), *rest])


def faults_of(lines: Sequence[str], total: int) -> str:
    """The refusal of a document of ours, from lines that are already written."""
    counted = "1 problem" if total == 1 else f"{total} problems"
    rest = [f"and {total - len(lines)} more"] if total > len(lines) else []
    return "\n".join(
        [f"podgate refused this document: {counted}", *(f"- {x}" for x in lines), *rest]
    )


def warning_text(warning: decision.Warning, longest: int = 0) -> str:
    """One warning on one line; with `longest` the place, then the policy, give way to fit it."""
    listed = cut(", ".join(filter(None, warning.facts)), LONGEST_ADVICE)
    if warning.would_be is not None:
        listed = told(warning.would_be)[0]
    what = WARNINGS.get(warning.reason) or f"{words(warning.reason)}{FACTS}"
    what = what.replace(FACTS, f": {listed}" if listed else "")
    text = f"{clean(warning.field)}: {what}" if warning.field else what
    where = f" at {place(warning.path)}" if warning.path else ""
    said = f" ({clean(warning.source.label())})" if warning.source else ""
    for whole in (f"{text}{where}{said}", f"{text}{said}", text):
        if not longest or len(whole) <= longest:
            return whole
    return cut(text, longest)


def not_evaluated_text(
    reason: str, group: str = "", warnings: Sequence[decision.Warning] = ()
) -> str:
    """Why an object of this group is not evaluated, and what nobody looks at then."""
    text = NOT_EVALUATED.get(reason) or words(reason)
    known = next((each for each in warnings if each.reason == reason), None)
    if known is not None:
        named = cut(", ".join(known.facts), LONGEST_ADVICE)
        what = "its pods" if reason == "unknown-version" else "the pods that it seems to hold"
        return f"{text} ({named}): nobody evaluates {what}"
    return f"{text}; {DEVICES}" if group in DEVICE_GROUPS else text


def change_text(change: Change) -> str:
    """What the decision wrote and why; never the value of a secret field."""
    why = CHANGES.get(change.why) or words(change.why)
    said = f" by {clean(change.source.label())}" if change.source else ""
    value = "" if change.secret else f" = {shown(change.value)}"
    return f"{clean(change.field)} at {place(change.path)}{value}: {why}{said}"


def shown(value: Any) -> str:
    """A JSON value as short text."""
    return cut(
        value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    )
