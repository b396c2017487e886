"""Pods of devfiles, over which the object puts patches.

overrides  an object, or JSON text, that goes over the pod or container as a patch
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from webhook.objects.path import ABSENT, Path, read
from webhook.pods.assemble import Assembler
from webhook.pods.fragments import Fragment, FragmentForm, PodBuilder, decode_text, put

WHOLE: Final = ("metadata", "spec")
NOTHING: Final = type(None)


def put_overrides(builder: PodBuilder, pod: Any, at: Path, path: Path, value: Any) -> None:
    """A patch over the pod or one of its containers; text can be read only."""
    form = "told" if isinstance(value, str) else "same"
    builder.add(at, path, form, given=value is not None)
    patch = decode_text(value)
    whole = isinstance(patch, dict) and all(isinstance(patch.get(k, {}), dict) for k in WHOLE)
    if whole or (at and isinstance(patch, dict)):
        put_patch(builder, pod, at, path, patch, form)
    elif patch is not None:
        builder.refuse(path, "a map of what goes over the pod", value)


def put_patch(
    builder: PodBuilder, pod: Any, at: Path, path: Path, patch: dict[str, Any], form: str
) -> None:
    """Every value of a patch; lists go behind what is there, so that nothing is hidden."""
    for key, value in patch.items():
        here = (*at, key)
        there = path if form == "told" else (*path, key)
        existing = read(pod, here)
        if isinstance(existing, (dict, list)) and not isinstance(
            value, (existing.__class__, NOTHING)
        ):
            builder.refuse(there, "a list" if isinstance(existing, list) else "a map", value)
        elif isinstance(value, dict):
            put_patch(builder, pod, here, there, value, form)
        elif isinstance(value, list):
            before = existing if isinstance(existing, list) else []
            builder.fragments.append(Fragment(here, there, form, True, len(before)))
            put(pod, here, [*before, *value])
        elif value is not None:
            if existing not in (ABSENT, None, value) and here in builder.latest:
                builder.overridden.append((here, builder.latest[here], existing))
            builder.add(here, there, form, given=True)
            put(pod, here, value)


class DevfileAssembler(Assembler):
    """Assembles the pod of a workspace, one container for each component."""

    def own_forms(self) -> Mapping[str, FragmentForm]:
        return {"overrides": FragmentForm(put_overrides)}
