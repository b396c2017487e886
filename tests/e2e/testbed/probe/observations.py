"""Compares what was sent with what came back, place by place."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.e2e.testbed.probe.kinds import Json

Path = tuple[str, ...]
EACH = "[]"
_ALIKE = ("initContainers", "ephemeralContainers")
BOOKKEEPING: tuple[Path, ...] = (
    ("metadata", "creationTimestamp"),
    ("metadata", "generation"),
    ("metadata", "managedFields"),
    ("metadata", "uid"),
    ("status",),
)


@dataclass(frozen=True, slots=True)
class Answer:
    """One object, or one pod spec, as sent and as the server would store it, by kind."""

    kind: str
    sent: Json
    got: Json


@dataclass(frozen=True, slots=True)
class Seen:
    """A place where a key was not sent: the object around it, the whole, and what was added."""

    answer: Answer
    parent: Json
    added: bool
    value: Any = None


@dataclass(slots=True)
class Observations:
    """All answers of one scope, and what they show by path; changed values are kept apart."""

    answers: list[Answer] = field(default_factory=list)
    changed: set[Path] = field(default_factory=set)

    def by_path(self) -> dict[Path, list[Seen]]:
        """Return for each path at which anything was ever added every place that lacked it."""
        paths = sorted({path for one in self.answers for path in self._added(one)})
        return {path: [*self._places(path)] for path in paths}

    def _places(self, path: Path) -> Iterator[Seen]:
        for answer in self.answers:
            for sent, got in parents(answer.sent, answer.got, path[:-1]):
                key = path[-1]
                if key not in sent:
                    yield Seen(answer, sent, key in got, got.get(key))

    def _added(self, answer: Answer) -> Iterator[Path]:
        yield from self._walk(answer.sent, answer.got, ())

    def _walk(self, sent: Any, got: Any, path: Path) -> Iterator[Path]:
        if isinstance(sent, dict) and isinstance(got, dict):
            for key in got:
                here = (*path, "containers" if not path and key in _ALIKE else key)
                if key in sent:
                    yield from self._walk(sent[key], got[key], here)
                else:
                    yield here
        elif isinstance(sent, list) and isinstance(got, list) and len(sent) == len(got):
            for one, other in zip(sent, got, strict=True):
                yield from self._walk(one, other, (*path, EACH))
        elif sent != got:
            self.changed.add(path)


def parents(sent: Any, got: Any, path: Path) -> Iterator[tuple[Json, Json]]:
    """Yield each pair of objects, as sent and as answered, that `path` leads to.

    The path `containers` leads into containers of every kind.
    """
    if not path:
        if isinstance(sent, dict) and isinstance(got, dict):
            yield sent, got
        return
    key, rest = path[0], path[1:]
    if key == EACH:
        for one, other in zip(sent, got, strict=False):
            yield from parents(one, other, rest)
        return
    keys = (key, *_ALIKE) if key == "containers" else (key,)
    for name in keys:
        if isinstance(sent, dict) and name in sent and name in got:
            yield from parents(sent[name], got[name], rest)


def without_generated(sent: Json, got: Json, again: Json) -> tuple[Json, set[Path]]:
    """Return `got` without what the server makes up per object, and the paths of that.

    `again` is the answer to the same object under another name: what differs was made up.
    """
    generated: set[Path] = set()
    kept = _common(sent, got, again, (), generated)
    return dict(kept), generated


def _common(sent: Any, got: Any, again: Any, path: Path, generated: set[Path]) -> Any:
    if not isinstance(got, dict) or not isinstance(again, dict):
        return got
    kept: Json = {}
    for key, value in got.items():
        here = (*path, key)
        ours = sent.get(key) if isinstance(sent, dict) else None
        if here in BOOKKEEPING or (ours is None and _made_up(value, again.get(key))):
            generated.add(here)
            continue
        kept[key] = _common(ours, value, again.get(key), here, generated)
    return kept


def _made_up(value: Any, again: Any) -> bool:
    """Tell whether nothing of `value` is the same in `again`."""
    if isinstance(value, dict) and isinstance(again, dict) and value:
        return all(_made_up(inner, again.get(key)) for key, inner in value.items())
    return bool(value != again)
