"""podgate crds: the CustomResourceDefinitions of all documents that a cluster may hold for podgate."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import httptools
import orjson
import typer
import yaml

from webhook.cli import loading
from webhook.cluster import namespaces as kubernetes
from webhook.cluster.namespaces import Access, AccessError, Credentials
from webhook.controller.crds import Json, step_for, why_left
from webhook.interface import names
from webhook.sources.files import shipped_folder

PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
MANAGER = "fieldManager=podgate"
APPLY = "application/apply-patch+yaml"
PATIENCE = 10.0

crds = typer.Typer(
    no_args_is_help=True,
    help="CustomResourceDefinitions: podgate's own, and ResourceInterface and Karta where their owner's"
    " are not.",
)
KubeconfigFile = Annotated[
    Path | None,
    typer.Option(
        "--kubeconfig",
        metavar="FILE",
        help="Where the cluster is; absent: $KUBECONFIG, ~/.kube/config, the Pod's own account.",
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Ask the server, write nothing.")]


def definitions() -> Iterator[Json]:
    """Those of the two kinds that have an owner elsewhere, then ours."""
    for each in names.ALL:
        text = (shipped_folder("deploy/crds") / f"{each.full}.yaml").read_text("utf-8")
        yield yaml.load(text, Loader=yaml.CSafeLoader)


class Refused(Exception):  # noqa: N818 - the answer of a server, told to people
    """What the API server said instead of doing it."""


@crds.command("print")
def print_all() -> None:
    """Print them as YAML, as deploy/crds has them."""
    print(yaml.dump_all(definitions(), Dumper=yaml.CSafeDumper, sort_keys=False), end="")


@crds.command("install")
def install(kubeconfig: KubeconfigFile = None, dry_run: DryRun = False) -> None:
    """Create those that the cluster lacks, renew those that podgate brought, leave all others alone.

    Exit code 0: done, 2: the API server cannot be asked or says no.
    """
    try:
        access = access_of(kubeconfig, os.environ)
        for line in asyncio.run(installed(access, dry_run=dry_run)):
            print(line)
    except (AccessError, Refused) as error:
        loading.complain(f"error: {error}")
        raise typer.Exit(loading.BAD_INPUT) from None
    except TimeoutError:
        loading.complain(f"error: the API server did not answer in {PATIENCE:g} s")
        raise typer.Exit(loading.BAD_INPUT) from None
    except (OSError, ValueError, httptools.HttpParserError) as error:
        told = kubernetes.reason_of(error)
        loading.complain(f"error: asking the API server failed: {told}")
        raise typer.Exit(loading.BAD_INPUT) from None


def access_of(given: Path | None, environ: Mapping[str, str]) -> Access:
    """The way to the cluster as kubectl would find it; AccessError when there is none."""
    return credentials_for(given, environ).current()


def credentials_for(given: Path | None, environ: Mapping[str, str]) -> Credentials:
    """What shows who asks, as kubectl would find it; AccessError when there is nothing."""
    path = given or next((each for each in usual(environ) if each.is_file()), None)
    credentials = kubernetes.credentials_of(path, environ)
    if credentials is None:
        raise AccessError("no kubeconfig and no service account here; write --kubeconfig FILE")
    return credentials


def usual(environ: Mapping[str, str]) -> Iterator[Path]:
    """Where a kubeconfig usually is."""
    yield from (Path(each) for each in environ.get("KUBECONFIG", "").split(os.pathsep) if each)
    if home := environ.get("HOME"):
        yield Path(home) / ".kube" / "config"


async def installed(access: Access, *, dry_run: bool) -> list[str]:
    """Install what is missing; one line on each definition, as kubectl has it."""
    told = []
    for ours in definitions():
        async with asyncio.timeout(PATIENCE):
            name = ours["metadata"]["name"]
            done = await put(access, ours, "&dryRun=All" if dry_run else "")
            suffix = " (server dry run)" if dry_run else ""
            told.append(f"customresourcedefinition.apiextensions.k8s.io/{name} {done}{suffix}")
    return told


async def put(access: Access, ours: Json, dry: str) -> str:
    """Bring one definition in, or tell why it was left alone."""
    place = f"{PATH}/{ours['metadata']['name']}"
    found = await asked(access, "GET", place)
    match step_for(found):
        case "create":
            await asked(access, "POST", f"{PATH}?{MANAGER}{dry}", ours)
            return "created"
        case "update":
            query = f"?{MANAGER}&force=true{dry}"
            now = await asked(access, "PATCH", f"{place}{query}", ours)
            return "unchanged" if generation(now) == generation(found) else "configured"
        case "leave":
            return why_left(found or {})


def generation(found: Json | None) -> Any:
    """How often the spec has changed."""
    return ((found or {}).get("metadata") or {}).get("generation")


async def asked(access: Access, method: str, path: str, body: Json | None = None) -> Json | None:
    """What the API server answers, None when there is no such object; raises Refused."""
    data = b"" if body is None else orjson.dumps(body)
    content = APPLY if method == "PATCH" else "application/json"
    status, answer = await kubernetes.request(access, method, path, data, content=content)
    if method == "GET" and status == 404 and kubernetes.is_status(answer):
        return None
    if status not in {200, 201}:
        raise Refused(f"the API server answered {status} to {method} {path}: {message_of(answer)}")
    try:
        found = orjson.loads(answer)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise Refused(f"the API server answered {method} {path} with no object")
    return found


def message_of(answer: bytes) -> str:
    """The sentence of a refusal."""
    try:
        found = orjson.loads(answer)
    except ValueError:
        return "(no message)"
    return str(found.get("message")) if isinstance(found, dict) else "(no message)"
