"""podgate interface tree: an object of a cluster and the objects that it owns, with their states."""

from __future__ import annotations

import asyncio
import os
from typing import Annotated, Any
from urllib.parse import quote

import typer

from webhook.access.tree import KindName, Node, child_kinds, metadata_of, trees, walk
from webhook.cli import definitions, loading
from webhook.cli.crds import KubeconfigFile, credentials_for
from webhook.cli.interface_show import Branch, draw
from webhook.cli.lint import write_json
from webhook.cluster.client import ApiError, ApiServer
from webhook.cluster.credentials import CredentialsError
from webhook.cluster.discovery import discover_resources
from webhook.cluster.list_and_watch import read_pages
from webhook.documents import texts
from webhook.libjq.evaluator import get_evaluator
from webhook.pods.definition import Definition
from webhook.sources.files import read_all

Target = Annotated[
    str, typer.Argument(metavar="KIND/NAME", help="The object, such as jobset/training.")
]
Files = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="FILE…",
        help="Objects as `kubectl get -o yaml` prints them, or - for stdin. Without it: ask the cluster.",
    ),
]
Namespace = Annotated[
    str, typer.Option("--namespace", "-n", help="Namespace of the object in the cluster.")
]
Given = Annotated[
    list[str] | None,
    typer.Option("--interfaces", metavar="PATH", help="More definitions. Repeatable."),
]
Output = Annotated[str, typer.Option("--output", "-o", help="text or json.")]
Json = dict[str, Any]
PAGE = 500
FORBIDDEN = 403
MOST = 20_000


def tree(
    target: Target,
    files: Files = None,
    namespace: Namespace = "default",
    interfaces: Given = None,
    kubeconfig: KubeconfigFile = None,
    output: Output = "text",
) -> None:
    """Draw an object and all objects below it, by owner references, with the state of each.

    With files, asks no cluster. Without, needs the rights `get` on the object and `list` on the
    kinds that its definition names; leaves out kinds that it may not list.
    Exit code 0: drawn, 1: no such object, 2: bad input.
    """
    try:
        loading.check_choice(output, ("text", "json"), "--output")
        known = definitions.all_of(interfaces or [])
        kind, name = split_target(target)
        definition = definitions.one_named(known, kind)
        if files:
            objects = from_files(files)
        else:
            server = ApiServer(credentials_for(kubeconfig, os.environ))
            objects = asyncio.run(from_cluster(server, definition, name, namespace, known))
    except (ApiError, CredentialsError) as error:
        loading.complain(f"error: {error}")
        raise typer.Exit(loading.BAD_INPUT) from None
    except loading.BadInput:
        raise typer.Exit(loading.BAD_INPUT) from None
    find = definitions.finder(known)
    found = [
        node
        for root in trees(objects, find, get_evaluator())
        for node in walk(root)
        if is_target(node.body, definition, name)
    ]
    if not found:
        where = ", ".join(files) if files else f"namespace {namespace}"
        message = f"no {definitions.label(definition)} {name} in {where}"
        loading.complain(f"error: {texts.clean(message)}; check kind and name")
        raise typer.Exit(1)
    if output == "json":
        bodies = [as_json(each) for each in found]
        write_json(bodies[0] if len(bodies) == 1 else bodies)
        return
    for each in found:
        draw(branch_of(each))


def split_target(target: str) -> tuple[str, str]:
    """Kind and name of a target; BadInput after reporting the problem."""
    kind, slash, name = target.partition("/")
    if not slash or not kind or not name or "/" in name:
        loading.complain(
            f"error: found {texts.quote(target)}; write KIND/NAME, such as jobset/training"
        )
        raise loading.BadInput
    return kind, name


def from_files(files: list[str]) -> list[Json]:
    """The objects of the files, with lists replaced by their items."""
    documents, problems = read_all(files, kubernetes=True)
    loading.print_problems(problems)
    if problems:
        raise loading.BadInput
    unpacked = definitions.unpack_lists(documents)
    return [each.data for each in unpacked if isinstance(each.data, dict)]


async def from_cluster(
    server: ApiServer, definition: Definition, name: str, namespace: str, known: definitions.Known
) -> list[Json]:
    """The object, and the objects of all kinds below it in its namespace; raises ApiError.

    Kinds that may not be listed are skipped with a warning: few users may list all of them.
    """
    served = kinds_served(await discover_resources(server))
    key = (definition.interface.group, definition.interface.kind)
    if key not in served:
        raise ApiError(0, f"the cluster does not serve {definitions.label(definition)}")
    body = await server.find(f"{path_of(key, served[key], namespace)}/{quote(name, safe='')}")
    if body is None:
        return []
    found = [body]
    for kind in sorted(child_kinds(key, known)):
        if kind not in served:
            continue
        try:
            found += await list_objects(server, kind, path_of(kind, served[kind], namespace))
        except ApiError as error:
            if error.code != FORBIDDEN:
                raise
            loading.complain(f"warning: {'.'.join(filter(None, (kind[1], kind[0])))}: {error}")
    return found


async def list_objects(server: ApiServer, kind: KindName, path: str) -> list[Json]:
    """All objects of a kind, page by page, with the kind that lists omit."""
    found: list[Json] = []
    async for page in read_pages(server, path):
        found += [{**each, "apiVersion": page.api_version, "kind": kind[1]} for each in page.items]
        if len(found) > MOST:
            raise ApiError(0, f"more than {MOST} objects at {path}")
    return found


def kinds_served(lists: list[Json]) -> dict[KindName, tuple[str, str]]:
    """Version and plural name of each kind in namespaces, by the server's preferred version."""
    found: dict[KindName, tuple[str, str]] = {}
    for item in (each for body in lists for each in body.get("items") or ()):
        group = str(metadata_of(item).get("name") or "")
        for version in item.get("versions") or ():
            for each in version.get("resources") or ():
                kind = str((each.get("responseKind") or {}).get("kind"))
                if each.get("scope") == "Namespaced":
                    row = (str(version.get("version")), str(each.get("resource")))
                    found.setdefault((group, kind), row)
    return found


def path_of(kind: KindName, served: tuple[str, str], namespace: str) -> str:
    """The path of a collection in a namespace."""
    version, plural = served
    base = f"/apis/{kind[0]}/{version}" if kind[0] else f"/api/{version}"
    return f"{base}/namespaces/{quote(namespace, safe='')}/{plural}"


def is_target(body: Any, definition: Definition, name: str) -> bool:
    """Whether an object is the requested one."""
    group, _, kind = definitions.kind_of_object(body)
    own = (definition.interface.group, definition.interface.kind)
    return (group, kind) == own and metadata_of(body).get("name") == name


def title(node: Node) -> str:
    """Kind, name, state and component of one object."""
    name = f"{node.body.get('kind')}/{metadata_of(node.body).get('name')}"
    state = node.state or (f"state unknown: {node.problem}" if node.problem else "")
    of = f"{node.component} {node.instance}".strip()
    return "  ".join(filter(None, (name, state, f"({of})" if of else "")))


def branch_of(node: Node) -> Branch:
    """The tree as lines."""
    top = Branch(title(node))
    stack = [(node, top)]
    while stack:
        each, branch = stack.pop()
        stack += [(child, branch.add(title(child))) for child in each.children]
    return top


def as_json(node: Node) -> Json:
    """The tree as JSON."""
    metadata = metadata_of(node.body)
    return {
        "apiVersion": node.body.get("apiVersion"),
        "kind": node.body.get("kind"),
        "namespace": metadata.get("namespace"),
        "name": metadata.get("name"),
        "state": node.state or None,
        "problem": node.problem or None,
        "component": node.component or None,
        "instance": node.instance or None,
        "children": [as_json(each) for each in node.children],
    }
