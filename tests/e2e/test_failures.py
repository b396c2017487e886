"""podgate down, slow, late, killed in the middle of a request, restarted under load.

What happens is the failure policy's: with Fail a request is refused, with Ignore it passes as it
came. Never is it half judged: an object is stored complete, or as it came, or not at all.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

import pytest
import yaml

from tests.e2e.api import Api, StatusError
from tests.e2e.conftest import HERE
from tests.e2e.expectations import lacking
from tests.e2e.front import Front
from tests.e2e.gate import Gate, wait_for
from tests.e2e.objects import Json
from tests.e2e.served import Certificates, Served, serving
from webhook.controller.registration import Options, Target, configurations
from webhook.sources.load import Sources, load

pytestmark = pytest.mark.e2e

BOTH_FAIL = Options(timeout_seconds=1, mutate_failure="Fail", validate_failure="Fail")
BOTH_IGNORE = Options(timeout_seconds=1, mutate_failure="Ignore", validate_failure="Ignore")
AS_SHIPPED = Options(timeout_seconds=1)
PATIENT_FAIL = Options(timeout_seconds=20, mutate_failure="Fail", validate_failure="Fail")
POLICIES = {"fail": BOTH_FAIL, "ignore": BOTH_IGNORE, "as-shipped": AS_SHIPPED}
PATIENT = 20  # seconds that the API server waits where the wait itself is not what is tried


@pytest.fixture(scope="module")
def own(
    tmp_path_factory: pytest.TempPathFactory, certificates: Certificates, gate: Gate
) -> Iterator[Served]:
    """A podgate of this module's, which may be hurt; afterwards the other one is back."""
    folder = tmp_path_factory.mktemp("own")
    try:
        with serving(folder, HERE / "policies", certificates) as served:
            yield served
    finally:
        gate.register(gate.recorder.url)
        gate.wait_until_refused("governed")


@pytest.fixture
def front(own: Served, certificates: Certificates) -> Iterator[Front]:
    """What stands before it."""
    with Front(certificates, own.url).running() as front:
        yield front


def register(gate: Gate, url: str, options: Options, asked: Callable[[], int] | None) -> None:
    """Have the API server call `url`, and wait until it does; `asked` counts the calls there."""
    catalog, problems = load(Sources())
    assert catalog is not None, problems
    target = Target(url=url, ca=gate.podgate.certificates.ca.read_bytes())
    documents = configurations(catalog.definitions, target, options)
    gate.kubectl("apply", "-f", "-", input=yaml.safe_dump_all(documents))
    if asked is None:
        return
    before = asked()

    def both_asked() -> bool:
        with contextlib.suppress(StatusError):
            gate.api.create(gate.manifest("pod"), "governed", dry_run=True)
        return asked() >= before + 2

    wait_for(both_asked, f"the API server does not call {url}")
    # The configurations are told of one after the other: let the failure policies settle too.
    time.sleep(0.3)


def create(api: Api, document: Json, space: str, *, dry_run: bool = False) -> Json | str:
    """What is stored, or what the refusal says."""
    try:
        return api.create(document, space, dry_run=dry_run)
    except StatusError as error:
        return str(error)


def assert_as_the_policy_says(found: Json | str, name: str, gate: Gate, space: str) -> None:
    """Refused by the failed call, or stored without anything of ours."""
    if name == "ignore":
        assert isinstance(found, dict), found
        assert found["spec"]["containers"][0].get("workingDir") is None
        assert lacking(found, 1)
        assert len(gate.api.items("Pod", space)) == 1
        return
    assert isinstance(found, str), found
    assert "failed calling webhook" in found, found
    assert not gate.api.items("Pod", space)


def hurt(front: Front, trouble: str) -> None:
    """Make it so."""
    if trouble == "slow":
        front.delay = 2.5
    else:
        front.breaks = True


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("trouble", ["slow", "broken-off"])
def test_a_call_that_fails_is_the_failure_policys(
    gate: Gate, front: Front, name: str, trouble: str
) -> None:
    space = gate.governed_namespace()
    register(gate, front.url, POLICIES[name], lambda: front.answered)
    hurt(front, trouble)
    found = create(gate.api, gate.manifest("pod"), space)
    assert_as_the_policy_says(found, name, gate, space)
    if trouble == "slow":
        assert "exceeded" in str(found) or isinstance(found, dict)


@pytest.mark.parametrize("name", POLICIES)
def test_while_nobody_listens_the_failure_policy_decides(
    gate: Gate, own: Served, certificates: Certificates, name: str
) -> None:
    space = gate.governed_namespace()
    with Front(certificates, own.url).running() as front:
        register(gate, front.url, POLICIES[name], lambda: front.answered)
    found = create(gate.api, gate.manifest("pod"), space)
    assert_as_the_policy_says(found, name, gate, space)


def test_a_late_answer_changes_nothing(gate: Gate, front: Front) -> None:
    """podgate has judged and patched, and nobody waits for it any more."""
    space = gate.governed_namespace()
    register(gate, front.url, BOTH_IGNORE, lambda: front.answered)
    front.delay = 1.5
    before = front.answered
    found = create(gate.api, gate.manifest("pod"), space)
    assert_as_the_policy_says(found, "ignore", gate, space)
    wait_for(lambda: front.answered >= before + 2, "podgate was not asked")
    time.sleep(front.delay)
    stored = gate.stored("Pod", space, "notebook")
    assert stored["spec"]["containers"][0].get("workingDir") is None
    front.delay = 0
    refused = gate.manifest("pod")
    refused["metadata"]["name"] = "late"
    refused["spec"]["containers"][0]["securityContext"] = {"privileged": True}
    assert "security.privileged" in str(create(gate.api, refused, space))


@contextlib.contextmanager
def in_background(action: Callable[[], Any]) -> Iterator[list[Any]]:
    """Do something in a thread; its result is in the list after the block."""
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(action()))
    thread.start()
    try:
        yield results
    finally:
        thread.join(PATIENT + 10)


@pytest.mark.parametrize("name", ["fail", "ignore"])
def test_killed_in_the_middle_of_a_request(
    gate: Gate, certificates: Certificates, tmp_path: Path, name: str
) -> None:
    space = gate.governed_namespace()
    policy = "Fail" if name == "fail" else "Ignore"
    options = Options(timeout_seconds=PATIENT, mutate_failure=policy, validate_failure=policy)
    with (
        serving(tmp_path / "doomed", HERE / "policies", certificates) as doomed,
        Front(certificates, doomed.url).running() as front,
    ):
        register(gate, front.url, options, lambda: front.answered)
        register(gate, doomed.url, options, None)
        gate.wait_until_refused("governed")
        time.sleep(0.5)
        os.kill(doomed.process.pid, signal.SIGSTOP)
        began = time.monotonic()
        with in_background(lambda: create(gate.api, gate.manifest("pod"), space)) as found:
            time.sleep(1)
            assert not found, found
            os.kill(doomed.process.pid, signal.SIGKILL)
        assert_as_the_policy_says(found[0], name, gate, space)
        # The connection ends with the process; nobody waits for the timeout.
        assert time.monotonic() - began < PATIENT / 2


class Load:
    """Dry-run creates from several connections until told to stop, at most 600."""

    def __init__(self, gate: Gate, space: str, connections: int = 3) -> None:
        self.gate, self.space = gate, space
        self.stopped = threading.Event()
        self.seen: Counter[str] = Counter()
        self.lock = threading.Lock()
        self.threads = [threading.Thread(target=self.run) for _ in range(connections)]

    def run(self) -> None:
        """One connection's share."""
        with contextlib.closing(Api(self.gate.cluster)) as api:
            for _ in range(200):
                if self.stopped.is_set():
                    return
                found = create(api, self.gate.manifest("pod"), self.space, dry_run=True)
                with self.lock:
                    self.seen[what_became(found)] += 1

    def __enter__(self) -> Self:
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopped.set()
        for thread in self.threads:
            thread.join()

    def goes_on(self, number: int = 5) -> None:
        """Wait for some more answers."""
        wanted = sum(self.seen.values()) + number
        wait_for(lambda: sum(self.seen.values()) >= wanted or self.stopped.is_set(), "no answers")


def what_became(found: Json | str) -> str:
    """complete, failed (the call did), or something that must not be."""
    if isinstance(found, dict):
        return "incomplete" if lacking(found, 1) else "complete"
    return "failed" if "failed calling webhook" in found else found


def test_exchanged_under_load_nothing_is_refused_and_nothing_half_judged(
    gate: Gate, own: Served, front: Front, certificates: Certificates, tmp_path: Path
) -> None:
    """As a rollout does it: the new one is ready before the old one is asked to end."""
    space = gate.governed_namespace()
    register(gate, front.url, PATIENT_FAIL, lambda: front.answered)
    first = serving(tmp_path / "first", HERE / "policies", certificates)
    with first as old, Load(gate, space) as running:
        front.target = old.url
        running.goes_on()
        front.target = own.url
        time.sleep(0.5)  # as long as requests on their way to the old one take
        os.kill(old.process.pid, signal.SIGTERM)
        old.process.wait(30)
        running.goes_on()
    assert set(running.seen) == {"complete"}, running.seen


def test_killed_under_load_every_request_is_refused_or_complete(
    gate: Gate, certificates: Certificates, tmp_path: Path, own: Served, front: Front
) -> None:
    space = gate.governed_namespace()
    register(gate, front.url, PATIENT_FAIL, lambda: front.answered)
    with serving(tmp_path / "doomed", HERE / "policies", certificates) as doomed:
        front.target = doomed.url
        with Load(gate, space) as running:
            running.goes_on()
            os.kill(doomed.process.pid, signal.SIGKILL)
            doomed.process.wait(30)
            running.goes_on()
            front.target = own.url
            running.goes_on(10)
    assert set(running.seen) == {"complete", "failed"}, running.seen
