"""The HTTP side: reviews over ASGI."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, NamedTuple, Protocol

import orjson
from starlette.applications import Starlette

from webhook.admission import review
from webhook.admission import timeouts as budget
from webhook.admission.review import ReviewFault
from webhook.documents import texts
from webhook.evaluation.outcome import Decision, Denied, NeededObject
from webhook.evaluation.references import ClaimKey
from webhook.evaluation.request import ObjectRead, Overdue, Request, Stage
from webhook.server import bodies
from webhook.server.bodies import LIGHT, Body, DecodedRoom, Receive, Room
from webhook.server.connections import ARRIVED, GOOD

Judge = Callable[[Request], Decision]
Answered = tuple[int, bytes]
Scope = MutableMapping[str, Any]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

log = logging.getLogger("podgate.http")

STAGES = {f"/{each.value}": each for each in Stage}
SIGHT_SECONDS = 0.3  # that a claim which was just made has to come through the watch
SIGHT_STEP = 0.01
LOOKUP_SECONDS = 0.7  # for all that one review asks others for: namespace, claims, owner
MARGIN_SECONDS = 0.3  # that answers have before the API server stops waiting


@dataclass(slots=True)
class State:
    """What readiness and reviews look at; a new judge replaces the old one in one assignment.

    The certificate that is served has the fingerprint `leaf` and ends at `leaf_ends`, in Unix time.
    """

    judge: Judge | None = None
    generation: int = 0
    trouble: str = "the first catalog is not loaded yet"
    draining: bool = False
    leaf: str = ""
    leaf_ends: float = math.inf

    def days_left(self) -> float:
        """Days that the certificate is still good for; infinite without one."""
        return (self.leaf_ends - time.time()) / 86_400

    def reasons(self) -> list[str]:
        """Why no new traffic is wanted; empty when ready."""
        told = ["draining: this process is about to end"] if self.draining else []
        if self.days_left() <= 0:
            told.append(f"its certificate ended {-self.days_left():.1f} days ago")
        return told + ([self.trouble] if self.judge is None else [])


class Phases(NamedTuple):
    """Seconds of one review by what they went into; 0 for what it never came to.

    `wait` is its body and its turn, `labels` those of its namespace, claims that it waited for, and
    a thread where it needs one.
    """

    wait: float = 0.0
    decode: float = 0.0
    labels: float = 0.0
    judge: float = 0.0
    encode: float = 0.0


NO_PHASES = Phases()


@dataclass(frozen=True, slots=True)
class Observation:
    """One answered review, told to whoever counts and logs; `fault` is a reason, else empty.

    `parent` is the caller's `traceparent`, where anybody asked for it.
    """

    stage: Stage
    seconds: float
    uid: str = ""
    request: Request | None = None
    decision: Decision | None = None
    fault: str = ""
    error: Exception | None = None
    phases: Phases = NO_PHASES
    parent: str = ""


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one review: bytes of its body, seconds it may wait, bytes judged in a thread.

    `in_flight` are the bytes of all bodies that a process holds at a time, `decoded` those that one
    body may take once it is decoded, and that all heavy ones may take together.
    """

    body: int = budget.BODY_LIMIT
    deadline: float = 1.0
    large: int = 64 * 1024
    in_flight: int = 64 * 1024 * 1024
    decoded: int = budget.DECODED_LIMIT


class Namespaces(Protocol):
    """Where the labels of namespaces come from; never an empty mapping."""

    def known(self, name: str) -> Mapping[str, str] | None:
        """Labels that are at hand, None when they must be waited for; called from any thread."""

    async def labels(self, name: str, seconds: float) -> Mapping[str, str] | str:
        """Labels after at most `seconds`, or why they cannot be had."""


class Lookups(Protocol):
    """Where objects come from that a decision needs."""

    def known(self, needed: NeededObject, generation: int) -> ObjectRead | None:
        """The object as it was a moment ago, None where it must be read."""

    async def read(self, needed: NeededObject, generation: int, seconds: float) -> ObjectRead | str:
        """The object as it is now, after at most `seconds`, or why there is no answer."""


@dataclass(slots=True)
class Turn:
    """What is known of a review before it is read: moments of the clock, and the caller's trace.

    The answer has to leave before `until`; `lookups` are the seconds left for asking others. Work
    that is called off ends at its next step, and may still be in a thread by then: `work` is the last
    that was. `answers` numbers the answers, of which one counts.
    """

    stage: Stage
    arrived: float
    until: float
    parent: str = ""
    lookups: float = LOOKUP_SECONDS
    called_off: bool = False
    work: asyncio.Future[Answered | Pending] | None = None
    answers: Iterator[int] = field(default_factory=count)

    def go_on(self) -> None:
        """Raise Overdue once the caller has been told that there will be no decision."""
        if self.called_off:
            raise Overdue


@dataclass(frozen=True, slots=True)
class Pending:
    """A review that must wait for the labels of its namespace, or for jq, before it is judged.

    It was judged where claims were `unseen`, and waits for these. It is `patient` before that.
    `needs` is an object that its decision needs. Some of those that it has were `remembered`;
    `fresh` says that none may be any more.
    """

    judge: Judge
    generation: int
    request: Request
    turn: Turn
    phases: Phases
    unseen: frozenset[ClaimKey] = frozenset()
    patient: bool = True
    needs: NeededObject | None = None
    remembered: bool = False
    fresh: bool = False


@dataclass(slots=True)
class Reviews:
    """Answers reviews. `observe` is told of each one afterwards; `clock` is monotonic.

    A judge may have a method `lacks_labels(request)`: where that says so the request gets the
    `namespace_labels` of its namespace before the judge sees it. Only where its method
    `waits(request)` says so may it wait, and is then called in a thread. What its decision calls
    `unseen` is waited for a moment where its method `awaits(unseen)` says so, at most until
    `sees(unseen)` does; then it is called again. An object that its decision `needs` is looked up,
    and it is called again with that.
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
        """All bodies together have limits too."""
        self.room = Room(max(self.limits.in_flight, self.limits.body))
        self.decoded_room = DecodedRoom(self.limits.decoded)

    async def __call__(self, scope: Scope, receive: Receive, send: Send, stage: Stage) -> None:
        """One review, from its first byte to the answer."""
        arrived = scope.get(ARRIVED) or self.clock()
        refused = unfit(scope)
        if refused is not None:
            await answer(send, *refused)
            return
        timeout = budget.timeout_of(scope["query_string"])
        until = arrived + max(timeout - MARGIN_SECONDS, timeout / 2)
        turn = Turn(stage, arrived, until, parent_of(scope) if self.traced else "")
        held = Body()
        try:
            await self.read_and_answer(scope, receive, send, held, turn)
        finally:
            if turn.work is None or turn.work.done():
                self.release(held)
            else:
                turn.work.add_done_callback(lambda _: self.release(held))

    def release(self, held: Body) -> None:
        """Give up the room of a body and of what it was decoded to."""
        self.room.release(held)
        self.decoded_room.release(held.decoded)
        held.decoded = 0

    async def read_and_answer(
        self, scope: Scope, receive: Receive, send: Send, held: Body, turn: Turn
    ) -> None:
        """The rest of one review; `held` counts the bytes of its body."""
        body = await self.read(scope, receive, held, turn.until)
        if body is None:
            return
        if isinstance(body, ReviewFault):
            self.told(turn, self.unjudged(turn, body, self.clock() - turn.arrived))
            await answer(send, body.http_status, review.fault_response(body), CLOSE)
            return
        large = len(body) > self.limits.large
        if large:
            # Beside a large object small ones are answered too: its work gives way now and then.
            line = min(turn.arrived + self.limits.deadline, turn.until)
            fault = await self.make_room(body, held, turn, line)
            if fault is not None:
                self.told(turn, self.unjudged(turn, fault, self.clock() - turn.arrived))
                await answer(send, fault.http_status, review.fault_response(fault))
                return
            answered = await self.apart(turn, body, line, lambda: self.judged(body, turn))
        else:
            answered = self.judged(body, turn)
        if isinstance(answered, Pending):
            answered = await self.completed(answered, body, large=large)
        scope[GOOD] = answered[0] == 200
        await answer(send, *answered)

    async def make_room(
        self, body: bytes, held: Body, turn: Turn, line: float
    ) -> ReviewFault | None:
        """Wait until a large body may be decoded; return the fault where it may not."""
        size = budget.decoded_size(body)
        if size > self.limits.decoded:
            return review.too_many_values(review.find_uid(body))
        if size > LIGHT:
            if not await self.decoded_room.take(size, line - self.clock()):
                seconds = self.clock() - turn.arrived
                return review.waited_too_long(review.find_uid(body), seconds)
            held.decoded = size
        return None

    async def read(
        self, scope: Scope, receive: Receive, held: Body, until: float
    ) -> bytes | ReviewFault | None:
        """The body; a fault when it is too large or too slow; None when the caller went away."""
        declared, expects = declared_length(scope)
        if declared > self.limits.body and expects:
            return review.too_large("", self.limits.body)
        seconds = until - self.clock()
        return await bodies.read(receive, self.room, held, self.limits.body, seconds)

    def judged(self, body: bytes, turn: Turn) -> Answered | Pending:
        """HTTP status and body of the answer to one whole review; it neither raises nor waits."""
        waited = self.clock() - turn.arrived
        judge, generation = self.state.judge, self.state.generation
        fault: Request | ReviewFault
        if waited > min(self.limits.deadline, turn.until - turn.arrived):
            fault = review.waited_too_long(review.find_uid(body), waited)
        elif judge is None:
            fault = review.not_ready(review.find_uid(body), self.state.trouble)
        else:
            fault = review.parse_review(body, turn.stage, turn.go_on)
        if isinstance(fault, ReviewFault):
            self.told(turn, self.unjudged(turn, fault, waited))
            return fault.http_status, review.fault_response(fault)
        assert judge is not None
        phases = Phases(waited, self.clock() - turn.arrived - waited)
        return self.prepared(Pending(judge, generation, fault, turn, phases))

    def prepared(self, pending: Pending) -> Answered | Pending:
        """The answer where nothing is to be waited for, else what must wait."""
        request, judge = pending.request, pending.judge
        try:
            if asks(judge, "lacks_labels", request):
                known = self.namespaces.known(request.namespace) if self.namespaces else None
                if known is None:
                    return pending
                request = replace(request, namespace_labels=known)
                pending = replace(pending, request=request)
            if asks(judge, "waits", request):
                return pending
        except Exception as error:
            return self.failed(pending, error)
        return self.decided(pending)

    async def apart(
        self, turn: Turn, body: bytes, line: float, work: Callable[[], Answered | Pending]
    ) -> Answered | Pending:
        """What `work` gives, from a thread that it stands in line for until `line` at most.

        The caller is answered in time; work that goes on beyond that is called off.
        """
        task = self.pool.submit(work)
        future = turn.work = asyncio.wrap_future(task)
        fault = review.waited_too_long
        for end in (line, turn.until):
            done, _ = await asyncio.wait({future}, timeout=max(0.0, end - self.clock()))
            if done:
                return future.result()
            if task.cancel():
                break
            fault = review.overdue
        turn.called_off = True
        seconds = self.clock() - turn.arrived
        found = fault(review.find_uid(body), seconds)
        self.told(turn, self.unjudged(turn, found, seconds))
        return found.http_status, review.fault_response(found)

    async def completed(self, pending: Pending, body: bytes, *, large: bool) -> Answered:
        """The answer once all that it waits for is there, or will not come."""
        answered: Answered | Pending = pending
        if not pending.unseen and pending.needs is None:
            answered = await self.labelled(pending, body, large=large)
        while isinstance(answered, Pending):
            if answered.needs is not None:
                answered = await self.looked_up(answered, answered.needs, body)
            else:
                answered = await self.sighted(answered, body, large=large)
        return answered

    async def looked_up(
        self, pending: Pending, needed: NeededObject, body: bytes
    ) -> Answered | Pending:
        """The answer with an object that the decision needs; without one the failure policy decides."""
        turn, begun = pending.turn, self.clock()
        found: ObjectRead | str | None = "this server has no access to an API server"
        if self.lookups is not None:
            wanted = needed, pending.generation
            found = None if pending.fresh else self.lookups.known(*wanted)
            pending = replace(pending, remembered=pending.remembered or found is not None)
            seconds = max(0.0, min(turn.until - begun, turn.lookups))
            found = found or await self.lookups.read(*wanted, seconds)
        turn.lookups -= self.clock() - begun
        if not isinstance(found, ObjectRead):
            fault = unread_object(pending.request, needed, found or "")
            self.told(turn, self.seen(pending, fault=fault.reason))
            return fault.http_status, review.fault_response(fault)
        objects = {**pending.request.objects, needed.path: found}
        request = replace(pending.request, objects=objects)
        # Owners may be large, so that others are answered beside.
        return await self.run(replace(pending, request=request, needs=None), body, apart=True)

    async def sighted(self, pending: Pending, body: bytes, *, large: bool) -> Answered | Pending:
        """The answer once unseen claims are there; without them they are as good as unknown."""
        judge, turn, begun = pending.judge, pending.turn, self.clock()
        end = min(turn.until, begun + min(SIGHT_SECONDS, turn.lookups))
        try:
            while not asks(judge, "sees", pending.unseen) and self.clock() < end:
                await asyncio.sleep(SIGHT_STEP)
            waits = asks(judge, "waits", pending.request)
        except Exception as error:
            return self.failed(pending, error)
        turn.lookups -= self.clock() - begun
        pending = replace(pending, patient=False, unseen=frozenset())
        return await self.run(pending, body, apart=large or waits)

    async def run(self, pending: Pending, body: bytes, *, apart: bool) -> Answered | Pending:
        """What `decided` gives, in a thread where it must stand apart."""
        if not apart:
            return self.decided(pending)
        turn = pending.turn
        return await self.apart(turn, body, turn.until, lambda: self.decided(pending))

    async def labelled(self, pending: Pending, body: bytes, *, large: bool) -> Answered | Pending:
        """The answer once the labels are there; without them the failure policy has the word."""
        request, judge = pending.request, pending.judge
        try:
            if asks(judge, "lacks_labels", request):
                labels = await self.labels_of(request, pending.turn)
                if isinstance(labels, ReviewFault):
                    self.told(pending.turn, self.seen(pending, fault=labels.reason))
                    return labels.http_status, review.fault_response(labels)
                request = replace(request, namespace_labels=labels)
                pending = replace(pending, request=request)
            waits = asks(judge, "waits", request)
        except Exception as error:
            return self.failed(pending, error)
        return await self.run(pending, body, apart=large or waits)

    async def labels_of(self, request: Request, turn: Turn) -> Mapping[str, str] | ReviewFault:
        """The labels of a request's namespace, or the fault that they cannot be had."""
        if self.namespaces is None:
            return unknown_namespace(request, "this server has no API server to ask")
        begun = self.clock()
        seconds = max(0.0, min(turn.until - begun, turn.lookups))
        labels = await self.namespaces.labels(request.namespace, seconds)
        turn.lookups -= self.clock() - begun
        return unknown_namespace(request, labels) if isinstance(labels, str) else labels

    def decided(self, pending: Pending) -> Answered | Pending:
        """The answer to a request, or what it waits for; the one place where our bugs are caught.

        A bug is told by HTTP 500: only a failed call makes the API server apply the failurePolicy,
        while `allowed: false` with HTTP 200 would refuse even where the installer chose Ignore.
        """
        judge, (wait, decode, *_) = pending.judge, pending.phases
        begun = self.clock()
        try:
            decision = judge(pending.request)
            if pending.patient and decision.unseen and asks(judge, "awaits", decision.unseen):
                return replace(pending, unseen=decision.unseen)
            if isinstance(decision, Denied):
                if decision.needs is not None:
                    return replace(pending, needs=decision.needs)
                if pending.remembered:
                    # What is remembered may let an object pass, and never refuses one.
                    request = replace(pending.request, objects={})
                    again = replace(pending, request=request, remembered=False, fresh=True)
                    return self.decided(again)
            decided = self.clock()
            payload = review.respond(pending.request, decision, pending.generation)
        except Overdue:
            return 503, b""  # the caller has been told
        except Exception as error:
            return self.failed(pending, error)
        labels = begun - pending.turn.arrived - wait - decode
        phases = Phases(wait, decode, labels, decided - begun, self.clock() - decided)
        self.told(pending.turn, self.seen(pending, decision=decision, phases=phases))
        return 200, payload

    def failed(self, pending: Pending, error: Exception) -> Answered:
        """The answer to a review that met a bug."""
        self.told(pending.turn, self.seen(pending, error=error))
        return 500, review.internal_error_response(pending.request.uid)

    def seen(
        self,
        pending: Pending,
        *,
        decision: Decision | None = None,
        fault: str = "",
        error: Exception | None = None,
        phases: Phases | None = None,
    ) -> Observation:
        """What is told of a review that was read."""
        turn, request = pending.turn, pending.request
        seconds, told = self.clock() - turn.arrived, (decision, fault, error)
        return Observation(
            turn.stage, seconds, request.uid, request, *told, phases or pending.phases, turn.parent
        )

    def unjudged(self, turn: Turn, fault: ReviewFault, waited: float) -> Observation:
        """What is told of a review that could not be read."""
        seconds, phases = self.clock() - turn.arrived, Phases(waited)
        return Observation(
            turn.stage, seconds, fault.uid, fault=fault.reason, phases=phases, parent=turn.parent
        )

    def told(self, turn: Turn, observation: Observation) -> None:
        """Tell the observer of the one answer; what fails there never spoils it."""
        if next(turn.answers):
            return
        try:
            self.observe(observation)
        except Exception:
            log.exception("counting a review failed")


def asks(judge: Judge, name: str, about: Request | frozenset[ClaimKey]) -> bool:
    """Whether the judge has such a question about a request or claims, and says yes to it."""
    question = getattr(judge, name, None)
    return question is not None and bool(question(about))


def unknown_namespace(request: Request, why: str) -> ReviewFault:
    """The fault where policies select namespaces by label and this one's are not known."""
    told = (
        f"podgate does not know the labels of namespace {texts.shown(request.namespace)}, by"
        f" which policies select: {why}"
    )
    return ReviewFault(request.uid, 500, told, "unknown-namespace")


def unread_object(request: Request, needed: NeededObject, why: str) -> ReviewFault:
    """The fault where an object that a decision needs could not be read."""
    told = (
        f"podgate could not read {texts.cut(needed.path, 200)}, without which this object cannot be"
        f" evaluated: {why}"
    )
    return ReviewFault(request.uid, 500, told, "unread-object")


def unfit(scope: Scope) -> tuple[int, bytes, tuple[tuple[bytes, bytes], ...]] | None:
    """Status, body and headers for a call that is refused before its body is read."""
    if scope["method"] != "POST":
        told = f"{scope['method']} is not for {scope['path']}; send a POST with an AdmissionReview"
        return 405, problem(told), ((b"allow", b"POST"),)
    for name, value in scope["headers"]:
        if name == b"content-type":
            if value == b"application/json":
                return None
            if value.split(b";", 1)[0].strip().lower() == b"application/json":
                return None
            found = value.decode("latin-1")[:80]
            return 415, problem(f"content type {found} is not application/json"), CLOSE
    return 415, problem("there is no content type; send application/json"), CLOSE


CLOSE = ((b"connection", b"close"),)


def parent_of(scope: Scope) -> str:
    """The caller's place in a trace, as W3C has it; empty without one."""
    for name, value in scope["headers"]:
        if name == b"traceparent":
            return str(value, "latin-1")
    return ""


def declared_length(scope: Scope) -> tuple[int, bool]:
    """The content length a caller announces, 0 when unknown, and whether it waits for our word."""
    length, expects = 0, False
    for name, value in scope["headers"]:
        if name == b"content-length" and value.isdigit():
            length = int(value[:18])
        elif name == b"expect":
            expects = True
    return length, expects


def problem(message: str) -> bytes:
    """A JSON body that says what was wrong with a call."""
    return orjson.dumps({"error": message})


async def answer(
    send: Send, status: int, body: bytes, headers: tuple[tuple[bytes, bytes], ...] = ()
) -> None:
    """Send one JSON answer; one that the caller may get by asking again says so."""
    length = b"%d" % len(body)
    if status == 503:
        headers = (*headers, (b"retry-after", b"1"))
    fields = [(b"content-type", b"application/json"), (b"content-length", length), *headers]
    await send({"type": "http.response.start", "status": status, "headers": fields})
    await send({"type": "http.response.body", "body": body})


@dataclass(frozen=True, slots=True)
class App:
    """The application: reviews go straight to their handler, everything else through Starlette.

    Starlette's stack and routing cost a third of a null review, so only what is rare takes it.
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
