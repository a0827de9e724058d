"""The table of clients in the documents."""

from pathlib import Path

from client_table import markdown

AGENTS = Path(__file__).parents[3] / "docs" / "agents.md"


def test_the_document_shows_the_table_that_is_run():
    assert markdown() in AGENTS.read_text()
