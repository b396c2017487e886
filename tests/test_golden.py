"""Every golden case: what is expected comes, and what must hold of any decision holds of it.

`PODGATE_UPDATE_GOLDEN=1 pytest tests/test_golden.py` writes what came into the cases that differ.
"""

from __future__ import annotations

import copy
import json
import os
from dataclasses import replace

import jsonpatch
import pytest

from tests import golden_cases
from tests.golden_cases import CaseName
from webhook.admission.judge import decide_review
from webhook.cases import installation, run
from webhook.cases.case import Case, Outcome
from webhook.cases.compare import compare, violation_facts
from webhook.cases.read import cases_of
from webhook.cases.rewrite import rewrite
from webhook.cases.run_offline import evaluate_manifest, request_of
from webhook.catalog.catalog import Catalog
from webhook.decision.decide import decide
from webhook.decision.messages import change_text, refusal, violation_text, warning_text
from webhook.evaluation.intent import LAST_APPLIED
from webhook.evaluation.outcome import Allowed, Denied
from webhook.evaluation.references import References
from webhook.evaluation.request import Request, Stage

MARKER = "S3CRET"
UPDATING = os.environ.get("PODGATE_UPDATE_GOLDEN") == "1"
NAMES = golden_cases.all_names()


def test_every_case_of_every_file_is_run() -> None:
    """The names are read off the lines of a file; the cases are what reading the file yields."""
    for file in {each.file: None for each in NAMES}:
        cases = [(case.name, case.offline) for case in cases_of(file)]
        assert cases == [(each.name, each.offline) for each in golden_cases.names_in(file)], file


@pytest.mark.parametrize("name", NAMES, ids=str)
def test_case(name: CaseName) -> None:
    """The case, then what holds of every decision."""
    case = name.load()
    before = copy.deepcopy(case.given)
    catalog = installation.catalog_of(case)
    outcome = run.run_in(case, catalog)
    problems = ["the case has no expect"] if case.expect is None else []
    if case.expect is not None:
        problems += compare(case.expect, outcome)
        told = any(key in case.expect for key in ("object", "patch", "changes"))
        if case.expect.get("allowed") and not told:
            problems.append("expect says allowed without object, patch or changes")
    if problems and UPDATING:
        rewrite(case, outcome)
        problems = []
        print(f"rewrote expect of {case.file}")
    assert not problems, "\n".join([str(case.file), *problems])
    assert case.given == before, "the decision changed what it was given"
    tell_no_secrets(case, outcome)
    if isinstance(outcome.decision, Allowed):
        patched = jsonpatch.apply_patch(outcome.submitted, list(outcome.patch))
        assert patched == outcome.object, "the patch does not lead to the object"
        prove_stable(case, outcome, catalog)
    if case.offline:
        prove_twin(case, outcome, catalog)


def tell_no_secrets(case: Case, outcome: Outcome) -> None:
    """No text for people holds a planted value of env, args, command or annotations."""
    decision = outcome.decision
    texts = [warning_text(each) for each in decision.warnings]
    texts += [violation_text(each) for each in decision.audit]
    if isinstance(decision, Denied):
        texts += [violation_text(each) for each in decision.violations]
        texts.append(refusal(decision.violations))
        texts += [json.dumps(violation_facts(each)) for each in decision.violations]
    else:
        texts += [change_text(each) for each in decision.changes]
    assert not [each for each in texts if MARKER in each]


def prove_stable(case: Case, outcome: Outcome, catalog: Catalog) -> None:
    """Run on its own output nothing changes, and the validating pass allows the result."""
    references = installation.references_for(case)
    if not case.offline:
        request = replace(run.request_of(case), object=outcome.decision.object)
        if request.operation == "CREATE":
            prove_settled(case, request, catalog, references)
        return
    raw, place = case.given["object"], installation.place_of(case)
    again = evaluate_manifest(outcome.object, str(case.file), catalog, references, place)
    if isinstance(again.decision, Denied):
        # Written into a file, a blocked default is the author's repetition of it.
        assert {each.rule for each in again.decision.violations} == {"blocked"}
    else:
        assert not again.patch, "applied again, the completed manifest changes"
    request = replace(request_of(raw, outcome.decision.object, place), raw=None)
    final = decide(replace(request, stage=Stage.VALIDATE), catalog, references)
    assert isinstance(final, Allowed), f"the validating pass denies the result: {final}"


def prove_settled(case: Case, request: Request, catalog: Catalog, references: References) -> None:
    """Reinvoked on what came of it, it allows and writes nothing; the validating pass allows."""
    second = decide_review(replace(request, stage=Stage.MUTATE), catalog, references)
    assert isinstance(second, Allowed), f"reinvoked, it is denied: {second}"
    assert not second.patch, f"reinvoked, it changes again: {second.patch}"
    last = replace(request, stage=Stage.VALIDATE)
    final, _ = run.answer(case, last, catalog, references)
    assert isinstance(final, Allowed), f"the validating pass denies the result: {final}"


def prove_twin(case: Case, outcome: Outcome, catalog: Catalog) -> None:
    """kubectl apply of the manifest in a cluster: the same violations, or the same object."""
    references = installation.references_for(case)
    request = applied(case, catalog)
    if request is None:
        return
    first = decide(request, catalog, references)
    if isinstance(outcome.decision, Denied):
        assert isinstance(first, Denied), "a cluster would allow it"
        assert first.violations == outcome.decision.violations, "a cluster would say otherwise"
        return
    assert isinstance(first, Allowed), f"a cluster would deny it: {first}"
    prove_settled(case, replace(request, object=first.object), catalog, references)
    assert without_note(first.object) == outcome.decision.object, "a cluster would write otherwise"


def applied(case: Case, catalog: Catalog) -> Request | None:
    """The request of kubectl apply: server defaults filled in, the manifest in the annotation."""
    raw = case.given["object"]
    metadata = raw.get("metadata")
    if not isinstance(metadata, dict) or "annotations" not in metadata:
        # The annotation would make a map that the offline object does not have.
        if metadata is not None and not isinstance(metadata, dict):
            return None
        raw = {**raw, "metadata": {**(metadata or {}), "annotations": {}}}
    annotations = raw["metadata"]["annotations"]
    if not isinstance(annotations, dict) or LAST_APPLIED in annotations:
        return None  # kubectl would put its own note there
    noted = copy.deepcopy(raw)
    noted["metadata"]["annotations"][LAST_APPLIED] = json.dumps(raw)
    group, _, version = raw["apiVersion"].rpartition("/")
    definition = catalog.definition(group, raw["kind"], version)
    filled = noted if definition is None else catalog.complete(definition, noted)
    return replace(request_of(raw, filled, installation.place_of(case)), raw=None)


def without_note(document: object) -> object:
    """The object without the annotation, and without the map that it alone made."""
    result = copy.deepcopy(document)
    assert isinstance(result, dict)
    annotations = result["metadata"]["annotations"]
    del annotations[LAST_APPLIED]
    if not annotations:
        del result["metadata"]["annotations"]
    return result
