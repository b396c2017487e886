"""The working state of one decision: the request, the copy that is written, what was found."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any, TypeVar

from webhook.documents.problem import Source
from webhook.evaluation.intent import Intent
from webhook.evaluation.outcome import Change, Excused, Findings, Violation, Warning
from webhook.evaluation.references import References
from webhook.evaluation.request import Immutable, Request, Stage, Treatment
from webhook.interface.injected_items import Injected
from webhook.objects.draft import Draft
from webhook.objects.path import ABSENT, Assembled, Path, read, real
from webhook.pods.definition import Definition
from webhook.pods.operator_defaults import Filled, places_filled
from webhook.pods.pod_view import Container, PodView, refreshed
from webhook.pods.replicas import Scale, read_scales
from webhook.policy.combine import Constraint
from webhook.policy.row import Binding, Field
from webhook.policy.table import TABLE

AGAIN = (
    "Apply the object again; podgate adds it. The policy changed meanwhile, or another webhook"
    " removes it."
)
"""What to do about a missing value that the mutating pass wrote or would have written."""

_new_tuple = tuple.__new__  # makes a named tuple in a quarter of the time its class takes

TOLD_ONCE = frozenset({"name-clash", "two-gpu-forms"})
"""Reasons of which others ask whether they have been told."""
NOT_COMPLETED = "Another webhook removed it, or added a container without it."
UNWRITABLE = "Updates cannot add it here; set the value that the object had."
T = TypeVar("T")
NOTHING_INJECTED = Injected()
Views = Mapping[tuple[str, str], PodView]
"""Pods by component and instance."""


class Evaluation:
    """Shared by all bindings while one object is judged; `writes` says whether defaults land, and
    `writes_needed_only` whether only those whose lack the validating pass refuses.

    `as_before` are the pod specs that an update leaves alone, `differs` says whether it changes any
    place that the plan reads, `steered` whether metadata that decides what pods become.
    """

    __slots__ = (
        "as_before",
        "complete",
        "completed_views",
        "definition",
        "differs",
        "draft",
        "excluded",
        "final_object",
        "findings",
        "fixed",
        "immutable",
        "injected",
        "intent",
        "judges_intent",
        "kept",
        "old",
        "references",
        "request",
        "scales_of",
        "steered",
        "told",
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
    ) -> None:
        self.request = request
        self.references = references
        self.definition = definition
        self.findings = Findings()
        proof = definition.proof(request.object)
        self.draft = Draft(request.object, proof.shape.keeps if proof is not None else None)
        self.intent = Intent(request)
        self.old = request.old if request.operation == "UPDATE" else None
        self.updating = self.old is not None
        self.immutable: tuple[Immutable, ...] = ()
        completed = request.treatment in (Treatment.FULL, Treatment.OWNED)
        self.writes = request.stage is Stage.MUTATE and completed
        self.writes_needed_only = request.treatment is Treatment.OWNED
        self.judges_intent = request.treatment is not Treatment.TRUSTED
        is_child = request.treatment in (Treatment.CHILD, Treatment.DERIVED)
        validates = request.stage is Stage.VALIDATE and completed
        self.final_object = validates or is_child
        self.excluded: Mapping[str, frozenset[str]] = {}
        self.kept: dict[Hashable, Any] = {}
        self.told: set[tuple[object, ...]] = set()
        self.as_before: frozenset[Path] = frozenset()
        self.differs = True
        self.fixed: dict[Path, frozenset[Path]] | None = None
        self.injected = injected
        self.steered = False
        self.complete: Callable[[], Views] | None = None
        self.completed_views: Views | None = None
        self.workload_changes = 0
        # Fields that were written, each with who said its first value.
        self.written: dict[str, Source | None] = {}
        self.scales_of: dict[tuple[int, int], list[Scale]] = {}

    def write_all(self) -> None:
        """Let defaults land as in the mutating pass, whoever sent the object."""
        self.writes, self.writes_needed_only, self.final_object = True, False, False
        self.judges_intent = True

    def once(self, key: Hashable, find: Callable[[], T]) -> T:
        """What `find` gives, found once: something of the object as it came or as it was."""
        if key not in self.kept:
            self.kept[key] = find()
        found: T = self.kept[key]
        return found

    def excluded_at(self, names: tuple[str, ...]) -> frozenset[str]:
        """The item keys that the workload leaves out under any of these names."""
        if not self.excluded:
            return frozenset()
        return self.once(names, lambda: self.merged(names))

    def merged(self, names: tuple[str, ...]) -> frozenset[str]:
        """The item keys under several names together."""
        held = [keys for name in names if (keys := self.excluded.get(name))]
        return held[0] if len(held) == 1 else frozenset().union(*held)

    def scales(self, document: Any) -> list[Scale]:
        """The scales of the object, the old one or the copy as it stands, read once each."""
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
        """Record one broken rule at one place."""
        rule = constraint.rule if constraint else reason
        origin = constraint.source if constraint else source
        if rule == "required" and not self.has_place(path):
            lacking = self.lacking(path)
            reason = "asked-of-children" if is_safety(field) else "unmapped-rule"
            self.warn(reason, field, lacking, self.request.kind, source=origin)
            return
        if path and path[0].__class__ is Assembled:
            path = real(path)
        if reason in TOLD_ONCE:
            self.told |= {(reason, field, key), (reason, path)}
        self.findings.violations.append(
            Violation(field, path, value, allowed, rule, reason or rule, origin, key, fix, identity)
        )

    def warn(
        self, reason: str, field: str, path: Path, *facts: str, source: Source | None = None
    ) -> None:
        """Record something to tell that refuses nothing."""
        told = (reason, field, real(path), facts, source, None)
        self.findings.warnings.append(_new_tuple(Warning, told))

    def advice_on_missing(self) -> str:
        """What to do where an object lacks what the policy adds; "" where the rule says it all."""
        treatment = self.request.treatment
        if treatment in (Treatment.CHILD, Treatment.DERIVED):
            return NOT_COMPLETED
        if self.immutable:
            return UNWRITABLE
        return AGAIN if self.final_object else ""

    def excuse(self) -> tuple[Excused, ...]:
        """Take out the violations that exceptions cover; what is excused is told all the same."""
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
        """Whether a default may land there: not below a place that updates may not change."""
        if not self.writes or not self.immutable:
            return self.writes
        if self.fixed is None:
            self.fixed = {place: frozenset(exceptions) for place, exceptions in self.immutable}
        path = real(path)
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
        """Set one place of the copy and remember why; told where the object has no such place."""
        held = self.held(field, path)
        if held is None:
            return
        self.draft.set(path, value)
        if self.draft.refused:
            self.tell_pruned(field)
            return
        self.findings.changes.append(_new_tuple(Change, (field, held, value, why, source, secret)))
        self.written.setdefault(field, source)

    def write_workload(
        self, field: str, path: Path, value: Any, why: str, source: Source | None
    ) -> None:
        """Set a place outside the pods, where numbers of replicas may stand."""
        self.workload_changes += 1
        self.write(field, path, value, why, source)

    def note_item(
        self, row: Field, path: Path, value: Any, why: str, source: Source | None
    ) -> bool:
        """Remember an item that a store has just written, and why; False, and told, where there is
        no place for it and so nothing was written.
        """
        if self.draft.refused:
            self.tell_pruned(row.path)
            return False
        held = self.held(row.path, path)
        if held is None:
            return False
        change = (row.path, held, value, why, source, row.secret)
        self.findings.changes.append(_new_tuple(Change, change))
        return True

    def fits(self, field: str, path: Path, item: Any) -> bool:
        """Whether a list of the object keeps an item; told where servers would prune it."""
        keeps = self.draft.keeps
        if keeps is None or not is_held(path) or keeps((*real(path), 0), item):
            return True
        self.tell_pruned(field)
        return False

    def tell_pruned(self, field: str) -> None:
        """Tell once for each field what was not written, as the server would take it away again."""
        self.draft.refused = False
        request = self.request
        self.warn("pruned-default", field, (), f"{request.kind} {request.version}")

    def held(self, field: str, path: Path) -> Path | None:
        """The object's own place of what is written; None, and told, where it has none."""
        if not path or path[0].__class__ is not Assembled:
            return path
        if is_held(path):
            return real(path)
        self.warn("unmapped-default", field, self.lacking(path), self.request.kind)
        return None

    def has_place(self, path: Path) -> bool:
        """Whether the object has such a place, and servers keep what is written there."""
        return is_held(path) and (self.draft.keeps is None or self.draft.keeps(real(path), None))

    def lacking(self, path: Path) -> Path:
        """Which pod has no place for this; nothing to tell where all pods of the kind are alike."""
        several = [each for each in self.definition.interface.components if each.form]
        place = real(path) if len(several) > 1 else ()
        # Pods in a list are alike too: one sentence is enough for them.
        return () if any(isinstance(step, int) for step in place) else place

    def as_it_stands(self, view: PodView) -> PodView:
        """The pod as the copy has it by now; one view of it serves everybody until the next write."""
        if not self.draft.changed and view.location.parts is None:
            return view
        version, known = self.draft.version, view.kept.get("now")
        if known is None or known[0] != version:
            known = view.kept["now"] = (version, refreshed(view, self.draft.document))
        found: PodView = known[1]
        return found

    def now(self, path: Path) -> Any:
        """The value that a place has in the copy; None when absent."""
        document = self.draft.document
        if path and path[0].__class__ is Assembled:
            document, path = path[0].places.assemble(document, path[1:]), path[1:]
        value = read(document, path)
        return None if value is ABSENT else value

    def completed(self, view: PodView) -> PodView | None:
        """The same pod before the update with today's defaults: what our own writing makes of it.

        A difference to the old pod that is found here too is ours and not the user's.
        """
        if view.old is None or self.complete is None:
            return None
        if self.completed_views is None:
            self.completed_views = self.complete()
        return self.completed_views.get((view.location.component, view.location.instance))

    def refilled(self, path: Path, before: Path) -> bool:
        """Whether the server may have filled in this place anew: the object was sent whole.

        Or the list around it was, as merge patches send lists: then its item lacks what it had.
        """
        if self.request.replaces:
            return True
        path, before = real(path), real(before)
        item, old = read(self.request.object, item_of(path)), read(self.old, item_of(before))
        return isinstance(item, dict) and isinstance(old, dict) and not old.keys() <= item.keys()

    def set_by_user(self, path: Path, native: Any, server_default: Any) -> bool:
        """Whether a present value counts as the user's (semantics §5); `native` is not None."""
        if self.is_filled_in(path, native, server_default):
            return self.is_stated(path)
        return not self.is_filled_around(path)

    def is_stated(self, path: Path) -> bool:
        """Whether somebody wrote a value that others would fill in too."""
        filled = self.filled_in(path)
        return self.intent.stated(path, zero=filled is None or not filled.zero_too)

    def is_filled_in(self, path: Path, native: Any, server_default: Any) -> bool:
        """Whether a value is what the server, the schema or the operator fills in at its path."""
        if server_default is not None and native == server_default:
            return True
        filled = self.filled_in(path)
        return filled is not None and bool(filled.value == native)

    def filled_in(self, path: Path) -> Filled | None:
        """Return what the schema or the operator filled in at the path."""
        profile = self.definition.profile
        if not profile.shadow_defaults:
            return None
        filled = self.once("filled", lambda: places_filled(profile, self.request.object))
        found: Filled | None = filled.get(real(path))
        return found

    def is_filled_around(self, path: Path) -> bool:
        """Whether the schema of the object around a wrapped one filled in this place."""
        filled = self.intent.filled
        return bool(filled) and real(path) in filled


def is_safety(field: str) -> bool:
    """Whether a field is evaluated on what controllers make: safety and images."""
    row = TABLE.fields.get(field)
    return row is not None and (row.safety or row.binding is Binding.SAFETY)


def is_held(path: Path) -> bool:
    """Whether the object has a place for this, which a pod in pieces may lack."""
    if path and path[0].__class__ is Assembled:
        return path[0].places.holds(path[1:])
    return True


def item_of(path: Path) -> Path:
    """The innermost list item that a place is in; the whole object when it is in none."""
    last = max((at for at, step in enumerate(path) if isinstance(step, int)), default=-1)
    return path[: last + 1]


def ratchets(constraint: Constraint) -> bool:
    """Whether what was there before the update is tolerated by the policy of this rule."""
    return constraint.policy.tolerates_existing


def view_before(view: PodView, container: Container | None, at: Path) -> tuple[Path, Any] | None:
    """The place `at` of the same container before the update, with its value (None: absent)."""
    if container is None or view.old is None:
        return None
    before = view.old_container(container)
    if before is None:
        return None
    value = read(before.body, at)
    return ((*before.path, *at), None if value is ABSENT else value)
