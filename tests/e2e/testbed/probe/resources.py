"""The defaults that are calculated rather than set: pull policies and resource requests.

Each rule is stated here as a check of an answer; a rule enters the table for the kinds whose
answers all pass.
"""

from collections.abc import Callable, Iterator

from tests.e2e.testbed.probe.inputs import IMAGES
from tests.e2e.testbed.probe.kinds import Json
from tests.e2e.testbed.probe.observations import EACH, Answer, Path

REQUESTS = "requests-from-limits"
POD_REQUESTS = "pod-requests-from-containers-and-limits"
POD_HUGEPAGES = "pod-hugepage-limits-from-containers"
IMAGE_TAG = "image-tag"

_Check = Callable[[Answer], Iterator[bool]]


def calculated(path: Path) -> bool:
    """Tell whether what is added at `path` is the matter of a rule of this module."""
    pulls = path[-1] in {"imagePullPolicy", "pullPolicy"}
    inside = path[:-1]
    containers = inside[:3] == ("containers", EACH, "resources")
    return pulls or containers or inside[:1] == ("resources",)


def image_class(reference: str) -> str:
    """Return the class of an image `reference` that was sent."""
    return next((name for name, examples in IMAGES.items() if reference in examples), "tagged")


def containers(spec: Json) -> list[Json]:
    """Return the containers of `spec` that may have resources."""
    return [*spec.get("initContainers", ()), *spec["containers"]]


def requests_follow_limits(answer: Answer) -> Iterator[bool]:
    """Tell for each container with limits whether missing requests came from them."""
    pairs = zip(containers(answer.sent), containers(answer.got), strict=True)
    for sent, got in pairs:
        resources = sent.get("resources", {})
        if set(resources.get("limits", {})) - set(resources.get("requests", {})):
            wanted = {**resources["limits"], **resources.get("requests", {})}
            yield got["resources"].get("requests") == wanted


def pod_requests_follow(answer: Answer) -> Iterator[bool]:
    """Tell whether missing pod-level requests are the containers' sum, else the pod's limits."""
    ours = answer.sent.get("resources", {})
    if ours.get("limits"):
        theirs = answer.got["resources"]
        wanted = {**theirs["limits"], **_effective(answer.got), **ours.get("requests", {})}
        if wanted != ours.get("requests"):
            yield theirs.get("requests") == wanted


def hugepage_limits_follow(answer: Answer) -> Iterator[bool]:
    """Tell whether missing pod-level limits for huge pages are those of the containers."""
    pod = answer.sent.get("resources", {}).get("limits", {})
    for container in answer.sent["containers"]:
        for name, value in container.get("resources", {}).get("limits", {}).items():
            if pod and name.startswith("hugepages-") and name not in pod:
                yield answer.got["resources"]["limits"].get(name) == value


def _effective(spec: Json) -> Json:
    """Return the requests of all containers of `spec` together; only cpu, in whole numbers."""
    sidecars = 0
    during_start = 0
    for one in spec.get("initContainers", ()):
        if one.get("restartPolicy") == "Always":
            sidecars += _cpu(one)
            during_start = max(during_start, sidecars)
        else:
            during_start = max(during_start, sidecars + _cpu(one))
    total = max(during_start, sidecars + sum(_cpu(one) for one in spec["containers"]))
    return {"cpu": str(total)} if total else {}


def _cpu(container: Json) -> int:
    return int(container.get("resources", {}).get("requests", {}).get("cpu", 0))


# In order of application: pod-level requests count the containers' calculated ones.
CHECKS: tuple[tuple[str, str, _Check], ...] = (
    ("containers[].resources.requests", REQUESTS, requests_follow_limits),
    ("resources.limits", POD_HUGEPAGES, hugepage_limits_follow),
    ("resources.requests", POD_REQUESTS, pod_requests_follow),
)
