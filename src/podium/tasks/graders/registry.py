"""The table of graders: each by the `kind` under which task files name it.

To add a grader, add its class to `GRADERS`; or offer it from another package as an entry point of `podium.graders`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from podium.config.open_union import extensible_union
from podium.tasks.graders.base import GraderSettings
from podium.tasks.graders.choice import Choice
from podium.tasks.graders.code_grader import Code
from podium.tasks.graders.json_grader import Json
from podium.tasks.graders.judge import Judge
from podium.tasks.graders.math_graders import Math, Numeric
from podium.tasks.graders.text_graders import Exact, Normalised, Regex, SetOf

GRADERS: tuple[type[GraderSettings], ...] = (
    Exact,
    Normalised,
    Numeric,
    Math,
    Choice,
    Regex,
    SetOf,
    Json,
    Code,
    Judge,
)

if TYPE_CHECKING:
    AnyGrader = GraderSettings
else:
    AnyGrader = Annotated[
        GraderSettings, extensible_union(GRADERS, GraderSettings, group="podium.graders", tag="kind")
    ]
    """Any grader, as a TOML table gives it; the key `kind` says which."""
