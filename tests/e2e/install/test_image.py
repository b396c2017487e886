"""The image, as far as it can be had without a container engine."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
import urllib.request
from pathlib import Path

import pytest

from tests.e2e.install.image import Stage, build, steps
from tests.e2e.served import free_port

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Stage:
    alone = shutil.which("unshare") and shutil.which("setpriv") and os.geteuid() == 0
    if not alone:
        pytest.skip("the steps need unshare, setpriv and root")
    return build(tmp_path_factory.mktemp("image"))


def output(image: Stage, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = image.started(arguments)
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_it_ends_as_nobody_in_particular() -> None:
    found = dict(steps())
    assert found["USER"] == "65532:65532"
    assert found["ENTRYPOINT"] == '["podgate"]'


def test_it_holds_the_program_and_nothing_to_build_with(image: Stage) -> None:
    assert [each.name for each in image.opt.iterdir()] == ["podgate"]
    (packages,) = image.opt.glob("podgate/lib/python3*/site-packages")
    names = {each.name.partition("-")[0] for each in packages.glob("*.dist-info")}
    assert "podgate" in names
    assert not names & {"pip", "setuptools", "hatchling", "pytest", "mypy", "hypothesis"}
    size = sum(each.stat().st_size for each in image.opt.rglob("*") if each.is_file())
    print(f"{len(names)} packages, {size / 1e6:.0f} MB")
    assert size < 130e6


def test_its_commands_run_on_a_read_only_root(image: Stage) -> None:
    found = output(image, "crds", "print")
    assert found.returncode == 0, found.stderr
    assert found.stdout.count("kind: CustomResourceDefinition") == 7


def test_it_serves_on_a_read_only_root(image: Stage, tmp_path: Path) -> None:
    port = free_port()
    where = (f"--listen=127.0.0.1:{port}", "--metrics-listen=same", "--plain-http", "--workers=2")
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(image.started(["serve", *where]), stdout=log, stderr=log)
    try:
        until = time.monotonic() + 30
        ready = False
        while not ready:
            with contextlib.suppress(OSError):
                address = f"http://127.0.0.1:{port}/readyz"
                ready = urllib.request.urlopen(address, timeout=5).status == 200
            assert time.monotonic() < until, (tmp_path / "log").read_text("utf-8")
            time.sleep(0.1)
        owner = Path(f"/proc/{process.pid}/status").read_text("utf-8")
        assert "Uid:\t65532\t65532\t65532\t65532" in owner
        assert "CapBnd:\t0000000000000000" in owner
    finally:
        os.kill(process.pid, signal.SIGTERM)
        process.wait(30)


def test_it_can_be_built_to_send_traces(tmp_path: Path, image: Stage) -> None:
    traced = build(tmp_path, LOCK="requirements-image-otel.lock")
    for made, given in ((image, "podgate[otel]"), (traced, "")):
        told = output(
            made, "serve", "--plain-http", "--traces=http://127.0.0.1:1", "--listen=nowhere:1"
        )
        assert told.returncode == (2 if given else 1)
        assert given in told.stderr
