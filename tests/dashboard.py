"""The Grafana dashboard, from a table of rows and panels."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
ACROSS = 24
HIGH = 8


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel: queries by legend, a unit as Grafana has it, and how many of a row's 24 columns."""

    title: str
    queries: dict[str, str]
    unit: str = "short"
    width: int = 8
    form: str = "timeseries"


def quantile(metric: str, part: float) -> str:
    """A quantile of a histogram by stage, over five minutes."""
    return (
        f"histogram_quantile({part:g}, sum by (le, stage)"
        f' (rate({metric}_bucket{{pod=~"$pod"}}[5m])))'
    )


LATEST = 'time() - min by (pod) (podgate_snapshot_heard_timestamp_seconds{pod=~"$pod"} > 0)'
ROWS: dict[str, tuple[Panel, ...]] = {
    "At a glance": (
        Panel("Leaders", {"": "sum(podgate_leader)"}, width=4, form="stat"),
        Panel(
            "Validation fails closed",
            {
                "": "max(podgate_hooks_fail_closed{"
                'configuration="validatingwebhookconfiguration/podgate"})'
            },
            width=5,
            form="stat",
        ),
        Panel("Switched off", {"": "sum(podgate_hooks_switched_off)"}, width=5, form="stat"),
        Panel(
            "First certificate to end",
            {"": "min(podgate_certificate_not_after_seconds) - time()"},
            "s",
            5,
            "stat",
        ),
        Panel(
            "Documents not in force",
            {"": 'sum(podgate_documents{state=~"faulty|last-good|waiting"}) or vector(0)'},
            width=5,
            form="stat",
        ),
    ),
    "Reviews": (
        Panel(
            "Answers a second",
            {"{{outcome}}": 'sum by (outcome) (rate(podgate_requests_total{pod=~"$pod"}[5m]))'},
            "reqps",
        ),
        Panel(
            "Time to the answer",
            {
                "p50 {{stage}}": quantile("podgate_request_duration_seconds", 0.5),
                "p99 {{stage}}": quantile("podgate_request_duration_seconds", 0.99),
            },
            "s",
        ),
        Panel(
            "Time in the queue",
            {
                "p50 {{stage}}": quantile("podgate_request_wait_seconds", 0.5),
                "p99 {{stage}}": quantile("podgate_request_wait_seconds", 0.99),
            },
            "s",
        ),
        Panel(
            "Refusals a second by kind",
            {
                "{{kind}}": "topk(10, sum by (kind)"
                ' (rate(podgate_requests_total{outcome="denied",dry_run="false"}[5m])))'
            },
            "reqps",
        ),
        Panel(
            "Not evaluated",
            {"{{reason}}": "sum by (reason) (rate(podgate_not_evaluated_total[5m]))"},
            "reqps",
        ),
        Panel(
            "Broken rules",
            {
                "{{policy}} {{rule}}": "topk(10, sum by (policy, rule)"
                " (increase(podgate_violations_total[1h])))"
            },
        ),
        Panel(
            "Exceptions used",
            {
                "{{exception}}": "topk(10, sum by (exception)"
                " (increase(podgate_exceptions_used_total[1h])))"
            },
        ),
        Panel(
            "Refusals of controllers, by the workload's kind",
            {"{{owner}}": "sum by (owner) (increase(podgate_controller_refusals_total[1h]))"},
        ),
        Panel(
            "Events for owners",
            {"{{outcome}}": "sum by (outcome) (increase(podgate_owner_events_total[1h]))"},
        ),
        Panel(
            "Connections",
            {
                "{{pod}} open": 'sum by (pod) (podgate_connections{pod=~"$pod"})',
                "{{cause}} ended": "sum by (cause)"
                " (increase(podgate_connections_refused_total[5m]))",
            },
        ),
        Panel(
            "Updates that took away what podgate wrote",
            {"{{kind}}": "sum by (kind) (increase(podgate_rewritten_updates_total[1h]))"},
        ),
        Panel(
            "Namespaces looked up a second",
            {"{{outcome}}": "sum by (outcome) (rate(podgate_namespace_lookups_total[5m]))"},
            "reqps",
        ),
        Panel(
            "Owners looked up a second",
            {"{{outcome}}": "sum by (outcome) (rate(podgate_object_lookups_total[5m]))"},
            "reqps",
        ),
    ),
    "Documents": (
        Panel("Age of what is known of the cluster", {"{{pod}}": LATEST}, "s"),
        Panel(
            "Generation of the catalog",
            {"{{pod}}": 'min by (pod) (podgate_catalog_generation{pod=~"$pod"})'},
        ),
        Panel(
            "Age of the catalog",
            {
                "{{pod}}": "time() - min by (pod)"
                ' (podgate_catalog_loaded_timestamp_seconds{pod=~"$pod"})'
            },
            "s",
        ),
        Panel(
            "Failed reloads",
            {
                "{{what}}": "sum by (what) (increase(podgate_reload_failures_total[1h]))",
                "{{what}} fails now": "max by (what) (podgate_reload_failing)",
            },
        ),
        Panel(
            "Documents in force",
            {"{{kind}}": "min by (kind) (podgate_catalog_documents)"},
        ),
        Panel(
            "Documents by state", {"{{kind}} {{state}}": "max by (kind, state) (podgate_documents)"}
        ),
        Panel(
            "Served versions without a definition",
            {"{{objects}}": "max by (objects) (podgate_versions_without_definition)"},
        ),
        Panel(
            "jq",
            {
                "{{outcome}}": "sum by (outcome) (increase(podgate_jq_calls_total[1h]))",
                "processes that died": "sum(increase(podgate_jq_deaths_total[1h]))",
            },
        ),
    ),
    "The controller": (
        Panel("Leads", {"{{pod}}": "max by (pod) (podgate_leader)"}),
        Panel(
            "Hooks",
            {
                "proven": "max(podgate_hooks_proven)",
                "{{configuration}} fails closed": "max by (configuration) (podgate_hooks_fail_closed)",
                "{{configuration}} switched off": "max by (configuration) (podgate_hooks_switched_off)",
                "{{configuration}} contested": "max by (configuration) (podgate_hooks_contested)",
                "{{configuration}} narrowed": "max by (configuration) (podgate_hooks_narrowed)",
                "registered twice": "max(podgate_registered_twice)",
            },
        ),
        Panel(
            "Configurations written",
            {
                "{{configuration}} {{cause}}": "sum by (configuration, cause)"
                " (increase(podgate_configurations_written_total[1h]))"
            },
        ),
        Panel(
            "What the API server refused, and faults",
            {
                "{{task}} {{code}}": "sum by (task, code) (increase(podgate_api_errors_total[1h]))",
                "{{task}} bug": "sum by (task) (increase(podgate_controller_faults_total[1h]))",
            },
        ),
        Panel(
            "Certificates: time left",
            {"{{part}}": "min by (part) (podgate_certificate_not_after_seconds) - time()"},
            "s",
        ),
        Panel(
            "Since the last round",
            {"": "time() - max(podgate_reconcile_timestamp_seconds > 0)"},
            "s",
        ),
        Panel("Webhook processes", {"": "max(podgate_processes)"}),
        Panel("Objects at the last scan", {"{{result}}": "max by (result) (podgate_scan_objects)"}),
        Panel("Created claims", {"{{state}}": "max by (state) (podgate_created_claims)"}),
        Panel("Where reports go", {"{{api}}": "max by (api) (podgate_scan_reports)"}),
        Panel(
            "Looks at what is there",
            {
                "mean": "sum(rate(podgate_scan_duration_seconds_sum[1h]))"
                " / sum(rate(podgate_scan_duration_seconds_count[1h]))",
                "since the last": "time() - max(podgate_scan_timestamp_seconds > 0)",
            },
            "s",
        ),
    ),
}


def dashboard() -> str:
    """deploy/monitoring/grafana.json."""
    panels: list[Json] = []
    y = 0
    for title, found in ROWS.items():
        panels.append(
            {
                "id": len(panels) + 1,
                "type": "row",
                "title": title,
                "collapsed": False,
                "gridPos": {"h": 1, "w": ACROSS, "x": 0, "y": y},
                "panels": [],
            }
        )
        x, y = 0, y + 1
        for each in found:
            if x + each.width > ACROSS:
                x, y = 0, y + HIGH
            panels.append(drawn(each, len(panels) + 1, x, y))
            x += each.width
        y += HIGH
    body = {
        "title": "podgate",
        "uid": "podgate",
        "tags": ["podgate"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": [datasource(), pods()]},
        "panels": panels,
    }
    return json.dumps(body, indent=1) + "\n"


def drawn(panel: Panel, number: int, x: int, y: int) -> Json:
    """One panel as Grafana has it."""
    targets = [
        {
            "refId": chr(ord("A") + index),
            "datasource": SOURCE,
            "expr": query,
            "legendFormat": legend,
        }
        for index, (legend, query) in enumerate(panel.queries.items())
    ]
    return {
        "id": number,
        "type": panel.form,
        "title": panel.title,
        "datasource": SOURCE,
        "gridPos": {"h": HIGH, "w": panel.width, "x": x, "y": y},
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "targets": targets,
    }


def datasource() -> Json:
    """The choice of a Prometheus."""
    return {
        "name": "datasource",
        "label": "Prometheus",
        "type": "datasource",
        "query": "prometheus",
    }


def pods() -> Json:
    """The choice of the webhook's Pods."""
    return {
        "name": "pod",
        "label": "Pod",
        "type": "query",
        "datasource": SOURCE,
        "query": "label_values(podgate_catalog_generation, pod)",
        "refresh": 2,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all"},
    }
