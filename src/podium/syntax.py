"""Python's own parser, in one thread at a time.

CPython before 3.12 counts the depth of what it parses for all threads together, and raises SystemError where two parse
at once (python/cpython#106905).
"""

from __future__ import annotations

import ast
import threading

_ONE = threading.RLock()


def parse_program(source: str) -> ast.Module:
    """The statements of a program.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: it is no program that can be read.
    """
    with _ONE:
        return ast.parse(source)


def parse_expression(source: str) -> ast.expr:
    """One expression; raises what `parse_program` does."""
    with _ONE:
        return ast.parse(source, mode="eval").body
