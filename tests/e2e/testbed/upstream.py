"""Reads CRDs and samples of other projects out of their pinned module archives."""

import functools
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.e2e.testbed import cache, golang
from tests.e2e.testbed.missing import MissingTestbed

PINS = cache.HERE / "upstream"
OPERATORS = cache.HERE / "operators"
DRA_DRIVER = cache.HERE / "dra_driver"


@dataclass(frozen=True, slots=True)
class Project:
    """A Go module, the folders in it that hold CRDs and sample manifests, and what pins it.

    `version` is needed where `go.sum` pins several of one module.
    """

    module: str
    crds: str
    samples: str
    version: str = ""
    pins: Path = PINS


PROJECTS = {
    "training-operator": Project(
        "github.com/kubeflow/training-operator", "manifests/base/crds", "examples"
    ),
    "jobset": Project("sigs.k8s.io/jobset", "config/components/crd/bases", "site/static/examples"),
    "kuberay": Project(
        "github.com/ray-project/kuberay/ray-operator",
        "config/crd/bases",
        "config/samples",
        "v1.4.2",
    ),
    # The operator that clusters run in these tests is older than RayCronJob.
    "kuberay-newer": Project(
        "github.com/ray-project/kuberay/ray-operator",
        "config/crd/bases",
        "config/samples",
        "v1.6.1",
    ),
    "argo": Project(
        "github.com/argoproj/argo-workflows/v3", "manifests/base/crds/full", "examples"
    ),
    "argo-rollouts": Project("github.com/argoproj/argo-rollouts", "manifests/crds", "examples"),
    "knative": Project("knative.dev/serving", "config/core/300-resources", "test/test_images"),
    "kserve": Project("github.com/kserve/kserve", "config/crd/full", "docs/samples"),
    "tekton": Project("github.com/tektoncd/pipeline", "config/300-crds", "examples"),
    "lws": Project("sigs.k8s.io/lws", "config/crd/bases", "config/samples"),
    "spark-operator": Project(
        "github.com/kubeflow/spark-operator/v2", "config/crd/bases", "examples"
    ),
    "trainer": Project(
        "github.com/kubeflow/trainer/v2", "manifests/base/crds", "examples", "v2.2.0"
    ),
    # The release in between, whose TrainJob has overrides of another name.
    "trainer-older": Project(
        "github.com/kubeflow/trainer/v2", "manifests/base/crds", "examples", "v2.1.0"
    ),
    "volcano": Project("volcano.sh/volcano", "config/crd", "example"),
    # Those that run here, each of the version that its program is built of.
    "operators/training-operator": Project(
        "github.com/kubeflow/training-operator",
        "manifests/base/crds",
        "examples",
        pins=OPERATORS / "training-operator",
    ),
    "operators/jobset": Project(
        "sigs.k8s.io/jobset",
        "config/components/crd/bases",
        "site/static/examples",
        pins=OPERATORS / "jobset",
    ),
    "operators/kuberay": Project(
        "github.com/ray-project/kuberay/ray-operator",
        "config/crd/bases",
        "config/samples",
        pins=OPERATORS / "kuberay",
    ),
    "operators/argo": Project(
        "github.com/argoproj/argo-workflows/v3",
        # As installed by default: an API server refuses the full ones.
        "manifests/base/crds/minimal",
        "examples",
        pins=OPERATORS / "argo",
    ),
    "operators/kserve": Project(
        "github.com/kserve/kserve", "config/crd/full", "docs/samples", pins=OPERATORS / "kserve"
    ),
    "operators/knative": Project(
        "knative.dev/serving", "config/core/300-resources", "test", pins=OPERATORS / "knative"
    ),
    "operators/knative-networking": Project(
        "knative.dev/networking", "config", "test", pins=OPERATORS / "knative"
    ),
    "operators/knative-caching": Project(
        "knative.dev/caching", "config", "test", pins=OPERATORS / "knative"
    ),
    "operators/lws": Project(
        "sigs.k8s.io/lws", "config/crd/bases", "docs/examples", pins=OPERATORS / "lws"
    ),
    "operators/mpi-operator": Project(
        "github.com/kubeflow/mpi-operator",
        "manifests/base",
        "examples",
        pins=OPERATORS / "mpi-operator",
    ),
    "operators/spark-operator": Project(
        "github.com/kubeflow/spark-operator/v2",
        "config/crd/bases",
        "examples",
        pins=OPERATORS / "spark-operator",
    ),
    "operators/trainer": Project(
        "github.com/kubeflow/trainer/v2",
        "manifests/base/crds",
        "examples",
        pins=OPERATORS / "trainer",
    ),
}

BUILT = {
    "kruise": Project("github.com/openkruise/kruise", "config/crd/bases", "docs"),
    "kubevirt": Project("kubevirt.io/kubevirt", "", "examples"),
    "dra-driver": Project(
        "sigs.k8s.io/dra-driver-nvidia-gpu",
        "deployments/helm/dra-driver-nvidia-gpu/crds",
        "demo/specs",
        pins=DRA_DRIVER / "0.5",
    ),
}
"""Projects that only some tests read: of operators' defaults, and of devices."""


def find(name: str) -> Project:
    """Return the project of this name."""
    return BUILT.get(name) or PROJECTS[name]


def module_dir(name: str) -> Path:
    """Return the unpacked archive of project `name`; raises MissingTestbed."""
    return archive(find(name))


@functools.cache
def archive(project: Project) -> Path:
    """Return the unpacked archive of a project, equal to what its `go.sum` pins.

    Only that archive is fetched, none of the modules it requires. Raises MissingTestbed.
    """
    module, pins = project.module, project.pins
    version, pinned = _pin(pins, module, project.version)
    told = golang.find().run("mod", "download", "-json", f"{module}@{version}", folder=pins)
    answer = json.loads(told)
    if answer["Sum"] != pinned:
        raise MissingTestbed(
            f"{module}@{version} is {answer['Sum']}, pinned is {pinned}.",
            f"Somebody changed the archive or {pins / 'go.sum'}: find out who.",
        )
    return Path(answer["Dir"])


def version(name: str) -> str:
    """Return the pinned version of project `name`, without fetching anything."""
    project = find(name)
    return _pin(project.pins, project.module, project.version)[0]


def crds(name: str) -> list[dict[str, Any]]:
    """Return the CustomResourceDefinitions of project `name`, sorted by name."""
    folder = module_dir(name) / find(name).crds
    documents = [
        document
        for path in sorted(folder.glob("*.yaml"))
        for document in yaml.load_all(path.read_text("utf-8"), yaml.CSafeLoader)
        if isinstance(document, dict) and document.get("kind") == "CustomResourceDefinition"
    ]
    return sorted(documents, key=lambda crd: str(crd["metadata"]["name"]))


@functools.cache
def crd(project: str, name: str) -> dict[str, Any]:
    """Return one CustomResourceDefinition of a project by name; the others are not parsed.

    Raises MissingTestbed where the archive cannot be had, LookupError where it lacks the CRD.
    """
    kind, line = "\nkind: CustomResourceDefinition\n", f"\n  name: {name}\n"
    for path in sorted((module_dir(project) / find(project).crds).rglob("*.yaml")):
        text = path.read_text("utf-8")
        if line not in text or kind not in text:
            continue
        for document in filter(None, yaml.load_all(text, yaml.CSafeLoader)):
            if "versions" in document["spec"]:  # others are patches
                return dict(document)
    raise LookupError(f"the archive of {project} has no CRD {name}")


def samples(name: str) -> list[Path]:
    """Return the YAML files below the samples folder of project `name`, sorted."""
    folder = module_dir(name) / find(name).samples
    return sorted(path for path in folder.rglob("*") if path.suffix in {".yaml", ".yml"})


def _pin(pins: Path, module: str, wanted: str) -> tuple[str, str]:
    for line in (pins / "go.sum").read_text("utf-8").splitlines():
        path, version, digest = line.split()
        if path == module and not version.endswith("/go.mod") and wanted in ("", version):
            return version, digest
    raise ValueError(f"{pins / 'go.sum'} does not pin {module}")
