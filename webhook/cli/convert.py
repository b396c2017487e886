"""podgate convert: converts policies of every format and version to podgate's custom resources."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer
import yaml

from webhook.cli import loading, outcomes
from webhook.convert.policy import INEXACT
from webhook.convert.policy import convert as converted
from webhook.documents import texts
from webhook.documents.problem import Problem
from webhook.documents.source import resolve, resolve_as_kubectl
from webhook.documents.texts import clean, cut
from webhook.policy.envelope import Context
from webhook.policy.row import ALL_TYPES
from webhook.sources.files import read_all

NOT_EXPRESSED = 1

Files = Annotated[
    list[str], typer.Argument(metavar="FILE…", help="Policies: files, folders, or - for stdin.")
]
Namespace = Annotated[
    str | None,
    typer.Option("--namespace", "-n", help="Namespace of project policies without one."),
]
ScopeNames = Annotated[
    list[str] | None,
    typer.Option(
        "--scope-name",
        metavar="ID=NAMESPACE,…",
        help="Namespaces of a project or department. Repeatable.",
    ),
]


def convert(
    files: Files,
    namespace: Namespace = None,
    workload_type: loading.WorkloadType = None,
    scope_name: ScopeNames = None,
    partial: outcomes.Partial = False,
) -> None:
    """Convert policies of other forms and of the first generation to custom resources.

    Prints the result to stdout. Reports what it cannot convert on stderr, with the path and the
    reason. If a document cannot be converted, prints nothing to stdout; with --partial it prints
    the others. Exit code 0: everything was converted, 1: something was not, 2: bad input.
    """
    try:
        loading.check_choice(workload_type, ALL_TYPES, "--workload-type")
        context = Context(
            workload_type=workload_type,
            namespace=namespace,
            scope_names=scopes_of(scope_name or ()),
        )
    except loading.BadInput:
        raise typer.Exit(loading.BAD_INPUT) from None
    raise typer.Exit(run(files, context, partial=partial))


def scopes_of(given: list[str] | tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """The namespaces of each id."""
    scopes: dict[str, tuple[str, ...]] = {}
    for each in given:
        identity, sign, names = each.partition("=")
        found = tuple(filter(None, (name.strip() for name in names.split(","))))
        if not identity or not sign or not found:
            loading.complain(
                f"error: --scope-name: found {texts.quote(each)}; write ID=NAMESPACE,NAMESPACE"
            )
            raise loading.BadInput
        scopes[identity] = found
    return scopes


def run(files: list[str], context: Context, *, partial: bool) -> int:
    """Convert every document; return the exit code."""
    documents, problems = read_all(files)
    loading.print_problems(problems)
    code = loading.BAD_INPUT if problems else 0
    policies: list[dict[str, Any]] = []
    faults = loading.Faults()
    for document in documents:
        with faults.report_faults(document.origin):
            result = converted(document, context)
            loading.print_problems(each for each in result.problems if each not in result.losses)
            for each in result.losses:
                loading.complain(loss_text(each))
            if result.policy is None:
                code = loading.BAD_INPUT
            else:
                policies.append(result.policy)
                code = max(code, NOT_EXPRESSED if result.losses else 0)
    code = faults.code(code)
    if policies and code not in (0, NOT_EXPRESSED) and not partial:
        loading.complain(f"nothing is printed; --partial prints the other {len(policies)}")
    elif policies:
        sys.stdout.write(as_yaml(policies))
    return code


def loss_text(loss: Problem) -> str:
    """What the result lacks compared to the original: the path, the value and the reason."""
    how = "not exactly expressed" if loss.reason == INEXACT else "not expressed"
    return f"{clean(loss.place())}: {clean(loss.path)}: {how}: {cut(loss.found)}; {loss.fix}"


class Dumper(yaml.SafeDumper):
    """Writes YAML without aliases, and quotes text that some reader takes for another value."""

    def ignore_aliases(self, data: Any) -> bool:
        """Write equal values twice: people read policies."""
        return True


def text_node(dumper: Dumper, text: str) -> yaml.ScalarNode:
    """A text, in quotes if YAML parsers disagree on it: on, 0644, 1e9."""
    return dumper.represent_scalar(
        "tag:yaml.org,2002:str", text, style="'" if is_ambiguous(text) else None
    )


def is_ambiguous(text: str) -> bool:
    """Whether some YAML parser reads the bare text as another type."""
    try:
        return not (resolve(text) == text == resolve_as_kubectl(text))
    except ValueError:
        return True


Dumper.add_representer(str, text_node)


def as_yaml(policies: list[dict[str, Any]]) -> str:
    """The policies as one stream of YAML."""
    text = yaml.dump_all(policies, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=100)
    return str(text)
