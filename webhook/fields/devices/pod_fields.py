"""Fields of devices in pods: the rules apply to what the claims and resources of a pod are.

Nothing is written: a claim is an object of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from webhook.devices.claim_view import ClaimView, DeviceRequest, Option
from webhook.devices.classes import MIG_RESOURCE, Same, device_classes_of
from webhook.evaluation.installation import InstallationConfig
from webhook.evaluation.state import Evaluation, ratchets
from webhook.fields.devices.carriers import NOT_OF_PODS
from webhook.fields.devices.object_fields import FILLED_BY_SERVER, ListRules
from webhook.fields.devices.pod_claims import (
    CLAIM_UNKNOWN,
    PodClaim,
    claims_of,
    name_claims,
    resources_of,
    used_resources,
)
from webhook.fields.devices.readers import read_values
from webhook.fields.devices.values import Claim, DeviceValue
from webhook.fields.handler import (
    MAIN,
    UNMAPPED,
    FieldSource,
    FieldValue,
    Phases,
    PodField,
    PodHandler,
    Support,
)
from webhook.fields.scalar import rules_of
from webhook.objects.lookup import frozen
from webhook.objects.path import ABSENT, Path, display
from webhook.pods.definition import Definition
from webhook.pods.pod_view import PodView
from webhook.policy.combine import Constraint, Leaf
from webhook.policy.row import DEVICE, DEVICE_LIST, Field

FORMS: Final = "devices.forms"
PROFILE: Final = "devices.migProfile"
OF_RESOURCES: Final = ("devices.classes", "devices.types", PROFILE)
"""The fields that extended resources have too."""
EXTENDED_RESOURCE: Final = "extendedResource"
CLAIMS: Final[Path] = ("spec", "resourceClaims")
RESOURCES: Final[Path] = (*MAIN, "resources")


class Found(NamedTuple):
    """One value of a field in a pod, at a path of the pod: of a claim, or of a resource."""

    path: Path
    value: DeviceValue
    claim: PodClaim | None = None

    @property
    def name(self) -> str:
        """The name of the claim, "" for a resource."""
        return self.claim.name if self.claim is not None else ""

    @property
    def place(self) -> str:
        """Where the claim has the value, for messages; "" for a value of the pod itself."""
        if self.claim is None or not self.value.path:
            return ""
        if self.value.device_class:
            return f"The device class {self.value.device_class} of {self.name} sets it."
        return f"It is at {display(self.value.path)} of {self.name}."


class PodDeviceField(PodField):
    """A field of the devices of a pod. Rules apply to each value in each of its claims.

    A claim is read once in a review, and of equal values in it the first is reported. If a pod has
    several claims of one template, all that is wrong is reported for the first.
    """

    __slots__ = ("config",)

    def __init__(self, row: Field, leaf: Leaf, config: InstallationConfig) -> None:
        rules = rules_of(row, leaf)
        if row.shape == DEVICE_LIST:
            rules = ListRules(row.path, leaf, row.reading(), array=True, secret=row.secret)
        super().__init__(row, rules)
        self.phases = Phases(
            intent=bool(rules.prohibitions), final=bool(rules.final or rules.required)
        )
        self.config = config

    def values_in(self, view: ClaimView, ev: Evaluation) -> list[DeviceValue]:
        """Return the different values in a claim."""
        claim = ev.once(
            ("claim", Same(view)),
            lambda: Claim(view, device_classes_of(ev.references, self.config)),
        )
        return ev.once(
            (self.row.path, Same(view)), lambda: first_of_equal(read_values(self.row, claim))
        )

    def find_outside_claims(self, view: PodView, ev: Evaluation) -> Iterator[Found]:
        """Yield the values of extended resources, and the forms in which a pod gets devices."""
        if self.row.path not in OF_RESOURCES and self.row.path != FORMS:
            return
        classes = device_classes_of(ev.references, self.config)
        resources = resources_of(view, classes)
        if self.row.path == FORMS:
            claims = list(name_claims(view))
            for claim in claims:
                yield Found(claim.path, DeviceValue((), [claim.form]), claim)
            for each in resources:
                yield Found(each.path, DeviceValue((), [EXTENDED_RESOURCE], each.name))
            if not claims and not resources:
                yield Found((*view.spec_path, "resourceClaims"), DeviceValue(()))
            return
        for each in resources:
            option = Option(each.path, each.name, {"deviceClassName": each.device_class})
            request = DeviceRequest(each.path, each.name, (option,))
            for value in read_values(self.row, Claim(ClaimView((), (request,)), classes)):
                if self.row.path != PROFILE or MIG_RESOURCE not in each.name:
                    yield Found(each.path, value)
        if self.row.path == PROFILE:
            yield from find_profiles(view)

    def find_faults(
        self, view: PodView, ev: Evaluation, breaks: Callable[[DeviceValue], bool]
    ) -> Iterator[tuple[Found, bool]]:
        """Yield the values that break a rule, and whether the pod had them before the update."""
        in_claims = self.row.path != FORMS
        old = claims_of(view.old, ev) if view.old is not None and in_claims else []
        old_claims = {each.key: each for each in old}
        reported = set()
        for claim in claims_of(view, ev) if in_claims else ():
            body = claim.view
            if body is None:
                continue
            faults = ev.once((breaks, Same(body)), partial(self.faults_in, body, ev, breaks))
            was = old_claims.get(claim.key)
            same = was is not None and was.view == body
            if not faults:
                continue
            if (same, id(body)) in reported:
                faults = faults[:1]  # the others are those of another claim of the pod
            reported.add((same, id(body)))
            others = was.view if was is not None and not same else None
            listed = self.values_in(others, ev) if others is not None else ()
            had = {what_of(each) for each in listed}
            for each in faults:
                yield Found(claim.path, each, claim), same or what_of(each) in had
        outside = [each for each in self.find_outside_claims(view, ev) if breaks(each.value)]
        if outside:
            before = self.find_outside_claims(view.old, ev) if view.old is not None else ()
            known = {(each.name, each.value.key, what_of(each.value)) for each in before}
            for found in outside:
                yield found, (found.name, found.value.key, what_of(found.value)) in known

    def faults_in(
        self, view: ClaimView, ev: Evaluation, breaks: Callable[[DeviceValue], bool]
    ) -> list[DeviceValue]:
        """Return the values in a claim that break a rule."""
        return [each for each in self.values_in(view, ev) if breaks(each)]

    def check_intent(self, view: PodView, ev: Evaluation) -> None:
        """Check prohibitions: of what users choose, any value but the default breaks them."""
        for found, unchanged in self.find_faults(view, ev, self.is_chosen):
            for rule in self.rules.prohibitions:
                if not (unchanged and ratchets(rule)):
                    self.refuse(ev, found, rule)
        self.refuse_unknown(view, ev, self.rules.prohibitions)

    def is_chosen(self, found: DeviceValue) -> bool:
        """Return whether a user chose a value, other than the default or what its absence means."""
        if found.value is None or found.device_class or self.rules.equals_default(found.value):
            return False
        meaning = (self.row.absent, FILLED_BY_SERVER.get(self.row.path))
        return self.rules.default is not None or found.value not in meaning

    def refuse(self, ev: Evaluation, found: Found, rule: Constraint) -> None:
        """Report a value that the pod may not have."""
        default, allowed = self.rules.default, None
        if default is not None and rule.type.fixes_default:
            allowed = self.rules.show(default.value)
        shown = self.rules.show_native(found.value.value)
        ev.violate(self.row.path, found.path, shown, allowed, rule, key=found.name, fix=found.place)

    def fill(self, view: PodView, ev: Evaluation) -> None:
        """Write nothing."""

    def check_final(self, view: PodView, ev: Evaluation) -> None:
        """Check every value, what an absent one means, and whether it is required."""
        for found, unchanged in self.find_faults(view, ev, self.breaks_final):
            named = {"key": found.name, "fix": found.place}
            if found.value.unbounded:
                self.refuse_unbounded(ev, found, unchanged=unchanged)
            elif found.value.value is not None:
                self.rules.check_final(
                    ev, found.path, found.value.value, unchanged=unchanged, **named
                )
            else:
                if self.row.absent is not ABSENT:
                    self.rules.check_value(
                        ev, found.path, self.row.absent, unchanged=unchanged, **named
                    )
                if self.lacks(found.value):
                    self.rules.check_required(ev, found.path, unchanged=unchanged, **named)
        self.refuse_unknown(view, ev, [rule for rule, _ in self.rules.final if limits_values(rule)])

    def breaks_final(self, found: DeviceValue) -> bool:
        """Return whether a value breaks a final rule, or one is missing that is required."""
        if found.unbounded:
            return any(each.type.is_maximum for each, _ in self.rules.final)
        if found.value is not None:
            return not self.rules.passes(found.value)
        absent = self.row.absent
        if self.lacks(found) and self.rules.required:
            return True
        return absent is not ABSENT and not all(
            holds(absent, each.argument) for each, holds in self.rules.final
        )

    def lacks(self, found: DeviceValue) -> bool:
        """Return whether an absent value counts as missing."""
        return found.needed and (self.row.absent is ABSENT or self.row.explicit)

    def refuse_unbounded(self, ev: Evaluation, found: Found, *, unchanged: bool) -> None:
        """Report a number without a bound as breaking each maximum."""
        for each, _ in self.rules.final:
            if each.type.is_maximum and not (unchanged and ratchets(each)):
                ev.violate(
                    self.row.path,
                    found.path,
                    f"no bound ({found.value.unbounded})",
                    self.rules.show_argument(each),
                    each,
                    reason="unbounded",
                    key=found.name,
                    fix=found.place,
                )

    def refuse_unknown(self, view: PodView, ev: Evaluation, rules: Sequence[Constraint]) -> None:
        """Report claims that nobody knows, for rules that limit what they may be."""
        if not rules or self.row.path == FORMS:
            return
        unknown = [each for each in claims_of(view, ev) if each.view is None]
        if not unknown:
            return
        before = {each.key for each in claims_of(view.old, ev)} if view.old is not None else set()
        reported = set()
        for claim in unknown:
            same = claim.key in before
            if (same, claim.name) in reported:
                continue
            reported.add((same, claim.name))
            for rule in rules:
                if not (same and ratchets(rule)):
                    reason = CLAIM_UNKNOWN
                    ev.violate(
                        self.row.path, claim.path, None, None, rule, reason=reason, key=claim.name
                    )

    def read(self, view: PodView, ev: Evaluation) -> Iterator[FieldValue]:
        """Yield the values of the claims and resources."""
        known = claims_of(view, ev) if self.row.path != FORMS else []
        found = [
            Found(claim.path, value, claim)
            for claim in known
            if claim.view is not None
            for value in self.values_in(claim.view, ev)
        ]
        for each in (*found, *self.find_outside_claims(view, ev)):
            value: Any = each.value.value
            if each.value.unbounded:
                value = f"no bound ({each.value.unbounded})"
            if value is not None:
                yield FieldValue(each.path, value, each.name, each.place or None, derived=True)

    def current(self, view: PodView, ev: Evaluation) -> Any:
        """Nothing is computed from it."""
        return None


def what_of(found: DeviceValue) -> Hashable:
    """Return all that decides about a value, wherever it is."""
    return frozen(found.value), found.device_class, found.unbounded, found.needed


def first_of_equal(values: Iterable[DeviceValue]) -> list[DeviceValue]:
    """Return the first of each group of equal values, in order."""
    found: dict[Hashable, DeviceValue] = {}
    for each in values:
        found.setdefault(what_of(each), each)
    return list(found.values())


def find_profiles(view: PodView) -> Iterator[Found]:
    """Yield the MIG profiles in names of resources."""
    for path, name in used_resources(view):
        if MIG_RESOURCE in name:
            yield Found(path, DeviceValue((), name.partition(MIG_RESOURCE)[2], name))


def limits_values(rule: Constraint) -> bool:
    """Return whether a rule limits what a value may be: a maximum, or a list."""
    return rule.type.is_maximum or rule.type.argument == "options"


class PodDeviceHandler(PodHandler):
    """Values of the claims of pods."""

    name = DEVICE
    feeds_defaults = False

    def compile(self, source: FieldSource) -> PodDeviceField | None:
        """Compile the field, None if pods do not have it."""
        if source.row.path in NOT_OF_PODS:
            return None
        return PodDeviceField(source.row, source.leaf, source.config)

    def support(self, row: Field, definition: Definition, component: str) -> Support:
        """Return whether a kind has the field in its pods."""
        if row.path in NOT_OF_PODS:
            return UNMAPPED, "only objects with devices have it"
        return super().support(row, definition, component)

    def pod_paths(self, row: Field) -> Sequence[Path]:
        """Where a pod template has the field."""
        of_resources = row.path == FORMS or row.path in OF_RESOURCES
        return [CLAIMS, RESOURCES] if of_resources else [CLAIMS]


class PodDeviceListHandler(PodDeviceHandler):
    """Lists of what the claims and extended resources of pods name."""

    name = DEVICE_LIST
