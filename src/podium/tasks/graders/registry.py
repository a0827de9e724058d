"""The table of graders: each by the `kind` under which task files name it."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from podium.tasks.graders.choice import Choice
from podium.tasks.graders.code_grader import Code
from podium.tasks.graders.json_grader import Json
from podium.tasks.graders.judge import Judge
from podium.tasks.graders.math_graders import Math, Numeric
from podium.tasks.graders.text_graders import Exact, Normalised, Regex, SetOf

AnyGrader = Annotated[
    Exact | Normalised | Numeric | Math | Choice | Regex | SetOf | Json | Code | Judge,
    Field(discriminator="kind"),
]
