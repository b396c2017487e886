"""Generated files are what the tables say."""

from __future__ import annotations

import pytest

from tests.generated import FILES, ROOT


@pytest.mark.parametrize("name", FILES)
def test_a_generated_file_is_up_to_date(name: str) -> None:
    assert (ROOT / name).read_text() == FILES[name](), "run make docs"
