"""A scene: what happens in one namespace, and which of the reviews that arrive meanwhile are kept."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.e2e.gate import Done, wait_for
from tests.e2e.objects import Json
from tests.e2e.operators.bed import Bed
from tests.e2e.operators.operator import Operator
from tests.e2e.recorder import Recording

WORKLOADS = Path(__file__).parent / "workloads"
PATIENCE = 120.0
ALICE = "alice"


def controller(name: str) -> str:
    """The user name of a built-in controller under its own service account."""
    return f"system:serviceaccount:kube-system:{name}"


@dataclass(frozen=True, slots=True)
class Kept:
    """One review to keep: the first that is so and has `text` in its body.

    `by` names the user in the file's name, where the last part of the user name would not tell.
    """

    operation: str
    kind: str
    user: str
    subresource: str = ""
    text: str = ""
    by: str = ""

    @property
    def name(self) -> str:
        """The name of its file, without number."""
        by = self.by or self.user.rpartition(":")[2]
        kind = "-".join(filter(None, (self.kind, self.subresource)))
        return f"{self.operation}-{kind}-{by}".lower()

    def is_of(self, recording: Recording) -> bool:
        """Whether it is this one; subresources are seen by the validating webhook alone."""
        request = recording.request
        return (
            recording.stage == ("validate" if self.subresource else "mutate")
            and request["operation"] == self.operation
            and request["kind"]["kind"] == self.kind
            and request["userInfo"]["username"] == self.user
            and request.get("subResource", "") == self.subresource
            and self.text in recording.body
        )


@dataclass(slots=True)
class Place:
    """A governed namespace in which a scene is played."""

    bed: Bed
    space: str
    allowed: list[str] = field(default_factory=list)

    def kubectl(self, *arguments: str, user: str = ALICE, **more: Any) -> Done:
        """Run kubectl in the namespace as somebody, by impersonation unless it is Alice."""
        if user != ALICE:
            self.allow(user)
            arguments = (*arguments, f"--as={user}")
        return self.bed.gate.kubectl(*arguments, f"--namespace={self.space}", user=ALICE, **more)

    def allow(self, user: str) -> None:
        """Let somebody do everything in the namespace."""
        if user not in self.allowed:
            self.allowed.append(user)
            role = ("--clusterrole=cluster-admin", f"--user={user}")
            name = f"may-{len(self.allowed)}"
            self.bed.gate.kubectl("create", "rolebinding", name, *role, f"--namespace={self.space}")

    def apply(self, *files: Path) -> None:
        """Apply files as Alice."""
        for file in files:
            self.kubectl("apply", f"--filename={file}")

    def create(self, document: Json, user: str = ALICE) -> None:
        """Create an object as somebody; whether podgate lets it pass is no matter here."""
        self.kubectl("create", "--filename=-", user=user, input=json.dumps(document), check=False)

    def items(self, kind: str, count: int = 1) -> list[Json]:
        """The objects of a kind, once there are at least `count`."""

        def found() -> list[Json] | None:
            items = json.loads(self.kubectl("get", kind, "--output=json").stdout)["items"]
            return items if len(items) >= count else None

        return wait_for(found, f"not {count} of {kind} in {self.space}", PATIENCE)

    def running(self, count: int) -> list[Json]:
        """The pods once so many run."""

        def found() -> list[Json] | None:
            items = self.items("pods", 0)
            run = [each for each in items if each["status"].get("phase") == "Running"]
            return run if len(run) >= count else None

        return wait_for(found, f"not {count} pods run in {self.space}", PATIENCE)

    def seen(self, kept: Kept) -> Recording:
        """The review, as soon as it has arrived."""

        def found() -> Recording | None:
            return next(filter(kept.is_of, self.recordings()), None)

        return wait_for(found, f"no review in {self.space} is {kept}", PATIENCE)

    def recordings(self) -> list[Recording]:
        """What podgate was asked about the namespace, in order."""
        everything = self.bed.gate.recorder.recordings()
        return [each for each in everything if each.request.get("namespace") == self.space]


@dataclass(frozen=True, slots=True)
class Scene:
    """What is played in the namespace of this name, with these operators, and what is kept."""

    name: str
    play: Callable[[Place], None]
    keeps: tuple[Kept, ...]
    operators: tuple[Operator, ...] = ()
