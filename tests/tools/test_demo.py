"""The demo: the whole of it as a process, and its parts where they can go wrong."""

from __future__ import annotations

import copy
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonpatch
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.e2e.testbed import processes
from tools.demo.__main__ import POLICIES, STORY, differences, play
from tools.demo.report import broken
from tools.demo.webhook import (
    LAST_APPLIED,
    DemoError,
    apply_patch,
    make_certificates,
    review_of,
    running,
    start,
)
from webhook.cli import loading
from webhook.objects.draft import diff
from webhook.sources.load import Sources

PODGATE = Path(sys.executable).parent / "podgate"


def environment(folder: Path, **more: str) -> dict[str, str]:
    """This environment with another temporary folder and without settings of podgate."""
    clean = {name: text for name, text in os.environ.items() if not name.startswith("PODGATE_")}
    return {**clean, "TMPDIR": str(folder), "COLUMNS": "80", **more}


def pid_in(text: str) -> int:
    """The process id of the webhook, as the demo tells it."""
    found = re.search(r"process\s+(\d+)", text)
    assert found, text
    return int(found[1])


def test_the_demo_tells_every_place_and_leaves_nothing_behind(tmp_path: Path) -> None:
    # Settings of the caller's must not reach the webhook.
    env = environment(tmp_path, PODGATE_PORTT="1", PODGATE_WORKERS="many")
    done = subprocess.run(
        [sys.executable, "-m", "tools.demo"],
        env=env,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    told = done.stdout
    assert (done.returncode, done.stderr) == (0, ""), told + done.stderr
    for words in (
        "CREATE apps/v1 Deployment team-vision/annotator",
        "spec.initContainers[0].imagePullPolicy        Always",
        "REFUSED, 403 Forbidden: 7 rules broken",
        "spec.pytorchReplicaSpecs.Master.template.spec.containers[0]",
        "at most 8",
        "item NCCL_DEBUG (value)",
        "project policy team-vision/distributed-training",
        "Remove the item. Questions go to the platform team.",
        "RayCluster team-vision/tuning, dry run",
        "spec.headGroupSpec.template",
        "spec.workerGroupSpecs[0].template",
        "spec.workerGroupSpecs[1].template",
        "spec.replicatedJobs[1].template.spec.template",
        "compute.cpuMemoryLimit: warn mode: would be refused",
        "Everything went as described",
    ):
        assert words in told, words
    assert "\x1b" not in told
    assert "WARN" not in told, "the value of a variable is printed"
    assert max(map(len, told.splitlines())) <= 80
    assert not processes.started(pid_in(told))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_demo_stops_its_webhook(tmp_path: Path, number: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "tools.demo"],
        env=environment(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A shell that runs the tests in the background has them ignore Ctrl-C, and so their children.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as process:
        end = time.monotonic() + 120
        while not list(tmp_path.glob("podgate-demo-*/serve.log")):
            assert time.monotonic() < end, "the demo does not start its webhook"
            time.sleep(0.01)
        process.send_signal(number)
        told, errors = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "interrupted" in errors
    assert "Traceback" not in errors
    assert "Everything" not in told
    assert list(tmp_path.iterdir()) == []


def test_a_webhook_with_faulty_policies_is_told_with_its_log(tmp_path: Path) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text("rules: {imagePullPolicy: {min: 3}}\n", "utf-8")
    with (
        pytest.raises(DemoError, match=r"no usable policies[\s\S]*imagePullPolicy"),
        running([bad]),
    ):
        pass


def test_a_webhook_that_ends_at_once_is_told_with_its_log(tmp_path: Path) -> None:
    make_certificates(tmp_path)
    (tmp_path / "tls.key").write_text("no key", "utf-8")
    with pytest.raises(DemoError, match=r"exit code 2[\s\S]*cannot start"):
        start(tmp_path, [POLICIES])


def test_a_webhook_whose_certificate_is_not_ours_gets_no_review(tmp_path: Path) -> None:
    with running([POLICIES]) as webhook:
        other = tmp_path / "other"
        other.mkdir()
        make_certificates(other)
        stranger = replace(webhook, folder=other)
        with pytest.raises(DemoError, match="CERTIFICATE_VERIFY_FAILED"):
            stranger.post("mutate", b"{}")


def test_a_story_that_goes_otherwise_is_told() -> None:
    catalog = loading.catalog_of(Sources((str(POLICIES),)))
    deployment, job, *_ = STORY
    with running([POLICIES]) as webhook:
        completed = play(deployment, webhook, catalog)
        refused = play(job, webhook, catalog)
        bare = loading.catalog_of(Sources())
        elsewhere = play(deployment, webhook, bare)
    assert list(differences(deployment, completed)) == []
    otherwise = replace(deployment, allowed=False, places=("spec.nowhere",), warns=True)
    assert list(differences(otherwise, completed)) == [
        "allowed, and should be refused",
        "nothing was found at spec.nowhere",
        "there is no warning",
    ]
    assert "refused, and should be allowed" in differences(replace(job, allowed=True), refused)
    assert "the answer differs from the same decision in this process" in differences(
        deployment, elsewhere
    )


def test_a_review_carries_what_an_api_server_puts_there() -> None:
    catalog = loading.catalog_of(Sources())
    manifest: dict[str, Any] = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "a"},
        "spec": {"template": {"spec": {"containers": [{"name": "c", "image": "i:1"}]}}},
    }
    before = copy.deepcopy(manifest)
    request = review_of(manifest, "n", catalog)["request"]
    sent = request["object"]
    assert manifest == before
    assert sent["spec"]["template"]["spec"]["containers"][0]["imagePullPolicy"] == "IfNotPresent"
    assert sent["metadata"]["namespace"] == "n"
    assert "imagePullPolicy" not in sent["metadata"]["annotations"][LAST_APPLIED]
    (entry,) = sent["metadata"]["managedFields"]
    containers = entry["fieldsV1"]["f:spec"]["f:template"]["f:spec"]["f:containers"]
    assert "f:image" in containers['k:{"name":"c"}']
    assert request["resource"]["resource"] == "deployments"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text("a/~0", max_size=3),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text("a/~01", max_size=3), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(JSON, JSON)
def test_a_patch_is_applied_as_jsonpatch_does(old: Any, new: Any) -> None:
    operations = diff({"root": old}, {"root": new})
    wanted = jsonpatch.apply_patch({"root": old}, operations)
    assert apply_patch({"root": old}, operations) == wanted == {"root": new}


@given(st.text("ab.[] ", max_size=60), st.integers(4, 30))
def test_breaking_words_loses_nothing(text: str, width: int) -> None:
    assert broken(text, width).replace("\n", "") == text


def test_a_place_is_broken_before_a_dot() -> None:
    place = "spec.template.spec.containers[0].image"
    assert broken(place, 20) == "spec.template.spec\n.containers[0].image"
