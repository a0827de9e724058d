"""`podium traces outcome`: say whether an answer was right, and find the answers by it."""

import json
from pathlib import Path

import pytest


def ids(podium, *tokens):
    return [summary["id"] for summary in json.loads(podium("traces", "list", "--json", *tokens).out)]


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
