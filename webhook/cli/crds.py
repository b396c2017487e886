"""podgate crds: the CustomResourceDefinitions of all documents that podgate reads from a cluster."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
import yaml

from webhook.cli import loading
from webhook.cluster.client import ApiError, ApiServer
from webhook.cluster.credentials import (
    Credentials,
    CredentialsError,
    Kubeconfig,
    find_credentials,
)
from webhook.interface import names
from webhook.policy.envelope import VERSION
from webhook.sources.files import shipped_folder

PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

Json = dict[str, Any]
Step = Literal["create", "update", "leave"]

crds = typer.Typer(
    no_args_is_help=True,
    help="Print or install the CustomResourceDefinitions of podgate, ResourceInterface and Karta.",
)
KubeconfigFile = Annotated[
    Path | None,
    typer.Option(
        "--kubeconfig",
        metavar="FILE",
        help="Path of a kubeconfig. Default: $KUBECONFIG, ~/.kube/config, or the Pod's service account.",
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Ask the API server, but change nothing.")]


def definitions() -> Iterator[Json]:
    """The two definitions of another project first, then podgate's own."""
    for each in names.ALL:
        text = (shipped_folder("deploy/crds") / f"{each.full}.yaml").read_text("utf-8")
        yield yaml.load(text, Loader=yaml.CSafeLoader)


@crds.command("print")
def print_all() -> None:
    """Print the CustomResourceDefinitions as YAML."""
    print(yaml.dump_all(definitions(), Dumper=yaml.CSafeDumper, sort_keys=False), end="")


@crds.command("install")
def install(kubeconfig: KubeconfigFile = None, dry_run: DryRun = False) -> None:
    """Create missing definitions and update those that podgate created. Leave all others alone.

    Exit code 0: done, 2: the API server did not answer or refused.
    """
    try:
        server = ApiServer(credentials_for(kubeconfig, os.environ))
        for line in asyncio.run(install_missing(server, dry_run=dry_run)):
            print(line)
    except (CredentialsError, ApiError) as error:
        loading.complain(f"error: {error}")
        raise typer.Exit(loading.BAD_INPUT) from None


def credentials_for(given: Path | None, environ: Mapping[str, str]) -> Credentials:
    """The credentials that kubectl would find; CredentialsError where there are none."""
    paths = (given,) if given else usual_kubeconfigs(environ)
    if paths:
        return Credentials(Kubeconfig(paths[0], paths[1:]))
    credentials = find_credentials(None, environ)
    if credentials is None:
        raise CredentialsError("no kubeconfig and no service account here; write --kubeconfig FILE")
    return credentials


def usual_kubeconfigs(environ: Mapping[str, str]) -> tuple[Path, ...]:
    """The files that KUBECONFIG names, else `~/.kube/config`; none where none is there."""
    named = tuple(Path(each) for each in environ.get("KUBECONFIG", "").split(os.pathsep) if each)
    if any(each.is_file() for each in named):
        return named
    usual = Path(environ.get("HOME") or "/") / ".kube" / "config"
    return (usual,) if usual.is_file() else ()


async def install_missing(server: ApiServer, *, dry_run: bool) -> list[str]:
    """Install what is missing; one line on each definition, as kubectl has it. Raises ApiError."""
    lines = []
    for ours in definitions():
        name = ours["metadata"]["name"]
        done = await install_one(server, ours, dry_run=dry_run)
        suffix = " (server dry run)" if dry_run else ""
        lines.append(f"customresourcedefinition.apiextensions.k8s.io/{name} {done}{suffix}")
    return lines


async def install_one(server: ApiServer, ours: Json, *, dry_run: bool) -> str:
    """Create or update one definition; what was done, or why it was left alone."""
    path = f"{PATH}/{ours['metadata']['name']}"
    found = await server.find(path)
    match step_for(found):
        case "create":
            await server.create(PATH, ours, dry_run=dry_run)
            return "created"
        case "update":
            now = await server.apply(path, ours, dry_run=dry_run)
            return "unchanged" if generation(now) == generation(found) else "configured"
        case "leave":
            return why_left(found or {})


def generation(found: Json | None) -> Any:
    """The generation of the spec."""
    return ((found or {}).get("metadata") or {}).get("generation")


def step_for(found: Json | None) -> Step:
    """What to do about one definition, given what the cluster has under its name."""
    if found is None:
        return "create"
    return "update" if is_ours(found) else "leave"


def is_ours(found: Json) -> bool:
    """Whether a definition in the cluster has podgate's label, and so was installed by podgate."""
    metadata = found.get("metadata")
    labels = metadata.get("labels") if isinstance(metadata, dict) else None
    return isinstance(labels, dict) and labels.get(names.PROVIDED) == "true"


def why_left(found: Json) -> str:
    """The message on a definition that somebody else installed."""
    versions = [
        str(each.get("name"))
        for each in (found.get("spec") or {}).get("versions") or ()
        if isinstance(each, dict) and each.get("served")
    ]
    text = f"left alone: it has no label {names.PROVIDED}, so it is its owner's"
    if VERSION in versions:
        return text
    served = ", ".join(versions) or "no version"
    return f"{text}; it serves {served}, podgate reads {VERSION} only"
