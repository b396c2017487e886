"""Policies that have something to say of every field, and of many items."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from tests import everything
from webhook.catalog.build import Choices, assemble
from webhook.catalog.catalog import Catalog
from webhook.decision.messages import problem_text
from webhook.documents.yaml_source import read_documents
from webhook.evaluation.installation import InstallationConfig
from webhook.interface.injected_items import Injected, InjectedItem
from webhook.sources.load import DEFAULT_MINOR, server_defaults, shipped_documents

SIDECAR = {"name": "proxy-*", "image": "registry.example.com/proxy:*"}


def catalog_of(body: dict[str, Any], words: InstallationConfig = everything.WORDS) -> Catalog:
    """The shipped definitions with one policy of that body."""
    shipped, _ = shipped_documents()
    text = json.dumps(everything.policy("everything", **body)).encode()
    documents, faults = read_documents(text, "everything.yaml", kubernetes=False)
    assert not faults
    table: Any = server_defaults(DEFAULT_MINOR)
    found, problems = assemble(shipped, documents, Choices(config=words), table)
    assert found is not None, "\n".join(problem_text(each) for each in problems)
    return found


def items(count: int = 0) -> dict[str, Any]:
    """Defaults of every itemized field, all locked, with `count` more of the commonest."""
    defaults: dict[str, Any] = {}
    rules: dict[str, Any] = {}
    for path, given in everything.ITEMS.items():
        everything.put(defaults, path, {"instances": [*given, *more_items(path, count)]})
        if path.startswith("storage.") or path in ("environmentVariables", "labels"):
            locked = [each["name"] for each in [*given, *more_items(path, count)] if "name" in each]
            everything.put(rules, f"{path}.instances", {"canAdd": False, "locked": locked})
    return {"defaults": defaults, "rules": rules}


def more_items(path: str, count: int) -> list[dict[str, Any]]:
    """Further items of a field."""
    makers = {
        "environmentVariables": lambda n: {"name": f"POLICY_{n}", "value": "1"},
        "labels": lambda n: {"name": f"policy.example.com/{n}", "value": "1"},
        "annotations": lambda n: {"name": f"policy.example.com/{n}", "value": "1"},
        "tolerations": lambda n: {"key": f"policy-{n}", "operator": "Exists"},
        "storage.hostPath": lambda n: {
            "name": f"policy-{n}",
            "path": f"/policy/{n}",
            "mountPath": f"/policy/{n}",
        },
    }
    make = makers.get(path)
    return [make(n) for n in range(count)] if make else []


def options(count: int) -> dict[str, Any]:
    """Lists of many allowed values."""
    rules: dict[str, Any] = {}
    listed = [f"registry.example.com/allowed-{index}:1" for index in range(count)]
    everything.put(rules, "image", {"options": listed})
    words = [f"option-{index}" for index in range(count)]
    everything.put(rules, "tolerations.attributes.key", {"options": words})
    everything.put(rules, "security.capabilities", {"options": words})
    return {"rules": rules}


@cache
def catalogs() -> dict[str, Catalog]:
    """The policies by name."""
    sidecars = tuple({**SIDECAR, "name": f"proxy-{index}-*"} for index in range(5))
    given = tuple(
        InjectedItem(path, {"name": f"injected-{index}"})
        for path in everything.ITEMS
        for index in range(3)
    )
    injected = InstallationConfig(
        git_image=everything.WORDS.git_image,
        s3_drivers=everything.WORDS.s3_drivers,
        data_volumes=everything.WORDS.data_volumes,
        injected=Injected(sidecars, given),
    )
    rules = everything.rules()
    return {
        "defaults": catalog_of({"defaults": everything.telling_defaults()}),
        "rules": catalog_of({"rules": rules}),
        "items": catalog_of(items(10)),
        "strict": catalog_of({"rules": rules, "existing": "strict"}),
        "injected": catalog_of({"rules": rules}, injected),
    }
