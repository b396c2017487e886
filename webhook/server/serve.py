"""The server: starts settings, certificate, catalog, HTTP and workers, and stops them in order."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import uvicorn
import uvloop

from webhook.admission.judge import Judge, JudgeStatus
from webhook.cluster.credentials import NO_ACCESS
from webhook.cluster.events import OwnerEvents, rewriting_event
from webhook.cluster.lookups import Lookups
from webhook.cluster.namespaces import Namespaces
from webhook.cluster.reader_connection import ReaderConnection
from webhook.decision.messages import problem_text
from webhook.documents.problem import Problem
from webhook.evaluation.outcome import UNKNOWN_KIND, UNKNOWN_VERSION, Allowed, Denied
from webhook.evaluation.request import Request, is_rewriting
from webhook.libjq.evaluator import counting
from webhook.server.app import App, Reviews
from webhook.server.call import Limits, Observation, State
from webhook.server.connections import connection
from webhook.server.gate import Gate
from webhook.server.listeners import Listeners, Server, show_address
from webhook.server.log_fields import facts_of, not_evaluated, outcome_of, span_of, violations_of
from webhook.server.probes import probes
from webhook.server.rewriting import OFTEN, Rewriting
from webhook.server.workers import Pool, WorkerSlot, cpu_count
from webhook.service import metrics, telemetry, traces
from webhook.service.metrics import Metrics
from webhook.service.settings import Settings
from webhook.service.tls import Certificate, Files, TlsError
from webhook.service.traces import Traces
from webhook.sources.namespaces import WatchedLabels
from webhook.sources.reader import check_kubeconfig, read_cluster
from webhook.sources.snapshot import Snapshot

log = logging.getLogger("podgate")

Load = Callable[[], Judge]
Changed = Callable[[], bool]

WATCH_SECONDS = 2.0
RETRY_SECONDS = 15.0
WAIT_SECONDS = 0.2
GRACE_SECONDS = 10
# Files are checked every two seconds, so no signal triggers a reload. Workers inherit this.
UNDEFINED = (UNKNOWN_KIND, UNKNOWN_VERSION)
IGNORED = (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
COLLECTION = (50_000, 20, 100)
SWITCH = (
    0.0005  # seconds that a review waits for the thread that compiles a catalog; Python's are 0.005
)
COLLECTED_EVERY = 20


class LoadError(Exception):
    """The documents of a catalog have errors; `problems` lists them all for their authors."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        """Each problem is printed on its own line."""
        super().__init__(f"{len(problems)} problems")
        self.problems = problems


def never() -> bool:
    """Return False: this catalog never changes."""
    return False


def serve(
    settings: Settings,
    load: Load,
    changed: Changed = never,
    snapshot: Snapshot | None = None,
) -> int:
    """Serve reviews until SIGTERM or SIGINT; the exit code: 0, 1 (failed), 2 (bad settings).

    `load` reads all documents and returns a judge; it raises LoadError for documents with errors.
    Each worker calls it once, and again in a thread whenever `changed`, called every two seconds,
    returns True. If it fails, the last good judge stays. `snapshot` is the Pod's folder, in which a
    process that reads the cluster answers the workers; None where there is no API server to ask.
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
    if settings.kubeconfig is not None and (wrong := check_kubeconfig(settings.kubeconfig)):
        log.error("cannot start: %s", wrong)
        return 2
    try:
        certificate = None if settings.plain_http else certificate_of(settings)
        listeners = Listeners.of(settings)
    except (TlsError, OSError) as error:
        log.error("cannot start: %s", error)  # noqa: TRY400 - expected, its stack says nothing
        return 1 if isinstance(error, OSError) else 2
    try:
        return run(settings, listeners, certificate, load, changed, snapshot)
    finally:
        listeners.close()


def run(
    settings: Settings,
    listeners: Listeners,
    certificate: Certificate | None,
    load: Load,
    changed: Changed,
    snapshot: Snapshot | None,
) -> int:
    """Serve in this process, or in as many workers as the settings or the CPUs require.

    A process that reads the cluster always has a process of its own.
    """
    count = settings.workers or cpu_count()
    given = settings, listeners, certificate, load, changed, snapshot
    if count == 1 and snapshot is None:
        return Process(*given).run()
    folder = metrics.share()
    try:
        work = worker_of(*given)
        read = None
        if snapshot is not None:
            parent = os.getpid()
            read = lambda slot: read_cluster(settings, snapshot, slot.beat, parent)  # noqa: E731
        stop_timeout = settings.drain + GRACE_SECONDS + 5
        return Pool(count, work, read, on_end=metrics.forget, stop_timeout=stop_timeout).run()
    finally:
        metrics.unshare(folder)


def refuse(problems: tuple[Problem, ...]) -> int:
    """Print the problems of the settings on stderr, one per line; return exit code 2."""
    for problem in problems:
        sys.stderr.write(f"{problem_text(problem)}\n")
    return 2


def worker_of(
    settings: Settings,
    listeners: Listeners,
    certificate: Certificate | None,
    load: Load,
    changed: Changed,
    snapshot: Snapshot | None,
) -> Callable[[WorkerSlot], int]:
    """Return what each worker process runs: the same as a single process, with a heartbeat."""
    supervisor = os.getpid()  # a worker might ask for its parent after that has ended

    def work(slot: WorkerSlot) -> int:
        process = Process(settings, listeners, certificate, load, changed, snapshot)
        process.number, process.beat = slot.number, slot.beat
        process.loaded, process.others_loaded = slot.note_loaded, slot.others_loaded
        process.orphaned = lambda: os.getppid() != supervisor
        return process.run()

    return work


def certificate_of(settings: Settings) -> Certificate:
    """The certificate of the settings; raises TlsError if it cannot be served."""
    assert settings.tls_cert is not None
    assert settings.tls_key is not None
    names = settings.tls_cert, settings.tls_key, settings.client_ca
    return Certificate(Files(*names, settings.tls_min_version))


@dataclass(slots=True)
class Process:
    """One process that answers reviews: the only one, or one of several workers."""

    settings: Settings
    listeners: Listeners
    certificate: Certificate | None
    load: Load
    changed: Changed = never
    snapshot: Snapshot | None = None
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
    owner_events: OwnerEvents = field(init=False)
    rewriting: Rewriting = field(default_factory=Rewriting)
    traces: Traces | None = None

    def __post_init__(self) -> None:
        """Prepare the readers of namespaces and objects, and the sender of events; no request is sent yet."""
        reader, labels = None, None
        if self.snapshot is not None:
            reader = ReaderConnection(self.snapshot.socket)
            labels = WatchedLabels(self.snapshot).find
        self.namespaces = Namespaces(reader, self.metrics.count_namespace_lookup, watched=labels)
        self.lookups = Lookups(reader, self.metrics.count_object_lookup)
        counting.on_outcome = self.metrics.count_jq_call
        sender = reader if self.settings.owner_events else None
        self.owner_events = OwnerEvents(sender, self.metrics.count_owner_event)
        if self.settings.traces:
            self.traces = Traces.to(self.settings.traces)

    def run(self) -> int:
        """Serve until a signal or `stop`."""
        sys.setswitchinterval(SWITCH)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            code = runner.run(self.main())
        if self.traces is not None:
            self.traces.close()
        return code

    def stop(self) -> None:
        """Request a graceful stop, from any thread; a second call stops at once."""
        assert self.loop is not None
        self.loop.call_soon_threadsafe(self.stop_here)

    def stop_here(self) -> None:
        """Request a stop, on the event loop."""
        assert self.stopping is not None
        if self.stopping.is_set():
            for server in self.servers:
                server.should_exit = server.force_exit = True
        self.stopping.set()

    async def main(self) -> int:
        """Start probes, then load the catalog, then serve reviews; stop in the reverse order.

        If other workers have a catalog, this worker accepts no connection before it has one too.
        """
        self.loop, self.stopping = asyncio.get_running_loop(), asyncio.Event()
        self.owner_events.loop = self.loop
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
        """Serve probes and scrapes, if they have their own port."""
        if plain is not None and self.listeners.metrics is not None:
            await plain.serve([self.listeners.metrics])

    def build(self) -> tuple[Server, Server | None]:
        """Return the server of reviews, and the server of metrics and probes if that has its own port."""
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
        gate.refused, gate.opened = (
            self.metrics.count_closed_connection,
            self.metrics.count_connections,
        )
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
            log_level=logging.WARNING,  # the server logs starts and stops itself
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
        """Log in the first worker that the server started, with its addresses."""
        self.started.set()
        if self.number:
            return
        judge, listeners = self.state.judge, self.listeners
        scheme = "https" if self.certificate else "http"
        apart = f", metrics http://{show_address(listeners.metrics)}" if listeners.metrics else ""
        days = (
            f", certificate for {self.certificate.days_left():.0f} days" if self.certificate else ""
        )
        log.info(
            "podgate serves %s://%s%s: %s policies, workers %d%s",
            scheme,
            show_address(listeners.reviews),
            apart,
            "no" if judge is None else judge.status().policies,
            self.settings.workers or cpu_count(),
            days,
        )

    async def live(self) -> None:
        """Send a heartbeat each second; stop a worker whose supervisor is gone."""
        while True:
            self.beat()
            if self.orphaned():
                log.error("the supervisor is gone, so this worker ends")
                self.stop_here()
                return
            await asyncio.sleep(1.0)

    async def watch(self) -> None:
        """Check for new certificates and documents; retry a catalog that never loaded."""
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
        """Load the certificate again if its files changed."""
        if self.certificate is None:
            return
        failures = self.certificate.failures
        if self.certificate.refresh():
            self.metrics.note_reload("certificate")
        if self.certificate.failures > failures:
            self.metrics.count_failed_reload("certificate")
        self.note(self.certificate)

    def note(self, certificate: Certificate) -> None:
        """Update metrics and readiness with the served certificate."""
        self.metrics.certificate(certificate.not_after)
        self.state.leaf = certificate.fingerprint
        self.state.leaf_ends = certificate.not_after.timestamp()

    def look_at_snapshot(self) -> None:
        """Note when the cluster's documents were last known to be up to date."""
        status = self.state.judge.status() if self.state.judge is not None else JudgeStatus()
        if status.newest_at:
            self.metrics.note_heard(status.newest_at)
        if self.rewriting.changed and self.snapshot is not None:
            self.snapshot.report_rewriting(os.getpid(), self.rewriting.rows())

    def reload(self) -> None:
        """Load a catalog and use it; if that fails, the last good one stays in use."""
        try:
            judge = self.load()
        except LoadError as error:
            for problem in error.problems:
                log.error("%s", problem_text(problem))  # noqa: TRY400 - for its author
            self.note_failed_load(f"{len(error.problems)} problems in the documents, see the log")
            return
        except Exception as error:
            log.exception("loading the documents failed: %s", type(error).__name__)
            self.note_failed_load(
                f"loading the documents failed ({type(error).__name__}), see the log"
            )
            return
        self.use(judge)

    def note_failed_load(self, why: str) -> None:
        """Note that a load failed."""
        self.metrics.count_failed_reload("catalog")
        self.state.trouble = f"no catalog is loaded: {why}"
        if self.state.judge is not None:
            log.error("catalog %d stays in use: %s", self.state.generation, why)

    def use(self, judge: Judge) -> None:
        """Use a judge, and freeze its objects so that garbage collection skips them.

        A catalog has no cycles, so the old one is freed at once, and the collector visits only
        objects that are new since the last swap. Frozen garbage in cycles, such as closed
        connections, is collected at every COLLECTED_EVERY-th swap, because a full collection holds
        up reviews for 0.1 s.
        """
        self.state.judge = judge
        self.loaded()
        self.state.generation += 1
        if self.state.generation % COLLECTED_EVERY == 0:
            gc.unfreeze()
        gc.collect()
        gc.freeze()
        gc.set_threshold(*COLLECTION)
        self.metrics.note_catalog(self.state.generation)
        self.metrics.note_reload("catalog")
        if self.certificate is not None:
            self.note(self.certificate)
        status = judge.status()
        counts = status.documents
        self.metrics.documents(counts)
        totals = ", ".join(f"{count} of {kind}" for kind, count in counts.items())
        if counts or self.state.generation > 1:
            log.info(
                "catalog %d is in use%s", self.state.generation, f": {totals}" if totals else ""
            )
        if status.selects_namespaces and self.namespaces.server is None and not self.number:
            log.warning("policies select namespaces by their labels, but %s", NO_ACCESS)
            log.warning("until then reviews that depend on such labels are answered with an error")

    async def drain(self, reviews: Server) -> None:
        """Become unready and close each connection after its answer for a while, then stop."""
        log.info("draining for %.0f s", self.settings.drain)
        self.state.draining = True
        until = time.monotonic() + self.settings.drain
        while time.monotonic() < until and not reviews.should_exit:
            await asyncio.sleep(0.05)
        reviews.should_exit = True

    def watch_rewriting(self, request: Request, decision: Allowed) -> None:
        """Count an update that only removes values that podgate wrote; post an event at most once an hour."""
        if not is_rewriting(request, decision):
            return
        count = self.rewriting.note(request, decision)
        if count:
            self.metrics.count_rewriting_update(request.kind)
        if count >= OFTEN:
            fields = {each.field for each in decision.changes}
            self.owner_events.send(rewriting_event(request, fields, datetime.now(UTC)))

    def observe(self, seen: Observation) -> None:
        """Count and log one review; this is not part of the decision."""
        request, outcome = seen.request, outcome_of(seen)
        self.metrics.count_review(
            seen.stage.value,
            request.kind if request else "",
            request.operation if request else "",
            outcome,
            request.dry_run if request else False,
            seen.seconds,
            seen.phases.wait,
        )
        if self.traces is not None:
            self.traces.record(span_of(seen, outcome), seen.seconds)
        decision, reason = seen.decision, not_evaluated(seen)
        if reason:
            self.metrics.count_unevaluated(seen.stage.value, reason)
        if request is not None and isinstance(decision, Allowed):
            self.watch_rewriting(request, decision)
        if request is not None and isinstance(decision, Denied):
            self.owner_events.report(request, decision)
            if decision.report_to is not None and not request.dry_run:
                self.metrics.count_rejected_child(decision.report_to.kind)
        for each in decision.excused if decision else ():
            policy = each.violation.source.policy if each.violation.source else ""
            self.metrics.count_exempted(each.exception, policy, each.violation.rule)
        for broken in (*(decision.audit if decision else ()), *violations_of(seen)):
            self.metrics.count_violation(broken.source.policy if broken.source else "", broken.rule)
        log_review(seen, outcome)


def log_review(seen: Observation, outcome: str) -> None:
    """Log a review unless it was simply allowed, with its reason and without values of the object."""
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
