"""podgate review: reads one AdmissionReview and prints the response of the webhook."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Annotated

import orjson
import typer

from webhook.admission.judge import decide_review
from webhook.admission.review import ReviewFault, fault_response, parse_review, respond
from webhook.cases.run_offline import policies_for
from webhook.catalog.catalog import Catalog
from webhook.cli import loading, outcomes
from webhook.cli.outcomes import Tally
from webhook.decision.messages import not_evaluated_text
from webhook.documents import texts
from webhook.documents.problem import Problem
from webhook.documents.yaml_source import read_documents
from webhook.evaluation.outcome import REFUSED, outcome_of, why_not_evaluated
from webhook.evaluation.references import References
from webhook.evaluation.request import Stage
from webhook.libjq.evaluator import get_evaluator
from webhook.policy.combine import GUARDED
from webhook.service import clock
from webhook.sources.files import origin_of, problem_of, read_file
from webhook.sources.load import DEFAULT_MINOR

SEND = "give an AdmissionReview of admission.k8s.io/v1 as the API server sends it"
STAGES = tuple(each.value for each in Stage)
File = Annotated[str, typer.Argument(metavar="FILE", help="The AdmissionReview, or - for stdin.")]
StageName = Annotated[
    str, typer.Option("--stage", help="Which endpoint answers: mutate, validate.")
]


def review(
    file: File = "-",
    policies: loading.Policies = None,
    interfaces: loading.Interfaces = None,
    assets: loading.Assets = None,
    crds: loading.Crds = None,
    namespace_labels: loading.NamespaceLabels = "",
    workload_type: loading.WorkloadType = None,
    rule_combination: loading.Combination = GUARDED,
    kubernetes: loading.Minor = DEFAULT_MINOR,
    stage: StageName = "mutate",
    fail_on: outcomes.FailOn = REFUSED,
    strict: outcomes.Strict = False,
) -> None:
    """Answer one AdmissionReview (JSON or YAML) as the webhook would; the response is JSON.

    The last line on stderr shows whether the object is allowed, refused or not evaluated, and why.
    Exit code 0: nothing that --fail-on names occurred, 1: something did (by default a
    refusal), 2: bad input.
    """
    try:
        tally = Tally(outcomes.failing_on(fail_on, strict=strict))
        loading.check_choice(stage, STAGES, "--stage")
        labels = loading.labels_of(namespace_labels)
        sources = loading.sources_of(
            policies,
            interfaces,
            assets,
            workload_type=workload_type,
            combination=rule_combination,
            minor=kubernetes,
            crds=crds,
        )
        catalog = loading.catalog_of(sources, tally)
        code = answer(read_review(file), origin_of(file), Stage(stage), catalog, labels, tally)
    except loading.BadInput:
        code = loading.BAD_INPUT
    raise typer.Exit(code)


def read_review(file: str) -> bytes:
    """The review as JSON text; YAML is converted."""
    data = read_file(file)
    if isinstance(data, Problem):
        loading.print_problems([data])
        raise loading.BadInput
    if data.lstrip()[:1] == b"{":
        return data
    documents, faults = read_documents(data, origin_of(file), kubernetes=True)
    loading.print_problems(problem_of(fault) for fault in faults)
    if faults or len(documents) != 1:
        if not faults:
            loading.complain(
                f"error: {origin_of(file)}: found {len(documents)} documents; give one AdmissionReview"
            )
        raise loading.BadInput
    try:
        return orjson.dumps(documents[0].data)
    except (TypeError, ValueError):
        loading.complain(f"error: {origin_of(file)}: nested too deep or no JSON data")
        raise loading.BadInput from None


def answer(
    body: bytes,
    origin: str,
    stage: Stage,
    catalog: Catalog,
    labels: dict[str, str],
    tally: Tally,
) -> int:
    """Print the response; return the exit code."""
    request = parse_review(body, stage)
    if isinstance(request, ReviewFault):
        sys.stdout.write(fault_response(request).decode() + "\n")
        loading.complain(f"error: {texts.clean(f'{origin}: {request.message}')}; {SEND}")
        return 1 if request.denies else loading.BAD_INPUT
    references = References({request.namespace: labels})
    request = replace(request, time=clock.moment())
    decision = decide_review(request, catalog, references, get_evaluator())
    sys.stdout.write(respond(request, decision).decode() + "\n")
    audited = sum(outcomes.is_audited(each.source) for each in decision.audit)
    reason = why_not_evaluated(decision)
    tally.take(outcome_of(decision), reason, len(decision.warnings), audited)
    if reason:
        why = not_evaluated_text(reason, decision.warnings)
        loading.complain(f"{request.kind}/{request.name or '(unnamed)'}: not evaluated: {why}")
    else:
        found = policies_for(request, decision, catalog, references)
        tally.policies.update((each.source, each) for each in found)
    return tally.close()
