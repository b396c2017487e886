"""podgate serve: the webhook."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from webhook.admission.facts import foreign_paths
from webhook.admission.judge import judge_review
from webhook.admission.own_documents import judge_document
from webhook.admission.request_class import treatment
from webhook.catalog.build import Choices
from webhook.catalog.catalog import Catalog
from webhook.cli import loading
from webhook.decision import messages as wording
from webhook.documents.problem import Problem
from webhook.evaluation.installation import Vocabulary
from webhook.evaluation.outcome import Decision
from webhook.evaluation.references import ClaimKey, References
from webhook.evaluation.request import Request, Stage, Treatment
from webhook.libjq import evaluator as jq
from webhook.policy.envelope import Context
from webhook.policy.policy import Policy, Selector
from webhook.policy.selectors import NAME_LABEL
from webhook.server.serve import LoadError
from webhook.server.serve import serve as run_server
from webhook.service import clock
from webhook.service.settings import Settings, variable
from webhook.sources.catalog_source import ClusterSources, new_folder
from webhook.sources.claim_snapshot import ClaimShards
from webhook.sources.load import Sources, change_detector, load
from webhook.sources.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class CatalogJudge:
    """A judge over one catalog; a request sees no other. `selecting` policies want labels."""

    catalog: Catalog
    selecting: tuple[Policy, ...] = ()
    context: Context = Context()  # noqa: RUF009 - frozen
    snapshot: Snapshot | None = None
    claims: ClaimShards | None = None

    @classmethod
    def of(
        cls, catalog: Catalog, context: Context | None = None, snapshot: Snapshot | None = None
    ) -> CatalogJudge:
        """The judge over a catalog; `context` is how the installation reads documents.

        `snapshot` is where the Pod's workers find the documents of the cluster, if they do.
        """
        selecting = tuple(filter(selects_by_labels, catalog.policies))
        claims = ClaimShards(snapshot) if snapshot is not None else None
        return cls(catalog, selecting, context or Context(), snapshot, claims)

    def acknowledged(self) -> list[dict[str, Any]]:
        """What the Pod's workers judge by, for /statusz."""
        return self.snapshot.acknowledged() if self.snapshot is not None else []

    def tell_rewriting(self, rows: list[dict[str, Any]]) -> None:
        """Leave word, for /statusz, of users who take away what podgate writes."""
        if self.snapshot is not None:
            self.snapshot.tell_rewriting(os.getpid(), rows)

    def heard(self) -> float:
        """Until when, in Unix time, the cluster's documents are known to be the newest, or 0."""
        return self.snapshot.heard() if self.snapshot is not None else 0.0

    @property
    def policies(self) -> int:
        """How many policies it holds."""
        return len(self.catalog.policies)

    @property
    def documents(self) -> dict[str, int]:
        """How many documents of each kind are in force, shipped ones included."""
        return self.catalog.documents()

    @property
    def selects_namespaces(self) -> bool:
        """Whether there are namespaces whose labels it must know."""
        return bool(self.selecting)

    def lacks_labels(self, request: Request) -> bool:
        """Whether the decision may depend on labels of the namespace that the request lacks.

        Not where no policy selects by them there, nor for children of controllers, which pass.
        """
        name = request.namespace
        if not self.selecting or not name or request.namespace_labels:
            return False
        if request.stage is Stage.DOCUMENTS:
            return False
        if not any(depends_on_labels(each, name) for each in self.selecting):
            return False
        return treatment(request, self.catalog) is not Treatment.EXEMPT

    def __call__(self, request: Request) -> Decision:
        """The decision on one review; ValueError where that would ignore unknown labels."""
        if request.stage is Stage.DOCUMENTS:
            compile_jq = jq.evaluator().compile_jq
            return judge_document(request, self.catalog, self.context, compile_jq)
        if self.lacks_labels(request):
            raise ValueError("the labels of the namespace must be looked up first")
        name = request.namespace
        # The API server gives every namespace this label, so that it needs no look-up.
        labels = {**request.namespace_labels, NAME_LABEL: name} if name else {}
        if self.catalog.exceptions:
            request = replace(request, time=clock.moment())
        if self.claims is None:
            return judge_review(request, self.catalog, References({name: labels}), jq.evaluator())
        seen = self.claims.seen()
        references = References({name: labels}, seen)
        decision = judge_review(request, self.catalog, references, jq.evaluator())
        return replace(decision, unseen=frozenset(seen.missed)) if seen.missed else decision

    def awaits(self, unseen: frozenset[ClaimKey]) -> bool:
        """Whether some of these claims would come by themselves, if they are on their way."""
        return self.claims is not None and any(
            kind in self.claims.watched() for kind, _, _ in unseen
        )

    def sees(self, unseen: frozenset[ClaimKey]) -> bool:
        """Whether all of these claims are known by now."""
        if self.claims is None:
            return False
        seen = self.claims.seen()
        return all(seen.get(key) is not None for key in unseen)

    def waits(self, request: Request) -> bool:
        """Whether jq must be asked, in another process, before the decision."""
        return request.stage is Stage.DOCUMENTS or bool(foreign_paths(request, self.catalog))


def selects_by_labels(policy: Policy) -> bool:
    """Whether a policy selects namespaces by other labels than their name."""
    selector = policy.namespace_selector
    return selector is not None and any(key != NAME_LABEL for key, _, _ in selector.requirements)


def depends_on_labels(policy: Policy, namespace: str) -> bool:
    """Whether the name alone leaves open if a selecting policy reaches this namespace."""
    if policy.namespace_selector is None or namespace in policy.exclude_namespaces:
        return False
    wanted = policy.namespace_selector.requirements
    by_name = Selector(tuple(each for each in wanted if each[0] == NAME_LABEL))
    return by_name.matches({NAME_LABEL: namespace})


def sources_of(settings: Settings, words: Vocabulary | None = None) -> Sources:
    """Where the documents are, as the settings say, and the installation's words."""
    return Sources(
        tuple(map(str, settings.policies)),
        tuple(map(str, settings.interfaces)),
        tuple(map(str, settings.assets)),
        settings.kubernetes_minor,
        Choices(
            settings.rule_combination,
            words or settings.vocabulary(),
            Context(exceptions_namespace=settings.exceptions_namespace),
        ),
        tuple(map(str, settings.crds)),
    )


def judge_from(sources: Sources) -> CatalogJudge:
    """A judge over what the files hold now; LoadError with every problem."""
    return judge_of(*load(sources), sources.choices.context)


def judge_of(
    catalog: Catalog | None,
    problems: tuple[Problem, ...],
    context: Context,
    snapshot: Snapshot | None = None,
) -> CatalogJudge:
    """A judge over a catalog; LoadError with every problem where there is none."""
    if catalog is None:
        raise LoadError(tuple(each for each in problems if each.severity == "error"))
    for problem in problems:
        loading.complain(wording.problem_text(problem))
    return CatalogJudge.of(catalog, context, snapshot)


def option(name: str, *flags: str) -> Any:
    """A typer option for a setting, with its variable and what it takes."""
    row = Settings.model_fields[name]
    default = row.default
    shown = ", ".join(map(str, default)) if isinstance(default, tuple) else default
    told = (
        f" [{variable(name)}; default: {shown}]"
        if shown not in (None, "")
        else f" [{variable(name)}]"
    )
    return typer.Option(
        f"--{name.replace('_', '-')}", *flags, help=f"{row.description}.{told}", show_default=False
    )


Text = Annotated[str | None, typer.Option]


def serve(
    listen: Annotated[str | None, option("listen")] = None,
    metrics_listen: Annotated[str | None, option("metrics_listen")] = None,
    tls_cert: Annotated[Path | None, option("tls_cert")] = None,
    tls_key: Annotated[Path | None, option("tls_key")] = None,
    client_ca: Annotated[Path | None, option("client_ca")] = None,
    client_ca_name: Annotated[list[str] | None, option("client_ca_name")] = None,
    tls_min_version: Annotated[str | None, option("tls_min_version")] = None,
    plain_http: Annotated[bool | None, option("plain_http")] = None,
    policies: Annotated[list[str] | None, option("policies", "-p")] = None,
    interfaces: Annotated[list[str] | None, option("interfaces")] = None,
    assets: Annotated[list[str] | None, option("assets")] = None,
    crds: Annotated[list[str] | None, option("crds")] = None,
    rule_combination: Annotated[str | None, option("rule_combination")] = None,
    cluster: Annotated[bool | None, option("cluster")] = None,
    own_namespace: Annotated[str | None, option("own_namespace")] = None,
    kubeconfig: Annotated[Path | None, option("kubeconfig")] = None,
    owner_events: Annotated[str | None, option("owner_events")] = None,
    workers: Annotated[str | None, option("workers")] = None,
    keep_alive: Annotated[str | None, option("keep_alive")] = None,
    connection_age: Annotated[str | None, option("connection_age")] = None,
    body_limit: Annotated[str | None, option("body_limit")] = None,
    deadline: Annotated[str | None, option("deadline")] = None,
    drain: Annotated[str | None, option("drain")] = None,
    concurrency: Annotated[str | None, option("concurrency")] = None,
    connections_per_address: Annotated[str | None, option("connections_per_address")] = None,
    bytes_in_flight: Annotated[str | None, option("bytes_in_flight")] = None,
    log_level: Annotated[str | None, option("log_level")] = None,
    log_format: Annotated[str | None, option("log_format")] = None,
    traces: Annotated[str | None, option("traces")] = None,
    gpu_devices: Annotated[list[str] | None, option("gpu_devices")] = None,
    gpu_device_classes: Annotated[list[str] | None, option("gpu_device_classes")] = None,
    gpu_memory_unit: Annotated[str | None, option("gpu_memory_unit")] = None,
    gpu_limit: Annotated[str | None, option("gpu_limit")] = None,
    several_devices: Annotated[bool | None, option("several_devices")] = None,
    node_type_label: Annotated[str | None, option("node_type_label")] = None,
    node_pools_annotation: Annotated[str | None, option("node_pools_annotation")] = None,
    node_pool_labels: Annotated[list[str] | None, option("node_pool_labels")] = None,
    git_image: Annotated[str | None, option("git_image")] = None,
    git_images: Annotated[list[str] | None, option("git_images")] = None,
    s3_drivers: Annotated[list[str] | None, option("s3_drivers")] = None,
    data_volumes: Annotated[list[str] | None, option("data_volumes")] = None,
    identity_claims: Annotated[list[str] | None, option("identity_claims")] = None,
    create_claims: Annotated[bool | None, option("create_claims")] = None,
    injected: Annotated[Path | None, option("injected")] = None,
    unreadable_owner: Annotated[str | None, option("unreadable_owner")] = None,
    trusted_mutators: Annotated[Path | None, option("trusted_mutators")] = None,
    trusted_controllers: Annotated[Path | None, option("trusted_controllers")] = None,
    exempt: Annotated[list[str] | None, option("exempt")] = None,
    exceptions_namespace: Annotated[str | None, option("exceptions_namespace")] = None,
    features: Annotated[list[str] | None, option("features")] = None,
    prefer_given: Annotated[list[str] | None, option("prefer_given")] = None,
    kubernetes_minor: Annotated[str | None, option("kubernetes_minor")] = None,
) -> None:
    """Serve admission reviews over HTTPS until SIGTERM.

    Every option is a PODGATE_* variable too; options win. Files that change are loaded again; a
    faulty set leaves the last good one in force.
    """
    flags = dict(locals())
    settings = Settings.from_sources(flags, os.environ)
    if not isinstance(settings, Settings):
        for problem in settings:
            loading.complain(f"error: {wording.problem_text(problem)}")
        raise typer.Exit(loading.BAD_INPUT)
    try:
        sources = sources_of(settings, loading.words_of(settings))
    except loading.BadInput:
        raise typer.Exit(loading.BAD_INPUT) from None
    if not settings.cluster:
        given = (lambda: judge_from(sources)), change_detector(sources)
        raise typer.Exit(run_server(settings, *given))
    snapshot = Snapshot(new_folder())
    living = ClusterSources(sources, snapshot, settings.kubeconfig, settings.own_namespace)
    try:
        context = sources.choices.context
        code = run_server(
            settings, lambda: judge_of(*living.load(), context, snapshot), living.changed
        )
    finally:
        shutil.rmtree(snapshot.folder, ignore_errors=True)
    raise typer.Exit(code)
