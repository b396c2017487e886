"""Classifies requests by sender (semantics §6): children, owned objects, subresources."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from webhook.catalog.catalog import Catalog
from webhook.decision.devices import is_made_for_pod, is_of_devices
from webhook.decision.owners import controller_of
from webhook.decision.unchanged import body_changed
from webhook.evaluation.request import Request, RequestClass, Stage
from webhook.evaluation.trusted_mutators import remove_path
from webhook.interface.profile import Profile
from webhook.objects.path import read
from webhook.pods.definition import Definition
from webhook.pods.location import LocationError
from webhook.pods.replicas import read_scales


def profiles_of_owner(catalog: Catalog, owner: tuple[str, str]) -> Iterator[Profile]:
    """Yield the profiles of the owner's kind, else those with it as an intermediate kind.

    If a kind's profile names the controllers of its children, profiles of other kinds add none: a
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
"""How a set replaces its pods. No field of a policy reads it."""


MIRROR: Final = "kubernetes.io/config.mirror"
NODE: Final = "system:node:"


def is_child_of_controller(request: Request, catalog: Catalog) -> bool:
    """Return whether a controller may do this to its children: CREATE, or update metadata or replicas."""
    return request.operation != "UPDATE" or changes_replicas_only(request, catalog)


def is_sent_by_controller(request: Request, catalog: Catalog, owner: tuple[str, str]) -> bool:
    """Return whether the sender creates objects of such an owner, by its exact user name.

    The owner's profile or the installation's list names the users (semantics §11.4). An owner
    reference alone is never enough, because anybody can write one, and a subresource never counts.
    """
    if request.subresource:
        return False
    if any(request.user in each.controllers for each in profiles_of_owner(catalog, owner)):
        return True
    return catalog.config.controllers.trusts(request.user, owner)


def is_made_verbatim(request: Request, catalog: Catalog) -> bool:
    """Return whether a controller that made the object copied it from evaluated pods.

    The sender is not checked, so this also works for existing objects.
    """
    owner = controller_of(request.object)
    if owner is None or is_of_devices(request) or not is_governed(catalog, owner):
        return False
    if is_merged(request, catalog, owner):
        return False
    if any(each.controllers for each in profiles_of_owner(catalog, owner)):
        return True
    return any(owner in each.kinds for each in catalog.config.controllers.entries)


def is_governed(catalog: Catalog, owner: tuple[str, str]) -> bool:
    """Return whether objects of the owner's kind, or their own owners, are evaluated."""
    return any(each in catalog.definitions for each in catalog.governed_kinds(*owner))


def is_mirror(request: Request) -> bool:
    """Return whether a kubelet reports a static pod of its node, which nobody here can change.

    Anybody can write the annotation, so only a node's own user counts.
    """
    if (request.group, request.kind) != ("", "Pod") or not request.user.startswith(NODE):
        return False
    annotations = read(request.object, ("metadata", "annotations"))
    return isinstance(annotations, dict) and MIRROR in annotations


def changes_replicas_only(request: Request, catalog: Catalog) -> bool:
    """Return whether an update changes only numbers of pods that are made from the object.

    They follow from the owner's, which is evaluated: a rollout scales its ReplicaSets to zero. The
    operator's rollout settings beside them may be new each time, because servers drop some of them.
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
    """Return a copy of the object without its numbers of replicas and its rollout settings."""
    left = copy.deepcopy(document)
    try:
        paths = [each.path for each in read_scales(definition, document) if each.path]
    except LocationError:
        paths = []
    for path in (*paths, *ROLLOUTS):
        remove_path(left, path)
    return left


def is_merged(request: Request, catalog: Catalog, owner: tuple[str, str]) -> bool:
    """Return whether the object is the first with a whole pod spec below a workload that lacks one.

    The workload's controller makes it directly, or through an undefined intermediate kind. An
    object made from it in turn has been evaluated.
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
    """Return whether pods in objects of this kind may differ from the workload's own pods.

    Components may define what is made for them. Otherwise anything may be made. A kind without
    components has the pods of objects that it refers to. The value of `mergedWith` is not read
    here, so such components are always open.
    """
    profile = definition.profile
    if profile.undefined_kinds or has_no_pods(definition):
        return True
    named = profile.components.values()
    if not named:
        return any(each.pods for each in profile.references)
    own = [each for each in named if made in each.makes]
    return any(each.children == "merged" or each.merged_with is not None for each in own or named)


def has_no_pods(definition: Definition) -> bool:
    """Return whether objects of a kind contain nothing of their pods, so nothing was evaluated."""
    return not definition.embedded and not any(each.plans for each in definition.everyone)


def definition_for(request: Request, catalog: Catalog) -> Definition | None:
    """Return the definition of the object, or of the object that a scale belongs to."""
    if request.subresource == "scale":
        return catalog.definition_of_resource(
            request.resource_group, request.resource, request.resource_version
        )
    return catalog.definition(request.group, request.kind, request.version)


def classify_child(request: Request, catalog: Catalog, owner: tuple[str, str]) -> RequestClass:
    """Return CHILD if the workload does not set its pods fully, DERIVED if its pods were evaluated.

    Only the validating pass sees what webhooks after podgate's have added.
    """
    if is_merged(request, catalog, owner):
        return RequestClass.CHILD
    known = catalog.definition(request.group, request.kind, request.version) is not None
    validates = known and request.stage is Stage.VALIDATE
    return RequestClass.DERIVED if validates else RequestClass.EXEMPT


def classify_request(request: Request, catalog: Catalog) -> RequestClass:
    """Return the class of a request.

    EXEMPT, CHILD and DERIVED are requests of controllers. OWNED are objects that others claim to
    own. UNPATCHED are subresources and objects that podgate cannot complete. TRUSTED senders change
    only fields that the installation's list allows them, also of subresources.
    """
    owner = None if request.subresource else controller_of(request.object)
    listed = owner is not None and is_sent_by_controller(request, catalog, owner)
    if is_made_for_pod(request):
        return RequestClass.EXEMPT
    # Claims of other controllers are evaluated: no pod of their owner has what they ask for.
    copied = listed and not is_of_devices(request)
    made_of_governed = owner is not None and copied and is_governed(catalog, owner)
    if owner is not None and made_of_governed and is_child_of_controller(request, catalog):
        made = request.operation == "CREATE"
        return classify_child(request, catalog, owner) if made else RequestClass.EXEMPT
    if catalog.config.trusted.trusts(request, definition_for(request, catalog)):
        return RequestClass.TRUSTED
    is_pod = (request.group, request.kind) == ("", "Pod")
    if owner is not None and made_of_governed and request.operation == "UPDATE" and not is_pod:
        # The controller changes the pods of what it made: the owner's policies still apply. Only
        # the operator may add the labels and annotations by which it follows its own rollouts.
        return classify_child(request, catalog, owner)
    if request.subresource or is_mirror(request):
        return RequestClass.UNPATCHED
    if owner is None or is_pod:
        # A Pod may be completed like any other; what controllers compare with a template may not.
        return RequestClass.FULL
    return RequestClass.UNPATCHED if listed else RequestClass.OWNED
