import json
import os
import threading
from codecs import BOM_UTF8
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from podium.cli.options import read_time
from podium.errors import UsageError
from podium.store import TraceStore
from podium.trace import Trace
from scripted_team import write_team

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def ids(podium, *tokens):
    return [summary["id"] for summary in json.loads(podium("traces", "list", "--json", *tokens).out)]


def test_the_list_begins_with_the_newest_and_may_be_filtered(podium, ask):
    ask("The first?")
    ask("The second?", "budget.calls=1")
    listed = podium("traces", "list")
    assert listed.status == 0
    first, second, third = listed.out.splitlines()
    assert first.split() == [
        "id",
        "asked",
        "(UTC)",
        "status",
        "outcome",
        "planner",
        "calls",
        "cost",
        "time",
        "question",
    ]
    assert second.endswith("The second?")
    assert third.endswith("The first?")
    assert len(ids(podium)) == 2
    assert len(ids(podium, "--status", "degraded")) == 1
    assert len(ids(podium, "--limit", "1")) == 1
    assert len(ids(podium, "--since", "1h")) == 2
    assert ids(podium, "--planner", "nobody") == []


def test_traces_list_without_a_store_creates_no_file(podium):
    assert "No such traces in" in podium("traces", "list").out
    assert ids(podium) == []
    assert not Path("kept").exists()


def test_traces_show_takes_the_newest_trace_or_an_id_prefix(podium, ask):
    ask("The first?")
    ask("The second?")
    newest, oldest = ids(podium)
    assert "The second?" in podium("traces", "show").out
    assert "The first?" in podium("traces", "show", oldest[:12]).out
    assert json.loads(podium("traces", "show", newest, "--json").out)["id"] == newest


def test_why_this_answer_is_said_below_the_drawing(podium):
    write_team(Path("two.toml"))
    podium("ask", "What is 6 x 7?", "--pool", "two.toml", "--planner", "single:ada")
    shown = " ".join(podium("traces", "show").out.split())
    assert "Why this answer The team cost $" in shown
    assert "It would have cost about $" in shown
    assert "Estimated from its price in the team file and the tokens of this question" in shown


def test_traces_show_full_prints_the_messages_of_each_worker(podium, ask):
    ask("The first?")
    assert "<<<your subtask" not in podium("traces", "show").out
    assert podium("traces", "show", "--full").out.count("<<<your subtask") == 2


def test_exported_traces_can_be_imported_into_another_store(podium, ask):
    ask("The first?")
    ask("The second?")
    written = podium("traces", "export", "all.jsonl")
    assert (written.status, written.out, written.err) == (0, "", "2 traces written to all.jsonl\n")
    assert podium("traces", "export").out == Path("all.jsonl").read_text()
    read = podium("traces", "import", "all.jsonl", "--store", "other.sqlite")
    assert (read.status, read.err) == (0, "2 traces read into other.sqlite\n")
    assert ids(podium, "--store", "other.sqlite") == ids(podium)
    assert podium("traces", "export", "-", "--store", "other.sqlite").out == Path("all.jsonl").read_text()


def test_a_file_with_a_byte_order_mark_can_be_imported(podium, ask):
    Path("marked.jsonl").write_bytes(BOM_UTF8 + ask("The first?", "--json", "--no-store").out.encode())
    assert podium("traces", "import", "marked.jsonl").status == 0
    assert len(ids(podium)) == 1


def test_a_tilde_in_the_place_of_a_store_is_the_home_folder(podium, ask, tmp_path, monkeypatch):
    home = tmp_path / "home"
    monkeypatch.setenv("HOME", str(home))
    ask("The first?", "--store=~/a.sqlite")
    assert len(ids(podium, "--store=~/a.sqlite")) == 1
    Path("sub").mkdir()
    Path("sub/team.toml").write_text('pool = "../pool.toml"\nstore = "~/b.sqlite"\n')
    assert podium("ask", "Q?", "--team", "sub/team.toml", "--planner", "constant:plan.txt").status == 0
    assert {path.name for path in home.glob("*.sqlite")} == {"a.sqlite", "b.sqlite"}
    assert not [*Path.cwd().rglob("~")]


def test_an_answer_can_be_piped_into_a_store(podium, ask):
    answer = ask("The first?", "--json", "--no-store").out
    assert podium("traces", "import", "-", stdin=answer).status == 0
    assert len(ids(podium)) == 1


def test_a_broken_line_is_named_and_nothing_of_its_file_is_read(podium, ask):
    ask("The first?")
    line = podium("traces", "export").out
    Path("broken.jsonl").write_text(line + line[:200])
    read = podium("traces", "import", "broken.jsonl", "--store", "other.sqlite")
    assert read.status == 2
    assert read.err.startswith("podium: broken.jsonl, line 2: not a trace (Invalid JSON: ")
    assert ids(podium, "--store", "other.sqlite") == []


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        (["show"], "There is no trace store at"),
        (["show", "--store", "none.sqlite"], "There is no trace store at none.sqlite;"),
        (["list", "--store", "none.sqlite"], "There is no trace store at none.sqlite;"),
        (["list", "--limit", "0"], "--limit 0: give at least 1."),
        (["list", "--status", "fine"], '"fine"'),
        (["list", "--since", "yesterday"], "'yesterday' is not a time; write a date such as 2026-03-01"),
        (["export", "--since", "yesterday"], "'yesterday' is not a time"),
        (["import", "none.jsonl"], "none.jsonl cannot be read (No such file or directory)"),
        (
            ["list", "--store", "pool.toml"],
            "The trace store pool.toml cannot be opened (file is not a database)",
        ),
    ],
)
def test_asking_wrongly_is_one_sentence_and_status_2_and_writes_nothing(podium, tokens, message):
    before = sorted(Path.cwd().rglob("*"))
    asked = podium("traces", *tokens)
    assert (asked.status, asked.out) == (2, "")
    assert message in asked.err
    assert asked.err.count("\n") == 1
    assert sorted(Path.cwd().rglob("*")) == before


def test_an_id_that_is_unknown_or_shared_is_refused(podium, ask):
    trace = Trace.model_validate_json(ask("What is 2 + 3?", "--json", "--no-store").out)
    with TraceStore("kept/traces.sqlite") as store:
        store.add_all(trace.model_copy(update={"id": id_}) for id_ in ("ab1", "ab2"))
    for id_, message in [("ab", "Several traces have an id that begins with 'ab'"), ("zz", "No trace in ")]:
        refused = podium("traces", "show", id_)
        assert refused.status == 2
        assert message in refused.err


def test_an_export_that_cannot_be_written_leaves_nothing(podium, ask):
    ask("The first?")
    before = sorted(Path.cwd().rglob("*.part"))
    exported = podium("traces", "export", "none/all.jsonl")
    assert (exported.status, before) == (2, [])
    assert (
        exported.err
        == "podium: none/all.jsonl cannot be written (No such file or directory); give another file.\n"
    )


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-02-03", datetime(2026, 2, 3, tzinfo=UTC)),
        ("2026-02-03T04:05+02:00", datetime(2026, 2, 3, 2, 5, tzinfo=UTC)),
        ("30m", NOW - timedelta(minutes=30)),
        ("2d", NOW - timedelta(days=2)),
        (" 1w ", NOW - timedelta(weeks=1)),
    ],
)
def test_times_are_parsed_as_dates_or_ages(text, moment):
    assert read_time(text, NOW) == moment


@pytest.mark.parametrize("text", ["", "2x", "-2d", "2026-13-01", "now", "999999d", "0001-01-01T00:00+05:00"])
def test_invalid_time_is_refused(text):
    with pytest.raises(UsageError, match="is not a time"):
        read_time(text, NOW)


def test_an_export_never_replaces_a_store(podium, ask):
    ask("The first?")
    Path("link.jsonl").symlink_to("kept/traces.sqlite")
    for target in ("kept/traces.sqlite", "link.jsonl"):
        assert podium("traces", "export", target).status == 2
    assert len(ids(podium)) == 1


def test_an_export_writes_through_links_and_into_pipes(podium, ask):
    ask("The first?")
    all_traces = podium("traces", "export").out
    Path("link.jsonl").symlink_to("target.jsonl")
    assert podium("traces", "export", "link.jsonl").status == 0
    assert (Path("link.jsonl").is_symlink(), Path("target.jsonl").read_text()) == (True, all_traces)
    os.mkfifo("pipe")
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(Path("pipe").read_text()), daemon=True)
    reader.start()
    assert podium("traces", "export", "pipe").status == 0
    assert Path("pipe").is_fifo()
    reader.join()
    assert read == [all_traces]


# --- podium traces outcome ---------------------------------------------------------------------------------


def test_an_outcome_is_told_shown_listed_and_taken_away(podium, ask):
    ask("The first?")
    ask("The second?")
    second, first = ids(podium)
    judged = podium("traces", "outcome", first[:12], "--wrong", "--note", "The year is [1808].")
    assert (judged.status, judged.out) == (0, f"{first[:8]}  wrong  The first?\n")
    podium("traces", "outcome", second, "--right")
    assert ids(podium, "--outcome", "wrong") == [first]
    assert ids(podium, "--outcome", "none") == []
    assert "Outcome   wrong: The year is [1808]." in podium("traces", "show", first).out
    header, *rows = podium("traces", "list").out.splitlines()
    assert [row[header.index("outcome") :].split()[0] for row in rows] == ["right", "wrong"]
    assert json.loads(podium("traces", "export", "--outcome", "wrong").out)["outcome"]["right"] is False
    assert podium("traces", "outcome", first, "--clear").out.split()[1:3] == ["not", "judged"]
    assert ids(podium, "--outcome", "none") == [first]


@pytest.mark.parametrize("tokens", [(), ("--right", "--clear"), ("--note", " "), ("--note", "x", "--clear")])
def test_an_outcome_that_says_nothing_or_contradicts_itself_is_refused(podium, ask, tokens):
    ask("The first?")
    refused = podium("traces", "outcome", ids(podium)[0], *tokens)
    assert (refused.status, refused.err) == (
        2,
        "podium: Say --right or --wrong, add a --note, or take both away with --clear alone.\n",
    )


def test_outcome_of_a_missing_trace_creates_no_store(podium):
    assert podium("traces", "outcome", "3f9a", "--right").status == 2
    assert not Path("kept").exists()
