"""Configuration: what is read, what is overridden, and the sentence for everything that cannot be used."""

from contextlib import suppress
from pathlib import Path
from typing import Annotated, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field, model_validator

from podium.config import Settings, build, load, nearest
from podium.errors import ConfigError


class Shape(Settings):
    width: float = Field(default=1.0, gt=0)
    tags: tuple[str, ...] = ()


class Lamp(Settings):
    kind: Literal["lamp"]
    name: str
    watts: int = 5
    shape: Shape = Shape()


class Door(Settings):
    kind: Literal["door"]
    name: str
    api_key: str = ""
    open: bool = False


class House(Settings):
    street: str
    floors: int = Field(default=1, ge=1, le=9)
    colour: Literal["red", "green"] = "red"
    shape: Shape = Shape()
    thing: tuple[Annotated[Lamp | Door, Field(discriminator="kind")], ...] = ()
    chances: dict[str, float] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _tall(self) -> "House":
        if self.floors == 7:
            raise ValueError("seven floors are unlucky; build six or eight.")
        return self


TOML = """
street = "Elm"
[shape]
width = 2
[[thing]]
kind = "lamp"
name = "desk"
[[thing]]
kind = "door"
name = "v4.1"
"""


def _write(folder: Path, text: str) -> Path:
    path = folder / "house.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_is_read_into_its_model(tmp_path: Path) -> None:
    house = load(_write(tmp_path, TOML), House)
    assert house.street == "Elm"
    assert house.shape.width == 2.0
    assert [thing.name for thing in house.thing] == ["desk", "v4.1"]


def test_a_byte_order_mark_is_no_obstacle(tmp_path: Path) -> None:
    path = tmp_path / "house.toml"
    path.write_bytes(b'\xef\xbb\xbfstreet = "Elm"\r\n')
    assert load(path, House).street == "Elm"


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
    assert found(load(_write(tmp_path, TOML), House, [override]))


def test_later_overrides_win_and_the_given_tables_are_left_alone() -> None:
    tables = {"street": "Elm", "shape": {"width": 2}}
    assert build(tables, House, ["shape.width=3", "shape.width=4"]).shape.width == 4
    assert tables == {"street": "Elm", "shape": {"width": 2}}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('street = "Elm"\nflors = 3', "unknown key 'flors'; did you mean 'floors'?"),
        ('stret = "Elm"', "unknown key 'stret'; did you mean 'street'?"),
        (
            'street = "Elm"\nzzz = 3',
            "unknown key 'zzz'; known: street, floors, colour, shape, thing, chances.",
        ),
        ('street = "Elm"\n[shape]\nwith = 3', "unknown key 'shape.with'; did you mean 'width'?"),
        (TOML + "opn = true", "unknown key 'thing.v4.1.opn'; did you mean 'open'?"),
        (
            TOML.replace('"desk"', '"desk"\nshape.widht = 1'),
            "unknown key 'thing.desk.shape.widht'; did you mean 'width'?",
        ),
        ("floors = 3", "the key 'street' is missing; add it."),
        (TOML + "[[thing]]\nname = 'x'", "thing.x lacks the key 'kind'; add it."),
        (TOML + "[[thing]]\nname = 'x'\nkind = 'lmap'", "thing.x.kind is \"lmap\"; did you mean 'lamp'?"),
        (TOML + "[[thing]]\nname = 'x'\nkind = 'zzz'", 'thing.x.kind is "zzz"; known: lamp, door.'),
        ('street = "Elm"\ncolour = "grene"', "colour is \"grene\"; did you mean 'green'?"),
        ("street = 7", "street is 7, but it should be text in quotes."),
        ('street = "Elm"\nfloors = "3"', 'floors is "3", but it should be a whole number.'),
        ('street = "Elm"\nfloors = 2.5', "floors is 2.5, but it should be a whole number."),
        ('street = "Elm"\nfloors = 0', "floors is 0, but it should be greater than or equal to 1."),
        ('street = "Elm"\nshape.width = "wide"', 'shape.width is "wide", but it should be a number.'),
        ('street = "Elm"\nshape = 3', "shape is 3, but it should be a table."),
        ('street = "Elm"\n[thing]\nname = "x"', "thing is a table, but it should be a list."),
        ('street = "Elm"\nfloors = 7', "seven floors are unlucky; build six or eight."),
        (
            TOML + "api_key = 12345678",
            "thing.v4.1.api_key is set to something unusable, but it should be text in quotes.",
        ),
        (
            f'street = "Elm"\nfloors = "{"9" * 100}"',
            f'floors is "{"9" * 56}..., but it should be a whole number.',
        ),
    ],
)
def test_what_cannot_be_used_is_one_sentence_that_names_file_key_and_way_out(
    tmp_path: Path, text: str, sentence: str
) -> None:
    path = _write(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        load(path, House)
    assert str(caught.value) == f"{path}: {sentence}"


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


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"gone\.toml: there is no such file; check the path\.$"):
        load(tmp_path / "gone.toml", House)


def test_a_folder_is_not_a_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        load(tmp_path, House)


def test_broken_toml_is_told_with_line_and_column(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"house\.toml: is not valid TOML: .*line 2, column 8"):
        load(_write(tmp_path, 'street = "Elm"\nfloors 3'), House)


def test_bytes_that_are_not_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "house.toml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="is not UTF-8 text"):
        load(path, House)


@given(st.text(max_size=60))
def test_any_override_is_used_or_refused(override: str) -> None:
    tables = {"street": "Elm", "thing": [{"kind": "lamp", "name": "desk"}]}
    with suppress(ConfigError):
        assert isinstance(build(tables, House, [override]), House)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("timeot", "timeout"), ("TIMEOUT", "timeout"), ("gpt5", "gpt-5"), ("zebra", None), ("", None)],
)
def test_nearest_is_the_likely_one_or_none(name: str, expected: str | None) -> None:
    assert nearest(name, ["timeout", "gpt-5", "model"]) == expected
