"""The docstring of `errors` draws the tree of its exceptions."""

import inspect
import re

from podium import errors


def test_the_tree_in_the_docstring_is_that_of_the_classes() -> None:
    drawn: dict[str, str] = {}
    above: list[str] = []
    for bars, name in re.findall(r"^ {4}([│├└─ ]*)(\w+)(?: {2,}.+)?$", errors.__doc__ or "", re.MULTILINE):
        above[len(bars) // 4 :] = [name]
        drawn[name] = above[-2] if len(above) > 1 else "Exception"
    there = {
        name: kind.__base__.__name__
        for name, kind in inspect.getmembers(errors, inspect.isclass)
        if issubclass(kind, Exception) and kind.__module__ == errors.__name__
    }
    assert drawn == there
