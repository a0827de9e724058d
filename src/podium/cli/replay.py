"""`podium replay`: makes recordings from published answers or from traces, and shows what a recording has."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pydantic import ValidationError
from rich.text import Text

from podium.cli.options import Flag
from podium.cli.output_files import check_recording_path, parent_folder, refuse_existing
from podium.cli.printable import counted, dollars, printable
from podium.cli.terminal import json_output, open_console, plain_table
from podium.errors import UsageError
from podium.recordings import Recording, RecordingHeader, RecordingWriter, header_path, unfinished_path
from podium.recordings.importers import (
    ImportReport,
    TableMapping,
    find_importer,
    import_from_traces,
    import_table,
    read_mapping,
)
from podium.recordings.importers.table import rows
from podium.rows import cell_text, is_empty
from podium.store import read_traces
from podium.tasks.graders.text_graders import Exact
from podium.workers.view import requests_whole_question

_WITH_OPTIONS = ("table", "traces")
"""Kinds of sources that have options of their own; `find_importer` finds the others."""


def import_recording(
    kind: str,
    source: Path,
    out: Path,
    /,
    *,
    name: str | None = None,
    folder: Path | None = None,
    golds: Path | None = None,
    replace: Flag = False,
    json: Flag = False,
) -> int:
    """Make a recording from published answers.

    Args:
        kind: What the source is: table (a TOML file that names a table's columns), traces (a Podium store of traces),
            or the name of an importer of an installed package.
        source: The folder or file.
        out: The recording, NAME.parquet; its header NAME.json is written into the same folder.
        name: The recording's name. Default: the name in the table's TOML file, or that of the recording's file.
        folder: For a table: the folder of the files that the TOML file names. Default: the TOML file's folder.
        golds: For traces: a .jsonl, .csv or .parquet file of right answers, with the columns question and gold.
        replace: Replace an existing recording.
        json: Print the header as one line of JSON.
    """
    check_recording_path(out)
    if kind not in _WITH_OPTIONS:
        find_importer(kind, _WITH_OPTIONS)
    if not source.exists():
        raise UsageError(f"{source}: there is no such file or folder; check the path.")
    if golds is not None and kind != "traces":
        raise UsageError("--golds is only for traces; the other sources have verdicts. Leave it out.")
    if folder is not None and kind != "table":
        raise UsageError(
            "--folder is only for a table; the other sources are one folder or file. Leave it out."
        )
    mapping = read_mapping(source, folder) if kind == "table" else None
    _refuse_what_is_read(out, source, golds, mapping)
    _refuse_existing(out, replace=replace)
    console = open_console(stderr=True)

    def report(what: str) -> None:
        console.print(f"Reading {printable(what)}", style="dim")

    with parent_folder(out), RecordingWriter() as writer:
        import_report = _import(kind, source, writer, report, golds=golds, mapping=mapping)
        header = writer.write(
            out,
            name=name or (out.stem if mapping is None else mapping.name),
            source=import_report.source,
            licence=import_report.licence,
            left_out=import_report.sentences,
            known=import_report.workers(),
        )
    if json:
        print(header.model_dump_json(), file=json_output())
        return 0
    _print(header, out)
    for worker, (published, measured) in import_report.differing.items():
        console.print(
            f"{printable(worker)}: the source publishes an accuracy of {published:.1%}, but its answers give "
            f"{measured:.1%}.",
            style="yellow",
        )
    return 0


def show(file: Path, /, *, json: Flag = False) -> int:
    """Show a recording: its workers, how often each is right, and its source.

    Args:
        file: NAME.parquet.
        json: Print the header as one line of JSON.
    """
    header = Recording.open(file).header
    if json:
        print(header.model_dump_json(), file=json_output())
    else:
        _print(header, file)
    return 0


def _refuse_what_is_read(out: Path, source: Path, golds: Path | None, mapping: TableMapping | None) -> None:
    tables = () if mapping is None else (mapping.questions.file, mapping.responses.file)
    read = {file.resolve() for file in (source, golds, *tables) if file is not None}
    for file in (out, header_path(out)):
        if file.resolve() in read:
            raise UsageError(
                f"The import reads {file} and would overwrite it; give the recording another name."
            )


def _refuse_existing(out: Path, *, replace: bool) -> None:
    unfinished = unfinished_path(out)
    if unfinished.exists():
        raise UsageError(f"{unfinished} exists already: its recording is not finished; give another name.")
    header = header_path(out)
    if not replace:
        refuse_existing((out, header), "add --replace to replace {them}")
    elif not _is_header(header):
        refuse_existing((out, header), "remove {them}: --replace replaces recordings alone")


def _is_header(file: Path) -> bool:
    try:
        RecordingHeader.model_validate_json(file.read_bytes())
    except (OSError, ValidationError):
        return False
    return True


def _import(
    kind: str,
    source: Path,
    writer: RecordingWriter,
    report: Callable[[str], None],
    *,
    golds: Path | None,
    mapping: TableMapping | None,
) -> ImportReport:
    match kind:
        case "table":
            assert mapping is not None, "a table is read with its mapping"
            return import_table(mapping, writer, report)
        case "traces":
            return import_from_traces(
                read_traces(source),
                writer,
                is_whole_question=lambda span, text: requests_whole_question(span.subtask, text),
                golds={} if golds is None else _golds(golds),
                judge=lambda response, gold: Exact().judge(response, gold).score,
            )
        case _:
            return find_importer(kind)(source, writer, report)


def _golds(file: Path) -> dict[str, str]:
    """The right answers by question. Rows without a question or without an answer are left out."""
    named = ("question", "gold")
    return {
        cell_text(row, "question"): cell_text(row, "gold")
        for row in rows(file, {*named})
        if not any(is_empty(row[column]) for column in named)
    }


def _print(header: RecordingHeader, file: Path) -> None:
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
    table = plain_table("worker", ">responses", ">right", ">published", ">recomputed", ">$ in / out")
    for worker in header.workers:
        price = worker.price
        table.add_row(
            Text(printable(worker.name)),
            f"{worker.responses:,}",
            _share(worker.accuracy),
            _share(worker.published),
            _share(worker.measured),
            "" if price.is_zero else f"{dollars(price.input)} / {dollars(price.output)}",
        )
    console.print(table)
    for sentence in header.left_out:
        console.print(Text(f"Left out: {printable(sentence)}", "dim"), soft_wrap=True)


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.1%}"
