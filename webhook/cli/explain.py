"""podgate explain: the effective policy of a kind, or of manifests, with who says what, and why."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import orjson
import typer
import yaml
from rich.console import Console
from rich.text import Text

from webhook.adapters.files import read_all
from webhook.admission import budget
from webhook.cli import loading, report
from webhook.core import pointer, wording
from webhook.core.catalog import Catalog
from webhook.core.decide import owner_of
from webhook.core.decision import Problem, Source, Violation
from webhook.core.explain import (
    MAPPED,
    KindReport,
    LeafReport,
    component_names,
    explain_kind,
    find_kind,
)
from webhook.core.explain_object import DEFAULT, Entry, FieldReport, ObjectReport, explain_object
from webhook.core.pointer import ABSENT, Path
from webhook.core.policy.combine import GUARDED
from webhook.core.references import References
from webhook.core.workload.suggestions import closest
from webhook.loader import DEFAULT_MINOR, Sources
from webhook.offline import Place, Verdict, judge, manifests_of, references_of, request_of

HIDDEN = "(not shown)"
FROM_ITEMS = ("default item", "imposed")
WIDEST = 100

Files = Annotated[
    list[str] | None,
    typer.Argument(metavar="[FILE…]", help="Manifests: files, folders, or - for stdin."),
]
KindName = Annotated[
    str | None,
    typer.Option("--kind", "-k", metavar="KIND[.GROUP][/VERSION]", help="Kind, or its plural."),
]
ComponentName = Annotated[
    str, typer.Option("--component", help="Only this component of the kind, or this role.")
]
Output = Annotated[str, typer.Option("--output", "-o", help="text, json (one a line) or yaml.")]


def explain(
    files: Files = None,
    policies: loading.Policies = None,
    interfaces: loading.Interfaces = None,
    assets: loading.Assets = None,
    namespace: loading.Namespace = None,
    namespace_labels: loading.NamespaceLabels = "",
    workload_type: loading.WorkloadType = None,
    rule_combination: loading.Combination = GUARDED,
    kubernetes: loading.Minor = DEFAULT_MINOR,
    kind: KindName = None,
    component: ComponentName = "",
    output: Output = "text",
) -> None:
    """Say what holds and why: for a kind (--kind) every default, rule and item of the effective
    policy with the policy that says it and what it lost to; for manifests every field's value in
    the completed object, its place and its source.

    Values of env, args, command and annotations are never shown. Exit code 0: told, 1: a manifest
    is refused, 2: bad input.
    """
    try:
        place = Place(namespace or "default", loading.labels_of(namespace_labels))
        sources = loading.sources_of(
            policies,
            interfaces,
            assets,
            namespace=namespace,
            workload_type=workload_type,
            combination=rule_combination,
            minor=kubernetes,
        )
        code = run(files or [], kind, component, place, output, sources)
    except loading.BadInput:
        code = loading.BAD_INPUT
    raise typer.Exit(code)


def run(
    files: list[str], kind: str | None, component: str, place: Place, output: str, sources: Sources
) -> int:
    """Explain a kind or every manifest; the exit code."""
    loading.checked(output, ("text", "json", "yaml"), "--output")
    if bool(files) == bool(kind):
        loading.complain("error: give either --kind KIND or manifests to explain")
        raise loading.BadInput
    catalog = loading.catalog_of(sources)
    if kind:
        show([told_kind(catalog, kind, component, place)], output)
        return 0
    documents, problems = read_all(files, kubernetes=True)
    objects, more = manifests_of(documents)
    problems += more
    loading.tell(problems)
    references = references_of(objects, place)
    told = [
        told_object(catalog, references, raw, source, component, place) for source, raw in objects
    ]
    if component and told and not any(each.report and each.report.pods for each in told):
        loading.complain(f"error: --component: no pod is of {wording.clean(component)}")
        raise loading.BadInput
    show(told, output)
    if problems:
        return loading.BAD_INPUT
    return 0 if all(each.verdict.allowed for each in told) else 1


@dataclass(frozen=True, slots=True)
class ToldObject:
    """A manifest with its verdict, and its explanation where the kind has a definition."""

    verdict: Verdict
    report: ObjectReport | None


def told_kind(catalog: Catalog, kind: str, component: str, place: Place) -> KindReport:
    """The report of the named kind; BadInput when it, or the component, is not known."""
    found = find_kind(catalog, kind)
    if isinstance(found, Problem):
        loading.tell([found])
        raise loading.BadInput
    definition, version = found
    references = References({place.namespace: place.labels})
    plans = catalog.plans_for(definition, place.namespace, references, place.labels)
    names = component_names(definition)
    if component and component.casefold() not in {each.casefold() for each in names}:
        near = closest(component, names)
        fix = f"did you mean {near}?" if near else f"write one of {', '.join(names)}"
        missing = f"no component or role {wording.clean(component)}"
        loading.tell([Problem("--component", "", missing, fix, "unknown-component")])
        raise loading.BadInput
    return explain_kind(definition, version, place.namespace, plans, component)


def told_object(
    catalog: Catalog, references: References, raw: Any, source: str, component: str, place: Place
) -> ToldObject:
    """One manifest judged and explained."""
    verdict = judge(raw, source, catalog, references, place)
    group, _, version = str(raw["apiVersion"]).rpartition("/")
    definition = catalog.definition(group, str(raw["kind"]), version)
    if definition is None or budget.too_deep(raw):
        return ToldObject(verdict, None)
    request = request_of(raw, catalog.server(definition).apply(raw), place)
    plans = catalog.plans_for(
        definition, request.namespace, references, place.labels or None, owner_of(request)
    )
    return ToldObject(
        verdict, explain_object(request, plans, references, verdict.decision, component)
    )


Told = KindReport | ToldObject


def show(told: Sequence[Told], output: str) -> None:
    """Every report in one format."""
    if output == "text":
        page = Page()
        for index, each in enumerate(told):
            if index:
                page.gap()
            kind_text(page, each) if isinstance(each, KindReport) else object_text(page, each)
        return
    for index, each in enumerate(told):
        body = kind_json(each) if isinstance(each, KindReport) else object_json(each)
        line = orjson.dumps(body, default=str)
        if output == "json":
            sys.stdout.write(line.decode() + "\n")
        else:
            text = yaml.dump(
                orjson.loads(line), Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True
            )
            sys.stdout.write(("---\n" if index else "") + text)


# JSON


def source_json(source: Source | None) -> dict[str, Any]:
    """The policy that says something, with its scope."""
    if source is None:
        return {"policy": None, "scope": None}
    found = {"policy": source.policy, "scope": source.scope}
    if source.namespace:
        found["namespace"] = source.namespace
    if source.enforcement != "Enforce":
        found["enforcement"] = source.enforcement
    return found


def leaf_json(leaf: LeafReport) -> dict[str, Any]:
    """One leaf; `null` stands for a value that is never shown."""
    default = leaf.default
    return {
        "field": leaf.field,
        "reach": leaf.reach,
        **({"why": leaf.why} if leaf.why else {}),
        **({"secret": True} if leaf.secret else {}),
        "default": {"value": default.value, **source_json(default.source)} if default else None,
        "rules": [
            {"rule": each.what, "argument": each.value, **source_json(each.source)}
            for each in leaf.rules
        ],
        "items": [
            {
                "key": each.key,
                "attributes": each.attributes,
                "locked": each.locked,
                "imposed": each.imposed,
                **({"asset": each.asset} if each.asset else {}),
                **source_json(each.source),
            }
            for each in leaf.items
        ],
        "lost": [
            {
                "what": each.what,
                "value": each.value,
                **source_json(each.source),
                "reason": each.reason,
                "to": source_json(each.to) if each.to else None,
            }
            for each in leaf.lost
        ],
        "trial": [
            {"what": each.what, "value": each.value, **source_json(each.source)}
            for each in leaf.trial
        ],
    }


def kind_json(told: KindReport) -> dict[str, Any]:
    """The effective policy of a kind."""
    return {
        "kind": told.kind,
        "group": told.group,
        "version": told.version,
        "workloadType": told.workload_type or None,
        "namespace": told.namespace,
        "ruleCombination": told.combination,
        "policies": [source_json(each) for each in told.policies],
        "components": [
            {
                "component": each.component,
                "role": each.role,
                "pods": each.pods,
                "fields": [leaf_json(leaf) for leaf in each.leaves],
            }
            for each in told.components
        ],
        "workload": [leaf_json(leaf) for leaf in told.workload],
    }


def entry_json(entry: Entry) -> dict[str, Any]:
    """One value; `set` tells an unset field from a value that is never shown."""
    return {
        "set": entry.value is not ABSENT,
        "value": None if entry.value is ABSENT else entry.value,
        "path": pointer.display(entry.path) if entry.path else None,
        "key": entry.key or None,
        "source": entry.source,
        **source_json(entry.by),
        "note": entry.note or None,
        "attributes": [
            {
                "name": each.name,
                "value": each.value,
                "path": pointer.display(each.path),
                "source": each.source,
                **source_json(each.by),
            }
            for each in entry.attributes
        ],
        "violations": [report.violation_json(each) for each in entry.violations],
        "warnings": [wording.warning_text(each) for each in entry.warnings],
    }


def field_json(told: FieldReport) -> dict[str, Any]:
    """One field of an object: its values, and the leaves of the policy."""
    return {
        "field": told.field,
        **({"secret": True} if told.secret else {}),
        "values": [entry_json(each) for each in told.entries],
        "policy": [leaf_json(each) for each in told.leaves],
    }


def object_json(told: ToldObject) -> dict[str, Any]:
    """One manifest with all its fields."""
    verdict, found = told.verdict, told.report
    body: dict[str, Any] = {
        "source": verdict.source,
        "kind": verdict.kind,
        "name": verdict.name,
        "allowed": verdict.allowed,
        "judged": found is not None,
    }
    if found is None:
        violations = [report.violation_json(each) for each in report.violations_of(verdict)]
        return {**body, "violations": violations, "warnings": report.warnings_of(verdict)}
    return {
        **body,
        "policies": [source_json(each) for each in found.policies],
        "pods": [
            {
                "component": each.component,
                "instance": each.instance,
                "roles": list(each.roles),
                "path": pointer.display(each.path),
                "fields": [field_json(one) for one in each.fields],
            }
            for each in found.pods
        ],
        "workload": [field_json(each) for each in found.workload],
        "violations": [report.violation_json(each) for each in found.violations],
        "warnings": [wording.warning_text(each) for each in found.warnings],
        "audit": [report.violation_json(each) for each in found.audit],
    }


# Text


class Page:
    """Indented lines that are wrapped between words, coloured on a terminal."""

    def __init__(self) -> None:
        self.console = Console(highlight=False, markup=False, emoji=False)
        self.width = min(self.console.width, WIDEST)

    def line(self, indent: int, text: str, style: str = "") -> None:
        """One paragraph; words longer than a line, such as places, stay whole."""
        lines = textwrap.wrap(
            text,
            self.width,
            initial_indent=" " * indent,
            subsequent_indent=" " * (indent + 4),
            break_long_words=False,
            break_on_hyphens=False,
        )
        for each in lines:
            self.console.print(Text(each, style=style), soft_wrap=True)

    def gap(self) -> None:
        """An empty line."""
        self.console.print()


def value_text(value: Any) -> str:
    """A value for people; None is one that is never shown."""
    if value is None:
        return HIDDEN
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return wording.cut(", ".join(value), wording.LONGEST_ADVICE)
    return wording.shown(value)


def by(source: Source | None) -> str:
    """Which policy, and whether it is on trial."""
    if source is None:
        return ""
    trial = f" [{source.enforcement}]" if source.enforcement != "Enforce" else ""
    return f"{wording.clean(source.label())}{trial}"


def policies_text(page: Page, policies: Sequence[Source]) -> None:
    """The policies that reach it."""
    named = "; ".join(by(each) for each in policies) or "none"
    page.line(2, f"policies, the broadest first: {named}", "dim")


def kind_text(page: Page, told: KindReport) -> None:
    """The effective policy of a kind."""
    group = f".{told.group}" if told.group else ""
    kind_of = f" ({told.workload_type})" if told.workload_type else ""
    page.line(
        0, f"{told.kind}{group}/{told.version}{kind_of} in namespace {told.namespace}", "bold"
    )
    policies_text(page, told.policies)
    page.line(2, f"rules of several scopes combine: {told.combination}", "dim")
    for each in told.components:
        page.gap()
        page.line(0, f"component {each.component}, role {each.role}", "bold")
        page.line(2, f"pods at {each.pods}", "dim")
        for leaf in each.leaves:
            leaf_text(page, leaf)
    page.gap()
    page.line(0, "workload", "bold")
    for leaf in told.workload:
        leaf_text(page, leaf)
    if not told.workload:
        page.line(2, "no policy says anything of it", "dim")


def leaf_text(page: Page, leaf: LeafReport) -> None:
    """One leaf with everything that is said of it."""
    page.line(2, leaf.field, "cyan")
    if leaf.reach != MAPPED:
        page.line(4, f"{leaf.reach}: {wording.clean(leaf.why)}", "yellow")
    for text, style in said_lines(leaf):
        page.line(4, text, style)


def said_lines(leaf: LeafReport) -> Iterator[tuple[str, str]]:
    """Default, rules, items, what lost and what is on trial, a line each with its style."""
    if leaf.default is not None:
        yield f"default {value_text(leaf.default.value)} - {by(leaf.default.source)}", ""
    for rule in leaf.rules:
        yield f"{rule.what} {value_text(rule.value)} - {by(rule.source)}", ""
    for item in leaf.items:
        what = "imposed item" if item.imposed else "default item"
        locked = ", locked" if item.locked and not item.imposed else ""
        asset = f", asset {item.asset}" if item.asset and item.asset != item.key else ""
        listed = attributes_text(item.attributes)
        held = f" ({listed})" if listed else ""
        yield f"{what} {wording.cut(item.key)}{held}{locked}{asset} - {by(item.source)}", ""
    for lost in leaf.lost:
        value = "" if lost.value is None else f" {value_text(lost.value)}"
        to = f" ({by(lost.to)})" if lost.to is not None else ""
        yield f"lost: {lost.what}{value} - {by(lost.source)}: {lost.reason}{to}", "dim"
    for trial in leaf.trial:
        value = "" if trial.what.startswith("item ") else f" {value_text(trial.value)}"
        yield f"on trial: {wording.cut(trial.what)}{value} - {by(trial.source)}", "yellow"


def attributes_text(attributes: Mapping[str, Any]) -> str:
    """The attributes of an item but its name."""
    return ", ".join(
        f"{name} {value_text(value)}" for name, value in attributes.items() if name != "name"
    )


def object_text(page: Page, told: ToldObject) -> None:
    """One manifest with all its fields."""
    verdict, found = told.verdict, told.report
    count = len(report.violations_of(verdict))
    broken = "1 rule is broken" if count == 1 else f"{count} rules are broken"
    outcome = "allowed" if verdict.allowed else f"refused, {broken}"
    style = "bold" if verdict.allowed else "bold red"
    page.line(0, f"{wording.clean(report.label(verdict))}: {outcome}", style)
    if found is None:
        for violation in report.violations_of(verdict):
            page.line(2, f"x {wording.violation_text(violation)}", "red")
        if verdict.allowed:
            page.line(2, "! no definition covers this kind, so nothing of it is judged", "yellow")
        return
    policies_text(page, found.policies)
    for violation in found.violations:
        page.line(2, f"x {wording.violation_text(violation)}", "red")
    for warning in found.warnings:
        page.line(2, f"! {wording.warning_text(warning)}", "yellow")
    for violation in found.audit:
        if violation.source is not None and violation.source.enforcement == "Audit":
            page.line(2, f"on trial: {wording.violation_text(violation)}", "yellow")
    for pod in found.pods:
        page.gap()
        instance = f" {wording.clean(pod.instance)}" if pod.instance else ""
        roles = " and ".join(pod.roles)
        page.line(0, f"pod at {wording.place(pod.path)}", "bold")
        page.line(2, f"component {pod.component}{instance}, role {roles}", "dim")
        for each in pod.fields:
            field_text(page, each, pod.path)
    if found.workload:
        page.gap()
        page.line(0, "workload", "bold")
        for each in found.workload:
            field_text(page, each, ())


def field_text(page: Page, told: FieldReport, base: Path) -> None:
    """One field: its values, then what the policies say and the values do not tell already."""
    page.line(2, told.field, "cyan")
    for entry in told.entries:
        entry_text(page, entry, base)
    if not told.entries:
        page.line(4, "none")
    for leaf in told.leaves:
        name = "" if leaf.field == told.field else f"{leaf.field.removeprefix(told.field)}: "
        for text, style in said_lines(untold(leaf, told.entries)):
            page.line(6, f"{name}{text}", style or "dim")


def untold(leaf: LeafReport, entries: Sequence[Entry]) -> LeafReport:
    """The leaf without the default and the items that are the source of a value told above."""
    by_default = {each.by for each in entries if each.source == DEFAULT}
    by_item = {(each.key, each.by) for each in entries if each.source in FROM_ITEMS}
    return replace(
        leaf,
        default=None if leaf.default and leaf.default.source in by_default else leaf.default,
        items=tuple(each for each in leaf.items if (each.key, each.source) not in by_item),
    )


def entry_text(page: Page, entry: Entry, base: Path) -> None:
    """One value with its place, its source and what is wrong with it."""
    key = f"{wording.cut(entry.key)}: " if entry.key else ""
    note = f" ({wording.clean(entry.note)})" if entry.note else ""
    if entry.value is ABSENT:
        page.line(4, f"{key}unset{note}")
    else:
        held = entry.value
        value = attributes_text(held) if isinstance(held, dict) else value_text(held)
        source = f"{entry.source}, {by(entry.by)}" if entry.by else entry.source
        page.line(4, f"{key}{value} - {source}{note}")
        if entry.path:
            page.line(6, f"at {relative(entry.path, base)}", "dim")
    for each in entry.attributes:
        if (each.source, each.by) != (entry.source, entry.by):
            said = f"{each.source}, {by(each.by)}" if each.by else each.source
            page.line(6, f"{each.name} {value_text(each.value)} - {said}")
    for violation in entry.violations:
        page.line(6, f"x {inline(violation, entry.path)}", "red")
    for warning in entry.warnings:
        page.line(6, f"! {wording.warning_text(warning)}", "yellow")


def inline(violation: Violation, path: Path) -> str:
    """A violation below its value, whose field and place have been told already."""
    text = wording.violation_text(violation)
    head = f"{wording.clean(violation.field)} at {wording.place(violation.path)}: "
    return text.removeprefix(head) if violation.path == path else text


def relative(path: Path, base: Path) -> str:
    """A place below its pod's, else the whole of it."""
    return wording.place(path[len(base) :] if path[: len(base)] == base else path)
