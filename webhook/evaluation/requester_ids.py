"""Ids that the requester's identity provider gave: claims in userInfo.extra of the request."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

LARGEST_ID = 2**31 - 1
NUMBER = re.compile(r"[0-9]{1,10}")
SEPARATORS = re.compile(r"[,;\s]+")
IDS = ("uid", "gid", "groups")


@dataclass(frozen=True, slots=True)
class UserIds:
    """The ids of a user by word: one number for uid and gid, several for groups.

    `wrong` names the words whose claim is missing or no number, with the key it was looked for at.
    """

    uid: int | None = None
    gid: int | None = None
    groups: tuple[int, ...] | None = None
    wrong: tuple[tuple[str, str], ...] = ()


def user_ids(extra: Mapping[str, tuple[str, ...]], keys: Mapping[str, str]) -> UserIds:
    """The ids that the configured keys of userInfo.extra give; a uid is always needed."""
    found: dict[str, tuple[int, ...]] = {}
    wrong: list[tuple[str, str]] = [] if keys.get("uid") else [("uid", "")]
    for word in IDS:
        key = keys.get(word)
        if not key:
            continue
        numbers = read_numbers(extra.get(key, ()), several=word == "groups")
        if numbers is None:
            wrong.append((word, key))
        else:
            found[word] = numbers
    uid, gid = found.get("uid"), found.get("gid")
    return UserIds(
        uid[0] if uid else None, gid[0] if gid else None, found.get("groups"), tuple(wrong)
    )


def read_numbers(values: tuple[str, ...], *, several: bool) -> tuple[int, ...] | None:
    """The ids in the values of a claim, sorted; None for none, for text, for several of one."""
    parts = [part for value in values for part in SEPARATORS.split(value.strip()) if part]
    if not parts or (len(parts) > 1 and not several):
        return None
    if not all(NUMBER.fullmatch(part) and int(part) <= LARGEST_ID for part in parts):
        return None
    return tuple(sorted({int(part) for part in parts}))
