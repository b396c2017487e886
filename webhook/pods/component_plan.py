"""How the pods of one component are found: its programs and what its profile says."""

from __future__ import annotations

from webhook.interface.fragment import FragmentSpec
from webhook.interface.interface import Component
from webhook.interface.profile import ComponentProfile, ExtraContainer, Profile
from webhook.pods.assemble import UPSTREAM, Assembler
from webhook.pods.assemblers.registry import ASSEMBLERS


class ComponentPlan:
    """How one component's pods are found: its programs and what its profile says."""

    __slots__ = (
        "alone",
        "assembler",
        "component",
        "extras",
        "ids",
        "metadata",
        "places",
        "profile",
        "roles",
        "specs",
        "template",
        "varies",
    )

    def __init__(
        self,
        component: Component,
        profile: ComponentProfile,
        extras: tuple[ExtraContainer, ...],
        specs: tuple[FragmentSpec, ...] = (),
        assembler: Assembler = ASSEMBLERS[""],
    ) -> None:
        self.specs = specs
        self.assembler = assembler
        self.component = component.name
        self.places = component.places
        self.template = component.template is not None
        self.metadata = component.metadata
        self.ids = component.ids
        self.profile = profile
        self.extras = extras
        # The path of an optional template.
        places = component.places if profile.without_template else None
        plain = places is not None and places.is_plain
        self.alone = places.matches({})[0].path if places is not None and plain else None
        # Most components have one role for all instances.
        self.roles = None if profile.by_instance else profile.roles("")
        main = profile.main
        self.varies = bool(
            main.with_ports
            or main.named_at
            or profile.merged_with
            or profile.leader_with
            or any(each.main for each in extras)
            or (self.places is not None and any(each.place.iterators for each in extras))
        )


def fragment_specs(component: Component, profile: Profile) -> tuple[FragmentSpec, ...]:
    """Return the fragments of a component's pods: the profile's, and others of the interface."""
    if component.form != "fragments":
        return ()
    own = profile.fragments.get(component.name, ())
    named = {spec.pod for spec in own}
    others = (
        FragmentSpec(UPSTREAM[name], program)
        for name, program in component.fragments.items()
        if UPSTREAM[name] not in named
    )
    forms = ASSEMBLERS[profile.assembler].forms
    # The first container comes before those appended to it, an item before its keys.
    return tuple(
        sorted((*others, *own), key=lambda each: (forms[each.form].behind, each.form != "item"))
    )
