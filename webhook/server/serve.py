"""The server: joins settings, certificate, catalog, HTTP and workers, and ends them in order."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, cast

import uvicorn
import uvloop

from webhook.cluster.events import OwnerEvents, rewriting_event
from webhook.cluster.lookups import Lookups
from webhook.cluster.namespaces import (
    NO_ACCESS,
    AccessError,
    Kubeconfig,
    Namespaces,
    credentials_of,
)
from webhook.decision import messages as wording
from webhook.documents.problem import Problem
from webhook.evaluation.outcome import UNKNOWN_KIND, UNKNOWN_VERSION, Allowed, Denied
from webhook.evaluation.request import Request
from webhook.evaluation.rewriting import is_rewriting
from webhook.libjq import evaluator as jq
from webhook.server.app import App, Judge, Limits, Observation, Reviews, State
from webhook.server.connections import Connection, connection
from webhook.server.gate import RECEIVED_BYTES, Acceptor, Gate, Peer
from webhook.server.log_fields import facts_of, not_evaluated, outcome_of, refused, span_of
from webhook.server.probes import probes
from webhook.server.rewriting import OFTEN, Rewriting
from webhook.server.workers import Pool, Seat, cpu_count
from webhook.service import metrics as counts
from webhook.service import telemetry, traces
from webhook.service.metrics import Metrics
from webhook.service.settings import Settings, address
from webhook.service.tls import Certificate, Files, TlsError
from webhook.service.traces import Traces

log = logging.getLogger("podgate")

Load = Callable[[], Judge]
Changed = Callable[[], bool]

WATCH_SECONDS = 2.0
RETRY_SECONDS = 15.0
WAIT_SECONDS = 0.2
GRACE_SECONDS = 10
# Files are looked at every two seconds, so that nobody has to ask for that. Workers inherit it.
UNDEFINED = (UNKNOWN_KIND, UNKNOWN_VERSION)
IGNORED = (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
COLLECTION = (50_000, 20, 100)
COLLECTED_EVERY = 20


class LoadError(Exception):
    """The documents of a catalog are wrong: every problem, for their authors."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        """`problems` are told line by line."""
        super().__init__(f"{len(problems)} problems")
        self.problems = problems


def never() -> bool:
    """A catalog that nobody changes."""
    return False


def serve(settings: Settings, load: Load, changed: Changed = never) -> int:
    """Serve reviews until SIGTERM or SIGINT; the exit code: 0, 1 (failed), 2 (bad settings).

    `load` reads all documents and gives a judge; it raises LoadError for bad ones. It is called
    once in every worker and again, in a thread, whenever `changed` (asked every two seconds) says
    so; while it fails the last good judge stays. A judge is called from several threads. It may
    have an attribute `policies`, the number of policies in it, which is told at the start, and a
    method `lacks_labels(request)`: it must not wait, so the server looks up the namespace's labels
    for it; where `selects_namespaces` is true and nobody can be asked, that is told too.
    """
    telemetry.start_logging(settings.log_level, settings.log_format)
    if threading.current_thread() is threading.main_thread():
        for number in IGNORED:
            signal.signal(number, signal.SIG_IGN)
    problems = settings.unfit_to_serve()
    if problems:
        return refuse(problems)
    if settings.traces and (lacking := traces.lacking()):
        return refuse((Problem("flags", "--traces", lacking, traces.REMEDY, "setting"),))
    try:
        certificate = None if settings.plain_http else certificate_of(settings)
        if settings.kubeconfig is not None:
            Kubeconfig(settings.kubeconfig).read()
        listeners = Listeners.of(settings)
    except (TlsError, AccessError, OSError) as error:
        log.error("cannot start: %s", error)  # noqa: TRY400 - expected, its stack says nothing
        return 1 if isinstance(error, OSError) else 2
    try:
        return run(settings, listeners, certificate, load, changed)
    finally:
        listeners.close()


def run(
    settings: Settings,
    listeners: Listeners,
    certificate: Certificate | None,
    load: Load,
    changed: Changed,
) -> int:
    """Serve in this process, or in as many workers as the settings or the CPUs say."""
    count = settings.workers or cpu_count()
    if count == 1:
        return Process(settings, listeners, certificate, load, changed).run()
    folder = counts.share()
    try:
        work = worker_of(settings, listeners, certificate, load, changed)
        patience = settings.drain + GRACE_SECONDS + 5
        return Pool(count, work, ended=counts.forget, patience=patience).run()
    finally:
        counts.unshare(folder)


def refuse(problems: tuple[Problem, ...]) -> int:
    """Tell what is wrong with the settings on stderr, a line each; gives exit code 2."""
    for problem in problems:
        sys.stderr.write(f"{wording.problem_text(problem)}\n")
    return 2


def worker_of(
    settings: Settings,
    listeners: Listeners,
    certificate: Certificate | None,
    load: Load,
    changed: Changed,
) -> Callable[[Seat], int]:
    """What each worker process runs: the same as a single process, with a heartbeat."""

    def work(seat: Seat) -> int:
        supervisor = os.getppid()
        process = Process(settings, listeners, certificate, load, changed, seat.number, seat.beat)
        process.loaded, process.others_loaded = seat.note_loaded, seat.others_loaded
        process.orphaned = lambda: os.getppid() != supervisor
        return process.run()

    return work


@dataclass(frozen=True, slots=True)
class Listeners:
    """The bound sockets, shared by all workers: a taken port is known before anything starts."""

    reviews: socket.socket
    metrics: socket.socket | None

    @classmethod
    def of(cls, settings: Settings) -> Listeners:
        """Bind; OSError says which address could not be had."""
        apart = settings.metrics_listen not in ("", "same")
        reviews = bound(settings.listen)
        try:
            return cls(reviews, bound(settings.metrics_listen) if apart else None)
        except OSError:
            reviews.close()
            raise

    def close(self) -> None:
        """Let go of the addresses."""
        self.reviews.close()
        if self.metrics is not None:
            self.metrics.close()


def bound(text: str) -> socket.socket:
    """A listening socket at an address."""
    host, port = address(text)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        made = socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)
        raise OSError(f"{text}: {reason}") from error
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVED_BYTES)
    return made


def named(listener: socket.socket) -> str:
    """An address as it was bound, for people."""
    host, port = listener.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def certificate_of(settings: Settings) -> Certificate:
    """The certificate of the settings; TlsError when it cannot be served."""
    assert settings.tls_cert is not None
    assert settings.tls_key is not None
    names = settings.tls_cert, settings.tls_key, settings.client_ca
    return Certificate(Files(*names, settings.tls_min_version))


class Server(uvicorn.Server):
    """A uvicorn server that accepts through a gate.

    It leaves signals to the process, which runs two of them.
    """

    gate: Gate

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to accept."""
        config, loop = self.config, asyncio.get_running_loop()

        def made(peer: Peer) -> asyncio.Protocol:
            protocol = cast("type[Connection]", config.http_protocol_class)
            made = protocol(config, self.server_state, {}, loop)
            made.peer = peer
            return made

        acceptors = [Acceptor(each, self.gate, made, config.ssl) for each in sockets or ()]
        for acceptor in acceptors:
            acceptor.start()
        self.servers = cast("list[Any]", acceptors)
        self.started = True

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield


@dataclass(slots=True)
class Process:
    """One process that answers reviews: the only one, or one of several workers."""

    settings: Settings
    listeners: Listeners
    certificate: Certificate | None
    load: Load
    changed: Changed = never
    number: int = 0
    beat: Callable[[], None] = lambda: None
    orphaned: Callable[[], bool] = never
    loaded: Callable[[], None] = lambda: None
    others_loaded: Callable[[], bool] = never
    state: State = field(default_factory=State)
    metrics: Metrics = field(default_factory=Metrics.new)
    started: threading.Event = field(default_factory=threading.Event)
    stopping: asyncio.Event | None = None
    loop: asyncio.AbstractEventLoop | None = None
    servers: list[Server] = field(default_factory=list)
    namespaces: Namespaces = field(init=False)
    lookups: Lookups = field(init=False)
    events: OwnerEvents = field(init=False)
    rewriting: Rewriting = field(default_factory=Rewriting)
    traces: Traces | None = None

    def __post_init__(self) -> None:
        """Find out who can be asked for namespaces and given events; nothing is asked yet."""
        credentials = credentials_of(self.settings.kubeconfig, os.environ)
        self.namespaces = Namespaces(credentials, self.metrics.looked_up)
        self.lookups = Lookups(credentials, self.metrics.object_read)
        jq.counting.told = self.metrics.jq_called
        told = credentials if self.settings.owner_events else None
        self.events = OwnerEvents(told, self.metrics.owner_told)
        if self.settings.traces:
            self.traces = Traces.to(self.settings.traces)

    def run(self) -> int:
        """Serve until told to stop."""
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            code = runner.run(self.main())
        if self.traces is not None:
            self.traces.close()
        return code

    def stop(self) -> None:
        """Ask for a graceful end, from any thread; asked twice, it is not graceful."""
        assert self.loop is not None
        self.loop.call_soon_threadsafe(self.stop_here)

    def stop_here(self) -> None:
        """The same, on the loop."""
        assert self.stopping is not None
        if self.stopping.is_set():
            for server in self.servers:
                server.should_exit = server.force_exit = True
        self.stopping.set()

    async def main(self) -> int:
        """Probes first, then the catalog, then reviews; at the end the other way round.

        Where other workers have a catalog, this one answers nobody before it has one too.
        """
        self.loop, self.stopping = asyncio.get_running_loop(), asyncio.Event()
        self.events.loop = self.loop
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                self.loop.add_signal_handler(number, self.stop_here)
        reviews, plain = self.build()
        async with asyncio.TaskGroup() as tasks:
            heart = tasks.create_task(self.live())
            probing = plain is not None and not self.others_loaded()
            if probing:
                tasks.create_task(self.probe(plain))
            await asyncio.to_thread(self.reload)
            watch = tasks.create_task(self.watch())
            while self.state.judge is None and self.others_loaded() and not self.stopping.is_set():
                await asyncio.sleep(WAIT_SECONDS)
            if not probing:
                tasks.create_task(self.probe(plain))
            serving = tasks.create_task(reviews.serve([self.listeners.reviews]))
            self.announce()
            await self.stopping.wait()
            await self.drain(reviews)
            await serving
            if plain is not None:
                plain.should_exit = True
            heart.cancel()
            watch.cancel()
        return 0

    async def probe(self, plain: Server | None) -> None:
        """Answer probes and scrapes, where they have a port of their own."""
        if plain is not None and self.listeners.metrics is not None:
            await plain.serve([self.listeners.metrics])

    def build(self) -> tuple[Server, Server | None]:
        """The server of reviews, and the one of metrics and probes where it has its own port."""
        own, same = self.settings.metrics_listen, self.settings.metrics_listen == "same"
        limits = Limits(
            self.settings.body_limit,
            self.settings.deadline,
            in_flight=self.settings.bytes_in_flight,
        )
        traced = self.traces is not None
        reviews = Reviews(
            self.state,
            self.observe,
            limits,
            namespaces=self.namespaces,
            lookups=self.lookups,
            traced=traced,
        )
        texts = self.metrics.text
        app = App(reviews, probes(self.state, texts if same else None))
        gate = self.gate()
        gate.refused, gate.opened = self.metrics.connection_refused, self.metrics.connected
        servers = [self.server(app, self.certificate, gate)]
        if own and not same:
            servers.append(self.server(probes(self.state, texts), None, self.gate()))
        self.servers = servers
        return servers[0], servers[1] if len(servers) > 1 else None

    def gate(self) -> Gate:
        """The limits of connections of one port."""
        settings = self.settings
        return Gate(settings.concurrency, settings.connections_per_address)

    def server(self, app: Any, certificate: Certificate | None, gate: Gate) -> Server:
        """One server in this loop, as `performance.md` §1 has it."""
        settings = self.settings
        config = uvicorn.Config(
            app,
            http=connection(
                lambda: self.state.draining,
                settings.connection_age,
                gate,
                settings.client_ca_name if certificate else (),
            ),
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            log_level=logging.WARNING,  # its own words on starting and ending are told already
            access_log=False,
            proxy_headers=False,
            server_header=False,
            date_header=False,
            timeout_keep_alive=settings.keep_alive,
            timeout_graceful_shutdown=GRACE_SECONDS,
            ssl_context_factory=(lambda *_: certificate.context) if certificate else None,
        )
        made = Server(config)
        made.gate = gate
        return made

    def announce(self) -> None:
        """The one line that says what was started, told by the first worker."""
        self.started.set()
        if self.number:
            return
        count = getattr(self.state.judge, "policies", None)
        listeners = self.listeners
        scheme = "https" if self.certificate else "http"
        apart = f", metrics http://{named(listeners.metrics)}" if listeners.metrics else ""
        days = (
            f", certificate for {self.certificate.days_left():.0f} days" if self.certificate else ""
        )
        log.info(
            "podgate serves %s://%s%s: %s policies, workers %d%s",
            scheme,
            named(listeners.reviews),
            apart,
            "no" if self.state.judge is None else "?" if count is None else count,
            self.settings.workers or cpu_count(),
            days,
        )

    async def live(self) -> None:
        """Beat once a second; a worker whose supervisor is gone ends."""
        while True:
            self.beat()
            if self.orphaned():
                log.error("the supervisor is gone, so this worker ends")
                self.stop_here()
                return
            await asyncio.sleep(1.0)

    async def watch(self) -> None:
        """Look for new certificates and documents; a catalog that never loaded is tried again."""
        idle = 0.0
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            idle += WATCH_SECONDS
            try:
                await asyncio.to_thread(self.look_at_certificate)
                await asyncio.to_thread(self.look_at_snapshot)
                overdue = self.state.judge is None and idle >= RETRY_SECONDS
                if await asyncio.to_thread(self.changed) or overdue:
                    idle = 0.0
                    await asyncio.to_thread(self.reload)
            except Exception:
                log.exception("looking for changes failed")

    def look_at_certificate(self) -> None:
        """Exchange the certificate when its files changed."""
        if self.certificate is None:
            return
        failures = self.certificate.failures
        if self.certificate.refresh():
            self.metrics.succeeded("certificate")
        if self.certificate.failures > failures:
            self.metrics.failed("certificate")
        self.note(self.certificate)

    def note(self, certificate: Certificate) -> None:
        """Let metrics and readiness know the certificate that is served."""
        self.metrics.certificate(certificate.not_after)
        self.state.leaf = certificate.fingerprint
        self.state.leaf_ends = certificate.not_after.timestamp()

    def look_at_snapshot(self) -> None:
        """Note when the documents of the cluster were last known to be the newest."""
        heard = getattr(self.state.judge, "heard", None)
        moment = heard() if heard is not None else None
        if moment:
            self.metrics.heard_at(moment)
        tell = getattr(self.state.judge, "tell_rewriting", None)
        if tell is not None and self.rewriting.changed:
            tell(self.rewriting.rows())

    def reload(self) -> None:
        """Load a catalog and put it to use; whatever fails, the last good one stays in use."""
        try:
            judge = self.load()
        except LoadError as error:
            for problem in error.problems:
                log.error("%s", wording.problem_text(problem))  # noqa: TRY400 - for its author
            self.kept(f"{len(error.problems)} problems in the documents, see the log")
            return
        except Exception as error:
            log.exception("loading the documents failed: %s", type(error).__name__)
            self.kept(f"loading the documents failed ({type(error).__name__}), see the log")
            return
        self.use(judge)

    def kept(self, why: str) -> None:
        """A load failed."""
        self.metrics.failed("catalog")
        self.state.trouble = f"no catalog is loaded: {why}"
        if self.state.judge is not None:
            log.error("catalog %d stays in use: %s", self.state.generation, why)

    def use(self, judge: Judge) -> None:
        """Swap the judge in, and keep the collector from going through it for a long while.

        A catalog has no cycles, so the old one goes at once, and only what is new since the last
        swap is looked at. What else was frozen and has died in cycles, such as connections, is found
        at every COLLECTED_EVERY-th swap: going through everything holds up reviews for 0.1 s.
        """
        self.state.judge = judge
        self.loaded()
        self.state.generation += 1
        if self.state.generation % COLLECTED_EVERY == 0:
            gc.unfreeze()
        gc.collect()
        gc.freeze()
        gc.set_threshold(*COLLECTION)
        self.metrics.swapped(self.state.generation)
        self.metrics.succeeded("catalog")
        if self.certificate is not None:
            self.note(self.certificate)
        counts = getattr(judge, "documents", {})
        self.metrics.documents(counts)
        told = ", ".join(f"{count} of {kind}" for kind, count in counts.items())
        if counts or self.state.generation > 1:
            log.info("catalog %d is in use%s", self.state.generation, f": {told}" if told else "")
        selects = getattr(judge, "selects_namespaces", False)
        if selects and self.namespaces.credentials is None and not self.number:
            log.warning("policies select namespaces by their labels, but %s", NO_ACCESS)
            log.warning("until then reviews that depend on such labels are answered with an error")

    async def drain(self, reviews: Server) -> None:
        """Be unready and close each connection after its answer for a while, then end for good."""
        log.info("draining for %.0f s", self.settings.drain)
        self.state.draining = True
        until = time.monotonic() + self.settings.drain
        while time.monotonic() < until and not reviews.should_exit:
            await asyncio.sleep(0.05)
        reviews.should_exit = True

    def watch_rewriting(self, request: Request, decision: Allowed) -> None:
        """Count an update that only takes away what podgate wrote; tell of a habit once an hour."""
        if not is_rewriting(request, decision):
            return
        count = self.rewriting.note(request, decision)
        if count:
            self.metrics.update_rewritten(request.kind)
        if count >= OFTEN:
            fields = {each.field for each in decision.changes}
            self.events.send(rewriting_event(request, fields, datetime.now(UTC)))

    def observe(self, seen: Observation) -> None:
        """Count and log one review, from outside the decision."""
        request, outcome = seen.request, outcome_of(seen)
        self.metrics.answered(
            seen.stage.value,
            request.kind if request else "",
            request.operation if request else "",
            outcome,
            request.dry_run if request else False,
            seen.seconds,
            seen.phases.wait,
        )
        if self.traces is not None:
            self.traces.tell(span_of(seen, outcome), seen.seconds)
        decision, reason = seen.decision, not_evaluated(seen)
        if reason:
            self.metrics.not_evaluated(seen.stage.value, reason)
        if request is not None and isinstance(decision, Allowed):
            self.watch_rewriting(request, decision)
        if request is not None and isinstance(decision, Denied):
            self.events.tell(request, decision)
            if decision.tell is not None and not request.dry_run:
                self.metrics.child_refused(decision.tell.kind)
        for each in decision.excused if decision else ():
            policy = each.violation.source.policy if each.violation.source else ""
            self.metrics.excused(each.exception, policy, each.violation.rule)
        for broken in (*(decision.audit if decision else ()), *refused(seen)):
            self.metrics.broken(broken.source.policy if broken.source else "", broken.rule)
        log_review(seen, outcome)


def log_review(seen: Observation, outcome: str) -> None:
    """Log a review that was not simply allowed, with its reason; no value of the object."""
    message, error = outcome, seen.error
    if error is not None:
        level, message = logging.ERROR, "evaluation failed"
    elif seen.fault:
        level, message = logging.WARNING, "a review was not evaluated"
    elif isinstance(seen.decision, Denied) or (seen.decision and seen.decision.audit):
        level = logging.INFO
    elif reason := not_evaluated(seen):
        level = logging.INFO if reason in UNDEFINED else logging.DEBUG
    else:
        return
    if log.isEnabledFor(level):
        log.log(level, "%s", message, exc_info=error, extra={telemetry.FACTS: facts_of(seen)})
