"""Pods that a kind states piece by piece: assembled into one, with the place of every piece.

A part says which place of a pod is where in the object, and in which form the object writes it:

    same        as in a pod
    image       {repository, tag} for an image
    names       a list of names for a list of {name}
    container   {name, image: {repository, tag, pullPolicy}, command, args, env, workingDir}
    containers  a list of such, behind those that are there
    hostPath    a directory of the node for a volume of that type
    claim       {name} for a volume of a claim
    emptyDir    a volume of that type
    memory      the size of /dev/shm, for a volume in memory that is mounted there
    also        a container as in a pod, or a list of such, behind those that are there
    items       a list of which more may stand elsewhere, behind what is there; read only
    more        such a list that takes defaults
    variables   a map of names to values, behind the variables that are there
    device      {name, quantity} for a limit of the first container
    quantities  {cpu, memory} for its requests and limits
    sparkDriver, sparkExecutor: the memory that Spark asks for, of an application's spec

Where several places are of one value, the last that is set counts; a default goes to the last.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from webhook.core.patch import Draft
from webhook.core.pointer import ABSENT, Assembled, Path, read
from webhook.core.workload.query import Match, Program
from webhook.core.workload.spark_memory import memory_of

Form = Literal[
    "same",
    "image",
    "names",
    "container",
    "containers",
    "hostPath",
    "claim",
    "emptyDir",
    "memory",
    "also",
    "items",
    "more",
    "variables",
    "device",
    "quantities",
    "sparkDriver",
    "sparkExecutor",
]
BEHIND: Final = frozenset({"containers", "also", "items", "more", "variables"})
"""Forms that are put behind what other pieces have put there."""
AROUND: Final = frozenset({"sparkDriver", "sparkExecutor"})
"""Forms that look at values around: their place does not tell where the pod is stated."""
CONTAINER: Final[Path] = ("spec", "containers", 0)
CONTAINER_KEYS: Final = ("name", "command", "args", "env", "workingDir")
VOLUMES: Final[Path] = ("spec", "volumes")
SHARED_MEMORY: Final = "/dev/shm"  # noqa: S108 - a mount path in somebody's pod
UPSTREAM: Final[Mapping[str, Path]] = {
    "schedulerNamePath": ("spec", "schedulerName"),
    "priorityClassNamePath": ("spec", "priorityClassName"),
    "imagePath": (*CONTAINER, "image"),
    "labelsPath": ("metadata", "labels"),
    "annotationsPath": ("metadata", "annotations"),
    "resourcesPath": (*CONTAINER, "resources"),
    "resourceClaimsPath": ("spec", "resourceClaims"),
    "podAffinityPath": ("spec", "affinity", "podAffinity"),
    "nodeAffinityPath": ("spec", "affinity", "nodeAffinity"),
    "containersPath": ("spec", "containers"),
    "containerPath": CONTAINER,
}
"""The fragments of a resource interface as places of a pod."""


@dataclass(frozen=True, slots=True)
class Part:
    """One piece: a place of the pod, where it is in the object, in which form.

    `absent` is what the operator uses where the object says nothing. Where some parts of a
    component `makes_pod`, there is a pod only with one of these.
    """

    pod: Path
    place: Program
    form: Form = "same"
    absent: Any = None
    makes_pod: bool = False


@dataclass(slots=True)
class Piece:
    """One place of an assembled pod and the object's own; `told` ones can be read only.

    `given` says whether the object has a value there, `before` how many items of the pod's list
    are not this place's.
    """

    pod: Path
    real: Path
    form: str
    given: bool = False
    before: int = 0


@dataclass(slots=True)
class PodParts:
    """The places of one assembled pod; `found` are the parts with what they found in the object."""

    parts: Sequence[Part]
    bindings: tuple[Path, ...]
    root: Path
    pieces: list[Piece] = field(default_factory=list)

    def known(self) -> dict[Path, frozenset[str | int]]:
        """The places that hold pieces, with the keys of these."""
        depth = len(self.root)
        found: dict[Path, set[str | int]] = {self.root: set()}
        for real in (each.real for each in self.pieces if each.real):
            if len(real) > depth and real[:depth] == self.root:
                found[self.root].add(real[depth])
            found.setdefault(real[:-1], set()).add(real[-1])
        return {path: frozenset(keys) for path, keys in found.items()}

    def assemble(self, document: Any) -> dict[str, Any]:
        """The pod of a document."""
        pod: dict[str, Any] = {"metadata": {}, "spec": {"containers": [{}]}}
        self.pieces = []
        for part in self.parts:
            for match in matches_in(part, document, self.bindings):
                if match.path is not None:
                    FORMS[part.form](self, pod, part.pod, match.path, match.value)
                elif match.value is not None:
                    put(pod, part.pod, match.value)  # computed: it can be read only
        # A path is looked up by the first: the longest place, of several what counts, the last.
        self.pieces.reverse()
        self.pieces.sort(key=lambda piece: (-len(piece.pod), not piece.given))
        return pod

    def effective(self, pod: dict[str, Any]) -> dict[str, Any]:
        """A pod with what the operator uses for values that are absent."""
        for part in self.parts:
            if part.absent is not None and read(pod, part.pod) in (ABSENT, None):
                draft = Draft(pod)
                draft.set(part.pod, part.absent)
                pod = draft.document
        return pod

    def add(self, pod: Path, place: Path, form: str = "same", *, given: bool = False) -> None:
        """Remember where a piece is."""
        self.pieces.append(Piece(pod, place, form, given))

    def piece(self, path: Path) -> Piece | None:
        """The piece that a path of the pod lies in."""
        return next((each for each in self.pieces if path[: len(each.pod)] == each.pod), None)

    def real(self, path: Path) -> Path:
        """The place in the object; for what it cannot hold, where the object states the pod."""
        piece = self.piece(path)
        if piece is None:
            return self.root
        rest = path[len(piece.pod) :]
        if piece.before and rest and isinstance(rest[0], int):
            rest = (rest[0] - piece.before, *rest[1:])
        if piece.form == "same":
            return (*piece.real, *rest)
        if piece.form == "names":
            return (*piece.real, *rest[:1])
        return (*piece.real, "repository") if piece.form == "image" else piece.real

    def holds(self, path: Path) -> bool:
        """Whether the object has such a place."""
        piece = self.piece(path)
        return piece is not None and piece.form != "told"

    def writes(self, path: Path, value: Any) -> list[tuple[Path, Any]]:
        """What is set in the object for a value of the pod."""
        piece = self.piece(path)
        if piece is None or piece.form == "told":
            return []
        if piece.form == "image":
            repository, tag = split_image(str(value))
            tagged = [((*piece.real, "tag"), tag)] if tag else []
            return [((*piece.real, "repository"), repository), *tagged]
        if piece.form == "names" and path[-1] != "name":
            return [(self.real(path), named(value))]
        return [(self.real(path), value)]

    def item(self, path: Path, value: Any) -> Any:
        """An item of a list, as the object writes it."""
        piece = self.piece(path)
        return named(value) if piece is not None and piece.form == "names" else value


def named(value: Any) -> Any:
    """The name of {name}, and of a list of such the names."""
    if isinstance(value, list):
        return [named(each) for each in value]
    return value.get("name") if isinstance(value, dict) else value


def split_image(text: str) -> tuple[str, str]:
    """Repository and tag of an image; a digest counts as a tag."""
    if "@" in text:
        repository, _, digest = text.partition("@")
        return repository, digest
    head, slash, last = text.rpartition("/")
    name, _, tag = last.partition(":")
    return f"{head}{slash}{name}", tag


def joined_image(value: Any) -> Any:
    """The image of {repository, tag}; None without a repository, others as they are."""
    if not isinstance(value, dict):
        return value
    repository, tag = value.get("repository"), value.get("tag")
    if not isinstance(repository, str) or not repository:
        return None
    if not isinstance(tag, str) or not tag:
        return repository
    return f"{repository}@{tag}" if tag.startswith("sha256:") else f"{repository}:{tag}"


def put(pod: Any, path: Path, value: Any) -> None:
    """Set one place of a pod that is being made; what it holds of the document stays as it is."""
    node = pod
    for step in path[:-1]:
        if isinstance(node, dict):
            node[step] = copied(node.get(step))
        node = node[step]
    node[path[-1]] = value


def copied(value: Any) -> Any:
    """A map or list of one's own; a new map for what is absent or cannot hold anything."""
    if isinstance(value, list):
        return [dict(each) if isinstance(each, dict) else each for each in value]
    return dict(value) if isinstance(value, dict) else {}


def put_same(parts: PodParts, pod: Any, at: Path, place: Path, value: Any) -> None:
    """A piece as it is."""
    parts.add(at, place, given=value is not None)
    if value is None:
        return
    if at == CONTAINER and isinstance(value, dict):
        pod["spec"]["containers"][0] = {**pod["spec"]["containers"][0], **value}
    elif at == CONTAINER[:2] and isinstance(value, list):
        pod["spec"]["containers"] = value
    else:
        put(pod, at, value)


def put_image(parts: PodParts, pod: Any, at: Path, place: Path, value: Any) -> None:
    """An image of repository and tag."""
    parts.add(at, place, "image", given=value is not None)
    if (image := joined_image(value)) is not None:
        put(pod, at, image)


def put_names(parts: PodParts, pod: Any, at: Path, place: Path, value: Any) -> None:
    """Names for references."""
    parts.add(at, place, "names", given=value is not None)
    if isinstance(value, list):
        put(pod, at, [{"name": each} if isinstance(each, str) else each for each in value])
    elif value is not None:
        put(pod, at, value)


def put_container(parts: PodParts, pod: Any, at: Path, place: Path, value: Any) -> None:
    """A container whose image is in two parts."""
    image = value.get("image") if isinstance(value, dict) else None
    parts.add(at, place, "told")
    for key in CONTAINER_KEYS:
        parts.add((*at, key), (*place, key))
    if not isinstance(value, dict):
        if value is not None:
            put(pod, at, value)
        return
    body = {key: held for key, held in value.items() if key != "image"}
    if isinstance(image, dict):
        parts.add((*at, "image"), (*place, "image"), "image")
        parts.add((*at, "imagePullPolicy"), (*place, "image", "pullPolicy"))
        if image.get("pullPolicy"):
            body["imagePullPolicy"] = image["pullPolicy"]
        image = joined_image(image)
    put(pod, at, body if image is None else {**body, "image": image})


def put_containers(parts: PodParts, pod: Any, at: Path, place: Path, value: Any) -> None:
    """Further containers."""
    if not isinstance(value, list):
        if value is not None:
            put_same(parts, pod, at, place, value)
        return
    for index, each in enumerate(value):
        held = pod["spec"].setdefault(at[-1], [])  # one of its own after each `put`
        here = (*at, len(held))
        held.append({})
        put_container(parts, pod, here, (*place, index), each)


def add_volume(parts: PodParts, pod: Any, place: Path, volume: dict[str, Any]) -> None:
    """A volume that the operator makes of a value."""
    held = pod["spec"].setdefault("volumes", [])
    parts.add((*VOLUMES, len(held)), place, "told")
    held.append(volume)


def put_host_path(parts: PodParts, pod: Any, at: Path, place: Path, value: Any) -> None:
    """A directory of the node."""
    if value not in (None, ""):
        source = {"path": value} if isinstance(value, str) else value
        add_volume(parts, pod, place, {"name": str(place[-1]), "hostPath": source})


def put_claim(parts: PodParts, pod: Any, at: Path, place: Path, value: Any) -> None:
    """A claim, by name."""
    if isinstance(value, dict) and value:
        source = {"claimName": value.get("name") or ""}
        volume = {"name": str(place[-1]), "persistentVolumeClaim": source}
        add_volume(parts, pod, place, volume)


def put_empty_dir(parts: PodParts, pod: Any, at: Path, place: Path, value: Any) -> None:
    """Scratch space."""
    if isinstance(value, dict):
        add_volume(parts, pod, place, {"name": str(place[-1]), "emptyDir": value})


def put_memory(parts: PodParts, pod: Any, at: Path, place: Path, value: Any) -> None:
    """Shared memory of a given size."""
    if value is None:
        return
    source = {"medium": "Memory", "sizeLimit": value}
    add_volume(parts, pod, place, {"name": "dshm", "emptyDir": source})
    mount = {"name": "dshm", "mountPath": SHARED_MEMORY}
    pod["spec"]["containers"][0].setdefault("volumeMounts", []).append(mount)
    parts.add((*CONTAINER, "volumeMounts"), place, "told")


def put_also(parts: PodParts, pod: Any, at: Path, place: Path, value: Any) -> None:
    """Containers as they are; the first takes the place that no other piece has filled."""
    if value is None:
        return
    several = isinstance(value, list)
    held = pod["spec"].get(at[-1])
    kept = [each for each in held if each != {}] if isinstance(held, list) else []
    for index, each in enumerate(value if several else [value]):
        parts.add((*at, len(kept)), (*place, index) if several else place, given=True)
        kept.append(each)
    pod["spec"][at[-1]] = kept


def put_items(parts: PodParts, pod: Any, at: Path, place: Path, value: Any) -> None:
    """Items of a list that several places add to."""
    held = found if isinstance(found := read(pod, at), list) else []
    if isinstance(value, list):
        for index in range(len(value)):
            parts.add((*at, len(held) + index), (*place, index), "told")
        put(pod, at, [*held, *value])
    elif value is not None:
        put_same(parts, pod, at, place, value)


def put_more(parts: PodParts, pod: Any, at: Path, place: Path, value: Any) -> None:
    """Items of a list that several places add to, the last of which takes defaults."""
    found = read(pod, at)
    held = found if isinstance(found, list) else []
    if value is not None and not isinstance(value, list):
        put_same(parts, pod, at, place, value)
        return
    parts.pieces.append(Piece(at, place, "same", value is not None, len(held)))
    if value is not None:
        put(pod, at, [*held, *value])


def put_variables(parts: PodParts, pod: Any, at: Path, place: Path, value: Any) -> None:
    """Environment variables of a map; references are kept as what they are."""
    held = found if isinstance(found := read(pod, at), list) else []
    for name, each in value.items() if isinstance(value, dict) else ():
        parts.add((*at, len(held)), (*place, name), "told")
        source = (
            {"valueFrom": {"secretKeyRef": each}} if isinstance(each, dict) else {"value": each}
        )
        held = [*held, {"name": name, **source}]
    if held:
        put(pod, at, held)


def put_device(parts: PodParts, pod: Any, at: Path, place: Path, value: Any) -> None:
    """A device plugin's resource, by name and number."""
    name = value.get("name") if isinstance(value, dict) else None
    if isinstance(name, str) and name:
        put_resource(parts, pod, ("limits", name), (*place, "quantity"), value.get("quantity"))


def put_quantities(parts: PodParts, pod: Any, at: Path, place: Path, value: Any) -> None:
    """Processor and memory, for requests and limits alike."""
    for name, each in value.items() if isinstance(value, dict) else ():
        for part in ("requests", "limits"):
            put_resource(parts, pod, (part, name), (*place, name), each)


def put_resource(parts: PodParts, pod: Any, at: tuple[str, str], place: Path, value: Any) -> None:
    """One amount of the first container, which can be read only."""
    if value is None or not isinstance(pod["spec"]["containers"][0], dict):
        return
    container = pod["spec"]["containers"][0]
    resources = mapping(container.get("resources"))
    container["resources"] = {**resources, at[0]: {**mapping(resources.get(at[0])), at[1]: value}}
    parts.add((*CONTAINER, "resources", *at), place, "told", given=True)


def mapping(value: Any) -> dict[str, Any]:
    """The value if it is a map, else an empty one."""
    return value if isinstance(value, dict) else {}


def put_spark(role: str) -> Any:
    """The memory of one role of a Spark application."""

    def put_memory_of(parts: PodParts, pod: Any, at: Path, place: Path, value: Any) -> None:
        amount = memory_of(value, role)
        for part in ("requests", "limits") if amount is not None else ():
            put_resource(parts, pod, (part, "memory"), (*place, role, "memory"), amount)

    return put_memory_of


FORMS: Final = {
    "same": put_same,
    "image": put_image,
    "names": put_names,
    "container": put_container,
    "containers": put_containers,
    "hostPath": put_host_path,
    "claim": put_claim,
    "emptyDir": put_empty_dir,
    "memory": put_memory,
    "also": put_also,
    "items": put_items,
    "more": put_more,
    "variables": put_variables,
    "device": put_device,
    "quantities": put_quantities,
    "sparkDriver": put_spark("driver"),
    "sparkExecutor": put_spark("executor"),
}


def step_of(name: str, parts: PodParts) -> Assembled:
    """The first step of the paths of an assembled pod."""
    step = Assembled(name)
    step.places = parts
    return step


def matches_in(part: Part, document: Any, bindings: tuple[Path, ...]) -> list[Match]:
    """What a part finds in one element; all there is where it goes through further lists."""
    if len(part.place.iterators) <= len(bindings):
        return part.place.matches_of(document, bindings)
    depth = len(bindings)
    return [
        each for each in part.place.matches_or_none(document) if each.bindings[:depth] == bindings
    ]


def parts_of(parts: Sequence[Part], document: Any, bindings: tuple[Path, ...]) -> PodParts | None:
    """The places of a pod in one element of the object; None where it states nothing of one."""
    each_of = [(part, match) for part in parts for match in matches_in(part, document, bindings)]
    deciding = [match for part, match in each_of if part.makes_pod]
    found = [match for part, match in each_of if part.form not in AROUND]
    if all(match.value is None for match in deciding or found):
        return None
    return PodParts(parts, bindings, root_of(deciding or found))


def root_of(matches: Sequence[Match]) -> Path:
    """The innermost place that all pieces lie below."""
    paths = [match.path for match in matches if match.path is not None]
    common = 0
    while paths and all(len(path) > common + 1 for path in paths):
        if len({path[common] for path in paths}) > 1:
            break
        common += 1
    return paths[0][:common] if paths else ()
