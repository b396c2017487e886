"""Reads YAML and JSON text into documents with lines, columns and source texts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

from webhook.documents import source
from webhook.documents.source import Scalar, SourceDocument, SyntaxProblem
from webhook.objects.path import Path

MAX_DEPTH = 200
MAX_NODES = 1_000_000
MAX_DOCUMENTS = 10_000
MAX_FAULTS = 100

# The C loader is 10 times faster, has the same marks, and accepts tabs in JSON.
LOADER: Any = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader

BREAK = r"(?:\r\n|[\n\r\x85\u2028\u2029])"
MARKER = re.compile(rf"(?:\A|(?<=[\n\r\x85\u2028\u2029]))(?:---|\.\.\.)(?=[ \t]|{BREAK}|\Z)")
UNREADABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
PAIR_OF_ESCAPES = re.compile(
    r"\\(?:u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})|.)", re.DOTALL
)

INDENTED = re.compile(r"^[ \t]+[^ \t\r\n#]", re.MULTILINE)
FLAT = re.compile(
    r"^(metadata|spec|meta|defaults|rules):[ \t]*\r?\n(?:- )?"
    r"(?!(?:apiVersion|kind|metadata|meta|spec|status|data|stringData|type|immutable|defaults|rules"
    r"|imposedAssets)\b)(\w+):",
    re.MULTILINE,
)
"""A key of an object without a value, followed by a key that belongs below it."""

TAG = "tag:yaml.org,2002:"
TAGGED: dict[str, tuple[type, ...]] = {
    "int": (int,),
    "float": (int, float),
    "bool": (bool,),
    "null": (type(None),),
}
FIXES = (
    ("tab", "indent with spaces, not tabs"),
    ("cannot start any token", "quote the value, and indent with spaces, not tabs"),
    ("mapping values are not allowed", "quote a value that has ': ', or begin the key on its line"),
    ("could not find expected ':'", "write 'key: value', indented as the keys beside it"),
    ("expected key", "indent this line as its neighbours, and close what is open above"),
    ("expected ',' or", "close the bracket or brace, and separate items with commas"),
    ("quoted scalar", "close the quotes"),
    ("escape", "write \\\\ for a backslash, or use single quotes"),
    ("expected alphabetic", "quote the value when it begins with & or *"),
    ("undefined tag handle", "quote the value when it begins with !"),
)
TEMPLATE = re.compile(r"\s*(?:- +)?(?:[\w.-]+: *)?\{\{")
RENDER = "this is a template: render it first, as helm template does, and give the result"
REREAD = "check indentation, quotes and brackets here and on the line above"


@dataclass(slots=True)
class Fault(Exception):  # noqa: N818
    """One problem of a document, at a 1-based position. It is only used in this module."""

    line: int
    column: int
    message: str
    fix: str


@dataclass(slots=True)
class Node:
    """A scalar (content is its text), list or mapping (pairs of nodes), with its 1-based position."""

    kind: str
    content: Any
    tag: str | None
    plain: bool
    line: int
    column: int


def read_documents(
    text: str | bytes, origin: str, *, kubernetes: bool = False
) -> tuple[list[SourceDocument], list[SyntaxProblem]]:
    """Return all readable documents of a YAML or JSON text, and the problems of the others.

    Unquoted scalars mean what JSON says; with `kubernetes`, what kubectl makes of them. Never
    raises: a faulty document is left out with its problems, its neighbours are kept.
    """
    documents: list[SourceDocument] = []
    faults: list[Fault] = []
    for index, outcome in enumerate(_outcomes(text), start=1):
        if isinstance(outcome, Fault):
            faults.append(outcome)
        elif not _is_empty(outcome):
            builder = Builder(source.resolve_as_kubectl if kubernetes else source.resolve)
            data = builder.read(outcome)
            faults.extend(builder.faults)
            if not builder.faults:
                places, texts = builder.positions, builder.texts
                documents.append(SourceDocument(origin, index, data, places, texts))
    lines = lines_of(text) if faults else []
    return documents, [
        SyntaxProblem(origin, fault.line, fault.column, fault.message, fix_of(fault, lines))
        for fault in faults
    ]


def lines_of(text: str | bytes) -> list[str]:
    """Return the lines of a text, as far as it can be decoded."""
    decoded = text if isinstance(text, str) else text.decode("utf-8", "replace")
    return re.split(BREAK, decoded)


def fix_of(fault: Fault, lines: Sequence[str]) -> str:
    """Return the fix of a problem. A template must be rendered first."""
    near = lines[max(0, fault.line - 3) : fault.line]
    return RENDER if any(map(TEMPLATE.match, near)) else fault.fix


def _outcomes(text: str | bytes) -> Iterator[Node | Fault]:
    """Return each document's root, or why it cannot be read."""
    try:
        decoded = _decode(text)
    except Fault as fault:
        yield fault
        return
    left = MAX_DOCUMENTS
    for chunk, line in _chunks(decoded):
        for outcome in _compose(chunk, line):
            if not left:
                yield Fault(line + 1, 1, f"more than {MAX_DOCUMENTS} documents", "split the file")
                return
            left -= 1
            yield outcome


def _decode(text: str | bytes) -> str:
    if isinstance(text, str):
        return text.removeprefix("\ufeff")
    try:
        return text.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line, column = _place(error.object[: error.start].decode("utf-8-sig"))
        raise Fault(line, column, "the text is not UTF-8", "save the file as UTF-8") from None


def _place(before: str) -> tuple[int, int]:
    """Return line and column of the character after `before`."""
    lines = re.split(BREAK, before)
    return len(lines), len(lines[-1]) + 1


def _chunks(text: str) -> Iterator[tuple[str, int]]:
    """Split `text` into chunks that can be parsed alone, with the number of lines before each.

    Every `---` begins one, so that a fault in one document does not hide the next; directives
    (%YAML) stay with the `---` that they belong to.
    """
    start = gap = line = counted = 0
    open_gap = True
    for marker in MARKER.finditer(text):
        at = marker.start()
        if marker[0] == "...":
            gap, open_gap = marker.end(), True
            continue
        directives = open_gap and _only_directives(text[gap:at])
        cut = start if directives and gap == start else gap if directives else at
        if cut > start:
            yield text[start:cut], line
            line += len(re.findall(BREAK, text[counted:cut]))
            start = counted = cut
        open_gap = False
    yield text[start:], line


def _only_directives(gap: str) -> bool:
    lines = [line for line in re.split(BREAK, gap) if line.strip() and line[0] != "#"]
    return bool(lines) and all(line[0] == "%" for line in lines)


def _compose(chunk: str, line: int) -> Iterator[Node | Fault]:
    """Return the documents of a chunk with `line` lines before it. A problem ends the chunk."""
    if found := UNREADABLE.search(chunk):
        down, column = _place(chunk[: found.start()])
        character = f"U+{ord(found[0]):04X}"
        yield Fault(
            line + down, column, f"character {character} is not allowed",
            "remove it, or write it as an escape in double quotes",
        )  # fmt: skip
        return
    if fault := _without_indentation(chunk, line):
        yield fault
        return
    if chunk.lstrip(" \t\r\n")[:1] in ("{", "["):
        chunk = _with_joined_surrogates(chunk)
    try:
        yield from Composer(line).documents(chunk)
    except Fault as fault:
        yield fault
    except yaml.YAMLError as error:
        yield _explain(error, line)
    except (ValueError, RecursionError, UnicodeError) as error:
        yield Fault(line + 1, 1, f"the text could not be read ({error})", REREAD)


def _without_indentation(chunk: str, line: int) -> Fault | None:
    """Return the fix for an object without indentation, as some web pages show it.

    Such a text can even be valid YAML with another meaning.
    """
    found = FLAT.search(chunk)
    if found is None or INDENTED.search(chunk):
        return None
    down, _ = _place(chunk[: found.start()])
    outer, inner = found[1], found[2]
    return Fault(
        line + down, 1, f"the text has lost its indentation: {inner} is not below {outer}",
        f"begin the lines that belong to a key with two spaces more, such as '{outer}:' and "
        f"'  {inner}:' on the next line",
    )  # fmt: skip


def _with_joined_surrogates(chunk: str) -> str:
    """Join the two escapes that JSON uses for characters above U+FFFF. YAML does not have them."""
    if "\\ud" not in chunk and "\\uD" not in chunk:
        return chunk

    def join(match: re.Match[str]) -> str:
        if match[1] is None:
            return match[0]
        high, low = int(match[1], 16), int(match[2], 16)
        return f"\\U{0x10000 + ((high - 0xD800) << 10) + low - 0xDC00:08x}"

    return PAIR_OF_ESCAPES.sub(join, chunk)


def _explain(error: yaml.YAMLError, line: int) -> Fault:
    message, marks = str(error).split("\n", 1)[0], []
    if isinstance(error, yaml.MarkedYAMLError):
        message = str(error.problem or error).split("\n", 1)[0]
        marks = [error.problem_mark, error.context_mark]
        if "expected ':'" in message:
            marks.reverse()  # the key without its colon is where the scanner began
        if error.context:
            message = f"{message} ({error.context})"
    mark = next(filter(None, marks), None)
    fix = next((fix for text, fix in FIXES if text in message), REREAD)
    if mark is None:
        return Fault(line + 1, 1, message, fix)
    return Fault(line + mark.line + 1, mark.column + 1, message, fix)


def _is_empty(node: Node) -> bool:
    return node.plain and node.kind == "scalar" and source.CONSTANTS.get(node.content, "") is None


class Composer:
    """Builds nodes from PyYAML's events without recursion, so that nesting cannot exhaust the stack.

    PyYAML's own composers recurse once per level, the C one without any check.
    """

    def __init__(self, line: int) -> None:
        self.line = line
        self.anchors: dict[str, Node] = {}
        self.open: list[Node] = []
        self.keys: list[Node | None] = []
        self.root: Node | None = None

    def documents(self, text: str) -> Iterator[Node]:
        """Return the root of every document in `text`. Raises Fault or yaml.YAMLError."""
        event: Any
        for event in yaml.parse(text, Loader=LOADER):
            kind = type(event)
            if kind is yaml.ScalarEvent:
                self._add(self._node("scalar", event.value, event), event)
            elif kind is yaml.MappingStartEvent:
                self._begin("mapping", event)
            elif kind is yaml.SequenceStartEvent:
                self._begin("list", event)
            elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
                self.open.pop()
                self.keys.pop()
            elif kind is yaml.AliasEvent:
                self._place(self._resolve_alias(event))
            elif kind is yaml.DocumentEndEvent and self.root is not None:
                yield self.root
                self.root = None
                self.anchors = {}

    def _node(self, kind: str, content: Any, event: Any) -> Node:
        mark = event.start_mark
        plain = kind == "scalar" and event.implicit[0] and not event.style
        return Node(kind, content, event.tag, plain, self.line + mark.line + 1, mark.column + 1)

    def _begin(self, kind: str, event: Any) -> None:
        node = self._node(kind, [], event)
        self._add(node, event)
        self.open.append(node)
        self.keys.append(None)
        if len(self.open) > MAX_DEPTH:
            raise _too_deep(node)

    def _add(self, node: Node, event: Any) -> None:
        if event.anchor is not None:
            self.anchors[event.anchor] = node
        self._place(node)

    def _resolve_alias(self, event: Any) -> Node:
        line, column = self.line + event.start_mark.line + 1, event.start_mark.column + 1
        node = self.anchors.get(event.anchor)
        if node is None:
            # The message does not show the name: it can be a value of env that lacks quotes.
            message = "an alias (a word after *) without an anchor"
            raise Fault(line, column, message, "define the anchor with & above, or quote the value")
        if any(node is parent for parent in self.open):
            raise Fault(line, column, f"alias *{event.anchor} contains itself", "write it out")
        return Node("alias", node, None, False, line, column)

    def _place(self, node: Node) -> None:
        if not self.open:
            self.root = node
        elif (parent := self.open[-1]).kind == "list":
            parent.content.append(node)
        elif (key := self.keys[-1]) is None:
            self.keys[-1] = node
        else:
            parent.content.append((key, node))
            self.keys[-1] = None


@dataclass(slots=True)
class Builder:
    """Converts nodes to data. Aliases and merge keys are expanded within fixed limits."""

    resolve: Callable[[str], Scalar]
    positions: dict[Path, tuple[int, int]] = field(default_factory=dict)
    texts: dict[Path, str] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    nodes: int = 0

    def read(self, root: Node) -> Any:
        """Return the data of a document. It is incomplete if `faults` is not empty afterwards."""
        self.positions[()] = (root.line, root.column)
        try:
            return self._value(root, (), 0)
        except Fault as fault:
            self.faults.append(fault)
            return None

    def _value(self, node: Node, path: Path, depth: int) -> Any:
        node = _target(node)
        self._count(node)
        if node.kind == "scalar":
            return self._scalar(node, path)
        if depth >= MAX_DEPTH:
            raise _too_deep(node)
        if node.tag not in (None, "!", TAG + ("seq" if node.kind == "list" else "map")):
            self._refuse_tag(node)
        if node.kind == "list":
            return self._list(node, path, depth)
        return self._mapping(node, path, depth)

    def _list(self, node: Node, path: Path, depth: int) -> list[Any]:
        items = []
        for index, item in enumerate(node.content):
            place = (*path, index)
            self.positions[place] = (item.line, item.column)
            items.append(self._value(item, place, depth + 1))
        return items

    def _mapping(self, node: Node, path: Path, depth: int) -> dict[str, Any]:
        data: dict[str, Any] = {}
        for name, (key, value) in self._entries(node, depth).items():
            place = (*path, name)
            self.positions[place] = (key.line, key.column)
            data[name] = self._value(value, place, depth + 1)
        return data

    def _entries(self, node: Node, depth: int) -> dict[str, tuple[Node, Node]]:
        """Return the entries of a mapping by name, including those of merge keys."""
        if depth >= MAX_DEPTH:
            raise _too_deep(node)
        own: dict[str, tuple[Node, Node]] = {}
        merged: dict[str, tuple[Node, Node]] = {}
        merge_seen = False
        for key, value in node.content:
            if key.plain and key.content == "<<":
                if merge_seen:
                    self._fault(key, "the key << is there twice", "write << once, with a list")
                merge_seen = True
                merged = self._merge_keys(value, depth)
                if self.resolve is source.resolve_as_kubectl:
                    # In kubectl a merge overrides the keys above it.
                    for name in merged.keys() & own.keys():
                        del own[name]
                continue
            name = self._name(key)
            if name in own:
                first = own[name][0].line
                self._fault(key, f"the key {name} is there twice (first on line {first})",
                            "keep one of them")  # fmt: skip
            own[name] = (key, value)
        return {**merged, **own} if merged else own

    def _merge_keys(self, value: Node, depth: int) -> dict[str, tuple[Node, Node]]:
        value = _target(value)
        sources = value.content if value.kind == "list" else [value]
        merged: dict[str, tuple[Node, Node]] = {}
        for origin in reversed(sources):
            mapping = _target(origin)
            if mapping.kind != "mapping":
                self._fault(origin, "<< takes a mapping or a list of mappings", "name an anchor")
                continue
            entries = self._entries(mapping, depth + 1)
            self._count(mapping, 1 + len(entries))
            merged.update(entries)
        return merged

    def _name(self, key: Node) -> str:
        """Return the name of a key: its source text, or kubectl's conversion."""
        key = _target(key)
        if key.kind != "scalar":
            self._fault(key, "a key is a list or a mapping", "use text as key")
            return ""
        text = str(key.content)
        if self.resolve is source.resolve or not key.plain:
            return text
        value = self._resolve_scalar(key, text)
        if isinstance(value, bool):
            return "true" if value else "false"
        if value is None or isinstance(value, float) or (isinstance(value, int) and _exotic(text)):
            self._fault(key, f"the key {text or 'null'} is not text", f'quote it: "{text}"')
            return text
        return str(value)

    def _scalar(self, node: Node, path: Path) -> Scalar:
        text: str = node.content
        if node.plain:
            value = self._resolve_scalar(node, text)
            if source.reads_differently(text, value):
                self.texts[path] = text
            return value
        if node.tag is None or node.tag in ("!", TAG + "str", TAG + "timestamp"):
            return text
        return self._read_tagged(node, text)

    def _read_tagged(self, node: Node, text: str) -> Scalar:
        """Read a scalar with an explicit tag, such as !!int "5"."""
        kind = (node.tag or "").removeprefix(TAG)
        if kind not in TAGGED:
            self._refuse_tag(node)
            return text
        value = self._resolve_scalar(node, text)
        if type(value) not in TAGGED[kind]:
            self._fault(node, f"the value is not of type !!{kind}", "remove the tag")
        return value

    def _resolve_scalar(self, node: Node, text: str) -> Scalar:
        try:
            return self.resolve(text)
        except ValueError as error:
            self._fault(node, str(error), f'write a number, or quote it: "{text}"')
            return text

    def _refuse_tag(self, node: Node) -> None:
        tag = node.tag or ""
        named = f"the tag !!{tag.removeprefix(TAG)}" if tag.startswith(TAG) else "a tag of its own"
        self._fault(node, f"{named} is not supported", "remove it, or quote the value")

    def _fault(self, node: Node, message: str, fix: str) -> None:
        fault = Fault(node.line, node.column, message, fix)
        if len(self.faults) < MAX_FAULTS and fault not in self.faults:
            self.faults.append(fault)

    def _count(self, node: Node, number: int = 1) -> None:
        self.nodes += number
        if self.nodes > MAX_NODES:
            raise Fault(
                node.line, node.column, f"more than {MAX_NODES} values when aliases are expanded",
                "use fewer aliases, or split the file",
            )  # fmt: skip


def _target(node: Node) -> Node:
    """Return the node that an alias refers to, or the node itself."""
    target: Node = node.content if node.kind == "alias" else node
    return target


def _exotic(text: str) -> bool:
    """Whether a key is a whole number written as a float. kubectl changes the text of such keys."""
    return bool(re.search(r"[.eE]", text)) and not re.match(r"[+-]?0[xX]", text)


def _too_deep(node: Node) -> Fault:
    return Fault(node.line, node.column, f"nested deeper than {MAX_DEPTH} levels", "nest less")
