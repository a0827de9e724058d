"""Settings of a house, for the tests of configuration."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from podium.config import Settings
from podium.config.open_union import OpenUnion


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
