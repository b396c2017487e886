"""Makes a profile of its typed body, compiling every path."""

from __future__ import annotations

import re
from collections.abc import Iterator

from webhook.documents.read_model import Report, shown
from webhook.interface.fragment import Part
from webhook.interface.injected_items import Injected, read_injected
from webhook.interface.profile_document import (
    AbsentIsUnlimitedModel,
    ComponentProfileModel,
    FieldModel,
    GroupsModel,
    KindModel,
    MainContainerModel,
    ProfileSpec,
    ScaleOfModel,
)
from webhook.interface.profile_values import (
    AbsentIsUnlimited,
    ComponentProfile,
    Embedded,
    ExtraContainer,
    FieldPlaces,
    ForbiddenField,
    Groups,
    Immutable,
    MainConvention,
    NotPod,
    PodText,
    Profile,
    Reference,
    Reserved,
    ScaleOf,
    ScaleRules,
    ShadowDefault,
    SharedClaims,
)
from webhook.jq.path import Program
from webhook.jq.programs import place, program
from webhook.objects.path import Path

SPEC: Path = ("spec",)
PODLESS = ("", "resource.k8s.io")


class Builder:
    """Makes a profile of its typed body; every path that cannot be compiled is told."""

    def __init__(self, report: Report) -> None:
        self.report = report

    def profile(self, spec: ProfileSpec, name: str) -> Profile:
        """The whole profile."""
        subtrees = spec.open_subtrees
        return Profile(
            spec.group,
            spec.kind,
            tuple(spec.versions),
            spec.resource,
            spec.workload_type,
            spec.built_in,
            spec.uncovered,
            {each: self.component(each, body) for each, body in spec.components.items()},
            {each: self.field(each, body) for each, body in spec.fields_.items()},
            self.places(("priorityClass", "secondPlaces"), spec.priority_class.second_places),
            tuple(self.extra_containers(spec)),
            tuple(self.not_pods(spec)),
            tuple(
                ForbiddenField(each.field, each.unless or "", each.reason or "")
                for each in spec.forbidden_fields
            ),
            tuple(self.shadow_defaults(spec)),
            tuple(self.immutable(spec)),
            frozenset((each.group, each.kind) for each in spec.intermediate_kinds),
            frozenset(spec.controllers),
            tuple(self.references(spec)),
            self.scale_subresource(spec),
            frozenset(spec.steering.labels),
            frozenset(spec.steering.annotations),
            None if subtrees is None else self.places(("openSubtrees",), subtrees),
            name,
            self.report.document.origin,
            spec.name_label or "",
            self.pod_parts(spec),
            pod_security_context=spec.pod_security_context,
            claim_templates=self.places(("claimTemplates",), spec.claim_templates),
            shared_claims=tuple(self.shared_claims(spec)),
            embedded=tuple(self.embedded(spec)),
            pod_texts=tuple(self.pod_texts(spec)),
            reserved=tuple(self.reserved(spec)),
            cluster_scoped=spec.cluster_scoped,
            adds=self.adds(spec),
            defaults_of=group_and_kind(spec.defaults_of),
        )

    def place(self, at: Path, text: str | None) -> Program | None:
        """A place of the object; None once its problem is told."""
        return place(text, (*SPEC, *at), self.report)

    def places(self, at: Path, texts: list[str]) -> tuple[Program, ...]:
        """The places of a list."""
        found = (self.place((*at, index), text) for index, text in enumerate(texts))
        return tuple(each for each in found if each is not None)

    def shared_claims(self, spec: ProfileSpec) -> Iterator[SharedClaims]:
        """Claims of devices that pods share."""
        for index, each in enumerate(spec.shared_claims):
            at: Path = ("sharedClaims", index)
            yield SharedClaims(
                self.places((*at, "claims"), each.claims),
                self.places((*at, "templates"), each.templates),
                self.places((*at, "onlyFor"), each.only_for),
            )

    def component(self, name: str, body: ComponentProfileModel) -> ComponentProfile:
        """One component."""
        at: Path = ("components", name)
        if body.role and body.roles:
            self.add((*at, "role"), "`role` beside `roles`", "keep one of them", "two-roles")
        main = body.main_container
        if main and [main.name is None, main.index is None, not main.with_ports].count(False) != 1:
            found = "no rule or several for the main container"
            fix = "set one of `name`, `index` and `withPorts`"
            self.add((*at, "mainContainer"), found, fix, "main-container")
        by_instance = body.roles.by_instance if body.roles else {}
        return ComponentProfile(
            (body.roles.otherwise if body.roles else body.role) or "worker",
            {instance.casefold(): role for instance, role in by_instance.items()},
            self.main((*at, "mainContainer", "namedAt"), main) if main else MainConvention(),
            body.children,
            self.scale((*at, "scale"), body),
            self.place((*at, "mergedWith"), body.merged_with),
            self.place((*at, "leaderWith"), body.leader_with),
            body.stands_in_for or "",
            body.without_template,
            frozenset((each.group, each.kind) for each in body.makes),
        )

    def scale_subresource(self, spec: ProfileSpec) -> ScaleOf | None:
        """What `scale` sets, by a component or by a field that the profile has."""
        body, at = spec.scale_subresource, ("scaleSubresource",)
        if body is None or bool(body.component) == bool(body.field):
            if body is not None:
                fix = "set one of `component` and `field`"
                self.add(at, "`scale` sets one number", fix, "scale-target")
            return None
        if body.field and body.field not in spec.fields_:
            found = f"`{shown(body.field)}` is not among `fields`"
            self.add((*at, "field"), found, "set its places there", "field-unknown")
        return ScaleOf(body.component or "", body.instance, body.field or "")

    def main(self, at: Path, main: MainContainerModel) -> MainConvention:
        """Which container is the main one; `at` is where it says who names it."""
        named_at = self.place(at, main.named_at)
        return MainConvention(main.name, main.index, main.with_ports, named_at)

    def scale(self, at: Path, body: ComponentProfileModel) -> ScaleRules:
        """The scale rules of a component; its bounds may be computed."""
        scale = body.scale
        if scale is None:
            return ScaleRules()
        return ScaleRules(
            scale.absent,
            scale.instance.casefold() if scale.instance else None,
            program(scale.minimum, (*SPEC, *at, "minimum"), self.report),
            program(scale.maximum, (*SPEC, *at, "maximum"), self.report),
            self.place((*at, "maximumOnlyWith"), scale.maximum_only_with),
            scale.unlimited,
            self.places((*at, "noneWhile"), scale.none_while),
            self.place((*at, "unlimitedWhile"), scale.unlimited_while),
            scale.pods_of or "",
            {name.casefold(): count for name, count in scale.absent_of.items()},
            tuple(self.groups((*at, "groups"), scale.groups)),
        )

    def groups(self, at: Path, rows: list[GroupsModel]) -> Iterator[Groups]:
        """Groups that multiply instances; their numbers are beside their lists."""
        for index, each in enumerate(rows):
            lists = self.place((*at, index, "lists"), each.lists)
            numbers: dict[str, Program | None] = {}
            for key in ("replicas", "minimum", "maximum"):
                found = numbers[key] = self.place((*at, index, key), getattr(each, key))
                if lists and found and found.iterators != lists.iterators[:-1]:
                    told = f"`{shown(found.text)}` is not beside `{shown(lists.text)}`"
                    fix = "name a number of the same groups, one list less deep"
                    self.add((*at, index, key), told, fix, "groups-differ")
            if lists and numbers["replicas"]:
                yield Groups(lists, absent=each.absent, **numbers)

    def field(self, name: str, body: FieldModel) -> FieldPlaces:
        """The places of one field; with several it must be said which a default goes to."""
        at: Path = ("fields", name)
        sources = (body.places, body.scale_of, body.derived is not None, body.main_port)
        if [bool(each) for each in sources].count(True) != 1:
            fix = "set one of `places`, `scaleOf`, `derived` and `mainPort`"
            self.add(at, "a field has one source", fix, "field-source")
        if len(body.places) > 1 and not body.write:
            fix = "name in `write` the one that a default goes to"
            self.add(at, "several paths", fix, "write-missing")
        if strangers := [each for each in body.write if each not in body.places]:
            found = f"`{shown(strangers[0])}` is not among `places`"
            self.add((*at, "write"), found, "repeat one of them exactly", "write-unknown")
        places = self.places((*at, "places"), body.places)
        texts = body.write or body.places
        return FieldPlaces(
            places,
            tuple(each for each in places if each.text in texts),
            self.place((*at, "onlyWith"), body.only_with),
            scale_of(body.scale_of),
            body.derived,
            tuple(body.as_),
            tuple(body.allows),
            tuple(body.main_port),
            body.first_counts,
            self.place((*at, "notWith"), body.not_with),
            self.absent_is_unlimited((*at, "absentIsUnlimited"), body.absent_is_unlimited),
        )

    def absent_is_unlimited(
        self, at: Path, body: AbsentIsUnlimitedModel | None
    ) -> AbsentIsUnlimited | None:
        """Return where an absent limit means that there is none."""
        if body is None:
            return None
        only_with = self.place((*at, "onlyWith"), body.only_with)
        return AbsentIsUnlimited(body.source, body.needs_parent, only_with, body.even_if_set)

    def add(self, at: Path, found: str, fix: str, reason: str) -> None:
        """One error at a place of the spec."""
        self.report.add((*SPEC, *at), found, fix, reason)

    def extra_containers(self, spec: ProfileSpec) -> list[ExtraContainer]:
        """Containers outside the templates."""
        made = []
        for index, each in enumerate(spec.extra_containers):
            if found := self.place(("extraContainers", index, "place"), each.place):
                only_in = tuple(each.only_in)
                note = each.note or ""
                made.append(ExtraContainer(each.component, found, only_in, note, each.main))
        return made

    def pod_parts(self, spec: ProfileSpec) -> dict[str, tuple[Part, ...]]:
        """The pieces of pods by component; a pod's place is a plain path from the pod."""
        made: dict[str, tuple[Part, ...]] = {}
        for index, each in enumerate(spec.pod_parts):
            at: Path = ("podParts", index)
            pod = self.place((*at, "pod"), each.pod)
            found = self.place((*at, "place"), each.place)
            if pod is None or found is None:
                continue
            path, item = plain_path(pod), None
            if not pod.is_plain:
                path, item = path_of_items(each.pod)
            if not pod.is_plain and item is None:
                fix = "write keys and indices, and `[]` once at most"
                self.add((*at, "pod"), f"`{shown(each.pod)}` is not plain", fix, "not-plain")
                continue
            part = Part(path, found, each.form, each.absent, each.makes_pod, item)
            made[each.component] = (*made.get(each.component, ()), part)
        return made

    def not_pods(self, spec: ProfileSpec) -> list[NotPod]:
        """Places that are no pods."""
        made = []
        for index, each in enumerate(spec.not_pods):
            if found := self.place(("notPods", index, "place"), each.place):
                made.append(NotPod(found, each.reason))
        return made

    def embedded(self, spec: ProfileSpec) -> list[Embedded]:
        """Places of whole objects."""
        made = []
        for index, each in enumerate(spec.embedded):
            at: Path = ("embedded", index)
            sets = each.pod_sets
            paths = self.place((*at, "podSets", "path"), sets.path) if sets else None
            replicas = self.place((*at, "podSets", "replicas"), sets.replicas) if sets else None
            podless = frozenset((kind.group, kind.kind) for kind in each.podless)
            if found := self.place((*at, "place"), each.place):
                made.append(Embedded(found, paths, replicas, podless))
        return made

    def shadow_defaults(self, spec: ProfileSpec) -> list[ShadowDefault]:
        """Values filled in by others."""
        made = []
        for index, each in enumerate(spec.shadow_defaults):
            at: Path = ("shadowDefaults", index)
            if (each.value is None) == (each.same_as is None):
                told = "both value and sameAs" if each.same_as else "neither value nor sameAs"
                self.add(at, told, "write one of them", "default-source")
            same_as = self.place((*at, "sameAs"), each.same_as)
            if found := self.place((*at, "path"), each.path):
                made.append(ShadowDefault(found, each.value, each.by, same_as, each.zero_too))
        return made

    def immutable(self, spec: ProfileSpec) -> list[Immutable]:
        """Places that stay as they are."""
        made = []
        for index, each in enumerate(spec.immutable):
            at: Path = ("immutable", index)
            exceptions = self.places((*at, "except"), each.except_)
            if found := self.place((*at, "place"), each.place):
                made.append(Immutable(found, exceptions))
        return made

    def references(self, spec: ProfileSpec) -> list[Reference]:
        """Fields that name other objects."""
        made = []
        for index, each in enumerate(spec.references):
            at: Path = ("references", index)
            kind_place = self.place((*at, "kindPlace"), each.kind_place)
            if found := self.place((*at, "place"), each.place):
                note = each.note or ""
                implied_by = self.place((*at, "impliedBy"), each.implied_by)
                # Of these groups volumes, secrets and claims are named, and one kind of pods.
                pods = each.pods
                if pods is None:
                    pods = each.group not in PODLESS or each.kind == "PodTemplate"
                made.append(
                    Reference(found, each.group, each.kind, kind_place, note, implied_by, pods)
                )
        return made

    def pod_texts(self, spec: ProfileSpec) -> list[PodText]:
        """Texts that change pods."""
        made = []
        for index, each in enumerate(spec.pod_texts):
            if found := self.place(("podTexts", index, "place"), each.place):
                made.append(PodText(found, tuple(each.keys), each.note or ""))
        return made

    def adds(self, spec: ProfileSpec) -> Injected:
        """What the operator adds to the pods that it makes."""
        return read_injected(
            spec.adds,
            lambda path, found, fix: self.add(("adds", *path), found, fix, "injected-items"),
        )

    def reserved(self, spec: ProfileSpec) -> list[Reserved]:
        """Places of controllers."""
        made = []
        for index, each in enumerate(spec.reserved):
            if found := self.place(("reserved", index, "place"), each.place):
                made.append(Reserved(found, each.writer))
        return made


def plain_path(program: Program) -> Path:
    """The one place that a plain path names, whatever the document."""
    return tuple(
        int(step[1:-1]) if step.startswith("[") else step
        for step in re.findall(r"\[\d+\]|[A-Za-z_][A-Za-z0-9_]*", program.text)
    )


ITEMS = re.compile(r"(?:\.[A-Za-z_][A-Za-z0-9_]*)+\[\](?:\.[A-Za-z_][A-Za-z0-9_]*)*", re.ASCII)


def path_of_items(text: str) -> tuple[Path, int | None]:
    """`.a.b[].c` as the place of the first item, and which step of it stands for all items."""
    if not ITEMS.fullmatch(text):
        return (), None
    before, _, after = text.partition("[]")
    listed = tuple(before[1:].split("."))
    return (*listed, 0, *after[1:].split(".")) if after else (*listed, 0), len(listed)


def group_and_kind(body: KindModel | None) -> tuple[str, str] | None:
    """Return the group and the kind that a body names."""
    return None if body is None else (body.group, body.kind)


def scale_of(body: ScaleOfModel | None) -> ScaleOf | None:
    """A component's replicas, as the body names them."""
    return ScaleOf(body.component, body.instance) if body else None
