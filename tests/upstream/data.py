"""A folder of upstream CRDs and sample objects, made from pinned archives in the user's cache.

The first run of tests makes it (`folder`), later ones use it again; its name is a hash of all that it
is made from. Nothing beside the clone is read.
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.e2e.testbed import cache, upstream
from tests.reviews import samples
from tests.upstream import outlines
from webhook.documents.yaml_source import read_documents
from webhook.pods.coverage import pod_like

TRAINING = ("jaxjobs", "mpijobs", "paddlejobs", "pytorchjobs", "tfjobs", "xgboostjobs")
OWN = Path(__file__).with_name("own")
"""Objects of our own for kinds without samples."""
CRDS = {
    **{f"{each}.kubeflow.org": ("training-operator", f"{each}.kubeflow.org") for each in TRAINING},
    "mpijobs.kubeflow.org.v2beta1": ("operators/mpi-operator", "mpijobs.kubeflow.org"),
    "clustertrainingruntimes.trainer.kubeflow.org": (
        "operators/trainer",
        "clustertrainingruntimes.trainer.kubeflow.org",
    ),
    "trainjobs.trainer.kubeflow.org": ("operators/trainer", "trainjobs.trainer.kubeflow.org"),
    "inferenceservices.serving.kserve.io": ("kserve", "inferenceservices.serving.kserve.io"),
    "llminferenceservices.serving.kserve.io": ("kserve", "llminferenceservices.serving.kserve.io"),
    "jobs.batch.volcano.sh": ("volcano", "jobs.batch.volcano.sh"),
    "jobsets.jobset.x-k8s.io": ("jobset", "jobsets.jobset.x-k8s.io"),
    "leaderworkersets.leaderworkerset.x-k8s.io": (
        "lws",
        "leaderworkersets.leaderworkerset.x-k8s.io",
    ),
    "rayclusters.ray.io": ("kuberay-newer", "rayclusters.ray.io"),
    "rayjobs.ray.io": ("kuberay-newer", "rayjobs.ray.io"),
    "rayservices.ray.io": ("kuberay-newer", "rayservices.ray.io"),
    "services.serving.knative.dev": ("knative", "services.serving.knative.dev"),
    "sparkapplications.sparkoperator.k8s.io": (
        "spark-operator",
        "sparkapplications.sparkoperator.k8s.io",
    ),
    "workflows.argoproj.io": ("argo", "workflows.argoproj.io"),
}
"""File of a CRD -> the project whose archive has it, and its name there."""

SAMPLES = {
    "argo": 60,
    "argo-rollouts": 10,
    "jobset": 20,
    "knative": 20,
    "kserve": 60,
    "kuberay-newer": 40,
    "lws": 20,
    "operators/lws": 20,
    "operators/mpi-operator": 10,
    "spark-operator": 20,
    "tekton": 40,
    "trainer": 20,
    "training-operator": 30,
    "volcano": 30,
}
"""Projects whose samples are used, and how many files of each at most, evenly spaced."""


@functools.cache
def folder() -> Path:
    """The folder with `crds/` and `manifests/`; raises MissingTestbed where archives are missing."""
    home = cache.root() / "data"
    found = home / _key()
    if found.is_dir():
        return found
    with cache.locked(home):
        if not found.is_dir():
            with cache.step(f"reading CRDs and samples of other projects into {found}"):
                made = Path(tempfile.mkdtemp(dir=home))
                _write_crds(made / "crds")
                _write_samples(made / "manifests")
                samples.write(made / "reviews")
                made.replace(found)
    return found


def _key() -> str:
    pins = (project.pins / "go.sum" for project in upstream.PROJECTS.values())
    modules = (__file__, outlines.__file__, upstream.__file__, samples.__file__)
    own = (
        *map(Path, modules),
        outlines.FILE,
        outlines.NEWER,
        *OWN.iterdir(),
        *samples.FOLDER.glob("*.json"),
    )
    digest = hashlib.sha256()
    for file in sorted({*pins, *own}):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


def without_descriptions(schema: Any, names: bool = False) -> Any:
    """A schema without its descriptions, which no test reads; `names` where keys are fields."""
    if isinstance(schema, dict):
        return {
            key: without_descriptions(value, key == "properties" and not names)
            for key, value in schema.items()
            if names or key != "description"
        }
    return [*map(without_descriptions, schema)] if isinstance(schema, list) else schema


def _write_crds(into: Path) -> None:
    into.mkdir()
    found = {
        file: outlines.with_newer(file, upstream.crd(project, name))
        for file, (project, name) in CRDS.items()
    }
    for file, crd in {**found, **outlines.crds()}.items():
        slim = without_descriptions(crd)
        # JSON is YAML too, and much faster to write.
        (into / f"{file}.yaml").write_text(json.dumps(slim, indent=1), "utf-8")


def _write_samples(into: Path) -> None:
    into.mkdir()
    shutil.copytree(OWN, into / OWN.name)
    for project, most in SAMPLES.items():
        root = upstream.module_dir(project)
        files = [(path, kept) for path in _files(root, project) if (kept := workloads(path))]
        for path, kept in files[:: -(-len(files) // most) or 1]:
            name = re.sub(r"[^A-Za-z0-9.-]", "_", str(path.relative_to(root)))
            target = into / project.replace("/", "_") / f"{name.rpartition('.')[0]}.yaml"
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text("\n---\n".join(json.dumps(each, indent=1) for each in kept), "utf-8")


def _files(root: Path, project: str) -> Iterator[Path]:
    for path in sorted((root / upstream.PROJECTS[project].samples).rglob("*")):
        if path.suffix in {".yaml", ".yml"} and path.is_file():
            yield path


def workloads(path: Path) -> list[Any]:
    """The documents of a sample file that hold pods; none of a file that is no YAML."""
    documents, problems = read_documents(path.read_bytes(), path.name, kubernetes=True)
    if problems:
        return []
    return [each.data for each in documents if _is_workload(each.data)]


def _is_workload(document: Any) -> bool:
    named = isinstance(document, dict) and isinstance(document.get("apiVersion"), str)
    return named and isinstance(document.get("kind"), str) and bool(pod_like(document))
