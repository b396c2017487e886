"""Nobody gets further by passing for a controller than by sending the same object as a workload.

Made from every recorded review: what a controller made is sent by everybody who is not that
controller, what people made is sent with every owner that anybody's controllers serve.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest

from tests.building import policy
from tests.reviews.forgeries import (
    PERSON,
    containers_in,
    owned,
    owners,
    strangers,
    tenants,
    without_owner,
)
from tests.reviews.record import RECORDED, numbered
from tests.reviews.table import OF_RECORDED, as_installed, asked
from webhook.admission.judge import decide_review
from webhook.admission.request_class import classify_request
from webhook.catalog.catalog import Catalog
from webhook.evaluation.outcome import Allowed, Decision, Denied
from webhook.evaluation.references import References
from webhook.evaluation.request import Request, RequestClass, Stage

pytestmark = pytest.mark.long

CATALOGS = {
    **OF_RECORDED.catalogs,
    # Nothing with a container keeps to this, so that every single review has something to lose.
    "nothing": as_installed(policy("rules: {image: {options: [{value: none}]}}")),
}

CREATED = [
    (int(name[:4]), name.removesuffix(".json"))
    for name, _, kept in numbered()
    if kept.operation == "CREATE"
]
REQUESTS = {number: asked(RECORDED, number) for number, _ in CREATED}
CHILDREN = [each for each in CREATED if REQUESTS[each[0]].object["metadata"].get("ownerReferences")]
OWN = [each for each in CREATED if each not in CHILDREN]
UPDATED = [
    (int(name[:4]), name.removesuffix(".json"))
    for name, _, kept in numbered()
    if kept.operation == "UPDATE" and not kept.subresource
]


def each_of(numbers: list[tuple[int, str]]) -> pytest.MarkDecorator:
    """A test for each of these reviews, named as its file is."""
    return pytest.mark.parametrize("number", [n for n, _ in numbers], ids=[i for _, i in numbers])


def judged(request: Request, rules: Catalog) -> Decision:
    """What comes of it in the end: both passes, as the API server asks."""
    first = decide_review(replace(request, stage=Stage.MUTATE), rules, References())
    if isinstance(first, Denied):
        return first
    final = replace(request, object=first.object, stage=Stage.VALIDATE)
    last = decide_review(final, rules, References())
    return last if isinstance(last, Denied) else first


def refusals(decision: Decision) -> set[tuple[str, str, tuple[Any, ...]]]:
    """Field, reason and place of all that is refused."""
    found = decision.violations if isinstance(decision, Denied) else ()
    return {(each.field, each.reason, each.path) for each in found}


def assert_no_further(request: Request, rules: Catalog) -> None:
    """It is refused whatever a person's own object is refused for, and so is nobody's child."""
    assert classify_request(request, rules) not in (RequestClass.EXEMPT, RequestClass.CHILD), (
        request.user
    )
    own = judged(without_owner(request, request.object), rules)
    assert refusals(own) <= refusals(judged(request, rules)), request.user


def assert_good(request: Request, rules: Catalog) -> None:
    """What it became, if it passed, would pass as a person's own object too."""
    decision = judged(request, rules)
    if isinstance(decision, Allowed):
        own = replace(without_owner(request, decision.object), stage=Stage.VALIDATE)
        last = decide_review(own, rules, References())
        assert isinstance(last, Allowed), (request.user, refusals(last))


@pytest.mark.parametrize("rules", CATALOGS.values(), ids=CATALOGS)
@each_of(CHILDREN)
def test_a_controllers_child_by_anybody_else_is_their_own(number: int, rules: Catalog) -> None:
    request = REQUESTS[number]
    for user in tenants(request):
        forged = replace(request, user=user, groups=())
        assert_no_further(forged, rules)
        assert_good(forged, rules)
    for user in strangers(request):
        assert_no_further(replace(request, user=user, groups=()), rules)


@pytest.mark.parametrize("rules", CATALOGS.values(), ids=CATALOGS)
@each_of(OWN)
def test_an_owner_that_somebody_made_up_is_no_way_round(number: int, rules: Catalog) -> None:
    request = replace(REQUESTS[number], user=PERSON, groups=())
    for version, kind in owners(rules):
        forged = owned(request, version, kind)
        assert_no_further(forged, rules)
        assert_good(forged, rules)


@pytest.mark.parametrize("rules", CATALOGS.values(), ids=CATALOGS)
@each_of(CHILDREN)
def test_a_true_name_says_nothing_without_a_governed_owner(number: int, rules: Catalog) -> None:
    request = REQUESTS[number]
    for forged in (
        replace(without_owner(request, request.object), user=request.user),
        owned(request, "example.com/v1", request.object["metadata"]["ownerReferences"][0]["kind"]),
        owned(request, "example.com/v1", "Thing"),
    ):
        assert_no_further(forged, rules)


@each_of(UPDATED)
def test_no_name_makes_a_running_workload_privileged(number: int) -> None:
    """Whoever may change metadata and numbers of what there is may not change what runs."""
    request = asked(RECORDED, number)
    document = copy.deepcopy(request.object)
    found = list(containers_in(document["spec"]))
    assert found
    for container in found:
        container["securityContext"] = {"privileged": True}
    for rules in CATALOGS.values():
        decision = judged(replace(request, object=document), rules)
        assert "security.privileged" in {field for field, _, _ in refusals(decision)}


@each_of(UPDATED)
def test_an_update_by_almost_the_right_name_is_not_exempt(number: int) -> None:
    request = asked(RECORDED, number)
    for user in (*tenants(request), *strangers(request)):
        for rules in CATALOGS.values():
            found = classify_request(replace(request, user=user, groups=()), rules)
            assert found in (RequestClass.FULL, RequestClass.OWNED), user
