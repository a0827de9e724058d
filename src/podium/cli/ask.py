"""`podium ask`: answers one question, draws its trace and stores it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from secrets import token_hex

from podium.cli.drawing import print_trace
from podium.cli.found_team import find_team
from podium.cli.options import Flag
from podium.cli.printable import printable
from podium.cli.team_options import AskOptions, Override
from podium.cli.terminal import open_console, print_json, read_question
from podium.errors import QuestionFailedError
from podium.executor import StepEnded, StepStarted
from podium.team import Event, QuestionEnded
from podium.team.team import Team
from podium.trace.serialization import to_json


async def ask(
    question: str,
    /,
    *overrides: Override,
    team: AskOptions = AskOptions(),
    no_store: Flag = False,
    seed: str | None = None,
    full: Flag = False,
    json: Flag = False,
) -> int:
    """Answer a question; returns 1 if there is no answer.

    Args:
        question: The question, in quotes; "-" reads it from standard input.
        no_store: Store no trace (store=false).
        seed: Seeds all randomness; the same seed repeats a question in the same way. Default: a new seed.
        full: Show every text uncut, and the messages to each worker.
        json: Print the trace as one line of JSON.
    """
    asked_question = read_question(question)
    settings = find_team(team, overrides).read()
    chosen_seed = token_hex(8) if seed is None else seed

    async with Team.from_settings(
        settings, seed=chosen_seed, store=None if no_store else settings.trace_store
    ) as opened:
        with _progress() as show_progress:

            def show(event: Event) -> None:
                show_progress(event)
                # Before a store that is locked or full is waited for.
                if not isinstance(event, QuestionEnded) or event.trace.status == "cancelled":
                    return
                if json:
                    print_json(to_json(event.trace))
                else:
                    print_trace(event.trace, open_console(), full=full)
                    sys.stdout.flush()

            trace = await opened.ask(asked_question, seed=chosen_seed, on_event=show)
    if trace.answer is None:
        raise QuestionFailedError(trace.error or "No step succeeded.")
    return 0


@contextmanager
def _progress() -> Iterator[Callable[[Event], None]]:
    """A line on a terminal's stderr with the workers that run now; nothing in a pipe."""
    if not sys.stderr.isatty():
        yield lambda event: None
        return
    working: dict[tuple[int, int], str] = {}
    with open_console(stderr=True).status("planning") as status:

        def show(event: Event) -> None:
            if isinstance(event, QuestionEnded):
                status.stop()
                return
            if isinstance(event, StepStarted):
                working[event.round, event.position] = printable(event.worker)
            elif isinstance(event, StepEnded):
                working.pop((event.round, event.span.position), None)
            status.update(", ".join(working.values()) or "planning")

        yield show
