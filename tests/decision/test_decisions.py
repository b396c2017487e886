"""Properties of decisions: random policies on random manifests of the kinds."""

from __future__ import annotations

import copy
from functools import lru_cache
from typing import Any

import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.building import (
    KINDS,
    annotated,
    catalog,
    container,
    mutated,
    policy,
    reasons,
    served,
    table,
    validated,
)
from webhook.cases.run_offline import Place, evaluate_manifest
from webhook.catalog.build import Choices, assemble
from webhook.catalog.catalog import Catalog
from webhook.documents.yaml_source import read_documents
from webhook.evaluation.outcome import Allowed, Denied
from webhook.evaluation.references import References
from webhook.objects.draft import diff

IMAGES = ("registry.example.com/main:1", "registry.example.com/main", "r.example.com/other:2")
DIRECTORIES = ("/a", "/b")
PULLS = ("Always", "IfNotPresent", "Never")
CPUS = (0.5, 1, 2)
SIZES = ("512Mi", "1Gi", "2Gi")
NAMES = ("A", "B", "C")


def maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


def some(**parts: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """A map of any of these parts."""
    return st.fixed_dictionaries({}, optional=parts)


def scalar(
    values: tuple[Any, ...], *, bounds: bool = False
) -> st.SearchStrategy[tuple[Any, dict[str, Any]]]:
    """A default and rules of one field that do not contradict each other."""
    rules = {
        "canEdit": st.just(False),
        "blocked": st.just(True),
        "required": st.just(True),
        "options": st.just([{"value": each} for each in values]),
    }
    if bounds:
        rules = {
            "canEdit": st.just(False),
            "required": st.just(True),
            "min": st.just(values[0]),
            "max": st.sampled_from(values),
        }
    one = st.lists(st.sampled_from(sorted(rules)), max_size=2, unique=True).flatmap(
        lambda names: st.fixed_dictionaries({name: rules[name] for name in names})
    )
    return st.tuples(maybe(st.sampled_from(values)), one)


FIELDS = {
    "image": scalar(IMAGES),
    "imagePullPolicy": scalar(PULLS),
    "workingDir": scalar(DIRECTORIES),
    "command": scalar(("sh", "bash")),
    "terminationGracePeriodSeconds": scalar((30, 60, 90), bounds=True),
    "nodeType": scalar(("cpu", "gpu")),
    "priorityClass": scalar(("low", "high")),
    "compute.cpuCoreRequest": scalar(CPUS, bounds=True),
    "compute.cpuCoreLimit": scalar(CPUS, bounds=True),
    "compute.cpuMemoryRequest": scalar(SIZES, bounds=True),
    "compute.gpuDevicesRequest": scalar((1, 2, 4), bounds=True),
    "security.runAsUid": scalar((1000, 2000), bounds=True),
    "security.runAsNonRoot": scalar((True, False), bounds=False).map(
        lambda each: (each[0], {k: v for k, v in each[1].items() if k != "options"})
    ),
}
ITEMS: dict[str, Any] = {
    "environmentVariables": lambda name: {"name": name, "value": name.lower()},
    "labels": lambda name: {"name": name, "value": name.lower()},
    "tolerations": lambda name: {"name": name, "key": name, "operator": "Exists"},
    "storage.hostPath": lambda name: {
        "name": name.lower(),
        "path": f"/host/{name}",
        "mountPath": f"/in/{name}",
    },
}


@st.composite
def bodies(draw: st.DrawFn) -> str:
    """The body of one policy."""
    defaults: dict[str, Any] = {}
    rules: dict[str, Any] = {}

    def put(table: dict[str, Any], path: str, value: Any) -> None:
        *parents, last = path.split(".")
        for each in parents:
            table = table.setdefault(each, {})
        table[last] = value

    for path in draw(st.lists(st.sampled_from(sorted(FIELDS)), max_size=5, unique=True)):
        default, said = draw(FIELDS[path])
        if default is not None:
            put(defaults, path, default)
        if said:
            put(rules, path, said)
    for path in draw(st.lists(st.sampled_from(sorted(ITEMS)), max_size=2, unique=True)):
        names = draw(st.lists(st.sampled_from(NAMES), max_size=2, unique=True))
        items = [ITEMS[path](name) for name in names]
        if items:
            put(defaults, path, {"instances": items})
        closed: dict[str, Any] = {}
        if draw(st.booleans()):
            closed["canAdd"] = False
        if items and draw(st.booleans()):
            closed["locked"] = [items[0]["name"]]
        if closed:
            put(rules, path, {"instances": closed})
    return yaml.safe_dump({"defaults": defaults, "rules": rules})


@st.composite
def containers(draw: st.DrawFn, name: str) -> dict[str, Any]:
    """One container."""
    amounts = some(
        requests=some(cpu=st.sampled_from(("500m", "1", "2")), memory=st.sampled_from(SIZES)),
        limits=some(
            cpu=st.sampled_from(("2", "4")), **{"nvidia.com/gpu": st.sampled_from(("1", "2"))}
        ),
    )
    parts = some(
        imagePullPolicy=st.sampled_from(PULLS),
        workingDir=st.sampled_from(DIRECTORIES),
        command=st.just(["sh"]),
        env=st.lists(st.sampled_from(NAMES), max_size=2, unique=True).map(
            lambda names: [{"name": each, "value": each.lower()} for each in names]
        ),
        resources=amounts,
        securityContext=some(
            privileged=st.booleans(),
            runAsUser=st.sampled_from((1000, 2000)),
            runAsNonRoot=st.just(True),
        ),
    )
    return container(name, **{**draw(parts), "image": draw(st.sampled_from(IMAGES))})


@st.composite
def manifests(draw: st.DrawFn, kinds: tuple[str, ...] = tuple(KINDS)) -> dict[str, Any]:
    """One object as a user writes it."""
    names = draw(st.sampled_from((("main",), ("main", "side"))))
    held = [draw(containers(name)) for name in names]
    spec = draw(
        some(
            terminationGracePeriodSeconds=st.sampled_from((30, 60, 90)),
            nodeSelector=st.just({"run.ai/type": "cpu"}),
            priorityClassName=st.just("low"),
            tolerations=st.sampled_from(NAMES).map(lambda n: [{"key": n, "operator": "Exists"}]),
            securityContext=some(runAsUser=st.sampled_from((1000, 2000))),
        )
    )
    if draw(st.booleans()):
        spec["volumes"] = [{"name": "mine", "hostPath": {"path": "/mine"}}]
        held[0]["volumeMounts"] = [{"name": "mine", "mountPath": "/mine"}]
    return KINDS[draw(st.sampled_from(kinds))](*held, **spec)


@lru_cache(maxsize=1)
def kinds() -> Catalog:
    """The shipped documents, whose definitions all catalogs here share."""
    return catalog()


def built(body: str, **spec: Any) -> Catalog | None:
    """The catalog of one policy, None when the generator made one that contradicts itself."""
    documents, faults = read_documents(yaml.safe_dump(policy(body, **spec)), "given.yaml")
    assert not faults
    found, _ = assemble((), documents, Choices(), table())
    if found is None:
        return None
    shared = kinds()
    return Catalog((*shared.policies, *found.policies), shared.definitions, server_defaults=table())


OPTIONS = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def settle(rules: Catalog, document: Any, old: Any = None) -> Any:
    """What becomes of an object; None when it is refused. Both passes must agree."""
    decision = mutated(rules, document, old)
    if isinstance(decision, Denied):
        return None
    again = mutated(rules, decision.object, old)
    assert isinstance(again, Allowed), reasons(again)
    assert not again.patch
    final = validated(rules, decision.object, old)
    assert isinstance(final, Allowed), reasons(final)
    return decision.object


@OPTIONS
@given(bodies(), manifests())
def test_what_is_allowed_is_settled(body: str, raw: dict[str, Any]) -> None:
    """Its own output is patched no further and refused by neither pass."""
    rules = built(body)
    if rules is None:
        return
    settle(rules, served(raw))
    settle(rules, annotated(served(raw), raw))


@OPTIONS
@given(bodies(), manifests())
def test_offline_and_cluster_decide_alike(body: str, raw: dict[str, Any]) -> None:
    """The raw file offline, and the request with its annotation that kubectl apply makes of it."""
    rules = built(body)
    if rules is None:
        return
    # A Job without labels of its own gets those of its template, which a policy may have added to.
    raw["metadata"]["labels"] = {"own": "x"}
    offline = evaluate_manifest(copy.deepcopy(raw), "file", rules, References(), Place("team"))
    online = mutated(rules, annotated(served(raw), raw))
    if isinstance(offline.decision, Denied):
        assert reasons(online) == reasons(offline.decision)
        return
    assert isinstance(online, Allowed), reasons(online)
    here = online.object
    del here["metadata"]["annotations"]
    assert not diff(served(offline.object), served(here))


def test_a_label_of_ours_leaves_those_that_the_server_copies() -> None:
    rules = catalog("defaults: {priorityClass: low}")
    verdict = evaluate_manifest(KINDS["Job"](), "file", rules, References(), Place("team"))
    assert verdict.object["metadata"]["labels"] == {"app": "web", "priorityClassName": "low"}


@OPTIONS
@given(bodies(), bodies(), manifests(), st.data())
def test_updates_settle_too(
    before: str, after: str, raw: dict[str, Any], data: st.DataObject
) -> None:
    """Created under one policy, changed under another: the passes agree with each other."""
    first, second = built(before), built(after)
    if first is None or second is None:
        return
    old = settle(first, served(raw))
    if old is None:
        old = served(raw)
    same = mutated(second, copy.deepcopy(old), old)
    assert isinstance(same, Allowed)
    assert not same.patch
    kind = raw["kind"]
    other = data.draw(manifests((kind,)))
    new = copy.deepcopy(old)
    change = data.draw(st.sampled_from(("label", "replace", "restart")))
    if change == "label":
        new["metadata"].setdefault("labels", {})["team"] = "x"
        if kind != "Pod":
            assert settle(second, new, old) == new
    elif change == "replace":
        # The API server refuses other templates of the rest, where nothing may be written either.
        if kind not in ("Pod", "Job", "JobSet"):
            settle(second, served(other), old)
    else:
        restart(new)
        settle(second, new, old)
        strict = built(after, existing="strict")
        if strict is not None:
            settle(strict, new, old)


def restart(document: Any) -> None:
    """Annotate every pod template."""
    if isinstance(document, dict):
        for key, value in document.items():
            if key == "template" and "spec" in value and "containers" in value["spec"]:
                value.setdefault("metadata", {})["annotations"] = {"restartedAt": "now"}
            restart(value)
    elif isinstance(document, list):
        for each in document:
            restart(each)


@OPTIONS
@given(bodies(), manifests())
def test_a_restart_under_a_tolerant_policy_is_never_refused(body: str, raw: dict[str, Any]) -> None:
    """What was there before is no violation, whatever policy came since."""
    rules = built(body)
    if rules is None or raw["kind"] == "Pod":
        return
    old = served(raw)
    new = copy.deepcopy(old)
    restart(new)
    decision = mutated(rules, new, old)
    if isinstance(decision, Denied):
        # A default that clashes with what is there is told, not forced.
        told = {each.reason for each in decision.violations}
        assert told <= {"name-clash", "request-exceeds-limit", "conflicting-default"}, told
    else:
        settle(rules, new, old)
