"""Fields of the workload as a whole: paths from the profile, replicas, priority class."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from webhook.evaluation.state import Evaluation, ratchets
from webhook.fields.derived import DerivedField
from webhook.fields.handler import (
    MAPPED,
    UNMAPPED,
    FieldSource,
    FieldValue,
    Support,
    WorkloadField,
    WorkloadHandler,
)
from webhook.fields.notation import Form, PathValue, form_of
from webhook.fields.replicas import count_replicas
from webhook.fields.scalar import INVALID, Before, ScalarRules
from webhook.fields.secret_paths import is_secret_path
from webhook.fields.workload_paths import (
    Locate,
    find_shadow_default,
    locate_common_path,
    locate_nothing,
    locate_paths,
    locate_unlimited,
    locate_writes,
    scale_writes,
    sum_of_scales,
)
from webhook.objects.path import ABSENT, Path, read
from webhook.pods.definition import Definition
from webhook.pods.location import LocationError
from webhook.pods.pod_view import PodView
from webhook.policy.combine import Leaf
from webhook.policy.row import SERVING_PORT, WORKLOAD, Field
from webhook.policy.rules.rule_type import Holds

PRIORITY_LABEL: Path = ("metadata", "labels", "priorityClassName")
METRIC, THRESHOLD = "autoscaling.metric", "autoscaling.metricThreshold"
COMPANIONS = {METRIC: THRESHOLD, THRESHOLD: METRIC}
NO_LIMIT = "no limit is set"
NOT_APPLIED = "no limit applies"
"""The value for a number that the operator ignores in this object."""
SUM = "The sum of {} groups counts, and this is the first: change one of them."


class WorkloadScalarField(WorkloadField):
    """A scalar of the workload. Rules apply to every path, a default goes to the `write` paths.

    `write` is None if the kind has no such path. `form` is the notation in the object. `is_counted`
    marks sums of replicas.
    """

    __slots__ = ("form", "is_counted", "path_values", "server_default", "unlimited", "write")

    def __init__(
        self,
        row: Field,
        leaf: Leaf,
        path_values: Locate,
        write: Locate | None,
        server_default: Any = None,
        form: Form | None = None,
        unlimited: Locate | None = None,
        *,
        is_counted: bool = False,
    ) -> None:
        self.form = form or Form(row.reading())
        super().__init__(row, rules_in_form(row, leaf, self.form))
        self.path_values = path_values
        self.write = write
        self.server_default = server_default
        self.unlimited = unlimited
        self.is_counted = is_counted

    def look(self, ev: Evaluation, document: Any) -> list[PathValue]:
        """Return the values in the notation of the form."""
        return self.form.gather(self.path_values(ev, document))

    def compared_values(
        self, ev: Evaluation, document: Any, views: Sequence[PodView]
    ) -> list[PathValue]:
        """Everything that is read of a document."""
        return self.look(ev, document)

    def before(self, ev: Evaluation, path_value: PathValue) -> Before:
        """Return the value before the update. An unreadable old object excuses nothing."""
        if ev.old is None:
            return None
        return ev.once((self, "before"), lambda: self.all_before(ev)).get(path_value.key)

    def all_before(self, ev: Evaluation) -> dict[str, tuple[Path, Any]]:
        """Return the places before the update by their keys."""
        try:
            old = self.look(ev, ev.old)
        except LocationError:
            return {}
        return {each.key: (each.path, each.value) for each in reversed(old)}

    def check_intent(self, views: Sequence[PodView], ev: Evaluation) -> None:
        """Check prohibitions on every path with a value."""
        path_values = self.look(ev, ev.request.object)
        if not path_values and self.write is None:
            self.warn_of_unmapped_fields(ev)
        for path_value in path_values:
            if path_value.value is None or path_value.computed or self.is_absence(path_value.value):
                continue
            before = self.before(ev, path_value)
            self.rules.check_intent(
                ev, path_value.path, path_value.value, before, self.server_default
            )

    def is_absence(self, native: Any) -> bool:
        """Return whether a value means the same as an absent field."""
        default = self.rules.default
        wants = default is not None and default.value is True
        return self.form.only_true and not wants and self.rules.read(native) is False

    def fill(self, views: Sequence[PodView], ev: Evaluation) -> None:
        """Write the default at each writable path that is unset."""
        default = self.rules.default
        if default is None:
            return
        native = self.rules.codec.write(default.value, default.raw)
        if native is None:
            return
        document = ev.draft.document
        if self.form.together and any(self.is_set(ev, each) for each in self.look(ev, document)):
            return
        path_values = self.form.gather(self.write(ev, document)) if self.write is not None else []
        if not path_values:
            reason = "unmapped-default" if self.write is None else "forbidden-default"
            ev.warn(reason, self.row.path, (), ev.request.kind)
        for path_value in path_values:
            self.fill_path(path_value, native, ev)

    def is_set(self, ev: Evaluation, path_value: PathValue) -> bool:
        """Return whether a path has a value that no server filled in."""
        value = path_value.value
        return value is not None and ev.set_by_user(path_value.path, value, self.server_default)

    def fill_path(self, path_value: PathValue, native: Any, ev: Evaluation) -> None:
        """Write the old value or the default at one path if it is unset."""
        before = self.before(ev, path_value)
        wanted = self.rules.choose_value(
            ev, path_value.path, path_value.value, self.server_default, before
        )
        if wanted is None or not ev.can_write(path_value.path):
            return
        kept, old = wanted
        value = self.form.lands(
            path_value.path, native if kept == "default" else old, ev.now(path_value.path)
        )
        if value is not None and value != path_value.value and self.agree(path_value.path, ev):
            source = self.rules.default.source if self.rules.default else None
            ev.write_workload(self.row.path, path_value.path, value, kept, source)

    def agree(self, path: Path, ev: Evaluation) -> bool:
        """Set the neighbour of a written path. Warn if the user's value does not fit."""
        beside = self.form.beside
        if beside is None:
            return True
        at = beside.of(path)
        now = ev.now(at)
        if now is None or now == beside.value:
            return True
        if ev.set_by_user(at, now, beside.filled) or not ev.can_write(at):
            ev.warn("forbidden-default", self.row.path, (), beside.key)
            return False
        source = self.rules.default.source if self.rules.default else None
        ev.write_workload(self.row.path, at, beside.value, "default", source)
        return True

    def check_final(self, views: Sequence[PodView], ev: Evaluation) -> None:
        """Check final rules on every path. Any of them satisfies `required`."""
        path_values = self.look(ev, ev.draft.document)
        if not path_values:
            self.warn_of_unmapped_fields(ev)
            return
        present = [path_value for path_value in path_values if path_value.value is not None]
        limited = present
        if self.unlimited is not None and self.rules.final:
            zeros = [each for each in present if self.is_zero_of_operator(ev, each)]
            limited = [each for each in present if each not in zeros]
            self.refuse_unlimited(ev, [*self.unlimited(ev, ev.draft.document), *zeros])
        for path_value in limited if self.rules.final else ():
            before = self.before(ev, path_value)
            unchanged = before is not None and before[1] == path_value.value
            fix = SUM.format(path_value.added_up) if path_value.added_up > 1 else ""
            self.rules.check_final(
                ev, path_value.path, path_value.value, unchanged=unchanged, fix=fix
            )
        if not present and self.rules.required and not self.absent_is_value():
            old = [self.before(ev, path_value) for path_value in path_values]
            unchanged = ev.updating and all(b is not None and b[1] is None for b in old)
            self.rules.check_required(ev, path_values[0].path, unchanged=unchanged)

    def is_zero_of_operator(self, ev: Evaluation, path_value: PathValue) -> bool:
        """Return whether a path has the 0 for "no limit" that an operator writes for an absent value."""
        zero = self.form.unlimited and self.rules.read(path_value.value) == 0
        return zero and not self.is_set(ev, path_value)

    def refuse_unlimited(self, ev: Evaluation, path_values: Sequence[PathValue]) -> None:
        """Report every path without a limit as breaking `max`, unless it had none before."""
        maxima = [each for each, _ in self.rules.final if each.type.is_maximum]
        before = self.unlimited_before(ev) if maxima and path_values else frozenset()
        for path_value in path_values:
            for each in maxima:
                if path_value.key in before and ratchets(each):
                    continue
                allowed = self.rules.show_argument(each)
                ignored = path_value.value is not None and not self.form.unlimited
                found = NOT_APPLIED if ignored else NO_LIMIT
                ev.violate(self.row.path, path_value.path, found, allowed, each)

    def unlimited_before(self, ev: Evaluation) -> frozenset[str]:
        """Return the keys of the places that had no limit before the update: absent, or 0 for none."""
        if ev.old is None or self.unlimited is None:
            return frozenset()
        try:
            set_then = self.look(ev, ev.old) if self.form.unlimited else ()
            zeros = [each for each in set_then if self.rules.read(each.value) == 0]
            return frozenset(each.key for each in (*zeros, *self.unlimited(ev, ev.old)))
        except LocationError:
            return frozenset()

    def absent_is_value(self) -> bool:
        """Return whether an absent value is a value of the field, or the notation of the default."""
        if self.row.absent is not ABSENT:
            return True
        default = self.rules.default
        return default is not None and self.rules.codec.write(default.value, default.raw) is None

    def warn_of_unmapped_fields(self, ev: Evaluation) -> None:
        """Warn once that this object has no path for the field, so its rules do not apply."""
        rules = self.rules
        known = rules.required or [each for each, _ in rules.final[:1]] or rules.prohibitions
        if known:
            source = known[0].source
            ev.warn("unmapped-rule", self.row.path, (), ev.request.kind, source=source)

    def read(self, views: Sequence[PodView], ev: Evaluation) -> Iterator[FieldValue]:
        """The values at all paths, as policies write them."""
        document = ev.draft.document
        for path_value in self.look(ev, document):
            if self.is_counted:
                yield count_replicas(path_value, document, "")
            else:
                yield self.in_notation(path_value, read(document, path_value.path))

    def in_notation(self, path_value: PathValue, literal: Any) -> FieldValue:
        """Return a value in the policies' notation, with the object's own notation if that differs."""
        value, other = path_value.value, self.form.codec is not self.row.reading()
        if value is not None and other and (known := self.rules.read(value)) is not INVALID:
            plain = isinstance(known, str | bool) or self.row.value == "integer"
            value = known if plain else self.rules.show(known)
        note, derived = None, value is not None and (other or self.form.together)
        shown = not isinstance(literal, dict | list) and literal is not ABSENT
        if derived and literal != value and shown and not is_secret_path(path_value.path):
            note = f"written {str(literal).lower() if isinstance(literal, bool) else literal}"
        return FieldValue(path_value.path, value, note=note, derived=derived)

    def current(self, views: Any, ev: Evaluation) -> Any:
        """The native value of the first place that has one; None when unset."""
        for path_value in self.look(ev, ev.draft.document):
            if path_value.value is not None:
                return path_value.value
        return None


class TargetField(WorkloadScalarField):
    """A metric or its target, whose meaning depends on the metric.

    `other` is the other of the two. Either both defaults are written, or none.
    """

    __slots__ = ("other",)

    def __init__(self, own: WorkloadScalarField, other: WorkloadScalarField) -> None:
        WorkloadField.__init__(self, own.row, own.rules)
        self.form = own.form
        self.path_values, self.write, self.server_default = (
            own.path_values,
            own.write,
            own.server_default,
        )
        self.unlimited = own.unlimited
        self.is_counted = own.is_counted
        self.other = other

    def fill(self, views: Sequence[PodView], ev: Evaluation) -> None:
        """Write the default if the other one fits."""
        if self.rules.default is None or self.fits(ev):
            super().fill(views, ev)
            return
        ev.warn("default-needs-other", self.row.path, (), self.other.row.path)

    def fits(self, ev: Evaluation) -> bool:
        """Return whether the other one is the default's, or a metric that has only this target."""
        document = ev.request.object
        stated = [each.value for each in self.other.look(ev, document) if each.value is not None]
        if any(each.value is not None for each in self.look(ev, document)):
            return True  # the default is not written there
        rules = self.other.rules
        if not stated:
            return rules.default is not None and self.other.write is not None
        if rules.default is None:
            return self.row.path == THRESHOLD
        return all(rules.equals_default(each) for each in stated)


def rules_in_form(field: Field, leaf: Leaf, form: Form) -> ScalarRules:
    """Return the rules of a field for values in the kind's notation."""
    array = field.value == "array"
    rules = ScalarRules(field.path, leaf, form.codec, array=array, secret=field.secret)
    if form.unlimited:
        rules.final = [
            (each, with_zero_unlimited(holds) if each.type.is_ordered else holds)
            for each, holds in rules.final
        ]
    return rules


def with_zero_unlimited(holds: Holds) -> Holds:
    """Return the check of a bound where 0 means no limit."""
    return lambda value, argument: holds(value or math.inf, argument)


class ScalarHandler(WorkloadHandler):
    """Scalars of the workload: of all kinds, of this kind, or of none."""

    name = WORKLOAD
    feeds_defaults = True

    def compile(self, source: FieldSource) -> WorkloadField:
        """Compile the field. A metric and its target know each other."""
        own, path = scalar_field(source), source.row.path
        if own is None:
            return derived_field(source)
        other = scalar_field(source.of(COMPANIONS[path])) if path in COMPANIONS else None
        return own if other is None else TargetField(own, other)

    def refuses_default(self, source: FieldSource) -> bool:
        """Whether the kind rejects the field, or this value of it."""
        return refuses_default(source)

    def support(self, row: Field, definition: Definition, component: str) -> Support:
        """Return whether the kind has it: all kinds if the row has a path, else by the profile."""
        if row.at:
            return super().support(row, definition, component)
        return supported_by_profile(row, definition)


class ServiceHandler(WorkloadHandler):
    """The port of the service, if the kind has it outside its pods."""

    name = SERVING_PORT

    def compile(self, source: FieldSource) -> WorkloadField | None:
        """Compile the field, None if main containers have it."""
        field_paths = source.definition.profile.fields.get(source.row.path)
        if field_paths is not None and field_paths.main_port:
            return None
        return scalar_field(source) or derived_field(source)

    def support(self, row: Field, definition: Definition, component: str) -> Support:
        """Return whether the kind's profile has a path for it."""
        return supported_by_profile(row, definition)


def derived_field(source: FieldSource) -> DerivedField:
    """Compile a field whose value the kind determines."""
    field_paths = source.definition.profile.fields[source.row.path]
    assert field_paths.derived is not None
    return DerivedField(source.row, source.leaf, field_paths.derived)


def scalar_field(source: FieldSource) -> WorkloadScalarField | None:
    """Compile a scalar at its paths, None if the kind determines the value.

    A default that the kind would reject is left out.
    """
    row, leaf, definition = source.row, source.leaf, source.definition
    if refuses_default(source):
        leaf = replace(leaf, default=None)
    if row.at and row.shape == WORKLOAD:
        common = locate_common_path(row.at)
        return WorkloadScalarField(row, leaf, common, common)
    field_paths = definition.profile.fields.get(row.path)
    if field_paths is None:
        return WorkloadScalarField(row, leaf, locate_nothing, None)
    if field_paths.derived is not None:
        return None
    form = form_of(row.reading(), field_paths.notation)
    filled = form.filled(find_shadow_default(definition, source.server, field_paths))
    if field_paths.scale_of is not None:
        write = scale_writes(definition, field_paths.scale_of)
        path_values = sum_of_scales(field_paths.scale_of)
        return WorkloadScalarField(row, leaf, path_values, write, filled, form, is_counted=True)
    write = locate_writes(field_paths, definition)
    unlimited = (
        locate_unlimited(field_paths, definition) if field_paths.absent_is_unlimited else None
    )
    path_values = locate_paths(field_paths, definition.profile)
    return WorkloadScalarField(row, leaf, path_values, write, filled, form, unlimited)


def refuses_default(source: FieldSource) -> bool:
    """Whether a scalar of the workload has a default that the kind would reject."""
    default, row = source.leaf.default, source.row
    if default is None or row.shape != WORKLOAD:
        return False
    if source.is_forbidden():
        return True
    field_paths = source.definition.profile.fields.get(row.path)
    if field_paths is None or not field_paths.allows:
        return False
    parse = row.reading().parse
    return default.value not in {parse(each, None) for each in field_paths.allows}


def supported_by_profile(row: Field, definition: Definition) -> Support:
    """Whether a profile has paths for a field, which values fit, and when a default is written."""
    field_paths, kind = definition.profile.fields.get(row.path), definition.interface.kind
    if field_paths is None:
        return UNMAPPED, f"{kind} has no path for it"
    if field_paths.derived is not None:
        return MAPPED, f"follows from the kind: {field_paths.derived}"
    limits = []
    if field_paths.allows:
        limits.append(f"{kind} takes only {' or '.join(field_paths.allows)}")
    if field_paths.only_with is not None:
        limits.append(f"a default is written only beside {field_paths.only_with.text}")
    if field_paths.not_with is not None:
        limits.append(f"no default is written beside {field_paths.not_with.text}")
    return MAPPED, "; ".join(limits)
