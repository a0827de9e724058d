"""Calls Python's parser (`ast.parse`) from one thread at a time. Workers and graders parse untrusted text with it.

CPython before 3.12 counts the nesting depth of all threads together, and raises SystemError when two threads parse at
once (python/cpython#106905).
"""

from __future__ import annotations

import ast
import threading

_ONE = threading.RLock()


def parse_program(source: str) -> ast.Module:
    """The statements of a program.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: Python cannot parse it.
    """
    with _ONE:
        return ast.parse(source)


def parse_expression(source: str) -> ast.expr:
    """One expression; raises what `parse_program` does."""
    with _ONE:
        return ast.parse(source, mode="eval").body
