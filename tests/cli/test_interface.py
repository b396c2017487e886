"""podgate interface: drafts, checks, trees and extracts, as people run them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.running import podgate
from tests.drafting.test_infer import OWN_OBJECT, own_crd


@pytest.fixture
def crd(tmp_path: Path) -> str:
    """A CRD of our own, in a file."""
    path = tmp_path / "crd.yaml"
    path.write_text(yaml.safe_dump(own_crd()))
    return str(path)


@pytest.fixture
def sample(tmp_path: Path) -> str:
    """An object of it."""
    path = tmp_path / "object.yaml"
    path.write_text(OWN_OBJECT)
    return str(path)


@pytest.fixture
def draft(tmp_path: Path, crd: str) -> Path:
    """The definition drafted from the CRD."""
    result = podgate("interface", "infer", crd)
    assert (result.exit_code, result.stderr) == (0, "")
    path = tmp_path / "fleet.yaml"
    path.write_text(result.stdout)
    return path


def changed(path: Path, before: str, after: str) -> str:
    """The file with something else in it."""
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after))
    return str(path)


def test_a_draft_passes_its_own_check(draft: Path, crd: str, sample: str) -> None:
    result = podgate(
        "interface", "check", str(draft), "--crd", crd, "--sample", sample, "-o", "json"
    )
    body = json.loads(result.stdout)
    assert result.exit_code == 0
    assert {(each["reason"], each["severity"]) for each in body["problems"]} == {
        ("component-empty", "warning")  # the sample has no odd-name
    }
    path = next(each for each in body["paths"] if each["path"].endswith("podTemplateSpecPath"))
    assert (path["native"], path["assignable"], path["of"]) == (True, True, "object")
    (rows,) = body["samples"]
    counts = {each["component"]: each["pods"] for each in rows["components"]}
    assert counts == {"fleet": 0, "members": 3, "gateway": 1, "odd-name": 0}


def test_the_draft_says_what_it_rests_on(draft: Path) -> None:
    text = draft.read_text()
    for told in ("the schema requires `name`", "a guess by the name", "put its own here"):
        assert told in text.replace("\n", " ").replace("  ", "")


def test_what_only_looks_like_a_pod_is_put_under_not_pods_as_the_draft_says(tmp_path: Path) -> None:
    body = own_crd()
    spec = body["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    box = {"type": "object", "properties": {"name": {}, "image": {}, "tonnes": {}}}
    boxes = {"type": "array", "items": box}
    spec["properties"]["cargo"] = {"type": "object", "properties": {"containers": boxes}}
    crd, draft = tmp_path / "crd.yaml", tmp_path / "draft.yaml"
    crd.write_text(yaml.safe_dump(body))
    text = podgate("interface", "infer", str(crd)).stdout
    told = " ".join(line.strip(" #") for line in text.splitlines())
    row = "{place: '.spec.cargo', reason: what it is}"
    assert f"write in the profile's spec notPods: [{row}]" in told
    interface, profile = yaml.safe_load_all(text)
    children = interface["spec"]["structureDefinition"]["childComponents"]
    children[:] = [each for each in children if each["name"] != "cargo"]
    del profile["spec"]["components"]["cargo"]
    draft.write_text(yaml.safe_dump_all([interface, profile]))
    assert problems(str(draft), "--crd", str(crd))[0][2] == "place-uncovered"
    profile["spec"]["notPods"] = [yaml.safe_load(row)]
    draft.write_text(yaml.safe_dump_all([interface, profile]))
    assert problems(str(draft), "--crd", str(crd)) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ("show", "job"),
        ("show", "Jobs"),
        ("extract", "job", "-"),
        ("suspend", "job", "-"),
        ("tree", "job/training", "-"),
    ],
)
def test_a_name_of_several_kinds_is_answered_with_the_names_to_write(
    arguments: tuple[str, ...],
) -> None:
    result = podgate("interface", *arguments)
    assert result.exit_code == 2
    name = arguments[1].partition("/")[0]
    assert result.stderr == (
        f"error: several kinds are called {name}; write Job.batch or Job.batch.volcano.sh\n"
    )
    for exact in ("Job.batch", "Job.batch.volcano.sh"):
        shown = podgate("interface", "show", exact)
        assert shown.stdout.startswith(f"{exact} ")


def test_infer_takes_one_kind_of_several(tmp_path: Path, crd: str) -> None:
    other: dict[str, Any] = own_crd()
    other["spec"]["names"] = {"kind": "Boat", "plural": "boats"}
    both = tmp_path / "both.yaml"
    both.write_text(yaml.safe_dump_all([own_crd(), other]))
    text = podgate("interface", "infer", str(both), "--kind", "boat").stdout
    assert [each["metadata"]["name"] for each in yaml.safe_load_all(text)] == [
        "boat.example.com"
    ] * 2
    text = podgate("interface", "infer", str(both)).stdout
    assert len(list(yaml.safe_load_all(text))) == 4
    result = podgate("interface", "infer", str(both), "--kind", "car")
    assert result.exit_code == 2
    assert "no CustomResourceDefinition of kind car" in result.stderr


def test_infer_and_check_take_a_list_as_kubectl_prints_it(tmp_path: Path, draft: Path) -> None:
    path = tmp_path / "list.yaml"
    path.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": [own_crd()]}))
    assert podgate("interface", "infer", str(path)).stdout == draft.read_text()
    assert problems(str(draft), "--crd", str(path)) == []


def test_a_kind_without_pods_has_no_draft(tmp_path: Path) -> None:
    body = own_crd()
    body["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = {"type": "object"}
    path = tmp_path / "crd.yaml"
    path.write_text(yaml.safe_dump(body))
    result = podgate("interface", "infer", str(path))
    assert (result.exit_code, result.stdout) == (1, "")
    assert "nothing to govern" in result.stderr


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a: [", "crd.yaml:2:1"),
        ("kind: CustomResourceDefinition", "`spec.group`"),
        ("kind: Pod", "no CustomResourceDefinition at all"),
    ],
)
def test_infer_tells_what_it_cannot_read(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "crd.yaml"
    path.write_text(text)
    result = podgate("interface", "infer", str(path))
    assert result.exit_code == 2
    assert told in result.stderr


def problems(*arguments: str) -> list[tuple[int, str, str]]:
    """Line, severity and reason of what a check tells."""
    result = podgate("interface", "check", *arguments, "-o", "json")
    body = json.loads(result.stdout)
    assert result.exit_code == (2 if body["errors"] else 0)
    return [(each["line"], each["severity"], each["reason"]) for each in body["problems"]]


def test_a_path_beside_the_schema_is_told_with_what_was_meant(draft: Path, crd: str) -> None:
    path = changed(draft, ".spec.teams[].members[].replicas", ".spec.teams[].members[].replica")
    result = podgate("interface", "check", path, "--crd", crd)
    assert result.exit_code == 2
    assert "did you mean `replicas`?" in result.stdout


def test_a_path_that_ends_too_early_names_the_place_below(draft: Path, crd: str) -> None:
    path = changed(draft, "podTemplateSpecPath: '.spec.\"odd-name\"'", "podTemplateSpecPath: .spec")
    result = podgate("interface", "check", path, "--crd", crd)
    assert result.exit_code == 2
    assert "leads to no pod template in the schema; a pod template is at" in result.stdout
    assert '.spec."odd-name"' in result.stdout


def test_a_place_that_is_left_out_is_told(draft: Path, crd: str) -> None:
    path = changed(draft, "openSubtrees: [.spec.anything]", "openSubtrees: []")
    assert [each[1:] for each in problems(path, "--crd", crd)] == [("error", "place-uncovered")]


def test_all_problems_are_told_at_once(draft: Path, crd: str) -> None:
    text = draft.read_text().replace(".spec.teams[].members[].name", ".spec.others[].name")
    draft.write_text(text.replace("backoffLimit:", "backofLimit:"))
    reasons = {each[2] for each in problems(str(draft), "--crd", crd)}
    assert reasons >= {"not-paired", "not-in-schema"}


def test_a_field_that_does_not_exist_is_told(draft: Path) -> None:
    assert [each[1:] for each in problems(changed(draft, "backoffLimit:", "backofLimit:"))] == [
        ("error", "field-unknown")
    ]


def test_jq_that_is_not_native_is_evaluated_outside(draft: Path, sample: str) -> None:
    computed = "replicasPath: '[.spec.gateway.instances, 5] | max'"
    path = changed(draft, "replicasPath: .spec.gateway.instances", computed)
    assert "error" not in {each[1] for each in problems(path)}
    result = podgate("interface", "extract", path, sample, "-o", "json")
    scales = json.loads(result.stdout)["scales"]
    assert [each["replicas"] for each in scales if each["component"] == "gateway"] == [5]


def test_a_place_that_a_path_of_jq_names_is_doubtful_and_no_fault(draft: Path, crd: str) -> None:
    odd = '.spec."odd-name"'
    path = changed(draft, f"'{odd}'", f"'if .spec.suspend then empty else {odd} end'")
    assert [each[1:] for each in problems(path, "--crd", crd)] == [("warning", "place-uncovered")]
    text = podgate("interface", "check", path, "--crd", crd).stdout
    assert "which a path that needs jq names, and no schema can prove it" in text
    path = changed(draft, f"else {odd} end", "else .spec.spare end")
    assert ("error", "place-uncovered") in [each[1:] for each in problems(path, "--crd", crd)]


def test_keys_of_a_sample_that_the_schema_lacks_are_told(
    draft: Path, crd: str, sample: str
) -> None:
    changed(Path(sample), "  gateway:", "  gatway: {x: {y: 1}}\n  gateway:")
    told = problems(str(draft), "--sample", sample)
    assert "not-in-schema" not in {each[2] for each in told}
    told = problems(str(draft), "--crd", crd, "--sample", sample)
    assert [each for each in told if each[2] == "not-in-schema"] == [
        (11, "warning", "not-in-schema")
    ]
    text = podgate("interface", "check", str(draft), "--crd", crd, "--sample", sample).stdout
    assert (
        "spec.gatway: warning: the schema of v1 has no `gatway` here; did you mean `gateway`?"
        in text
    )


def test_what_is_no_jq_at_all_is_told(draft: Path) -> None:
    path = changed(draft, "replicasPath: .spec.gateway.instances", "replicasPath: '.spec | ('")
    assert "not-jq" in {each[2] for each in problems(path)}


def test_extract_prints_the_status(tmp_path: Path) -> None:
    job = tmp_path / "job.yaml"
    conditions = [{"type": "Complete", "status": "True"}]
    body = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": {}}
    job.write_text(yaml.safe_dump({**body, "status": {"conditions": conditions}}))
    result = podgate("interface", "extract", "job.batch", str(job))
    assert "status: Completed (Complete=True)" in result.stdout
    job.write_text(yaml.safe_dump(body))
    assert "status" not in podgate("interface", "extract", "job.batch", str(job)).stdout


def test_a_sample_of_another_kind_and_one_with_equal_ids(
    draft: Path, sample: str, tmp_path: Path
) -> None:
    other = tmp_path / "pod.yaml"
    other.write_text("apiVersion: v1\nkind: Pod\n")
    assert [each[2] for each in problems(str(draft), "--sample", str(other))] == ["sample-kind"]
    path = changed(Path(sample), "name: b", "name: a")
    assert "instance-ids" in {each[2] for each in problems(str(draft), "--sample", path)}


def test_what_defines_nothing_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("a: 1\n")
    assert [each[2] for each in problems(str(path))] == ["wrong-kind"]
    assert podgate("interface", "check", str(tmp_path / "none")).exit_code == 2
    assert podgate("interface", "check", str(path), "-o", "xml").exit_code == 2


def test_strict_counts_warnings(draft: Path, sample: str) -> None:
    arguments = ("interface", "check", str(draft), "--sample", sample)
    assert podgate(*arguments).exit_code == 0
    assert podgate(*arguments, "--strict").exit_code == 1


@pytest.mark.parametrize("name", ["JobSet", "jobsets", "jobset.jobset.x-k8s.io"])
def test_show_finds_a_shipped_kind_by_any_name(name: str) -> None:
    result = podgate("interface", "show", name)
    assert result.exit_code == 0
    assert result.stdout.startswith("JobSet.jobset.x-k8s.io v1alpha2 (distributed)\n")
    assert ".spec.replicatedJobs[].template.spec.template" in result.stdout
    assert "numWorkers: replicas of replicatedjob" in result.stdout


def test_show_keeps_to_80_columns_where_words_allow_it() -> None:
    for kind in ("raycluster.ray.io", "nimservice.apps.nvidia.com", "pod"):
        lines = podgate("interface", "show", kind).stdout.splitlines()
        assert not [each for each in lines if len(each) > 80 and " " in each.strip()]


def test_show_draws_a_file_with_pieces_and_open_subtrees(draft: Path) -> None:
    text = podgate("interface", "show", str(draft)).stdout
    assert "gateway: worker, merged" in text
    assert "spec.containers[0].image: .spec.gateway.image as image" in text
    assert "searched for further containers\n    .spec.anything" in text


@pytest.mark.parametrize(
    ("name", "told"), [("Jobset5000", "did you mean"), ("x.yaml", "no such file"), ("-", "")]
)
def test_show_tells_what_it_does_not_know(name: str, told: str) -> None:
    result = podgate("interface", "show", name, stdin="")
    assert result.exit_code == 2
    assert told in result.stderr


def test_extract_prints_instances_places_and_scales(draft: Path, sample: str) -> None:
    result = podgate("interface", "extract", str(draft), sample)
    assert result.exit_code == 0
    lines = [line.split() for line in result.stdout.splitlines()]
    assert ["members", "0/a", "worker", "1", "spec.teams[0].members[0].template"] in lines
    assert ["members", "0/a", "3", "-", "-"] in lines
    assert ["gateway", "-", "worker", "2", "spec.gateway", "(in", "fragments)"] in lines


def test_extract_as_json_and_what_is_not_covered(draft: Path, sample: str) -> None:
    with Path(sample).open("a") as file:
        file.write("  anything: {x: {image: i, command: [sh]}}\n")
    result = podgate("interface", "extract", str(draft), sample, "-o", "json")
    body = json.loads(result.stdout)
    assert result.exit_code == 1
    assert body["uncovered"] == [{"path": "spec.anything.x", "what": "container"}]
    assert sorted(each["instance"] for each in body["pods"]) == ["", "0/a", "0/b", "1/a"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("apiVersion: v1\nkind: Pod\n", "found v1 Pod; the definition is of"),
        ("a: [", ":1"),
        ("apiVersion: example.com/v1\nkind: Fleet\nspec: {teams: 7}\n", "teams"),
        ("apiVersion: 7\nkind: []\n", "found no object"),
    ],
)
def test_extract_tells_what_it_cannot_read(draft: Path, text: str, told: str) -> None:
    result = podgate("interface", "extract", str(draft), "-", stdin=text)
    assert result.exit_code == 2
    assert told in result.stderr


def test_every_command_has_help() -> None:
    for name in ("infer", "check", "show", "extract"):
        result = podgate("interface", name, "--help")
        assert result.exit_code == 0
        assert "Exit code" in result.stdout


def test_objects_that_cannot_be_read_leave_the_others(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(json.dumps(named_deployment("first")))
    (tmp_path / "b.yaml").write_text("kind: [Deployment\n")
    (tmp_path / "c.yaml").write_text("apiVersion: v1\nkind: Service\nmetadata: {name: s}\n")
    items = [named_deployment("in-a-list"), {"kind": None}, named_deployment("last")]
    (tmp_path / "d.yaml").write_text(
        json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    )
    result = podgate("interface", "extract", "deployments.apps", str(tmp_path), "-o", "json")
    assert result.exit_code == 2
    assert [each["name"] for each in json.loads(result.stdout)] == ["first", "in-a-list", "last"]
    assert f"error: {tmp_path / 'b.yaml'}:2:" in result.stderr
    assert f"note: {tmp_path / 'c.yaml'}: found v1 Service" in result.stderr
    assert f"note: {tmp_path / 'd.yaml'}: found no object" in result.stderr


@pytest.mark.parametrize("command", ["suspend", "update"])
def test_an_object_beside_one_that_cannot_be_read_is_not_changed(
    tmp_path: Path, command: str
) -> None:
    (tmp_path / "a.yaml").write_text(json.dumps(named_deployment("first")) + "\n---\n[\n")
    more = ["-c", "deployment", "--set", "schedulerName=mine"] if command == "update" else []
    result = podgate("interface", command, "deployments.apps", str(tmp_path / "a.yaml"), *more)
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"error: {tmp_path / 'a.yaml'}:" in result.stderr


def named_deployment(name: str) -> dict[str, Any]:
    """A Deployment of this name."""
    spec = {"containers": [{"name": "a", "image": "x"}]}
    metadata = {"name": name}
    body = {"template": {"spec": spec}}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": body}


FAULTY = """\
apiVersion: optimization.nvidia.com/v1alpha1
kind: ResourceInterface
metadata: {name: fleet}
spec:
  structureDefinition:
    rootComponent:
      name: root
      kind: {group: example.com, version: v1, kind: Fleet}
      ownerRef: worker
    childComponents:
      - {name: worker, ownerRef: roots, specDefinition: {podTemplateSpecPath: '.spec.groups[].template'}}
      - {name: head, specDefinition: {podTemplateSpecPath: .spec.head, podSpecPath: 'PATH'}}
      - {name: NAME, ownerRef: root, specDefinition: {metadataPath: .spec.metadata}}
    additionalChildKinds:
      - {group: apps, version: v1, kind: Deployment}
      - {group: apps, version: v1, kind: Deployment}
---
apiVersion: podgate.dev/v1alpha1
kind: WorkloadProfile
metadata: {name: fleet}
spec:
  group: example.com
  kind: Fleet
  versions: [v2]
  resource: fleets
  components: {wroker: {role: worker}}
"""


@pytest.mark.parametrize(
    ("path", "name", "least"), [(".spec.pod", "tail", 7), ("del(.spec)", "root", 2)]
)
def test_a_message_about_a_definition_has_found_before_names_only(
    tmp_path: Path, path: str, name: str, least: int
) -> None:
    file = tmp_path / "fleet.yaml"
    file.write_text(FAULTY.replace("PATH", path).replace("NAME", name))
    lines = podgate("interface", "check", str(file)).stdout.splitlines()
    said = [line for line in lines if ": spec" in line]
    assert len(said) >= least, lines
    clause = re.compile(r"found [^;,]*\b(is|are|has|have|names|selects|gives|iterates|goes)\b")
    assert [line for line in said if clause.search(line)] == []
