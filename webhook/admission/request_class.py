"""Who sends a request, and what treatment semantics §6 gives: children, owned objects, subresources."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from webhook.catalog.catalog import Catalog
from webhook.decision.owners import controller_of
from webhook.decision.unchanged import body_changed
from webhook.evaluation.request import Request, Stage, Treatment
from webhook.evaluation.trusted_mutators import take_out
from webhook.interface.profile import Profile
from webhook.objects.path import read
from webhook.pods.definition import Definition
from webhook.pods.location import LocationError
from webhook.pods.replicas import read_scales


def profiles_of_owner(catalog: Catalog, owner: tuple[str, str]) -> Iterator[Profile]:
    """The profiles of the owner's own kind, else those that name it as an intermediate kind.

    A kind that says itself who makes its children is not widened by what others make of it: a
    Deployment's controller makes no Pods of a Job because some operator uses both.
    """
    own = [each.profile for each in catalog.definitions.get(owner, ())]
    if any(profile.controllers for profile in own):
        yield from own
        return
    for definitions in catalog.definitions.values():
        for each in definitions:
            if owner in each.profile.intermediate_kinds:
                yield each.profile


ROLLOUTS: Final = (("spec", "strategy"), ("spec", "updateStrategy"))
"""How a set goes from one pod to the next: no field of a policy reads it."""


MIRROR: Final = "kubernetes.io/config.mirror"
NODE: Final = "system:node:"


def is_child_of_controller(request: Request, catalog: Catalog) -> bool:
    """CREATE, and updates of metadata and replicas: what a controller may do to its children."""
    return request.operation != "UPDATE" or changes_replicas_only(request, catalog)


def is_sent_by_controller(request: Request, catalog: Catalog, owner: tuple[str, str]) -> bool:
    """Whether the sender makes what such an owner controls, by its exact user name.

    The owner's profile names the users, or the installation's list (semantics §11.4). Never an
    owner reference alone, which anybody can write, and never a subresource.
    """
    if request.subresource:
        return False
    if any(request.user in each.controllers for each in profiles_of_owner(catalog, owner)):
        return True
    return catalog.vocabulary.controllers.trusts(request.user, owner)


def is_made_verbatim(request: Request, catalog: Catalog) -> bool:
    """Whether a controller, if it made the object, made it of pods that were evaluated before.

    Who made it is not asked, so that this is for objects that are already there.
    """
    owner = controller_of(request.object)
    if owner is None or not is_governed(catalog, owner) or is_merged(request, catalog, owner):
        return False
    if any(each.controllers for each in profiles_of_owner(catalog, owner)):
        return True
    return any(owner in each.kinds for each in catalog.vocabulary.controllers.entries)


def is_governed(catalog: Catalog, owner: tuple[str, str]) -> bool:
    """Whether objects of the owner's kind, or what they are made from, are evaluated."""
    return any(each in catalog.definitions for each in catalog.governed_kinds(*owner))


def is_mirror(request: Request) -> bool:
    """Whether a kubelet shows a static pod of its node: what runs there is in no one's hands here.

    Anybody can write the annotation, so that only a node's own user counts.
    """
    if (request.group, request.kind) != ("", "Pod") or not request.user.startswith(NODE):
        return False
    annotations = read(request.object, ("metadata", "annotations"))
    return isinstance(annotations, dict) and MIRROR in annotations


def changes_replicas_only(request: Request, catalog: Catalog) -> bool:
    """Whether an update leaves the body as it is, but for numbers of pods that are made of it.

    They follow from the owner's, which is judged: a rollout scales its ReplicaSets to none. What an
    operator says of the rollout beside them may be new each time: servers forget some of it.
    """
    if not body_changed(request):
        return True
    definition = catalog.definition(request.group, request.kind, request.version)
    if definition is None:
        return False
    left = replace(
        request,
        object=without_replicas(definition, request.object),
        old=without_replicas(definition, request.old),
    )
    return not body_changed(left)


def without_replicas(definition: Definition, document: Any) -> Any:
    """A copy of the object without its numbers of replicas, and how they are rolled out."""
    left = copy.deepcopy(document)
    try:
        places = [each.path for each in read_scales(definition, document) if each.path]
    except LocationError:
        places = []
    for path in (*places, *ROLLOUTS):
        take_out(left, path)
    return left


def is_merged(request: Request, catalog: Catalog, owner: tuple[str, str]) -> bool:
    """Whether the object is the first with a whole pod spec below a workload that lacks some.

    That is what its controller makes at once, or what comes of a kind in between that nobody
    describes; what is made of that in turn has been judged.
    """
    if catalog.definition(request.group, request.kind, request.version) is None:
        return False
    made = (request.group, request.kind)
    return any(
        leaves_children_open(each, made)
        for kind in catalog.governed_kinds(*owner)
        for definition in catalog.definitions.get(kind, ())
        for each in definition.everyone
    )


def leaves_children_open(definition: Definition, made: tuple[str, str]) -> bool:
    """Whether pods in objects of this kind may differ from what the workload says.

    Components may say what is made for them alone; else anything may be. Without any the pods are
    those of what it refers to. Whether the place of
    `mergedWith` is set is not seen here, so that such components are always open.
    """
    profile = definition.profile
    if profile.undefined_kinds or states_no_pods(definition):
        return True
    named = profile.components.values()
    if not named:
        return any(each.pods for each in profile.references)
    own = [each for each in named if made in each.makes]
    return any(each.children == "merged" or each.merged_with is not None for each in own or named)


def states_no_pods(definition: Definition) -> bool:
    """Whether nothing of the pods is stated in objects of a kind, so that nothing was evaluated."""
    return not definition.embedded and not any(each.plans for each in definition.everyone)


def definition_for(request: Request, catalog: Catalog) -> Definition | None:
    """The definition of the object, or of what a scale is the scale of."""
    if request.subresource == "scale":
        return catalog.definition_of_resource(
            request.resource_group, request.resource, request.resource_version
        )
    return catalog.definition(request.group, request.kind, request.version)


def treatment_of_child(request: Request, catalog: Catalog, owner: tuple[str, str]) -> Treatment:
    """CHILD where the workload left its pods open; DERIVED where they were evaluated as they are.

    Only the validating pass sees what webhooks behind podgate's have added.
    """
    if is_merged(request, catalog, owner):
        return Treatment.CHILD
    known = catalog.definition(request.group, request.kind, request.version) is not None
    validates = known and request.stage is Stage.VALIDATE
    return Treatment.DERIVED if validates else Treatment.EXEMPT


def treatment(request: Request, catalog: Catalog) -> Treatment:
    """EXEMPT, CHILD or DERIVED for what controllers make, OWNED for what others say they own.

    UNPATCHED are subresources and what nobody could complete. TRUSTED is who changes fields that
    the installation's list leaves to them, subresources too.
    """
    owner = None if request.subresource else controller_of(request.object)
    listed = owner is not None and is_sent_by_controller(request, catalog, owner)
    made_of_governed = owner is not None and listed and is_governed(catalog, owner)
    if owner is not None and made_of_governed and is_child_of_controller(request, catalog):
        made = request.operation == "CREATE"
        return treatment_of_child(request, catalog, owner) if made else Treatment.EXEMPT
    if catalog.vocabulary.trusted.trusts(request, definition_for(request, catalog)):
        return Treatment.TRUSTED
    is_pod = (request.group, request.kind) == ("", "Pod")
    if owner is not None and made_of_governed and request.operation == "UPDATE" and not is_pod:
        # The controller changes the pods of what it made: the owner's policies still apply. Only
        # the operator may add the labels and annotations by which it follows its own rollouts.
        return treatment_of_child(request, catalog, owner)
    if request.subresource or is_mirror(request):
        return Treatment.UNPATCHED
    if owner is None or is_pod:
        # A Pod may be completed like any other; what controllers compare with a template may not.
        return Treatment.FULL
    return Treatment.UNPATCHED if listed else Treatment.OWNED
