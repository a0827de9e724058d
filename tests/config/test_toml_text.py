"""Tables that are written as TOML."""

import tomllib

from podium.config.toml import toml_text


def test_the_standard_library_reads_what_was_written() -> None:
    tables = {
        "ratings": 'a "quoted" name.json',
        "conductor": {"worker": "é\x7f\n\\", "prompt": {"examples": 0, "tools": False}},
        "worker": [
            {
                "name": "a.b",
                "price": {"input": 1e-07, "output": 2.5},
                "extra": {"x y": [{"deep": [1, "2"]}, {}]},
            },
            {"name": "🜁", "env": [], "skills": ["one", "two"]},
        ],
        "none": [],
    }
    assert tomllib.loads(toml_text(tables)) == tables
