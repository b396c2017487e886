"""PolicyReports of existing objects: one per namespace, of limited size, in the format of either API."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from webhook.decision.messages import violation_text
from webhook.documents import texts
from webhook.evaluation.outcome import FAULT, Violation

Json = dict[str, Any]
APIS: Final = ("openreports.io/v1alpha1", "wgpolicyk8s.io/v1alpha2")
"""The newer API comes first; two of its field names differ."""
KINDS: Final = {APIS[0]: ("Report", "reports"), APIS[1]: ("PolicyReport", "policyreports")}
NONE_OF_THEM: Final = "neither openreports.io nor wgpolicyk8s.io"
MOST: Final = 500
NAME: Final = "podgate"
LONGEST: Final = 1_000


def path_of(api: str, namespace: str) -> str:
    """The path of the report of a namespace."""
    return f"/apis/{api}/namespaces/{namespace}/{KINDS[api][1]}/{NAME}"


def report(
    api: str, namespace: str, results: Sequence[Json], counts: Mapping[str, int], now: int
) -> Json:
    """The report of one namespace: results, and how many there are of each kind.

    At most MOST results are listed.
    """
    return {
        "apiVersion": api,
        "kind": KINDS[api][0],
        "metadata": {
            "name": NAME,
            "namespace": namespace,
            "labels": {"app.kubernetes.io/managed-by": NAME},
        },
        "summary": dict.fromkeys(("pass", "fail", "warn", "error", "skip"), 0) | dict(counts),
        "results": [{**each, "timestamp": {"seconds": now, "nanos": 0}} for each in results[:MOST]],
    }


def essence(body: Json) -> Any:
    """The content of a report without its times."""
    listed = [
        {key: value for key, value in each.items() if key != "timestamp"}
        for each in body.get("results") or ()
    ]
    return body.get("summary"), listed


def results_of(
    api: str, subject: Mapping[str, str], violations: Iterable[Violation], *, warn: bool
) -> Iterable[Json]:
    """One result for each broken rule of an object: fail, or warn where the policy is in warn mode."""
    for each in violations:
        source = each.source
        yield {
            "source": NAME,
            "policy": source.policy if source else NAME,
            "rule": f"{each.field}/{each.rule}" if each.field else each.reason,
            "result": "warn" if warn else "fail",
            "severity": "medium" if warn else "high",
            **describe_result(api, subject, violation_text(each)),
        }


def fault_of(api: str, subject: Mapping[str, str]) -> Json:
    """The result for an object that podgate itself fails on."""
    text = "podgate has a fault, so the object is not evaluated; its controller's log has more"
    head = {"source": NAME, "policy": NAME, "rule": FAULT, "result": "error", "severity": "high"}
    return {**head, **describe_result(api, subject, text)}


def describe_result(api: str, subject: Mapping[str, str], text: str) -> Json:
    """Return the result of one object in the form of the API."""
    text_key, subjects = ("description", "subjects") if api == APIS[0] else ("message", "resources")
    return {text_key: texts.cut(text, LONGEST), subjects: [dict(subject)]}
