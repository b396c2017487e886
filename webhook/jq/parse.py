"""Parses native jq paths: text to nodes, or the position at which the text is not native."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, NoReturn

from webhook.jq import nodes
from webhook.jq.nodes import Node, NotNativeError, Operator, Scalar, Step

# Real definitions have less than 60 tokens and 4 levels. The limits keep recursion shallow.
MAX_TOKENS: Final = 128
MAX_NESTING: Final = 16
# Up to this number of digits, decimal literals and doubles compare equally in libjq and Python.
_MAX_DIGITS: Final = 15
_MAX_SHOWN: Final = 60
_END: Final = "end of text"

_LEXEME: Final = re.compile(
    r"""(?P<space>[ \t\r\n]+)
      | (?P<string>"(?:[^"\\]|\\.)*")
      | (?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
      | (?P<field>\.[a-zA-Z_][a-zA-Z_0-9]*)
      | (?P<name>[$@]?(?:[a-zA-Z_][a-zA-Z_0-9]*::)*[a-zA-Z_][a-zA-Z_0-9]*)
      | (?P<mark>\?//=?|//=?|[|+*/%=!<>-]=|\.\.|[][.?|(){},:;+*/%=<>$@-])""",
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_FOREIGN_MARKS: Final = frozenset(
    re.findall(r"\S+", ", : = == != < <= > >= / % ?// |= += -= *= /= //= %=")
)
_FOREIGN_INFIX: Final = frozenset(("and", "or", "as"))
_NAMED: Final[dict[str, Scalar]] = {"true": True, "false": False, "null": None}

Kind = Literal["string", "number", "field", "name", "mark", "end"]


@dataclass(frozen=True, slots=True)
class Token:
    """One lexeme and its position."""

    kind: Kind
    text: str
    at: int


def parse(text: str) -> Node:
    """Return the nodes of `text`. Raises NotNativeError."""
    reader = _Reader(_tokens(text))
    node = reader.pipe()
    if reader.next.kind != "end":
        reader.refuse_infix()
    return node


def found_at(text: str, at: int) -> str:
    """Return the lexeme of `text` at position `at`, for messages."""
    if at >= len(text):
        return _END
    lexeme = _LEXEME.match(text, at)
    return (lexeme.group() if lexeme else text[at])[:_MAX_SHOWN]


def _tokens(text: str) -> list[Token]:
    tokens: list[Token] = []
    at = 0
    while at < len(text):
        found = _LEXEME.match(text, at)
        if found is None:
            raise NotNativeError(at, _bad_character(text[at]))
        if len(tokens) == MAX_TOKENS:
            raise NotNativeError(at, f"more than {MAX_TOKENS} tokens are left to jq")
        if found.lastgroup != "space":
            kind: Kind = found.lastgroup  # type: ignore[assignment]  # the groups are the kinds
            tokens.append(Token(kind, found.group(), at))
        at = found.end()
    tokens.append(Token("end", _END, len(text)))
    return tokens


def _bad_character(character: str) -> str:
    if character == '"':
        return "syntax error: the string does not end"
    if character == "#":
        return "comments are left to jq"
    return "syntax error: this character has no meaning"


class _Reader:
    """A recursive descent parser, with one method for each level of precedence, weakest first."""

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = iter(tokens)
        self.next = next(self.tokens)
        self.nesting = 0

    def take(self) -> Token:
        token = self.next
        self.next = next(self.tokens, token)
        return token

    def accept(self, mark: str) -> bool:
        if self.next.kind == "mark" and self.next.text == mark:
            self.take()
            return True
        return False

    def expect(self, mark: str) -> None:
        if not self.accept(mark):
            self.refuse_infix()

    def refuse_infix(self) -> NoReturn:
        token = self.next
        known = _FOREIGN_MARKS if token.kind == "mark" else _FOREIGN_INFIX
        if token.text in known and token.kind in ("mark", "name"):
            raise NotNativeError(token.at, f"`{token.text}` is left to jq here")
        raise NotNativeError(token.at, f"syntax error: unexpected {_show(token)}")

    def refuse_term(self) -> NoReturn:
        token = self.next
        if token.kind == "name":
            raise NotNativeError(token.at, f"`{token.text}` is left to jq")
        if token.text in ("[", "{", "-", "..", "$", "@"):
            raise NotNativeError(
                token.at, f"an expression that begins with `{token.text}` is left to jq"
            )
        raise NotNativeError(token.at, f"syntax error: expected a path, found {_show(token)}")

    def pipe(self) -> Node:
        steps = [self.alternative()]
        while self.accept("|"):
            steps.append(self.alternative())
        return nodes.chain(*steps)

    def alternative(self) -> Node:
        operands = [self.sum()]
        marks: list[int] = []
        while self.next.text == "//":
            marks.append(self.take().at)
            operands.append(self.sum())
        node = operands.pop()
        # `//` groups to the right.
        while operands:
            node = nodes.Alternative(marks.pop(), operands.pop(), node)
        return node

    def sum(self) -> Node:
        node = self.product()
        while operator := self.operator("+", "-"):
            at = self.take().at
            node = nodes.Arithmetic(at, operator, self.number(node), self.number(self.product()))
        return node

    def product(self) -> Node:
        node = self.unary()
        while operator := self.operator("*"):
            at = self.take().at
            node = nodes.Arithmetic(at, operator, self.number(node), self.number(self.unary()))
        return node

    def operator(self, *wanted: Operator) -> Operator | None:
        return next((operator for operator in wanted if operator == self.next.text), None)

    def number(self, node: Node) -> Node:
        """Return an operand, unless it is a literal other than a number."""
        if not isinstance(node, nodes.Constant) or type(node.value) in (int, float):
            return node
        raise NotNativeError(node.at, "arithmetic on anything but numbers is left to jq")

    def unary(self) -> Node:
        at = self.next.at
        if not self.accept("-"):
            return self.term()
        token = self.take()
        if token.kind != "number" or self.next.kind == "field" or self.next.text in (".", "[", "?"):
            raise NotNativeError(at, "a minus before anything but a number is left to jq")
        value = _number(token)
        return nodes.Constant(at, -value)

    def term(self) -> Node:
        node = self.head()
        step: Step | None = None
        while True:
            at = self.next.at
            if self.accept("?"):
                # The first `?` guards the step before it, each following one all steps before it.
                node = nodes.chain(node, nodes.Guarded(at, step)) if step else _guard(at, node)
                step = None
                continue
            node, step = nodes.chain(node, step) if step else node, self.suffix()
            if step is None:
                return node

    def head(self) -> Node:
        """Read the beginning of a term."""
        token = self.next
        if token.kind == "field" or token.text == ".":
            return self.dot()
        if token.kind == "name":
            return self.call()
        if token.kind in ("string", "number"):
            self.take()
            value = _number(token) if token.kind == "number" else _text(token)
            return nodes.Constant(token.at, value)
        if self.accept("("):
            return self.read_enclosed(token, self.pipe)
        return self.refuse_term()

    def dot(self) -> Node:
        token = self.take()
        if token.kind == "field":
            return nodes.Key(token.at, token.text[1:])
        if self.next.kind == "string":
            return nodes.Key(token.at, _text(self.take()))
        return nodes.Chain(())

    def suffix(self) -> Step | None:
        """Read the next `.name`, `."name"`, `["name"]`, `[0]` or `[]`. None at the end of the term."""
        token = self.next
        if token.kind == "field":
            self.take()
            return nodes.Key(token.at, token.text[1:])
        if self.accept("."):
            if self.next.kind == "string":
                return nodes.Key(token.at, _text(self.take()))
            if self.next.text != "[":
                self.refuse_infix()
        return self.bracket(token.at) if self.accept("[") else None

    def bracket(self, at: int) -> Step:
        if self.accept("]"):
            return nodes.Each(at)
        negative = self.accept("-")
        token = self.next
        key: str | int
        if token.kind == "string" and not negative:
            key = _text(self.take())
        elif token.kind == "number" and token.text.isdecimal():
            index = int(_number(self.take()))
            key = -index if negative else index
        else:
            raise NotNativeError(token.at, "only a text or an integer is native in brackets")
        self.expect("]")
        return nodes.Key(at, key)

    def call(self) -> Node:
        token = self.next
        if token.text in _NAMED:
            self.take()
            return nodes.Constant(token.at, _NAMED[token.text])
        if token.text == "to_entries":
            self.take()
            return nodes.Entries(token.at)
        if token.text != "select":
            self.refuse_term()
        self.take()
        self.expect("(")
        return self.read_enclosed(token, self.condition)

    def read_enclosed(self, token: Token, read: Callable[[], Node]) -> Node:
        """Call `read` between parentheses. The opening one has been read."""
        self.nesting += 1
        if self.nesting > MAX_NESTING:
            raise NotNativeError(
                token.at, f"more than {MAX_NESTING} levels of parentheses are left to jq"
            )
        node = read()
        self.expect(")")
        self.nesting -= 1
        return node

    def condition(self) -> Node:
        left = self.sum()
        token = self.next
        if not self.accept("=="):
            raise NotNativeError(token.at, "only `select(path == literal)` is native")
        right = self.sum()
        if isinstance(right, nodes.Constant):
            return nodes.Select(token.at, left, right.value)
        if isinstance(left, nodes.Constant):
            return nodes.Select(token.at, right, left.value)
        raise NotNativeError(token.at, "only `select(path == literal)` is native")


def _guard(at: int, node: Node) -> Node:
    # A guarded path cannot fail. Guarding it again would only add recursion.
    return node if isinstance(node, nodes.Guarded) else nodes.Guarded(at, node)


def _number(token: Token) -> int | float:
    digits = token.text.replace(".", "", 1)
    if not digits.isdecimal() or len(digits) > _MAX_DIGITS or token.text[-1] == ".":
        raise NotNativeError(
            token.at, f"only plain numbers of up to {_MAX_DIGITS} digits are native"
        )
    return float(token.text) if "." in token.text else int(token.text)


def _text(token: Token) -> str:
    if "\\(" in token.text.replace("\\\\", ""):
        raise NotNativeError(token.at, "string interpolation is left to jq")
    try:
        # Not strict: jq allows raw line breaks and tabs in a string.
        value: str = json.loads(token.text, strict=False)
        value.encode()
    except ValueError:
        raise NotNativeError(token.at, "syntax error: the string has a bad escape") from None
    if "\0" in value:
        raise NotNativeError(token.at, "a text with NUL is left to jq")
    return value


def _show(token: Token) -> str:
    return token.text if token.kind == "end" else f"`{token.text}`"
