"""make corpus: every real manifest of the supported kinds through the offline decision, as a table."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from tests import everything
from tests.e2e.testbed import upstream
from tests.e2e.testbed.missing import MissingTestbed
from tests.upstream import data
from webhook.cases.run_offline import Place, Verdict, evaluate_manifest, manifests_of, references_of
from webhook.catalog.build import Choices, assemble
from webhook.catalog.catalog import Catalog
from webhook.decision.messages import problem_text
from webhook.documents.source import SourceDocument
from webhook.evaluation.outcome import Allowed, Denied
from webhook.objects.path import display
from webhook.pods.coverage import find_uncovered, pod_like
from webhook.pods.definition import Definition
from webhook.pods.locate import locate
from webhook.pods.location import LocationError
from webhook.sources.files import read_all
from webhook.sources.load import DEFAULT_MINOR, Sources, load, server_defaults, shipped_documents

ROOT = Path(__file__).resolve().parent.parent
POLICY = ROOT / "tests" / "corpus-policy.yaml"
MANIFESTS, OWN = "manifests", "own"
Json = dict[str, Any]

# Folders with samples beside the one that a project is pinned with.
FURTHER = {"lws": ("docs/examples",)}

PROJECTS = tuple(
    {
        (project.module, upstream.version(name), project.samples): name
        for name, project in reversed(upstream.PROJECTS.items())
    }.values()
)
"""The projects whose samples are tried, the same samples once."""
ORIGINS = (OWN, *PROJECTS)
"""Of what there are samples: of our own objects, and of each project."""

EXPLAINED = {
    (
        "InferenceService.serving.kserve.io/v1beta1",
        "spec.transformer.custom.container",
    ): "written in the form of v1alpha2: v1beta1 has no such field, and the API server drops it",
}
"""Places that look like pods where nothing is known of the schema, and why they are none."""

UNGOVERNED = {
    "SparkApplication.sparkoperator.k8s.io/v1beta1": "no operator of today serves this version",
    "InferenceService.serving.kserve.io/v1alpha2": "no operator of today serves this version",
    "Deployment.extensions/v1beta1": "no API server since 1.16 serves this version",
    **dict.fromkeys(
        (
            "Task.tekton.dev/v1",
            "Pipeline.tekton.dev/v1",
            "StepAction.tekton.dev/v1",
            "StepAction.tekton.dev/v1alpha1",
            "StepAction.tekton.dev/v1beta1",
        ),
        "it makes no pods: the pods of the TaskRuns and PipelineRuns that name it are judged",
    ),
    "AnalysisTemplate.argoproj.io/v1alpha1": "not shipped; the Jobs that come of it are judged as Jobs",
    "ClusterAnalysisTemplate.argoproj.io/v1alpha1": "not shipped; its Jobs are judged as Jobs",
    "Experiment.argoproj.io/v1alpha1": "not shipped; its ReplicaSets are judged as ReplicaSets",
}
"""Kinds of samples that hold pods and have no definition, and why."""


SAMPLED = frozenset(
    {
        "ClusterServingRuntime.serving.kserve.io/v1alpha1",
        "ClusterTrainingRuntime.trainer.kubeflow.org/v1alpha1",
        "ClusterWorkflowTemplate.argoproj.io/v1alpha1",
        "Configuration.serving.knative.dev/v1",
        "CronWorkflow.argoproj.io/v1alpha1",
        "Deployment.apps/v1",
        "DisaggregatedSet.disaggregatedset.x-k8s.io/v1",
        "InferenceGraph.serving.kserve.io/v1alpha1",
        "InferenceService.serving.kserve.io/v1beta1",
        "JAXJob.kubeflow.org/v1",
        "Job.batch.volcano.sh/v1alpha1",
        "Job.batch/v1",
        "JobFlow.flow.volcano.sh/v1alpha1",
        "JobSet.jobset.x-k8s.io/v1alpha2",
        "JobTemplate.flow.volcano.sh/v1alpha1",
        "LLMInferenceService.serving.kserve.io/v1alpha1",
        "LLMInferenceService.serving.kserve.io/v1alpha2",
        "LeaderWorkerSet.leaderworkerset.x-k8s.io/v1",
        "MPIJob.kubeflow.org/v1",
        "MPIJob.kubeflow.org/v2beta1",
        "NIMCache.apps.nvidia.com/v1alpha1",
        "NIMService.apps.nvidia.com/v1alpha1",
        "PaddleJob.kubeflow.org/v1",
        "PipelineRun.tekton.dev/v1",
        "Pod.core/v1",
        "PyTorchJob.kubeflow.org/v1",
        "RayCluster.ray.io/v1",
        "RayCronJob.ray.io/v1",
        "RayJob.ray.io/v1",
        "RayService.ray.io/v1",
        "ReplicaSet.apps/v1",
        "Rollout.argoproj.io/v1alpha1",
        "ScheduledSparkApplication.sparkoperator.k8s.io/v1beta2",
        "Service.serving.knative.dev/v1",
        "SparkApplication.sparkoperator.k8s.io/v1beta2",
        "SparkConnect.sparkoperator.k8s.io/v1alpha1",
        "StatefulSet.apps/v1",
        "TFJob.kubeflow.org/v1",
        "TaskRun.tekton.dev/v1",
        "TrainJob.trainer.kubeflow.org/v1alpha1",
        "Workflow.argoproj.io/v1alpha1",
        "WorkflowTemplate.argoproj.io/v1alpha1",
        "XGBoostJob.kubeflow.org/v1",
    }
)
"""Kinds and versions that the corpus has objects of."""


@dataclass(slots=True)
class Corpus:
    """Objects of one origin with their sources; `unreadable` files are no YAML to anybody."""

    origin: str
    objects: list[tuple[str, Any]] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Seen:
    """One object of a kind that is governed, and what came of it; `fault` is what went wrong."""

    source: str
    kind: str
    raw: Any
    locations: int = 0
    uncovered: tuple[str, ...] = ()
    verdict: Verdict | None = None
    fault: str = ""


def read_corpus(origin: str, folders: Iterable[Path]) -> Corpus:
    """Every object below some folders; what is no object of Kubernetes is left out."""
    found = Corpus(origin)
    for folder in folders:
        if any(each.suffix in {".yaml", ".yml", ".json"} for each in folder.rglob("*")):
            documents, problems = read_all([str(folder)], kubernetes=True)
            found.unreadable += sorted({problem.origin for problem in problems})
            found.objects += manifests_of(documents)[0]
    return found


@cache
def real_manifests(folder: Path) -> Corpus:
    """Samples of many projects, a selection of each."""
    return read_corpus(MANIFESTS, [folder / "manifests"])


@cache
def samples(project: str) -> Corpus:
    """The samples of a pinned archive, or our own; raises MissingTestbed where there is no archive."""
    if project == OWN:
        return read_corpus(OWN, [data.OWN])
    root = upstream.module_dir(project)
    folders = (upstream.PROJECTS[project].samples, *FURTHER.get(project, ()))
    return read_corpus(project, [root / each for each in folders if (root / each).is_dir()])


@cache
def usual() -> Catalog:
    """A policy as an installation may have it: something of everything, defaults and rules."""
    catalog, problems = load(Sources(policies=(str(POLICY),)))
    assert catalog is not None, problems
    return catalog


@cache
def writing() -> Catalog:
    """A default of every field that there is, so that as much as possible is written."""
    data = everything.policy("everything", defaults=everything.telling_defaults())
    document = SourceDocument("everything.yaml", 1, data, {}, {})
    shipped, _ = shipped_documents()
    table: Any = server_defaults(DEFAULT_MINOR)
    choices = Choices(config=everything.WORDS)
    catalog, problems = assemble(shipped, [document], choices, table)
    assert catalog is not None, "\n".join(map(problem_text, problems))
    return catalog


def kind_of(raw: Any) -> str:
    """Kind.group/version."""
    group, _, version = str(raw["apiVersion"]).rpartition("/")
    return f"{raw['kind']}.{group or 'core'}/{version}"


def definition_of(raw: Any, catalog: Catalog) -> Definition | None:
    """The definition of an object's kind and version."""
    group, _, version = str(raw["apiVersion"]).rpartition("/")
    return catalog.definition(group, str(raw["kind"]), version)


def walked_whole(definition: Definition) -> Definition:
    """The definition as if nothing were known of the schema, so that every place is looked at."""
    profile = replace(definition.profile, open_subtrees=None)
    return Definition(definition.interface, profile, definition.others, definition.versions)


def judged(corpus: Corpus, catalog: Catalog) -> Iterator[Seen]:
    """What comes of every object whose kind has a definition."""
    references = references_of(corpus.objects, Place())
    for source, raw in corpus.objects:
        definition = definition_of(raw, catalog)
        if definition is None:
            continue
        seen = Seen(source, kind_of(raw), raw)
        try:
            locations = locate(definition, raw)
            outside = find_uncovered(raw, locations, walked_whole(definition))
            seen.locations = len(locations)
            seen.uncovered = tuple(display(path) for path, _ in outside)
            seen.verdict = evaluate_manifest(raw, source, catalog, references, Place())
        except LocationError as error:
            seen.fault = error.text
        except Exception as error:
            seen.fault = f"{type(error).__name__}: {error}"
        yield seen


def unexplained(seen: Seen) -> list[str]:
    """Places of an object that look like pods, are covered by nothing, and have no reason."""
    return [
        f"{seen.source}: {place}" for place in seen.uncovered if (seen.kind, place) not in EXPLAINED
    ]


def ungoverned(corpus: Corpus, catalog: Catalog) -> Counter[str]:
    """Kinds without a definition whose objects seem to hold pods."""
    return Counter(
        kind_of(raw)
        for _, raw in corpus.objects
        if definition_of(raw, catalog) is None and pod_like(raw)
    )


def outcome(seen: Seen) -> Counter[str]:
    """One object as numbers of the table."""
    row = Counter(
        {
            "documents": 1,
            "pod locations": seen.locations,
            "uncovered": len(seen.uncovered),
            "unexplained": len(unexplained(seen)),
            "errors": int(bool(seen.fault)),
        }
    )
    match seen.verdict.decision if seen.verdict else None:
        case Allowed(changes=changes):
            row.update({"allowed": 1, "written": len(changes)})
        case Denied(violations=violations):
            row.update({"refused": 1, "violations": len(violations)})
        case None:
            pass
    return row


COLUMNS = (
    "documents",
    "pod locations",
    "uncovered",
    "unexplained",
    "errors",
    "allowed",
    "written",
    "refused",
    "violations",
)


def corpora() -> Iterator[Corpus]:
    """Our own samples and those of every archive that can be read here; the others are reported."""
    for project in ORIGINS:
        try:
            yield samples(project)
        except MissingTestbed as error:
            print(f"no samples of {project}: {error.reason} {error.how_to_get_it}")


def shown(title: str, head: str, rows: dict[str, Counter[str]]) -> None:
    """One table, its sums below."""
    table = Table(head, *COLUMNS, title=title)
    for name, row in sorted(rows.items()):
        table.add_row(name, *(str(row[column]) for column in COLUMNS))
    totals = sum(rows.values(), Counter[str]())
    table.add_row("all", *(str(totals[column]) for column in COLUMNS), style="bold")
    Console(width=150).print(table)


def tabled(title: str, catalog: Catalog, several: list[Corpus]) -> list[str]:
    """Both tables of one policy; gives what is wrong."""
    kinds: dict[str, Counter[str]] = {}
    origins: dict[str, Counter[str]] = {}
    wrong: list[str] = []
    for corpus in several:
        for seen in judged(corpus, catalog):
            row = outcome(seen)
            kinds.setdefault(seen.kind, Counter()).update(row)
            origins.setdefault(corpus.origin, Counter()).update(row)
            wrong += unexplained(seen)
            wrong += [f"{seen.source}: {seen.fault}"] if seen.fault else []
    shown(f"{title}, by kind", "kind", kinds)
    shown(f"{title}, by origin", "origin", origins)
    return wrong


def main() -> int:
    """Print the tables; exit code 1 when something is wrong, 2 without any manifest."""
    several = list(corpora())
    if not several:
        return 2
    wrong = tabled("real manifests under a usual policy", usual(), several)
    wrong += tabled("real manifests under a default of every field", writing(), several)
    for (kind, place), reason in EXPLAINED.items():
        print(f"{kind}: {place} is explained: {reason}")
    for corpus in several:
        for kind, number in sorted(ungoverned(corpus, usual()).items()):
            reason = UNGOVERNED.get(kind, "")
            print(f"{kind}, {number} in {corpus.origin}: no definition; {reason or 'UNEXPLAINED'}")
            wrong += [] if reason else [f"{kind} has pods and no definition"]
        if corpus.unreadable:
            print(f"{len(corpus.unreadable)} files of {corpus.origin} are no YAML and left out")
    for each in wrong:
        print(f"WRONG: {each}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
