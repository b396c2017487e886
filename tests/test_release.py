"""The release step: an image of a base that cannot change under its name, or none."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
IMAGE, BASE = "IMAGE=registry.example.com/podgate:0.1.0", "python:3.11.14-slim-bookworm"
DIGEST = "sha256:" + "0123456789abcdef" * 4


def made(*words: str) -> subprocess.CompletedProcess[str]:
    """`make image` with an engine that says what it would do."""
    command = ["make", "--no-print-directory", "image", "ENGINE=echo would", *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "base", ["", BASE, f"{BASE}@sha256:abc", f"{BASE}@{DIGEST}0", f"@{DIGEST}"]
)
def test_a_base_without_its_digest_is_refused(base: str) -> None:
    found = made(IMAGE, f"BASE={base}")
    assert found.returncode != 0
    assert "@sha256:digest" in found.stdout
    assert "would" not in found.stdout


def test_a_release_without_a_name_is_refused() -> None:
    found = made(f"BASE={BASE}@{DIGEST}")
    assert found.returncode != 0
    assert "would" not in found.stdout


def test_a_pinned_base_is_built_for_both_platforms() -> None:
    found = made(IMAGE, f"BASE={BASE}@{DIGEST}", "LOCK=requirements-image-otel.lock")
    assert found.returncode == 0, found.stderr
    (line,) = (each for each in found.stdout.splitlines() if each.startswith("would"))
    assert f"--build-arg PYTHON={BASE}@{DIGEST}" in line
    assert "--platform linux/amd64,linux/arm64" in line
    assert "--build-arg LOCK=requirements-image-otel.lock" in line
