"""security.uidGidSource: where the ids of a pod come from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from webhook.evaluation.installation import InstallationConfig
from webhook.evaluation.requester_ids import UserIds, user_ids
from webhook.evaluation.state import Evaluation
from webhook.fields.handler import COMPUTED, FieldSource, FieldValue, PodField, PodHandler
from webhook.fields.scalar import reader, rules_of
from webhook.objects.path import Path
from webhook.pods.pod_view import PodView
from webhook.policy.combine import Leaf
from webhook.policy.row import IDENTITY, Field

USER: Path = ("securityContext", "runAsUser")
GROUP: Path = ("securityContext", "runAsGroup")
GROUPS: Path = ("securityContext", "supplementalGroups")
READERS = {USER: reader(USER), GROUP: reader(GROUP), GROUPS: reader(GROUPS)}
PLACES: dict[str, Path] = {"uid": USER, "gid": GROUP, "groups": GROUPS}
IMAGE, TOKEN, CUSTOM = "fromTheImage", "fromIdpToken", "custom"

Id = tuple[str, str, Path]
"""An id of a pod: the list and name of its container, empty for the pod's own, and its path."""


class IdentityField(PodField):
    """The source of user and group ids: derived from the ids, written from claims."""

    __slots__ = ("at_pod", "defaults", "has_uid", "keys")

    def __init__(
        self,
        row: Field,
        leaf: Leaf,
        config: InstallationConfig,
        uid: Leaf | None,
        gid: Leaf | None,
        *,
        at_pod: bool,
    ) -> None:
        self.defaults = {
            at: each.default.value
            for at, each in ((USER, uid), (GROUP, gid))
            if each is not None and each.default is not None
        }
        super().__init__(row, rules_of(row, leaf))
        self.keys = config.identity_claims
        self.at_pod = at_pod
        self.has_uid = uid is not None and (
            uid.default is not None
            or any(each.type.form == "default-source" for each in uid.constraints)
        )

    def ids(self, view: PodView) -> dict[Id, tuple[Path, Any]]:
        """Return every user and group id that the pod sets, with its path."""
        found: dict[Id, tuple[Path, Any]] = {}
        for at in (USER, GROUP):
            value = READERS[at](view.spec)
            if value is not None:
                found["", "", at] = ((*view.spec_path, *at), value)
            for each in view.everyone:
                value = READERS[at](each.body)
                if value is not None:
                    found[each.list, each.name, at] = ((*each.path, *at), value)
        return found

    def claims(self, ev: Evaluation) -> UserIds:
        """Return the ids in the requester's claims."""
        return user_ids(ev.request.extra, self.keys)

    def source(
        self, view: PodView, ev: Evaluation, known: Mapping[Id, tuple[Path, Any]] | None = None
    ) -> str:
        """Return the source of the ids. Ids equal to the claims come from the claims."""
        ids = self.ids(view) if known is None else known
        if not ids:
            return IMAGE
        claims = self.claims(ev)
        wanted = {USER: claims.uid, GROUP: claims.gid}
        groups = READERS[GROUPS](view.spec)
        if claims.wrong or any(value != wanted[at] for (_, _, at), (_, value) in ids.items()):
            return CUSTOM
        if groups is None or claims.groups is None:
            return TOKEN
        same = isinstance(groups, list) and set(map(str, groups)) == set(map(str, claims.groups))
        return TOKEN if same else CUSTOM

    def choose_ids(self, view: PodView) -> dict[Id, tuple[Path, Any]]:
        """Return the ids that differ from the defaults of the same policies.

        If ids of the token are the default, no other default replaces them.
        """
        default = self.rules.default
        if default is not None and default.value == TOKEN:
            return self.ids(view)
        return {
            key: (path, value)
            for key, (path, value) in self.ids(view).items()
            if key[2] not in self.defaults or value != self.defaults[key[2]]
        }

    def check_intent(self, view: PodView, ev: Evaluation) -> None:
        """Check prohibitions on every chosen id, which determines the source."""
        if not self.rules.prohibitions:
            return
        self.check_claims(view, ev)
        ids = self.choose_ids(view)
        old = self.ids(view.old) if view.old is not None else {}
        source = self.source(view, ev) if ids else IMAGE
        for key, (path, value) in ids.items():
            held = old.get(key)
            before = (held[0], source) if held is not None and held[1] == value else None
            self.rules.check_intent(ev, path, source, before, None)

    @property
    def demands_ids(self) -> bool:
        """Return whether ids of the token are mandatory: nothing else is allowed, or a value is required."""
        locked = any(each.type.fixes_default for each in self.rules.prohibitions)
        return locked or bool(self.rules.required)

    def check_claims(self, view: PodView, ev: Evaluation) -> None:
        """Refuse a pod without ids if the requester has no claims for them."""
        default = self.rules.default
        if default is None or default.value != TOKEN or not self.demands_ids or view.windows:
            return
        if self.ids(view) or (view.old is not None and self.ids(view.old)):
            return
        for name, key in self.claims(ev).wrong:
            ev.violate(
                self.row.path,
                (*view.spec_path, *PLACES[name]),
                None,
                name,
                None,
                reason="missing-claim",
                source=default.source,
                key=key or name,
            )

    def fill(self, view: PodView, ev: Evaluation) -> None:
        """Write the requester's ids if none are set. Other sources write nothing."""
        default = self.rules.default
        if default is None or default.value == IMAGE:
            return
        if default.value == CUSTOM:
            if not self.has_uid and not any(at == USER for _, _, at in self.ids(view)):
                ev.warn("image-decides", self.row.path, (*view.spec_path, *USER))
            return
        if view.windows:
            ev.warn("forbidden-default", self.row.path, view.spec_path, "Windows")
        elif self.source(view, ev) != CUSTOM:
            self.fill_ids(view, ev)

    def fill_ids(self, view: PodView, ev: Evaluation) -> None:
        """Write every unset id: its value before the update, else the value of the claims."""
        why, claims = "kept", UserIds()
        kept = self.keep_ids(view, ev)
        if not kept:
            why, claims = "default", self.claims(ev)
            if claims.wrong:
                keys = [key or name for name, key in claims.wrong]
                if not self.demands_ids:
                    ev.warn("missing-claim", self.row.path, view.spec_path, *keys)
                return
        groups = None if claims.groups is None else list(claims.groups)
        for at, value in ((USER, claims.uid), (GROUP, claims.gid), (GROUPS, groups)):
            if READERS[at](view.spec) is not None:
                continue
            if self.at_pod and at != GROUPS and view.overrides(READERS[at]):
                continue
            if self.at_pod:
                self.put(ev, (*view.spec_path, *at), kept.get(("", "", at), value), why)
            elif at != GROUPS:
                self.fill_containers(view, ev, at, kept, value, why)
            elif value is not None:
                ev.warn("forbidden-default", self.row.path, (*view.spec_path, *at), "groups")

    def fill_containers(
        self,
        view: PodView,
        ev: Evaluation,
        at: Path,
        kept: Mapping[Id, Any],
        value: Any,
        why: str,
    ) -> None:
        """Write one id into every container that lacks it, for kinds that take it only there."""
        for each in view.everyone:
            if each.list != "ephemeralContainers" and READERS[at](each.body) is None:
                wanted = kept.get((each.list, each.name, at), value)
                self.put(ev, (*each.path, *at), wanted, why)

    def keep_ids(self, view: PodView, ev: Evaluation) -> dict[Id, Any]:
        """Return the ids before the update that no user wrote."""
        if view.old is None:
            return {}
        stated = self.ids(view.old)
        groups = READERS[GROUPS](view.old.spec)
        if stated and groups is not None:
            stated["", "", GROUPS] = ((*view.old.spec_path, *GROUPS), groups)
        return {
            key: value
            for key, (path, value) in stated.items()
            if not ev.intent.was_written_by_user(path)
        }

    def put(self, ev: Evaluation, path: Path, value: Any, why: str) -> None:
        """Write one id if that is allowed."""
        default = self.rules.default
        if value is not None and default is not None and ev.can_write(path):
            ev.write(self.row.path, path, value, why, default.source)

    def check_final(self, view: PodView, ev: Evaluation) -> None:
        """Check options on the source. If the requester's ids are required, the claims must have them."""
        if self.rules.required:
            self.check_claims(view, ev)
        ids = self.ids(view)
        path = next((each for each, _ in ids.values()), (*view.spec_path, *USER))
        unchanged = view.old is not None and values_of(self.ids(view.old)) == values_of(ids)
        if ids and not self.choose_ids(view):
            return
        self.rules.check_value(ev, path, self.source(view, ev, ids), unchanged=unchanged)

    def read(self, view: PodView, ev: Evaluation) -> Iterator[FieldValue]:
        """Yield the source of the pod's ids, at the first id that it sets.

        The source "image" is reported only if a policy names the field.
        """
        ids, rules = self.ids(view), self.rules
        path = next((each for each, _ in ids.values()), (*view.spec_path, "securityContext"))
        if ids:
            yield FieldValue(path, self.source(view, ev), derived=True)
        elif rules.default or rules.final or rules.prohibitions or rules.required:
            note = "the pod has no ids"
            yield FieldValue(path, self.source(view, ev), note=note, origin=COMPUTED)
        else:
            yield FieldValue(path, None)

    def current(self, view: PodView, ev: Evaluation) -> Any:
        """Return the source of the ids, None if none are set, so that the image decides."""
        source = self.source(view, ev)
        return None if source == IMAGE else source


def values_of(ids: Mapping[Id, tuple[Path, Any]]) -> dict[Id, Any]:
    """Return ids without their paths, which change when containers move."""
    return {key: value for key, (_, value) in ids.items()}


class IdentityHandler(PodHandler):
    """The source of user and group ids."""

    name = IDENTITY

    def compile(self, source: FieldSource) -> IdentityField:
        """The field, which writes ids where the kind takes them."""
        return IdentityField(
            source.row,
            source.leaf,
            source.config,
            source.effective.get("security.runAsUid"),
            source.effective.get("security.runAsGid"),
            at_pod=source.definition.profile.pod_security_context,
        )

    def pod_paths(self, row: Field) -> Sequence[Path]:
        """Where a pod template has the field."""
        return [("spec", *USER)]
