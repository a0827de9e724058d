"""Settings of a house, for the tests of configuration."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from podium.config import Settings


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


class Bell(Settings):
    """Its kind is called as one of its keys."""

    kind: Literal["bell"]
    name: str
    bell: tuple[str, ...] = ()
    volume: int = 1


class House(Settings):
    street: str
    floors: int = Field(default=1, ge=1, le=9)
    colour: Literal["red", "green"] = "red"
    shape: Shape = Shape()
    thing: tuple[Annotated[Lamp | Door | Bell, Field(discriminator="kind")], ...] = ()
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
