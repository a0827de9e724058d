"""Commands that stand within sentences, held against the real parser of the command line. Runs none of them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from cyclopts import App, CoercionError, CycloptsError, MissingArgumentError


def fault(app: App, text: str) -> str | None:
    """What is wrong with the `podium` commands of a line: with a verb, an option or a value; or None.

    What is required may be missing, for a sentence often names a verb with one option alone, and words in capitals
    stand for any value.
    """
    for tokens in _calls(text):
        try:
            app.parse_args(tokens, exit_on_error=False, print_error=False)
        except MissingArgumentError:
            continue
        except CoercionError as error:
            if error.token is None or not error.token.value.isupper():
                return str(error)
        except CycloptsError as error:
            return str(error)
    return None


def _calls(text: str) -> Iterator[list[str]]:
    """The words behind each `podium` of a line: of a pipe's parts, without redirections."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    parts: list[list[str]] = [[]]
    for word in lexer:
        if set(word) <= set("|;&<>()"):
            parts.append([])
        else:
            parts[-1].append(word)
    for words in parts:
        if words and re.fullmatch(r"(?:\S*/)?podium", words[0]):
            # As the command line does, a lone "-" is told from an option by a space before it.
            yield [" -" if word == "-" else word for word in words[1:] if not word.startswith("[")]
