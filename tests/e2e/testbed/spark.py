"""Finds Spark's own client, which its operator calls, and a Java to run it."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from tests.e2e.testbed import cache
from tests.e2e.testbed.missing import MissingTestbed

REQUIREMENTS = cache.HERE / "requirements-spark.txt"
JAVA = (17, 21)
HOW_TO_GET_JAVA = (
    "Install one, on Debian `apt-get install openjdk-17-jre-headless`, or set JAVA_HOME."
)
PARTS = re.compile(r"[^/]+/deps/((?:bin|jars)/.+)")


def java_home() -> Path:
    """Return the home of a Java that Spark runs under: `$JAVA_HOME`, else that of java on PATH.

    Raises MissingTestbed.
    """
    named = os.environ.get("JAVA_HOME")
    command = Path(named) / "bin" / "java" if named else Path(shutil.which("java") or "java")
    try:
        told = subprocess.run([command, "-version"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise MissingTestbed(
            f"Spark needs Java, and {command} is none: {error}.", HOW_TO_GET_JAVA
        ) from None
    found = re.search(r'version "(\d+)', told.stderr)
    if found is None or int(found[1]) not in JAVA:
        wanted = " or ".join(map(str, JAVA))
        raise MissingTestbed(f"Spark needs Java {wanted}, and {command} is not.", HOW_TO_GET_JAVA)
    return command.resolve().parent.parent


def home() -> Path:
    """Return the folder that Spark calls its home, with its programs and archives.

    Fetched from PyPI the first time. Raises MissingTestbed.
    """
    pinned = re.search(r"^pyspark==(\S+)", REQUIREMENTS.read_text("utf-8"), re.MULTILINE)
    if pinned is None:
        raise ValueError(f"{REQUIREMENTS} pins no pyspark")
    folder = cache.root() / "testbed" / "spark"
    target = folder / pinned[1]
    with cache.locked(folder):
        if not target.exists():
            with cache.step(f"fetching Spark {pinned[1]} from PyPI, 317 MB"):
                _fetch(target)
    return target


def _fetch(target: Path) -> None:
    partial = target.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        command = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "--quiet",
            "--no-deps",
            "--no-binary=:all:",
        ]
        wanted = ["--require-hashes", "-r", str(REQUIREMENTS), "--dest", folder]
        done = subprocess.run([*command, *wanted], capture_output=True, text=True, check=False)
        if done.returncode:
            said = done.stderr.strip()[-500:]
            raise MissingTestbed(
                f"PyPI gives no Spark:\n{said}", "Allow pip to reach a package index."
            )
        (archive,) = Path(folder).glob("*.tar.gz")
        _unpack(archive, partial)
    partial.rename(target)


def _unpack(archive: Path, target: Path) -> None:
    """The programs and archives of a source distribution, without what is for Python."""
    with tarfile.open(archive) as members:
        for member in members:
            if member.isfile() and (part := PARTS.fullmatch(member.name)):
                member.name = part[1]
                members.extract(member, target, filter="data")
