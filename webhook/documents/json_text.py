"""JSON that orjson refuses to read although the API server serves it."""

from __future__ import annotations

import re

# The last backslash of an odd number of them begins an escape.
SURROGATES = re.compile(
    rb"(?<!\\)((?:\\\\)*+)\\u"
    rb"(?:([dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})|[dD][89a-fA-F][0-9a-fA-F]{2})"
)


def replace_no_characters(text: bytes) -> bytes:
    """Return JSON with U+FFFD for what is no character: invalid UTF-8 and halves of surrogate pairs.

    Go reads both in this way. Kubernetes keeps opaque parameters, and revisions of controllers, as
    the bytes that their author sent.
    """
    valid = text.decode(errors="replace").encode()
    return SURROGATES.sub(lambda found: found[0] if found[2] else found[1] + rb"\ufffd", valid)
