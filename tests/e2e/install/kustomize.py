"""deploy/base and deploy/overlays, made from the chart: `python -m tests.e2e.install.kustomize --write`.

An overlay is a set of values of the chart, written down as the patches that lead there from the base.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import jsonpatch
import yaml

from tests.e2e.install.helm import NAMESPACE, ROOT, Json, is_hook, key_of, rendered
from webhook.interface import names

DEPLOY = ROOT / "deploy"
HEADER = "# Generated from deploy/chart by `make kustomize`; do not edit.\n"
OVERLAYS: dict[str, Json] = {
    "cert-manager": {"certificates": {"mode": "certManager"}},
    "create-claims": {"settings": {"createClaims": True}},
    "fail-open": {"hooks": {"failOpen": True}},
    "host-network": {"admission": {"hostNetwork": True, "port": 10943, "metricsPort": 10980}},
    "openshift": {"randomUserID": True},
    "scan": {"scan": {"everySeconds": 600}},
}
OF_HELM = ("app.kubernetes.io/managed-by", "helm.sh/chart", "helm.sh/resource-policy")


def plain(body: Json) -> Json:
    """An object without what only helm has a use for."""
    metadata = dict(body["metadata"])
    for member in ("labels", "annotations"):
        kept = metadata.pop(member, None) or {}
        kept = {key: each for key, each in kept.items() if key not in OF_HELM}
        if kept:
            metadata[member] = kept
    return {**body, "metadata": metadata}


def objects(values: Json | None = None) -> list[Json]:
    """What stands in the cluster with these values: no hooks, and the namespace itself."""
    own = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    return [own, *(plain(each) for each in rendered(values) if not is_hook(each))]


class Readable(yaml.SafeDumper):
    """Writes text of several lines as such."""


def written(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    """A text, as a block where it has several lines."""
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


Readable.add_representer(str, written)


def dumped(documents: Iterable[Any]) -> str:
    """YAML documents, as they are committed."""
    found = yaml.dump_all(list(documents), Dumper=Readable, sort_keys=False, width=100)
    return HEADER + str(found)


def kustomization(**members: Any) -> str:
    """One kustomization.yaml."""
    head = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization"}
    return dumped([head | {key: each for key, each in members.items() if each}])


def overlay(base: list[Json], wanted: list[Json]) -> dict[str, str]:
    """The files of one overlay by name."""
    old, new = ({key_of(each): each for each in found} for found in (base, wanted))
    gone = set(old) - set(new)
    assert not gone, f"an overlay takes nothing away, but this one {gone}"
    added = [each for key, each in new.items() if key not in old]
    patches = []
    for key, each in new.items():
        steps = jsonpatch.make_patch(old[key], each).patch if key in old else []
        if steps:
            target = {"kind": key[0], "name": key[2]} | ({"namespace": key[1]} if key[1] else {})
            patches.append({"target": target, "patch": yaml.safe_dump(steps, sort_keys=False)})
    files = {"added.yaml": dumped(added)} if added else {}
    resources = ["../../base", *files]
    return {**files, "kustomization.yaml": kustomization(resources=resources, patches=patches)}


def files() -> dict[Path, str]:
    """Every file by its path."""
    base = objects()
    crds = [each.full for each in names.ALL]
    found = {
        DEPLOY / "crds" / "kustomization.yaml": kustomization(
            resources=sorted(f"{name}.yaml" for name in crds)
        ),
        DEPLOY / "base" / "podgate.yaml": dumped(base),
        DEPLOY / "base" / "kustomization.yaml": kustomization(
            resources=["../crds", "podgate.yaml"]
        ),
    }
    for name, values in OVERLAYS.items():
        folder = DEPLOY / "overlays" / name
        for file, text in overlay(base, objects(values)).items():
            found[folder / file] = text
    return found


def main(arguments: list[str]) -> int:
    """`--write` writes every file; without it stale ones are named, exit code 1."""
    stale = {
        path: text
        for path, text in files().items()
        if not path.is_file() or path.read_text("utf-8") != text
    }
    for path, text in stale.items():
        name = path.relative_to(ROOT)
        if "--write" in arguments:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
        print(f"wrote {name}" if "--write" in arguments else f"{name} is stale: make kustomize")
    return 1 if stale and "--write" not in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
