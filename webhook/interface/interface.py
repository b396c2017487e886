"""A resource interface, compiled: the document with the paths of a kind's pods and replicas.

Two names of the same format are read, `ResourceInterface` of optimization.nvidia.com/v1alpha1
and `Karta` of run.ai/v1alpha1. Paths that admission uses (pods, metadata, fragments, ids, scale)
become programs; `byExpression`, `filters` and `groupByKeyPaths` stay text in `spec`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from webhook.documents.problem import Problem
from webhook.documents.read_model import Report, read, show_value
from webhook.documents.source import SourceDocument
from webhook.documents.suggestions import closest
from webhook.interface import rules
from webhook.interface.component_rules import Placed
from webhook.interface.document import (
    ComponentModel,
    InterfaceSpec,
    KindName,
    ScalePaths,
    SpecPaths,
)
from webhook.interface.jq_rules import check_expressions
from webhook.interface.misspellings import correct_spelling
from webhook.jq.expressions import Compile
from webhook.jq.external import ForeignProgram, Results
from webhook.jq.pair import check_pairing
from webhook.jq.path import Program
from webhook.jq.programs import by_number, of_interface, place_of_interface
from webhook.objects.path import Path

ENVELOPES = (
    ("optimization.nvidia.com/v1alpha1", "ResourceInterface"),
    ("run.ai/v1alpha1", "Karta"),
)
Form = Literal["template", "spec", "fragments"]


@dataclass(frozen=True, slots=True)
class Component:
    """A component of the kind. Programs are None if the definition sets no path.

    `template` finds pod templates, `spec` pod specs with `metadata`, `fragments` the fragments of a
    pod spec by the name of their path. `ids` finds the instances; without it there is one.
    """

    name: str
    kind: tuple[str, str, str] | None = None
    owner: str = ""
    form: Form | None = None
    template: Program | None = None
    spec: Program | None = None
    metadata: Program | None = None
    fragments: Mapping[str, Program] = field(default_factory=dict)
    ids: Program | None = None
    replicas: Program | None = None
    minimum: Program | None = None
    maximum: Program | None = None
    root: bool = False

    @property
    def has_pods(self) -> bool:
        """Whether it has pods, in the object or as those of a kind that the workload makes."""
        return self.form is not None or (self.kind is not None and not self.root)

    @property
    def places(self) -> Program | None:
        """What gives the pods' places in the two forms that have one place per pod."""
        return self.template or self.spec

    @property
    def foreign(self) -> Iterator[ForeignProgram]:
        """The paths that need jq."""
        numbers = (self.replicas, self.minimum, self.maximum)
        paths = (self.template, self.spec, self.metadata, self.ids, *numbers)
        for each in (*paths, *self.fragments.values()):
            if isinstance(each, ForeignProgram):
                yield each

    def with_results(self, results: Results) -> Component:
        """Return the component with the results of jq for one object in the paths that need jq."""

        def given(program: Program | None) -> Program | None:
            if isinstance(program, ForeignProgram):
                return program.with_results(results)
            return program

        return replace(
            self,
            template=given(self.template),
            spec=given(self.spec),
            metadata=given(self.metadata),
            fragments={path: given(each) or each for path, each in self.fragments.items()},
            ids=given(self.ids),
            replicas=given(self.replicas),
            minimum=given(self.minimum),
            maximum=given(self.maximum),
        )

    @property
    def scales(self) -> bool:
        """Whether the definition has a path of replicas."""
        return bool(self.replicas or self.minimum or self.maximum)


@dataclass(frozen=True, slots=True)
class Interface:
    """A definition ready for use. `spec` is its typed body, `raw` the unchanged document."""

    group: str
    version: str
    kind: str
    components: tuple[Component, ...]
    name: str
    origin: str
    spec: InterfaceSpec
    raw: Mapping[str, Any]

    def component(self, name: str) -> Component | None:
        """Return the component with this name."""
        return next((each for each in self.components if each.name == name), None)

    @property
    def root(self) -> Component:
        """The component for the whole workload."""
        return self.components[0]


def is_interface(document: Any) -> bool:
    """Whether a decoded document is a resource interface, by apiVersion and kind."""
    return (
        isinstance(document, dict)
        and (document.get("apiVersion"), document.get("kind")) in ENVELOPES
    )


def parse_interface(
    document: SourceDocument, compile_jq: Compile | None = None
) -> tuple[Interface | None, tuple[Problem, ...]]:
    """Return the definition, or None if it cannot be used, and all problems, including warnings.

    Texts that are not native are checked to be jq only with `compile_jq`.
    """
    report = Report(document)
    data = document.data
    if not is_interface(data):
        known = " or ".join(f"{version} {kind}" for version, kind in ENVELOPES)
        report.add((), "not a resource interface", f"write {known}", "wrong-kind")
        return None, tuple(report.problems)
    report_envelope(data, report)
    if not isinstance(data.get("spec"), dict):
        report.add((), "no `spec`, or not a map", "add `spec`", "missing-field")
        return None, tuple(report.problems)
    body = correct_spelling(data["spec"], report)
    spec = read(InterfaceSpec, body, ("spec",), report)
    if spec is None:
        return None, tuple(report.problems)
    rules.check(spec, report)
    placed = rules.place_components(spec)
    components = tuple(compile_component(each, report, compile_jq) for each in placed)
    refuse_forbidden(spec, report, compile_jq)
    if report.has_errors:
        return None, tuple(report.problems)
    return build_interface(document, spec, components), tuple(report.problems)


def refuse_forbidden(spec: InterfaceSpec, report: Report, compile_jq: Compile | None) -> None:
    """Report jq that reads anything except the object, in any text. Each path is reported once."""
    before = len(report.problems)
    known = {problem.path for problem in report.problems}
    check_expressions(spec, report, ("spec",), compile_jq)
    report.problems[before:] = [each for each in report.problems[before:] if each.path not in known]


def report_envelope(data: Mapping[str, Any], report: Report) -> None:
    """Warn of unknown keys at the top of the document."""
    known = ("apiVersion", "kind", "metadata", "spec", "status")
    for key in data:
        if key not in known:
            near = closest(str(key), known)
            fix = f"did you mean `{near}`?" if near else "remove it"
            found = f"unknown field `{show_value(key)}`, which is ignored"
            report.warn((str(key),), found, fix, "unknown-field")


def build_interface(
    document: SourceDocument, spec: InterfaceSpec, components: tuple[Component, ...]
) -> Interface:
    """Build the definition of a spec that has passed all checks."""
    group, version, kind = components[0].kind or ("", "", "")
    metadata = document.data.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return Interface(
        group,
        version,
        kind,
        components,
        name if isinstance(name, str) else "",
        document.origin,
        spec,
        document.data,
    )


def compile_component(each: Placed, report: Report, compile_jq: Compile | None) -> Component:
    """Compile the paths of a component. Paths that cannot be used are reported."""
    at, body, root = each
    paths, scale = body.spec_definition or SpecPaths(), body.scale_definition or ScalePaths()
    here = (*at, "specDefinition")
    template = place_of_interface(
        paths.pod_template_spec_path, (*here, "podTemplateSpecPath"), report, compile_jq
    )
    spec = place_of_interface(paths.pod_spec_path, (*here, "podSpecPath"), report, compile_jq)
    metadata = place_of_interface(paths.metadata_path, (*here, "metadataPath"), report, compile_jq)
    fragments = compile_fragments(body, (*here, "fragmentedPodSpecDefinition"))
    ids = of_interface(body.instance_id_path)
    there = (*at, "scaleDefinition")
    numbers = {
        key: of_interface(text)
        for key, text in (
            ("replicasPath", scale.replicas_path),
            ("minReplicasPath", scale.min_replicas_path),
            ("maxReplicasPath", scale.max_replicas_path),
        )
    }
    if any(is_foreign(each) for each in (template, spec, metadata, ids, *fragments.values())) or (
        any(map(is_foreign, numbers.values()))
    ):
        template, spec = by_number(template, assignable=True), by_number(spec, assignable=True)
        metadata, ids = by_number(metadata, assignable=True), by_number(ids)
        fragments = {path: by_number(each) or each for path, each in fragments.items()}
        numbers = {key: by_number(each) for key, each in numbers.items()}
    pods = {(*here, "podTemplateSpecPath"): template, (*here, "podSpecPath"): spec}
    usable = usable_ids(ids, pods, report)
    beside = {(*here, "metadataPath"): metadata}
    beside |= {(*there, key): number for key, number in numbers.items()}
    if usable is ids:
        check_instances({**pods, **beside, **fragments}, ids, report)
    else:
        check_instances(beside, template or spec, report, "pods")
    return Component(
        body.name,
        kind_of(body.kind),
        body.owner_ref or "",
        form_of(body),
        template,
        spec,
        metadata,
        {str(path[-1]): each for path, each in fragments.items()},
        usable,
        numbers["replicasPath"],
        numbers["minReplicasPath"],
        numbers["maxReplicasPath"],
        root,
    )


def kind_of(kind: KindName | None) -> tuple[str, str, str] | None:
    """Return the kind as a tuple."""
    return (kind.group or "", kind.version or "", kind.kind or "") if kind else None


def form_of(body: ComponentModel) -> Form | None:
    """Return the form of the component's pods."""
    paths = body.spec_definition
    if paths is None:
        return None
    if paths.pod_template_spec_path:
        return "template"
    if paths.pod_spec_path:
        return "spec"
    return "fragments" if paths.fragmented_pod_spec_definition else None


def is_foreign(program: Program | None) -> bool:
    """Whether a path needs jq."""
    return isinstance(program, ForeignProgram)


def compile_fragments(body: ComponentModel, at: Path) -> dict[Path, Program]:
    """Compile the fragment paths that are set, by their path in the definition."""
    fragments = body.spec_definition and body.spec_definition.fragmented_pod_spec_definition
    if not fragments:
        return {}
    texts = fragments.model_dump(by_alias=True, exclude_none=True)
    made = {(*at, key): of_interface(text) for key, text in texts.items()}
    return {path: each for path, each in made.items() if each is not None}


def check_instances(
    programs: Mapping[Path, Program | None],
    ids: Program | None,
    report: Report,
    what: str = "ids",
) -> None:
    """Check that paths and ids iterate over the same collections, so that each value has its own id.

    If ids cannot be used, the path of the pods is used instead. `what` names it in messages.
    """
    for at, each in programs.items():
        if each is None:
            continue
        if ids is None:
            if (
                each.iterators
                and not is_foreign(each)
                and at[-1] in {"podTemplateSpecPath", "podSpecPath"}
            ):
                found = f"`{show_value(each.text)}` gives several pods without names"
                report.warn(at, found, "add `instanceIdPath`", "ids-missing")
        elif why := check_pairing(each, ids, what, deeper=at[-2] == "fragmentedPodSpecDefinition"):
            report.add(at, why, "let both go through the same collections", "not-paired")


def usable_ids(
    ids: Program | None, pods: Mapping[Path, Program | None], report: Report
) -> Program | None:
    """Return the ids, or None with a warning if they cannot be paired with the pods.

    Without ids the pods are numbered. Upstream pairs by position, which can mix up names.
    """
    for at, each in pods.items():
        if ids is not None and each is not None and (why := check_pairing(each, ids)):
            fix = "let both go through the same collections; until then the instances are numbered"
            report.warn(at, why, fix, "not-paired")
            return None
    return ids
