"""Every metric as a row of a table: name, type, meaning, and the values of its labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from webhook.evaluation.outcome import NOT_EVALUATED_REASONS

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
SCAN_BUCKETS = (1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0)
Kind = Literal["counter", "gauge", "histogram"]
Values = tuple[str, ...] | str
"""The values of a label, or a sentence if they depend on the installation."""

CONFIGURATIONS = (
    "mutatingwebhookconfiguration/podgate",
    "validatingwebhookconfiguration/podgate",
    "validatingwebhookconfiguration/podgate-documents",
)
STAGES = ("mutate", "validate", "documents")
DOCUMENT_KINDS = "a kind of document; `ConfigMap` for all documents in ConfigMaps"
POLICIES = "the policy's name; `other` beyond the first 1000, empty where no policy is involved"


@dataclass(frozen=True, slots=True)
class Row:
    """One metric; the name is the one that Prometheus scrapes, so that of a counter ends in `_total`."""

    name: str
    kind: Kind
    meaning: str
    labels: Mapping[str, Values] = field(default_factory=dict)
    buckets: tuple[float, ...] = BUCKETS
    of_workers: Literal["livemin", "livemax", "livesum"] = "livemin"

    def counter(self, registry: CollectorRegistry) -> Counter:
        """The counter of a row. Known series start at 0, because Prometheus sees no increase in a
        series that begins with 1.
        """
        assert self.kind == "counter"
        made = Counter(self.name, self.meaning, tuple(self.labels), registry=registry)
        closed = [each for each in self.labels.values() if not isinstance(each, str)]
        if closed and len(closed) == len(self.labels):
            for values in product(*closed):
                made.labels(*values)
        return made

    def gauge(self, registry: CollectorRegistry) -> Gauge:
        """The gauge of a row, with one value for all running workers."""
        assert self.kind == "gauge"
        labels = tuple(self.labels)
        return Gauge(
            self.name, self.meaning, labels, registry=registry, multiprocess_mode=self.of_workers
        )

    def histogram(self, registry: CollectorRegistry) -> Histogram:
        """The metric of a histogram."""
        assert self.kind == "histogram"
        labels = tuple(self.labels)
        return Histogram(self.name, self.meaning, labels, registry=registry, buckets=self.buckets)


NOT_AFTER = Row(
    "podgate_certificate_not_after_seconds",
    "gauge",
    "Unix time at which a certificate expires: the serving certificate, the CA that signs, and the"
    " first of the published bundle.",
    {"part": ("leaf", "ca", "bundle")},
)
HEARD = Row(
    "podgate_snapshot_heard_timestamp_seconds",
    "gauge",
    "Unix time of the last answer or watch event from the API server, for the collection of documents"
    " whose last one is oldest; 0 or absent where documents come from files alone.",
)

REQUESTS = Row(
    "podgate_requests_total",
    "counter",
    "Number of admission reviews answered.",
    {
        "stage": STAGES,
        "kind": "the object's kind; `other` beyond the first 200, empty for requests that are no review",
        "operation": ("CREATE", "UPDATE", "DELETE", "CONNECT", "other"),
        "outcome": "allowed, patched, denied, not-evaluated, error, or the reason of a fault, such as"
        " deadline, not-ready, too-large, unknown-namespace",
        "dry_run": ("true", "false"),
    },
)
NOT_EVALUATED = Row(
    "podgate_not_evaluated_total",
    "counter",
    "Number of reviews answered without evaluating the object, by reason.",
    {"stage": STAGES, "reason": NOT_EVALUATED_REASONS},
)
DURATION = Row(
    "podgate_request_duration_seconds",
    "histogram",
    "Latency of reviews, from the first byte of the request to the answer.",
    {"stage": STAGES},
)
WAIT = Row(
    "podgate_request_wait_seconds",
    "histogram",
    "Time from the first byte of a review until its evaluation begins: reading the body, and the queue.",
    {"stage": STAGES},
)
VIOLATIONS = Row(
    "podgate_violations_total",
    "counter",
    "Number of broken rules, including those of policies in warn and audit mode.",
    {"policy": POLICIES, "rule": "a rule type, see rules.md, or a reason, see reasons.md"},
)
EXCEPTIONS = Row(
    "podgate_exceptions_used_total",
    "counter",
    "Number of broken rules that a PolicyException exempted.",
    {
        "exception": "its name; `other` beyond the first 1000",
        "policy": POLICIES,
        "rule": "as above",
    },
)
CHILDREN = Row(
    "podgate_controller_refusals_total",
    "counter",
    "Number of refused objects that a controller created for a workload; dry runs are not counted.",
    {"owner": "the workload's kind; `other` beyond the first 200"},
)
EVENTS = Row(
    "podgate_owner_events_total",
    "counter",
    "Number of events on workloads after podgate rejected an object of their controller, by outcome.",
    {"outcome": ("posted", "known", "dropped", "failed")},
)
REWRITTEN = Row(
    "podgate_rewritten_updates_total",
    "counter",
    "Number of updates that only removed what podgate had written, so that nothing changed. A user who"
    " keeps sending them is an operator that is not listed, see trustedControllers.",
    {"kind": "the object's kind; `other` beyond the first 200"},
)
GENERATION = Row(
    "podgate_catalog_generation", "gauge", "Number of catalogs loaded; the lowest of all workers."
)
LOADED = Row(
    "podgate_catalog_loaded_timestamp_seconds",
    "gauge",
    "Unix time at which the catalog in use was loaded; the oldest of all workers.",
)
FAILURES = Row(
    "podgate_reload_failures_total",
    "counter",
    "Number of failed reloads; the previous version stays in use.",
    {"what": ("catalog", "certificate")},
)
FAILING = Row(
    "podgate_reload_failing",
    "gauge",
    "1 while the newest version cannot be loaded by some worker and the previous one stays in use, else 0.",
    {"what": ("catalog", "certificate")},
    of_workers="livemax",
)
LOOKUPS = Row(
    "podgate_namespace_lookups_total",
    "counter",
    "Number of look-ups of a namespace's labels at the API server, by outcome.",
    {"outcome": ("found", "not-found", "denied", "timeout", "failed")},
)
OBJECT_LOOKUPS = Row(
    "podgate_object_lookups_total",
    "counter",
    "Number of owners, and their revisions, read from the API server to check injected content, by outcome.",
    {"outcome": ("found", "not-found", "forbidden", "timeout", "failed")},
)
JQ_CALLS = Row(
    "podgate_jq_calls_total",
    "counter",
    "Number of jq evaluations for definitions, by outcome.",
    {"outcome": ("answered", "fault", "refused", "cancelled", "busy", "deadline", "died")},
)
JQ_DEATHS = Row(
    "podgate_jq_deaths_total",
    "counter",
    "Number of jq processes that ended unexpectedly; those stopped at the deadline are not counted.",
)
CONNECTIONS = Row(
    "podgate_connections",
    "gauge",
    "Number of open connections to the port of reviews, including those in the TLS handshake.",
    of_workers="livesum",
)
REFUSED = Row(
    "podgate_connections_refused_total",
    "counter",
    "Number of connections to the port of reviews that podgate closed: limit of an address or of all,"
    " no file descriptors left, failed handshake, certificate of another name, request that was late,"
    " too long or not HTTP.",
    {
        "cause": (
            "address",
            "full",
            "descriptors",
            "handshake",
            "client-name",
            "slow",
            "too-long",
            "malformed",
        )
    },
)
IN_FORCE = Row(
    "podgate_catalog_documents",
    "gauge",
    "Number of documents of each kind in the catalog in use, including shipped ones; the lowest of"
    " all workers.",
    {"kind": ("policy", "definition", "asset", "exception")},
)
ADMISSION = (
    CONNECTIONS,
    REFUSED,
    IN_FORCE,
    REQUESTS,
    NOT_EVALUATED,
    DURATION,
    WAIT,
    VIOLATIONS,
    EXCEPTIONS,
    CHILDREN,
    EVENTS,
    REWRITTEN,
    GENERATION,
    LOADED,
    FAILURES,
    FAILING,
    HEARD,
    NOT_AFTER,
    LOOKUPS,
    OBJECT_LOOKUPS,
    JQ_CALLS,
    JQ_DEATHS,
)

LEADER = Row("podgate_leader", "gauge", "1 for the controller that has the Lease, else 0.")
PROVEN = Row(
    "podgate_hooks_proven",
    "gauge",
    "1 once a probe has shown that the API server enforces refusals of the webhook, or if no probe is"
    " needed, else 0.",
)
CLOSED = Row(
    "podgate_hooks_fail_closed",
    "gauge",
    "1 for a configuration with failurePolicy Fail, 0 for one with Ignore; reported by the leader.",
    {"configuration": CONFIGURATIONS},
)
OFF = Row(
    "podgate_hooks_switched_off",
    "gauge",
    "1 for a configuration that is switched off (`podgate hooks off`), else 0; reported by the"
    " leader.",
    {"configuration": CONFIGURATIONS},
)
CONTESTED = Row(
    "podgate_hooks_contested",
    "gauge",
    "1 for a configuration that another client keeps changing, so that podgate writes it at growing"
    " intervals only, else 0; reported by the leader.",
    {"configuration": CONFIGURATIONS},
)
NARROWED = Row(
    "podgate_hooks_narrowed",
    "gauge",
    "Number of expressions that the platform (AKS, GKE Autopilot) added to the namespace selectors of"
    " a configuration. Namespaces that they leave out are not governed. Reported by the leader.",
    {"configuration": CONFIGURATIONS},
)
TWICE = Row(
    "podgate_registered_twice",
    "gauge",
    "1 if podgate is registered by files of the API server and through the API as well, so that every"
    " review comes twice, as far as the leader can see.",
)
WRITTEN = Row(
    "podgate_configurations_written_total",
    "counter",
    "Number of writes of webhook configurations: created, changed for another catalog, or restored"
    " after a change by another client.",
    {"configuration": CONFIGURATIONS, "cause": ("created", "changed", "drift")},
)
DOCUMENTS = Row(
    "podgate_documents",
    "gauge",
    "Number of documents in the cluster: in force in all processes, not yet in all of them, faulty with"
    " the last good version in force, faulty without one, or an exception that has ended; reported by"
    " the leader.",
    {"kind": DOCUMENT_KINDS, "state": ("in-force", "waiting", "last-good", "faulty", "ended")},
)
UNDEFINED = Row(
    "podgate_versions_without_definition",
    "gauge",
    "Number of versions that the cluster serves without a definition, of kinds with pods: their objects"
    " are converted to a version that has one, or not evaluated; reported by the leader.",
    {"objects": ("converted", "not-evaluated")},
)
PROCESSES = Row(
    "podgate_processes",
    "gauge",
    "Number of webhook processes that the leader asks for their generation of documents, including"
    " those that do not answer.",
)
ROUNDS = Row(
    "podgate_reconcile_timestamp_seconds",
    "gauge",
    "Unix time at which the leader last finished a round without an error.",
)
API_ERRORS = Row(
    "podgate_api_errors_total",
    "counter",
    "Number of requests of the controller that the API server refused or did not answer.",
    {
        "task": ("lease", "reconcile", "discovery", "probe", "scan", "rights", "claims"),
        "code": "an HTTP status, 0 without an answer",
    },
)
FAULTS = Row(
    "podgate_controller_faults_total",
    "counter",
    "Number of rounds that ended by a bug in podgate, see the log.",
    {"task": ("reconcile", "scan")},
)
SCAN = Row(
    "podgate_scan_duration_seconds",
    "histogram",
    "Duration of scans of all existing objects.",
    buckets=SCAN_BUCKETS,
)
SCANNED = Row("podgate_scan_timestamp_seconds", "gauge", "Unix time at which the last scan ended.")
REPORTS = Row(
    "podgate_scan_reports",
    "gauge",
    "1 for the API that the reports of a scan are written to, `none` if the cluster has neither;"
    " reported by the leader.",
    {"api": ("openreports.io/v1alpha1", "wgpolicyk8s.io/v1alpha2", "none")},
)
SCAN_RESULTS = ("pass", "fail", "warn", "error")
FINDINGS = Row(
    "podgate_scan_objects",
    "gauge",
    "Number of objects in the last scan: no rule broken, a rule broken, a rule of a policy in warn or"
    " audit mode broken, or not evaluated because of a fault in podgate.",
    {"result": SCAN_RESULTS},
)
CLAIMS = Row(
    "podgate_created_claims",
    "gauge",
    "Number of claims that policies ask for, if createClaims is on: created by podgate, created by"
    " another client and not adopted, refused (such as by a quota), or not created yet; reported by the"
    " leader.",
    {"state": ("present", "foreign", "refused", "pending")},
)
CONTROLLER = (
    LEADER,
    PROVEN,
    CLOSED,
    OFF,
    CONTESTED,
    NARROWED,
    TWICE,
    WRITTEN,
    DOCUMENTS,
    UNDEFINED,
    PROCESSES,
    ROUNDS,
    HEARD,
    NOT_AFTER,
    API_ERRORS,
    FAULTS,
    SCAN,
    SCANNED,
    REPORTS,
    FINDINGS,
    CLAIMS,
)
