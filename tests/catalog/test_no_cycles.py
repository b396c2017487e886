"""A catalog that is exchanged goes at once: nothing in it, nor in its plans, refers back to itself."""

from __future__ import annotations

import gc
from collections import Counter

from tests import everything
from tests.building import (
    container,
    cronjob,
    deployment,
    mutated,
    pod,
    policy,
    pytorchjob,
    raycluster,
    shipped,
    table,
)
from webhook.catalog.build import Choices, assemble, parse_documents
from webhook.catalog.catalog import Catalog
from webhook.documents.source import SourceDocument
from webhook.policy.envelope import Context

STEPS = "rules: {compute: {cpuCoreLimit: {defaultFrom: {field: cpuCoreRequest, factor: 2}}}}"


def made() -> Catalog:
    """A catalog that says something of every field, once as a default and once as a rule."""
    choices = Choices(config=everything.WORDS)
    documents = [
        everything.policy("defaults", scope="tenant", defaults=everything.defaults()),
        everything.policy("rules", scope="cluster", rules=everything.rules(closed=False)),
        policy(STEPS, name="computed"),
    ]
    sources = [SourceDocument(str(n), 1, each, {}, {}) for n, each in enumerate(documents)]
    given = parse_documents(sources, Context())
    found, problems = assemble(shipped(), given, choices, table(), watched=True)
    assert found is not None, [each for each in problems if each.severity == "error"]
    return found


def judged(catalog: Catalog) -> int:
    """Compile plans by judging objects; how many there are then."""
    for body in (
        deployment(container()),
        pod(container()),
        cronjob(container()),
        pytorchjob(),
        raycluster(),
    ):
        mutated(catalog, body)
    return len(catalog.plans)


def cyclic() -> Counter[str]:
    """What only the collector could free since it last ran, by module and type."""
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        gc.collect()
        return Counter(f"{type(each).__module__}.{type(each).__name__}" for each in gc.garbage)
    finally:
        gc.set_debug(0)
        gc.garbage.clear()


def test_a_catalog_with_its_plans_needs_no_collector() -> None:
    judged(made())  # what is made once in a process is made now
    gc.collect()
    gc.disable()
    try:
        catalog = made()
        assert judged(catalog) >= 5
        del catalog
        found = cyclic()
    finally:
        gc.enable()
    assert {name: each for name, each in found.items() if name.startswith("webhook")} == {}, found
