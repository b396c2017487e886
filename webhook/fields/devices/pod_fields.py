"""Fields of devices in pods: the rules apply to what the claims and resources of a pod are.

Nothing is written: a claim is an object of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from webhook.devices.claim_view import ClaimView, DeviceRequest, Option
from webhook.devices.classes import MIG_RESOURCE, device_classes_of
from webhook.evaluation.installation import InstallationConfig
from webhook.evaluation.state import Evaluation, ratchets
from webhook.fields.devices.carriers import NOT_OF_PODS
from webhook.fields.devices.object_fields import FILLED_BY_SERVER, ListRules
from webhook.fields.devices.pod_claims import (
    CLAIM_UNKNOWN,
    PodClaim,
    claims_of,
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
    """One value of a field in a pod, at a path of the pod.

    `key` identifies what it is of: a claim and a part of it, or a resource. `own`: users chose it,
    not the device class. `place` is where the claim has it, for messages.
    """

    path: Path
    key: tuple[Any, ...]
    value: Any
    name: str = ""
    own: bool = True
    unbounded: str = ""
    needed: bool = True
    place: str = ""


class PodDeviceField(PodField):
    """A field of the devices of a pod. Rules apply to each value in each of its claims."""

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

    def look(self, view: PodView, ev: Evaluation) -> list[Found]:
        """Return the values in the claims that are known, and in extended resources."""
        claims = claims_of(view, ev)
        if self.row.path == FORMS:
            return [*self.find_forms(view, ev, claims)]
        found: list[Found] = []
        if claims:
            classes = device_classes_of(ev.references, self.config)
            for claim in claims:
                if claim.view is not None:
                    values = read_values(self.row, Claim(claim.view, classes))
                    found += [in_claim(claim, each) for each in values]
        if self.row.path in OF_RESOURCES:
            found += self.find_in_resources(view, ev)
        return found

    def find_forms(
        self, view: PodView, ev: Evaluation, claims: Sequence[PodClaim]
    ) -> Iterator[Found]:
        """Yield how the pod gets devices, or that it gets none."""
        for claim in claims:
            yield Found(claim.path, (claim.key,), [claim.form], claim.name)
        resources = resources_of(view, device_classes_of(ev.references, self.config))
        for each in resources:
            yield Found(each.path, (each.name,), [EXTENDED_RESOURCE])
        if not claims and not resources:
            yield Found((*view.spec_path, "resourceClaims"), (), None)

    def find_in_resources(self, view: PodView, ev: Evaluation) -> Iterator[Found]:
        """Yield the values of extended resources: by their classes, and profiles by their names."""
        classes = device_classes_of(ev.references, self.config)
        for each in resources_of(view, classes):
            option = Option(each.path, each.name, {"deviceClassName": each.device_class})
            request = DeviceRequest(each.path, each.name, (option,))
            for value in read_values(self.row, Claim(ClaimView((), (request,)), classes)):
                if self.row.path != PROFILE or MIG_RESOURCE not in each.name:
                    yield Found(each.path, (each.name, value.key), value.value, needed=value.needed)
        if self.row.path == PROFILE:
            yield from find_profiles(view)

    def check_intent(self, view: PodView, ev: Evaluation) -> None:
        """Check prohibitions: of what users choose, any value but the default breaks them."""
        before = self.before(view, ev)
        for each in self.look(view, ev):
            if each.own and not self.is_default(each.value):
                for rule in self.rules.prohibitions:
                    if not ((each.key, each.value) in before and ratchets(rule)):
                        self.refuse(ev, each, rule)
        self.refuse_unknown(view, ev, self.rules.prohibitions)

    def is_default(self, native: Any) -> bool:
        """Return whether a value is the default, or what its absence means if there is none."""
        if native is None or self.rules.equals_default(native):
            return True
        meaning = (self.row.absent, FILLED_BY_SERVER.get(self.row.path))
        return self.rules.default is None and native in meaning

    def refuse(self, ev: Evaluation, found: Found, rule: Constraint) -> None:
        """Report a value that the pod may not have."""
        default, allowed = self.rules.default, None
        if default is not None and rule.type.fixes_default:
            allowed = self.rules.show(default.value)
        shown = self.rules.show_native(found.value)
        ev.violate(self.row.path, found.path, shown, allowed, rule, key=found.name, fix=found.place)

    def fill(self, view: PodView, ev: Evaluation) -> None:
        """Write nothing."""

    def check_final(self, view: PodView, ev: Evaluation) -> None:
        """Check every value, what an absent one means, and whether it is required."""
        before = self.before(view, ev)
        for each in self.look(view, ev):
            unchanged = (each.key, each.value) in before
            if each.unbounded:
                self.refuse_unbounded(ev, each, unchanged=unchanged)
            elif each.value is not None:
                self.rules.check_final(
                    ev,
                    each.path,
                    each.value,
                    unchanged=unchanged,
                    key=each.name,
                    fix=each.place,
                )
            else:
                self.check_absent(ev, each, unchanged=unchanged)
        rules = [rule for rule, _ in self.rules.final if limits_values(rule)]
        self.refuse_unknown(view, ev, rules)

    def check_absent(self, ev: Evaluation, found: Found, *, unchanged: bool) -> None:
        """Check what an absent value means, and that the value is there if it is required."""
        absent = self.row.absent
        if absent is not ABSENT:
            self.rules.check_value(
                ev, found.path, absent, unchanged=unchanged, key=found.name, fix=found.place
            )
        if found.needed and (absent is ABSENT or self.row.explicit):
            for each in self.rules.required:
                if not (unchanged and ratchets(each)):
                    ev.violate(
                        self.row.path,
                        found.path,
                        None,
                        "a value",
                        each,
                        key=found.name,
                        fix=found.place,
                    )

    def refuse_unbounded(self, ev: Evaluation, found: Found, *, unchanged: bool) -> None:
        """Report a number without a bound as breaking each maximum."""
        for each, _ in self.rules.final:
            if each.type.is_maximum and not (unchanged and ratchets(each)):
                ev.violate(
                    self.row.path,
                    found.path,
                    f"no bound ({found.unbounded})",
                    self.rules.show_argument(each),
                    each,
                    reason="unbounded",
                    key=found.name,
                    fix=found.place,
                )

    def refuse_unknown(self, view: PodView, ev: Evaluation, rules: Sequence[Constraint]) -> None:
        """Report claims that nobody knows, for rules that limit what they may be."""
        unknown = [each for each in claims_of(view, ev) if each.view is None] if rules else []
        if not unknown or self.row.path == FORMS:
            return
        known = {each.key for each in claims_of(view.old, ev)} if view.old is not None else ()
        for claim in unknown:
            for rule in rules:
                if not (claim.key in known and ratchets(rule)):
                    ev.violate(
                        self.row.path,
                        claim.path,
                        None,
                        None,
                        rule,
                        reason=CLAIM_UNKNOWN,
                        key=claim.name,
                    )

    def before(self, view: PodView, ev: Evaluation) -> list[tuple[Any, Any]]:
        """Return the values before the update, each with what it is of."""
        if view.old is None:
            return []
        return [(each.key, each.value) for each in self.look(view.old, ev)]

    def read(self, view: PodView, ev: Evaluation) -> Iterator[FieldValue]:
        """Yield the values of the claims and resources."""
        for each in self.look(view, ev):
            value = f"no bound ({each.unbounded})" if each.unbounded else each.value
            if value is not None:
                yield FieldValue(each.path, value, each.name, each.place or None, derived=True)

    def current(self, view: PodView, ev: Evaluation) -> Any:
        """Nothing is computed from it."""
        return None


def in_claim(claim: PodClaim, value: DeviceValue) -> Found:
    """Return a value of a claim as one of the pod."""
    where = f"It is at {display(value.path)} of {claim.name}."
    if value.device_class:
        where = f"The device class {value.device_class} of {claim.name} sets it."
    return Found(
        claim.path,
        (claim.key, value.key),
        value.value,
        claim.name,
        not value.device_class,
        value.unbounded,
        value.needed,
        where,
    )


def find_profiles(view: PodView) -> Iterator[Found]:
    """Yield the MIG profiles in names of resources."""
    for path, name in used_resources(view):
        if MIG_RESOURCE in name:
            yield Found(path, (name,), name.partition(MIG_RESOURCE)[2])


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
