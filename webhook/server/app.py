"""The HTTP side: reviews over ASGI."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from starlette.applications import Starlette

from webhook.admission import review, timeouts
from webhook.admission.judge import (
    NeedsFacts,
    NeedsNamespace,
    NeedsObjects,
    Ready,
)
from webhook.admission.review import ReviewFault
from webhook.documents import texts
from webhook.evaluation.outcome import Decision, Denied, NeededObject
from webhook.evaluation.references import ClaimKey
from webhook.evaluation.request import ObjectRead, Overdue, Request, Stage
from webhook.server import bodies
from webhook.server.answers import CLOSE, Scope, Send, answer, declared_length, parent_of, unfit
from webhook.server.bodies import LIGHT, Body, DecodedRoom, Receive, Room
from webhook.server.call import (
    Answered,
    Call,
    Limits,
    Lookups,
    Namespaces,
    Needs,
    Observation,
    Phases,
    State,
)
from webhook.server.connections import ARRIVED, GOOD

log = logging.getLogger("podgate.http")

STAGES = {f"/{each.value}": each for each in Stage}
SIGHT_SECONDS = 0.3  # seconds that the watch gets to deliver a claim that was just created
SIGHT_STEP = 0.01
MARGIN_SECONDS = 0.3  # seconds left for the answer to arrive before the API server stops waiting


@dataclass(slots=True)
class Reviews:
    """Answers reviews. `observe` gets each answered review; `clock` is monotonic.

    `evaluate` processes a review as far as possible without waiting. `complete` gets what the
    review still needs. Large objects, and reviews that need jq or another object, are evaluated in
    a thread.
    """

    state: State
    observe: Callable[[Observation], None]
    limits: Limits = field(default_factory=Limits)
    clock: Callable[[], float] = time.monotonic
    pool: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(4, thread_name_prefix="large")
    )
    namespaces: Namespaces | None = None
    lookups: Lookups | None = None
    traced: bool = False
    room: Room = field(init=False)
    decoded_room: DecodedRoom = field(init=False)

    def __post_init__(self) -> None:
        """Create the limits that all bodies share."""
        self.room = Room(max(self.limits.in_flight, self.limits.body))
        self.decoded_room = DecodedRoom(self.limits.decoded)

    async def __call__(self, scope: Scope, receive: Receive, send: Send, stage: Stage) -> None:
        """Answer one review, from its first byte on."""
        arrived = scope.get(ARRIVED) or self.clock()
        refused = unfit(scope)
        if refused is not None:
            await answer(send, *refused)
            return
        timeout = timeouts.timeout_of(scope["query_string"])
        until = arrived + max(timeout - MARGIN_SECONDS, timeout / 2)
        call = Call(stage, arrived, until, parent_of(scope) if self.traced else "")
        held = Body()
        try:
            await self.read_and_answer(scope, receive, send, held, call)
        finally:
            if call.work is None or call.work.done():
                self.release(held, call)
            else:
                call.work.add_done_callback(lambda _: self.release(held, call))

    def release(self, held: Body, call: Call) -> None:
        """Release a body, its decoded form, and the room of both."""
        call.forget()
        self.room.release(held)
        self.decoded_room.release(held.decoded)
        held.decoded = 0

    async def read_and_answer(
        self, scope: Scope, receive: Receive, send: Send, held: Body, call: Call
    ) -> None:
        """Read the body, evaluate the review and send the answer; `held` counts the bytes of the body."""
        body = await self.read(scope, receive, held, call.until)
        if body is None:
            return
        if isinstance(body, ReviewFault):
            await answer(send, *self.refuse(call, body), CLOSE)
            return
        call.body, call.is_large = body, len(body) > self.limits.large
        answered: Answered | Needs
        if call.is_large:
            # A thread evaluates a large object and yields now and then: small ones get answers meanwhile.
            line = min(call.arrived + self.limits.deadline, call.until)
            fault = await self.make_room(call, held, line)
            if fault is not None:
                await answer(send, *self.refuse(call, fault))
                return
            answered = await self.evaluate_in_thread(call, line)
        else:
            answered = self.evaluate(call)
        while not isinstance(answered, tuple):
            answered = await self.complete(call, answered)
        scope[GOOD] = answered[0] == 200
        await answer(send, *answered)

    async def make_room(self, call: Call, held: Body, line: float) -> ReviewFault | None:
        """Wait until a large body may be decoded; return the fault where it may not."""
        size = timeouts.decoded_size(call.body)
        if size > self.limits.decoded:
            return review.too_many_values(review.find_uid(call.body))
        if size > LIGHT:
            if not await self.decoded_room.take(size, line - self.clock()):
                seconds = self.clock() - call.arrived
                return review.waited_too_long(review.find_uid(call.body), seconds)
            held.decoded = size
        return None

    async def read(
        self, scope: Scope, receive: Receive, held: Body, until: float
    ) -> bytes | ReviewFault | None:
        """Return the body, a fault if it is too large or too slow, or None if the caller disconnected."""
        declared, expects = declared_length(scope)
        if declared > self.limits.body and expects:
            return review.too_large("", self.limits.body)
        seconds = until - self.clock()
        return await bodies.read(receive, self.room, held, self.limits.body, seconds)

    def parse(self, call: Call) -> ReviewFault | None:
        """Parse the request and pick the judge in use; return a fault if either is not possible."""
        waited = self.clock() - call.arrived
        call.judge, call.generation = self.state.judge, self.state.generation
        call.phases = Phases(waited)
        if waited > min(self.limits.deadline, call.until - call.arrived):
            return review.waited_too_long(review.find_uid(call.body), waited)
        if call.judge is None:
            return review.not_ready(review.find_uid(call.body), self.state.trouble)
        found = review.parse_review(call.body, call.stage, call.go_on)
        if isinstance(found, ReviewFault):
            return found
        call.request = found
        call.phases = Phases(waited, self.clock() - call.arrived - waited)
        return None

    def evaluate(self, call: Call, ask: Callable[[], Ready] | None = None) -> Answered | Needs:
        """Return the answer to a review, or what it needs first. Bugs are caught here and only here.

        It waits for nothing except jq. A bug is answered with HTTP 500: only a failed call makes
        the API server apply the failurePolicy. `allowed: false` with HTTP 200 would reject the
        object even if the failurePolicy is Ignore.
        """
        if call.request is None and (fault := self.parse(call)) is not None:
            return self.refuse(call, fault)
        request, judge = call.request, call.judge
        assert request is not None
        assert judge is not None
        try:
            ready = ask() if ask is not None else call.ready or judge.prepare(request)
            if isinstance(ready, NeedsNamespace) and self.namespaces is not None:
                labels = self.namespaces.known(request.namespace)
                if labels is not None:
                    request = call.request = replace(request, namespace_labels=labels)
                    ready = judge.prepare(request)
            if not isinstance(ready, Ready):
                return ready
            call.ready, begun = ready, self.clock()
            decision = judge.decide(ready, final=call.final)
            if isinstance(decision, NeedsObjects):
                return decision
            if call.remembered and isinstance(decision, Denied):
                # A cached object may allow a request, but never rejects one: read the object again.
                call.remembered, call.fresh = False, True
                call.request, call.ready = replace(request, objects={}), None
                return self.evaluate(call)
            decided = self.clock()
            payload = review.respond(request, decision, call.generation)
        except Overdue:
            return 503, b""  # the caller already has an answer
        except Exception as error:
            return self.fail(call, error)
        wait, decode, *_ = call.phases
        labels_seconds = begun - call.arrived - wait - decode
        spent = Phases(wait, decode, labels_seconds, decided - begun, self.clock() - decided)
        self.report(call, self.observation(call, decision=decision, phases=spent))
        return 200, payload

    async def evaluate_in_thread(
        self, call: Call, line: float, ask: Callable[[], Ready] | None = None
    ) -> Answered | Needs:
        """Run `evaluate` in a thread, and wait until `line` at most for the thread to start.

        The caller gets an answer in time; work that takes longer is called off.
        """
        task = self.pool.submit(self.evaluate, call, ask)
        future = call.work = asyncio.wrap_future(task)
        fault = review.waited_too_long
        for end in (line, call.until):
            done, _ = await asyncio.wait({future}, timeout=max(0.0, end - self.clock()))
            if done:
                return future.result()
            if task.cancel():
                break
            fault = review.overdue
        call.called_off = True
        return self.refuse(call, fault(review.find_uid(call.body), self.clock() - call.arrived))

    async def complete(self, call: Call, needs: Needs) -> Answered | Needs:
        """Get what a review needs, then evaluate it; refuse it if that is not available."""
        fault: ReviewFault | None = None
        try:
            match needs:
                case NeedsFacts(ask):
                    return await self.evaluate_in_thread(call, call.until, ask)
                case NeedsNamespace():
                    fault = await self.add_labels(call)
                case NeedsObjects(object=NeededObject() as needed):
                    fault = await self.add_object(call, needed)
                case NeedsObjects(claims):
                    await self.wait_for_claims(call, claims)
        except Exception as error:
            return self.fail(call, error)
        if fault is not None:
            return self.refuse(call, fault, call.request)
        # Owners may be large: use a thread, so that other reviews are answered meanwhile.
        if call.is_large or (call.request is not None and call.request.objects):
            return await self.evaluate_in_thread(call, call.until)
        return self.evaluate(call)

    async def add_labels(self, call: Call) -> ReviewFault | None:
        """Add the namespace's labels to the request; return a fault if they are not available.

        With a fault, the failure policy decides.
        """
        request = call.request
        assert request is not None
        if self.namespaces is None:
            return unknown_namespace(request, "this server has no API server to ask")
        begun = self.clock()
        seconds = max(0.0, min(call.until - begun, call.lookups))
        labels = await self.namespaces.labels(request.namespace, seconds)
        call.lookups -= self.clock() - begun
        if isinstance(labels, str):
            return unknown_namespace(request, labels)
        call.request = replace(request, namespace_labels=labels)
        return None

    async def wait_for_claims(self, call: Call, claims: frozenset[ClaimKey]) -> None:
        """Wait a moment for claims that were just created; after that they count as unknown."""
        judge, begun = call.judge, self.clock()
        assert judge is not None
        end = min(call.until, begun + min(SIGHT_SECONDS, call.lookups))
        while not judge.has(claims) and self.clock() < end:
            await asyncio.sleep(SIGHT_STEP)
        call.lookups -= self.clock() - begun
        call.final = True

    async def add_object(self, call: Call, needed: NeededObject) -> ReviewFault | None:
        """Add an object that the decision needs to the request, and have the request prepared again.

        Return a fault if the object is not available; then the failure policy decides.
        """
        request, begun = call.request, self.clock()
        assert request is not None
        found: ObjectRead | str | None = "this server has no access to an API server"
        if self.lookups is not None:
            wanted = needed, call.generation
            found = None if call.fresh else self.lookups.known(*wanted)
            call.remembered = call.remembered or found is not None
            seconds = max(0.0, min(call.until - begun, call.lookups))
            found = found or await self.lookups.read(*wanted, seconds)
        call.lookups -= self.clock() - begun
        if not isinstance(found, ObjectRead):
            return unread_object(request, needed, found or "")
        call.request = replace(request, objects={**request.objects, needed.path: found})
        call.ready = None
        return None

    def refuse(self, call: Call, fault: ReviewFault, request: Request | None = None) -> Answered:
        """Answer a review that is not evaluated; `request` is given if it was parsed."""
        seconds = self.clock() - call.arrived
        phases = call.phases if request is not None else Phases(call.phases.wait or seconds)
        self.report(
            call,
            Observation(
                call.stage,
                seconds,
                fault.uid,
                request,
                fault=fault.reason,
                phases=phases,
                parent=call.parent,
            ),
        )
        return fault.http_status, review.fault_response(fault)

    def fail(self, call: Call, error: Exception) -> Answered:
        """Answer a review that met a bug."""
        assert call.request is not None
        self.report(call, self.observation(call, error=error, phases=call.phases))
        return 500, review.internal_error_response(call.request.uid)

    def observation(
        self,
        call: Call,
        *,
        phases: Phases,
        decision: Decision | None = None,
        error: Exception | None = None,
    ) -> Observation:
        """Return the log and metrics record of an evaluated review."""
        request = call.request
        assert request is not None
        return Observation(
            call.stage,
            self.clock() - call.arrived,
            request.uid,
            request,
            decision,
            error=error,
            phases=phases,
            parent=call.parent,
        )

    def report(self, call: Call, observation: Observation) -> None:
        """Report the first answer to the observer. Errors in the observer are logged, not raised."""
        if next(call.answers):
            return
        try:
            self.observe(observation)
        except Exception:
            log.exception("counting a review failed")


def unknown_namespace(request: Request, why: str) -> ReviewFault:
    """The fault if policies select namespaces by label and the labels are unknown."""
    message = (
        f"podgate does not know the labels of namespace {texts.show_value(request.namespace)}, by"
        f" which policies select: {why}"
    )
    return ReviewFault(request.uid, 500, message, "unknown-namespace")


def unread_object(request: Request, needed: NeededObject, why: str) -> ReviewFault:
    """The fault if an object that the decision needs could not be read."""
    message = (
        f"podgate could not read {texts.cut(needed.path, 200)}, without which this object cannot be"
        f" evaluated: {why}"
    )
    return ReviewFault(request.uid, 500, message, "unread-object")


@dataclass(frozen=True, slots=True)
class App:
    """The application: review paths go straight to their handler, everything else to Starlette.

    Starlette's middleware and routing take a third of the time of an empty review.
    """

    reviews: Reviews
    rest: Starlette

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI; the path is matched without the query, where Kubernetes puts `timeout=…`."""
        if scope["type"] == "http":
            stage = STAGES.get(scope["path"])
            if stage is not None:
                await self.reviews(scope, receive, send, stage)
                return
        await self.rest(scope, receive, send)
