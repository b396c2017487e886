"""A fragment of a pod: its path in the pod, its path in the object, and its form there.

Besides these forms, an assembler (webhook/pods/assemblers) can have forms of one project:

    same        as in a pod
    image       {repository, tag} for an image
    names       a list of names for a list of {name}
    also        a container as in a pod, or a list of containers, appended to the existing ones
    items       a list that is appended to the existing items; read only
    more        the same, and defaults can be written to it
    readOnly    as in a pod; read only
    variables   a map of names to values, appended to the existing variables
    mark        any value that shows that the pod, or the container, exists; its content is ignored
    item        one item of a list of the pod for each element; its keys are fragments of their own
    seen        as in a pod; read only
    told        represents a path of the pod, but cannot be read or written like it

A path in the pod can have one `[]` (`.spec.containers[].image`). Its items are those of the form
`item`. A fragment belongs to the item whose elements of the object are on its path.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from webhook.jq.path import Program
from webhook.objects.path import Path


@dataclass(frozen=True, slots=True)
class FragmentSpec:
    """A fragment: its path in the pod, its path in the object (`place`), and its form.

    `absent` is the value that the operator uses if the object sets none. If some fragments of a
    component have `makes_pod`, there is a pod only with one of them. `each` is the index in `pod`
    of the step that means every item of a list.
    """

    pod: Path
    place: Program
    form: str = "same"
    absent: Any = None
    makes_pod: bool = False
    each: int | None = None
