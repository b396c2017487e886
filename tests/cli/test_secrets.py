"""Values of env, args, command and annotations are in no output, whichever command prints it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import planted
from tests.cli.running import podgate
from tests.planted import MARKER, POLICIES, SETTINGS, WORKLOADS, mark, markers_in
from webhook.catalog.catalog import Catalog
from webhook.cli import loading
from webhook.cli.outcomes import Tally
from webhook.cli.review import answer
from webhook.evaluation.request import Stage

ROOT = Path(__file__).resolve().parent.parent.parent
DEMO = ROOT / "policies" / "examples" / "demo"
PLAIN = DEMO / "manifests" / "deployment.yaml"
SETS = sorted(POLICIES)
MAIN_SETS = ("closed", "locked", "urls")
KINDS = sorted(WORKLOADS)

# What each set of policies refuses at least, of well-formed workloads and of the annotation's lists.
BROKEN = {
    "locked": {"canEdit", "canAdd", "locked"},
    "options": {"options"},
    "closed": {"blocked", "canEdit", "invalid-value"},
    "urls": {"wrong-type", "canAdd", "canEdit", "options", "invalid-value"},
    "computed": set[str](),
    "tried": set[str](),
    "two scopes": {"canEdit", "canAdd", "locked"},
}
CHECKOUTS = {"canAdd", "options"}


class Dumper(yaml.CSafeDumper):
    """Writes what is there twice out twice."""

    def ignore_aliases(self, data: Any) -> bool:
        """No aliases."""
        return True


@pytest.fixture(autouse=True)
def installation(monkeypatch: pytest.MonkeyPatch) -> None:
    """An installation that knows containers of git."""
    for name, value in SETTINGS.items():
        monkeypatch.setenv(name, value)


def written(file: Path, documents: Iterable[Any]) -> Path:
    """A file with these documents."""
    file.write_text(yaml.dump_all(list(documents), Dumper=Dumper))
    return file


@pytest.fixture
def policies(tmp_path: Path) -> Callable[[str], Path]:
    """Writes a set of policies; every one of its own annotations is a marker too."""
    return lambda name: written(tmp_path / "policies.yaml", POLICIES[name])


def planted_file(folder: Path, kind: str) -> tuple[Path, list[str]]:
    """Every manifest of a kind in one file, and what each is about."""
    named = list(planted.manifests(kind))
    file = written(folder / f"{kind}.yaml", (document for _, document in named))
    assert len(markers_in(file.read_text())) > 40, "the markers are in what is given"
    return file, [name for name, _ in named]


def silent(*texts: str) -> None:
    """No marker in any of these texts; the lines that hold one are told."""
    for text in texts:
        assert not [line for line in text.splitlines() if MARKER.search(line)]


def without_manifest(line: str) -> dict[str, Any]:
    """A verdict of `apply -o json` without the manifest itself."""
    verdict: dict[str, Any] = json.loads(line)
    assert MARKER.search(json.dumps(verdict.pop("object"))) or not verdict["allowed"]
    del verdict["patch"]
    return verdict


def reasons(verdict: dict[str, Any]) -> set[str]:
    """The reasons of a refusal."""
    return {each["reason"] for each in verdict["violations"]}


@pytest.mark.parametrize(
    ("name", "kind"),
    [(name, kind) for name in SETS for kind in KINDS if name in MAIN_SETS or kind == "Deployment"],
)
def test_apply_tells_no_value(
    name: str, kind: str, tmp_path: Path, policies: Callable[[str], Path]
) -> None:
    file, about = planted_file(tmp_path, kind)
    given = ("apply", "-p", str(policies(name)), str(file))
    done = podgate(*given, "-o", "json")
    verdicts = [without_manifest(line) for line in done.stdout.splitlines()]
    assert len(verdicts) == len(about)
    seen = reasons(verdicts[0]) | reasons(verdicts[about.index("urls")])
    if (name, kind) != ("urls", "NIMService"):  # of which such links are no fields
        assert BROKEN[name] <= seen
    if name == "closed" and kind != "NIMService":
        assert seen >= CHECKOUTS, "checkouts and node pools are read"
    assert len(verdicts[0]["warnings"]) > 1 or name != "tried"
    silent(json.dumps(verdicts, indent=0), done.stderr)
    text = podgate(*given, "-o", "text")
    assert text.stdout.count(f"{kind}/planted") == len(about)
    silent(text.stdout, text.stderr)
    if kind == "Deployment":
        silent(podgate(*given).stderr)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", MAIN_SETS)
def test_explain_tells_no_value_of_a_manifest(
    name: str, kind: str, tmp_path: Path, policies: Callable[[str], Path]
) -> None:
    file, about = planted_file(tmp_path, kind)
    one = written(tmp_path / "one.yaml", [WORKLOADS[kind]()])
    for output, given, count in (("text", file, len(about)), ("json", one, 1), ("yaml", one, 1)):
        done = podgate("explain", "-p", str(policies(name)), "-o", output, str(given))
        assert done.exit_code in (0, 1), done.stderr
        assert done.stdout.count("planted") >= count
        assert "TOKEN" in done.stdout, "keys are told"
        silent(done.stdout.replace(',"', ',\n"'), done.stderr)


@pytest.mark.parametrize("output", ["text", "json", "yaml"])
@pytest.mark.parametrize("name", SETS)
def test_explain_tells_no_value_of_a_policy(
    name: str, output: str, policies: Callable[[str], Path]
) -> None:
    file = policies(name)
    assert markers_in(file.read_text())
    for kind in ("Deployment", "NIMService"):
        done = podgate("explain", "-p", str(file), "-o", output, "--kind", kind)
        assert done.exit_code == 0, done.stderr
        assert "command" in done.stdout or name == "urls"
        silent(done.stdout.replace(',"', ',\n"'), done.stderr)


def item(**attributes: Any) -> dict[str, Any]:
    """Default environment variables of one item."""
    return {"defaults": {"environmentVariables": {"instances": [attributes]}}}


BAD_BODIES: dict[str, dict[str, Any]] = {
    "command is a map": {"defaults": {"command": {"a": mark("1")}}},
    "command with a list in it": {"defaults": {"command": [[mark("1")]]}},
    "quotes left open": {"defaults": {"command": f"'{mark('1')}", "args": f'"{mark("2")}'}},
    "variables are text": {"defaults": {"environmentVariables": mark("1")}},
    "variables are a list": {
        "defaults": {"environmentVariables": [{"name": "A", "value": mark("1")}]}
    },
    "instances are text": {"defaults": {"environmentVariables": {"instances": mark("1")}}},
    "an instance is text": {
        "defaults": {"environmentVariables": {"instances": [f"A={mark('1')}"]}}
    },
    "a value is a map": item(name="A", value={"a": mark("1")}),
    "a value is a list": item(name="A", value=[mark("1")]),
    "a name is a map": item(name={"a": mark("1")}, value=mark("2")),
    "no name": item(value=mark("1")),
    "a misspelt attribute": item(name="A", valeu=mark("1")),
    "a value and a secret": item(
        name="A", value=mark("1"), secret={"name": mark("2"), "key": "k", "more": mark("3")}
    ),
    "a secret is text": item(name="A", secret=mark("1")),
    "a field is text": item(name="A", podFieldRef=mark("1")),
    "exclude is text": item(name="A", value="a", exclude=mark("1")),
    "the same twice": {
        "defaults": {
            "environmentVariables": {
                "instances": [{"name": "A", "value": mark("1")}, {"name": "A", "value": mark("2")}]
            }
        }
    },
    "attributes with a value": {"defaults": {"environmentVariables": {"attributes": mark("1")}}},
    "annotations are text": {"defaults": {"annotations": mark("1")}},
    "annotations without instances": {"defaults": {"annotations": {"a.b/c": mark("1")}}},
    "an annotation with a bad key": {
        "defaults": {"annotations": {"instances": [{"name": "not ok", "value": mark("1")}]}}
    },
    "rules are text": {"rules": {"command": mark("1"), "args": [mark("2")]}},
    "flags are text": {"rules": {"command": {"canEdit": mark("1"), "blocked": mark("2")}}},
    "options are text": {"rules": {"command": {"options": mark("1")}}},
    "an option is a list": {"rules": {"command": {"options": [{"value": [[mark("1")]]}]}}},
    "an option with open quotes": {"rules": {"args": {"options": [f"'{mark('1')}"]}}},
    "a misspelt rule": {"rules": {"command": {"optoins": [mark("1")]}}},
    "rules of other types": {
        "rules": {"args": {"min": mark("1"), "defaultFrom": {"field": mark("2")}}}
    },
    "locked is text": {
        "rules": {"environmentVariables": {"instances": {"locked": mark("1"), "canAdd": mark("2")}}}
    },
    "rules on values": {
        "rules": {"environmentVariables": {"attributes": {"value": {"options": [mark("1")]}}}}
    },
    "a default off its list": {
        "defaults": {"command": mark("1")},
        "rules": {"command": {"options": [mark("2"), mark("3")]}},
    },
    "misspelt fields": {"defaults": {"comand": mark("1"), "enviromentVariables": mark("2")}},
    "roles": {
        "defaults": {"worker": {"environmentVariables": mark("1"), "args": {"a": mark("2")}}}
    },
    "other spellings": {"defaults": {"environment": mark("1"), "ARGUMENTS": [[mark("2")]]}},
    "sections in a key": {"defaults": {"environmentVariables.instances": [mark("1")]}},
}
BAD_TEXTS = {
    "an alias": f"args: *{mark('1')}",
    "a tag": f"args: !{mark('1')} a",
    "a number": f"args: !!int {mark('1')}",
    "a list left open": f"args: [{mark('1')}",
    "quotes left open": f"args: '{mark('1')}",
    "an escape": f'args: "{mark("1")}\\q"',
    "a mapping in a value": f"args: {mark('1')}: a: b",
    "a sign": f"args: @{mark('1')}",
    "a block": f"args: | {mark('1')}",
}


@pytest.mark.parametrize("output", ["text", "json", "sarif"])
@pytest.mark.parametrize("about", sorted(BAD_BODIES))
def test_lint_tells_no_value(about: str, output: str, tmp_path: Path) -> None:
    body = BAD_BODIES[about]
    for document in (
        planted.policy("bad", body),
        {"meta": {"name": "bad", "scope": "cluster"}, "policy": body},
        body,
    ):
        file = written(tmp_path / "bad.yaml", [document])
        assert markers_in(file.read_text())
        done = podgate("lint", str(file), "-o", output)
        assert done.exit_code == 2, "the fault is found"
        silent(done.stdout, done.stderr, podgate("apply", "-p", str(file), str(PLAIN)).stderr)
        silent(podgate("convert", "--workload-type", "training", str(file)).stderr)


@pytest.mark.parametrize("about", sorted(BAD_TEXTS))
def test_text_that_is_no_yaml_is_not_quoted(about: str, tmp_path: Path) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(f"defaults:\n  {BAD_TEXTS[about]}\n")
    for command in ("lint", "apply", "explain", "convert", "review"):
        done = podgate(command, str(file))
        assert done.exit_code == 2
        silent(done.stdout, done.stderr)


OLD = {
    "command": {"value": f"'{mark('1')}", "rules": {"options": mark("2"), "max": mark("3")}},
    "arguments": {"value": {"a": mark("4")}, "rules": mark("5")},
    "environment": {
        "items": {
            "A": {"value": mark("6"), "rules": {"canEdit": mark("7")}},
            "B": {"value": f"SECRET:{mark('8')}"},
            "C": {"value": {"x": mark("9")}},
            "D": mark("10"),
        },
        "itemRules": {"value": {"options": [mark("11")]}},
        "rules": {"canAdd": mark("12")},
    },
    "annotations": {"items": {"not ok": {"value": mark("13")}, "b": {"value": [mark("14")]}}},
    "other": {"value": mark("15")},
    "another": mark("16"),
}


@pytest.mark.parametrize("version", ["run.ai/v1alpha1", "run.ai/v2alpha1"])
def test_convert_tells_no_value_of_what_is_lost(version: str, tmp_path: Path) -> None:
    document = {
        "apiVersion": version,
        "kind": "TrainingPolicy",
        "metadata": {"name": "old", "namespace": "team", "annotations": {"a": mark("0")}},
        "spec": OLD,
    }
    done = podgate("convert", str(written(tmp_path / "old.yaml", [document])))
    assert done.exit_code
    assert len(done.stderr.splitlines()) >= 8, "every fault is told"
    silent(done.stderr)


def review(document: dict[str, Any], operation: str = "CREATE", **more: Any) -> dict[str, Any]:
    """A review of a planted workload."""
    group, _, version = document["apiVersion"].rpartition("/")
    kind = document["kind"]
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "u1",
            "kind": {"group": group, "version": version, "kind": kind},
            "resource": {"group": group, "version": version, "resource": f"{kind.lower()}s"},
            "operation": operation,
            "namespace": "team",
            "object": document,
            "userInfo": {"username": "alice"},
            **more,
        },
    }


@lru_cache(maxsize=1)
def catalog_of(policies: Path) -> Catalog:
    """The catalog of a file of policies."""
    return loading.catalog_of(loading.sources_of([str(policies)], None, None))


@pytest.mark.parametrize("name", ["locked", "closed", "urls", "tried"])
def test_a_review_tells_no_value(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    catalog = catalog_of(written(tmp_path / f"{name}.yaml", POLICIES[name]))
    seen: dict[str, set[str]] = {"causes": set(), "warnings": set(), "audit": set()}
    capsys.readouterr()
    for kind in KINDS:
        for stage in Stage:
            for _, document in planted.manifests(kind):
                body, tally = json.dumps(review(document)).encode(), Tally(frozenset())
                answer(body, "review.json", stage, catalog, {}, tally)
                out, err = capsys.readouterr()
                response = json.loads(out)["response"]
                response.pop("patch", None)
                causes = response.get("status", {}).get("details", {}).get("causes", [])
                seen["causes"] |= {each["reason"] for each in causes}
                seen["warnings"] |= set(response.get("warnings", ()))
                seen["audit"] |= set(response["auditAnnotations"])
                silent(json.dumps(response, indent=0), err)
    assert seen["causes"] & {"locked", "blocked", "wrong-type"}
    assert seen["warnings"]
    assert "rules" in seen["audit"]
    assert "audit" in seen["audit"] or name != "tried"


def test_a_failing_case_tells_no_value_among_violations(tmp_path: Path) -> None:
    # The object of a case is its author's own; where it differs, its lines are shown.
    case = {
        "policies": POLICIES["locked"],
        "object": planted.deployment(),
        "expect": {"violations": [{"reason": "min"}]},
    }
    file = tmp_path / "a-case" / "case.yaml"
    file.parent.mkdir()
    written(file, [case])
    done = podgate("test", str(tmp_path))
    assert done.exit_code == 1
    assert "reason: canEdit" in done.stdout
    assert "reason: locked" in done.stdout
    silent(done.stdout, done.stderr)
