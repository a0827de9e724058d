"""The command line: parses, delegates, prints. It is the core's top layer; lab and research add commands.

Loads only what parsing needs: a verb's module is imported when the user calls the verb.
Exit status: 0, 1 (it failed), 2 (wrong usage), 130 (interrupted). Any function here may raise a `UsageError`.
"""

from __future__ import annotations

import errno
import io
import os
import re
import signal
import sys
from collections.abc import Sequence
from types import FrameType

from cyclopts import CycloptsError, UnusedCliTokensError

from podium.cli.app import build_app, verbs_for
from podium.cli.printable import printable
from podium.errors import PodiumError, UsageError, flatten_group

_UNWRITABLE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG, errno.EACCES, errno.EPERM})
"""Errors of the disk, and no bugs."""


def main() -> None:
    """Entry point of the `podium` command."""
    # Before a verb imports NumPy; `podium.conductor.open_policy` says why, and does it for those who import us.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # Otherwise torch's threads spin while they wait: beside another busy process, training is up to 20 times slower.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    signal.signal(signal.SIGTERM, _interrupt)
    sys.exit(run(sys.argv[1:]))


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Do at SIGTERM what Ctrl-C does: end what the command has started, and keep what was paid for."""
    of_interrupt = signal.getsignal(signal.SIGINT)
    if callable(of_interrupt):
        of_interrupt(signal.SIGINT, frame)
    else:  # Ctrl-C is ignored, as in a script's background.
        raise KeyboardInterrupt


def run(tokens: Sequence[str]) -> int:  # noqa: PLR0911 - one for each sort of error
    """Run one command; returns its exit status. Errors are one sentence on stderr."""
    _print_any_text()
    try:
        status = build_app(verbs_for(tokens))(
            [_as_text(token) for token in tokens],
            exit_on_error=False,
            print_error=False,
            result_action="return_value",
        )
        sys.stdout.flush()
    except CycloptsError as error:
        return _refuse(_sentence(error), 2)
    except UsageError as error:
        return _refuse(str(error), 2)
    except PodiumError as error:
        return _refuse(str(error), 1)
    except BaseExceptionGroup as errors:
        # Concurrent questions often fail for one reason, such as a full disk: report it once.
        own, others = errors.split(PodiumError)
        if own is None or others is not None:
            raise
        first = next(flatten_group(own))
        return _refuse(str(first), 2 if isinstance(first, UsageError) else 1)
    except BrokenPipeError:
        # The program that reads our output has read enough, as in `podium traces list | head -1`.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        if error.errno not in _UNWRITABLE:
            raise
        # Of a library that writes files itself, such as a trainer's checkpoints.
        file = error.filename or "A file"
        return _refuse(f"{file} cannot be used ({error.strerror}); fix that, and run the command again.", 1)
    except KeyboardInterrupt:
        return _refuse("Interrupted.", 130)
    return status if isinstance(status, int) else 0


def _refuse(sentence: str, status: int) -> int:
    print(f"podium: {printable(sentence)}", file=sys.stderr)
    return status


def _as_text(token: str) -> str:
    """Put a space before a token that begins with "-" and is not an option: "-" alone, or a text of several words.

    The parser takes a token that begins with a space for an argument. Every verb strips its texts.
    """
    return f" {token}" if re.match(r"-(?:$|-?\s|[^-=\s]+\s)", token) else token


def _sentence(error: Exception) -> str:
    if isinstance(error, UnusedCliTokensError):
        unused = " ".join(token.strip() for token in error.unused_tokens or ())
        return f"{unused!r} is one argument too many; put a text of several words in quotes."
    return str(error)


def _print_any_text() -> None:
    """Escape characters that the terminal's encoding lacks, instead of failing at them."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
