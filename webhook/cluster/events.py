"""Events on the owners of rejected objects: nobody else sees why a workload gets no pods.

A controller creates the object, so the author of the workload does not see the rejection. The event is
informational: nothing waits for it or depends on it, and dry runs post none.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from webhook.admission import names
from webhook.cluster.client import ApiError, path_of
from webhook.cluster.reader_connection import Sender
from webhook.decision.messages import violation_text
from webhook.documents import texts
from webhook.evaluation.outcome import Denied, OwnerReference
from webhook.evaluation.request import Request

log = logging.getLogger("podgate.events")

AGAIN = 600.0  # seconds before the same rejection is posted on the same owner again
REWRITING_AGAIN = 3600.0
REQUEST_TIMEOUT = 2.0  # seconds for one event
BURST, PER_SECOND = 20.0, 1.0
RUNNING = 4
KEPT = 4096
LONGEST = 1000
MAY_NOT = "grant `create` on `events` in a ClusterRole, or set --owner-events false"


def event_of(request: Request, denied: Denied, now: datetime) -> dict[str, Any] | None:
    """The event on the owner of a rejected object, with the policies and violations; None if none.

    The same rejection has the same name for a while, so that the API server keeps one event for
    all.
    """
    owner = denied.report_to
    if owner is None or request.dry_run or not request.namespace:
        return None
    # Any client of the port could cause events; an API server always names a user, and
    # has checked of an owner reference only that its members are texts.
    is_real = names.is_name(owner.name) and names.is_uid(owner.uid) and names.is_kind(owner.kind)
    if not request.user or not is_real:
        return None
    # If the name is generated, its prefix still identifies the object.
    child = request.name or str(request.object.get("metadata", {}).get("generateName", ""))
    lines = [violation_text(each) for each in denied.violations[:10]]
    if len(denied.violations) > len(lines):
        lines.append(f"and {len(denied.violations) - len(lines)} more")
    text = texts.cut(f"podgate refused {request.kind} {child}: {' '.join(lines)}", LONGEST)
    content = "\n".join((request.kind, *lines))
    slot = int(now.timestamp() // AGAIN)
    mark = hashlib.sha256(f"{owner.uid}\n{content}\n{slot}".encode()).hexdigest()[:16]
    return warning_event(owner, request.namespace, mark, "PolicyRefused", text, now)


def rewriting_event(
    request: Request, fields: Iterable[str], now: datetime
) -> dict[str, Any] | None:
    """The event on an object whose required values a user keeps removing; None without a name.

    There is one for each user and hour, however many processes see it.
    """
    metadata = request.object.get("metadata")
    uid = str(metadata.get("uid") or "") if isinstance(metadata, dict) else ""
    if not request.namespace or not request.name:
        return None
    version = f"{request.group}/{request.version}" if request.group else request.version
    subject = OwnerReference(version, request.kind, request.name, uid)
    listed = ", ".join(sorted(fields))
    text = texts.cut(
        f"{texts.cut(request.user, 200)} keeps removing what podgate writes here ({listed}), and"
        " podgate writes it again. If this is a controller, an administrator can list it in"
        " trustedControllers.",
        LONGEST,
    )
    slot = int(now.timestamp() // REWRITING_AGAIN)
    content = f"{uid}\n{request.user}\n{slot}"
    mark = hashlib.sha256(content.encode()).hexdigest()[:16]
    return warning_event(subject, request.namespace, mark, "RewritesRequired", text, now)


def warning_event(
    subject: OwnerReference, namespace: str, mark: str, reason: str, text: str, now: datetime
) -> dict[str, Any]:
    """A warning about an object; `mark` makes the name, which several processes share."""
    stamp = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{subject.name[:200]}.{mark}", "namespace": namespace},
        "involvedObject": {
            "apiVersion": subject.api_version,
            "kind": subject.kind,
            "namespace": namespace,
            "name": subject.name,
            "uid": subject.uid,
        },
        "type": "Warning",
        "reason": reason,
        "action": "Admission",
        "message": text,
        "count": 1,
        "firstTimestamp": stamp,
        "lastTimestamp": stamp,
        "source": {"component": "podgate"},
        "reportingComponent": "podgate.dev/webhook",
        "reportingInstance": os.uname().nodename[:128],
    }


@dataclass(slots=True)
class OwnerEvents:
    """Posts such events from one event loop; `counted` gets each outcome.

    `report` may be called from any thread, never waits and never fails. Beyond a burst of 20 and
    one per second, events are dropped and counted.
    """

    server: Sender | None
    counted: Callable[[str], None] = lambda _: None
    clock: Callable[[], float] = time.monotonic
    loop: asyncio.AbstractEventLoop | None = None
    seen: dict[str, float] = field(default_factory=dict)
    running: set[asyncio.Task[None]] = field(default_factory=set)
    left: float = BURST
    filled: float = 0.0
    complained: bool = False

    def report(self, request: Request, denied: Denied) -> None:
        """Post an event on the owner of a rejected object, if there is an owner and an API server."""
        if self.server is None or self.loop is None or denied.report_to is None:
            return
        self.send(event_of(request, denied, datetime.now(UTC)))

    def send(self, event: dict[str, Any] | None) -> None:
        """Post an event if there is one and an API server to post it to."""
        if event is not None and self.server is not None and self.loop is not None:
            self.loop.call_soon_threadsafe(self.start, self.server, event)

    def start(self, server: Sender, event: dict[str, Any]) -> None:
        """Post it in the background, unless it was posted before or too many are running."""
        name = f"{event['metadata']['namespace']}/{event['metadata']['name']}"
        if name in self.seen:
            return
        if not self.may():
            self.counted("dropped")
            return
        while len(self.seen) >= KEPT:
            del self.seen[next(iter(self.seen))]
        self.seen[name] = self.clock()
        task = asyncio.get_running_loop().create_task(self.post(server, event))
        self.running.add(task)
        task.add_done_callback(self.running.discard)

    def may(self) -> bool:
        """Whether the rate limit allows one more event now."""
        now = self.clock()
        if self.filled:
            self.left = min(BURST, self.left + (now - self.filled) * PER_SECOND)
        self.filled = now
        if self.left < 1 or len(self.running) >= RUNNING:
            return False
        self.left -= 1
        return True

    async def post(self, server: Sender, event: dict[str, Any]) -> None:
        """Send one POST; count the outcome and log the first failure."""
        try:
            path = path_of("api", "v1", "namespaces", event["metadata"]["namespace"], "events")
            async with asyncio.timeout(REQUEST_TIMEOUT):
                status, _ = await server.send("POST", path, event, timeout=REQUEST_TIMEOUT)
        except TimeoutError:
            outcome, why = "failed", f"the API server did not answer in {REQUEST_TIMEOUT:g} s"
        except (ApiError, ValueError) as error:
            outcome, why = "failed", str(error)
        else:
            outcome, why = outcome_of(status)
        self.counted(outcome)
        if why and not self.complained:
            self.complained = True
            log.warning("no event could be posted on an owner after a refusal: %s", why)


def outcome_of(status: int) -> tuple[str, str]:
    """The outcome of a POST, and the reason if it failed."""
    if status in (200, 201, 202):
        return "posted", ""
    if status == 409:
        return "known", ""  # another replica was first
    if status == 403:
        return "failed", f"the API server forbids it (403); {MAY_NOT}"
    return "failed", f"the API server answered with HTTP {status}"
