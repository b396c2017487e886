"""What Spark's own code makes as a driver, under the account that the user gave it, is judged."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.gate import wait_for
from tests.e2e.objects import Json
from tests.e2e.operators.bed import Bed
from tests.e2e.operators.cases import CASES, how_to_run, wanted
from tests.e2e.operators.operator import Running
from tests.e2e.operators.oracle import lacking
from tests.e2e.operators.played import PATIENCE, Played, play
from tests.e2e.testbed import identity, spark

pytestmark = pytest.mark.e2e

CASE = next(case for case in CASES if case.name == "sparkapplication")
FILE = "spark.properties"
WAITING = "Thread.sleep(600000)"
REPL = "org.apache.spark.repl.Main"
MOUNTED = "spark.kubernetes.authenticate.driver.mounted"


@pytest.fixture(scope="module")
def driven(request: pytest.FixtureRequest) -> Iterator[Played]:
    """The application, with its driver made by the operator and its executors by the driver's code."""
    if not wanted(CASE):
        pytest.skip(how_to_run(CASE.operator.name))
    bed: Bed = request.getfixturevalue("bed")
    played = play(bed, CASE, "spark-executors")
    driver = drive(played, bed.folder / "driver")
    try:
        wait_for(lambda: executors(played), f"no executors; see {driver.log_file}", 2 * PATIENCE)
        yield played
    finally:
        driver.stop()


def executors(played: Played) -> list[Json]:
    """Both executors, once they are there."""
    found = played.bed.gate.api.items("Pod", played.space, "spark-role=executor")
    return found if len(found) >= 2 else []


def account(played: Played) -> str:
    """The user name of the driver."""
    return f"system:serviceaccount:{played.space}:spark"


def drive(played: Played, folder: Path) -> Running:
    """Run what the driver's pod would run, by the settings that Spark's client made for it.

    The program only waits: Spark asks for executors by itself.
    """
    folder.mkdir()
    (pod,) = played.pods()
    cluster, gate = played.bed.cluster, played.bed.gate
    (settings,) = (
        each["configMap"]["name"]
        for each in pod["spec"]["volumes"]
        if each["name"] == "spark-conf-volume-driver"
    )
    # Spark's client makes it once there is a pod to own it.
    path = f"/api/v1/namespaces/{played.space}/configmaps/{settings}"
    told = wait_for(lambda: gate.api.find(path), f"no {settings}", PATIENCE)["data"][FILE]
    (folder / FILE).write_text(told, "utf-8")
    (folder / "wait.scala").write_text(WAITING, "utf-8")
    token = gate.kubectl("create", "token", "spark", f"--namespace={played.space}").stdout.strip()
    (folder / "token").write_text(token, "utf-8")
    shutil.copy(cluster.ca_file, folder / "ca.crt")
    kubeconfig = folder / "kubeconfig"
    identity.write_kubeconfig(
        kubeconfig,
        server=cluster.server,
        ca_file=cluster.ca_file,
        user=account(played),
        token=token,
    )
    changed = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.port": "0",
        "spark.driver.blockManager.port": "0",
        "spark.ui.enabled": "false",
        "spark.kubernetes.driver.master": cluster.server,
        f"{MOUNTED}.oauthTokenFile": folder / "token",
        f"{MOUNTED}.caCertFile": folder / "ca.crt",
    }
    command = [
        spark.home() / "bin" / "spark-submit",
        *("--deploy-mode", "client", "--properties-file", folder / FILE),
        *(part for name, value in changed.items() for part in ("--conf", f"{name}={value}")),
        *("--class", REPL, "-i", folder / "wait.scala"),
    ]
    variables = {
        "SPARK_HOME": str(spark.home()),
        "JAVA_HOME": str(spark.java_home()),
        "KUBECONFIG": str(kubeconfig),
        "SPARK_LOCAL_IP": "127.0.0.1",
        # As Spark's own shell has it.
        "SPARK_SUBMIT_OPTS": "-Dscala.usejavacp=true",
        "HOME": str(folder),
    }
    return Running.start("driver", command, folder, **variables)


def test_executors_are_made_by_the_drivers_account_and_completed(driven: Played) -> None:
    asked = [
        each
        for each in driven.bed.reviews(driven.space, account(driven))
        if each.request["kind"]["kind"] == "Pod" and each.request["operation"] == "CREATE"
    ]
    assert len(asked) >= 2
    assert [each.answer for each in asked if not each.response["allowed"]] == []
    # Nobody is exempt by a service account of the workload's own namespace: defaults are written.
    assert any("patch" in each.response for each in asked)
    for pod in executors(driven):
        (owner,) = pod["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["controller"]) == ("Pod", True)


def test_executors_are_as_the_policy_promises(driven: Played) -> None:
    for pod in executors(driven):
        assert lacking(pod, "spark-kubernetes-executor") == []
