"""Random claims under random policies: both passes agree, and what is written stays as it is."""

from __future__ import annotations

import copy
import json
from random import Random
from typing import Any

import pytest

from tests import building, everything
from tests.fields.test_device_objects import catalog, claim, config
from webhook.catalog.catalog import Catalog
from webhook.decision.decide import decide
from webhook.devices.classes import class_brief
from webhook.evaluation.outcome import Allowed
from webhook.evaluation.references import References
from webhook.evaluation.request import Stage
from webhook.policy.row import Field
from webhook.policy.table import TABLE

OWN = [row for row in TABLE.fields.values() if row.section == "devices"]
TELLING = {"devices.allocationMode": "All", "devices.count": 2, "devices.adminAccess": True}
SELECTED = "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'gpu'"
CLASSES = (
    "gpu.nvidia.com",
    "mig.nvidia.com",
    "vfio.gpu.nvidia.com",
    "compute-domain-default-channel.nvidia.com",
    "shared.example.com",
    "unknown.example.com",
)
VALUES: dict[str, list[Any]] = {
    "allocationMode": ["All", "ExactCount", "Other"],
    "count": [1, 3, "x", None],
    "adminAccess": [True, False],
    "capacity": [{"requests": {"memory": "1Gi"}}, {"requests": {"gpu.nvidia.com/shares": "x"}}],
    "tolerations": [[{"operator": "Exists"}], [{"key": "a"}, 7]],
    "selectors": [[{"cel": {"expression": SELECTED}}], []],
}
SHARING: list[Any] = [
    None,
    {"strategy": "MPS"},
    {"strategy": "MPS", "mpsConfig": {"defaultActiveThreadPercentage": 60}},
    {"strategy": "TimeSlicing", "timeSlicingConfig": {}},
    {"strategy": 7},
]


def references() -> References:
    """A class with a configuration of its own."""
    own = config("GpuConfig", sharing={"strategy": "MPS"})["opaque"]
    spec = {"selectors": [{"cel": {"expression": SELECTED}}], "config": [{"opaque": own}]}
    return References(device_classes={"shared.example.com": class_brief({"spec": spec})})


def random_request(some: Random, name: str) -> dict[str, Any]:
    """A request, or a list of alternatives."""
    options = []
    for _ in range(some.randint(1, 3)):
        option = {"deviceClassName": some.choice(CLASSES)}
        option |= {key: some.choice(known) for key, known in VALUES.items() if some.random() < 0.2}
        options.append(option)
    if len(options) == 1:
        return {"name": name, "exactly": options[0]}
    listed = [{"name": f"s{index}", **each} for index, each in enumerate(options)]
    return {"name": name, "firstAvailable": listed}


def random_claim(some: Random) -> dict[str, Any]:
    """A claim with configurations of several drivers."""
    requests = [random_request(some, f"r{index}") for index in range(some.randint(0, 3))]
    configs = []
    for _ in range(some.randint(0, 2)):
        kind = some.choice(["GpuConfig", "MigDeviceConfig", "VfioDeviceConfig", "Other"])
        found = config(kind, *some.sample(["r0", "r1/s0"], 1), sharing=some.choice(SHARING))
        found["opaque"]["driver"] = some.choice(["gpu.nvidia.com", "nic.example.com"])
        configs.append(found)
    return claim(*requests, config=configs)


def random_rule(some: Random, row: Field) -> dict[str, Any]:
    """One rule that the field takes."""
    rule = some.choice(sorted(row.legal_rules - {"defaultFrom"}))
    arguments = {"canEdit": False, "required": True, "blocked": True, "step": 2}
    bound = "2Gi" if row.value == "quantity" else 2
    options = [{"value": some.choice(row.enum or ("gpu.nvidia.com", "1g.5gb"))}]
    return {rule: arguments.get(rule, options if rule == "options" else bound)}


def random_catalog(some: Random) -> Catalog:
    """Defaults that leave a mark, some of which nobody may change, and rules of other fields."""
    body: dict[str, Any] = {"defaults": {}, "rules": {}}
    for row in OWN:
        if row.writes != "never" and some.random() < 0.5:
            default = TELLING.get(row.path, everything.default_of(row))
            everything.put(body["defaults"], row.path, default)
            if some.random() < 0.3:
                everything.put(body["rules"], row.path, {"canEdit": False})
        elif some.random() < 0.1:
            everything.put(body["rules"], row.path, random_rule(some, row))
    return catalog(json.dumps(body))


@pytest.mark.parametrize("seed", range(20))
def test_what_the_first_pass_allows_the_others_allow_unchanged(seed: int) -> None:
    some, known = Random(seed), references()
    rules = random_catalog(some)
    for _ in range(20):
        given = random_claim(some)
        kept = copy.deepcopy(given)
        first = decide(building.request(given), rules, known)
        assert given == kept
        if not isinstance(first, Allowed):
            continue
        again = decide(building.request(first.object), rules, known)
        assert isinstance(again, Allowed), given
        assert not again.patch, given
        last = decide(building.request(first.object, stage=Stage.VALIDATE), rules, known)
        assert isinstance(last, Allowed), given
        assert others(first.object) == others(given)


def others(document: Any) -> list[Any]:
    """The configurations of other drivers."""
    listed = document["spec"]["devices"]["config"]
    return [each for each in listed if each["opaque"]["driver"] == "nic.example.com"]
