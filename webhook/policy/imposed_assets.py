"""Reads `imposedAssets`: a list of asset ids, or one list per role or component."""

from __future__ import annotations

from typing import Any

from webhook.objects.path import Path
from webhook.policy import values
from webhook.policy.body import Draft
from webhook.policy.default_from import ROLE_WORDS
from webhook.policy.names import Found, closest, respelled, unknown
from webhook.policy.policy import EVERYWHERE, ROLES, component_level, role_level
from webhook.policy.report import shown

COMPONENTS = "components"


def read_imposed(draft: Draft, found: Found) -> None:
    """Note the imposed assets of every level."""
    report = draft.report
    if not isinstance(found.raw, dict):
        read_ids(draft, EVERYWHERE, found.raw, found.path)
        return
    for key, raw in found.raw.items():
        here = (*found.path, key)
        role = ROLE_WORDS.get(key.lower(), "") if isinstance(key, str) else ""
        if role:
            if role != key:
                respelled(report, here, key, role)
            draft.places.setdefault(("level", role_level(role), "", ""), here)
            read_ids(draft, role_level(role), raw, here)
        elif key == COMPONENTS:
            for name, ids in report.mapping(raw, here).items():
                read_ids(draft, component_level(str(name)), ids, (*here, name))
        else:
            known = (*ROLES, COMPONENTS)
            hint = f"write a list, or {', '.join(known)}"
            unknown(report, found.path, key, closest(str(key), known), hint)


def read_ids(draft: Draft, level: str, raw: Any, path: Path) -> None:
    """Note the ids of one list."""
    report = draft.report
    ids: dict[str, None] = {}
    for index, each in enumerate(report.sequence(raw, path, "a list of asset ids")):
        here = (*path, index)
        try:
            identity = values.plain_text(each, report.document.text(here))
        except ValueError:
            report.wrong_type(here, each, "the id of an asset")
            continue
        if identity in ids:
            report.warn(here, "imposed-twice", shown(identity), "remove it")
        ids[identity] = None
        draft.places.setdefault(("imposed", level, "", identity), here)
    if ids:
        draft.imposed[level] = tuple(ids)
