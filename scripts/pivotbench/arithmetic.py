"""Sums a study may ask for, worked out exactly, and found again in an answer."""

from __future__ import annotations

import ast
import operator
import re
import warnings
from collections.abc import Callable
from fractions import Fraction

LONGEST_CHARACTERS = 100
LARGEST = Fraction(10) ** 30
LARGEST_EXPONENT = 100

_BINARY: dict[type[ast.operator], Callable[[Fraction, Fraction], Fraction]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Mod: operator.mod,
}
_UNARY: dict[type[ast.unaryop], Callable[[Fraction], Fraction]] = {
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
}
# Groups of three behind a comma, an apostrophe, an underscore or a kind of space; then a decimal part. A sign
# counts where nothing stands right before it: in "10-7" it is an operator.
_NUMBER = re.compile(
    r"(?<![\w.,])(?:(?<![\w)])[-−])?(?:\d{1,3}(?:[,'’_ \u00a0\u202f]\d{3})+(?!\d)|\d+)(?:\.\d+)?",
    re.ASCII,
)


def evaluate(expression: str) -> Fraction:
    """Return the exact value of a sum of numbers, ``+ - * / ** %`` and parentheses.

    Nothing is executed: the parsed expression is walked, and it may hold nothing else. Raises ValueError,
    with the reason in words, for anything else, for a division by zero, for numbers above 10 to the 30th, and
    for a value that no decimal number states exactly (1/3).
    """
    if len(expression) > LONGEST_CHARACTERS:
        raise ValueError(f"is longer than {LONGEST_CHARACTERS} characters")
    try:
        with warnings.catch_warnings(action="ignore", category=SyntaxWarning):
            parsed = ast.parse(expression.strip(), mode="eval")
        value = _value(parsed.body, expression.strip())
    except (SyntaxError, RecursionError, MemoryError):
        raise ValueError("is not a sum; write numbers, + - * / ** % and parentheses") from None
    except ZeroDivisionError:
        raise ValueError("divides by zero") from None
    rest = value.denominator
    for factor in (2, 5):
        while rest % factor == 0:
            rest //= factor
    if rest != 1:
        raise ValueError("has no exact decimal value; ask for one that has")
    return value


def states(text: str, value: Fraction) -> bool:
    """Return whether ``value`` stands in the text as a whole number of its own.

    "391" is in "The answer is 391." and in "391.0", and 12000 in "12,000", but 391 is in neither "1391" nor
    "391.5".
    """
    # A longer one is no sum's value, and Python refuses to read a number of 4,300 digits.
    found = (number for number in _NUMBER.findall(text) if len(number) <= LONGEST_CHARACTERS)
    return any(_read(number) == value for number in found)


def _read(number: str) -> Fraction:
    return Fraction(re.sub(r"[,'’_ \u00a0\u202f]", "", number).replace("−", "-"))


def _value(node: ast.expr, source: str) -> Fraction:
    if isinstance(node, ast.Constant):
        return _bounded(_constant(node, source))
    if isinstance(node, ast.UnaryOp) and type(node.op) in _UNARY:
        return _UNARY[type(node.op)](_value(node.operand, source))
    if isinstance(node, ast.BinOp):
        left, right = _value(node.left, source), _value(node.right, source)
        if isinstance(node.op, ast.Pow):
            if right.denominator != 1 or abs(right) > LARGEST_EXPONENT:
                raise ValueError(f"raises to {right}; an exponent is a whole number up to {LARGEST_EXPONENT}")
            return _bounded(left**right.numerator)
        if type(node.op) in _BINARY:
            return _bounded(_BINARY[type(node.op)](left, right))
    raise ValueError(f"holds {ast.unparse(node)!r}; write numbers, + - * / ** % and parentheses")


def _constant(node: ast.Constant, source: str) -> Fraction:
    written = ast.get_source_segment(source, node) or ""
    if not re.fullmatch(r"[0-9]+(\.[0-9]+)?", written):
        raise ValueError(f"holds {written or node.value!r}; a number is digits and perhaps a decimal point")
    return Fraction(written)


def _bounded(value: Fraction) -> Fraction:
    if abs(value) > LARGEST or value.denominator > LARGEST:
        raise ValueError("leads to numbers above 10 to the 30th")
    return value
