"""`podium replay`: makes recordings from published answers, and shows what a recording has."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from podium.cli.options import Flag
from podium.cli.output_files import check_recording_path, parent_folder, refuse_existing
from podium.cli.printable import counted, dollars, print_columns, say
from podium.cli.terminal import print_json
from podium.errors import UsageError
from podium.recordings import Recording, RecordingHeader, RecordingWriter, header_path, unfinished_path
from podium.recordings.importers import find_importer
from podium.recordings.table_import import import_table, read_mapping

_TABLE = "table"
"""The kind of source that has options of its own; `find_importer` finds the others."""


def import_recording(
    kind: str,
    source: Path,
    out: Path,
    /,
    *,
    name: str | None = None,
    folder: Path | None = None,
    replace: Flag = False,
    json: Flag = False,
) -> int:
    """Make a recording from published answers.

    Args:
        kind: What the source is: table (a TOML file that names a table's columns), or the name of an importer of an
            installed package.
        source: The folder or file.
        out: The recording, NAME.parquet; its header NAME.json is written into the same folder.
        name: The recording's name. Default: the name in the table's TOML file, or that of the recording's file.
        folder: For a table: the folder of the files that the TOML file names. Default: the TOML file's folder.
        replace: Replace an existing recording.
        json: Print the header as one line of JSON.
    """
    check_recording_path(out)
    if kind != _TABLE:
        find_importer(kind, (_TABLE,))
    if not source.exists():
        raise UsageError(f"{source}: there is no such file or folder; check the path.")
    if folder is not None and kind != _TABLE:
        raise UsageError(
            "--folder is only for a table; the other sources are one folder or file. Leave it out."
        )
    mapping = read_mapping(source, folder) if kind == _TABLE else None
    header_file = header_path(out)
    tables = () if mapping is None else (mapping.questions.file, mapping.responses.file)
    read = {file.resolve() for file in (source, *tables)}
    if overwritten := [file for file in (out, header_file) if file.resolve() in read]:
        raise UsageError(
            f"The import reads {overwritten[0]} and would overwrite it; give the recording another name."
        )
    _refuse_existing(out, header_file, replace=replace)

    def report(what: str) -> None:
        say(f"Reading {what}", stderr=True)

    with parent_folder(out), RecordingWriter() as writer:
        if mapping is not None:
            import_report = import_table(mapping, writer, report)
        else:
            import_report = find_importer(kind)(source, writer, report)
        header = writer.write(
            out,
            name=name or (out.stem if mapping is None else mapping.name),
            source=import_report.source,
            licence=import_report.licence,
            left_out=import_report.sentences,
            known=import_report.workers(),
        )
    if json:
        print_json(header.model_dump_json())
        return 0
    _print(header, out)
    for worker, (published, measured) in import_report.differing.items():
        say(
            f"{worker}: the source publishes an accuracy of {published:.1%}, but its answers give {measured:.1%}.",
            stderr=True,
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
        print_json(header.model_dump_json())
    else:
        _print(header, file)
    return 0


def _refuse_existing(out: Path, header_file: Path, *, replace: bool) -> None:
    if (unfinished := unfinished_path(out)).exists():
        raise UsageError(f"{unfinished} exists already: its recording is not finished; give another name.")
    if not replace:
        refuse_existing((out, header_file), "add --replace to replace {them}")
    elif not _is_header(header_file):
        refuse_existing((out, header_file), "remove {them}: --replace replaces recordings alone")


def _is_header(file: Path) -> bool:
    try:
        RecordingHeader.model_validate_json(file.read_bytes())
    except (OSError, ValidationError):
        return False
    return True


def _print(header: RecordingHeader, file: Path) -> None:
    splits = ", ".join(f"{count:,} {split}" for split, count in header.splits.items())
    about = "; ".join(part for part in (header.source, header.licence) if part)
    say(f"{header.name}  {about}")
    responses = counted(header.responses, "recorded response")
    say(f"{counted(header.questions, 'question')} ({splits}), {responses}: {file}\n")
    rows: list[tuple[str, ...]] = [("worker", "responses", "right", "published", "recomputed", "$ in / out")]
    for worker in header.workers:
        price = worker.price
        shares = (_share(value) for value in (worker.accuracy, worker.published, worker.measured))
        prices = "" if price.is_zero else f"{dollars(price.input)} / {dollars(price.output)}"
        rows.append((worker.name, f"{worker.responses:,}", *shares, prices))
    print_columns(rows)
    for sentence in header.left_out:
        say(f"Left out: {sentence}")


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.1%}"
