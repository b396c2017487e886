"""What is no character becomes U+FFFD, and nothing else changes."""

from __future__ import annotations

import json
import random

import orjson

from webhook.documents.json_text import replace_no_characters

PARTS = ("\\ud800", "\\udc00", "\\uDBFF", "\\ud83d\\ude00", "\\n", "\\\\", "\\u0041", "a", "ud800")


def test_escapes_are_read_as_by_another_reader() -> None:
    """Python's own reader keeps halves of pairs."""
    chosen = random.Random(1)
    for _ in range(20_000):
        text = "".join(chosen.choices(PARTS, k=chosen.randint(0, 8)))
        expected = "".join(
            "\ufffd" if 0xD800 <= ord(each) <= 0xDFFF else each for each in json.loads(f'"{text}"')
        )
        assert orjson.loads(replace_no_characters(f'"{text}"'.encode())) == expected
