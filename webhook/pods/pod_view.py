"""A view of one pod: its containers by list, the main one, its metadata and paths."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Any, TypeVar

from webhook.objects.lookup import FEW
from webhook.objects.path import ABSENT, Absent, Path, display, read
from webhook.pods.assemble import FragmentPod, found_in
from webhook.pods.location import FragmentPods, Location, PodLocation

CONTAINER_LISTS = ("containers", "initContainers", "ephemeralContainers")
MAIN_ANNOTATIONS = ("podgate.dev/main-container", "kubectl.kubernetes.io/default-container")
GPU_MARKS = ("nvidia.com/", "amd.com/gpu", "gpu.intel.com/")
EXTRA = "extra"
RESOURCES: Path = ("resources",)
T = TypeVar("T")
NAME = itemgetter("name")
LISTS = frozenset(
    {
        "env",
        "envFrom",
        "imagePullSecrets",
        "ports",
        "resourceClaims",
        "tolerations",
        "volumeDevices",
        "volumeMounts",
        "volumes",
    }
)
MAPS = frozenset(
    {"affinity", "nodeSelector", "os", "overhead", "readinessProbe", "securityContext"}
)
SHAPES: dict[str, type] = {**dict.fromkeys(LISTS, list), **dict.fromkeys(MAPS, dict)}


class MalformedPod(Exception):  # noqa: N818 - it names a state of the object, not of the program
    """A value in a pod spec has a type that Kubernetes does not allow there.

    The caller that knows the pod changes `path` from the pod's to the object's.
    """

    def __init__(self, path: Path, wanted: str, found: Any) -> None:
        super().__init__(path, wanted)
        self.path = path
        self.wanted = wanted
        self.found = type(found).__name__

    def __str__(self) -> str:
        return f"{display(self.path)} must be {self.wanted}"


@dataclass(slots=True)
class Container:
    """One container: its list (`extra` outside the pod spec), name, path and body."""

    list: str
    name: str
    path: Path
    body: dict[str, Any]

    @property
    def sidecar(self) -> bool:
        """Whether it is a restartable init container, which runs beside the ordinary ones."""
        return self.list == "initContainers" and self.body.get("restartPolicy") == "Always"


@dataclass(slots=True)
class PodView:
    """A pod location with its containers indexed. `old` is the same pod before an update.

    `claims` are the workload's claim templates, which are volumes of the pod. `kept` caches
    results, with the version of the copy that each is valid for.
    """

    location: PodLocation
    spec: dict[str, Any]
    metadata: dict[str, Any]
    containers: list[Container]
    everyone: list[Container]
    main: Container | None
    windows: bool
    old: PodView | None = None
    claims: tuple[tuple[Path, dict[str, Any]], ...] = ()
    kept: dict[Any, tuple[int, Any]] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )

    @property
    def spec_path(self) -> Path:
        """The path of the pod spec."""
        return self.location.spec_path

    def at(self, path: Path) -> Location:
        """Return the location of a path of the pod, to write there or to report it."""
        return self.location.at(path)

    def read_in(self, document: Any, path: Path) -> Any | Absent:
        """Return the value that a copy of the object has at a path of the pod, or ABSENT."""
        if self.location.fragments is None:
            return read(document, path)
        return self.at(path).read_in(document)

    def may_be_main(self, place: Path) -> bool:
        """Return whether a path is in the main container, chosen by the user or by default.

        The user's choice, an annotation, affects defaults only. It exempts no container from a
        rule.
        """
        return any(place[: len(each.path)] == each.path for each in self.mains)

    def overrides(self, get: Callable[[Any], Any]) -> bool:
        """Return whether every container has its own value, so that none takes the pod's.

        Ephemeral containers come and go, and containers of a pod in fragments may be elsewhere.
        """
        lasting = [each for each in self.everyone if each.list != "ephemeralContainers"]
        return bool(lasting) and all(get(each.body) is not None for each in lasting)

    def once(self, key: Any, find: Callable[[], T]) -> T:
        """Return the result of `find`, called once per key. It must not depend on the written copy."""
        known = self.kept.get(key)
        if known is None:
            known = self.kept[key] = (0, find())
        found: T = known[1]
        return found

    def overridden(self, at: Path, container: Container | None = None) -> list[tuple[Path, Any]]:
        """Return values that the object sets and overrides itself, with their paths in the object.

        `at` is a path in the pod spec, or in one container of it. Only pods in fragments have such
        values: for example, one for all pods of the object and a pod's own, or one of a base and a
        container's own.
        """
        if self.location.fragments is None:
            return []
        full = ("spec", *at) if container is None else (*container.path[1:], *at)
        owner = () if container is None else full[:3]
        found: list[tuple[Path, Any]] = []
        for held_at, place, held in self.once("overridden", self.group_overridden).get(owner, ()):
            rest = full[len(held_at) :]
            if full[: len(held_at)] != held_at:
                continue
            value = read(held, rest) if rest else held
            if value is not ABSENT and value is not None:
                found.append(((*place, *rest), value))
        return found

    def group_overridden(self) -> dict[Path, list[tuple[Path, Path, Any]]]:
        """Return the overridden values by their container, () for the pod's own."""
        found: dict[Path, list[tuple[Path, Path, Any]]] = {}
        fragments = self.location.fragments
        for each in fragments.overridden if fragments is not None else ():
            is_containers = len(each[0]) > 2 and each[0][1] in CONTAINER_LISTS
            found.setdefault(each[0][:3] if is_containers else (), []).append(each)
        return found

    @property
    def mains(self) -> list[Container]:
        """The main container, then the one that is it without the user's choice, if another."""
        return self.once("mains", self.find_mains)

    def find_mains(self) -> list[Container]:
        """Return the containers of `mains`."""
        if self.main is None:
            return []
        unchosen = self.main
        if len(self.containers) > 1:
            unchosen = main_container(self.location, {}, self.containers) or self.main
        return [self.main] if unchosen is self.main else [self.main, unchosen]

    def old_container(self, container: Container) -> Container | None:
        """Return the container of the same list and name before the update."""
        return None if self.old is None else self.old.container_like(container)

    def container_like(self, container: Container) -> Container | None:
        """Return the container of the same list and name in this pod."""
        if len(self.everyone) > FEW:
            return self.once("by name", self.by_name).get((container.list, container.name))
        for each in self.everyone:
            if each.list == container.list and each.name == container.name:
                return each
        return None

    def by_name(self) -> dict[tuple[str, str], Container]:
        """Return the first container of each list and name."""
        return {(each.list, each.name): each for each in reversed(self.everyone)}


def mapping(value: Any, path: Path) -> dict[str, Any]:
    """Return the value as a map, {} if absent. Raises MalformedPod for other types."""
    if value is None:
        return {}
    if isinstance(value, dict):
        return value
    raise MalformedPod(path, "a map", value)


def sequence(value: Any, path: Path) -> list[Any]:
    """Return the value as a list, [] if absent. Raises MalformedPod for other types."""
    if value is None:
        return []
    if isinstance(value, list):
        return value
    raise MalformedPod(path, "a list", value)


def read_list(spec: dict[str, Any], spec_path: Path, name: str) -> list[Container]:
    """Return the containers of one list, in order."""
    found = []
    place = (*spec_path, name)
    for index, body in enumerate(sequence(spec.get(name), place)):
        path = (*place, index)
        if not isinstance(body, dict):
            raise MalformedPod(path, "a container", body)
        check_shape(body, path)
        label = body.get("name")
        found.append(Container(name, label if isinstance(label, str) else "", path, body))
    return found


def check_shape(body: dict[str, Any], path: Path) -> None:
    """Check the types of members of a container or a pod spec that fields read. Raises MalformedPod."""
    for key, value in body.items():
        shape = SHAPES.get(key)
        if shape is not None and value.__class__ is not shape:
            (sequence if shape is list else mapping)(value, (*path, key))
    resources = body.get("resources")
    if resources is not None:
        mapping(resources, path + RESOURCES)
        for part in ("limits", "requests"):
            if part in resources and resources[part].__class__ is not dict:
                mapping(resources[part], (*path, "resources", part))


def may_name(entries: Any, name: str) -> bool:
    """Return whether a list of maps may have one of this name. False is certain.

    This is fast: environments are long, and several fields look for one variable each.
    """
    try:
        return name in map(NAME, entries)
    except (KeyError, TypeError):
        return True


def wants_gpu(container: Container) -> bool:
    """Return whether a container requests a device of a known GPU family."""
    resources = container.body.get("resources")
    if not isinstance(resources, dict):
        return False
    return any(
        name.startswith(GPU_MARKS)
        for part in ("limits", "requests")
        if isinstance(resources.get(part), dict)
        for name in resources[part]
    )


def main_container(
    location: PodLocation, metadata: dict[str, Any], containers: list[Container]
) -> Container | None:
    """Return the main container: by annotation, convention, the only one, the only GPU one, the first."""
    if location.main.place is not None:
        for each in containers:
            if each.path == location.main.place:
                return each
    ordinary = [each for each in containers if each.list == "containers"]
    if len(ordinary) <= 1:
        return ordinary[0] if ordinary else None
    annotations = metadata.get("annotations")
    names = (
        [annotations.get(key) for key in MAIN_ANNOTATIONS] if isinstance(annotations, dict) else []
    )
    if location.main.name:
        names.append(location.main.name)
    for name in names:
        for each in ordinary:
            if name and each.name == name:
                return each
    if location.main.index is not None and location.main.index < len(ordinary):
        return ordinary[location.main.index]
    with_gpu = [each for each in ordinary if wants_gpu(each)]
    return with_gpu[0] if len(with_gpu) == 1 else ordinary[0]


def pod_view(location: PodLocation, old: PodView | None = None) -> PodView:
    """Return the view of a location. Raises MalformedPod for a value of a wrong type."""
    try:
        return view_of(location, location.spec, location.metadata, location.extra, old)
    except MalformedPod as error:
        error.path = location.at(error.path).report
        raise


def refresh(view: PodView, document: Any) -> PodView:
    """Return the same pod in another copy of the document, such as the written one."""
    location = view.location
    if location.fragments is not None:
        return reassemble(view, document)
    metadata: Any = {}
    if location.metadata_path is not None:
        metadata = read(document, location.metadata_path) or {}
    spec: Any = read(document, location.spec_path) or {}
    extra: Any = tuple((path, read(document, path)) for path, _ in location.extra)
    if spec is view.spec and metadata is view.metadata and not extra and not view.claims:
        return view
    found = view_of(location, spec, metadata, extra, view.old)
    if found.claims:
        claims: Any = tuple((path, read(document, path)) for path, _ in found.claims)
        found.claims = claims
    return found


def reassemble(view: PodView, document: Any) -> PodView:
    """Return a pod in fragments as it will run: with the operator's values for absent ones."""
    fragments, old = view.location.fragments, view.old
    assert fragments is not None
    pod = fragments.effective(
        fragments.settle(found_in(fragments.specs, document, fragments.bindings))
    )
    if old is not None and old.location.fragments is not None:
        known = old.location.fragments.effective({"metadata": old.metadata, "spec": old.spec})
        old = view_of(old.location, known["spec"], known["metadata"], (), None)
    return view_of(view.location, pod["spec"], pod["metadata"], (), old)


def as_written(view: PodView, document: Any, pods: FragmentPods) -> PodView:
    """Return a pod in fragments as another copy of the document has it, any other pod as it is.

    It is added to `pods`, so the paths of the given view stay valid.
    """
    known = view.location.fragments
    if known is None:
        return view
    fragments = FragmentPod(known.specs, known.assembler, known.bindings, known.root)
    pod = fragments.settle(found_in(fragments.specs, document, fragments.bindings))
    number = len(pods)
    pods.append(fragments)
    location = replace(
        view.location,
        fragments=fragments,
        metadata_path=(number, "metadata"),
        spec_path=(number, "spec"),
    )
    return view_of(location, pod["spec"], pod["metadata"], (), view.old)


def view_of(
    location: PodLocation,
    spec: dict[str, Any],
    metadata: dict[str, Any],
    extra: tuple[tuple[Path, dict[str, Any]], ...],
    old: PodView | None,
) -> PodView:
    """Build a view of one pod from its values."""
    path = location.spec_path
    check_shape(spec, path)
    ordinary = read_list(spec, path, "containers")
    for place, body in extra:
        check_shape(body, place)
        name = body.get("name")
        ordinary.append(Container(EXTRA, name if isinstance(name, str) else "", place, body))
    everyone = ordinary
    if "initContainers" in spec or "ephemeralContainers" in spec:
        everyone = [
            *ordinary,
            *read_list(spec, path, "initContainers"),
            *read_list(spec, path, "ephemeralContainers"),
        ]
    os_name = spec.get("os")
    windows = isinstance(os_name, dict) and os_name.get("name") == "windows"
    main = main_container(location, metadata, ordinary)
    claims = location.claims
    return PodView(location, spec, metadata, ordinary, everyone, main, windows, old, claims)
