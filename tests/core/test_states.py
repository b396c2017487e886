"""States of shipped kinds: what controllers write into the status, in the order they write it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.fixtures import evaluator
from tests.core.definitions import POLICIES, read_file
from webhook.core.workload.bound import bind


def condition(text: str) -> dict[str, str]:
    """A condition from `Type=Status`, or `Type=Status:Reason`."""
    kind, _, rest = text.partition("=")
    status, _, reason = rest.partition(":")
    return {"type": kind, "status": status, **({"reason": reason} if reason else {})}


def matching(kind: str, status: dict[str, Any] | None, spec: dict[str, Any]) -> tuple[str, ...]:
    """The states of an object of a shipped kind, the one that counts first."""
    interface, _, _ = read_file(POLICIES / f"{kind}.yaml")
    body: dict[str, Any] = {"metadata": {"name": "a"}, "spec": spec}
    if status is not None:
        body["status"] = status
    found = bind(interface, body, evaluator()).root.status()
    assert found is not None
    return (found.resolved, *(each for each in found.matching if each != found.resolved))


def conditions(*texts: str, **more: Any) -> dict[str, Any]:
    """A status with these conditions."""
    return {"conditions": [condition(each) for each in texts], **more}


def models(active: str, target: str) -> dict[str, Any]:
    """The model status of an InferenceService."""
    return {"states": {"activeModelState": active, "targetModelState": target}}


LWS = "leaderworkerset.leaderworkerset.x-k8s.io"
ISVC = "inferenceservice.serving.kserve.io"
LLM = "llminferenceservice.serving.kserve.io"
SANDBOX = "sandbox.agents.x-k8s.io"
SUSPENDED = {"operatingMode": "Suspended"}
RUNNING = {"operatingMode": "Running"}


@pytest.mark.parametrize(
    "kind, expected, status, spec",
    [
        (LWS, ["Initializing"], conditions("Progressing=True:GroupsProgressing"), {}),
        (LWS, ["Initializing"], conditions("Progressing=True", "Available=False"), {}),
        (LWS, ["Running"], conditions("Progressing=False", "Available=True"), {}),
        (LWS, ["Degraded"], conditions("Progressing=False", "Available=False"), {}),
        ("deployment.apps", ["Initializing"], conditions("Progressing=True"), {}),
        ("deployment.apps", ["Running"], conditions("Progressing=True", "Available=True"), {}),
        ("job.batch", ["Initializing"], {"active": 1, "ready": 0}, {}),
        ("job.batch", ["Running"], {"active": 1, "ready": 1}, {}),
        ("job.batch", ["Running"], {"active": 1}, {}),
        ("job.batch", ["Completed"], conditions("SuccessCriteriaMet=True", ready=0), {}),
        (
            "job.batch",
            ["Completed", "Running"],
            conditions("SuccessCriteriaMet=True", active=1, ready=1),
            {},
        ),
        (
            "job.batch",
            ["Completed"],
            conditions("SuccessCriteriaMet=True", "Complete=True", completionTime="t"),
            {},
        ),
        ("job.batch", ["Failed"], conditions("FailureTarget=True:BackoffLimitExceeded"), {}),
        ("job.batch", ["Failed"], conditions("FailureTarget=True", "Failed=True"), {}),
        ("job.batch", ["Suspended"], conditions("Suspended=True"), {}),
        (
            ISVC,
            ["Initializing"],
            conditions("Ready=Unknown", modelStatus=models("", "Pending")),
            {},
        ),
        (ISVC, ["Initializing"], conditions("Ready=False"), {}),
        (ISVC, ["Failed"], conditions("Ready=False", modelStatus=models("", "FailedToLoad")), {}),
        (ISVC, ["Failed"], conditions("Ready=False", modelStatus=models("FailedToLoad", "")), {}),
        (
            ISVC,
            ["Running"],
            conditions("Ready=True", modelStatus=models("Loaded", "FailedToLoad")),
            {},
        ),
        (ISVC, ["Suspended"], conditions("Ready=False", "Stopped=True"), {}),
        (LLM, ["Failed"], conditions("PresetsCombined=False:ConfigNotFound", "Ready=Unknown"), {}),
        (LLM, ["Initializing"], conditions("PresetsCombined=True", "Ready=Unknown"), {}),
        (
            LLM,
            ["Initializing"],
            conditions("PresetsCombined=True", "Ready=False:Progressing"),
            {},
        ),
        (LLM, ["Running"], conditions("PresetsCombined=True", "Ready=True"), {}),
        (
            SANDBOX,
            ["Initializing"],
            conditions("Suspended=False:NotSuspended", "PodScheduled=True", "Ready=False"),
            RUNNING,
        ),
        (
            SANDBOX,
            ["Running"],
            conditions("Suspended=False", "PodScheduled=True", "Ready=True"),
            RUNNING,
        ),
        (SANDBOX, ["Suspending"], conditions("Suspended=False", "Ready=True"), SUSPENDED),
        (
            SANDBOX,
            ["Suspending"],
            conditions("Suspended=False:PodTerminating", "Ready=False", "Finished=True:PodFailed"),
            SUSPENDED,
        ),
        (SANDBOX, ["Suspended"], conditions("Suspended=True", "Ready=False"), SUSPENDED),
        (SANDBOX, ["Resuming"], conditions("Suspended=True", "Ready=False"), RUNNING),
        (SANDBOX, ["Failed"], conditions("Ready=False", "Finished=True:PodFailed"), RUNNING),
        (SANDBOX, ["Completed"], conditions("Ready=False:SandboxExpired"), RUNNING),
        (
            "sandboxclaim.extensions.agents.x-k8s.io",
            ["Initializing"],
            conditions("PodScheduled=True", "Ready=False"),
            {},
        ),
    ],
)
def test_the_state_of_an_object(
    kind: str, expected: list[str], status: dict[str, Any], spec: dict[str, Any]
) -> None:
    assert list(matching(kind, status, spec)) == expected
