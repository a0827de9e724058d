"""The known name that is most similar."""

import pytest

from podium.config import closest_name


@pytest.mark.parametrize(
    ("name", "expected"),
    [("timeot", "timeout"), ("TIMEOUT", "timeout"), ("gpt5", "gpt-5"), ("zebra", None), ("", None)],
)
def test_closest_name_is_a_likely_match_or_none(name: str, expected: str | None) -> None:
    assert closest_name(name, ["timeout", "gpt-5", "model"]) == expected
