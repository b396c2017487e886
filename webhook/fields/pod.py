"""Fields of the pod spec: plain paths, and the node type in selector and affinity."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any

from webhook.evaluation.state import Evaluation
from webhook.fields.handler import FieldSource, FieldValue, PodField, PodHandler
from webhook.fields.scalar import Before, reader, rules_of
from webhook.objects.lookup import frozen
from webhook.objects.path import Path
from webhook.pods.pod_view import PodView
from webhook.policy.combine import Leaf
from webhook.policy.row import NODE_TYPE, Field
from webhook.policy.table import TABLE

AFFINITY = ("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")


class PodSpecField(PodField):
    """One scalar field of the pod spec at one path. `absent` is the meaning of a missing value."""

    __slots__ = ("absent", "at", "get", "server_default")

    def __init__(self, row: Field, leaf: Leaf, at: Path, server_default: Any) -> None:
        super().__init__(row, rules_of(row, leaf))
        self.absent = row.absent if isinstance(row.absent, bool | str) else None
        self.at = at
        self.get = reader(at)
        self.server_default = server_default

    def find(self, view: PodView) -> tuple[Path, Any]:
        """Return the path with the value, and the native value, None if unset."""
        return (*view.spec_path, *self.at), self.get(view.spec)

    def read(self, view: PodView, ev: Evaluation) -> Iterable[FieldValue]:
        """The value of the pod spec."""
        return [FieldValue(*self.find(view))]

    def before(self, view: PodView) -> Before:
        """The same before the update."""
        return self.find(view.old) if view.old is not None else None

    def check_intent(self, view: PodView, ev: Evaluation) -> None:
        """Check prohibitions on a value that is set."""
        if not self.rules.prohibitions:
            return
        if self.row.safety:
            self.rules.check_overridden(ev, view, self.at, intent=True)
        path, native = self.find(view)
        if native is not None:
            self.rules.check_intent(ev, path, native, self.before(view), self.server_default)

    def fill(self, view: PodView, ev: Evaluation) -> None:
        """Write the default where the field is unset."""
        default = self.rules.default
        # In a policy an empty text means "unset".
        if default is None or default.value in (self.absent, ""):
            return
        path, native = self.find(view)
        fixed = native is not None and self.server_default is None
        if fixed and not ev.is_filled_in(path, native, None):
            return
        if self.refused_by(view):
            ev.warn("forbidden-default", self.row.path, path, "Windows")
            return
        before = self.before(view)
        wanted = self.rules.choose_value(ev, path, native, self.server_default, before)
        target = (*view.spec_path, *self.at)
        if wanted is None or not ev.can_write(target):
            return
        kept, value = wanted
        if kept == "default":
            assert default is not None
            value = self.rules.codec.write(default.value, default.raw)
        if value != native:
            source = default.source if default is not None else None
            ev.write(self.row.path, target, value, kept, source, secret=self.row.secret)

    def refused_by(self, view: PodView) -> bool:
        """Return whether the pod may not have the field. Windows pods lack Linux fields."""
        return view.windows and not self.row.windows

    def check_final(self, view: PodView, ev: Evaluation) -> None:
        """Final rules on the value."""
        if self.row.safety and self.rules.final:
            self.rules.check_overridden(ev, view, self.at, intent=False)
        native = self.get(view.spec)
        if native is not None and self.rules.passes(native):
            return
        path, native = self.find(view)
        if native is None and self.absent is None and not self.rules.required:
            return
        before = self.before(view)
        unchanged = before is not None and before[1] == native
        if native is None:
            native = self.absent
        if native is not None:
            if self.rules.final:
                self.rules.check_final(ev, path, native, unchanged=unchanged)
        elif not self.refused_by(view):
            self.rules.check_required(ev, path, unchanged=unchanged)

    def current(self, view: PodView, ev: Evaluation) -> Any:
        """The native value that the pod has now; None when unset."""
        return ev.now((*view.spec_path, *self.at))


class NodeTypeField(PodSpecField):
    """nodeType: the node selector's value, else the label's value in a required node affinity.

    Terms of an affinity are alternatives. It sets the field only if every term names a value;
    otherwise the pod may run anywhere. Prohibitions and options apply to all named values.
    """

    __slots__ = ("label", "own")

    def __init__(self, row: Field, leaf: Leaf, label: str, terms: Leaf | None = None) -> None:
        super().__init__(row, leaf, ("nodeSelector", label), None)
        self.label = label
        # The default node affinity, which the user did not choose.
        own = terms is not None and terms.default is not None
        self.own = rules_of(TABLE.fields[terms.path], terms) if terms is not None and own else None

    def find(self, view: PodView) -> tuple[Path, Any]:
        """Return the selector's path, unless only a required node affinity sets the label."""
        path, value = super().find(view)
        if value is not None:
            return path, value
        named = expressions(view.spec, self.label) if "affinity" in view.spec else []
        if not named or not all(any(values for _, values, _ in term) for term in named):
            return path, None
        at, values, _ = next(each for each in named[0] if each[1])
        return (*view.spec_path, *at, "values", 0), values[0]

    def find_node_types(self, view: PodView) -> list[tuple[Path, Any, bool]]:
        """Return every named value with its path. It is False for operators other than In."""
        path, value = super().find(view)
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

    def read(self, view: PodView, ev: Evaluation) -> Iterator[FieldValue]:
        """Every value that selector and affinity name."""
        for path, value, is_value in self.find_node_types(view):
            note = "" if is_value else "an operator that excludes or only demands the label"
            yield FieldValue(path, value, note=note)
        yield FieldValue((*view.spec_path, *self.at), None)

    def is_own(self, spec: dict[str, Any]) -> bool:
        """Return whether the required node affinity is the default of the same policies."""
        return self.own is not None and self.own.equals_default(reader(AFFINITY)(spec))

    def check_intent(self, view: PodView, ev: Evaluation) -> None:
        """Check prohibitions on every named value."""
        if not self.rules.prohibitions:
            return
        old = self.named_before(view)
        for path, value, _ in self.find_node_types(view):
            known = old.get(frozen(value), (path, None))
            self.rules.check_intent(ev, path, value, known if view.old else None, None)

    def named_before(self, view: PodView) -> dict[Hashable, tuple[Path, Any]]:
        """Return the first path of each value that was named before the update."""
        found: dict[Hashable, tuple[Path, Any]] = {}
        for path, value, _ in self.find_node_types(view.old) if view.old else ():
            found.setdefault(frozen(value), (path, value))
        return found

    def check_final(self, view: PodView, ev: Evaluation) -> None:
        """Check options on every named value, and `required` if the label is not set."""
        if "affinity" not in view.spec:
            native = self.get(view.spec)
            if native is not None and self.rules.passes(native):
                return
        path, native = self.find(view)
        if native is None:
            before = self.before(view)
            unchanged = before is not None and before[1] is None
            self.rules.check_required(ev, path, unchanged=unchanged)
        if not self.rules.final:
            return
        old = self.named_before(view)
        for place, value, is_value in self.find_node_types(view):
            if is_value:
                self.rules.check_final(ev, place, value, unchanged=frozen(value) in old)


Expression = tuple[Path, list[Any], str]
"""The path of a node affinity expression, its values with In, else its operator as text."""


def expressions(spec: dict[str, Any], label: str) -> list[list[Expression]]:
    """Return the expressions on a label in each term of the required node affinity."""
    terms = reader((*AFFINITY, "nodeSelectorTerms"))(spec)
    found: list[list[Expression]] = []
    for index, term in enumerate(terms if isinstance(terms, list) else ()):
        of_term: list[Expression] = []
        listed = term.get("matchExpressions") if isinstance(term, dict) else None
        for position, each in enumerate(listed if isinstance(listed, list) else ()):
            if not isinstance(each, dict) or each.get("key") != label:
                continue
            at = (*AFFINITY, "nodeSelectorTerms", index, "matchExpressions", position)
            values = each.get("values")
            if each.get("operator") == "In" and isinstance(values, list):
                of_term.append((at, values, ""))
            else:
                of_term.append((at, [], str(each.get("operator"))))
        found.append(of_term)
    return found


class NodeTypeHandler(PodHandler):
    """The type of node that selector and affinity choose, by the installation's label."""

    name = NODE_TYPE

    def compile(self, source: FieldSource) -> NodeTypeField:
        """Compile the field with the default affinity of the same policies."""
        terms = source.effective.get("nodeAffinityRequired")
        return NodeTypeField(source.row, source.leaf, source.config.node_type_label, terms)

    def pod_paths(self, row: Field) -> Sequence[Path]:
        """Where a pod template has the field."""
        return [("spec", "nodeSelector")]
