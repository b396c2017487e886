"""The options that every offline command shares, and the catalog they lead to."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Protocol

import typer

from webhook.catalog.build import Choices
from webhook.catalog.catalog import Catalog
from webhook.decision.messages import problem_text
from webhook.documents import texts
from webhook.documents.problem import Problem
from webhook.evaluation.installation import NEVER_GOVERNED, InstallationConfig
from webhook.interface.kind_schema import KindSchema
from webhook.policy.combine import COMBINATIONS, GUARDED
from webhook.policy.envelope import Context
from webhook.policy.row import ALL_TYPES
from webhook.service.settings import Settings, minor_number
from webhook.sources.load import (
    DEFAULT_MINOR,
    Sources,
    controllers_list,
    injected_list,
    load,
    schemas_of,
    trusted_list,
)

BAD_INPUT = 2

Policies = Annotated[
    list[str] | None,
    typer.Option(
        "--policies",
        "-p",
        metavar="PATH",
        help="File or folder with policies, in any form. Repeatable.",
    ),
]
Interfaces = Annotated[
    list[str] | None,
    typer.Option(
        "--interfaces",
        metavar="PATH",
        help="File or folder with ResourceInterface, Karta and WorkloadProfile documents.",
    ),
]
Assets = Annotated[
    list[str] | None,
    typer.Option("--assets", metavar="PATH", help="File or folder with WorkloadAsset documents."),
]
Crds = Annotated[
    list[str] | None,
    typer.Option(
        "--crds",
        metavar="PATH",
        help="File or folder with CRDs. Their schemas show where pods can be, and which values are pruned.",
    ),
]
Namespace = Annotated[
    str | None,
    typer.Option("--namespace", "-n", help="Namespace of manifests without one."),
]
NamespaceLabels = Annotated[
    str,
    typer.Option("--namespace-labels", metavar="K=V,…", help="Labels of the namespace."),
]
WorkloadType = Annotated[
    str | None,
    typer.Option(
        "--workload-type",
        help=f"Workload type of bare and API policies: {', '.join(ALL_TYPES)}.",
    ),
]
Combination = Annotated[
    str,
    typer.Option(
        "--rule-combination",
        help=f"How rules of several scopes combine: {', '.join(COMBINATIONS)}.",
    ),
]
Minor = Annotated[
    str,
    typer.Option(
        "--kubernetes",
        envvar="PODGATE_KUBERNETES_MINOR",
        help="Kubernetes version whose server defaults apply, such as 1.37.",
    ),
]


FAULT = 70
"""The exit code for an error in podgate itself."""


def fault_text(error: Exception) -> str:
    """The message for an error in podgate itself, without the values that caused it."""
    where = traceback.extract_tb(error.__traceback__)[-1]
    return (
        f"podgate has a fault: {type(error).__name__} at {Path(where.filename).name}:{where.lineno}"
    )


SEE_FAULT = "set PODGATE_TRACEBACK=1 to see all of it, and report it please"


@dataclass(slots=True)
class Faults:
    """Reports an error in podgate itself on the object that caused it, so that the others are processed."""

    count: int = 0

    @contextmanager
    def report_faults(self, source: str) -> Iterator[None]:
        """Report an error in the work on one object, and continue."""
        try:
            yield
        except (BadInput, typer.Exit, BrokenPipeError):
            raise
        except Exception as error:
            self.take(source, error)

    def take(self, source: str, error: Exception) -> None:
        """Report an error in the work on one object; PODGATE_TRACEBACK raises it instead."""
        if os.environ.get("PODGATE_TRACEBACK"):
            raise error
        complain(f"error: {texts.clean(source)}: {fault_text(error)}")
        if not self.count:
            complain(SEE_FAULT)
        self.count += 1

    def code(self, other: int) -> int:
        """The exit code of a command, `other` without such an error."""
        return FAULT if self.count else other


class BadInput(Exception):  # noqa: N818 - a way out of a command, not an error of the program
    """Some input cannot be used; the reason was already printed on stderr."""


def complain(text: str) -> None:
    """Print one line on stderr."""
    print(text, file=sys.stderr)


def print_problems(problems: Iterable[Problem]) -> None:
    """Print problems and warnings of documents on stderr, errors first."""
    for problem in sorted(problems, key=lambda each: each.severity != "error"):
        prefix = "error: " if problem.severity == "error" else ""
        complain(f"{prefix}{problem_text(problem)}")


def check_choice(value: str | None, known: Sequence[str], option: str) -> None:
    """Check that a word is among the known ones; raises BadInput."""
    if value is not None and value not in known:
        complain(f"error: {option}: found {texts.quote(value)}; write one of {', '.join(known)}")
        raise BadInput


def labels_of(text: str) -> dict[str, str]:
    """Parse k=v,k=v as a map."""
    labels = {}
    for part in filter(None, (each.strip() for each in text.split(","))):
        key, sign, value = part.partition("=")
        if not sign or not key:
            complain(
                f"error: --namespace-labels: found {texts.quote(part)}; write key=value, separated by"
                " commas"
            )
            raise BadInput
        labels[key] = value
    return labels


def sources_of(
    policies: list[str] | None,
    interfaces: list[str] | None,
    assets: list[str] | None,
    *,
    namespace: str | None = None,
    workload_type: str | None = None,
    combination: str = GUARDED,
    minor: str = DEFAULT_MINOR,
    assumed: str | None = "default",
    crds: list[str] | None = None,
) -> Sources:
    """The options as sources for the loader; `assumed` is the default namespace."""
    check_choice(workload_type, ALL_TYPES, "--workload-type")
    check_choice(combination, COMBINATIONS, "--rule-combination")
    context = Context(workload_type=workload_type, namespace=namespace or assumed)
    config = installation_config_of_environment()
    devices = replace(config.devices, kubernetes_minor=minor_number(minor))
    choices = Choices(combination, replace(config, devices=devices), context)
    return Sources(
        tuple(policies or ()),
        tuple(interfaces or ()),
        tuple(assets or ()),
        minor,
        choices,
        tuple(crds or ()),
    )


def installation_config_of_environment() -> InstallationConfig:
    """Returns the settings of PODGATE_* variables, as the server reads them; raises BadInput."""
    settings = Settings.from_sources({}, os.environ)
    if isinstance(settings, Settings):
        return installation_config(settings)
    print_problems(settings)
    raise BadInput


def installation_config(settings: Settings) -> InstallationConfig:
    """Returns the settings that decisions read, with their lists; raises BadInput."""
    injected, faults = injected_list(settings.injected)
    trusted, more = trusted_list(settings.trusted_mutators)
    ungoverned = (*NEVER_GOVERNED, settings.own_namespace, *settings.exempt)
    controllers, others = controllers_list(settings.trusted_controllers, ungoverned)
    if faults or more or others:
        print_problems((*faults, *more, *others))
        raise BadInput
    print_problems(settings.warnings())
    return settings.installation_config(injected, trusted, controllers)


def known_schemas(crds: list[str] | None) -> tuple[KindSchema, ...]:
    """The schemas of CRDs; BadInput, after printing the problems, if some cannot be read."""
    schemas, problems = schemas_of(crds or ())
    print_problems(problems)
    if any(each.severity == "error" for each in problems):
        raise BadInput
    return schemas


class Counting(Protocol):
    """Counts the warnings of a command."""

    warnings: int


def catalog_of(sources: Sources, tally: Counting | None = None) -> Catalog:
    """The catalog, after printing and counting its warnings. BadInput after printing problems."""
    catalog, problems = load(sources)
    print_problems(problems)
    if tally is not None:
        tally.warnings += sum(each.severity == "warning" for each in problems)
    if catalog is None:
        count = sum(1 for each in problems if each.severity == "error")
        complain(f"{count} problem{'s' if count != 1 else ''} found; nothing was evaluated")
        raise BadInput
    return catalog
