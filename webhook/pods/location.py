"""Locations: where the pods of an object are, and where paths of a pod are in the object."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from webhook.documents.read_model import sort
from webhook.interface.profile import Children, MainConvention
from webhook.objects.path import Absent, Path, display, read
from webhook.pods.assemble import FragmentPod

MAX_LOCATIONS: Final = 1000
LONGEST_KEY: Final = 512
"""Every message and every operation of a patch repeats the keys on the way to a pod."""


FragmentPods = list[FragmentPod]
"""The pods of one review that are in fragments.

A path in such a pod begins with the pod's index here, followed by the path in the pod. No path of a
document begins with a number, because a document is a map.
"""


class Location(ABC):
    """The path in the object for a path of a pod. Created only for writing and reporting."""

    __slots__ = ()

    @property
    @abstractmethod
    def report(self) -> Path:
        """The path in the object, or the nearest one."""

    @property
    @abstractmethod
    def exists(self) -> bool:
        """Whether the object has such a path, and it can be written."""

    @abstractmethod
    def assignments(self, value: Any) -> Sequence[tuple[Path, Any]]:
        """Return the paths and values to set in the object for this value of the pod, () for none."""

    @abstractmethod
    def item(self, value: Any) -> Any:
        """Return an item of the list at this path, in the object's notation."""

    @abstractmethod
    def read_in(self, document: Any) -> Any | Absent:
        """Return the value that another copy of the object has here, or ABSENT."""


class WholeLocation(Location):
    """A path outside pods, or in a whole pod: the path itself."""

    __slots__ = ("path",)

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def report(self) -> Path:
        return self.path

    @property
    def exists(self) -> bool:
        return True

    def assignments(self, value: Any) -> Sequence[tuple[Path, Any]]:
        return ((self.path, value),)

    def item(self, value: Any) -> Any:
        return value

    def read_in(self, document: Any) -> Any | Absent:
        return read(document, self.path)


class FragmentLocation(Location):
    """A path in a pod in fragments. `path` is relative to the pod."""

    __slots__ = ("fragments", "path")

    def __init__(self, fragments: FragmentPod, path: Path) -> None:
        self.fragments = fragments
        self.path = path

    @property
    def report(self) -> Path:
        return self.fragments.report(self.path)

    @property
    def exists(self) -> bool:
        return self.fragments.writable(self.path) is not None

    def assignments(self, value: Any) -> Sequence[tuple[Path, Any]]:
        return self.fragments.writes(self.path, value)

    def item(self, value: Any) -> Any:
        return self.fragments.item(self.path, value)

    def read_in(self, document: Any) -> Any | Absent:
        return read(self.fragments.assemble(document, self.path), self.path)


def location_of(path: Path, pods: FragmentPods) -> Location:
    """Return the location of a path, which may begin with the number of one of these pods."""
    if path and path[0].__class__ is int:
        return FragmentLocation(pods[path[0]], path[1:])
    return WholeLocation(path)


def report_path(path: Path, pods: FragmentPods) -> Path:
    """Return the path in the object to report. Most paths need no location."""
    return location_of(path, pods).report if path and path[0].__class__ is int else path


class LocationError(Exception):
    """The object's pods cannot be located: the path, a stable reason, and a message."""

    def __init__(self, path: Path, reason: str, text: str) -> None:
        super().__init__(text)
        self.path = path
        self.reason = reason
        self.text = text


@dataclass(frozen=True, slots=True)
class SharedClaim:
    """A claim that the workload defines outside its pods, made from a template.

    `templates` are the templates of its name in the object. None means that the template is a
    separate object in `namespace` ("": the workload's).
    """

    path: Path
    name: str
    namespace: str
    templates: list[Any] | None


@dataclass(frozen=True, slots=True)
class PodLocation:
    """The location of one pod.

    `place` is the path of the template, or of the spec if the kind has no templates. `metadata` and
    `spec` are the document's own maps, {} if the document has none yet. `metadata_path` is None if
    the kind has no path for pod metadata. `extra` are containers elsewhere that run in these pods.
    `fragments` is set for a pod that is not in the object as a whole. `claims` are the workload's
    claim templates, `shared` the device claims that these pods share with others.
    """

    component: str
    instance: str
    roles: tuple[str, ...]
    place: Path
    metadata_path: Path | None
    spec_path: Path
    metadata: dict[str, Any]
    spec: dict[str, Any]
    extra: tuple[tuple[Path, dict[str, Any]], ...]
    main: MainConvention
    children: Children
    fragments: FragmentPod | None = None
    claims: tuple[tuple[Path, dict[str, Any]], ...] = ()
    shared: tuple[SharedClaim, ...] = ()

    def at(self, path: Path) -> Location:
        """Return the location of a path of this pod."""
        if self.fragments is not None and path and path[0].__class__ is int:
            return FragmentLocation(self.fragments, path[1:])
        return WholeLocation(path)


def too_many(count: int) -> LocationError:
    """Return the error for an object with too many pods."""
    text = f"{count} pod locations; one object may have {MAX_LOCATIONS}"
    return LocationError((), "too-many-locations", text)


def check_keys(path: Path) -> None:
    """Raise LocationError for a key on the way to a pod that is too long to be repeated."""
    for index, step in enumerate(path):
        if step.__class__ is str and len(step) > LONGEST_KEY:
            text = f"a key of {len(step)} characters on the way to a pod; it may have {LONGEST_KEY}"
            raise LocationError(path[:index], "too-long-key", text)


def map_at(path: Path, what: str, value: Any) -> dict[str, Any]:
    """Return {} for an absent value. Raises LocationError for a value that is not a map."""
    if value is None:
        return {}
    raise wrong_type(path, what, value)


def wrong_type(path: Path, what: str, value: Any) -> LocationError:
    """Return the error for a value of a wrong type."""
    text = f"{display(path)} must be {what}, found {sort(value)}"
    return LocationError(path, "wrong-type", text)
