"""podgate schema: what is printed."""

from __future__ import annotations

import json

import pytest

from tests.cli.running import podgate
from tests.tools.test_schema import KINDS


@pytest.mark.parametrize("kind", KINDS)
def test_one_kind(kind: str) -> None:
    result = podgate("schema", kind)
    assert result.exit_code == 0
    body = json.loads(result.stdout)
    assert body["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert body["title"] == kind


def test_all_kinds_in_one_schema() -> None:
    body = json.loads(podgate("schema").stdout)
    assert len(body["oneOf"]) == len(KINDS)


def test_an_unknown_kind_is_refused_with_the_known_ones() -> None:
    result = podgate("schema", "Pod")
    assert result.exit_code == 2
    assert "WorkloadPolicy" in result.stderr
    assert not result.stdout
