"""Several definitions of one kind: all add places, one decides, and nobody narrows another's."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests import building
from tests.definitions import document
from webhook.catalog.build import Choices, assemble
from webhook.catalog.catalog import Catalog
from webhook.catalog.definition_status import DefinitionStatus
from webhook.decision.decide import decide
from webhook.documents.problem import Problem
from webhook.evaluation.installation import InstallationConfig
from webhook.evaluation.outcome import Allowed, Decision, Denied
from webhook.evaluation.references import References
from webhook.evaluation.request import Request
from webhook.objects.path import display
from webhook.pods.coverage import find_uncovered
from webhook.pods.locate import locate
from webhook.pods.replicas import read_scales

Json = dict[str, Any]
DEPLOYMENT = {"group": "apps", "version": "v1", "kind": "Deployment"}
FLEET = {"group": "fleet.example.com", "version": "v1", "kind": "Fleet"}
EARLY, LATE = "2026-01-02T03:04:05Z", "2026-02-02T03:04:05Z"


def interface(
    kind: Json,
    name: str = "given",
    *,
    document_kind: str = "ResourceInterface",
    created: str = "",
    root: str = "main",
    **component: Any,
) -> Json:
    """A definition with one component; without a path it has no pods."""
    version = {"ResourceInterface": "optimization.nvidia.com", "Karta": "run.ai"}[document_kind]
    body = {"name": root, "kind": kind, "statusDefinition": {"statusMappings": {}}, **component}
    return {
        "apiVersion": f"{version}/v1alpha1",
        "kind": document_kind,
        "metadata": {"name": name, **({"creationTimestamp": created} if created else {})},
        "spec": {"structureDefinition": {"rootComponent": body}},
    }


def template(path: str) -> Json:
    return {"specDefinition": {"podTemplateSpecPath": path}}


def fragments(**paths: str) -> Json:
    return {"specDefinition": {"fragmentedPodSpecDefinition": paths}}


def profile(kind: Json, name: str = "given", *, created: str = "", **body: Any) -> Json:
    return {
        "apiVersion": "podgate.dev/v1alpha1",
        "kind": "WorkloadProfile",
        "metadata": {"name": name, **({"creationTimestamp": created} if created else {})},
        "spec": {
            "group": kind["group"],
            "kind": kind["kind"],
            "versions": [kind["version"]],
            "resource": f"{kind['kind'].lower()}s",
            **body,
        },
    }


def assembled(*given: Json, prefer: str = "") -> tuple[Catalog | None, list[Problem]]:
    """What comes of the shipped documents and these, in files of their own."""
    config = InstallationConfig(prefer_given=(prefer,) if prefer else ())
    documents = [document(each, f"{index}.yaml") for index, each in enumerate(given)]
    choices = Choices(config=config)
    catalog, problems = assemble(building.shipped(), documents, choices, building.table())
    return catalog, [each for each in problems if each.origin.endswith(".yaml")]


def catalog_of(*given: Json, prefer: str = "") -> Catalog:
    catalog, problems = assembled(*given, prefer=prefer)
    assert catalog is not None, problems
    return catalog


def notes(*given: Json, prefer: str = "") -> list[tuple[str, str]]:
    """Where and what is told of documents that do not decide."""
    _, problems = assembled(*given, prefer=prefer)
    assert not [each for each in problems if each.severity == "error"], problems
    return [(each.origin, each.found) for each in problems if each.reason == "not-deciding"]


def standing(catalog: Catalog, name: str, sort: str = "ResourceInterface") -> DefinitionStatus:
    (found,) = (
        each
        for each in catalog.statuses
        if (each.document.value.name, each.document.sort) == (name, sort)
    )
    return found


def definition(catalog: Catalog, kind: Json) -> Any:
    found = catalog.definition(kind["group"], kind["kind"], kind["version"])
    assert found is not None
    return found


def pod(image: str = "a", **more: Any) -> Json:
    return {"spec": {"containers": [{"name": "main", "image": image, **more}]}}


def deployment(**spec: Any) -> Json:
    body = {"template": building.template(pod()["spec"]), **spec}
    return building.shell("apps/v1", "Deployment", body)


def places(catalog: Catalog, kind: Json, data: Json) -> list[str]:
    """The concrete places of pods, with their roles."""
    return [
        f"{display(each.place)} {'/'.join(each.roles)}"
        for each in locate(definition(catalog, kind), data)
    ]


# The shipped system policy forbids privileged containers.
def judged(catalog: Catalog, kind: Json, data: Json) -> Decision:
    names = {key: kind[key] for key in ("group", "version", "kind")}
    request = Request(**names, operation="CREATE", namespace="team", object=data)
    return decide(request, catalog, References())


def test_places_of_all_definitions_are_catalog_of() -> None:
    catalog = catalog_of(interface(DEPLOYMENT, **template(".spec.canary")))
    data = deployment(canary=pod())
    assert places(catalog, DEPLOYMENT, data) == ["spec.template worker", "spec.canary worker"]
    found = definition(catalog, DEPLOYMENT)
    assert found.profile.workload_type == "inference"
    assert found.interface.name == "deployment.apps"
    assert not find_uncovered(data, locate(found, data), found)


@pytest.mark.parametrize("prefer", ["", "Deployment.apps"])
def test_an_empty_definition_takes_no_pods_away(prefer: str) -> None:
    catalog = catalog_of(interface(DEPLOYMENT), prefer=prefer)
    bad = deployment(template=building.template(pod(securityContext={"privileged": True})["spec"]))
    decision = judged(catalog, DEPLOYMENT, bad)
    assert isinstance(decision, Denied)
    (violation,) = decision.violations
    assert violation.field == "security.privileged"
    assert display(violation.path).startswith("spec.template.spec.containers[0]")
    assert isinstance(judged(catalog, DEPLOYMENT, deployment()), Allowed)


def test_a_definition_of_the_same_places_judges_nothing_twice() -> None:
    same = interface(DEPLOYMENT, specDefinition={"podSpecPath": ".spec.template.spec"})
    pieces = interface(
        DEPLOYMENT,
        "pieces",
        **fragments(
            containersPath=".spec.template.spec.containers",
            labelsPath=".spec.template.metadata.labels",
            schedulerNamePath=".spec.template.spec.schedulerName",
        ),
    )
    catalog = catalog_of(same, pieces)
    assert places(catalog, DEPLOYMENT, deployment()) == ["spec.template worker"]
    bad = deployment(template=building.template(pod(securityContext={"privileged": True})["spec"]))
    decision = judged(catalog, DEPLOYMENT, bad)
    assert isinstance(decision, Denied)
    assert len(decision.violations) == 1


NIM = {"group": "apps.nvidia.com", "version": "v1alpha1", "kind": "NIMService"}


def nim(**spec: Any) -> Json:
    image = {"repository": "registry.example.com/nim", "tag": "1"}
    return building.shell("apps.nvidia.com/v1alpha1", "NIMService", {"image": image, **spec})


def test_pieces_that_a_shipped_definition_knows_are_not_judged_again() -> None:
    karta = interface(
        NIM,
        document_kind="Karta",
        root="nim",
        **fragments(
            imagePath=".spec.image",
            resourcesPath=".spec.resources",
            labelsPath=".spec.labels",
            schedulerNamePath=".spec.schedulerName",
        ),
    )
    catalog = catalog_of(karta)
    before = locate(definition(catalog_of(), NIM), nim())
    assert [each.component for each in locate(definition(catalog, NIM), nim())] == [
        each.component for each in before
    ]
    # Beside known pieces there is a container of its own, which is a pod of its own.
    more = copy.deepcopy(karta)
    paths = more["spec"]["structureDefinition"]["rootComponent"]["specDefinition"]
    paths["fragmentedPodSpecDefinition"]["containerPath"] = ".spec.helper"
    helped = nim(helper={"name": "helper", "image": "b"})
    *known, added = locate(definition(catalog_of(more), NIM), helped)
    assert len(known) == len(before)
    assert added.spec["containers"] == [{"name": "helper", "image": "b"}]
    assert added.roles == ("worker",)


def test_an_added_place_has_the_role_that_its_own_profile_says() -> None:
    given = interface(DEPLOYMENT, root="canary", **template(".spec.canary"))
    data = deployment(canary=pod())
    own = profile(DEPLOYMENT, components={"canary": {"role": "leader"}})
    assert places(catalog_of(given, own), DEPLOYMENT, data) == [
        "spec.template worker",
        "spec.canary leader",
    ]
    # The shipped profile's word for a component of that name is not a word on this one.
    head = {"group": "ray.io", "version": "v1", "kind": "RayCluster"}
    ray = interface(head, root="raycluster", **template(".spec.other"))
    child = {"name": "head", "ownerRef": "raycluster", **template(".spec.another")}
    ray["spec"]["structureDefinition"]["childComponents"] = [child]
    data = building.shell(
        "ray.io/v1", "RayCluster", {"headGroupSpec": {"template": pod()}, "another": pod()}
    )
    found = locate(definition(catalog_of(ray), head), data)
    assert [(each.component, each.instance, each.roles) for each in found] == [
        ("head", "", ("master",)),
        ("head", "#2", ("worker",)),
    ]


def test_further_containers_of_a_known_pod_are_added_to_it() -> None:
    given = interface(DEPLOYMENT, **template(".spec.template"))
    own = profile(
        DEPLOYMENT,
        components={"main": {}},
        extraContainers=[{"component": "main", "place": ".spec.sidecar"}],
    )
    data = deployment(sidecar={"name": "s", "image": "b", "securityContext": {"privileged": True}})
    catalog = catalog_of(given, own)
    (found,) = locate(definition(catalog, DEPLOYMENT), data)
    assert [display(path) for path, _ in found.extra] == ["spec.sidecar"]
    decision = judged(catalog, DEPLOYMENT, data)
    assert isinstance(decision, Denied)
    assert [display(each.path) for each in decision.violations] == [
        "spec.sidecar.securityContext.privileged"
    ]


def test_a_shipped_definition_decides_and_the_given_one_is_told_so() -> None:
    given = interface(DEPLOYMENT), profile(DEPLOYMENT, components={"main": {}})
    catalog = catalog_of(*given)
    found = definition(catalog, DEPLOYMENT)
    assert (found.interface.name, found.profile.name) == ("deployment.apps", "deployment.apps")
    assert standing(catalog, "deployment.apps").decides == ("v1",)
    assert standing(catalog, "given").decides == ()
    assert standing(catalog, "given").because == "the shipped one decides"
    assert standing(catalog, "given", "WorkloadProfile").because == "the shipped one decides"
    kind = "Deployment.apps: the shipped one decides;"
    kept = "its paths to pods count", "its roles apply at its paths"
    assert notes(*given) == [
        ("0.yaml", f"a further ResourceInterface of {kind} {kept[0]} all the same"),
        ("1.yaml", f"a further WorkloadProfile of {kind} {kept[1]} all the same"),
    ]


def test_settings_let_given_definitions_decide() -> None:
    given = (
        interface(DEPLOYMENT, **template(".spec.template")),
        profile(DEPLOYMENT, components={"main": {"role": "leader"}}, workloadType="workspace"),
    )
    catalog = catalog_of(*given, prefer="Deployment.apps")
    found = definition(catalog, DEPLOYMENT)
    assert (found.interface.name, found.profile.name) == ("given", "given")
    assert found.profile.workload_type == "workspace"
    assert places(catalog, DEPLOYMENT, deployment()) == ["spec.template leader"]
    assert not notes(*given, prefer="Deployment.apps")
    lost = standing(catalog, "deployment.apps")
    assert (lost.decides, lost.because) == ((), "the settings prefer ResourceInterface given")
    # Other kinds are as they were.
    other = standing(catalog, "job.batch")
    assert (other.decides, other.because) == (("v1",), "")


def test_a_preferred_profile_alone_goes_with_the_shipped_definition() -> None:
    own = profile(DEPLOYMENT, components={"deployment": {"role": "leader"}})
    catalog = catalog_of(own, prefer="Deployment.apps")
    found = definition(catalog, DEPLOYMENT)
    assert (found.interface.name, found.profile.name) == ("deployment.apps", "given")
    assert places(catalog, DEPLOYMENT, deployment()) == ["spec.template leader"]


def test_a_preferred_definition_that_no_profile_fits_is_told() -> None:
    _, problems = assembled(interface(DEPLOYMENT), prefer="Deployment.apps")
    (found,) = (each for each in problems if each.reason == "profile-not-fitting")
    assert found.severity == "warning"
    assert found.fix == ("give it a WorkloadProfile; without one every component is a worker")


def test_a_preferred_kind_without_a_given_definition_is_told() -> None:
    config = InstallationConfig(prefer_given=("Deploymnet.apps", "Pod"))
    _, problems = assemble(building.shipped(), [], Choices(config=config), building.table())
    told = [(each.severity, each.found) for each in problems if each.origin == "settings"]
    assert told == [
        ("warning", "`Pod`, and no definition of it is given"),
        ("warning", "`Deploymnet.apps`, and no definition of it is given"),
    ]


@pytest.mark.parametrize("backwards", [False, True])
def test_of_given_definitions_the_oldest_decides_then_the_first_by_name(backwards: bool) -> None:
    several = [
        interface(FLEET, "b", created=EARLY, **template(".spec.b")),
        interface(FLEET, "a", created=LATE, **template(".spec.a")),
        interface(FLEET, "c", created=EARLY, **template(".spec.c")),
    ]
    if backwards:
        several.reverse()
    catalog = catalog_of(*several)
    assert definition(catalog, FLEET).interface.name == "b"
    data = building.shell("fleet.example.com/v1", "Fleet", {each: pod() for each in "abc"})
    assert places(catalog, FLEET, data) == ["spec.b worker", "spec.c worker", "spec.a worker"]
    assert standing(catalog, "a").because == "ResourceInterface b is older and decides"
    assert standing(catalog, "c").because == "ResourceInterface b is the first by name and decides"
    assert standing(catalog, "b").because == ""
    assert len(notes(*several)) == 2


def test_a_file_comes_before_what_the_cluster_got_later() -> None:
    in_file = interface(FLEET, "z", **template(".spec.z"))
    in_cluster = interface(FLEET, "a", created=EARLY, **template(".spec.a"))
    assert definition(catalog_of(in_cluster, in_file), FLEET).interface.name == "z"
    # A time that no API server writes is no time.
    odd = interface(FLEET, "b", created="0001", **template(".spec.b"))
    assert definition(catalog_of(in_file, odd), FLEET).interface.name == "b"


def test_both_kinds_of_documents_are_definitions_of_one_kind() -> None:
    one = interface(FLEET, "same", **template(".spec.one"))
    other = interface(FLEET, "same", document_kind="Karta", **template(".spec.other"))
    catalog = catalog_of(one, other)
    found = definition(catalog, FLEET)
    assert found.interface.raw["kind"] == "Karta"
    data = building.shell("fleet.example.com/v1", "Fleet", {"one": pod(), "other": pod()})
    assert places(catalog, FLEET, data) == ["spec.other worker", "spec.one worker"]
    assert [each.instance for each in locate(found, data)] == ["", "#2"]
    assert standing(catalog, "same", "Karta").decides == ("v1",)
    because = "Karta same is the first by name and decides"
    assert standing(catalog, "same").because == because


def test_each_pod_of_components_with_one_name_has_an_instance_of_its_own() -> None:
    several = [
        interface(FLEET, each, root=root, **template(f".spec.{each}"))
        for each, root in (("a", "main"), ("b", "other"), ("c", "main"), ("d", "other"))
    ]
    data = building.shell("fleet.example.com/v1", "Fleet", {each: pod() for each in "abcd"})
    found = locate(definition(catalog_of(*several), FLEET), data)
    assert [(each.component, each.instance) for each in found] == [
        ("main", ""),
        ("other", ""),
        ("main", "#3"),
        ("other", "#4"),
    ]


def test_of_two_profiles_the_first_decides() -> None:
    first = profile(FLEET, "first", created=EARLY, components={"main": {"role": "leader"}})
    second = profile(FLEET, "second", created=LATE, components={"main": {"role": "master"}})
    kind = interface(FLEET, **template(".spec.pod"))
    catalog = catalog_of(kind, second, first)
    data = building.shell("fleet.example.com/v1", "Fleet", {"pod": pod()})
    assert places(catalog, FLEET, data) == ["spec.pod leader"]
    told = standing(catalog, "second", "WorkloadProfile")
    assert told.because == "WorkloadProfile first is older and decides"


def test_a_profile_without_an_interface_cannot_be_used() -> None:
    catalog, problems = assembled(profile(FLEET))
    assert catalog is None
    (found,) = problems
    assert (found.reason, found.path) == ("profile-without-interface", "spec.kind")


def test_a_profile_beside_a_faulty_interface_is_not_said_to_lack_one() -> None:
    kind = interface(FLEET, **template(".spec.[pod"))
    catalog, problems = assembled(kind, profile(FLEET))
    assert catalog is None
    faulty, follows = problems
    assert (faulty.origin, faulty.severity) == ("0.yaml", "error")
    assert follows.reason == "profile-without-interface"
    assert follows.found == "a profile of Fleet whose resource interface cannot be used"
    assert follows.fix == "correct that one first"


def test_a_profile_that_fits_no_interface_cannot_be_used() -> None:
    catalog, problems = assembled(profile(DEPLOYMENT, components={"server": {}}))
    assert catalog is None
    assert [each.reason for each in problems if each.severity == "error"] == ["component-unknown"]


def test_versions_are_combined_each_for_itself() -> None:
    older = {"group": "ray.io", "version": "v1alpha1", "kind": "RayCluster"}
    catalog = catalog_of(interface(older, **template(".spec.extra")))
    newer = {**older, "version": "v1"}
    head = {"headGroupSpec": {"template": pod()}, "extra": pod()}
    data = building.shell("ray.io/v1alpha1", "RayCluster", head)
    assert places(catalog, older, data) == [
        "spec.headGroupSpec.template master",
        "spec.extra worker",
    ]
    assert places(catalog, newer, data) == ["spec.headGroupSpec.template master"]
    assert definition(catalog, older).versions == ("v1alpha1",)
    assert definition(catalog, newer).versions == ("v1",)
    # A plan for one of them is not one for the other.
    plans = [
        catalog.plans_for(definition(catalog, each), "team", References(), {}).enforced
        for each in (older, newer)
    ]
    assert plans[0] is not plans[1]
    assert [len(each.definition.others) for each in plans] == [1, 0]


def test_a_version_that_only_a_given_definition_has_is_its_own() -> None:
    newer = {**DEPLOYMENT, "version": "v2"}
    catalog = catalog_of(interface(newer, **template(".spec.pod")))
    data = building.shell("apps/v2", "Deployment", {"pod": pod()})
    assert places(catalog, newer, data) == ["spec.pod worker"]
    assert standing(catalog, "given").decides == ("v2",)
    assert not standing(catalog, "given").because


def test_pods_that_only_one_definition_knows_have_its_replicas() -> None:
    given = interface(
        DEPLOYMENT,
        root="canary",
        **template(".spec.canary"),
        scaleDefinition={"replicasPath": ".spec.canaries"},
    )
    found = definition(catalog_of(given), DEPLOYMENT)
    with_canary = deployment(replicas=2, canary=pod(), canaries=5)
    numbers = {each.component: each.replicas for each in read_scales(found, with_canary)}
    assert numbers == {"deployment": 2, "canary": 5}
    without = deployment(replicas=2, canaries=5)
    assert [each.component for each in read_scales(found, without)] == ["deployment"]


def test_an_update_compares_each_place_with_itself() -> None:
    given = interface(DEPLOYMENT, root="deployment", **template(".spec.canary"))
    catalog = catalog_of(given)
    bad = pod(securityContext={"privileged": True})
    old = deployment(canary=bad)
    new = deployment(canary=bad, replicas=3)
    request = Request(**DEPLOYMENT, operation="UPDATE", namespace="team", object=new, old=old)
    assert isinstance(decide(request, catalog, References()), Allowed)
    moved = deployment(template=building.template(bad["spec"]), canary=pod())
    request = Request(**DEPLOYMENT, operation="UPDATE", namespace="team", object=moved, old=old)
    assert isinstance(decide(request, catalog, References()), Denied)
