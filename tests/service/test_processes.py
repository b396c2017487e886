"""What a Pod answers on its port for metrics, whatever it is."""

from __future__ import annotations

import http.client
import io
from unittest import mock

import pytest

from webhook.service.processes import WorkerReports, ask

NOTHING = WorkerReports(({"in_force": []},), frozenset({""}))


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"1", b"null", b"<html>", b'{"workers": 1}', b'{"workers": [1]}', b"[" * 3000],
)
def test_a_pod_with_another_answer_knows_nothing(body: bytes) -> None:
    with mock.patch("urllib.request.urlopen", return_value=io.BytesIO(body)):
        assert ask("http://127.0.0.1:1/statusz") == NOTHING


def test_a_pod_that_hangs_up_knows_nothing() -> None:
    error = http.client.IncompleteRead(b"{")
    with mock.patch("urllib.request.urlopen", side_effect=error):
        assert ask("http://127.0.0.1:1/statusz") == NOTHING


def test_workers_are_those_that_name_what_is_in_force() -> None:
    body = b'{"workers": [{"in_force": [], "x": 1}, {"in_force": 1}], "leaf": "ab"}'
    with mock.patch("urllib.request.urlopen", return_value=io.BytesIO(body)):
        assert ask("http://127.0.0.1:1/statusz") == WorkerReports(
            ({"in_force": [], "x": 1},), frozenset({"ab"})
        )
