"""Every metric as a row of a table: name, type, meaning, and what its labels may be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from webhook.core.decision import NOT_EVALUATED_REASONS

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
SCAN_BUCKETS = (1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0)
Kind = Literal["counter", "gauge", "histogram"]
Values = tuple[str, ...] | str
"""What a label may be: all its values, or a sentence where they depend on the installation."""

CONFIGURATIONS = (
    "mutatingwebhookconfiguration/podgate",
    "validatingwebhookconfiguration/podgate",
    "validatingwebhookconfiguration/podgate-documents",
)
STAGES = ("mutate", "validate", "documents")
DOCUMENT_KINDS = "a kind of document; `ConfigMap` for all that are in such"
POLICIES = "the policy's name; `other` beyond the first 1000, empty for what no policy says"


@dataclass(frozen=True, slots=True)
class Row:
    """One metric; the name is the one that is scraped, so that a counter's ends in `_total`."""

    name: str
    kind: Kind
    meaning: str
    labels: Mapping[str, Values] = field(default_factory=dict)
    buckets: tuple[float, ...] = BUCKETS
    of_workers: Literal["livemin", "livemax", "livesum"] = "livemin"

    def counter(self, registry: CollectorRegistry) -> Counter:
        """The metric of a row that is a counter; a series that may be known is there from the start,

        at zero, as Prometheus sees no increase in a series that begins with 1.
        """
        assert self.kind == "counter"
        made = Counter(self.name, self.meaning, tuple(self.labels), registry=registry)
        closed = [each for each in self.labels.values() if not isinstance(each, str)]
        if closed and len(closed) == len(self.labels):
            for values in product(*closed):
                made.labels(*values)
        return made

    def gauge(self, registry: CollectorRegistry) -> Gauge:
        """The metric of a gauge, which shows one value for all living workers."""
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
    "When a certificate ends, in Unix time: the leaf as it is served, the CA that signs, the first"
    " of the published bundle to end.",
    {"part": ("leaf", "ca", "bundle")},
)
HEARD = Row(
    "podgate_snapshot_heard_timestamp_seconds",
    "gauge",
    "When the API server last said anything on the collection of documents that it was silent on"
    " for longest, in Unix time; 0 or absent where documents come from files alone.",
)

REQUESTS = Row(
    "podgate_requests_total",
    "counter",
    "Reviews answered.",
    {
        "stage": STAGES,
        "kind": "the object's kind; `other` beyond the first 200, empty for what is no review",
        "operation": ("CREATE", "UPDATE", "DELETE", "CONNECT", "other"),
        "outcome": "allowed, patched, denied, not-evaluated, error, or the reason of a fault, such as"
        " deadline, not-ready, too-large, unknown-namespace",
        "dry_run": ("true", "false"),
    },
)
NOT_EVALUATED = Row(
    "podgate_not_evaluated_total",
    "counter",
    "Reviews that were answered without evaluating the object, by the reason.",
    {"stage": STAGES, "reason": NOT_EVALUATED_REASONS},
)
DURATION = Row(
    "podgate_request_duration_seconds",
    "histogram",
    "From the first byte of a review to its answer.",
    {"stage": STAGES},
)
WAIT = Row(
    "podgate_request_wait_seconds",
    "histogram",
    "From the first byte of a review until it is looked at: its body, and the queue.",
    {"stage": STAGES},
)
VIOLATIONS = Row(
    "podgate_violations_total",
    "counter",
    "Broken rules, those of policies on trial included.",
    {"policy": POLICIES, "rule": "a rule type, see rules.md, or a reason, see reasons.md"},
)
EXCEPTIONS = Row(
    "podgate_exceptions_used_total",
    "counter",
    "Broken rules that a PolicyException excused.",
    {
        "exception": "its name; `other` beyond the first 1000",
        "policy": POLICIES,
        "rule": "as above",
    },
)
CHILDREN = Row(
    "podgate_controller_refusals_total",
    "counter",
    "Refusals of what a controller makes of somebody's workload; dry runs are not counted.",
    {"owner": "the workload's kind; `other` beyond the first 200"},
)
EVENTS = Row(
    "podgate_owner_events_total",
    "counter",
    "Events for owners whose controller was refused what it makes of them.",
    {"outcome": ("told", "known", "dropped", "failed")},
)
REWRITTEN = Row(
    "podgate_rewritten_updates_total",
    "counter",
    "Updates that only took away what podgate had written, so that nothing changed. A user who keeps"
    " doing so is an operator that nobody has listed, see trustedControllers.",
    {"kind": "the object's kind; `other` beyond the first 200"},
)
GENERATION = Row(
    "podgate_catalog_generation", "gauge", "Catalogs loaded so far; the lowest worker."
)
LOADED = Row(
    "podgate_catalog_loaded_timestamp_seconds",
    "gauge",
    "When the catalog in use was loaded, in Unix time; the oldest of the workers.",
)
FAILURES = Row(
    "podgate_reload_failures_total",
    "counter",
    "Reloads that kept the old one.",
    {"what": ("catalog", "certificate")},
)
FAILING = Row(
    "podgate_reload_failing",
    "gauge",
    "1 while what is there cannot be loaded and the old one stays in use, in any worker, else 0.",
    {"what": ("catalog", "certificate")},
    of_workers="livemax",
)
LOOKUPS = Row(
    "podgate_namespace_lookups_total",
    "counter",
    "Namespaces asked of the API server for their labels.",
    {"outcome": ("found", "not-found", "denied", "timeout", "failed")},
)
OBJECT_LOOKUPS = Row(
    "podgate_object_lookups_total",
    "counter",
    "Owners of injected content, and their revisions, read from the API server.",
    {"outcome": ("found", "not-found", "forbidden", "timeout", "failed")},
)
JQ_CALLS = Row(
    "podgate_jq_calls_total",
    "counter",
    "Evaluations of jq that definitions asked for.",
    {"outcome": ("answered", "fault", "refused", "cancelled", "busy", "deadline", "died")},
)
JQ_DEATHS = Row(
    "podgate_jq_deaths_total",
    "counter",
    "jq processes that ended by themselves, in a call or between two; a missed deadline is none.",
)
CONNECTIONS = Row(
    "podgate_connections",
    "gauge",
    "Open connections to the port of reviews, those that shake hands included.",
    of_workers="livesum",
)
REFUSED = Row(
    "podgate_connections_refused_total",
    "counter",
    "Connections to the port of reviews that podgate ended: the limit of an address or of all, no"
    " file descriptors left, a handshake that failed, a certificate of another name, a request that"
    " did not come in time, that is too long or that is not HTTP.",
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
    "Documents of each kind in the catalog in use, shipped ones included; the lowest worker.",
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

LEADER = Row("podgate_leader", "gauge", "1 for the controller that holds the Lease, else 0.")
PROVEN = Row(
    "podgate_hooks_proven",
    "gauge",
    "1 once the API server was seen to take the webhook's no (or nothing is to be proven), else 0.",
)
CLOSED = Row(
    "podgate_hooks_fail_closed",
    "gauge",
    "1 for a configuration that refuses what podgate does not answer, 0 for one that lets it pass;"
    " told by the leader.",
    {"configuration": CONFIGURATIONS},
)
OFF = Row(
    "podgate_hooks_switched_off",
    "gauge",
    "1 for a configuration that somebody has switched off (`podgate hooks off`), else 0; told by"
    " the leader.",
    {"configuration": CONFIGURATIONS},
)
CONTESTED = Row(
    "podgate_hooks_contested",
    "gauge",
    "1 for a configuration that somebody else keeps changing, so that podgate writes it at growing"
    " intervals only, else 0; reported by the leader.",
    {"configuration": CONFIGURATIONS},
)
NARROWED = Row(
    "podgate_hooks_narrowed",
    "gauge",
    "Expressions that the platform (AKS, GKE Autopilot) added to the namespace selectors of a"
    " configuration. Namespaces that they leave out are not governed. Reported by the leader.",
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
    "Webhook configurations written: for the first time, for another catalog, or over what"
    " somebody else had made of them.",
    {"configuration": CONFIGURATIONS, "cause": ("created", "changed", "drift")},
)
DOCUMENTS = Row(
    "podgate_documents",
    "gauge",
    "Documents in the cluster: judged by in all processes, on their way there, faulty with their"
    " last good version in force, faulty with none, or an exception that has ended; told by the"
    " leader.",
    {"kind": DOCUMENT_KINDS, "state": ("in-force", "waiting", "last-good", "faulty", "ended")},
)
UNDEFINED = Row(
    "podgate_versions_without_definition",
    "gauge",
    "Kinds with pods, and versions of governed kinds, that the cluster serves and no definition is"
    " for: shown to podgate in a version that has one, or not judged at all; told by the leader.",
    {"objects": ("converted", "not-judged")},
)
PROCESSES = Row(
    "podgate_processes",
    "gauge",
    "Webhook processes that were asked what they judge by, those without an answer included; told"
    " by the leader.",
)
ROUNDS = Row(
    "podgate_reconcile_timestamp_seconds",
    "gauge",
    "When the leader last finished a round without an error, in Unix time.",
)
API_ERRORS = Row(
    "podgate_api_errors_total",
    "counter",
    "What the API server refused or did not answer, for the controller.",
    {
        "task": ("lease", "reconcile", "discovery", "probe", "scan", "rights", "claims"),
        "code": "an HTTP status, 0 without an answer",
    },
)
FAULTS = Row(
    "podgate_controller_faults_total",
    "counter",
    "Rounds that ended by a bug of podgate's, see the log.",
    {"task": ("reconcile", "scan")},
)
SCAN = Row(
    "podgate_scan_duration_seconds",
    "histogram",
    "One look at everything that is already there.",
    buckets=SCAN_BUCKETS,
)
SCANNED = Row(
    "podgate_scan_timestamp_seconds", "gauge", "When the last look was finished, in Unix time."
)
REPORTS = Row(
    "podgate_scan_reports",
    "gauge",
    "1 for the API that takes the reports of a look, `none` where the cluster has neither; told by"
    " the leader that looks.",
    {"api": ("openreports.io/v1alpha1", "wgpolicyk8s.io/v1alpha2", "none")},
)
SCAN_RESULTS = ("pass", "fail", "trial", "error")
FINDINGS = Row(
    "podgate_scan_objects",
    "gauge",
    "Objects that the last look saw: as they should be, breaking a rule, breaking one on trial, or"
    " not evaluated as podgate has a fault.",
    {"result": SCAN_RESULTS},
)
CLAIMS = Row(
    "podgate_created_claims",
    "gauge",
    "Claims that policies want created, where createClaims is on: there by podgate, there by somebody"
    " else and not adopted, refused (such as by a quota), or not there yet; reported by the leader.",
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
