"""cpu and memory: defaults, computed defaults, requests kept below limits, maxima of totals."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from webhook.evaluation.state import Evaluation, ratchets, view_before
from webhook.fields.container import main_first
from webhook.fields.handler import FieldSource, FieldValue, PodField, PodHandler, container_paths
from webhook.fields.scalar import INVALID, Before, rules_of
from webhook.fields.totals import amount_of, pod_total
from webhook.objects import quantity
from webhook.objects.path import Path
from webhook.pods.pod_view import Container, PodView
from webhook.policy.combine import Constraint, Leaf
from webhook.policy.row import AMOUNT, Field


def reader(at: Path) -> Callable[[Any], Any]:
    """Return a getter of one amount in a map, None if absent or null. "" is not an amount."""

    def read(body: Any) -> Any:
        for step in at:
            if body.__class__ is not dict:
                return None
            body = body.get(step)
        return body

    return read


class AmountField(PodField):
    """One of request and limit of one resource."""

    __slots__ = ("at", "bounds", "get", "is_limit", "maxima", "other", "part", "resource")

    def __init__(self, row: Field, leaf: Leaf) -> None:
        super().__init__(row, rules_of(row, leaf))
        self.at = row.at
        self.get = reader(row.at)
        self.part, self.resource = str(row.at[1]), str(row.at[2])
        self.maxima = [each for each, _ in self.rules.final if each.type.is_maximum]
        self.bounds = [
            (each, holds) for each, holds in self.rules.final if not each.type.is_maximum
        ]
        self.is_limit = self.part == "limits"
        self.other: Path = ("resources", "requests" if self.is_limit else "limits", self.resource)

    def server_default(self, container: Container, ev: Evaluation) -> Any:
        """Return the limit that the API server copies into an absent request, on Pods only."""
        request = ev.request
        if self.is_limit or request.kind != "Pod" or request.group:
            return None
        return reader(self.other)(container.body)

    def check_intent(self, view: PodView, ev: Evaluation) -> None:
        """Check prohibitions on every ordinary container with a value."""
        if not self.rules.prohibitions:
            return
        for container in view.containers:
            native = self.get(container.body)
            if native is None:
                continue
            self.rules.check_intent(
                ev,
                (*container.path, *self.at),
                self.as_meant(view, container, native),
                view_before(view, container, self.at),
                self.server_default(container, ev),
                spares_sidecars=not view.may_be_main(container.path),
                lands=container is view.main and not self.is_of_pod(view),
            )
        native = self.get(view.spec) if "resources" in view.spec else None
        if native is not None:
            # Containers may use what the pod level allows, so the field is set there too.
            self.rules.check_intent(
                ev, (*view.spec_path, *self.at), native, self.pod_before(view), None
            )

    def as_meant(self, view: PodView, container: Container, native: Any) -> Any:
        """Return the default lowered to the limit, as podgate writes it."""
        default, limit = self.rules.default, reader(self.other)(container.body)
        if self.is_limit or default is None or container is not view.main or limit is None:
            return native
        bound = self.rules.read(limit)
        lowered = bound is not INVALID and self.rules.read(native) == bound < default.value
        return self.rules.codec.write(default.value, default.raw) if lowered else native

    def is_of_pod(self, view: PodView) -> bool:
        """Return whether the pod level sets the resource for all containers."""
        return "resources" in view.spec and any(
            amount_of(view.spec, part, self.resource) for part in ("requests", "limits")
        )

    def pod_before(self, view: PodView) -> Before:
        """Return the pod level's amount before the update."""
        if view.old is None:
            return None
        return (*view.old.spec_path, *self.at), self.get(view.old.spec)

    def fill(self, view: PodView, ev: Evaluation) -> None:
        """Write the default on the main container, unless the pod level sets the resource."""
        main = view.main
        if main is None or self.rules.default is None:
            return
        if self.is_of_pod(view):
            return
        path = (*main.path, *self.at)
        native = self.get(main.body)
        before = view_before(view, main, self.at)
        server = self.server_default(main, ev)
        wanted = self.rules.choose_value(ev, path, native, server, before)
        if wanted is None or not ev.can_write(path):
            return
        kept, value = wanted
        default = self.rules.default
        if kept == "default":
            assert default is not None
            value = self.rules.codec.write(default.value, default.raw)
        value = self.reconcile(view, main, ev, value)
        if before is not None and before[1] is None and self.exceeds(view, value):
            return
        if value is not None and value != native:
            source = default.source if default is not None else None
            ev.write(self.row.path, path, value, kept, source)

    def exceeds(self, view: PodView, value: Any) -> bool:
        """Return whether the default would break a tolerant `max` of a pod that existed without it."""
        maxima = [each for each in self.maxima if ratchets(each)]
        amount = self.rules.read(value)
        if not maxima or amount is INVALID:
            return False
        total = pod_total(view, self.part, self.resource, amount)
        return any(total > each.argument for each in maxima)

    def reconcile(self, view: PodView, main: Container, ev: Evaluation, value: Any) -> Any:
        """Limit a default request to the limit. Raise a default limit to the request."""
        other = ev.now((*main.path, *self.other))
        if other is None:
            return value
        try:
            ours, theirs = quantity.parse(value), quantity.parse(other)
        except ValueError:
            return value
        if self.is_limit:
            return self.raise_limit(view, main, ev, value, other) if ours < theirs else value
        return other if ours > theirs else value

    def raise_limit(
        self, view: PodView, main: Container, ev: Evaluation, value: Any, other: Any
    ) -> Any:
        """Return the user's request as the limit if the rules permit it, else report a violation."""
        path = (*main.path, *self.at)
        if self.rules.allows(other):
            ev.warn("limit-raised", self.row.path, path, str(value), str(other))
            return other
        default = self.rules.default
        ev.violate(
            self.row.path,
            (*main.path, *self.other),
            self.rules.show_native(other),
            self.rules.show_native(value),
            None,
            reason="request-exceeds-limit",
            source=default.source if default else None,
        )
        return value

    def total(self, view: PodView) -> int:
        """Return the pod's effective total in nano units."""
        return pod_total(view, self.part, self.resource)

    def check_final(self, view: PodView, ev: Evaluation) -> None:
        """Check max on the pod's total, and min, step and required on the main container."""
        rules, main = self.rules, view.main
        if main is None:
            return
        native = self.get(main.body)
        amount = 0
        if native is None:
            if rules.required:
                before = view_before(view, main, self.at)
                unchanged = before is not None and before[1] is None
                rules.check_required(ev, (*main.path, *self.at), unchanged=unchanged)
        else:
            value = rules.read(native)
            if value is INVALID:
                if not self.stood_there(view, main, native):
                    rules.refuse_invalid(ev, (*main.path, *self.at), native)
            else:
                amount = max(value, 0)
                for each, holds in self.bounds:
                    if not holds(value, each.argument):
                        self.refuse_bound(view, ev, each, native, value)
        if self.maxima:
            self.final_total(view, ev, amount)

    def stood_there(self, view: PodView, container: Container, native: Any) -> bool:
        """Return whether an unreadable amount existed before the update and may stay."""
        before = view_before(view, container, self.at)
        return before is not None and before[1] == native and self.tolerant()

    def tolerant(self) -> bool:
        """Return whether a value from before the update may stay, whatever the rules are."""
        return all(ratchets(each) for each, _ in self.rules.final)

    def refuse_bound(
        self, view: PodView, ev: Evaluation, each: Constraint, native: Any, value: Any
    ) -> None:
        """Report a broken min or step on the main container, unless it was broken before."""
        assert view.main is not None
        before = view_before(view, view.main, self.at)
        if before is not None and before[1] == native and ratchets(each):
            return
        path = (*view.main.path, *self.at)
        ev.violate(
            self.row.path, path, self.rules.show(value), self.rules.show_argument(each), each
        )

    def final_total(self, view: PodView, ev: Evaluation, amount: int) -> None:
        """Check max on the total. A total that does not get worse passes.

        `amount` is the main container's, which is the total in most pods.
        """
        total = amount
        if len(view.everyone) > 1 or "resources" in view.spec or "overhead" in view.spec:
            self.refuse_unreadable(view, ev)
            total = self.total(view)
        assert view.main is not None
        for each in self.maxima:
            if total <= each.argument:
                continue
            if view.old is not None and ratchets(each) and total <= self.total(view.old):
                continue
            path = (*view.main.path, *self.at)
            ev.violate(
                self.row.path,
                path,
                self.rules.show(total),
                self.rules.show_argument(each),
                each,
                key="total" if len(view.everyone) > 1 else "",
            )
        if self.is_limit and not amount_of(view.spec, "limits", self.resource):
            for container in view.containers:
                is_required = self.rules.required and container is view.main
                if self.get(container.body) is None and not is_required:
                    ev.warn("absent-limit", self.row.path, (*container.path, *self.at))

    def refuse_unreadable(self, view: PodView, ev: Evaluation) -> None:
        """Report each amount that is not a quantity, because it cannot be added up."""
        for container in view.everyone:
            native = self.get(container.body)
            if container is view.main or native is None:
                continue
            if self.rules.read(native) is INVALID and not self.stood_there(view, container, native):
                self.rules.refuse_invalid(ev, (*container.path, *self.at), native)
        for at in (self.at, ("overhead", self.resource)):
            read = reader(at)
            native = read(view.spec)
            if native is None or self.rules.read(native) is not INVALID:
                continue
            if view.old is None or read(view.old.spec) != native or not self.tolerant():
                self.rules.refuse_invalid(ev, (*view.spec_path, *at), native)

    def read(self, view: PodView, ev: Evaluation) -> Iterator[FieldValue]:
        """Yield the pod's own amount if there is one, then each container's."""
        if "resources" in view.spec:
            yield FieldValue((*view.spec_path, *self.at), self.get(view.spec), "the pod")
        for each in main_first(view, view.containers):
            yield FieldValue((*each.path, *self.at), self.get(each.body), each.name)

    def current(self, view: PodView, ev: Evaluation) -> Any:
        """Return the native value of the main container, None if unset."""
        return None if view.main is None else ev.now((*view.main.path, *self.at))


class AmountHandler(PodHandler):
    """Amounts of cpu, memory and storage, with maxima over the whole pod."""

    name = AMOUNT

    def compile(self, source: FieldSource) -> AmountField:
        """The field of one resource, as a request or a limit."""
        return AmountField(source.row, source.leaf)

    def pod_paths(self, row: Field) -> Sequence[Path]:
        """Where a pod template has the field."""
        return container_paths(row)
