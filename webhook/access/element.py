"""Reads and writes components for admission: every value belongs to an element of the object.

Only native paths are supported. An absent value is not an instance, duplicate names are rejected,
and a write changes nothing that its value does not name.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, Final

from webhook.access.component import FORMS, Access, Form, Replicas, fragment_texts, path_text
from webhook.access.errors import AccessError, NotDefinedError
from webhook.access.fragments_in_pods import fragment_paths, has_metadata, place_of, whole_form
from webhook.access.programs import optional, program, scale_programs
from webhook.access.status import Status, read_status
from webhook.documents.read_model import show_value, sort
from webhook.interface.document import ComponentModel, SpecPaths
from webhook.interface.interface import Component
from webhook.interface.profile import Profile, ScaleRules
from webhook.jq.expressions import Evaluator, JqError
from webhook.jq.pair import check_pairing, matches_within, pair_values
from webhook.jq.path import Match, Program, QueryError, first_place
from webhook.objects.draft import Draft, PatchError
from webhook.objects.path import Path, display
from webhook.pods.location import LocationError
from webhook.pods.replicas import has_pods, scales_of

LISTS: Final = frozenset({"resourceClaims", "containers"})
TEXTS: Final = frozenset({"schedulerName", "priorityClassName", "image"})
Bindings = tuple[Path, ...]


class ElementAccess(Access):
    """One object as admission reads it. The given object stays unchanged."""

    def __init__(self, document: Any, evaluator: Evaluator, profile: Profile | None = None) -> None:
        self.evaluator = evaluator
        self.profile = profile
        self.draft = Draft(document)

    @property
    def document(self) -> Any:
        return self.draft.document

    def ids(self, model: ComponentModel) -> list[str]:
        if not model.instance_id_path:
            raise NotDefinedError(model.name, "instanceIdPath")
        return [name for name, _ in self.elements(model)]

    def instance_ids(self, model: ComponentModel) -> list[str]:
        """Return the names of the instances. Absent ones have none."""
        if model.instance_id_path:
            return super().instance_ids(model)
        for form in FORMS:
            found = self.by_instance(model, form)
            if found is not None:
                return list(found)
        return [""]

    def by_instance(self, model: ComponentModel, form: Form) -> dict[str, Any] | None:
        """Return copies of the values of a form by instance, without absent ones."""
        try:
            if form == "scale":
                return self.scales(model)
            if form == "fragments":
                found = self.fragments(model)
                return {name: copy.deepcopy(held) for name, held in found if held}
            return {name: copy.deepcopy(each.value) for name, each in self.matches(model, form)}
        except NotDefinedError:
            return None

    def values(self, model: ComponentModel, form: Form) -> list[Any]:
        return list((self.by_instance(model, form) or {}).values())

    def status(self, model: ComponentModel) -> Status:
        if model.status_definition is None:
            raise NotDefinedError(model.name, "status")
        return read_status(model.status_definition, self.document, self.evaluator)

    def update(self, model: ComponentModel, form: Form, values: Mapping[str, Any]) -> None:
        """Write the values of the given instances, and nothing else."""
        elements = dict(self.elements(model)) if form == "scale" else {}
        places = {} if form == "scale" else self.places(model, form)
        for name in values:
            if name not in places and name not in elements:
                text = f"`{show_value(model.name)}` has no instance `{show_value(name)}`"
                raise AccessError("instance-unknown", text, id=name)
        for name, value in values.items():
            if form == "scale":
                self.set_scale(model, elements[name], value)
            elif form == "fragments":
                self.set_fragments(places[name], value)
            else:
                self.set_fragments(places[name], {"": value})

    def write(self, model: ComponentModel, form: Form, values: Sequence[Any]) -> None:
        names = self.instance_ids(model)
        self.update(model, form, dict(zip(names, values, strict=True)))

    def assign(self, text: str, value: Any) -> None:
        try:
            places = self.evaluator.places(text, self.document, lenient=True)
        except JqError as error:
            raise AccessError("path-failed", str(error)) from error
        for place in places:
            self.set(place, value)

    def set_fragments(self, paths: Mapping[str, Path | None], value: Any) -> None:
        """Write the fragments of a value. null removes one."""
        for name, fragment in value.items():
            place = paths.get(name)
            if place is None:
                raise AccessError("path-missing", f"no path for `{show_value(name)}`", name=name)
            if fragment is None:
                self.draft.remove(place)
            else:
                self.set(place, fragment)

    def set_scale(self, model: ComponentModel, bindings: Bindings, value: Any) -> None:
        """Write the numbers of one instance. For a product, the first field is written."""
        ids, programs = self.id_program(model), scale_programs(model)
        for name, number in zip(("replicas", "minimum", "maximum"), spread(value), strict=True):
            if number is None:
                continue
            what = programs.get(name)
            found = self.of(what, ids, bindings) if what is not None else []
            place = next((each.path for each in found), None)
            if what is not None and place is None:
                place, number = self.factor(what, ids, bindings, number)
            if place is None:
                raise AccessError("path-missing", f"no path for `{name}`", name=name)
            self.set(place, number)

    def factor(
        self, what: Program, ids: Program | None, bindings: Bindings, number: int
    ) -> tuple[Path | None, int]:
        """Return the path of the first field of a product, and its new value."""
        first = first_place(what)
        found = self.of(first, ids, bindings) if first is not None else []
        place = next((each.path for each in found), None)
        if place is None:
            return None, number
        tried = ElementAccess(self.document, self.evaluator, self.profile)
        tried.set(place, 1)
        (unit,) = [each.value for each in tried.of(what, ids, bindings)] or [0]
        if not isinstance(unit, int) or unit < 1 or number % unit:
            text = f"`{show_value(what.text)}` is {unit} for each 1 at {display(place)}: never {number}"
            raise AccessError("not-a-multiple", text, path=place)
        return place, number // unit

    def set(self, place: Path, value: Any) -> None:
        """Write one value. Raises AccessError."""
        try:
            self.draft.set(place, copy.deepcopy(value))
        except PatchError as error:
            raise AccessError("path-failed", str(error)) from error

    def places(self, model: ComponentModel, form: Form) -> dict[str, dict[str, Path | None]]:
        """Return the paths of each instance by fragment. The path of a whole value has the key ""."""
        if form == "fragments" and (whole := whole_form(model)) is not None:
            beside = self.matches(model, "metadata") if has_metadata(model, whole) else ()
            main = self.profile.component(model.name).main.name if self.profile else None
            return fragment_paths(self.matches(model, whole), beside, whole, main)
        if form != "fragments":
            found = self.matches(model, form)
            return {name: {"": place_of(each)} for name, each in found}
        programs = {name: program(text) for name, text in fragment_texts(model).items()}
        ids = self.id_program(model)
        return {
            name: {
                fragment: next((each.path for each in self.of(what, ids, bindings)), None)
                for fragment, what in programs.items()
            }
            for name, bindings in self.elements(model)
        }

    def scales(self, model: ComponentModel) -> dict[str, Replicas]:
        """Return the numbers of each instance that sets any."""
        numbers, paths = scale_programs(model), model.spec_definition or SpecPaths()
        component = Component(
            model.name,
            template=optional(paths.pod_template_spec_path),
            spec=optional(paths.pod_spec_path),
            ids=self.id_program(model),
            replicas=numbers.get("replicas"),
            minimum=numbers.get("minimum"),
            maximum=numbers.get("maximum"),
        )
        rules = self.profile.component(model.name).scale if self.profile else ScaleRules()
        try:
            if rules.unlimited and not has_pods(component, self.document):
                return {}
            found = list(scales_of(component, rules, self.document))
        except (LocationError, QueryError) as error:
            raise AccessError(getattr(error, "reason", "path-failed"), str(error)) from error
        return {
            each.instance: Replicas(each.replicas, each.minimum, each.maximum) for each in found
        }

    def fragments(self, model: ComponentModel) -> list[tuple[str, dict[str, Any]]]:
        """Return the fragments of every element that are present."""
        programs = {name: program(text) for name, text in fragment_texts(model).items()}
        ids = self.id_program(model)
        return [
            (name, self.read_fragments(programs, ids, bindings))
            for name, bindings in self.elements(model)
        ]

    def read_fragments(
        self, programs: Mapping[str, Program], ids: Program | None, bindings: Bindings
    ) -> dict[str, Any]:
        """Return the fragments of one element, with their types checked."""
        found = {}
        for name, what in programs.items():
            for each in self.of(what, ids, bindings):
                if each.value is not None:
                    check_type(
                        each, name, str if name in TEXTS else list if name in LISTS else dict
                    )
                    found[name] = each.value
        return found

    def matches(self, model: ComponentModel, form: Form) -> list[tuple[str, Match]]:
        """Return the values of a form with one path, by instance. Unnamed instances are numbered."""
        what, ids = program(path_text(model, form)), self.id_program(model)
        try:
            if ids is not None:
                found = pair_values(what, ids, self.document)
            else:
                seen = what.matches_or_none(self.document)
                given = [each for each in seen if each.value is not None]
                names = [""] if len(given) == 1 else map(str, range(len(given)))
                found = list(zip(names, given, strict=True))
        except QueryError as error:
            raise AccessError("path-failed", str(error)) from error
        for _, each in found:
            check_type(each, form, dict)
        return found

    def elements(self, model: ComponentModel) -> list[tuple[str, Bindings]]:
        """Return the instances with their elements."""
        ids = self.id_program(model)
        if ids is None:
            return [("", ())]
        try:
            return [(name, each.bindings) for name, each in pair_values(ids, ids, self.document)]
        except QueryError as error:
            raise AccessError("instance-ids", str(error)) from error

    def id_program(self, model: ComponentModel) -> Program | None:
        """Return the program of the ids."""
        return optional(model.instance_id_path)

    def of(self, what: Program, ids: Program | None, bindings: Bindings) -> list[Match]:
        """Return the results of a path in one element, or in the object if there are no ids."""
        why = check_pairing(what, ids, deeper=True) if ids is not None else None
        if why:
            raise AccessError("not-paired", why)
        try:
            found = matches_within(what, self.document, bindings)
        except QueryError as error:
            raise AccessError("path-failed", str(error)) from error
        if ids is not None and len(found) > 1:
            text = f"{show_value(what.text)} gives {len(found)} values in one instance"
            raise AccessError("several-values", text, path=found[0].path)
        return found


def spread(scale: Replicas) -> tuple[int | None, ...]:
    """Return the numbers of a scale, in order."""
    return scale.replicas, scale.minimum, scale.maximum


def check_type(match: Match, what: str, wanted: type) -> None:
    """Raise AccessError if the value has another type."""
    if not isinstance(match.value, wanted):
        text = f"{display(match.path or ())} is {sort(match.value)}, which is no {what}"
        raise AccessError("wrong-type", text, path=match.path, what=what)
