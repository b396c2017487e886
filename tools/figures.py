"""Prints figures of the code: its size, its names, and the way of one review through it.

    python -m tools.figures            this checkout
    python -m tools.figures FOLDER     another checkout, such as an older commit

They are figures to look at before and after a change of the layout; nothing fails by them.
"""

from __future__ import annotations

import ast
import asyncio
import importlib
import itertools
import json
import re
import statistics
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

SHIPPED, ALL = ("webhook", "certs"), ("webhook", "certs", "tools")
PARTICIPLE = re.compile(
    r"[a-z]+ed|told|said|seen|made|held|kept|found|given|taken|known|shown|written|meant|left|built|sent|chosen"
)
VERBS = {"feed", "need", "seed", "speed", "embed", "exceed", "proceed"}
OBJECTS = {
    "Deployment": (
        "apps/v1",
        {"template": {"spec": {"containers": [{"name": "a", "image": "a:1"}]}}},
    ),
    "PyTorchJob": (
        "kubeflow.org/v1",
        {
            "pytorchReplicaSpecs": {
                role: {"template": {"spec": {"containers": [{"name": "pytorch", "image": "a:1"}]}}}
                for role in ("Master", "Worker")
            }
        },
    ),
}
POLICY = {
    "defaults": {"imagePullPolicy": "Always"},
    "rules": {"imagePullPolicy": {"canEdit": False}, "compute": {"gpuDevicesRequest": {"max": 4}}},
}


def sources(top: Path, folders: tuple[str, ...]) -> dict[str, str]:
    """The text of every module."""
    return {
        str(file.relative_to(top)): file.read_text("utf-8")
        for folder in folders
        for file in sorted((top / folder).rglob("*.py"))
    }


def functions(texts: dict[str, str]) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Every function and method."""
    for text in texts.values():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield node


def is_participle(name: str) -> bool:
    """Whether a name is one word that hides who does what."""
    word = name.strip("_")
    return PARTICIPLE.fullmatch(word) is not None and word not in VERBS


def size(top: Path) -> Iterator[tuple[str, str]]:
    """Figures that the texts alone give."""
    texts = sources(top, ALL)
    shipped = sources(top, SHIPPED)
    lines = {name: text.count("\n") + 1 for name, text in texts.items()}
    definitions = list(functions(texts))
    lengths = sorted((each.end_lineno or 0) - each.lineno + 1 for each in definitions)
    named = sum(is_participle(each.name) for each in definitions)
    folders = Counter(name.rpartition("/")[0] for name in shipped)
    probes = sum(len(re.findall(r"\b(?:getattr|hasattr)\(", text)) for text in shipped.values())
    importers: dict[str, set[str]] = {}
    for name, text in shipped.items():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and node.module:
                for module in (node.module, *(f"{node.module}.{each.name}" for each in node.names)):
                    importers.setdefault(module, set()).add(name)
    modules = [name[:-3].replace("/", ".") for name in shipped]
    folder, most = folders.most_common(1)[0]
    yield "modules, shipped / with tools", f"{len(shipped)} / {len(texts)}"
    yield (
        "lines, shipped / with tools",
        f"{sum(lines[each] for each in shipped):,} / {sum(lines.values()):,}",
    )
    yield (
        "module: median, longest",
        f"{statistics.median(lines.values()):.0f}, {max(lines.values())}",
    )
    yield "function: median, longest", f"{statistics.median(lengths):.0f}, {lengths[-1]}"
    yield "fullest folder", f"{folder}: {most} modules"
    yield (
        "functions named by a bare participle",
        f"{named} of {len(definitions)} ({named / len(definitions):.1%})",
    )
    yield "getattr and hasattr", str(probes)
    yield (
        "modules with one importer",
        str(sum(len(importers.get(each, ())) == 1 for each in modules)),
    )


def contracts(top: Path) -> Iterator[tuple[str, str]]:
    """Layers, and exceptions from import contracts."""
    found = tomllib.loads((top / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]
    layers = [len(each["layers"]) for each in found["contracts"] if each["type"] == "layers"]
    ignored = sum(len(each.get("ignore_imports", ())) for each in found["contracts"])
    yield "layers, by contract", ", ".join(map(str, layers))
    yield "exceptions from contracts", str(ignored)


def first_of(*names: str) -> Any:
    """The first module of these names that there is: older layouts have others."""
    for name in names:
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError:
            continue
    raise SystemExit(f"none of {', '.join(names)} is here")


def first_name(module: Any, *names: str) -> Any:
    """The first of these names that the module has: older versions have others."""
    return next(getattr(module, name) for name in names if hasattr(module, name))


def review_of(kind: str) -> bytes:
    """The AdmissionReview of a new object."""
    group, _, version = OBJECTS[kind][0].rpartition("/")
    body = {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
            "kind": {"group": group, "version": version, "kind": kind},
            "resource": {"group": group, "version": version, "resource": f"{kind.lower()}s"},
            "namespace": "default",
            "name": "a",
            "operation": "CREATE",
            "userInfo": {"username": "someone"},
            "object": {
                "apiVersion": OBJECTS[kind][0],
                "kind": kind,
                "metadata": {"name": "a"},
                "spec": OBJECTS[kind][1],
            },
        },
    }
    return json.dumps(body).encode()


def hops(kind: str) -> list[str]:
    """The functions on the way from the HTTP app to `decide`, both included."""
    building = importlib.import_module("tests.building")
    app = importlib.import_module("webhook.server.app")
    serve = importlib.import_module("webhook.cli.serve")
    stage = first_of("webhook.evaluation.request", "webhook.core.request").Stage.MUTATE
    build_judge = first_name(serve, "build_judge", "judge_over")
    catalog = building.catalog(building.policy("", **POLICY))
    reviews = app.Reviews(app.State(build_judge(catalog)), lambda _: None)
    scope = {
        "type": "http",
        "method": "POST",
        "path": f"/{stage.value}",
        "query_string": b"timeout=10s",
        "headers": [(b"content-type", b"application/json")],
    }
    found: list[str] = []

    def watch(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event != "call" or found or code.co_name != "decide":
            return
        each: FrameType | None = frame
        if not code.co_filename.endswith(("decision/decide.py", "core/decide.py")):
            return
        while each is not None and "/webhook/" in each.f_code.co_filename:
            found.append(each.f_code.co_qualname)
            each = each.f_back

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": review_of(kind)}

    async def send(message: Any) -> None:
        return None

    async def call() -> None:
        sys.setprofile(watch)
        try:
            await app.App(reviews, None)(scope, receive, send)
        finally:
            sys.setprofile(None)

    asyncio.run(call())
    return found[::-1]


def way(kind: str) -> tuple[int, int, int]:
    """Modules that one review enters, switches between them, and the deepest call."""
    building = importlib.import_module("tests.building")
    judge = importlib.import_module("webhook.admission.judge")
    decide_review = first_name(judge, "decide_review", "judge_review")
    review = importlib.import_module("webhook.admission.review")
    stage = first_of("webhook.evaluation.request", "webhook.core.request").Stage.MUTATE
    references = first_of("webhook.evaluation.references", "webhook.core.references").References()
    catalog = building.catalog(building.policy("", **POLICY))
    body = review_of(kind)
    entered: list[str] = []
    depth = deepest = 0

    def watch(frame: FrameType, event: str, _: object) -> None:
        nonlocal depth, deepest
        name = frame.f_code.co_filename
        if "/webhook/" not in name:
            return
        if event == "call":
            depth += 1
            deepest = max(deepest, depth)
            entered.append(name.partition("/webhook/")[2])
        elif event == "return":
            depth -= 1

    def decide() -> None:
        request = review.parse_review(body, stage)
        review.respond(request, decide_review(request, catalog, references))

    decide()  # what is compiled once is compiled now
    sys.setprofile(watch)
    try:
        decide()
    finally:
        sys.setprofile(None)
    switches = sum(one != other for one, other in itertools.pairwise(entered))
    return len(set(entered)), switches, deepest


def main() -> int:
    """Print the figures as a table."""
    top = Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    if top != Path.cwd():
        return subprocess.run([sys.executable, __file__, str(top)], cwd=top, check=False).returncode
    sys.path.insert(0, str(top))
    rows = [*size(top), *contracts(top)]
    for kind in OBJECTS:
        modules, switches, deepest = way(kind)
        rows.append((f"one review of a {kind}: modules, switches", f"{modules}, {switches}"))
        rows.append((f"one review of a {kind}: deepest call", str(deepest)))
    frames = hops("Deployment")
    rows.append(("functions from the HTTP app to decide", f"{len(frames)}: {' > '.join(frames)}"))
    for name, value in rows:
        print(f"{name:45} {value}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
