"""security.uidGidSource: where the ids of a pod come from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from webhook.evaluation.installation import Vocabulary
from webhook.evaluation.requester_ids import UserIds, user_ids
from webhook.evaluation.state import Evaluation
from webhook.fields.scalar import ScalarRules, reader, rules_of
from webhook.objects.path import Path
from webhook.pods.pod_view import PodView
from webhook.policy.combine import Leaf
from webhook.policy.row import Field

USER: Path = ("securityContext", "runAsUser")
GROUP: Path = ("securityContext", "runAsGroup")
GROUPS: Path = ("securityContext", "supplementalGroups")
READERS = {USER: reader(USER), GROUP: reader(GROUP), GROUPS: reader(GROUPS)}
PLACES: dict[str, Path] = {"uid": USER, "gid": GROUP, "groups": GROUPS}
IMAGE, TOKEN, CUSTOM = "fromTheImage", "fromIdpToken", "custom"

Id = tuple[str, str, Path]
"""An id of a pod: the list and name of its container, empty for the pod's own, and its place."""


class IdentityField:
    """The source of user and group ids: told by the ids themselves, written from claims."""

    __slots__ = ("at_pod", "defaults", "field", "has_uid", "keys", "rules")

    def __init__(
        self,
        field: Field,
        leaf: Leaf,
        words: Vocabulary,
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
        self.field = field
        self.rules: ScalarRules = rules_of(field, leaf)
        self.keys = words.identity_claims
        self.at_pod = at_pod
        self.has_uid = uid is not None and (
            uid.default is not None or any(each.rule == "defaultFrom" for each in uid.constraints)
        )

    def ids(self, view: PodView) -> dict[Id, tuple[Path, Any]]:
        """Every user and group id that the pod states, with its place."""
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
        """What the requester's claims say."""
        return user_ids(ev.request.extra, self.keys)

    def source(
        self, view: PodView, ev: Evaluation, known: Mapping[Id, tuple[Path, Any]] | None = None
    ) -> str:
        """Where the ids come from, `known` or looked up; those that claims give are theirs."""
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

    def chosen(self, view: PodView) -> dict[Id, tuple[Path, Any]]:
        """The ids that are not those which the same policies give by default.

        Where ids of the token are the default, no other default stands in for them.
        """
        default = self.rules.default
        if default is not None and default.value == TOKEN:
            return self.ids(view)
        return {
            key: (path, value)
            for key, (path, value) in self.ids(view).items()
            if key[2] not in self.defaults or value != self.defaults[key[2]]
        }

    def intent(self, view: PodView, ev: Evaluation) -> None:
        """Prohibitions on every id that is chosen: it says where ids come from."""
        if not self.rules.prohibitions:
            return
        self.judge_claims(view, ev)
        ids = self.chosen(view)
        old = self.ids(view.old) if view.old is not None else {}
        source = self.source(view, ev) if ids else IMAGE
        for key, (path, value) in ids.items():
            held = old.get(key)
            before = (held[0], source) if held is not None and held[1] == value else None
            self.rules.judge_intent(ev, path, source, before, None)

    @property
    def demanded(self) -> bool:
        """Whether ids of the token are a must: nothing else may be, or a value is required."""
        locked = any(each.rule == "canEdit" for each in self.rules.prohibitions)
        return locked or bool(self.rules.required)

    def judge_claims(self, view: PodView, ev: Evaluation) -> None:
        """Refuse a pod without ids whose requester has no claims to take them from."""
        default = self.rules.default
        if default is None or default.value != TOKEN or not self.demanded or view.windows:
            return
        if self.ids(view) or (view.old is not None and self.ids(view.old)):
            return
        for word, key in self.claims(ev).wrong:
            ev.violate(
                self.field.path,
                (*view.spec_path, *PLACES[word]),
                None,
                word,
                None,
                reason="missing-claim",
                source=default.source,
                key=key or word,
            )

    def fill(self, view: PodView, ev: Evaluation) -> None:
        """Write the requester's ids where nobody said any; other sources write nothing."""
        default = self.rules.default
        if default is None or default.value == IMAGE:
            return
        if default.value == CUSTOM:
            if not self.has_uid and not any(at == USER for _, _, at in self.ids(view)):
                ev.warn("image-decides", self.field.path, (*view.spec_path, *USER))
            return
        if view.windows:
            ev.warn("forbidden-default", self.field.path, view.spec_path, "Windows")
        elif self.source(view, ev) != CUSTOM:
            self.fill_ids(view, ev)

    def fill_ids(self, view: PodView, ev: Evaluation) -> None:
        """Write every id that is unset: as it was before the update, else as the claims say."""
        why, claims = "kept", UserIds()
        kept = self.kept(view, ev)
        if not kept:
            why, claims = "default", self.claims(ev)
            if claims.wrong:
                keys = [key or word for word, key in claims.wrong]
                if not self.demanded:
                    ev.warn("missing-claim", self.field.path, view.spec_path, *keys)
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
                ev.warn("forbidden-default", self.field.path, (*view.spec_path, *at), "groups")

    def fill_containers(
        self,
        view: PodView,
        ev: Evaluation,
        at: Path,
        kept: Mapping[Id, Any],
        value: Any,
        why: str,
    ) -> None:
        """Write one id into every container that lacks it, of kinds that take it only there."""
        for each in view.everyone:
            if each.list != "ephemeralContainers" and READERS[at](each.body) is None:
                wanted = kept.get((each.list, each.name, at), value)
                self.put(ev, (*each.path, *at), wanted, why)

    def kept(self, view: PodView, ev: Evaluation) -> dict[Id, Any]:
        """The ids before the update that no user is shown to have written."""
        if view.old is None:
            return {}
        stated = self.ids(view.old)
        groups = READERS[GROUPS](view.old.spec)
        if stated and groups is not None:
            stated["", "", GROUPS] = ((*view.old.spec_path, *GROUPS), groups)
        return {
            key: value for key, (path, value) in stated.items() if not ev.intent.shown_before(path)
        }

    def put(self, ev: Evaluation, path: Path, value: Any, why: str) -> None:
        """Write one id where it may land."""
        default = self.rules.default
        if value is not None and default is not None and ev.can_write(path):
            ev.write(self.field.path, path, value, why, default.source)

    def final(self, view: PodView, ev: Evaluation) -> None:
        """Options on the source; where the requester's ids are required, claims must give them."""
        if self.rules.required:
            self.judge_claims(view, ev)
        ids = self.ids(view)
        path = next((each for each, _ in ids.values()), (*view.spec_path, *USER))
        unchanged = view.old is not None and values_of(self.ids(view.old)) == values_of(ids)
        if ids and not self.chosen(view):
            return
        self.rules.judge_value(ev, path, self.source(view, ev, ids), unchanged=unchanged)

    def current(self, view: PodView, ev: Evaluation) -> Any:
        """Where the ids come from; None while nobody says any, which leaves it to the image."""
        source = self.source(view, ev)
        return None if source == IMAGE else source


def values_of(ids: Mapping[Id, tuple[Path, Any]]) -> dict[Id, Any]:
    """Ids without their places, which move with the containers."""
    return {key: value for key, (_, value) in ids.items()}
