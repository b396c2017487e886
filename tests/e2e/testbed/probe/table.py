"""Turns observations into the rules of the table."""

from collections.abc import Iterable
from typing import Any

from tests.e2e.testbed.probe import conditions, inputs, resources
from tests.e2e.testbed.probe.conditions import Explained
from tests.e2e.testbed.probe.kinds import Json
from tests.e2e.testbed.probe.observations import EACH, Answer, Observations, Path, Seen

_PULL_POLICIES = (
    (("containers", EACH, "imagePullPolicy"), "image"),
    (("volumes", EACH, "image", "pullPolicy"), "reference"),
)
Rules = list[tuple[Path, Explained]]


def spelled(path: Path) -> str:
    """Return `path` as text: `a.b[].c`; a key with dots or slashes as `["k.e/y"]`."""
    text = ""
    for key in path:
        if key == EACH:
            text += EACH
        elif "." in key or "/" in key:
            text += f'["{key}"]'
        else:
            text += f".{key}"
    return text.removeprefix(".")


def pod_rules(seen: Observations) -> tuple[Rules, dict[str, Rules]]:
    """Return the rules that hold for the pod specs of every kind, and those of single kinds."""
    common: Rules = []
    single: dict[str, Rules] = {}
    for path, places in seen.by_path().items():
        if resources.calculated(path):
            continue
        adding = {one.answer.kind for one in places if one.added}
        if adding == {one.answer.kind for one in places}:
            common += [(path, one) for one in conditions.explain(places)]
            continue
        for kind in sorted(adding):
            own = [one for one in places if one.answer.kind == kind]
            single.setdefault(kind, []).extend((path, one) for one in conditions.explain(own))
    return common, single


def workload_rules(seen: Observations) -> Rules:
    """Return the rules of one kind outside its pod spec."""
    return [
        (path, one) for path, places in seen.by_path().items() for one in conditions.explain(places)
    ]


def pull_policy_rules(seen: Observations) -> list[Json]:
    """Return the rules for pull policies, with the policy seen for each class of image."""
    found = seen.by_path()
    return [_image_tag(path, key, found[path]) for path, key in _PULL_POLICIES if path in found]


def _image_tag(path: Path, key: str, places: list[Seen]) -> Json:
    values: dict[str, Any] = {}
    for place in places:
        name = resources.image_class(place.parent[key])
        if values.setdefault(name, place.value) != place.value:
            raise conditions.UnexplainedError(f"{spelled(path)} differs for {name} images")
    values = {name: values[name] for name in inputs.IMAGES if name in values}
    return {"path": spelled(path), "rule": resources.IMAGE_TAG, "image": key, "values": values}


def calculated_rules(answers: Iterable[Answer]) -> tuple[list[Json], dict[str, list[Json]]]:
    """Return the calculated rules of every kind, and those of single kinds, in order."""
    answers = list(answers)
    kinds = sorted({one.kind for one in answers})
    common: list[Json] = []
    single: dict[str, list[Json]] = {}
    for path, name, check in resources.CHECKS:
        held: dict[str, list[bool]] = {kind: [] for kind in kinds}
        for answer in answers:
            held[answer.kind].extend(check(answer))
        following = [kind for kind, results in held.items() if results and all(results)]
        if mixed := [kind for kind, results in held.items() if any(results) and not all(results)]:
            raise conditions.UnexplainedError(f"{name} holds only sometimes for {mixed}")
        rule: Json = {"path": path, "rule": name}
        if following == kinds:
            common.append(rule)
            continue
        for kind in following:
            single.setdefault(kind, []).append(rule)
    return common, single
