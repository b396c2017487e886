"""Reads the ids that the requester's identity provider set: claims in userInfo.extra."""

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
    """The ids of a user by name: one number for uid and gid, several for groups.

    `wrong` contains the names whose claim is missing or not a number, with the key of the claim.
    """

    uid: int | None = None
    gid: int | None = None
    groups: tuple[int, ...] | None = None
    wrong: tuple[tuple[str, str], ...] = ()


def user_ids(extra: Mapping[str, tuple[str, ...]], keys: Mapping[str, str]) -> UserIds:
    """Return the ids that the configured keys of userInfo.extra give. A uid is always required."""
    found: dict[str, tuple[int, ...]] = {}
    wrong: list[tuple[str, str]] = [] if keys.get("uid") else [("uid", "")]
    for name in IDS:
        key = keys.get(name)
        if not key:
            continue
        numbers = read_numbers(extra.get(key, ()), several=name == "groups")
        if numbers is None:
            wrong.append((name, key))
        else:
            found[name] = numbers
    uid, gid = found.get("uid"), found.get("gid")
    return UserIds(
        uid[0] if uid else None, gid[0] if gid else None, found.get("groups"), tuple(wrong)
    )


def read_numbers(values: tuple[str, ...], *, several: bool) -> tuple[int, ...] | None:
    """Return the ids in the values of a claim, sorted. None if there are none, for text, or if more than
    one is given without `several`.
    """
    texts = [text for value in values for text in SEPARATORS.split(value.strip()) if text]
    if not texts or (len(texts) > 1 and not several):
        return None
    if not all(NUMBER.fullmatch(text) and int(text) <= LARGEST_ID for text in texts):
        return None
    return tuple(sorted({int(text) for text in texts}))
