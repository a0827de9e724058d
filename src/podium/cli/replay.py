"""`podium replay`: makes recordings from what others have published, and shows what one holds."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

from rich.table import Table
from rich.text import Text

from podium.baselines.phrases import WHOLE
from podium.cli.opening import open_console, open_store
from podium.cli.options import Flag
from podium.cli.printable import counted, dollars, printable
from podium.errors import UsageError
from podium.recordings import Gathering, Header, Recording, header_path
from podium.recordings.importers import (
    Findings,
    gather_mmlu_pro,
    gather_reasoning_gym,
    gather_table,
    gather_traces,
    gather_zeroeval,
    read_mapping,
)
from podium.recordings.importers.table import rows
from podium.tasks.graders.exact import Exact

Kind = Literal["reasoning-gym", "zeroeval", "mmlu-pro", "table", "traces"]


def import_recording(
    kind: Kind,
    source: Path,
    out: Path,
    /,
    *,
    name: str | None = None,
    folder: Path | None = None,
    golds: Path | None = None,
    json: Flag = False,
) -> int:
    """Make a recording from published answers.

    Args:
        kind: What the source is: a folder of reasoning-gym-eval, a result_dirs folder of ZeroEval, the eval_results
            of MMLU-Pro, a table (a TOML file that names the columns), or a Podium store of traces.
        source: The folder or file.
        out: NAME.parquet; NAME.json is written beside it.
        name: The recording's name. Default: that of the mapping, or of the file.
        folder: For a table: where the files that the mapping names are. Default: beside it.
        golds: For traces: a .jsonl, .csv or .parquet of right answers, with the columns question and gold.
        json: Print the header as one line of JSON.
    """
    if out.suffix != ".parquet":
        raise UsageError(f"{out}: a recording's file is called NAME.parquet.")
    if not source.exists():
        raise UsageError(f"{source}: there is no such file or folder; check the path.")
    if golds is not None and kind != "traces":
        raise UsageError("--golds belongs to traces; the other sources hold their verdicts.")
    if folder is not None and kind != "table":
        raise UsageError("--folder belongs to a table; the other sources are one folder or file.")
    if header_path(out).exists() and not out.exists():
        raise UsageError(f"{header_path(out)} is there already and is no header of {out}; give another name.")
    out.parent.mkdir(parents=True, exist_ok=True)
    console = open_console(stderr=True)

    def report(what: str) -> None:
        console.print(f"Reading {printable(what)}", style="dim")

    with tempfile.TemporaryDirectory() as scratch, Gathering(Path(scratch) / "rows.sqlite") as gathering:
        called, findings = _gather(kind, source, gathering, report, golds=golds, folder=folder)
        header = gathering.write(
            out,
            name=name or called or out.stem,
            source=findings.source,
            licence=findings.licence,
            left_out=findings.sentences,
            known=findings.workers(),
        )
    if json:
        print(header.model_dump_json())
        return 0
    _print(header, out)
    for worker, (published, measured) in findings.differing.items():
        console.print(
            f"{printable(worker)}: the source publishes {published:.1%}, and its rows give {measured:.1%}.",
            style="yellow",
        )
    return 0


def show(file: Path, /, *, json: Flag = False) -> int:
    """Show what a recording holds: its workers, how often each is right, and where it is from.

    Args:
        file: NAME.parquet.
        json: Print the header as one line of JSON.
    """
    header = Recording.open(file).header
    if json:
        print(header.model_dump_json())
    else:
        _print(header, file)
    return 0


def _gather(
    kind: Kind,
    source: Path,
    gathering: Gathering,
    report: Callable[[str], None],
    *,
    golds: Path | None,
    folder: Path | None,
) -> tuple[str | None, Findings]:
    """What the source calls itself, and what was found in it."""
    match kind:
        case "reasoning-gym":
            return None, gather_reasoning_gym(source, gathering, report)
        case "zeroeval":
            return None, gather_zeroeval(source, gathering, report)
        case "mmlu-pro":
            return None, gather_mmlu_pro(source, gathering, report)
        case "table":
            mapping = read_mapping(source, folder)
            return mapping.name, gather_table(mapping, gathering, report)
        case "traces":
            with open_store(source, create=False) as store:
                return None, gather_traces(
                    store.iterate(),
                    gathering,
                    asked_whole=lambda span, text: span.subtask in (WHOLE, text),
                    golds={} if golds is None else _golds(golds),
                    judge=lambda response, gold: Exact().judge(response, gold).score,
                )


def _golds(file: Path) -> Mapping[str, str]:
    return {str(row["question"]): str(row["gold"]) for row in rows(file, {"question", "gold"})}


def _print(header: Header, file: Path) -> None:
    console = open_console()
    splits = ", ".join(f"{count:,} {split}" for split, count in header.splits.items())
    about = "; ".join(part for part in (header.source, header.licence) if part)
    console.print(Text.assemble((printable(header.name), "bold"), f"  {printable(about)}"))
    console.print(
        Text(
            f"{counted(header.questions, 'question')} ({splits}), "
            f"{counted(header.responses, 'recorded response')}: {file}\n"
        ),
        soft_wrap=True,
    )
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("worker", "responses", "right", "published", "its rows", "$ in / out"):
        table.add_column(column, justify="left" if column == "worker" else "right", no_wrap=True)
    for worker in header.workers:
        price = worker.price
        priced = price.input or price.output
        table.add_row(
            Text(printable(worker.name) + (" (simulated)" if worker.simulated else "")),
            f"{worker.responses:,}",
            _share(worker.accuracy),
            _share(worker.published),
            _share(worker.measured),
            f"{dollars(price.input)} / {dollars(price.output)}" if priced else "",
        )
    console.print(table)
    for sentence in header.left_out:
        console.print(Text(f"Left out: {printable(sentence)}", "dim"), soft_wrap=True)


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.1%}"
