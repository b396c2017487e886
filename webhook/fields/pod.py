"""Fields of the pod spec: plain places, and the node type behind selector and affinity."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from webhook.evaluation.state import Evaluation
from webhook.fields.scalar import Before, ScalarRules, reader, rules_of
from webhook.objects.lookup import frozen
from webhook.objects.path import Path
from webhook.pods.pod_view import PodView
from webhook.policy.combine import Leaf
from webhook.policy.row import Field
from webhook.policy.table import TABLE

AFFINITY = ("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")


class PodField:
    """One scalar field of the pod spec at one place; `absent` is what a missing value means."""

    __slots__ = ("absent", "at", "field", "get", "rules", "server_default")

    def __init__(self, field: Field, leaf: Leaf, at: Path, server_default: Any) -> None:
        self.field = field
        self.absent = field.absent if isinstance(field.absent, bool | str) else None
        self.rules: ScalarRules = rules_of(field, leaf)
        self.at = at
        self.get = reader(at)
        self.server_default = server_default

    def read(self, view: PodView) -> tuple[Path, Any]:
        """The place that holds the value, with the native value; None when unset."""
        return (*view.spec_path, *self.at), self.get(view.spec)

    def before(self, view: PodView) -> Before:
        """The same before the update."""
        return self.read(view.old) if view.old is not None else None

    def intent(self, view: PodView, ev: Evaluation) -> None:
        """Prohibitions on a present value."""
        if not self.rules.prohibitions:
            return
        if self.field.safety:
            self.rules.judge_overridden(ev, view, self.at, intent=True)
        path, native = self.read(view)
        if native is not None:
            self.rules.judge_intent(ev, path, native, self.before(view), self.server_default)

    def fill(self, view: PodView, ev: Evaluation) -> None:
        """Write the default where the field is unset."""
        default = self.rules.default
        # An empty text is how a policy says "unset".
        if default is None or default.value in (self.absent, ""):
            return
        path, native = self.read(view)
        fixed = native is not None and self.server_default is None
        if fixed and not ev.is_filled_in(path, native, None):
            return
        if self.refused_by(view):
            ev.warn("forbidden-default", self.field.path, path, "Windows")
            return
        before = self.before(view)
        wanted = self.rules.wanted(ev, path, native, self.server_default, before)
        target = (*view.spec_path, *self.at)
        if wanted is None or not ev.can_write(target):
            return
        kept, value = wanted
        if kept == "default":
            assert default is not None
            value = self.rules.codec.write(default.value, default.raw)
        if value != native:
            source = default.source if default is not None else None
            ev.write(self.field.path, target, value, kept, source, secret=self.field.secret)

    def refused_by(self, view: PodView) -> bool:
        """Whether the pod may not carry the field: Windows pods lack what only Linux has."""
        return view.windows and not self.field.windows

    def final(self, view: PodView, ev: Evaluation) -> None:
        """Final rules on the value."""
        if self.field.safety and self.rules.final:
            self.rules.judge_overridden(ev, view, self.at, intent=False)
        native = self.get(view.spec)
        if native is not None and self.rules.passes(native):
            return
        path, native = self.read(view)
        if native is None and self.absent is None and not self.rules.required:
            return
        before = self.before(view)
        unchanged = before is not None and before[1] == native
        if native is None:
            native = self.absent
        if native is not None:
            if self.rules.final:
                self.rules.judge_final(ev, path, native, unchanged=unchanged)
        elif not self.refused_by(view):
            self.rules.judge_required(ev, path, unchanged=unchanged)

    def current(self, view: PodView, ev: Evaluation) -> Any:
        """The native value that the pod has now; None when unset."""
        return ev.now((*view.spec_path, *self.at))


class NodeTypeField(PodField):
    """nodeType: the node selector's value, else what a required node affinity says of the label.

    Terms of an affinity are alternatives: it gives the field a value only where every term names
    some, else the pod may go anywhere. Prohibitions and options look at all that is named.
    """

    __slots__ = ("label", "own")

    def __init__(self, field: Field, leaf: Leaf, label: str, terms: Leaf | None = None) -> None:
        super().__init__(field, leaf, ("nodeSelector", label), None)
        self.label = label
        # The default node affinity, which is not the user's word on the label.
        own = terms is not None and terms.default is not None
        self.own = rules_of(TABLE.fields[terms.path], terms) if terms is not None and own else None

    def read(self, view: PodView) -> tuple[Path, Any]:
        """The selector's place unless only a required node affinity pins the label."""
        path, value = super().read(view)
        if value is not None:
            return path, value
        named = expressions(view.spec, self.label) if "affinity" in view.spec else []
        if not named or not all(any(values for _, values, _ in term) for term in named):
            return path, None
        at, values, _ = next(each for each in named[0] if each[1])
        return (*view.spec_path, *at, "values", 0), values[0]

    def named(self, view: PodView) -> list[tuple[Path, Any, bool]]:
        """Every value that is named, with its place; False for what other operators than In say."""
        path, value = super().read(view)
        found: list[tuple[Path, Any, bool]] = [] if value is None else [(path, value, True)]
        if "affinity" not in view.spec or self.is_own(view.spec):
            return found
        for term in expressions(view.spec, self.label):
            for at, values, other in term:
                place = (*view.spec_path, *at)
                found += [((*place, "values", i), each, True) for i, each in enumerate(values)]
                if other:
                    found.append(((*place, "operator"), other, False))
        return found

    def is_own(self, spec: dict[str, Any]) -> bool:
        """Whether the required node affinity is the one that the same policies give by default."""
        return self.own is not None and self.own.equals_default(reader(AFFINITY)(spec))

    def intent(self, view: PodView, ev: Evaluation) -> None:
        """Prohibitions on everything that is named."""
        if not self.rules.prohibitions:
            return
        old = self.named_before(view)
        for path, value, _ in self.named(view):
            known = old.get(frozen(value), (path, None))
            self.rules.judge_intent(ev, path, value, known if view.old else None, None)

    def named_before(self, view: PodView) -> dict[Hashable, tuple[Path, Any]]:
        """The first place of each value that was named before the update."""
        found: dict[Hashable, tuple[Path, Any]] = {}
        for path, value, _ in self.named(view.old) if view.old else ():
            found.setdefault(frozen(value), (path, value))
        return found

    def final(self, view: PodView, ev: Evaluation) -> None:
        """Options on every value that is named; `required` where the label is not pinned."""
        if "affinity" not in view.spec:
            native = self.get(view.spec)
            if native is not None and self.rules.passes(native):
                return
        path, native = self.read(view)
        if native is None:
            before = self.before(view)
            unchanged = before is not None and before[1] is None
            self.rules.judge_required(ev, path, unchanged=unchanged)
        if not self.rules.final:
            return
        old = self.named_before(view)
        for place, value, is_value in self.named(view):
            if is_value:
                self.rules.judge_final(ev, place, value, unchanged=frozen(value) in old)


Expression = tuple[Path, list[Any], str]
"""The place of a node affinity expression, its values with In, else its operator as text."""


def expressions(spec: dict[str, Any], label: str) -> list[list[Expression]]:
    """What each term of the required node affinity says of a label; empty for a silent one."""
    terms = reader((*AFFINITY, "nodeSelectorTerms"))(spec)
    found: list[list[Expression]] = []
    for index, term in enumerate(terms if isinstance(terms, list) else ()):
        said: list[Expression] = []
        listed = term.get("matchExpressions") if isinstance(term, dict) else None
        for position, each in enumerate(listed if isinstance(listed, list) else ()):
            if not isinstance(each, dict) or each.get("key") != label:
                continue
            at = (*AFFINITY, "nodeSelectorTerms", index, "matchExpressions", position)
            values = each.get("values")
            if each.get("operator") == "In" and isinstance(values, list):
                said.append((at, values, ""))
            else:
                said.append((at, [], str(each.get("operator"))))
        found.append(said)
    return found
