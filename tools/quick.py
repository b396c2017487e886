"""`make quick`: lint, types, and the tests of what changed, side by side, in less than a minute.

What changed is what git says against the merge base with main, and what is not committed. A changed
module is tested by the tests of its package and those that import it; a changed kind, case or part of
the decision by golden cases. After the time below no test is begun; the last lines say what was left out.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

from tests.golden_cases import CaseName, all_names
from tests.part import Part
from tests.side_by_side import BIN, SideBySide

ROOT = Path(__file__).parent.parent
SECONDS = 40.0  # after which no test is begun; the last ones and the report take some more
EACH_KIND = 1  # golden cases of each kind when something below all kinds changed
GOLDEN = "tests/test_golden.py"
PAGES = (
    *("tests/test_pages.py", "tests/test_sources.py", "tests/test_threats.py"),
    *("tests/test_generated.py", "tests/cli/test_readme.py"),
)
DECIDING = (
    *("objects", "documents", "jq", "policy", "interface", "pods", "evaluation", "fields"),
    *("catalog", "decision", "admission", "cases"),
)


def git(*arguments: str) -> list[str]:
    """The lines that git prints; none where it fails."""
    done = subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.stdout.splitlines()


def find_changed() -> list[str]:
    """The files that differ from the merge base with main, new ones too, as paths from the root.

    On main itself it is the one of the repository that it was cloned from.
    """
    main = "origin/main" if git("branch", "--show-current") == ["main"] else "main"
    base = [*git("merge-base", "HEAD", main), "HEAD"][0]
    new = git("ls-files", "--others", "--exclude-standard")
    return sorted({*git("diff", "--name-only", "--no-renames", base), *new})


@cache
def texts() -> dict[str, str]:
    """Each file of tests that needs no cluster, with its text."""
    files = (each.relative_to(ROOT).as_posix() for each in sorted((ROOT / "tests").rglob("*.py")))
    return {each: (ROOT / each).read_text("utf-8") for each in files if "/e2e/" not in each}


def find_importers(module: str) -> set[str]:
    """The test files that import a module, or a module of tests that does."""
    package, _, name = module.rpartition(".")
    form = re.compile(
        rf"^\s*(?:from {re.escape(module)} |import {re.escape(module)}\b"
        rf"|from {re.escape(package)} import [^\n]*\b{name}\b)",
        re.MULTILINE,
    )
    return {file for file, text in texts().items() if form.search(text)}


def is_test(file: str) -> bool:
    """Whether a file has tests that do not take minutes, and is not what tests share."""
    text = texts().get(file, "")
    return Path(file).name.startswith("test_") and "pytestmark = pytest.mark.long" not in text


def find_tests(file: str) -> tuple[set[str], set[str]]:
    """The files of tests for a changed file: those about it, and others that import it."""
    path = Path(file)
    if file.startswith("tests/") and "/e2e/" not in file:
        about = {file} if is_test(file) and (ROOT / file).exists() else set()
        return about, find_importers(".".join(path.with_suffix("").parts)) - about
    if path.suffix != ".py" or path.parts[0] not in ("webhook", "certs", "tools"):
        return (set(PAGES), set()) if path.suffix in (".md", ".yaml", ".json") else (set(), set())
    package = path.parts[1] if path.parts[0] == "webhook" else path.parts[0]
    importers = find_importers(".".join(path.with_suffix("").parts).removesuffix(".__init__"))
    named = {each for each in texts() if Path(each).name == f"test_{path.stem}.py"}
    folder = {each for each in texts() if each.startswith(f"tests/{package}/")}
    about = (importers & folder) | (named & (importers | folder)) or folder
    return about, (importers | folder) - about


def find_cases(changed: Iterable[str]) -> list[CaseName]:
    """The golden cases that changed or whose kinds did; some of every kind for deciding code."""
    folders, kinds, every = set(), set(), False
    for file in changed:
        parts = Path(file).parts
        if parts[:2] == ("tests", "golden"):
            folders.add("/".join(parts[2:4]))
        elif parts[:2] == ("policies", "workloads"):
            kinds.add(Path(file).name.partition(".")[0])
        every |= parts[0] == "webhook" and len(parts) > 2 and parts[1] in DECIDING
    count = Counter[str]()
    wanted = []
    for each in all_names():
        count[each.file.parts[-3]] += 1
        first = every and count[each.file.parts[-3]] <= EACH_KIND
        if first or "/".join(each.file.parts[-3:-1]) in folders or kinds & kinds_in(each.file):
            wanted.append(each)
    return wanted


@cache
def kinds_in(file: Path) -> frozenset[str]:
    """The kinds that a case names, in lower case."""
    named = re.findall(r"^ *-? *kind: *(\w+)", file.read_text("utf-8"), re.MULTILINE)
    return frozenset(each.lower() for each in named)


def choose(changed: Sequence[str]) -> tuple[list[str], list[str]]:
    """What pytest is to run: golden cases and tests about changed files; others that import them."""
    found = [find_tests(file) for file in changed]
    about = {each for first, _ in found for each in first if is_test(each)} - {GOLDEN}
    others = {each for _, second in found for each in second if is_test(each)} - about - {GOLDEN}
    cases = [f"{GOLDEN}::test_case[{each}]" for each in find_cases(changed)]
    return [*sorted(about), *cases], sorted(others)


def describe(
    changed: Sequence[str], chosen: Sequence[str], seconds: float, counts: Counter[str]
) -> str:
    """One line: what was chosen, how much of it was begun, and what was left out."""
    files = [each.removeprefix("tests/") for each in chosen if GOLDEN not in each]
    more = f" and {len(files) - 6} more" if len(files) > 6 else ""
    tests = f"tests of {', '.join(files[:6])}{more}, " if files else ""
    begun, late = counts.total() - counts["skipped"], counts["skipped"]
    unfinished = f"{late} of the chosen ones for want of time, " if late else ""
    return (
        f"{len(changed)} files changed: lint, types, contracts, {tests}"
        f"{len(chosen) - len(files)} golden cases; {begun} tests ran in {seconds:.0f} s; left out: "
        f"{unfinished}all other tests (make check), long ones and those on a cluster (make test)"
    )


def main() -> int:
    """Run it; 1 if anything failed."""
    started = time.monotonic()
    changed = find_changed()
    about, others = choose(changed)
    lanes = [
        [
            Part("ruff check", (str(BIN / "ruff"), "check", "-q", ".")),
            Part("ruff format", (str(BIN / "ruff"), "format", "-q", "--check", ".")),
            Part("mypy", (str(BIN / "mypy"),)),
            Part("import contracts", (str(BIN / "lint-imports"),)),
        ]
    ]
    if about or others:
        flags = ("-q", "-n", "auto", "--dist", "worksteal", "-m", "not e2e and not long")
        command = (str(BIN / "pytest"), *flags, *about, *others)
        lanes.append([Part("tests of what changed", command)])
    os.environ["TESTS_UNTIL"] = str(time.time() + SECONDS)
    with tempfile.TemporaryDirectory(prefix="podgate-quick-") as folder:
        SideBySide(Path(folder)).beside(*lanes)
        counts = sum((each.counts() for lane in lanes for each in lane), Counter[str]())
    print(describe(changed, [*about, *others], time.monotonic() - started, counts))
    return int(any(part.failed for lane in lanes for part in lane))


if __name__ == "__main__":
    sys.exit(main())
