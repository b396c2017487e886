"""One run of the probe against one server."""

from typing import Any

from tests.e2e.testbed import cache
from tests.e2e.testbed.probe import emptiness, inputs, kinds, resources, table
from tests.e2e.testbed.probe.client import Client, RefusedError
from tests.e2e.testbed.probe.kinds import KINDS, WITH_PODS, Json, Kind
from tests.e2e.testbed.probe.observations import Answer, Observations, Path, without_generated

_BY_NAME = {kind.name: kind for kind in KINDS}


def baseline_pod(name: str) -> tuple[Kind, Json]:
    """Return the kind Pod and a Pod with a container and an init container."""
    init = {"initContainers": [{"name": "init", "image": "registry.example/app:1"}]}
    return KINDS[0], KINDS[0].build(name, init)


class Session:
    """What one server answered, and the rules that follow from it."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._pods = Observations()
        self._resourced: list[Answer] = []
        self._images = Observations()
        self._workloads = {kind.name: Observations() for kind in KINDS}
        self._generated: dict[str, set[Path]] = {kind.name: set() for kind in KINDS}
        self._refused: dict[str, list[str]] = {}

    def learn(self) -> Json:
        """Send every input as every kind and return the table, without the admission part."""
        self._observe()
        common, single = table.pod_rules(self._pods)
        calculated, calculated_single = table.calculated_rules(
            [*self._pods.answers, *self._resourced]
        )
        pulls = table.pull_policy_rules(self._images)
        for path in sorted(self._pods.changed | self._images.changed):
            cache.tell(f"changed rather than added, and in no rule: {table.spelled(path)}")
        by_kind: Json = {}
        for kind in KINDS:
            name = kind.name
            by_kind[name] = {"apiVersion": kind.api_version}
            if kind.pod_spec:
                own = self._written(single.get(name, []), self._send_pod_spec)
                by_kind[name] |= {
                    "podSpec": table.spelled(kind.pod_spec),
                    "podSpecRules": [*own, *calculated_single.get(name, [])],
                }
            by_kind[name] |= {
                "rules": self._written(
                    table.workload_rules(self._workloads[name]), self._send_workload
                ),
                "generated": sorted(table.spelled(path) for path in self._generated[name]),
            }
        return {
            "server": self._client.version(),
            "sameAs": dict.fromkeys(("initContainers", "ephemeralContainers"), "containers"),
            "podSpec": [*self._written(common, self._send_pod_spec), *pulls, *calculated],
            "kinds": by_kind,
        }

    def _observe(self) -> None:
        for kind in WITH_PODS:
            for spec in inputs.pod_specs():
                self._send(kind, spec, {}, self._pods.answers)
            for spec in inputs.pods_with_resources():
                self._send(kind, spec, {}, self._resourced)
            for spec in _image_specs():
                self._send(kind, spec, {}, self._images.answers)
        for kind in KINDS:
            for workload in inputs.WORKLOADS[kind.name]:
                self._send(kind, {}, workload, None)
        self._observe_ephemeral_containers()
        for sent, said in self._refused.items():
            if len(said) == len(WITH_PODS):
                cache.tell(f"refused by every kind: {sent}: {said[0]}")

    def _send(self, kind: Kind, spec: Json, workload: Json, into: list[Answer] | None) -> None:
        sent = kind.build("probe-a", spec, workload)
        try:
            got = self._client.create(kind, sent)
            again = self._client.create(kind, kind.build("probe-b", spec, workload))
        except RefusedError as error:
            self._refused.setdefault(str(spec or workload), []).append(f"{kind.name}: {error}")
            return
        kept, generated = without_generated(sent, got, again)
        self._generated[kind.name] |= generated
        sent_spec, got_spec = _take(kind, sent), _take(kind, kept)
        if into is None:
            self._workloads[kind.name].answers.append(Answer(kind.name, sent, kept))
        else:
            into.append(Answer(kind.name, sent_spec, got_spec))

    def _observe_ephemeral_containers(self) -> None:
        pod = _BY_NAME["Pod"]
        stored = self._client.create(pod, pod.build("probe-stored", {}), dry_run=False)["spec"]
        for spec in (*inputs.pod_specs(), *_image_specs()):
            one = {**spec.get("containers", [{}])[0], "name": "debug"}
            one.setdefault("image", "registry.example/app:1")
            try:
                got = self._client.patch_ephemeral_containers(f"{pod.path}/probe-stored", [one])
            except RefusedError:
                continue
            answer = Answer("Pod", {**stored, "ephemeralContainers": [one]}, got["spec"])
            known = resources.image_class(one["image"]) != "tagged"
            (self._images if known else self._pods).answers.append(answer)

    def _written(self, rules: table.Rules, send: emptiness.Send) -> list[Json]:
        written = []
        for path, explained in rules:
            rule: Json = {"path": table.spelled(path), **explained.rule}
            if emptiness.replaced(path, explained, send):
                rule["emptyToo"] = True
            written.append(rule)
        return written

    def _send_pod_spec(self, answer: Answer, spec: Json) -> Json:
        kind = _BY_NAME[answer.kind]
        obj = kind.build("probe-a", {})
        _put(kind, obj, spec)
        return _take(kind, self._client.create(kind, obj))

    def _send_workload(self, answer: Answer, obj: Json) -> Json:
        kind = _BY_NAME[answer.kind]
        _put(kind, obj, _take(kind, kind.build("probe-a", {})))
        got = self._client.create(kind, obj)
        again = self._client.create(kind, kinds.overlay(obj, {"metadata": {"name": "probe-b"}}))
        kept, _ = without_generated(obj, got, again)
        _take(kind, kept)
        return kept


def _image_specs() -> list[Json]:
    references = [one for examples in inputs.IMAGES.values() for one in examples]
    used = [
        {
            "containers": [{"name": "main", "image": one}],
            "initContainers": [{"name": "init", "image": one}],
        }
        for one in references
    ]
    mounted = [{"volumes": [{"name": "v", "image": {"reference": one}}]} for one in references]
    return [*used, *mounted]


def _take(kind: Kind, obj: Json) -> Json:
    """Take the pod spec out of `obj`. A kind without pods has an empty one."""
    if not kind.pod_spec:
        return {}
    parent: Any = obj
    for key in kind.pod_spec[:-1]:
        parent = parent[key]
    return dict(parent.pop(kind.pod_spec[-1]))


def _put(kind: Kind, obj: Json, spec: Json) -> None:
    if not kind.pod_spec:
        return
    parent = obj
    for key in kind.pod_spec[:-1]:
        parent = parent.setdefault(key, {})
    parent[kind.pod_spec[-1]] = spec
