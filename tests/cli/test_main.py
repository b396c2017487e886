"""The entry point: a fault of our own is two lines, never a traceback."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import podgate
from webhook.cases.run_offline import Verdict, evaluate_manifest
from webhook.cli import apply, explain, main


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


def evaluate_all_but_one(raw: Any, *others: Any) -> Verdict:
    """The verdict, but for an object named `odd`, which podgate cannot bear."""
    if raw["metadata"]["name"] == "odd":
        broken()
    return evaluate_manifest(raw, *others)


@pytest.mark.parametrize(
    ("command", "output"),
    [("apply", "yaml"), ("apply", "json"), ("apply", "text"), ("explain", "text")],
)
def test_a_fault_with_one_object_leaves_the_others_their_output(
    command: str, output: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("first", "odd", "last")
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {{name: {}}}\nspec: {{containers: [{{name: a, image: a}}]}}\n"
    file = tmp_path / "pods.yaml"
    file.write_text("---\n".join(pod.format(name) for name in names))
    for module in (apply, explain):
        monkeypatch.setattr(module, "evaluate_manifest", evaluate_all_but_one)
    result = podgate(command, "-o", output, str(file))
    assert result.exit_code == 70
    # YAML may go on to kubectl apply, so that half of it is printed only where that is asked for.
    printed = [output != "yaml" and name != "odd" for name in names]
    assert [name in result.stdout for name in names] == printed
    if output == "yaml":
        asked = podgate(command, "--partial", str(file))
        assert [name in asked.stdout for name in names] == [True, False, True]
    assert f"error: {file}#2: podgate has a fault: KeyError at test_main.py" in result.stderr
    assert "nobody may see" not in result.stderr
