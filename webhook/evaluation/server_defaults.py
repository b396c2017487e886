"""Fills in the defaults of the API server for built-in kinds, from a table learned from a server."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from webhook.evaluation import server_rules
from webhook.evaluation.server_calculations import Calculation, requests_from_limits
from webhook.evaluation.server_rules import EACH, Parent, Rule, Steps
from webhook.objects.draft import Draft
from webhook.objects.path import ABSENT, Path, read

CONTAINERS: Steps = ("containers", EACH)
REQUESTS = ("resources", "requests")


@dataclass(slots=True)
class Node:
    """The rules for the keys of an object at one path, and the nodes below: keys or EACH."""

    rules: dict[str, list[Rule]] = field(default_factory=dict)
    below: dict[str, Node] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class KindDefaults:
    """The server's defaults for one kind. Without arguments: a kind without defaults."""

    built_in: bool = False
    spec_path: Steps = ()
    rules_by_path: Mapping[Steps, list[Rule]] = field(default_factory=dict, repr=False)
    calculations: tuple[Calculation, ...] = field(default=(), repr=False)
    root: Node = field(default_factory=Node, repr=False)

    def container(self, at: Path) -> Callable[[dict[str, Any]], Any] | None:
        """Return a function from a given container to the server's value at the path `at` in it.

        The function returns None where the server sets nothing. The result is None if the server
        never sets anything, or if its value depends on more than the container. Do not change the
        values.
        """
        if at[:2] == REQUESTS and requests_from_limits in self.calculations:
            return _limit(at[2:])
        rules = self._rules((*self.spec_path, *CONTAINERS, *_steps(at)))
        near = [rule for rule in rules if rule.near]
        if not near:
            return None
        return _inside(at[:-1], near) if len(at) > 1 else _directly(near)

    def pod(self, at: Path) -> Any:
        """Return the constant that the server sets at a path of the pod spec, else None."""
        return self._constant((*self.spec_path, *_steps(at)))

    def workload(self, text: str) -> Any:
        """Return the constant for a path as jq text such as `.spec.backoffLimit`, else None.

        If several values are possible, it is the one for objects without the keys that decide.
        """
        try:
            return self._constant(server_rules.steps(text))
        except ValueError:
            return None

    def apply(self, document: Any) -> Any:
        """Return the document as the server sends it to webhooks, sharing unchanged values.

        Returns the same document if nothing changes. Values of wrong types stay as they are. Values
        that the server generates per object, or that admission plugins add, are not included.
        """
        draft = Draft(document)
        if type(document) is dict:
            _fill(self.root, document, (), draft)
            for calculate in self.calculations:
                calculate(draft, self.spec_path)
        return draft.document

    def _rules(self, path: Steps) -> list[Rule]:
        return self.rules_by_path.get(path, [])

    def _constant(self, path: Steps) -> Any:
        usual = (rule.constant for rule in self._rules(path) if rule.usual)
        return server_rules.fresh(next(usual, None))


@dataclass(frozen=True, slots=True)
class ServerDefaults:
    """The defaults of all built-in kinds, by `group/Kind`, for one `version` of the server."""

    version: str
    kinds: Mapping[str, KindDefaults]

    @classmethod
    def parse(cls, data: Any) -> ServerDefaults:
        """Parse the table from decoded data. Raises ValueError with a clear text if it is broken."""
        try:
            table = server_rules.members(data, "what was given")
            same = server_rules.members(table.get("sameAs", {}), "sameAs")
            kinds = server_rules.members(table.get("kinds"), "kinds")
            common = server_rules.items(table, "podSpec")
            parsed = {name: _kind(name, kinds[name], common, same) for name in kinds}
            return cls(server_rules.text(table, "server"), parsed)
        except ValueError as error:
            raise ValueError(f"the server-default table: {error}") from None

    def kind(self, group: str, kind: str) -> KindDefaults:
        """Return the defaults of one kind. Kinds that are not built in have none."""
        return self.kinds.get(f"{group}/{kind}" if group else kind, NOTHING)


NOTHING = KindDefaults()


def _kind(name: str, data: Any, common: Iterable[Any], same: Mapping[str, Any]) -> KindDefaults:
    kind = server_rules.members(data, f"kind {name}")
    spec_path: Steps = ()
    of_pods: list[Any] = []
    if "podSpec" in kind:
        spec_path = server_rules.steps(server_rules.text(kind, "podSpec"))
        of_pods = [*common, *server_rules.items(kind, "podSpecRules")]
    rules_by_path: dict[Steps, list[Rule]] = {}
    calculations: list[Calculation] = []
    for one in of_pods:
        if (calculation := server_rules.calculation(one)) is not None:
            calculations.append(calculation)
            continue
        for rule in _alike(server_rules.parse(one, spec_path, spec_path), len(spec_path), same):
            rules_by_path.setdefault(rule.at, []).append(rule)
    for one in server_rules.items(kind, "rules"):
        rule = server_rules.parse(one, (), ())
        rules_by_path.setdefault(rule.at, []).append(rule)
    return KindDefaults(True, spec_path, rules_by_path, tuple(calculations), _tree(rules_by_path))


def _alike(rule: Rule, depth: int, same: Mapping[str, Any]) -> Iterator[Rule]:
    """Yield the rule, and a copy for every list that `same` maps to its list."""
    yield rule
    for other, model in same.items():
        if rule.at[depth] == model:
            yield replace(rule, at=(*rule.at[:depth], other, *rule.at[depth + 1 :]))


def _tree(rules_by_path: Mapping[Steps, list[Rule]]) -> Node:
    root = Node()
    for path, rules in rules_by_path.items():
        node = root
        for step in path[:-1]:
            node = node.below.setdefault(step, Node())
        node.rules[path[-1]] = rules
    return root


def _fill(node: Node, found: Any, path: Path, draft: Draft) -> None:
    """Set the defaults of `node` in `found`: an object, or every item of a list."""
    if type(found) is list and (item := node.below.get(EACH)) is not None:
        for index, one in enumerate(found):
            _fill(item, one, (*path, index), draft)
    if type(found) is not dict:
        return
    put = set()
    for key, rules in node.rules.items():
        for rule in rules:
            if (value := rule.addition(found, draft.original)) is not None:
                draft.set((*path, key), value)
                put.add(key)
                break
    for key, below in node.below.items():
        if key in found and key not in put:
            _fill(below, found[key], (*path, key), draft)


def _directly(rules: list[Rule]) -> Callable[[Parent], Any]:
    """Return a function from a container to the server's value for one of its keys."""
    constant = rules[0].constant
    if constant is not None and rules[0].applies is None:
        return lambda body: constant
    if len(rules) == 1 and rules[0].applies is None:
        make = rules[0].make
        return lambda body: make(body, None)
    return lambda body: _first(rules, body)


def _inside(above: Path, rules: list[Rule]) -> Callable[[Parent], Any]:
    """Return a function from a container to the server's value in an object inside it, if that is set."""

    def default(body: Parent) -> Any:
        parent = read(body, above)
        return _first(rules, parent) if type(parent) is dict else None

    return default


def _limit(at: Path) -> Callable[[Parent], Any]:
    """Return a function from a container to the limits that the server copies into absent requests."""
    path = ("resources", "limits", *at)

    def default(body: Parent) -> Any:
        limit = read(body, path)
        return None if limit is ABSENT else limit

    return default


def _first(rules: list[Rule], parent: Parent) -> Any:
    for rule in rules:
        if (value := rule.value(parent, None)) is not None:
            return value
    return None


def _steps(at: Path) -> Steps:
    return tuple(EACH if isinstance(step, int) else step for step in at)
