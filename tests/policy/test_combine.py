"""How the policies of several scopes combine: properties, and the worked examples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.policy.test_document import accepted
from webhook.policy.combine import (
    COMBINATIONS,
    DOCUMENTED,
    GUARDED,
    RANK,
    STRICTEST,
    Constraint,
    Leaf,
    combine,
    view,
)
from webhook.policy.merge_components import unique
from webhook.policy.policy import (
    EVERYWHERE,
    SCOPES,
    Asset,
    Body,
    Default,
    DefaultItem,
    Policy,
    component_level,
    role_level,
)
from webhook.policy.rules.requirements import Options
from webhook.policy.table import TABLE

BROADEST, CLOSEST = "security.runAsUid", "backoffLimit"
SCALARS = (BROADEST, CLOSEST, "security.privileged", "compute.gpuDevicesRequest")
ITEMS = "storage.nfs"
ATTRIBUTE = "storage.nfs.readOnly"
KEYS = ("sets", "models", "home")


def effective(
    policies: Sequence[Policy],
    combination: str = GUARDED,
    roles: tuple[str, ...] = ("worker",),
    component: str = "main",
    assets: dict[str, Asset] | None = None,
) -> dict[str, Leaf]:
    views = [view(each, roles, component) for each in policies]
    return combine(views, combination, assets)


def said(leaf: Leaf | None) -> set[tuple[str, str, str]]:
    """The rules in force as (rule, argument, policy)."""
    found = leaf.constraints if leaf else ()
    return {(each.rule, repr(each.argument), each.policy.name) for each in found}


def meaning(result: dict[str, Leaf]) -> dict[str, Any]:
    """An effective policy without order and without what lost; leaves that say nothing left out."""
    told = {
        path: (
            said(leaf),
            leaf.default,
            {each.key: (each.attributes, each.scope, each.imposed) for each in leaf.items},
        )
        for path, leaf in result.items()
    }
    return {path: each for path, each in told.items() if each != (set(), None, {})}


flags = st.booleans()
scalar_rules = st.fixed_dictionaries(
    {},
    optional={
        "canEdit": flags,
        "blocked": flags,
        "required": flags,
        "min": st.integers(0, 3),
        "max": st.integers(4, 9),
    },
)
item_rules = st.fixed_dictionaries(
    {}, optional={"canAdd": flags, "locked": st.frozensets(st.sampled_from(KEYS))}
)
attribute_rules = st.fixed_dictionaries({}, optional={"canEdit": flags, "required": flags})
values = st.integers(0, 9).map(lambda number: Default(number, number))


@st.composite
def items(draw: st.DrawFn) -> tuple[DefaultItem, ...]:
    keys = draw(st.lists(st.sampled_from(KEYS), unique=True))
    server = st.sampled_from(["s1", "s2"])
    return tuple(
        DefaultItem(
            key,
            {
                "server": Default(name := draw(server), name),
                "readOnly": Default(only := draw(flags), only),
            },
        )
        for key in keys
    )


@st.composite
def bodies(draw: st.DrawFn) -> Body:
    rules: dict[str, Any] = {path: draw(scalar_rules) for path in SCALARS}
    rules |= {ITEMS: draw(item_rules), ATTRIBUTE: draw(attribute_rules)}
    chosen = draw(st.dictionaries(st.sampled_from(SCALARS), values))
    held = draw(items())
    level = draw(st.sampled_from([EVERYWHERE, role_level("worker"), component_level("main")]))
    return Body(
        {level: dict(chosen)},
        {level: {ITEMS: held}} if held else {},
        {level: {path: each for path, each in rules.items() if each}},
    )


@st.composite
def policies(draw: st.DrawFn, scopes: tuple[str, ...] = SCOPES) -> list[Policy]:
    count = draw(st.integers(0, 5))
    return [
        Policy(
            f"p{index}",
            draw(st.sampled_from(scopes)),
            draw(bodies()),
            created=draw(st.sampled_from(["", "2026-01-01", "2026-02-02"])),
            digest=str(index),
        )
        for index in range(count)
    ]


modes = st.sampled_from(COMBINATIONS)
often = settings(max_examples=100, deadline=None)
NOT_SYSTEM = SCOPES[1:]


@often
@given(policies(), st.sampled_from(SCOPES), modes)
def test_a_policy_that_says_nothing_changes_nothing(
    given_policies: list[Policy], scope: str, mode: str
) -> None:
    silent = Policy("silent", scope, Body())
    before = meaning(effective(given_policies, mode))
    assert meaning(effective([*given_policies, silent], mode)) == before


@often
@given(policies(), modes, st.randoms(use_true_random=False))
def test_the_order_of_the_list_does_not_matter(
    given_policies: list[Policy], mode: str, random: Any
) -> None:
    shuffled = list(given_policies)
    random.shuffle(shuffled)
    assert effective(shuffled, mode) == effective(given_policies, mode)


@often
@given(policies(), modes)
def test_combining_twice_the_same_policies_changes_nothing(
    given_policies: list[Policy], mode: str
) -> None:
    once = effective(given_policies, mode)
    assert meaning(effective([*given_policies, *given_policies], mode)) == meaning(once)


one_more = given(
    policies(NOT_SYSTEM),
    bodies(),
    st.sampled_from(NOT_SYSTEM),
    st.sampled_from([GUARDED, STRICTEST]),
)
"""Policies, and the body and scope of one that is added to them."""


def prohibitions(result: dict[str, Leaf], below: int) -> set[tuple[str, str, str, str]]:
    """The prohibitions in force of scopes broader than `below`."""
    return {
        (path, each.rule, repr(each.argument), each.policy.name)
        for path, leaf in result.items()
        for each in leaf.constraints
        if each.prohibits and RANK[each.policy.scope] < below
    }


@often
@one_more
def test_a_narrower_scope_never_weakens_a_broader_prohibition(
    given_policies: list[Policy], body: Body, scope: str, mode: str
) -> None:
    rank = RANK[scope]
    added = Policy("added", scope, body, digest="added")
    before = prohibitions(effective(given_policies, mode), rank)
    after = prohibitions(effective([*given_policies, added], mode), rank)
    assert before <= after


@often
@one_more
def test_a_lock_holds_its_default_against_narrower_scopes(
    given_policies: list[Policy], body: Body, scope: str, mode: str
) -> None:
    added = Policy("added", scope, body, digest="added")
    before = effective(given_policies, mode)
    after = effective([*given_policies, added], mode)
    for path, leaf in before.items():
        if path in TABLE.attributes or not any(
            each.rule in ("canEdit", "blocked") and RANK[each.policy.scope] < RANK[scope]
            for each in leaf.constraints
            if each.prohibits
        ):
            continue
        assert after[path].default == leaf.default


@often
@one_more
def test_items_of_narrower_scopes_extend_no_closed_list_and_replace_no_locked_item(
    given_policies: list[Policy], body: Body, scope: str, mode: str
) -> None:
    added = Policy("added", scope, body, digest="added")
    before = effective(given_policies, mode).get(ITEMS, Leaf(ITEMS))
    after = effective([*given_policies, added], mode).get(ITEMS, Leaf(ITEMS))
    known = {each.key: each.source for each in before.items}
    found = {each.key: each.source for each in after.items}
    broader = [each for each in before.constraints if RANK[each.policy.scope] < RANK[scope]]
    if any(each.rule == "canAdd" for each in broader):
        assert found == known
    for key in {key for each in broader if each.rule == "locked" for key in each.argument}:
        assert found.get(key) == known.get(key)


@often
@given(policies(), st.sampled_from(SCOPES[1:]), modes)
def test_any_scope_releases_a_prohibition_of_the_system(
    given_policies: list[Policy], scope: str, mode: str
) -> None:
    others = [each for each in given_policies if each.scope == "system"]
    release = Body(rules={EVERYWHERE: {BROADEST: {"canEdit": True}}})
    result = effective([*others, Policy("release", scope, release)], mode)
    leaf = result.get(BROADEST, Leaf(BROADEST))
    assert not any(each.rule == "canEdit" for each in leaf.constraints)


@pytest.mark.parametrize("mode", [GUARDED, STRICTEST])
def test_a_system_prohibition_is_not_released_by_an_unrelated_rule(mode: str) -> None:
    system = scoped("system", "rules: {security: {privileged: {canEdit: false}}}")
    other = scoped("department", "rules: {security: {privileged: {required: true}}}")
    rules = {rule for rule, _, _ in said(effective([system, other], mode)["security.privileged"])}
    assert rules == {"canEdit", "required"}


@pytest.mark.parametrize("mode", [GUARDED, STRICTEST])
def test_a_system_prohibition_is_not_released_by_the_system_itself(mode: str) -> None:
    system = scoped("system", "rules: {security: {privileged: {canEdit: false}}}")
    other = scoped("system", "rules: {security: {privileged: {canEdit: true}}}", "other")
    winner = scoped("department", "rules: {security: {privileged: {required: true}}}")
    found = said(effective([system, other, winner], mode)["security.privileged"])
    assert ("canEdit", "False", "system") in found


def test_rules_of_several_components_are_united_each_once() -> None:
    text = "rules: {compute: {gpuDevicesRequest: {min: 1}}, leader: {compute: {gpuDevicesRequest: {max: 1}}}}"
    one, other = scoped("cluster", text), scoped("project", text, "other")
    leaves = [
        each["compute.gpuDevicesRequest"]
        for roles in (("worker",), ("leader",), ("worker", "leader"))
        for each in [effective([one, other], STRICTEST, roles)]
    ]
    whole = [(each.rule, each.argument, each.policy.name) for each in unique(leaves)]
    assert sorted(whole) == [
        ("max", 1, "cluster"),
        ("max", 1, "other"),
        ("min", 1, "cluster"),
        ("min", 1, "other"),
    ]


# levels


def two_roles(body: str) -> dict[str, Leaf]:
    return effective([scoped("cluster", body)], roles=("worker", "leader"))


def test_where_one_template_serves_two_roles_the_rules_of_both_apply() -> None:
    text = """\
defaults: {leader: {image: l, workingDir: /l}, worker: {image: w}}
rules:
  backoffLimit: {max: 9}
  leader: {backoffLimit: {max: 1}, image: {options: [l, w]}}
  worker: {image: {required: true}}
"""
    result = two_roles(text)
    assert {(rule, argument) for rule, argument, _ in said(result["image"])} == {
        ("options", repr(frozenset({"l", "w"}))),
        ("required", "True"),
    }
    assert {argument for _, argument, _ in said(result["backoffLimit"])} == {"1", "9"}
    assert result["image"].default is not None
    assert result["image"].default.value == "w"
    assert "workingDir" not in result


def test_the_leaf_of_a_component_wins_within_one_document() -> None:
    body = """\
rules:
  image: {options: [a]}
  worker: {image: {options: [b]}}
  components: {main: {image: {options: [c]}}}
"""
    one = scoped("cluster", body)
    assert said(effective([one])["image"]) == {("options", repr(frozenset({"c"})), "cluster")}
    other = effective([one], component="other")
    assert said(other["image"]) == {("options", repr(frozenset({"b"})), "cluster")}
    master = effective([one], roles=("master",), component="other")
    assert said(master["image"]) == {("options", repr(frozenset({"a"})), "cluster")}


# worked examples


def scoped(scope: str, text: str, name: str = "") -> Policy:
    policy = accepted(text, default_scope=scope, namespace="vision")
    return Policy(
        name or scope, scope, policy.body, namespace=policy.namespace, digest=policy.digest
    )


def only(leaf: Leaf, rule: str) -> Constraint:
    found = [each for each in leaf.constraints if each.rule == rule]
    assert len(found) == 1
    return found[0]


SYSTEM = scoped(
    "system",
    """\
defaults: {security: {privileged: false}, terminationGracePeriodSeconds: 30}
rules: {security: {privileged: {canEdit: false}}, terminationGracePeriodSeconds: {max: 300}}
""",
)


@pytest.mark.parametrize("mode", COMBINATIONS)
def test_example_18_a_department_releases_what_the_system_forbids(mode: str) -> None:
    alone = effective([SYSTEM], mode)
    assert only(alone["security.privileged"], "canEdit").argument is False
    release = scoped("department", "rules: {security: {privileged: {canEdit: true}}}")
    released = effective([SYSTEM, release], mode)
    leaf = released["security.privileged"]
    assert not leaf.constraints
    assert leaf.default is not None
    assert leaf.default.value is False
    assert only(released["terminationGracePeriodSeconds"], "max").argument == 300


CLUSTER_19 = scoped(
    "cluster",
    "rules: {compute: {gpuDevicesRequest: {max: 8}}, priorityClass: {options: [{value: low}]}}",
)
PROJECT_19 = scoped(
    "project",
    "rules: {compute: {gpuDevicesRequest: {min: 1, max: 2}, cpuCoreRequest: {max: 4}}, "
    "priorityClass: {options: [{value: high}]}}",
)


@pytest.mark.parametrize("mode", [GUARDED, DOCUMENTED])
def test_example_19_the_rules_of_a_leaf_come_from_one_scope(mode: str) -> None:
    result = effective([CLUSTER_19, PROJECT_19], mode)
    assert said(result["compute.gpuDevicesRequest"]) == {("max", "8", "cluster")}
    assert {each[2] for each in said(result["compute.cpuCoreRequest"])} == {"project"}
    assert only(result["priorityClass"], "options").argument == frozenset({"high"})


def test_example_19_strictest_intersects() -> None:
    result = effective([CLUSTER_19, PROJECT_19], STRICTEST)
    assert said(result["compute.gpuDevicesRequest"]) == {
        ("max", "8", "cluster"),
        ("min", "1", "project"),
        ("max", "2", "project"),
    }
    allowed = [each.argument for each in result["priorityClass"].of(Options)]
    assert not frozenset.intersection(*allowed)


def test_example_19_guarded_keeps_a_prohibition_of_the_cluster() -> None:
    locking = scoped("cluster", "rules: {priorityClass: {canEdit: false}}")
    result = effective([locking, PROJECT_19])["priorityClass"]
    assert {each.rule for each in result.constraints} == {"canEdit", "options"}
    documented = effective([locking, PROJECT_19], DOCUMENTED)["priorityClass"]
    assert {each.rule for each in documented.constraints} == {"options"}


@pytest.mark.parametrize("mode", COMBINATIONS)
def test_example_20_a_lock_holds_its_default_and_items_are_united_by_key(mode: str) -> None:
    cluster = scoped(
        "cluster",
        """\
defaults:
  security: {runAsUid: 1000}
  priorityClass: a
  environmentVariables: {instances: [{name: MIRROR, value: m1}, {name: REGION, value: r1}]}
rules: {security: {runAsUid: {canEdit: false}}}
""",
    )
    project = scoped(
        "project",
        """\
defaults:
  security: {runAsUid: 0}
  priorityClass: c
  environmentVariables: {instances: [{name: REGION, value: r2}]}
""",
    )
    result = effective([cluster, project], mode)
    uid = result["security.runAsUid"]
    assert uid.default is not None
    assert (uid.default.value, uid.default.scope) == (1000, "cluster")
    assert [(each.source.policy, each.reason) for each in uid.lost] == [
        ("project", "shut-out-by-lock")
    ]
    priority = result["priorityClass"].default
    assert priority is not None
    assert priority.value == "c"
    variables = {
        each.key: each.attributes["value"].value for each in result["environmentVariables"].items
    }
    assert variables == {"MIRROR": "m1", "REGION": "r2"}


# imposed assets


def asset(identity: str, name: str, server: str) -> Asset:
    attributes = {"server": Default(server, server)}
    return Asset(identity, name, "nfs", ITEMS, "tenant", attributes)


ASSETS = {each.id: each for each in (asset("a1", "sets", "s1"), asset("a2", "sets", "s2"))}


def test_imposed_items_replace_default_items_and_the_broadest_scope_wins() -> None:
    cluster = Policy("cluster", "cluster", Body(imposed={EVERYWHERE: ("a1",)}))
    project = Policy(
        "project",
        "project",
        Body(
            items={EVERYWHERE: {ITEMS: (DefaultItem("sets", {}),)}},
            imposed={EVERYWHERE: ("a2",)},
        ),
    )
    leaf = effective([project, cluster], assets=ASSETS)[ITEMS]
    assert [(each.asset_id, each.imposed, each.scope) for each in leaf.items] == [
        ("a1", True, "cluster")
    ]
    assert ("sets", "imposed-twice") in {(each.what, each.reason) for each in leaf.lost}


@pytest.mark.parametrize("rules", [{"locked": frozenset({"sets"})}, {"canAdd": False}])
def test_an_imposed_item_gives_way_to_a_broader_lock(rules: dict[str, Any]) -> None:
    held = DefaultItem("sets", {"server": Default("s0", "s0")})
    cluster = Policy(
        "cluster",
        "cluster",
        Body(items={EVERYWHERE: {ITEMS: (held,)}}, rules={EVERYWHERE: {ITEMS: rules}}),
    )
    project = Policy("project", "project", Body(imposed={EVERYWHERE: ("a1",)}))
    leaf = effective([cluster, project], assets=ASSETS)[ITEMS]
    assert [(each.key, each.scope, each.imposed) for each in leaf.items] == [
        ("sets", "cluster", False)
    ]
    assert [each.reason for each in leaf.lost] == ["shut-out-by-lock"]


def test_a_policy_may_close_a_list_beside_what_it_imposes_itself() -> None:
    body = Body(imposed={EVERYWHERE: ("a1",)}, rules={EVERYWHERE: {ITEMS: {"canAdd": False}}})
    leaf = effective([Policy("cluster", "cluster", body)], assets=ASSETS)[ITEMS]
    assert [each.key for each in leaf.items] == ["sets"]


def test_of_two_policies_of_one_scope_the_older_default_counts() -> None:
    def dated(created: str, value: int) -> Policy:
        body = Body({EVERYWHERE: {CLOSEST: Default(value, value)}})
        return Policy(f"p{value}", "cluster", body, created=created)

    result = effective([dated("2026-02-02", 2), dated("2026-01-01", 1)])
    default = result[CLOSEST].default
    assert default is not None
    assert default.value == 1
