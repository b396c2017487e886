"""docs/sources.md: every test that it names exists, and examples load as the sources print them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from webhook.decision.messages import problem_text
from webhook.sources.load import Sources, load

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "sources.md").read_text("utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.splitlines()
    if re.match(r"\| \d{3}\.\d+ \|", line)
]
NAMED = re.compile(r"`(tests/[^`]+)`")
PENDING, DIFFERENT = "Later: ", "Difference: "

# The shapes of the examples in the policy reference, with values of our own.
LOADS = {
    "probes": "defaults: {probes: {readiness: {initialDelaySeconds: 5}}}",
    "claims": """
        defaults:
          storage:
            pvc:
              instances:
                - claimName: home
                  existingPvc: true
                  path: /home/me
                  readOnly: false
                  claimInfo: {accessModes: {readWriteMany: true}}
        """,
    "nfs": """
        defaults:
          storage:
            nfs: {instances: [{path: /exports/a, readOnly: true, server: files, mountPath: /a}]}
        rules: {storage: {nfs: {instances: {canAdd: false}}}}
        """,
    "scratch": """
        defaults:
          storage:
            emptyDirVolume:
              instances: [{name: a, path: /scratch, medium: "", sizeLimit: 2G, exclude: false}]
        """,
    "itemized": """
        defaults:
          compute:
            extendedResources:
              instances: [{resource: example.com/nic, quantity: 2}]
              attributes: {quantity: 1}
        rules:
          compute:
            extendedResources:
              instances: {locked: [example.com/nic]}
              attributes: {quantity: {required: true}}
        """,
    "canAdd": "rules: {storage: {hostPath: {instances: {canAdd: false}}}}",
    "canEdit": "rules: {imagePullPolicy: {canEdit: false}}",
    "required": "rules: {image: {required: true}}",
    "min": "rules: {compute: {gpuDevicesRequest: {min: 2}}}",
    "max": "rules: {compute: {gpuMemoryRequest: {max: 4G}}}",
    "step": "rules: {compute: {cpuCoreRequest: {min: 2, max: 8, step: 3}}}",
    "options": "rules: {image: {options: [{value: a}, {value: b}]}}",
    "defaultFrom": """
        rules:
          compute: {cpuCoreRequest: {defaultFrom: {field: compute.cpuCoreLimit, factor: 0.25}}}
        """,
    "rules": "rules: {compute: {gpuDevicesRequest: {max: 4}}, security: {runAsUid: {min: 1000}}}",
    "defaults": "defaults: {imagePullPolicy: Always, security: {runAsNonRoot: true, runAsUid: 7}}",
    "empty": "defaults: null\nrules: null",
}
# What loads, and is reported as a warning that names the right form.
WARNED = {
    "attributes as a list": (
        "defaults: {storage: {hostPath: {attributes: [{readOnly: true}]}}}",
        "write one map: attributes:",
    ),
    "Instances": (
        "rules: {storage: {hostPath: {Instances: {canAdd: false}}}}",
        "write instances",
    ),
    "locked without a default item": (
        "rules: {storage: {hostPath: {instances: {locked: [A]}}}}",
        "give storage.hostPath a default item A",
    ),
    "Step": ("rules: {compute: {cpuCoreRequest: {min: 1, Step: 2}}}", "write step"),
    "privileged at the root": ("rules: {privileged: {canEdit: false}}", "security.privileged"),
    "terminateAfterPreemtpion": (
        "rules: {terminateAfterPreemtpion: {required: true}}",
        "write terminateAfterPreemption",
    ),
    "gpuDeviceRequest": (
        "rules: {compute: {gpuDeviceRequest: {max: 2}}}",
        "write compute.gpuDevicesRequest",
    ),
}
# What is printed wrongly, and what is reported instead.
REFUSED = {
    "a key without its colon": (
        "defaults:\n  storage:\n    git:\n      attributes: {}\n      instances\n        - path: /a\n",
        (":5:", "write 'key: value'"),
    ),
    "a rule beside its field": (
        "rules: {security: {runAsUid: , canEdit: false}}",
        ("found canEdit; canEdit is a rule: write it in rules, below a field",),
    ),
    "a rule in a section": (
        "rules: {compute: {max: 3}}",
        ("found max; max is a rule: write it in rules, below a field",),
    ),
    "a rule at the root": (
        "rules: {required: true}",
        ("found required; required is a rule: write it in rules, below a field",),
    ),
    "sections that end in the middle": (
        "defaults:\n  imagePullPolicy: Always\n rules:\n  image: {required: true}\n",
        ("indent this line as its neighbours",),
    ),
    "a field without its section": (
        "rules: {cpuCoreRequest: {min: 1}}",
        ("did you mean compute.cpuCoreRequest?",),
    ),
    "a rule without its section and root": (
        "cpuCoreRequest: {defaultFrom: {field: compute.cpuCoreLimit, factor: 0.5}}",
        ("found cpuCoreRequest; write compute.cpuCoreRequest below rules: or below defaults:",),
    ),
    "an asset that nobody has": (
        "imposedAssets: [3b1ddc1e-0f5b-4b58-8f3c-0d2f8f6d7c11]",
        ("add the asset, or correct the id",),
    ),
    "buckets without a driver": (
        "defaults: {storage: {s3: {instances: [{bucket: b, path: /b}]}}}",
        ("PODGATE_S3_DRIVERS",),
    ),
}


def reported(text: str, folder: Path) -> tuple[bool, list[str]]:
    """Whether a policy of this body loads, and every message about it."""
    lines = text.splitlines()
    if not lines[0].strip():
        text = "\n".join(line[8:] for line in lines)
    file = folder / "policy.yaml"
    file.write_text(text, "utf-8")
    catalog, problems = load(Sources(policies=(str(file),)))
    return catalog is not None, [problem_text(each) for each in problems]


@pytest.mark.parametrize("name", LOADS)
def test_an_example_loads_as_it_is_printed(name: str, tmp_path: Path) -> None:
    assert reported(LOADS[name], tmp_path) == (True, [])


@pytest.mark.parametrize("name", WARNED)
def test_a_doubtful_example_loads_with_a_warning(name: str, tmp_path: Path) -> None:
    text, said = WARNED[name]
    loads, messages = reported(text, tmp_path)
    assert loads
    assert any(said in each for each in messages), messages


@pytest.mark.parametrize("name", REFUSED)
def test_an_example_that_is_printed_wrongly_gets_what_to_write(name: str, tmp_path: Path) -> None:
    text, said = REFUSED[name]
    loads, messages = reported(text, tmp_path)
    assert not loads
    assert any(all(part in each for part in said) for each in messages), messages


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_a_row_names_tests_that_exist_or_says_why_none_does(row: list[str]) -> None:
    _, statement, answer = row
    assert statement
    named = NAMED.findall(answer)
    assert named or answer.startswith((PENDING, DIFFERENT)), answer
    for each in named:
        file, _, function = each.partition("::")
        assert (ROOT / file).is_file(), file
        if function:
            assert f"def {function}(" in (ROOT / file).read_text("utf-8"), each


def test_the_numbers_at_the_top_are_those_of_the_rows() -> None:
    later = sum(answer.startswith(PENDING) for _, _, answer in ROWS)
    different = sum(answer.startswith(DIFFERENT) for _, _, answer in ROWS)
    tests = {each for _, _, answer in ROWS for each in NAMED.findall(answer)}
    wanted = (
        f"{len(ROWS)} statements, {len(tests)} tests and cases, "
        f"{different} differences, {later} not implemented yet"
    )
    assert wanted in PAGE
    numbers = [number for number, _, _ in ROWS]
    assert len(set(numbers)) == len(numbers)
