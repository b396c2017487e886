"""`make soak`: people at work behind podgate for minutes; figures as a table, 1 when one is wrong."""

from __future__ import annotations

import argparse
import contextlib
import random
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.e2e.api import Api
from tests.e2e.objects import Json, pods_in
from tests.e2e.operators.bed import Bed, standing
from tests.e2e.operators.cases import CASES, Case
from tests.e2e.operators.spark_operator import SPARK_OPERATOR
from tests.e2e.soak.people import GROUP, USERS, Crowd
from tests.e2e.soak.things import PLAIN, Pool, Sort, of_case, plain
from tests.e2e.soak.verdict import Verdict, judge
from tests.e2e.soak.watch import Watch
from tests.e2e.testbed import programs
from tests.e2e.testbed.cache import tell
from tests.e2e.testbed.missing import MissingTestbed

GROWTH = 1.05
"""How much more memory a worker may hold in the last third of the time than in the second."""
WARMING = 1.25
"""The same for less than two minutes, in which caches still fill."""


def soak(seconds: float, cases: Sequence[Case], seed: int, folder: Path) -> Verdict:
    """Work for that long; the cluster and all programs end with this."""
    users = dict.fromkeys(USERS, (GROUP,))
    with standing(folder, users=users, workers=2, recorded=False) as bed:
        sorts = prepared(bed, cases)
        crowd = Crowd(bed.cluster, Pool(sorts), seed, pause=0.2)
        watch = Watch(bed, sorts, every=max(4.0, seconds / 12))
        with watch.running():
            tell(f"soak: {len(USERS)} people at work for {seconds:.0f} s")
            crowd.work(seconds)
        # The server has closed the connection of the start by now: nobody used it meanwhile.
        with contextlib.closing(Api(bed.cluster)) as api:
            last_look(api, crowd, watch)
        return judge(bed, crowd, watch, GROWTH if seconds >= 120 else WARMING)


def prepared(bed: Bed, cases: Sequence[Case]) -> list[Sort]:
    """Rights for the people, operators that run, governed namespaces; the sorts of objects."""
    metadata = {"name": GROUP}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": GROUP}
    bed.apply(
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": metadata,
            "subjects": [subject],
            "roleRef": role,
        }
    )
    for case in cases:
        for operator in (case.operator, *case.others):
            bed.run(operator)
    sorts = [*plain(), *(of_case(case) for case in cases)]
    for space in dict.fromkeys(sort.space for sort in sorts):
        bed.gate.governed_namespace(space)
        bed.gate.wait_until_refused(space)
    for case in cases:
        if case.beside.exists():
            asked = ("apply", "--server-side", f"--namespace={of_case(case).space}")
            bed.gate.kubectl(*asked, f"--filename={case.beside}")
    for user in USERS:
        bed.cluster.kubeconfig(user)
    return sorts


def last_look(api: Api, crowd: Crowd, watch: Watch) -> None:
    """What stands at the end: every pod by the oracle, every template too, nothing that was refused."""
    watch.judge(api)
    for sort in watch.sorts:
        for stored in api.request("GET", sort.path())["items"]:
            name = stored["metadata"]["name"]
            if name.startswith("bad-"):
                crowd.surprises.append(f"{sort.space}/{name} breaks a rule and is stored")
            if sort.space == PLAIN:
                judge_templates(stored, sort, watch)


def judge_templates(stored: Json, sort: Sort, watch: Watch) -> None:
    """What the oracle has against the pods in an object of a kind that every cluster has."""
    name = stored["metadata"]["name"]
    for _, metadata, spec in pods_in(stored):
        watch.complain({"metadata": {**metadata, "name": name}, "spec": spec}, sort)


def at_hand() -> list[Case]:
    """The cases whose operators are built already, but for Spark.

    That one starts a Java for each object, which leaves no processor to others.
    """
    return [case for case in CASES if built(case) and case.operator is not SPARK_OPERATOR]


def built(case: Case) -> bool:
    """Whether all operators of a case are there without building."""
    names = [each.name for each in (case.operator, *case.others)]
    with contextlib.suppress(MissingTestbed):
        return bool(programs.find(*names, build=False))
    return False


def main() -> int:
    """Run the command; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.e2e.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=3, help="how long people work: 0.2 to 60")
    parser.add_argument("--plain", action="store_true", help="no operators")
    parser.add_argument("--seed", type=int, default=random.randrange(10_000))
    arguments = parser.parse_args()
    if not 0.2 <= arguments.minutes <= 60:
        parser.error(f"--minutes is {arguments.minutes:g}; write a number from 0.2 to 60")
    # Told to end, it ends what it started too; Python by itself would leave podgate behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    cases = [] if arguments.plain else at_hand()
    with tempfile.TemporaryDirectory(prefix="podgate-soak-") as folder:
        try:
            verdict = soak(60 * arguments.minutes, cases, arguments.seed, Path(folder))
        except MissingTestbed as error:
            print(error, file=sys.stderr)
            return 2
    show(verdict, arguments.seed)
    return 1 if verdict.complaints else 0


def show(verdict: Verdict, seed: int) -> None:
    """Print the table, and then what is wrong."""
    for what, figure in (("seed", str(seed)), *verdict.rows):
        print(f"{what:38} {figure}")
    for complaint in verdict.complaints[:50]:
        print(f"WRONG {complaint}")


if __name__ == "__main__":
    sys.exit(main())
