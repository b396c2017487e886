"""Fields of the pod spec: plain places, and the node type behind selector and affinity."""

from __future__ import annotations

from typing import Any

from webhook.core.evaluation import Evaluation
from webhook.core.pointer import Path
from webhook.core.policy.combine import Leaf
from webhook.core.policy.fields import Field
from webhook.core.workload.bindings.scalar import Before, ScalarRules, reader, rules_of
from webhook.core.workload.podspec import PodView

AFFINITY = ("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")


class PodField:
    """One scalar field of the pod spec at one place."""

    __slots__ = ("at", "field", "get", "rules", "server_default")

    def __init__(self, field: Field, leaf: Leaf, at: Path, server_default: Any) -> None:
        self.field = field
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
        path, native = self.read(view)
        if native is not None:
            self.rules.judge_intent(ev, path, native, self.before(view), self.server_default)

    def fill(self, view: PodView, ev: Evaluation) -> None:
        """Write the default where the field is unset."""
        default = self.rules.default
        if default is None:
            return
        path, native = self.read(view)
        before = self.before(view)
        wanted = self.rules.defaulting.wanted(ev, path, native, self.server_default, before)
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

    def final(self, view: PodView, ev: Evaluation) -> None:
        """Final rules on the value."""
        path, native = self.read(view)
        before = self.before(view)
        unchanged = before is not None and before[1] == native
        if native is None:
            self.rules.judge_required(ev, path, unchanged=unchanged)
        elif self.rules.final:
            self.rules.judge_final(ev, path, native, unchanged=unchanged)

    def current(self, view: PodView, ev: Evaluation) -> Any:
        """The native value that the pod has now; None when unset."""
        return ev.now((*view.spec_path, *self.at))


class NodeTypeField(PodField):
    """nodeType: the node selector's value, else the single In value of a required affinity."""

    __slots__ = ("label",)

    def __init__(self, field: Field, leaf: Leaf, label: str) -> None:
        super().__init__(field, leaf, ("nodeSelector", label), None)
        self.label = label

    def read(self, view: PodView) -> tuple[Path, Any]:
        """The selector's place unless only a required node affinity names the label."""
        path, value = super().read(view)
        if value is not None:
            return path, value
        found = affinity_value(view.spec, self.label)
        if found is None:
            return path, None
        at, value = found
        return (*view.spec_path, *at), value


def affinity_value(spec: dict[str, Any], label: str) -> tuple[Path, Any] | None:
    """The place and single value of a required `In` expression on a label, in every term."""
    terms = reader((*AFFINITY, "nodeSelectorTerms"))(spec)
    found: tuple[Path, Any] | None = None
    for index, term in enumerate(terms if isinstance(terms, list) else ()):
        expressions = term.get("matchExpressions") if isinstance(term, dict) else None
        for position, each in enumerate(expressions if isinstance(expressions, list) else ()):
            if not isinstance(each, dict) or each.get("key") != label:
                continue
            values = each.get("values")
            if each.get("operator") == "In" and isinstance(values, list) and len(values) == 1:
                at = (
                    *AFFINITY,
                    "nodeSelectorTerms",
                    index,
                    "matchExpressions",
                    position,
                    "values",
                    0,
                )
                if found is None:
                    found = at, values[0]
    return found
