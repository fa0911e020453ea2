"""Parse the text of a condition into a tree; nothing is ever evaluated.

condition   either ("or" either)*        either  one ("and" one)*
one         "not" one | "(" condition ")" | comparison
comparison  operand (operator operand)+ | column ["not"] "in" "(" value, ... ")"
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple, NoReturn, TypeAlias

from expecta.common.errors import QueryError

MAX_DEPTH = 50  # of parentheses within parentheses
MISSING = ("missing", "unknown", "none", "null", "nan", "na")
KEYWORDS = ("and", "or", "not", "in", "is", "true", "false")
FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
_TOKEN = re.compile(
    r"""(?P<space>\s+)
    | (?P<number>[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
    | (?P<word>[^\W\d]\w*)
    | (?P<name>`(?:[^`]|``)+`)
    | (?P<text>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
    | (?P<operator><=|>=|==|!=|<|>)
    | (?P<mark>[()\[\],])""",
    re.VERBOSE | re.DOTALL,
)
_INSTEAD = {
    "=": "two values are compared with ==",
    "&": "write 'and' instead",
    "|": "write 'or' instead",
    "!": "write 'not' or != instead",
    "~": "write 'not' instead",
    "{": "a list of values is in parentheses: ('a', 'b')",
    "'": "this text has no end; close it with '",
    '"': 'this text has no end; close it with "',
    "`": "this column name has no end or no letters; close it with `",
    **dict.fromkeys("\u2018\u2019\u201c\u201d", "texts are in straight quotes: 'a'"),
}


class Name(NamedTuple):
    """A column, and where it is written."""

    text: str
    position: int


class Constant(NamedTuple):
    """A number, text or truth value, and where it is written."""

    value: str | int | float | bool
    position: int


class Compare(NamedTuple):
    """A column compared with a value; the column comes first, however it was written."""

    column: Name
    operator: str
    value: Constant


class Among(NamedTuple):
    """A column whose value is one of a list."""

    column: Name
    values: tuple[Constant, ...]


class IsMissing(NamedTuple):
    """A column whose cell is missing."""

    column: Name


class Negation(NamedTuple):
    """What does not hold."""

    part: Syntax


class Junction(NamedTuple):
    """Several conditions, of which all ("and") or any ("or") hold."""

    word: str
    parts: tuple[Syntax, ...]


Syntax: TypeAlias = Compare | Among | IsMissing | Negation | Junction


def parse(query: str) -> Syntax:
    """Read a condition; a `QueryError` points at what cannot be read. Cost: linear in the text.

    >>> parse("30 <= age < 40").parts[0].value
    Constant(value=30, position=0)
    """
    return _Parser(query).whole()


class _Token(NamedTuple):
    kind: str  # "number", "word", "name", "text", "operator", "mark", "end"; keywords their own
    text: str
    position: int


def _tokens(query: str) -> list[_Token]:
    """Cut a query into words, numbers, texts and marks."""
    tokens: list[_Token] = []
    position = 0
    while position < len(query):
        match = _TOKEN.match(query, position)
        if match is None:
            character = query[position]
            problem = f"{character!r} has no meaning here; " + _INSTEAD.get(
                character, "a column's name that is not one word is in backticks: `body mass`"
            )
            raise QueryError(problem, query, position)
        kind, text = str(match.lastgroup), match.group()
        if kind == "word" and text.lower() in KEYWORDS:
            kind = text.lower()
        if (
            kind == "word"
            and tokens
            and tokens[-1].kind == "number"
            and query[position - 1].isalnum()
        ):
            raise QueryError(
                "a number is followed by letters; texts are in quotes: '1a'", query, position
            )
        if kind != "space":
            tokens.append(_Token(kind, text, position))
        position = match.end()
    return [*tokens, _Token("end", "", len(query))]


class _Parser:
    """Recursive descent; deep nesting is an error before it is deep for Python."""

    def __init__(self, query: str) -> None:
        self.query, self.tokens, self.at = query, _tokens(query), 0

    @property
    def next(self) -> _Token:
        return self.tokens[self.at]

    def take(self) -> _Token:
        token = self.next
        self.at += 1
        return token

    def fail(self, problem: str, token: _Token) -> NoReturn:
        raise QueryError(problem, self.query, token.position)

    def whole(self) -> Syntax:
        if self.next.kind == "end":
            self.fail("the condition is empty; for all rows leave it out", self.next)
        condition = self.either(0)
        if self.next.kind != "end":
            before, after = (
                self.tokens[self.at - 1],
                self.tokens[min(self.at + 1, len(self.tokens) - 1)],
            )
            advice = "join two by 'and' or 'or'"
            if self.next.text == "," and before.kind == after.kind == "number":
                advice = f"write decimals with a point: {before.text}.{after.text}"
            self.fail(f"{_describe(self.next)} after a condition; {advice}", self.next)
        return condition

    def either(self, depth: int) -> Syntax:
        return self.joined("or", lambda: self.joined("and", lambda: self.one(depth)))

    def joined(self, word: str, part: Callable[[], Syntax]) -> Syntax:
        parts = [part()]
        while self.next.kind == word:
            self.take()
            parts.append(part())
        return parts[0] if len(parts) == 1 else Junction(word, tuple(parts))

    def one(self, depth: int) -> Syntax:
        negated = False
        while self.next.kind == "not":
            self.take()
            negated = not negated
        if self.next.text == "(" and self.next.kind == "mark":
            start = self.take()
            if depth >= MAX_DEPTH:
                self.fail(f"more than {MAX_DEPTH} nested parentheses; use fewer", start)
            condition = self.either(depth + 1)
            if self.next.text != ")":
                self.fail(
                    f"{_describe(self.next)} where a closing parenthesis is expected", self.next
                )
            self.take()
        else:
            condition = self.comparison()
        return Negation(condition) if negated else condition

    def comparison(self) -> Syntax:
        left, token = self.operand(), self.next
        if token.kind in ("in", "not"):
            return self.among(left)
        if token.kind == "is":
            return self.is_missing(left)
        if token.kind != "operator":
            hint = ", or write low <= column <= high" if token.text.lower() == "between" else ""
            if not hint and isinstance(left, Name) and (token.kind == "word" or token.text == "("):
                hint = "; a name that is not one word is in backticks: `body mass`"
            self.fail(
                f"{_describe(token)} where a comparison is expected; "
                f"write one of == != < <= > >= in{hint}",
                token,
            )
        parts: list[Syntax] = []
        while self.next.kind == "operator":
            operator = self.take()
            right = self.operand()
            parts.append(self.compare(left, operator, right))
            left = right
        return parts[0] if len(parts) == 1 else Junction("and", tuple(parts))

    def compare(self, left: Name | Constant, operator: _Token, right: Name | Constant) -> Compare:
        if isinstance(left, Name) and isinstance(right, Constant):
            return Compare(left, operator.text, right)
        if isinstance(left, Constant) and isinstance(right, Name):
            return Compare(right, FLIPPED[operator.text], left)
        if isinstance(left, Constant):
            texts = [side.value for side in (left, right) if isinstance(side, Constant)]
            named = next((text for text in texts if isinstance(text, str)), "body mass")
            self.fail(
                "two values are compared; one side is the name of a column, in backticks if it "
                f"is not one word: `{named.replace('`', '``')}`",
                operator,
            )
        assert isinstance(right, Name)
        hint = f"if {right.text!r} is a text, put it in quotes"
        if right.text.lower() in ("none", "null", "nan", "unknown"):
            hint = f"write: {left.text} is missing"
        raise QueryError(
            f"a column is compared with a value, not with a name; {hint}",
            self.query,
            right.position,
        )

    def is_missing(self, left: Name | Constant) -> Syntax:
        token = self.take()
        negated = self.next.kind == "not"
        if negated:
            self.take()
        word = self.take()
        if not isinstance(left, Name) or word.text.lower() not in MISSING:
            self.fail(
                "'is' asks whether a column is missing: age is missing, age is not missing", token
            )
        return Negation(IsMissing(left)) if negated else IsMissing(left)

    def among(self, left: Name | Constant) -> Syntax:
        token = self.take()
        negated = token.kind == "not"
        if negated:
            if self.next.kind != "in":
                self.fail(
                    f"{_describe(self.next)} after 'not'; write 'not in', or 'not' first", token
                )
            self.take()
        if isinstance(left, Constant):
            self.fail("before 'in' is the name of a column, after it are values", token)
        closing = {"(": ")", "[": "]"}.get(self.next.text if self.next.kind == "mark" else "")
        if closing is None:
            self.fail(f"{_describe(self.next)} after 'in'; write values in parentheses", self.next)
        self.take()
        values: list[Constant] = []
        while self.next.text != closing or self.next.kind != "mark":
            value = self.operand()
            if isinstance(value, Name):
                problem = f"a list holds values; if {value.text!r} is a text, put it in quotes"
                raise QueryError(problem, self.query, value.position)
            values.append(value)
            if self.next.text == ",":
                self.take()
            elif self.next.text != closing:
                self.fail(f"{_describe(self.next)} in a list; write , or {closing}", self.next)
        end = self.take()
        if not values:
            self.fail("the list is empty, so nothing is in it; name a value", end)
        among = Among(left, tuple(values))
        return Negation(among) if negated else among

    def operand(self) -> Name | Constant:
        token = self.take()
        if token.kind == "word":
            return Name(token.text, token.position)
        if token.kind == "name":
            return Name(token.text[1:-1].replace("``", "`"), token.position)
        if token.kind == "text":
            return Constant(re.sub(r"\\(['\"\\])", r"\1", token.text[1:-1]), token.position)
        if token.kind in ("true", "false"):
            return Constant(token.kind == "true", token.position)
        if token.kind == "number":
            whole = token.text.lstrip("+-").isdigit() and len(token.text) < 300
            return Constant(int(token.text) if whole else float(token.text), token.position)
        if token.kind in KEYWORDS:
            self.fail(
                f"{_describe(token)} where a column or a value is expected; "
                f"a column of that name is in backticks: `{token.text}`",
                token,
            )
        self.fail(f"{_describe(token)} where a column or a value is expected", token)


def _describe(token: _Token) -> str:
    return "the condition ends" if token.kind == "end" else f"{token.text!r:.40} stands"
