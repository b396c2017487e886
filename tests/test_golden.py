"""Every golden case: what is expected comes, and what must hold of any decision holds of it.

`PODGATE_UPDATE_GOLDEN=1 pytest tests/test_golden.py` writes what came into the cases that differ.
"""

from __future__ import annotations

import copy
import json
import os
from dataclasses import replace
from pathlib import Path

import jsonpatch
import pytest

from webhook.admission.judge import judge_review
from webhook.cases import compare as comparing
from webhook.cases import installation
from webhook.cases import read as reading
from webhook.cases import rewrite as rewriting
from webhook.cases import run as running
from webhook.cases.case import Case, Outcome
from webhook.cases.run_offline import judge, request_of
from webhook.catalog.catalog import Catalog
from webhook.decision import messages as wording
from webhook.decision.decide import decide
from webhook.evaluation.intent import LAST_APPLIED
from webhook.evaluation.outcome import Allowed, Denied
from webhook.evaluation.references import References
from webhook.evaluation.request import Request, Stage

GOLDEN = Path(__file__).parent / "golden"
MARKER = "S3CRET"
UPDATING = os.environ.get("PODGATE_UPDATE_GOLDEN") == "1"
ALL = reading.cases_in(GOLDEN)


def name(case: Case) -> str:
    """kind/case, as pytest shows it."""
    return f"{case.file.parent.parent.name}/{case.name}"


@pytest.mark.parametrize("case", ALL, ids=name)
def test_case(case: Case) -> None:
    """The case, then what holds of every decision."""
    before = copy.deepcopy(case.given)
    outcome = running.run(case)
    problems = ["the case has no expect"] if case.expect is None else []
    if case.expect is not None:
        problems += comparing.compare(case.expect, outcome)
        told = any(key in case.expect for key in ("object", "patch", "changes"))
        if case.expect.get("allowed") and not told:
            problems.append("expect says allowed without object, patch or changes")
    if problems and UPDATING:
        rewriting.rewrite(case, outcome)
        problems = []
        print(f"rewrote expect of {case.file}")
    assert not problems, "\n".join([str(case.file), *problems])
    assert case.given == before, "the decision changed what it was given"
    tell_no_secrets(case, outcome)
    if isinstance(outcome.decision, Allowed):
        patched = jsonpatch.apply_patch(outcome.submitted, list(outcome.patch))
        assert patched == outcome.object, "the patch does not lead to the object"
        prove_stable(case, outcome)
    if case.offline:
        prove_twin(case, outcome)


def tell_no_secrets(case: Case, outcome: Outcome) -> None:
    """No text for people holds a planted value of env, args, command or annotations."""
    decision = outcome.decision
    texts = [wording.warning_text(each) for each in decision.warnings]
    texts += [wording.violation_text(each) for each in decision.audit]
    if isinstance(decision, Denied):
        texts += [wording.violation_text(each) for each in decision.violations]
        texts.append(wording.refusal(decision.violations))
        texts += [json.dumps(comparing.violation_facts(each)) for each in decision.violations]
    else:
        texts += [wording.change_text(each) for each in decision.changes]
    assert not [each for each in texts if MARKER in each]


def prove_stable(case: Case, outcome: Outcome) -> None:
    """Run on its own output nothing changes, and the validating pass allows the result."""
    catalog, references = installation.catalog_of(case), installation.references_for(case)
    if not case.offline:
        request = replace(running.request_of(case), object=outcome.decision.object)
        if request.operation == "CREATE":
            prove_settled(case, request, catalog, references)
        return
    raw, place = case.given["object"], installation.place_of(case)
    again = judge(outcome.object, str(case.file), catalog, references, place)
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
    second = judge_review(replace(request, stage=Stage.MUTATE), catalog, references)
    assert isinstance(second, Allowed), f"reinvoked, it is denied: {second}"
    assert not second.patch, f"reinvoked, it changes again: {second.patch}"
    last = replace(request, stage=Stage.VALIDATE)
    final, _ = running.answer(case, last, catalog, references)
    assert isinstance(final, Allowed), f"the validating pass denies the result: {final}"


def prove_twin(case: Case, outcome: Outcome) -> None:
    """kubectl apply of the manifest in a cluster: the same violations, or the same object."""
    catalog, references = installation.catalog_of(case), installation.references_for(case)
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
    filled = noted if definition is None else catalog.completed(definition, noted)
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
