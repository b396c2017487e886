"""The examples of docs/interfaces-library.md run as they are printed."""

from __future__ import annotations

import re
from typing import Any

from tests.corpus import ROOT


def test_the_examples_of_the_page_run() -> None:
    page = (ROOT / "docs" / "interfaces-library.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(blocks) == 3
    names: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, "interfaces-library.md", "exec"), names)
