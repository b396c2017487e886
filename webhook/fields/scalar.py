"""The compiled rules of one scalar leaf: intent and final checks of one value at one path."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from webhook.documents.texts import show_value as native_text
from webhook.evaluation.state import Evaluation, ratchets
from webhook.fields.secret_paths import is_hidden, is_secret_path
from webhook.objects.path import ABSENT, Path, read
from webhook.objects.quantity import QuantityError
from webhook.pods.pod_view import Container, PodView
from webhook.policy.combine import Constraint, Leaf
from webhook.policy.leaves import leaf_type
from webhook.policy.policy import DefaultFrom
from webhook.policy.row import Field
from webhook.policy.values import Codec, read_quantity

Before = tuple[Path, Any] | None
INVALID = object()
TEXTS_KEPT = 1024


def reader(at: Path) -> Callable[[Any], Any]:
    """Return a getter of one nested path in a map, None if absent, "" or []."""
    first, *rest = at
    second = rest[0] if rest else ""

    def read_one(body: Any) -> Any:
        value = body.get(first)
        return None if value == "" or value == [] else value

    def read_two(body: Any) -> Any:
        inner = body.get(first)
        if inner.__class__ is not dict:
            return None
        value = inner.get(second)
        return None if value == "" or value == [] else value

    def read_nested(body: Any) -> Any:
        for step in at:
            if body.__class__ is not dict:
                return None
            body = body.get(step)
        return None if body == "" or body == [] else body

    return {1: read_one, 2: read_two}.get(len(at), read_nested)


class ScalarRules:
    """The compiled rules of one leaf of the effective policy."""

    __slots__ = (
        "codec",
        "computed",
        "default",
        "final",
        "name",
        "passing",
        "prohibitions",
        "required",
        "secret",
    )
    # Nothing in a plan refers back to itself: a catalog that is exchanged goes without the collector.

    def __init__(self, name: str, leaf: Leaf, codec: Codec, *, array: bool, secret: bool) -> None:
        self.name = name
        self.codec = codec
        self.secret = secret
        self.default = leaf.default
        self.prohibitions = [each for each in leaf.constraints if each.prohibits]
        self.required = [each for each in leaf.constraints if each.type.requires_value]
        self.computed = [c for c in leaf.constraints if isinstance(c.argument, DefaultFrom)]
        self.final: list[tuple[Constraint, Callable[[Any, Any], bool]]] = []
        for each in leaf.constraints:
            holds = each.type.check_of(elements=array)
            if holds is not None:
                self.final.append((each, holds))
        # Texts known to pass every final rule; most objects repeat a few.
        self.passing: set[str] = set()

    def show(self, value: Any) -> str | None:
        """Return a comparable value as text, None if the field's values are never printed."""
        return None if self.secret else self.codec.show(value)

    def show_native(self, native: Any) -> str | None:
        """Return a native value as text, even if it is unreadable."""
        if self.secret:
            return None
        value = self.read(native)
        return native_text(native) if value is INVALID else self.codec.show(value)

    def show_at(self, path: Path, value: Any) -> str | None:
        """Return a comparable value at a path as text, None if it is never printed."""
        return None if is_hidden(path, value) else self.show(value)

    def show_native_at(self, path: Path, native: Any) -> str | None:
        """Return a native value at a path as text, None if it is never printed."""
        return None if is_hidden(path, self.read(native)) else self.show_native(native)

    def read(self, native: Any) -> Any:
        """Return the comparable value of a native one, INVALID if it has none."""
        try:
            return self.codec.read(native)
        except (ValueError, TypeError, AttributeError):
            return INVALID

    def equals_default(self, native: Any) -> bool:
        """Return whether a native value is the policy's default in any notation."""
        return self.default is not None and self.read(native) == self.default.value

    def allows(self, native: Any) -> bool:
        """Return whether a value satisfies the current rules: prohibitions with the default, final rules."""
        value = self.read(native)
        if value is INVALID:
            return False
        if self.prohibitions and (self.default is None or value != self.default.value):
            return False
        return all(holds(value, each.argument) for each, holds in self.final)

    def choose_value(
        self,
        ev: Evaluation,
        path: Path,
        native: Any,
        server_default: Any,
        before: Before,
    ) -> tuple[str, Any] | None:
        """What to write at one unset place: the old value while it passes, else today's default.

        ("kept", old value) or ("default", None), or None where the place is to stay as it is.
        `before` is the matching old place with its native value, None for a place that is new.
        """
        old = None if before is None else before[1]
        if native is not None and not ev.is_filled_by_outer(path):
            if not ev.is_filled_in(path, native, server_default) or ev.is_explicit(path):
                return None
            if before is not None and native != old and not ev.may_be_refilled(path, before[0]):
                return None
        if old is not None and self.allows(old) and not ev.intent.was_written_by_user(before[0]):  # type: ignore[index]
            return ("kept", old) if native != old else None
        return ("default", None) if self.default is not None else None

    def check_intent(
        self,
        ev: Evaluation,
        path: Path,
        native: Any,
        before: Before,
        server_default: Any,
        *,
        spares_sidecars: bool = False,
        lands: bool = True,
    ) -> None:
        """canEdit and blocked on one present value; `spares_sidecars` is said of a sidecar.

        `lands` says whether the default is written at this place, where it is unset.
        """
        unchanged = before is not None and before[1] == native
        for each in self.prohibitions:
            if unchanged and ratchets(each):
                continue
            if spares_sidecars and each.policy.containers == "main":
                continue
            if self.is_excused(ev, each, path, native, before, server_default, lands=lands):
                continue
            self.refuse_edit(ev, each, path, native)

    def is_excused(
        self,
        ev: Evaluation,
        each: Constraint,
        path: Path,
        native: Any,
        before: Before,
        server_default: Any,
        *,
        lands: bool,
    ) -> bool:
        """Return whether a prohibition allows this value: the default's, or no user's."""
        # A webhook is asked again about its own writing: only a repetition of the default that the
        # user is shown to have written offends `blocked`.
        if self.equals_default(native) and (
            ev.final_object or each.type.fixes_default or not ev.intent.is_written_by_user(path)
        ):
            return True
        if ev.final_object and lands and self.default is not None:
            return False
        if before is not None and before[1] != native and not ev.may_be_refilled(path, before[0]):
            return False
        return not ev.set_by_user(path, native, server_default)

    def refuse_edit(self, ev: Evaluation, each: Constraint, path: Path, native: Any) -> None:
        """Report a value that may not be set, with the value to use instead if there is one."""
        allowed = None
        if self.default is not None and each.type.fixes_default:
            allowed = self.show(self.default.value)
        is_amount = self.codec.read is read_quantity
        reason = "invalid-value" if is_amount and self.read(native) is INVALID else ""
        ev.violate(self.name, path, self.show_native_at(path, native), allowed, each, reason=reason)

    def passes(self, native: Any) -> bool:
        """Return whether a native value is readable and breaks no final rule. Texts are cached."""
        if native.__class__ is str and native in self.passing:
            return True
        value = self.read(native)
        if value is INVALID:
            return False
        for each, holds in self.final:
            if not holds(value, each.argument):
                return False
        if native.__class__ is str and len(self.passing) < TEXTS_KEPT:
            self.passing.add(native)
        return True

    def check_final(
        self,
        ev: Evaluation,
        path: Path,
        native: Any,
        *,
        unchanged: bool,
        key: str = "",
        fix: str = "",
    ) -> None:
        """Check min, max, step and options on one value. `fix` is a better fix for the message."""
        value = self.read(native)
        if value is INVALID:
            if not unchanged:
                self.refuse_invalid(ev, path, native)
            return
        self.check_value(ev, path, value, unchanged=unchanged, key=key, fix=fix)

    def check_value(
        self,
        ev: Evaluation,
        path: Path,
        value: Any,
        *,
        unchanged: bool,
        key: str = "",
        fix: str = "",
    ) -> None:
        """Check the same on a comparable value."""
        for each, holds in self.final:
            if holds(value, each.argument) or (unchanged and ratchets(each)):
                continue
            shown, allowed = self.show_at(path, value), self.show_argument(each, value)
            ev.violate(self.name, path, shown, allowed, each, key=key, fix=fix)

    def show_argument(self, each: Constraint, value: Any = None) -> str:
        """Return what a rule allows, for messages. Also for secret fields, whose options the admin wrote."""
        return each.type.show(each.argument, self.codec, secret=self.secret)

    def refuse_invalid(self, ev: Evaluation, path: Path, native: Any, wanted: str = "") -> None:
        """Report a native value that its type cannot parse. `wanted` is what it can parse."""
        fix = ""
        try:
            self.codec.read(native)
        except QuantityError as error:
            wanted, fix = error.wanted, f"Write {error.suggestion}." if error.suggestion else ""
        except ValueError as error:
            wanted = str(error)
        except (TypeError, AttributeError):
            wanted = leaf_type(self.name).expected_form
        source = self.final[0][0].source if self.final else None
        if source is None and self.default is not None:
            source = self.default.source
        shown = None if self.secret or is_secret_path(path) else native_text(native)
        reason = "invalid-value"
        ev.violate(self.name, path, shown, wanted, None, reason=reason, source=source, fix=fix)

    def check_overridden(
        self,
        ev: Evaluation,
        view: PodView,
        at: Path,
        container: Container | None = None,
        *,
        intent: bool,
    ) -> None:
        """Evaluate the values that the object itself replaces, of the pod or of one container.

        Unchanged ones are tolerated.
        """
        for path, native in view.overridden(at, container):
            old = read(ev.old, path) if ev.updating else ABSENT
            if intent:
                before = (path, old) if ev.updating and old is not ABSENT else None
                self.check_intent(ev, path, native, before, None)
            else:
                self.check_final(ev, path, native, unchanged=old == native)

    def check_required(
        self, ev: Evaluation, path: Path, *, unchanged: bool, key: str = "", fix: str = ""
    ) -> None:
        """`required` where no value is. `fix` is a better fix for the message."""
        if not fix and self.default is not None:
            fix = ev.advice_on_missing()
        for each in self.required:
            if not (unchanged and ratchets(each)):
                ev.violate(self.name, path, None, "a value", each, key=key, fix=fix)


def rules_of(field: Field, leaf: Leaf) -> ScalarRules:
    """Return the compiled rules of a scalar field."""
    return ScalarRules(
        field.path, leaf, field.reading(), array=field.value == "array", secret=field.secret
    )
