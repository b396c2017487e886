"""A fragment of a pod: which place of the pod it is, where it is in the object, in which form.

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
    items       a list of which more may be elsewhere, behind what is there; read only
    more        such a list that takes defaults
    readOnly    as in a pod, where nothing is to be written
    variables   a map of names to values, behind the variables that are there
    device      {name, quantity} for a limit of the first container
    quantities  {cpu, memory} for its requests and limits
    mark        whatever shows that there is a pod, and says nothing of it; of a container: that
                the object says nothing else of it
    steps       containers with their amounts under computeResources, behind those that are there
    base        a container from which those that are there take what they lack
    over        variables that the containers that are there get besides their own
    amounts     {name, computeResources or resources} over those of the container of that name
    shared      amounts of the whole pod, in place of those of the containers that are there
    workspaces  volumes of workspaces, behind what is there; claim templates are left out
    sparkDriver, sparkExecutor: the memory that Spark asks for, of an application's spec
    item        one item of a list of the pod for each element, its keys are parts of their own
    overrides   an object, or JSON text, that goes over the pod or container as a patch
    text        a list of containers as JSON text, behind those that are there; read only
    devices     a list of {deviceName}, one unit each, for limits of the first container
    amount      an amount that holds where the pod states none; read only
    mounts      a map of volumes, {path, hostPath, claimName, …}, for mounts of a container and volumes
    name        a name for an item {name}, behind those that are there
    labelValues a map of node labels to values, for a node affinity that is required
    seen        as in a pod; read only
    told        what stands for a place of the pod, but cannot be read or written as such

A place of the pod may have one `[]` (`.spec.containers[].image`). Its items are those that parts of
form `item` found; a part belongs to the item whose elements of the object it goes through.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from webhook.jq.path import Program
from webhook.objects.path import Path

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
    "readOnly",
    "variables",
    "device",
    "quantities",
    "mark",
    "steps",
    "base",
    "over",
    "amounts",
    "shared",
    "workspaces",
    "sparkDriver",
    "sparkExecutor",
    "item",
    "overrides",
    "text",
    "devices",
    "amount",
    "mounts",
    "name",
    "labelValues",
    "seen",
    "told",
]


@dataclass(frozen=True, slots=True)
class Part:
    """One piece: a place of the pod, where it is in the object, in which form.

    `absent` is what the operator uses where the object sets nothing. Where some parts of a
    component `makes_pod`, there is a pod only with one of these. `each` is the index in `pod` of
    the step that stands for every item of a list.
    """

    pod: Path
    place: Program
    form: Form = "same"
    absent: Any = None
    makes_pod: bool = False
    each: int | None = None
