"""A sidecar injector beside podgate, called before it and after: nothing breaks, nothing slips by."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest

from tests.e2e.api import StatusError
from tests.e2e.gate import Gate, wait_for
from tests.e2e.injector import Injector, Patch
from tests.e2e.objects import Json
from tests.e2e.served import Certificates, Served, serving

pytestmark = pytest.mark.e2e

# Mutating webhooks are called in the order of their configurations' names; ours is `podgate`.
ORDERS = pytest.mark.parametrize("order", ["a-injector", "z-injector"], ids=["before", "after"])
POLICY = """\
apiVersion: podgate.dev/v1alpha1
kind: ClusterWorkloadPolicy
metadata: {name: closed}
spec:
  defaults:
    workingDir: /workspace
    environmentVariables: {instances: [{name: CLUSTER, value: e2e}]}
  rules:
    image:
      options:
        - {value: registry.example.com/base/python:3.12}
        - {value: registry.example.com/base/proxy:1}
    environmentVariables: {instances: {canAdd: false, locked: [CLUSTER]}}
    storage: {emptyDirVolume: {instances: {canAdd: false}}}
"""
SIDECAR: Json = {
    "name": "mesh-proxy",
    "image": "registry.example.com/mesh/proxy:1.24",
    "env": [{"name": "MESH", "value": "on"}],
    "securityContext": {"runAsUser": 1337},
    "volumeMounts": [{"name": "mesh", "mountPath": "/etc/mesh"}],
}
VOLUME: Json = {"name": "mesh", "emptyDir": {"medium": "Memory"}}
INJECTED = {
    "containers": [
        {
            "name": "mesh-proxy",
            "image": "registry.example.com/mesh/proxy:*",
            "securityContext": {"runAsUser": 1337},
            "volumeMounts": SIDECAR["volumeMounts"],
        }
    ],
    "items": [
        {
            "field": "storage.emptyDirVolume",
            "content": VOLUME,
            "mounts": SIDECAR["volumeMounts"],
        }
    ],
}


@pytest.fixture(scope="module")
def own(
    tmp_path_factory: pytest.TempPathFactory, certificates: Certificates, gate: Gate
) -> Iterator[Served]:
    """A podgate that knows the mesh; afterwards the other one is back."""
    folder = tmp_path_factory.mktemp("mesh")
    (folder / "given").mkdir()
    (folder / "given" / "closed.yaml").write_text(POLICY)
    (folder / "injected.yaml").write_text(json.dumps(INJECTED))
    settings = {"PODGATE_INJECTED": str(folder / "injected.yaml")}
    try:
        with serving(folder, folder / "given", certificates, settings) as served:
            gate.register(served.url)
            yield served
    finally:
        gate.register(gate.recorder.url)
        gate.wait_until_refused("governed")


@pytest.fixture
def inject(
    gate: Gate, own: Served, certificates: Certificates
) -> Iterator[Callable[[str, Callable[[Json], Patch]], str]]:
    """Register an injector under a name; gives the namespace whose pods it is asked about."""
    names: list[str] = []
    injector = Injector(certificates)

    def registered(name: str, patch: Callable[[Json], Patch]) -> str:
        space = gate.governed_namespace()
        injector.inject = patch
        names.append(name)
        gate.kubectl("apply", "-f", "-", input=json.dumps(injector.configuration(name, space)))

        def asked() -> bool:
            attempt(gate, space)
            return injector.asked > 0

        wait_for(asked, "the injector is not asked")
        return space

    with injector.running():
        try:
            yield registered
        finally:
            for name in names:
                gate.kubectl("delete", "mutatingwebhookconfiguration", name)


def attempt(gate: Gate, space: str) -> Json | str:
    """What the API server would store of a Pod, or what the refusal says."""
    try:
        return gate.api.create(gate.manifest("pod"), space, dry_run=True)
    except StatusError as error:
        return str(error)


def adding(sidecar: Json) -> Callable[[Json], Patch]:
    """Adds a sidecar with its volume, once."""

    def patch(pod: Json) -> Patch:
        spec = pod["spec"]
        if any(each["name"] == sidecar["name"] for each in spec["containers"]):
            return []
        volumes: Patch = (
            [] if "volumes" in spec else [{"op": "add", "path": "/spec/volumes", "value": []}]
        )
        return [
            {"op": "add", "path": "/spec/containers/-", "value": sidecar},
            *volumes,
            {"op": "add", "path": "/spec/volumes/-", "value": VOLUME},
        ]

    return patch


def setting_variables(*variables: Json) -> Callable[[Json], Patch]:
    """Gives the first container these variables and no others."""
    return lambda _: [{"op": "add", "path": "/spec/containers/0/env", "value": list(variables)}]


Inject = Callable[[str, Callable[[Json], Patch]], str]


@ORDERS
def test_a_sidecar_of_the_list_passes_and_the_rest_is_completed(
    gate: Gate, inject: Inject, order: str
) -> None:
    found = attempt(gate, inject(order, adding(SIDECAR)))
    assert isinstance(found, dict), found
    main, *others = found["spec"]["containers"]
    assert main["workingDir"] == "/workspace"
    assert main["env"] == [{"name": "CLUSTER", "value": "e2e"}]
    sidecar = next(each for each in others if each["name"] == "mesh-proxy")
    # The API server mounts the token of the service account there too.
    sidecar["volumeMounts"] = sidecar["volumeMounts"][:1]
    assert {key: sidecar[key] for key in SIDECAR} == SIDECAR
    assert "workingDir" not in sidecar


@ORDERS
@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"image": "registry.example.com/evil/miner:1"}, "image at spec.containers"),
        ({"name": "other-proxy"}, "image at spec.containers"),
        ({"securityContext": {"runAsUser": 1337, "privileged": True}}, "security.privileged at"),
        ({"volumeMounts": [{"name": "mesh", "mountPath": "/"}]}, "image at spec.containers"),
    ],
    ids=["image", "name", "privileged", "mount"],
)
def test_what_only_resembles_it_is_refused(
    gate: Gate, inject: Inject, order: str, change: Json, told: str
) -> None:
    found = attempt(gate, inject(order, adding({**SIDECAR, **change})))
    assert isinstance(found, str), found
    assert "podgate refused this object" in found
    assert told in found


@ORDERS
def test_a_variable_that_the_injector_adds_for_others_is_an_addition(
    gate: Gate, inject: Inject, order: str
) -> None:
    cluster = {"name": "CLUSTER", "value": "e2e"}
    extra = {"name": "EXTRA", "value": "1"}
    found = attempt(gate, inject(order, setting_variables(cluster, extra)))
    assert isinstance(found, str), found
    assert "environmentVariables at spec.containers[0]" in found


@ORDERS
def test_a_locked_variable_cannot_be_changed_by_an_injector(
    gate: Gate, inject: Inject, order: str
) -> None:
    found = attempt(gate, inject(order, setting_variables({"name": "CLUSTER", "value": "other"})))
    assert isinstance(found, str), found
    assert "environmentVariables at spec.containers[0]" in found


@ORDERS
def test_a_locked_variable_that_an_injector_takes_out_comes_back_or_is_missed(
    gate: Gate, inject: Inject, order: str
) -> None:
    found = attempt(gate, inject(order, setting_variables()))
    if isinstance(found, dict):
        assert found["spec"]["containers"][0]["env"] == [{"name": "CLUSTER", "value": "e2e"}]
    else:
        assert "environmentVariables at spec.containers[0]" in found
