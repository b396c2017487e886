"""The forms in which objects have fragments of pods. Each writes a value into a pod, with its path."""

from __future__ import annotations

from typing import Any, Final

from webhook.objects.path import Path, display, read
from webhook.pods.fragments import (
    CONTAINER,
    Fragment,
    FragmentForm,
    PodBuilder,
    join_image,
    put,
)

SPEC: Final[Path] = ("spec",)


def put_same(builder: PodBuilder, pod: Any, at: Path, path: Path, value: Any) -> None:
    """Write a fragment as it is."""
    builder.add(at, path, given=value is not None)
    if value is None:
        return
    if at == CONTAINER and isinstance(value, dict):
        pod["spec"]["containers"][0] = {**pod["spec"]["containers"][0], **value}
    elif at == CONTAINER[:2] and isinstance(value, list):
        pod["spec"]["containers"] = value
    else:
        put(pod, at, value)


def put_read_only(builder: PodBuilder, pod: Any, at: Path, path: Path, value: Any) -> None:
    """Write a read-only fragment as it is. A pod spec may leave out its containers."""
    if value is None:
        return
    if len(at) == 1 and not isinstance(value, dict):
        builder.refuse(path, "a map", value)
        return
    builder.add(at, path, "readOnly", given=True)
    put(pod, at, {"containers": [], **value} if at == SPEC else value)


def put_image(builder: PodBuilder, pod: Any, at: Path, path: Path, value: Any) -> None:
    """Write an image of repository and tag."""
    builder.add(at, path, "image", given=value is not None)
    if (image := join_image(value)) is not None:
        put(pod, at, image)


def put_names(builder: PodBuilder, pod: Any, at: Path, path: Path, value: Any) -> None:
    """Write names as references."""
    builder.add(at, path, "names", given=value is not None)
    if isinstance(value, list):
        put(pod, at, [{"name": each} if isinstance(each, str) else each for each in value])
    elif value is not None:
        put(pod, at, value)


def put_also(builder: PodBuilder, pod: Any, at: Path, path: Path, value: Any) -> None:
    """Append containers. The first one takes the index that no other fragment has filled.

    If a kind sets its main container field by field, that container exists even if no field is set.
    """
    if value is None:
        return
    several = isinstance(value, list)
    found = pod["spec"].get(at[-1])
    existing = found if isinstance(found, list) else []
    kept = existing if builder.states_main() else [each for each in existing if each != {}]
    for index, each in enumerate(value if several else [value]):
        builder.add((*at, len(kept)), (*path, index) if several else path, given=True)
        kept.append(each)
    pod["spec"][at[-1]] = kept


def put_items(builder: PodBuilder, pod: Any, at: Path, path: Path, value: Any) -> None:
    """Append read-only items to a list that several paths add to."""
    existing = found if isinstance(found := read(pod, at), list) else []
    if isinstance(value, list):
        for index in range(len(value)):
            builder.add((*at, len(existing) + index), (*path, index), "readOnly")
        put(pod, at, [*existing, *value])
    elif value is not None:
        put_same(builder, pod, at, path, value)


def put_more(builder: PodBuilder, pod: Any, at: Path, path: Path, value: Any) -> None:
    """Append items to a list that several paths add to. Defaults go to the last path."""
    found = read(pod, at)
    existing = found if isinstance(found, list) else []
    if value is not None and not isinstance(value, list):
        put_same(builder, pod, at, path, value)
        return
    builder.fragments.append(Fragment(at, path, "same", value is not None, len(existing)))
    if value is not None:
        put(pod, at, [*existing, *value])


def put_variables(builder: PodBuilder, pod: Any, at: Path, path: Path, value: Any) -> None:
    """Append the environment variables of a map. References stay references."""
    existing = found if isinstance(found := read(pod, at), list) else []
    for name, each in value.items() if isinstance(value, dict) else ():
        builder.add((*at, len(existing)), (*path, name), "told")
        source = (
            {"valueFrom": {"secretKeyRef": each}} if isinstance(each, dict) else {"value": each}
        )
        existing = [*existing, {"name": name, **source}]
    if existing:
        put(pod, at, existing)


def put_item(builder: PodBuilder, pod: Any, at: Path, path: Path, value: Any) -> None:
    """Append an item of a list whose keys are other fragments.

    A container is identified by its name, also after an update. One without a name is named after
    its path.
    """
    builder.add(at, path, "told")
    if at[:-1] == CONTAINER[:2]:
        put(pod, (*at, "name"), display(path))


def put_reported(builder: PodBuilder, pod: Any, at: Path, path: Path, value: Any) -> None:
    """Add a path for messages, without a value."""
    builder.add(at, path, "told")


def put_fixed(builder: PodBuilder, pod: Any, at: Path, path: Path, value: Any) -> None:
    """Write a fragment as it is. Nothing can be written to it."""
    if value is not None:
        builder.add(at, path, "told", given=True)
        put(pod, at, value)


def put_mark(builder: PodBuilder, pod: Any, at: Path, path: Path, value: Any) -> None:
    """Add a value that proves that there is a pod, but contains nothing of it.

    If it marks a container, the object contains nothing else of that container: no default is
    written.
    """
    if at == CONTAINER and value is not None:
        builder.add(at, path, "told", given=True)


FORMS: Final[dict[str, FragmentForm]] = {
    "same": FragmentForm(put_same, own_path=True),
    "image": FragmentForm(put_image),
    "readOnly": FragmentForm(put_read_only, own_path=True),
    "names": FragmentForm(put_names),
    "also": FragmentForm(put_also, behind=True),
    "items": FragmentForm(put_items, behind=True),
    "more": FragmentForm(put_more, behind=True),
    "variables": FragmentForm(put_variables, behind=True),
    "mark": FragmentForm(put_mark),
    "item": FragmentForm(put_item, empty=True),
    "seen": FragmentForm(put_fixed, own_path=True, read_only=True),
    "told": FragmentForm(put_reported, own_path=True, empty=True),
}
"""The forms that profiles of all projects may use. An assembler adds those of its project."""
