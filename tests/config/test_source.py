"""What is read, and the sentence for everything that cannot be used: file, line, key, value, way out."""

from contextlib import suppress
from pathlib import Path
from typing import Annotated, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field, model_validator

from podium.config import Settings, SettingsSource, build, load, to_overrides
from podium.config.open_union import OpenUnion
from podium.errors import ConfigError


class Shape(Settings):
    width: float = Field(default=1.0, gt=0)
    tags: tuple[str, ...] = ()


class Thing(Settings):
    name: str


class Lamp(Thing):
    kind: Literal["lamp"]
    watts: int = 5
    shape: Shape = Shape()


class Door(Thing):
    kind: Literal["door"]
    api_key: str = ""
    open: bool = False


class Bell(Thing):
    """Its kind is called as one of its keys."""

    kind: Literal["bell"]
    bell: tuple[str, ...] = ()
    volume: int = 1


THINGS = {"lamp": Lamp, "door": Door, "bell": Bell}


class House(Settings):
    street: str
    floors: int = Field(default=1, ge=1, le=9)
    colour: Literal["red", "green"] = "red"
    shape: Shape = Shape()
    thing: tuple[Annotated[Thing, OpenUnion("kind", THINGS.get, THINGS.keys)], ...] = ()
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


BELL = 'street = "Elm"\n[[thing]]\nkind = "bell"\nname = "b"\nbell = ["x"]\n'


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
    ("text", "line", "sentence"),
    [
        ('street = "Elm"\nflors = 3', 2, "unknown key 'flors'; did you mean 'floors'?"),
        ('stret = "Elm"', 1, "unknown key 'stret'; did you mean 'street'?"),
        (
            'street = "Elm"\nzzz = 3',
            2,
            "unknown key 'zzz'; known: street, floors, colour, shape, thing, chances.",
        ),
        ('street = "Elm"\n[shape]\nwith = 3', 3, "unknown key 'shape.with'; did you mean 'width'?"),
        (TOML + "opn = true", 11, "unknown key 'thing.v4.1.opn'; did you mean 'open'?"),
        (
            TOML.replace('"desk"', '"desk"\nshape.widht = 1'),
            8,
            "unknown key 'thing.desk.shape.widht'; did you mean 'width'?",
        ),
        ("floors = 3", None, "the key 'street' is missing; add it."),
        (TOML + "[[thing]]\nname = 'x'", 11, "thing.x lacks the key 'kind'; add it."),
        (TOML + "[[thing]]\nname = 'x'\nkind = 'lmap'", 13, "thing.x.kind is \"lmap\"; did you mean 'lamp'?"),
        (TOML + "[[thing]]\nname = 'x'\nkind = 'zzz'", 13, 'thing.x.kind is "zzz"; known: lamp, door, bell.'),
        (BELL + "volum = 2", 6, "unknown key 'thing.b.volum'; did you mean 'volume'?"),
        (BELL + "volume = 'x'", 6, 'thing.b.volume is "x", but it should be a whole number.'),
        (BELL.replace('["x"]', "[1]"), 5, "thing.b.bell.0 is 1, but it should be text in quotes."),
        (BELL.replace('name = "b"\n', ""), 2, "the key 'thing.0.name' is missing; add it."),
        ('street = "Elm"\ncolour = "grene"', 2, "colour is \"grene\"; did you mean 'green'?"),
        ("street = 7", 1, "street is 7, but it should be text in quotes."),
        ('street = "Elm"\nfloors = "3"', 2, 'floors is "3", but it should be a whole number.'),
        ('street = "Elm"\nfloors = 2.5', 2, "floors is 2.5, but it should be a whole number."),
        ('street = "Elm"\nfloors = 0', 2, "floors is 0, but it should be greater than or equal to 1."),
        ('street = "Elm"\nshape.width = "wide"', 2, 'shape.width is "wide", but it should be a number.'),
        ('street = "Elm"\nshape = 3', 2, "shape is 3, but it should be a table."),
        ('street = "Elm"\n[thing]\nname = "x"', 2, "thing is a table, but it should be a list."),
        ('street = "Elm"\nfloors = 7', 2, "seven floors are unlucky; build six or eight."),
        (
            TOML + "api_key = 12345678",
            11,
            "thing.v4.1.api_key is set to something unusable, but it should be text in quotes.",
        ),
        (
            f'street = "Elm"\nfloors = "{"9" * 100}"',
            2,
            f'floors is "{"9" * 56}..., but it should be a whole number.',
        ),
    ],
)
def test_invalid_setting_is_reported_with_file_line_key_and_advice(
    tmp_path: Path, text: str, line: int | None, sentence: str
) -> None:
    path = _write(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        load(path, House)
    location = path if line is None else f"{path}, line {line}"
    assert str(caught.value) == f"{location}: {sentence}"


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"gone\.toml: there is no such file; check the path\.$"):
        load(tmp_path / "gone.toml", House)


def test_a_folder_is_not_a_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        load(tmp_path, House)


def test_broken_toml_is_reported_with_line_and_column(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"house\.toml: is not valid TOML: .*line 2, column 8"):
        load(_write(tmp_path, 'street = "Elm"\nfloors 3'), House)


def test_bytes_that_are_not_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "house.toml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="is not UTF-8 text"):
        load(path, House)


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


@pytest.mark.parametrize(
    "tables",
    [
        {"extra": {"guardrails": [{"type": "x", "on": True}], "empty": []}},
        {"text": '\x7f\n"\\ 3 é'},
        {"headers": {"X.Y": "1", "a=b": "2", 'a"b': "3", "back\\slash": "4", "": "5"}},
    ],
)
def test_values_of_programs_reach_the_settings_unchanged(tables: dict[str, object]) -> None:
    assert SettingsSource("p", {}).with_tables({}, to_overrides(tables)).tables == tables
    named = {"worker": [{"name": "gpt-4.1"}]}
    overrides = to_overrides({"worker": {"gpt-4.1": tables}, "left": None, "out.of": {"it": [{"a": None}]}})
    read = SettingsSource("p", {}).with_tables(named, overrides).tables
    assert read == {"worker": [{"name": "gpt-4.1", **tables}], "out": {"of": {"it": [{}]}}}
