"""One place of a pod spec in a workload, and why the pods of an object cannot be told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from webhook.documents.read_model import sort
from webhook.interface.profile import Children, MainConvention
from webhook.objects.path import Path, display
from webhook.pods.assemble import PodParts

MAX_LOCATIONS: Final = 1000
LONGEST_KEY: Final = 512
"""Every message and every operation of a patch repeats the keys on the way to a pod."""


class LocationError(Exception):
    """The object's pods cannot be told: where, a stable reason, and a sentence for people."""

    def __init__(self, path: Path, reason: str, text: str) -> None:
        super().__init__(text)
        self.path = path
        self.reason = reason
        self.text = text


@dataclass(frozen=True, slots=True)
class SharedClaim:
    """A claim that the workload states beside its pods, made of a template.

    `templates` are those of its name in the object, None where the template is an object of its own,
    in `namespace` ("": the workload's).
    """

    path: Path
    name: str
    namespace: str
    templates: list[Any] | None


@dataclass(frozen=True, slots=True)
class PodLocation:
    """One place of a pod spec.

    `place` is the template, or the spec where the kind has no templates; `metadata` and `spec` are
    the document's own maps, {} where the document has none yet. `metadata_path` is None where the
    kind has no place for pod metadata. `extra` are containers outside that run in these pods.
    `parts` are the pieces of a pod that the object does not state as a whole, `claims` the
    templates of claims that the workload brings along, `shared` the claims of devices that these
    pods share with others.
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
    parts: PodParts | None = None
    claims: tuple[tuple[Path, dict[str, Any]], ...] = ()
    shared: tuple[SharedClaim, ...] = ()


def too_many(count: int) -> LocationError:
    """The budget of one object is exceeded."""
    text = f"{count} pod locations; one object may have {MAX_LOCATIONS}"
    return LocationError((), "too-many-locations", text)


def check_keys(path: Path) -> None:
    """Raise LocationError for a key on the way to a pod that is too long to be repeated."""
    for index, step in enumerate(path):
        if step.__class__ is str and len(step) > LONGEST_KEY:
            text = f"a key of {len(step)} characters on the way to a pod; it may have {LONGEST_KEY}"
            raise LocationError(path[:index], "too-long-key", text)


def map_at(path: Path, what: str, value: Any) -> dict[str, Any]:
    """{} for what is absent; anything else that is no map has no business there."""
    if value is None:
        return {}
    raise wrong_type(path, what, value)


def wrong_type(path: Path, what: str, value: Any) -> LocationError:
    """The place holds something else than Kubernetes allows there."""
    text = f"{display(path)} must be {what}, found {sort(value)}"
    return LocationError(path, "wrong-type", text)
