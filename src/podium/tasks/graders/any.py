"""Any grader, as a TOML table says it: told apart by `kind`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from podium.tasks.graders.choice import Choice
from podium.tasks.graders.code import Code
from podium.tasks.graders.exact import Exact
from podium.tasks.graders.json import Json
from podium.tasks.graders.judge import Judge
from podium.tasks.graders.math import Math
from podium.tasks.graders.normalised import Normalised
from podium.tasks.graders.numeric import Numeric
from podium.tasks.graders.regex import Regex
from podium.tasks.graders.set import SetOf

AnyGrader = Annotated[
    Exact | Normalised | Numeric | Math | Choice | Regex | SetOf | Json | Code | Judge,
    Field(discriminator="kind"),
]
