"""Pages refer to files and headings that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.generated import ROOT

PAGES = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md")))
LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]+))?\)")
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", FENCED.sub("", page.read_text("utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    lost = []
    for target, anchor in LINK.findall(FENCED.sub("", page.read_text("utf-8"))):
        if "://" in target:
            continue
        file = (page.parent / target) if target else page
        if not file.exists() or (anchor and anchor not in anchors(file)):
            lost.append(f"{target}#{anchor}" if anchor else target)
    assert lost == []
