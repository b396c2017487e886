"""PolicyReports of what is already there: one for each namespace, bounded, in either API's form."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from webhook.decision import messages as wording
from webhook.documents import texts
from webhook.evaluation.outcome import FAULT, Violation

Json = dict[str, Any]
APIS: Final = ("openreports.io/v1alpha1", "wgpolicyk8s.io/v1alpha2")
"""The newer one comes first; its field names differ in one place."""
KINDS: Final = {APIS[0]: ("Report", "reports"), APIS[1]: ("PolicyReport", "policyreports")}
NONE_OF_THEM: Final = "neither openreports.io nor wgpolicyk8s.io"
MOST: Final = 500
NAME: Final = "podgate"
LONGEST: Final = 1_000


def path_of(api: str, namespace: str) -> str:
    """The path of the report of a namespace."""
    return f"/apis/{api}/namespaces/{namespace}/{KINDS[api][1]}/{NAME}"


def report(api: str, namespace: str, results: Iterable[Json], passed: int, now: int) -> Json:
    """The report of one namespace. Counts are of all results, of which the first MOST are listed."""
    listed = list(results)
    counts = dict.fromkeys(("pass", "fail", "warn", "error", "skip"), 0)
    counts["pass"] = passed
    for each in listed:
        counts[each["result"]] += 1
    return {
        "apiVersion": api,
        "kind": KINDS[api][0],
        "metadata": {
            "name": NAME,
            "namespace": namespace,
            "labels": {"app.kubernetes.io/managed-by": NAME},
        },
        "summary": counts,
        "results": [{**each, "timestamp": {"seconds": now, "nanos": 0}} for each in listed[:MOST]],
    }


def essence(body: Json) -> Any:
    """What a report says, its times aside."""
    listed = [
        {key: value for key, value in each.items() if key != "timestamp"}
        for each in body.get("results") or ()
    ]
    return body.get("summary"), listed


def results_of(
    api: str, subject: Mapping[str, str], violations: Iterable[Violation], *, trial: bool
) -> Iterable[Json]:
    """One result for each broken rule of an object: fail, or warn where the policy is on trial."""
    for each in violations:
        source = each.source
        yield {
            "source": NAME,
            "policy": source.policy if source else NAME,
            "rule": f"{each.field}/{each.rule}" if each.field else each.reason,
            "result": "warn" if trial else "fail",
            "severity": "medium" if trial else "high",
            **described(api, subject, wording.violation_text(each)),
        }


def fault_of(api: str, subject: Mapping[str, str]) -> Json:
    """The result for an object that podgate itself fails on."""
    text = "podgate has a fault, so the object is not evaluated; its controller's log has more"
    head = {"source": NAME, "policy": NAME, "rule": FAULT, "result": "error", "severity": "high"}
    return {**head, **described(api, subject, text)}


def described(api: str, subject: Mapping[str, str], text: str) -> Json:
    """Return the result of one object in the form of the API."""
    told, subjects = ("description", "subjects") if api == APIS[0] else ("message", "resources")
    return {told: texts.cut(text, LONGEST), subjects: [dict(subject)]}
