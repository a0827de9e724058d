"""Finds arithmetic expressions in text, and computes them exactly, in bounded time and memory.

Nothing is executed: Python's parser reads an expression, and only arithmetic is computed. Numbers are fractions, so
0.1 + 0.2 is 0.3; irrational roots have 30 decimals. Integers may be hexadecimal and be shifted. It understands no
words, units or variables.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Context, Decimal
from fractions import Fraction
from itertools import pairwise

from podium.text.syntax import parse_expression

_SEARCHED_CHARS = 20_000
"""Only the last characters of a text are searched."""
_MAX_EXPRESSION_CHARS = 1000
_MAX_NESTING = 300
_MAX_BITS = 10_000
"""The most bits of a numerator or denominator: three thousand digits."""
_ROOT_DIGITS = 30
_MAX_DECIMALS = 300
_SHOWN_FIGURES = 12
"""Significant figures of a number that is not shown in full."""
_MAX_DENOMINATOR = 1_000_000
_TOO_LARGE = "it is too large"

_FUNCTIONS = ("sqrt", "abs", "min", "max", "round", "gcd")
_HEXADECIMAL = r"0[xX][0-9a-fA-F]++"
_NUMBER = r"(?:\d++(?>(?:\.\d++)?)|\.\d++)(?>(?:[eE][-+]?\d{1,3}+)?)"
_STRETCH = re.compile(
    rf"(?:(?<![\w.])(?:{_HEXADECIMAL}|{_NUMBER})(?![A-Za-z_])|\*\*|//|<<|>>|[-+*/%^(),]|[ \t]"
    rf"|\b(?:{'|'.join(_FUNCTIONS)})(?=[ \t]*+\())+"
)
_EDGE_CHARS = " \t,<>"
"""Characters at the ends of a stretch that belong to no expression."""
_BULLET = re.compile(r"^[ \t]*+[-*+•][ \t]+", re.MULTILINE)
_LATEX_MARKS = re.compile(r"\\[()\[\]]|\\left|\\right|\$")
_SIGNS: Mapping[str, str] = {
    r"\times": "*",
    r"\cdot": "*",
    r"\div": "/",
    "×": "*",
    "·": "*",
    "⋅": "*",
    "÷": "/",
    "−": "-",
    "^": "**",
}
_GROUPED = re.compile(r"(?<![\d.])\d{1,3}(?:,\d{3})+(?!\d)")
_FACTORIAL = r"(?:[\d)\]}]|\b[A-Za-z])!+"
_OPERAND_BEFORE = re.compile(rf"(?:[\w)\]}}]|{_FACTORIAL})\s*$")
_FACTOR_BEFORE = re.compile(rf"[\w\]]$|(?:\}}|{_FACTORIAL})\s*$")
"""What stands before a bracket that multiplies it or is a call of it: `2(3 + 4)`, `f(3 + 4)`."""
_GROUP_BEFORE = re.compile(r"(?:[\d)\]}*_]|\\(?!boxed|text|math)[A-Za-z]+)\s*\{\s*$|√\s*$")
"""What stands before a brace inside an expression: `\\frac{3 + 4}{5}`, `2^{3 + 4}`; not `\\boxed{3 + 4}`."""
_MORE_BEHIND = re.compile(r"(?<=[\d)])!(?!=)|\s*[\]}]\s*[-+*/%({!]|\s*\\(?:[cdt]?frac|sqrt|[bp]?mod)\b")
"""What follows an expression that is part of a larger one: `[3 + 4] * 5`, `3 + 4!`."""
_PERCENT = re.compile(r"\S%(?=[-+\s])|%\s*[-+]\s")
"""A percent sign. Between two numbers % is the remainder."""
_WORD_BEFORE = re.compile(r"[A-Za-z]{2}\s+$")
_YEAR, _MONTH, _DAY = r"(?:1[89]|20)\d\d", r"(?:0?[1-9]|1[0-2])", r"(?:0?[1-9]|[12]\d|3[01])"
_DATE = re.compile(
    rf"(?<![\w.)*/+-])(?:{_YEAR}-{_MONTH}-{_DAY}|{_DAY}-{_MONTH}-{_YEAR}|{_MONTH}-{_DAY}-{_YEAR})(?![\w.(*/+-])"
)
_JOINED = re.compile(r"\d+(?:\.\d+)?(?:-\d+(?:\.\d+)?)+")
"""Numbers that are joined by hyphens without spaces, as in a range: `3-4`."""
_WORD_BEHIND = re.compile(r"(?<=[\d \t])[^\W\d_]")
_SIMPLE: Mapping[type[ast.operator], Callable[[Fraction, Fraction], Fraction | int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}


def find_expressions(text: str) -> Iterator[str]:
    """The expressions in a text, in order, in Python's notation. Bare numbers, formulas with names, dates and ranges of
    something (`3-4 sentences`) are left out."""
    text = _LATEX_MARKS.sub(" ", _BULLET.sub("", text[-_SEARCHED_CHARS:]))
    for sign, ours in _SIGNS.items():
        text = text.replace(sign, ours)
    for stretch in _STRETCH.finditer(text):
        expression = stretch[0].strip(_EDGE_CHARS)
        if not expression or _PERCENT.search(expression) or _MORE_BEHIND.match(text, stretch.end()):
            continue
        if _goes_on(text[: stretch.end() - len(stretch[0].lstrip(_EDGE_CHARS))], expression):
            continue
        if not any(name in expression for name in _FUNCTIONS):  # in calls, commas separate arguments
            expression = _GROUPED.sub(lambda number: number[0].replace(",", ""), expression)
        tree = _parse(expression)
        parts: Sequence[ast.expr] = tree.elts if isinstance(tree, ast.Tuple) else [tree] if tree else []
        before_word = stretch[0].rstrip(" \t")[-1:].isdigit() and _WORD_BEHIND.match(text, stretch.end())
        for part in parts:
            if any(isinstance(node, ast.BinOp | ast.Call) for node in ast.walk(part)):
                found = expression[part.col_offset : part.end_col_offset]
                is_range = part is parts[-1] and before_word and _is_range(found)
                if not is_range and _DATE.search(found) is None:
                    yield found


def compute(expression: str) -> Fraction:
    """The value of an expression of + - * / // % ** << >> and a few functions.

    Raises:
        ValueError: it has none within bounds; the message says why, as a clause.
    """
    tree = _parse(expression)
    if tree is None:
        raise ValueError("it cannot be read as arithmetic")
    return _value(tree, expression, 0)


def format_number(value: Fraction) -> str:
    """A value as a whole number, a number of at most 12 decimals, or a fraction; else rounded to 12 figures."""
    if value.denominator == 1:
        return str(value.numerator)
    for decimals in range(1, _SHOWN_FIGURES + 1):
        if (value * 10**decimals).denominator == 1:
            return f"{Decimal((value * 10**decimals).numerator).scaleb(-decimals, _WIDE):f}"
    if value.denominator <= _MAX_DENOMINATOR:
        return f"{value.numerator}/{value.denominator}"
    return str(Context(prec=_SHOWN_FIGURES).divide(Decimal(value.numerator), Decimal(value.denominator)))


_WIDE = Context(prec=_MAX_BITS)


def _goes_on(before: str, written: str) -> bool:
    """Whether the expression continues what stands before it: `x + 3 * 4`, `f(3 + 4)`, `5! - 3 * 2`."""
    tail = before[-80:]
    if _GROUP_BEFORE.search(tail):
        return True
    if written[0] in "+-" and written[1:2] != " " and _WORD_BEFORE.search(tail):
        return False  # "It is -3 + 4."
    if written[0] in "*/%+-":
        return _OPERAND_BEFORE.search(tail) is not None
    return written[0] == "(" and _FACTOR_BEFORE.search(tail) is not None


def _is_range(expression: str) -> bool:
    """Whether it is joined numbers that grow. A difference that is not negative is none, as in `12-5 and`."""
    if _JOINED.fullmatch(expression) is None:
        return False
    return all(low < high for low, high in pairwise(map(Fraction, expression.split("-"))))


def _parse(written: str) -> ast.expr | None:
    if len(written) > _MAX_EXPRESSION_CHARS or "\n" in written:
        return None
    try:
        return parse_expression(written)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _value(node: ast.expr, written: str, depth: int) -> Fraction:
    if depth > _MAX_NESTING:
        raise ValueError(f"it has more than {_MAX_NESTING} nested operations")
    match node:
        case ast.Constant():
            # From its digits, since a float is not exact.
            digits = written[node.col_offset : node.end_col_offset]
            if re.fullmatch(_HEXADECIMAL, digits):
                return _bounded(Fraction(int(digits, 16)))
            if re.fullmatch(_NUMBER, digits):
                return _bounded(Fraction(digits))
        case ast.UnaryOp(op=ast.USub() | ast.UAdd() as op, operand=operand):
            value = _value(operand, written, depth + 1)
            return -value if isinstance(op, ast.USub) else value
        case ast.BinOp(left=left, op=op, right=right):
            return _apply(op, _value(left, written, depth + 1), _value(right, written, depth + 1))
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]):
            return _bounded(_call(name, [_value(argument, written, depth + 1) for argument in args]))
    raise ValueError("it is not arithmetic")


def _apply(op: ast.operator, left: Fraction, right: Fraction) -> Fraction:
    if isinstance(op, ast.Pow):
        return _power(left, right)
    if isinstance(op, ast.LShift | ast.RShift):
        return _shift_left(left, right if isinstance(op, ast.LShift) else -right)
    if type(op) not in _SIMPLE:
        raise ValueError("it is not arithmetic")
    if not right and isinstance(op, ast.Div | ast.FloorDiv | ast.Mod):
        raise ValueError("it divides by zero")
    return _bounded(Fraction(_SIMPLE[type(op)](left, right)))


def _power(base: Fraction, exponent: Fraction) -> Fraction:
    power = exponent.numerator
    if exponent.denominator != 1:
        raise ValueError("an exponent is no whole number; for roots there is sqrt")
    if not base and power < 0:
        raise ValueError("it divides by zero")
    if base in (-1, 0, 1):  # their powers stay small, however large the exponent
        power = min(power, 2 + power % 2) if power > 0 else power % 2
    if _bits(base) * abs(power) > _MAX_BITS:
        raise ValueError(_TOO_LARGE)
    return base**power


def _shift_left(value: Fraction, bits: Fraction) -> Fraction:
    """Shift left by `bits`; right if it is negative, rounding down."""
    if value.denominator != 1 or bits.denominator != 1:
        raise ValueError("only whole numbers are shifted")
    if abs(bits) > _MAX_BITS:
        raise ValueError(_TOO_LARGE)
    return _bounded(Fraction(math.floor(value * Fraction(2) ** bits.numerator)))


def _call(name: str, arguments: list[Fraction]) -> Fraction:  # noqa: PLR0911 - one for each function
    match name, arguments:
        case "sqrt", [value]:
            return _root(value)
        case "abs", [value]:
            return abs(value)
        case "round", [value]:
            return Fraction(round(value))
        case "round", [value, decimals] if decimals.denominator == 1 and abs(decimals) <= _MAX_DECIMALS:
            return round(value, decimals.numerator)
        case "min", [_, _, *_]:
            return min(arguments)
        case "max", [_, _, *_]:
            return max(arguments)
        case "gcd", [_, _, *_] if all(value.denominator == 1 for value in arguments):
            return Fraction(math.gcd(*(value.numerator for value in arguments)))
    if name not in _FUNCTIONS:
        raise ValueError(f"there is no function {name}; there are {', '.join(_FUNCTIONS)}")
    raise ValueError(f"{name} does not take these numbers")


def _root(value: Fraction) -> Fraction:
    if value < 0:
        raise ValueError("it takes the root of a negative number")
    above, below = math.isqrt(value.numerator), math.isqrt(value.denominator)
    if (above**2, below**2) == (value.numerator, value.denominator):
        return Fraction(above, below)
    scale = 10**_ROOT_DIGITS
    return Fraction(math.isqrt(value.numerator * value.denominator * scale**2), value.denominator * scale)


def _bounded(value: Fraction) -> Fraction:
    if _bits(value) > _MAX_BITS:
        raise ValueError(_TOO_LARGE)
    return value


def _bits(value: Fraction) -> int:
    return max(value.numerator.bit_length(), value.denominator.bit_length())
