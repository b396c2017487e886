"""What Kubernetes takes as a name: no API server sends a review with any other."""

from __future__ import annotations

import re
from functools import lru_cache

from webhook.policy.object_names import LABEL, LONGEST, SUBDOMAIN

LABEL_NAME = re.compile(LABEL)
KIND = re.compile(r"[A-Za-z]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?")
UID = re.compile(r"[0-9A-Za-z-]{1,64}")


def is_label(text: str) -> bool:
    """Whether it may be a namespace, a version, a resource or a subresource."""
    return LABEL_NAME.fullmatch(text) is not None


def is_group(text: str) -> bool:
    """Whether it may be a group of the API; the core group is empty."""
    return not text or (len(text) <= LONGEST and SUBDOMAIN.fullmatch(text) is not None)


def is_kind(text: str) -> bool:
    """Whether it may be a kind."""
    return KIND.fullmatch(text) is not None


def is_type(group: str, version: str, name: str, sort: str) -> bool:
    """Whether they may be the group, version and kind, or resource, of a type."""
    # Nothing long is remembered.
    return len(group) + len(version) + len(name) <= 2 * LONGEST and is_known_type(
        group, version, name, sort
    )


@lru_cache(maxsize=512)
def is_known_type(group: str, version: str, name: str, sort: str) -> bool:
    """The same, remembered: every review asks it twice, about few types."""
    may_be = is_kind if sort == "kind" else is_label
    return is_group(group) and is_label(version) and may_be(name)


def is_uid(text: str) -> bool:
    """Whether it may be the uid of a review, which is echoed and logged."""
    return UID.fullmatch(text) is not None


def is_name(text: str) -> bool:
    """Whether a path of the API may end with it: kinds have rules of their own beyond that."""
    return text not in (".", "..") and "/" not in text and "%" not in text and text.isprintable()
