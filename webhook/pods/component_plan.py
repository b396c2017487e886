"""How the pods of one component are found: its programs and what its profile says."""

from __future__ import annotations

from webhook.interface.fragment import Part
from webhook.interface.interface import Component
from webhook.interface.profile import ComponentProfile, ExtraContainer, Profile
from webhook.pods.assemble import BEHIND, UPSTREAM


class ComponentPlan:
    """How one component's pods are found: its programs and what its profile says."""

    __slots__ = (
        "alone",
        "component",
        "extras",
        "ids",
        "metadata",
        "parts",
        "places",
        "profile",
        "roles",
        "template",
        "varies",
    )

    def __init__(
        self,
        component: Component,
        profile: ComponentProfile,
        extras: tuple[ExtraContainer, ...],
        parts: tuple[Part, ...] = (),
    ) -> None:
        self.parts = parts
        self.component = component.name
        self.places = component.places
        self.template = component.template is not None
        self.metadata = component.metadata
        self.ids = component.ids
        self.profile = profile
        self.extras = extras
        # Where a template would be that the object need not have.
        places = component.places if profile.without_template else None
        plain = places is not None and places.is_plain
        self.alone = places.matches({})[0].path if places is not None and plain else None
        # Most components have one role whatever the instance is called.
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


def pod_parts(component: Component, profile: Profile) -> tuple[Part, ...]:
    """The pieces of a component's pods: the profile's, and those that only the interface has."""
    if component.form != "fragments":
        return ()
    own = profile.pod_parts.get(component.name, ())
    named = {part.pod for part in own}
    others = (
        Part(UPSTREAM[name], program)
        for name, program in component.fragments.items()
        if UPSTREAM[name] not in named
    )
    # A pod's first container comes before those that are put behind it, an item before its parts.
    return tuple(
        sorted((*others, *own), key=lambda each: (each.form in BEHIND, each.form != "item"))
    )
