"""Combinations of policies are passed over only where looking closely would find nothing."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from typing import Any

import pytest

from bench.many import stranger
from webhook.catalog.build import parse_documents
from webhook.documents.problem import Problem
from webhook.documents.source import SourceDocument
from webhook.policy.checks import check_together
from webhook.policy.checks.meeting import Interplay
from webhook.policy.envelope import Context
from webhook.policy.policy import Policy

ASSETS = [
    {
        "meta": {"id": f"id-{name}-{number}", "name": name, "kind": "nfs", "scope": "tenant"},
        "spec": {"server": "nfs.example.com", "path": "/sets", "mountPath": f"/{name}"},
    }
    for number, name in enumerate(("sets", "models", "sets"))
]
LEVELS: Sequence[tuple[str, ...]] = ((), (), (), ("worker",))


def body(dice: random.Random) -> dict[str, Any]:
    """Defaults, rules and imposed assets, few enough to meet often."""
    found: dict[str, Any] = {}
    level = dice.choice(LEVELS)

    def say(what: str, section: str, leaf: str, value: Any) -> None:
        place = found.setdefault(what, {})
        for key in (*level, section):
            place = place.setdefault(key, {})
        place.setdefault(leaf, value)

    for _ in range(dice.randint(1, 3)):
        match dice.randint(0, 6):
            case 0:
                say("defaults", "compute", "cpuCoreRequest", dice.randint(1, 4))
            case 1:
                bound = {dice.choice(("min", "max")): dice.randint(1, 4)}
                say("rules", "compute", "cpuCoreRequest", bound)
            case 2:
                say("rules", "compute", "cpuCoreRequest", {"canEdit": dice.random() < 0.5})
            case 3:
                server = f"s{dice.randint(0, 1)}.example.com"
                item = {"name": "sets", "server": server, "path": "/p", "mountPath": "/p"}
                say("defaults", "storage", "nfs", {"instances": [item]})
            case 4:
                say("rules", "storage", "nfs", {"instances": {"canAdd": False}})
            case 5:
                say("rules", "storage", "nfs", {"instances": {"locked": ["sets"]}})
            case _:
                found["imposedAssets"] = [dice.choice(ASSETS)["meta"]["id"]]
    return found


def some_policies(dice: random.Random) -> list[dict[str, Any]]:
    """Two to six policies with common and separate reaches."""
    found = []
    for number in range(dice.randint(2, 6)):
        spec, metadata = body(dice), {"name": f"p{number}"}
        spec["enforcement"] = dice.choice(("Enforce", "Enforce", "Warn"))
        kind = "ClusterWorkloadPolicy"
        if dice.random() < 0.4:
            kind, metadata["namespace"] = "WorkloadPolicy", dice.choice("ab")
        else:
            spec["scope"] = dice.choice(("tenant", "cluster", "department"))
            labels = {"team": dice.choice("xy")}
            if spec["scope"] == "department" or dice.random() < 0.3:
                spec["namespaceSelector"] = {"matchLabels": labels}
        if dice.random() < 0.3:
            spec["kinds"] = [{"group": "apps", "kind": dice.choice(("Deployment", "StatefulSet"))}]
        api = {"apiVersion": "podgate.dev/v1alpha1", "kind": kind}
        found.append(api | {"metadata": metadata, "spec": spec})
    return found


def problems_of(documents: list[dict[str, Any]]) -> tuple[Problem, ...]:
    sources = [SourceDocument(f"document {n}", 1, each, {}, {}) for n, each in enumerate(documents)]
    read = parse_documents(sources, Context())
    return check_together(read.policies, read.assets)


def always(self: Interplay, policies: Sequence[Policy]) -> bool:
    return True


def test_what_is_passed_over_would_have_told_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    dice, told = random.Random(7), dict[str, int]()
    for _ in range(400):
        documents = [*some_policies(dice), *ASSETS]
        found = problems_of(documents)
        with monkeypatch.context() as patch:
            patch.setattr(Interplay, "among", always)
            assert found == problems_of(documents), documents
        for each in found:
            told[each.reason] = told.get(each.reason, 0) + 1
    wanted = {"shut-out-by-lock", "imposed-twice", "default-outside-combined-rules", "conflict"}
    assert {reason for reason in wanted if told.get(reason, 0) < 10} == set(), told


def test_a_thousand_policies_are_checked_together_in_a_moment() -> None:
    documents = [stranger(number) for number in range(1000)]
    sources = [SourceDocument(str(n), 1, each, {}, {}) for n, each in enumerate(documents)]
    read = parse_documents(sources, Context())
    assert len(read.policies) == 1000
    begun = time.process_time()
    check_together(read.policies, read.assets)
    assert time.process_time() - begun < 2  # CPU seconds; it takes 0.2, and took 3.4 in pairs
