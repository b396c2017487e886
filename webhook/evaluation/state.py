"""The working state of one decision: the request, the copy with the changes, and the findings."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any, TypeVar

from webhook.documents.problem import Source
from webhook.evaluation.intent import Intent
from webhook.evaluation.outcome import Change, Excused, Findings, Violation, Warning
from webhook.evaluation.references import References
from webhook.evaluation.request import Immutable, Request, RequestClass, Stage
from webhook.interface.injected_items import Injected
from webhook.jq.external import Facts
from webhook.objects.draft import Draft
from webhook.objects.path import ABSENT, Absent, Path, read
from webhook.pods.definition import Definition
from webhook.pods.location import FragmentPods, Location, location_of, report_path
from webhook.pods.operator_defaults import Filled, find_filled_paths
from webhook.pods.pod_view import Container, PodView, refresh
from webhook.pods.replicas import Scale, read_scales
from webhook.policy.combine import Constraint
from webhook.policy.row import Binding, Field
from webhook.policy.table import TABLE

AGAIN = (
    "Apply the object again; podgate adds it. The policy changed meanwhile, or another webhook"
    " removes it."
)
"""The fix for a missing value that the mutating pass wrote or would have written."""

_new_tuple = tuple.__new__  # makes a named tuple in a quarter of the time its class takes

REPORTED_ONCE = frozenset({"name-clash", "two-gpu-forms"})
"""Reasons that other checks look up in `reported`."""
NOT_COMPLETED = "Another webhook removed it, or added a container without it."
UNWRITABLE = "Updates cannot add it here; set the value that the object had."
T = TypeVar("T")
NOTHING_INJECTED = Injected()
Views = Mapping[tuple[str, str], PodView]
"""Pods by component and instance."""


class Evaluation:
    """The state of one evaluation, shared by all field handlers.

    `writes` says whether defaults are written, `writes_needed_only` whether only those that the
    validating pass would require. `as_before` are the pod specs that an update leaves alone.
    `differs` says whether the update changes any path that the plan reads, `steered` whether it
    changes metadata that affects the pods. `pods` are the pods in fragments, of every copy of the
    object. `definition` locates pods in the object and its copies, `definition_before` in the old
    one and its copies. They differ if jq gave other results for the old object.
    """

    __slots__ = (
        "as_before",
        "checks_intent",
        "complete",
        "completed_views",
        "definition",
        "definition_before",
        "differs",
        "draft",
        "excluded",
        "facts",
        "final_object",
        "findings",
        "fixed",
        "immutable",
        "injected",
        "intent",
        "kept",
        "old",
        "pods",
        "references",
        "reported",
        "request",
        "scales_of",
        "steered",
        "updating",
        "workload_changes",
        "writes",
        "writes_needed_only",
        "written",
    )

    def __init__(
        self,
        request: Request,
        references: References,
        definition: Definition,
        injected: Injected = NOTHING_INJECTED,
        pods: FragmentPods | None = None,
        facts: Facts | None = None,
    ) -> None:
        self.request = request
        self.references = references
        self.facts = facts
        self.locate_by(definition)
        self.findings = Findings()
        proof = definition.proof(request.object)
        self.draft = Draft(request.object, proof.shape.keeps if proof is not None else None)
        self.pods: FragmentPods = [] if pods is None else pods
        self.intent = Intent(request, self.pods)
        self.old = request.old if request.operation == "UPDATE" else None
        self.updating = self.old is not None
        self.immutable: tuple[Immutable, ...] = ()
        completed = request.request_class in (RequestClass.FULL, RequestClass.OWNED)
        self.writes = request.stage is Stage.MUTATE and completed
        self.writes_needed_only = request.request_class is RequestClass.OWNED
        self.checks_intent = request.request_class is not RequestClass.TRUSTED
        is_child = request.request_class in (RequestClass.CHILD, RequestClass.DERIVED)
        validates = request.stage is Stage.VALIDATE and completed
        self.final_object = validates or is_child
        self.excluded: Mapping[str, frozenset[str]] = {}
        self.kept: dict[Hashable, Any] = {}
        self.reported: set[tuple[object, ...]] = set()
        self.as_before: frozenset[Path] = frozenset()
        self.differs = True
        self.fixed: dict[Path, frozenset[Path]] | None = None
        self.injected = injected
        self.steered = False
        self.complete: Callable[[], Views] | None = None
        self.completed_views: Views | None = None
        self.workload_changes = 0
        # Fields that were written, each with the source of its first value.
        self.written: dict[str, Source | None] = {}
        self.scales_of: dict[tuple[int, int], list[Scale]] = {}

    def locate_by(self, definition: Definition) -> None:
        """Set the definition, with the results of jq for the object and for the old one."""
        self.definition = self.definition_before = definition
        if self.facts is not None:
            new, old = self.request.object, self.request.old
            self.definition = definition.with_results(self.facts.results(new, old))
            self.definition_before = definition.with_results(self.facts.results(old, new))

    def write_all(self) -> None:
        """Write defaults as in the mutating pass, whoever sent the object."""
        self.writes, self.writes_needed_only, self.final_object = True, False, False
        self.checks_intent = True

    def once(self, key: Hashable, find: Callable[[], T]) -> T:
        """Return the result of `find`, which is called once per key. It may depend on both objects only."""
        if key not in self.kept:
            self.kept[key] = find()
        found: T = self.kept[key]
        return found

    def excluded_at(self, names: tuple[str, ...]) -> frozenset[str]:
        """Return the item keys that the workload excludes under any of these names."""
        if not self.excluded:
            return frozenset()
        return self.once(names, lambda: self.merge_keys(names))

    def merge_keys(self, names: tuple[str, ...]) -> frozenset[str]:
        """Return the union of the item keys under several names."""
        several = [keys for name in names if (keys := self.excluded.get(name))]
        return several[0] if len(several) == 1 else frozenset().union(*several)

    def scales(self, document: Any) -> list[Scale]:
        """Return the scales of the object, of the old one or of the current copy, read once each."""
        if document is self.draft.document and not self.workload_changes:
            document = self.request.object
        key = (id(document), self.workload_changes)
        known = self.scales_of.get(key)
        if known is None:
            known = self.scales_of[key] = read_scales(self.definition, document)
        return known

    def violate(
        self,
        field: str,
        path: Path,
        value: str | None,
        allowed: str | None,
        constraint: Constraint | None,
        *,
        reason: str = "",
        source: Source | None = None,
        key: str = "",
        fix: str = "",
        identity: str = "",
    ) -> None:
        """Record one broken rule at one path."""
        rule = constraint.rule if constraint else reason
        origin = constraint.source if constraint else source
        if constraint and constraint.type.requires_value and not self.has_path(path):
            lacking = self.lacking(path)
            reason = "asked-of-children" if is_safety(field) else "unmapped-rule"
            self.warn(reason, field, lacking, self.request.kind, source=origin)
            return
        path = report_path(path, self.pods)
        if reason in REPORTED_ONCE:
            self.reported |= {(reason, field, key), (reason, path)}
        self.findings.violations.append(
            Violation(field, path, value, allowed, rule, reason or rule, origin, key, fix, identity)
        )

    def warn(
        self, reason: str, field: str, path: Path, *facts: str, source: Source | None = None
    ) -> None:
        """Record a warning."""
        fields = (reason, field, report_path(path, self.pods), facts, source, None)
        self.findings.warnings.append(_new_tuple(Warning, fields))

    def at(self, path: Path) -> Location:
        """Return the location of a path, for writing. Code that reports or reads needs none."""
        return location_of(path, self.pods)

    def report(self, path: Path) -> Path:
        """Return the path in the object, or the nearest one for a path of a pod in fragments."""
        return report_path(path, self.pods)

    def exists(self, path: Path) -> bool:
        """Return whether the object has this path. For a pod in fragments it may have none."""
        return not path or path[0].__class__ is not int or self.at(path).exists

    def advice_on_missing(self) -> str:
        """Return the fix for a missing value that the policy adds, "" if the rule's own fix is enough."""
        request_class = self.request.request_class
        if request_class in (RequestClass.CHILD, RequestClass.DERIVED):
            return NOT_COMPLETED
        if self.immutable:
            return UNWRITABLE
        return AGAIN if self.final_object else ""

    def excuse(self) -> tuple[Excused, ...]:
        """Remove the violations that exceptions cover, and return them. Each is reported as a warning."""
        findings = self.findings
        if not self.request.excused_by or not findings.violations:
            return ()
        excused: list[Excused] = []
        rest: list[Violation] = []
        for violation in dict.fromkeys(findings.violations):
            by = next((each for each in self.request.excused_by if each.covers(violation)), None)
            if by is None:
                rest.append(violation)
            else:
                excused.append(Excused(violation, by.name))
                self.warn("excused", violation.field, violation.path, by.name)
        findings.violations[:] = rest
        return tuple(excused)

    def can_write(self, path: Path) -> bool:
        """Return whether a default may be written there: not below an immutable path."""
        if not self.writes or not self.immutable:
            return self.writes
        if self.fixed is None:
            self.fixed = {fixed: frozenset(exceptions) for fixed, exceptions in self.immutable}
        path = self.report(path)
        heads = [path[:size] for size in range(len(path) + 1)]
        fixed = (self.fixed[head] for head in heads if head in self.fixed)
        return not any(exceptions.isdisjoint(heads) for exceptions in fixed)

    def write(
        self,
        field: str,
        path: Path,
        value: Any,
        why: str,
        source: Source | None,
        *,
        secret: bool = False,
    ) -> None:
        """Set one path of the copy and record the change. Warns if the object has no such path."""
        written = self.find_written_path(field, path)
        if written is None:
            return
        if written is path:  # the object's own, as nearly always
            self.draft.set(path, value)
        else:
            self.assign(path, value)
        if self.draft.refused:
            self.warn_of_pruned_default(field)
            return
        self.findings.changes.append(
            _new_tuple(Change, (field, written, value, why, source, secret))
        )
        self.written.setdefault(field, source)

    def assign(self, path: Path, value: Any) -> None:
        """Set one path of the copy. Does nothing if the object has no such path."""
        if not path or path[0].__class__ is not int:
            self.draft.set(path, value)
            return
        for target, assigned in self.at(path).assignments(value):
            self.draft.set(target, assigned)

    def append(self, path: Path, value: Any) -> None:
        """Append an item to a list of the copy. Does nothing if the object has no such list."""
        location = self.at(path)
        if location.exists:
            self.draft.append(location.report, location.item(value))

    def insert(self, path: Path, index: int, value: Any) -> None:
        """Insert an item before `index` into a list of the copy, like `append`."""
        location = self.at(path)
        if location.exists:
            self.draft.insert(location.report, index, location.item(value))

    def write_workload(
        self, field: str, path: Path, value: Any, why: str, source: Source | None
    ) -> None:
        """Set a path outside the pods, where numbers of replicas may be."""
        self.workload_changes += 1
        self.write(field, path, value, why, source)

    def note_item(
        self, row: Field, path: Path, value: Any, why: str, source: Source | None
    ) -> bool:
        """Record an item that a store has just written, and why.

        Returns False, with a warning, if the object has no path for it and so nothing was written.
        """
        if self.draft.refused:
            self.warn_of_pruned_default(row.path)
            return False
        written = self.find_written_path(row.path, path)
        if written is None:
            return False
        change = (row.path, written, value, why, source, row.secret)
        self.findings.changes.append(_new_tuple(Change, change))
        return True

    def fits(self, field: str, path: Path, item: Any) -> bool:
        """Return whether a list of the object keeps an item. Warns if servers would prune it."""
        keeps = self.draft.keeps
        if keeps is None or not self.exists(path) or keeps((*self.report(path), 0), item):
            return True
        self.warn_of_pruned_default(field)
        return False

    def warn_of_pruned_default(self, field: str) -> None:
        """Warn once for each field that was not written because the server would prune it."""
        self.draft.refused = False
        request = self.request
        self.warn("pruned-default", field, (), f"{request.kind} {request.version}")

    def find_written_path(self, field: str, path: Path) -> Path | None:
        """Return the path of a written value in the object. None, with a warning, if there is none."""
        if not path or path[0].__class__ is not int:
            return path
        location = self.at(path)
        if location.exists:
            return location.report
        self.warn("unmapped-default", field, self.lacking(path), self.request.kind)
        return None

    def has_path(self, path: Path) -> bool:
        """Return whether the object has such a path, and servers keep what is written there."""
        keeps = self.draft.keeps
        return self.exists(path) and (keeps is None or keeps(self.report(path), None))

    def lacking(self, path: Path) -> Path:
        """Return the path of the pod that lacks the path, () if all pods of the kind are alike."""
        several = [each for each in self.definition.interface.components if each.form]
        reported = self.report(path) if len(several) > 1 else ()
        # Pods in a list are alike too: one warning is enough for them.
        return () if any(isinstance(step, int) for step in reported) else reported

    def current_pod(self, view: PodView) -> PodView:
        """Return the pod as it is in the copy. The view is shared until the next write."""
        if not self.draft.changed and view.location.fragments is None:
            return view
        version, known = self.draft.version, view.kept.get("now")
        if known is None or known[0] != version:
            known = view.kept["now"] = (version, refresh(view, self.draft.document))
        found: PodView = known[1]
        return found

    def now(self, path: Path) -> Any:
        """Return the value at a path of the copy, None if absent."""
        value: Any | Absent
        if path and path[0].__class__ is int:
            value = self.at(path).read_in(self.draft.document)
        else:
            value = read(self.draft.document, path)
        return None if value is ABSENT else value

    def complete_old(self, view: PodView) -> PodView | None:
        """Return the same pod before the update, with today's defaults.

        If the user's pod differs from the old pod as this one does, podgate made the difference.
        """
        if view.old is None or self.complete is None:
            return None
        if self.completed_views is None:
            self.completed_views = self.complete()
        return self.completed_views.get((view.location.component, view.location.instance))

    def may_be_refilled(self, path: Path, before: Path) -> bool:
        """Return whether the server may have filled in this path again because the object was sent whole.

        Or the list around it was sent, as merge patches do: then its item lacks some keys of the
        old one.
        """
        if self.request.replaces:
            return True
        path, before = self.report(path), self.report(before)
        item, old = read(self.request.object, item_of(path)), read(self.old, item_of(before))
        return isinstance(item, dict) and isinstance(old, dict) and not old.keys() <= item.keys()

    def set_by_user(self, path: Path, native: Any, server_default: Any) -> bool:
        """Return whether a present value counts as the user's (semantics §5). `native` is not None."""
        if self.is_filled_in(path, native, server_default):
            return self.is_explicit(path)
        return not self.is_filled_by_outer(path)

    def is_explicit(self, path: Path) -> bool:
        """Return whether a user wrote a value that others would fill in too."""
        filled = self.filled_in(path)
        return self.intent.is_written(path, zero=filled is None or not filled.zero_too)

    def is_filled_in(self, path: Path, native: Any, server_default: Any) -> bool:
        """Return whether a value is what the server, the schema or the operator fills in at its path."""
        if server_default is not None and native == server_default:
            return True
        filled = self.filled_in(path)
        return filled is not None and bool(filled.value == native)

    def filled_in(self, path: Path) -> Filled | None:
        """Return what the schema or the operator filled in at the path."""
        profile = self.definition.profile
        if not profile.shadow_defaults:
            return None
        filled = self.once("filled", lambda: find_filled_paths(profile, self.request.object))
        found: Filled | None = filled.get(self.report(path))
        return found

    def is_filled_by_outer(self, path: Path) -> bool:
        """Return whether the schema of the outer object of a wrapped one filled in this path."""
        filled = self.intent.filled
        return bool(filled) and self.report(path) in filled


def is_safety(field: str) -> bool:
    """Return whether a field is evaluated on objects that controllers make: safety and images."""
    row = TABLE.fields.get(field)
    return row is not None and (row.safety or row.binding is Binding.SAFETY)


def item_of(path: Path) -> Path:
    """Return the path of the innermost list item around a path, () if there is none."""
    last = max((at for at, step in enumerate(path) if isinstance(step, int)), default=-1)
    return path[: last + 1]


def ratchets(constraint: Constraint) -> bool:
    """Return whether the policy of this rule tolerates values that exist before the update."""
    return constraint.policy.tolerates_existing


def view_before(view: PodView, container: Container | None, at: Path) -> tuple[Path, Any] | None:
    """Return the path `at` in the same container before the update, and its value (None if absent)."""
    if container is None or view.old is None:
        return None
    before = view.old_container(container)
    if before is None:
        return None
    value = read(before.body, at)
    return ((*before.path, *at), None if value is ABSENT else value)
