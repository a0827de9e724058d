"""Overrides: what they change, and how those are refused that change nothing."""

from contextlib import suppress
from pathlib import Path

import pytest
from house import TOML, House
from hypothesis import given
from hypothesis import strategies as st

from podium.config import build, load
from podium.errors import ConfigError


@pytest.mark.parametrize(
    ("override", "found"),
    [
        ("street=Oak", lambda h: h.street == "Oak"),
        ('street="7"', lambda h: h.street == "7"),
        ("street = Oak = Ash", lambda h: h.street == "Oak = Ash"),
        ("floors=3", lambda h: h.floors == 3),
        ("shape.width=1e-4", lambda h: h.shape.width == 1e-4),
        ('shape.tags=["a", "b"]', lambda h: h.shape.tags == ("a", "b")),
        ("chances.new=0.5", lambda h: h.chances == {"new": 0.5}),
        ("thing.desk.watts=9", lambda h: h.thing[0].watts == 9),
        ("thing.desk.shape.width=9", lambda h: h.thing[0].shape.width == 9),
        ("thing.0.watts=9", lambda h: h.thing[0].watts == 9),
        ("thing.v4.1.open=true", lambda h: h.thing[1].open is True),
        ('thing."v4.1".open=true', lambda h: h.thing[1].open is True),
    ],
)
def test_an_override_changes_its_key(tmp_path: Path, override: str, found: object) -> None:
    assert callable(found)
    path = tmp_path / "house.toml"
    path.write_text(TOML, encoding="utf-8")
    assert found(load(path, House, [override]))


def test_later_overrides_win_and_the_given_tables_are_left_alone() -> None:
    tables = {"street": "Elm", "shape": {"width": 2}}
    assert build(tables, House, ["shape.width=3", "shape.width=4"]).shape.width == 4
    assert tables == {"street": "Elm", "shape": {"width": 2}}


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        ("floors", "Override 'floors' is not of the form key=value, as in train.lr=1e-4."),
        ("=3", "Override '=3' is not of the form key=value, as in train.lr=1e-4."),
        ("floors=high", "Override 'floors': floors is \"high\", but it should be a whole number."),
        ("flors=3", "Override 'flors': unknown key 'flors'; did you mean 'floors'?"),
        ("shpe.width=3", "Override 'shpe.width': unknown key 'shpe'; did you mean 'shape'?"),
        (
            "thing.desk.wats=3",
            "Override 'thing.desk.wats': unknown key 'thing.desk.wats'; did you mean 'watts'?",
        ),
        (
            "thing.dsk.watts=3",
            "Override 'thing.dsk.watts=3': h has no thing named 'dsk'; did you mean 'desk'?",
        ),
        ("street.name=3", "Override 'street.name=3': street is \"Elm\", which has no keys of its own."),
        ("shape={width='x'}", "Override 'shape': shape.width is \"x\", but it should be a number."),
    ],
)
def test_a_bad_override_is_named_instead_of_the_file(override: str, sentence: str) -> None:
    tables = {"street": "Elm", "thing": [{"kind": "lamp", "name": "desk"}]}
    with pytest.raises(ConfigError) as caught:
        build(tables, House, [override], source="h")
    assert str(caught.value) == sentence


@given(st.text(max_size=60))
def test_any_override_is_used_or_refused(override: str) -> None:
    tables = {"street": "Elm", "thing": [{"kind": "lamp", "name": "desk"}]}
    with suppress(ConfigError):
        assert isinstance(build(tables, House, [override]), House)
