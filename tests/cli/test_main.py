"""The entry point: a fault of our own is two lines, never a traceback."""

from __future__ import annotations

import pytest

from webhook.cli import main


def broken() -> None:
    raise KeyError("a value that nobody may see")


def test_a_fault_of_our_own_is_told_in_two_lines(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(main, "app", broken)
    monkeypatch.delenv("PODGATE_TRACEBACK", raising=False)
    with pytest.raises(SystemExit) as left:
        main.main()
    told = capsys.readouterr().err
    assert left.value.code == 70
    assert "KeyError at test_main.py" in told
    assert "nobody may see" not in told
    assert len(told.splitlines()) == 2


def test_the_traceback_is_there_for_those_who_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(main, "app", broken)
    monkeypatch.setenv("PODGATE_TRACEBACK", "1")
    with pytest.raises(KeyError):
        main.main()
