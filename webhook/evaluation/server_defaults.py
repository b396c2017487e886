"""What the API server fills in for built-in kinds, by the table that was learned from one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from webhook.evaluation import server_rules
from webhook.evaluation.server_calculations import Calculation, requests_from_limits
from webhook.evaluation.server_rules import EACH, Parent, Rule, Steps
from webhook.objects import path as pointer
from webhook.objects.draft import Draft
from webhook.objects.path import ABSENT, Path

CONTAINERS: Steps = ("containers", EACH)
REQUESTS = ("resources", "requests")


@dataclass(slots=True)
class Node:
    """The rules for the keys of an object at one place, and what lies below: keys or EACH."""

    rules: dict[str, list[Rule]] = field(default_factory=dict)
    below: dict[str, Node] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class KindDefaults:
    """The server's defaults for one kind; made without arguments, those of a kind without any."""

    built_in: bool = False
    spec_path: Steps = ()
    places: Mapping[Steps, list[Rule]] = field(default_factory=dict, repr=False)
    calculations: tuple[Calculation, ...] = field(default=(), repr=False)
    root: Node = field(default_factory=Node, repr=False)

    def container(self, at: Path) -> Callable[[dict[str, Any]], Any] | None:
        """What tells the value the server puts at a place of a given container.

        That is None where it puts nothing; the whole answer is None where it never does, or
        decides by more than the container. Values are not to be changed.
        """
        if at[:2] == REQUESTS and requests_from_limits in self.calculations:
            return _limit(at[2:])
        rules = self._rules((*self.spec_path, *CONTAINERS, *_steps(at)))
        near = [rule for rule in rules if rule.near]
        if not near:
            return None
        return _inside(at[:-1], near) if len(at) > 1 else _directly(near)

    def pod(self, at: Path) -> Any:
        """The constant that the server puts at a place of the pod spec, else None."""
        return self._constant((*self.spec_path, *_steps(at)))

    def workload(self, text: str) -> Any:
        """The constant for a place as jq text, `.spec.backoffLimit`, else None.

        Of several values it is the one for objects without the keys that decide.
        """
        try:
            return self._constant(server_rules.steps(text))
        except ValueError:
            return None

    def apply(self, document: Any) -> Any:
        """A new document as the server hands it to webhooks, sharing what did not change.

        A document that needs nothing is given back itself. Values of wrong types stay as they
        are; what the server makes up per object, or admission plugins add, is not there.
        """
        draft = Draft(document)
        if type(document) is dict:
            _fill(self.root, document, (), draft)
            for calculate in self.calculations:
                calculate(draft, self.spec_path)
        return draft.document

    def _rules(self, place: Steps) -> list[Rule]:
        return self.places.get(place, [])

    def _constant(self, place: Steps) -> Any:
        usual = (rule.constant for rule in self._rules(place) if rule.usual)
        return server_rules.fresh(next(usual, None))


@dataclass(frozen=True, slots=True)
class ServerDefaults:
    """The defaults of all built-in kinds, by `group/Kind`, for one `version` of the server."""

    version: str
    kinds: Mapping[str, KindDefaults]

    @classmethod
    def parse(cls, data: Any) -> ServerDefaults:
        """The table as decoded data; ValueError with a clear text when it is broken."""
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
        """The defaults of one kind; kinds that are not built in have none."""
        return self.kinds.get(f"{group}/{kind}" if group else kind, NOTHING)


NOTHING = KindDefaults()


def _kind(name: str, data: Any, common: Iterable[Any], same: Mapping[str, Any]) -> KindDefaults:
    kind = server_rules.members(data, f"kind {name}")
    spec_path = server_rules.steps(server_rules.text(kind, "podSpec"))
    places: dict[Steps, list[Rule]] = {}
    calculations: list[Calculation] = []
    for one in (*common, *server_rules.items(kind, "podSpecRules")):
        if (calculation := server_rules.calculation(one)) is not None:
            calculations.append(calculation)
            continue
        for rule in _alike(server_rules.parse(one, spec_path, spec_path), len(spec_path), same):
            places.setdefault(rule.at, []).append(rule)
    for one in server_rules.items(kind, "rules"):
        rule = server_rules.parse(one, (), ())
        places.setdefault(rule.at, []).append(rule)
    return KindDefaults(True, spec_path, places, tuple(calculations), _tree(places))


def _alike(rule: Rule, depth: int, same: Mapping[str, Any]) -> Iterator[Rule]:
    """The rule, and it again for every list that is the same as the one it is for."""
    yield rule
    for other, model in same.items():
        if rule.at[depth] == model:
            yield replace(rule, at=(*rule.at[:depth], other, *rule.at[depth + 1 :]))


def _tree(places: Mapping[Steps, list[Rule]]) -> Node:
    root = Node()
    for place, rules in places.items():
        node = root
        for step in place[:-1]:
            node = node.below.setdefault(step, Node())
        node.rules[place[-1]] = rules
    return root


def _fill(node: Node, found: Any, path: Path, draft: Draft) -> None:
    """Put the defaults of `node` into what was sent there: an object, or every item of a list."""
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
    """What the server puts at a key of the container itself."""
    constant = rules[0].constant
    if constant is not None and rules[0].holds is None:
        return lambda body: constant
    if len(rules) == 1 and rules[0].holds is None:
        make = rules[0].make
        return lambda body: make(body, None)
    return lambda body: _first(rules, body)


def _inside(above: Path, rules: list[Rule]) -> Callable[[Parent], Any]:
    """What the server puts into an object inside the container, where that is sent."""

    def default(body: Parent) -> Any:
        parent = pointer.read(body, above)
        return _first(rules, parent) if type(parent) is dict else None

    return default


def _limit(at: Path) -> Callable[[Parent], Any]:
    """The limits that the server copies into absent requests: all, or that of one resource."""
    place = ("resources", "limits", *at)

    def default(body: Parent) -> Any:
        limit = pointer.read(body, place)
        return None if limit is ABSENT else limit

    return default


def _first(rules: list[Rule], parent: Parent) -> Any:
    for rule in rules:
        if (value := rule.value(parent, None)) is not None:
            return value
    return None


def _steps(at: Path) -> Steps:
    return tuple(EACH if isinstance(step, int) else step for step in at)
