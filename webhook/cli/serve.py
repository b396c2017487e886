"""podgate serve: the webhook."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Annotated, Any

import typer

from webhook.admission.judge import CatalogJudge
from webhook.catalog.build import Choices
from webhook.catalog.catalog import Catalog
from webhook.cli import loading
from webhook.cluster.credentials import find_credentials
from webhook.decision.messages import problem_text
from webhook.documents.problem import Problem
from webhook.evaluation.installation import InstallationConfig
from webhook.libjq.evaluator import get_evaluator
from webhook.policy.envelope import Context
from webhook.server.serve import LoadError
from webhook.server.serve import serve as run_server
from webhook.service import clock
from webhook.service.settings import Settings, variable
from webhook.sources.catalog_source import ClusterSources, new_folder
from webhook.sources.claims import WatchedClaims
from webhook.sources.load import Sources, change_detector, load
from webhook.sources.snapshot import Snapshot


def build_judge(
    catalog: Catalog, context: Context | None = None, snapshot: Snapshot | None = None
) -> CatalogJudge:
    """The judge of a catalog; `context` has the defaults for reading documents.

    `snapshot` is where the Pod's workers read the documents of the cluster, if they do.
    """
    claims = WatchedClaims(snapshot) if snapshot is not None else None
    return CatalogJudge(
        catalog, get_evaluator, clock.moment, context or Context(), claims, snapshot
    )


def sources_of(settings: Settings, config: InstallationConfig | None = None) -> Sources:
    """The paths of the documents in the settings, and the settings for decisions."""
    return Sources(
        tuple(map(str, settings.policies)),
        tuple(map(str, settings.interfaces)),
        tuple(map(str, settings.assets)),
        settings.kubernetes_minor,
        Choices(
            settings.rule_combination,
            config or settings.installation_config(),
            Context(exceptions_namespace=settings.exceptions_namespace),
        ),
        tuple(map(str, settings.crds)),
    )


def make_judge_from_files(sources: Sources) -> CatalogJudge:
    """The judge of the documents in the files as they are now; raises LoadError with every problem."""
    return make_judge(*load(sources), sources.choices.context)


def make_judge(
    catalog: Catalog | None,
    problems: tuple[Problem, ...],
    context: Context,
    snapshot: Snapshot | None = None,
) -> CatalogJudge:
    """The judge of a catalog; raises LoadError with every problem if there is no catalog."""
    if catalog is None:
        raise LoadError(tuple(each for each in problems if each.severity == "error"))
    for problem in problems:
        loading.complain(problem_text(problem))
    return build_judge(catalog, context, snapshot)


def option(name: str, *flags: str) -> Any:
    """A typer option for a setting, with its variable and its valid values."""
    row = Settings.model_fields[name]
    default = row.default
    shown = ", ".join(map(str, default)) if isinstance(default, tuple) else default
    details = (
        f" [{variable(name)}; default: {shown}]"
        if shown not in (None, "")
        else f" [{variable(name)}]"
    )
    return typer.Option(
        f"--{name.replace('_', '-')}",
        *flags,
        help=f"{row.description}.{details}",
        show_default=False,
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
    device_classes: Annotated[list[str] | None, option("device_classes")] = None,
    dra_driver_version: Annotated[str | None, option("dra_driver_version")] = None,
    dra_feature_gates: Annotated[list[str] | None, option("dra_feature_gates")] = None,
    dra_checks: Annotated[str | None, option("dra_checks")] = None,
    dra_unknown_version: Annotated[str | None, option("dra_unknown_version")] = None,
    dra_imex_mode: Annotated[str | None, option("dra_imex_mode")] = None,
    dra_max_nodes_per_domain: Annotated[str | None, option("dra_max_nodes_per_domain")] = None,
    dra_controllers: Annotated[list[str] | None, option("dra_controllers")] = None,
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

    Every option can also be set as a PODGATE_* variable; the option wins. podgate reloads files
    that change. If the new files have mistakes, the last good ones stay in force.
    """
    flags = dict(locals())
    settings = Settings.from_sources(flags, os.environ)
    if not isinstance(settings, Settings):
        for problem in settings:
            loading.complain(f"error: {problem_text(problem)}")
        raise typer.Exit(loading.BAD_INPUT)
    try:
        sources = sources_of(settings, loading.installation_config(settings))
    except loading.BadInput:
        raise typer.Exit(loading.BAD_INPUT) from None
    given = (lambda: make_judge_from_files(sources)), change_detector(sources)
    if not settings.cluster and find_credentials(settings.kubeconfig, os.environ) is None:
        raise typer.Exit(run_server(settings, *given))
    snapshot = Snapshot(new_folder())
    if settings.cluster:
        watched, context = ClusterSources(sources, snapshot), sources.choices.context
        given = (lambda: make_judge(*watched.load(), context, snapshot)), watched.has_changed
    try:
        code = run_server(settings, *given, snapshot)
    finally:
        shutil.rmtree(snapshot.folder, ignore_errors=True)
    raise typer.Exit(code)
