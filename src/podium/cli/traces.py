"""`podium traces`: lists, draws, exports and imports the traces of a store."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.console import Group, RenderableType
from rich.text import Text

from podium.cli.drawing import print_trace
from podium.cli.found_files import FILE
from podium.cli.options import Flag, JSONArray, StoreFile, read_time
from podium.cli.printable import counted, dollars, priced, print_columns, printable, say, seconds, shorten
from podium.cli.terminal import json_output, open_console, open_trace_store, plain_table, print_json
from podium.errors import UsageError
from podium.files.atomic import named_file
from podium.files.locations import default_store_path
from podium.files.sqlite import SQLITE_HEADER
from podium.store import TraceStore
from podium.store.query import OutcomeFilter, TraceFilters, TraceSummary
from podium.trace import Outcome, TraceStatus
from podium.trace.explanation import Explanation, SingleWorker, explain_answer
from podium.trace.serialization import read_jsonl, to_json, write_jsonl

_REASON = 400
"""Characters shown of the planner's reason, unless the drawing is full."""


@Parameter(name="*")
@dataclass(frozen=True)
class FilterOptions:
    """The options that choose traces."""

    status: TraceStatus | None = None
    """Only traces with this status."""
    planner: str | None = None
    """Only traces of this planner."""
    since: str | None = None
    """Only traces since then: a date, a time, or how long ago, as 30m, 12h or 2d."""
    outcome: OutcomeFilter | None = None
    """Only traces with this outcome; none: nobody has judged the answer."""

    @property
    def filters(self) -> TraceFilters:
        """What the store is asked for."""
        since = None if self.since is None else read_time(self.since, datetime.now(UTC))
        return TraceFilters(status=self.status, planner=self.planner, since=since, outcome=self.outcome)


def list_traces(
    *,
    chosen: FilterOptions = FilterOptions(),
    limit: Annotated[int, Parameter(alias="-n")] = 20,
    store: StoreFile = None,
    json: JSONArray = False,
) -> int:
    """List past questions, newest first.

    Args:
        limit: The most traces.
    """
    if limit < 1:
        raise UsageError(f"--limit {limit}: give at least 1.")
    filters, store = chosen.filters, _named_store(store)
    path = store or default_store_path()
    summaries: tuple[TraceSummary, ...] = ()
    if store is not None or path.exists():
        with open_trace_store(store, create=False) as traces:
            summaries = traces.list(filters, limit=limit)
            _tell_damaged(traces)
    if json:
        print_json(summaries)
    elif summaries:
        _print(summaries)
    else:
        say(f"No such traces in {path}.")
    return 0


def show(
    id_: Annotated[str | None, Parameter(name="ID")] = None,
    /,
    *,
    full: Flag = False,
    store: StoreFile = None,
    json: Flag = False,
) -> int:
    """Draw one trace, then why it has this answer and what one worker alone would have cost.

    Args:
        id_: The trace's id, or as much of its beginning as no other trace shares. Default: the newest.
        full: Show every text uncut, the planner's prompt, the messages to each worker, thoughts and parameters.
        json: Print the trace as one line of JSON.
    """
    with open_trace_store(_named_store(store), create=False) as traces:
        if id_ is None:
            newest = traces.list(limit=1)
            _tell_damaged(traces)
            if not newest:
                raise UsageError(f"There are no traces in {traces.name} yet; `podium ask` makes them.")
            id_ = newest[0].id
        trace = traces.get(id_.strip())
    if json:
        print_json(to_json(trace))
    else:
        console = open_console()
        print_trace(trace, console, full=full)
        console.print()
        console.print(_draw_explanation(explain_answer(trace), full=full))
    return 0


def export(
    file: Path | None = None, /, *, chosen: FilterOptions = FilterOptions(), store: StoreFile = None
) -> int:
    """Write traces as JSONL, oldest first.

    Args:
        file: The file to write, which appears once it is complete. Default: standard output.
    """
    filters = chosen.filters
    with open_trace_store(_named_store(store), create=False) as repository:
        traces = repository.iterate(filters)
        if file is None or _is_stdio(file):
            write_jsonl(traces, json_output())
            _tell_damaged(repository)
            return 0
        try:
            if file.is_file() and _is_database(file):
                raise UsageError(f"{file} is a database, which an export would replace; give another file.")
            with named_file(file) as part, part.open("w", encoding="utf-8") as stream:
                count = write_jsonl(traces, stream)
        except OSError as error:
            raise UsageError(f"{file} cannot be written ({error.strerror}); give another file.") from error
        _tell_damaged(repository)
    say(f"{counted(count, 'trace')} written to {file}", stderr=True)
    return 0


def record_outcome(
    id_: Annotated[str, Parameter(name="ID")],
    /,
    *,
    right: Annotated[bool | None, Parameter(negative="--wrong")] = None,
    note: str = "",
    clear: Flag = False,
    store: StoreFile = None,
) -> int:
    """Say whether the answer of a trace was right. It replaces what was said before.

    Args:
        id_: The trace's id, or as much of its beginning as no other trace shares.
        right: The answer was right, or wrong.
        note: Words to keep with it, also without a verdict.
        clear: Take the verdict and the note away.
    """
    note = note.strip()
    if clear == (right is not None or bool(note)):
        raise UsageError("Say --right or --wrong, add a --note, or take both away with --clear alone.")
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    with open_trace_store(_named_store(store), create=False) as traces:
        trace = traces.set_outcome(id_.strip(), None if clear else Outcome(right=right, note=note, at=now))
    verdict = "not judged" if trace.outcome is None else trace.outcome.verdict
    say(f"{trace.id[:8]}  {verdict}  {shorten(trace.question.text, 100)}")
    return 0


def import_traces(file: Path, /, *, store: StoreFile = None) -> int:
    """Import traces from JSONL. A trace replaces the stored trace with the same id.

    Args:
        file: A file in the form of `podium traces export`; "-" reads standard input.
    """
    if file.is_char_device() or file.is_block_device():
        raise UsageError(f"{file} is a device and has no end; give a JSONL file of traces.")
    try:
        lines = sys.stdin.buffer if _is_stdio(file) else file.open("rb")
    except OSError as error:
        raise UsageError(f"{file} cannot be read ({error.strerror}); give a JSONL file of traces.") from error
    with lines, open_trace_store(_named_store(store), create=True) as traces:
        count = traces.add_all(read_jsonl(lines, "standard input" if _is_stdio(file) else str(file)))
        say(f"{counted(count, 'trace')} read into {traces.name}", stderr=True)
    return 0


def _is_database(file: Path) -> bool:
    with file.open("rb") as there:
        return there.read(len(SQLITE_HEADER)) == SQLITE_HEADER


def _named_store(store: Path | None) -> Path | None:
    """The store that the command or team.toml of the working folder names, or None for the default."""
    if store is not None or not Path(FILE).is_file():
        return store
    from podium.cli.found_team import found_store  # noqa: PLC0415 - loads all that a team is made of

    file = found_store()
    return None if file is None else Path(file)


def _tell_damaged(store: TraceStore) -> None:
    if store.damaged:
        left_out = f"{counted(store.damaged, 'damaged trace')} left out"
        say(f"{left_out}: somebody changed the database, or it was written by something else.", stderr=True)


def _is_stdio(file: Path) -> bool:
    return str(file).strip() == "-"


def _print(summaries: Sequence[TraceSummary]) -> None:
    rows = [("id", "asked (UTC)", "status", "outcome", "planner", "calls", "cost", "time", "question")]
    rows += [
        (
            summary.id[:8],
            f"{summary.started:%Y-%m-%d %H:%M}",
            summary.status,
            summary.outcome or "",
            shorten(summary.planner, 20),
            str(summary.calls),
            priced(summary.cost_usd, summary.unpriced),
            seconds(summary.seconds),
            shorten(summary.question, 100),
        )
        for summary in summaries
    ]
    print_columns(rows)


def _draw_explanation(explanation: Explanation, *, full: bool = False) -> RenderableType:
    parts: list[RenderableType] = [Text("Why this answer", "bold")]
    if explanation.reason is not None:
        reason = printable(explanation.reason) if full else shorten(explanation.reason, _REASON)
        parts.append(Text.assemble(("The planner wrote: ", "dim"), reason))
    if explanation.ratings:
        parts.append(_draw_ratings(explanation))
    if explanation.single is not None:
        known = explanation.cost_usd or not explanation.unpriced
        cost = priced(explanation.cost_usd, explanation.unpriced) if known else "an unknown amount"
        parts += [
            Text(f"The team cost {cost}, planning included."),
            *_draw_single("Alone", explanation.single),
        ]
    if explanation.runner_up is not None:
        parts += _draw_single("Next", explanation.runner_up)
    return Group(*parts) if len(parts) > 1 else Group()


def _draw_ratings(explanation: Explanation) -> RenderableType:
    table = plain_table("rated worker", "right", "an answer", "measured questions of this kind")
    for rated in explanation.ratings:
        table.add_row(
            Text(printable(rated.worker)),
            f"{rated.accuracy:.0%}",
            dollars(rated.cost_usd),
            Text(f"{rated.questions:,} ({printable(rated.cluster)})"),
        )
    return table


def _draw_single(title: str, single: SingleWorker) -> list[RenderableType]:
    figures = (
        (single.cost_usd, dollars, "It would have cost about {}."),
        (single.measured_usd, dollars, "{} a measured answer."),
        (single.accuracy, "{:.0%}".format, "{} likely right."),
    )
    return [
        Text.assemble((f"{title}: {printable(single.worker)}. ", "bold"), single.choice),
        *(
            Text.assemble(f"  {sentence.format(shown(figure.value))} ", (printable(figure.source), "dim"))
            for figure, shown, sentence in figures
            if figure is not None
        ),
    ]
