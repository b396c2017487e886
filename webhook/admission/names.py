"""Checks names as Kubernetes does: no API server sends a review with any other name."""

from __future__ import annotations

import re
from functools import lru_cache

from webhook.policy.object_names import LABEL, LONGEST, SUBDOMAIN

LABEL_NAME = re.compile(LABEL)
KIND = re.compile(r"[A-Za-z]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?")
UID = re.compile(r"[0-9A-Za-z-]{1,64}")


def is_label(text: str) -> bool:
    """Return whether a text may be a namespace, a version, a resource or a subresource."""
    return LABEL_NAME.fullmatch(text) is not None


def is_group(text: str) -> bool:
    """Return whether a text may be an API group. The core group is empty."""
    return not text or (len(text) <= LONGEST and SUBDOMAIN.fullmatch(text) is not None)


def is_kind(text: str) -> bool:
    """Return whether a text may be a kind."""
    return KIND.fullmatch(text) is not None


def is_type(group: str, version: str, name: str, sort: str) -> bool:
    """Return whether the texts may be the group, version and kind, or resource, of a type."""
    # Long texts are not cached.
    return len(group) + len(version) + len(name) <= 2 * LONGEST and is_known_type(
        group, version, name, sort
    )


@lru_cache(maxsize=512)
def is_known_type(group: str, version: str, name: str, sort: str) -> bool:
    """Return the same from a cache: every review calls it twice, for few types."""
    may_be = is_kind if sort == "kind" else is_label
    return is_group(group) and is_label(version) and may_be(name)


def is_uid(text: str) -> bool:
    """Return whether a text may be the uid of a review, which is echoed and logged."""
    return UID.fullmatch(text) is not None


def is_name(text: str) -> bool:
    """Return whether an API path may end with the text. Kinds have further rules."""
    return text not in (".", "..") and "/" not in text and "%" not in text and text.isprintable()
