"""Settings of `podium search`: of TRINITY's head, MASRouter's controller, and a constant plan.

All run plans over any pool and grade the answers. `heads`, `controllers` and `workflows` run them.
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from podium.config import Settings
from podium_research.planners.masrouter_controller import EPOCHS
from podium_research.planners.trinity_head import GENERATIONS


class SearchSettings(Settings):
    """What all have."""

    pool: str
    """A team file, or a shipped pool's name."""
    tasks: str
    """The task set, a task file (NAME.toml) or a table (NAME.csv, NAME.jsonl)."""
    split: str = "train"
    """Compare the result on another split."""
    questions: int = Field(default=400, ge=1)
    """The most questions of the split that are used."""
    early_stop: bool = False
    """Whether votes call no further worker once they are certain."""
    concurrency: int = Field(default=16, ge=1)
    """The most questions at once."""
    seed: int = Field(default=0, ge=0, lt=2**32)
    """Seeds all randomness."""


class HeadSearch(SearchSettings):
    """How TRINITY's head is trained. The defaults of the evolution are the paper's."""

    planner: ClassVar[str] = "trinity"
    found: ClassVar[str] = "head"
    unit: ClassVar[str] = "generation"
    scores: ClassVar[str] = "rewards"
    """What the run's folder calls the scores of a generation."""
    workers: tuple[str, ...] = ()
    """The workers among which the head chooses, by name. Empty: all of the pool that are no tools."""
    generations: int = Field(default=GENERATIONS, ge=1)
    population: int = Field(default=32, ge=2)
    """Heads of a generation."""
    replications: int = Field(default=16, ge=1)
    """Questions on which each head of a generation is tried; all heads have the same ones."""
    sigma: float = Field(default=0.03, gt=0)
    """The standard deviation of each weight in the first generation."""
    per_usd: float = Field(default=0.0, ge=0)
    """Reward lost for each dollar of a question. A right answer brings 1."""

    @property
    def most(self) -> int:
        """How many generations there are."""
        return self.generations


class ControllerSearch(SearchSettings):
    """How MASRouter's controller is trained."""

    planner: ClassVar[str] = "masrouter"
    found: ClassVar[str] = "controller"
    unit: ClassVar[str] = "epoch"
    scores: ClassVar[str] = "utilities"
    workers: tuple[str, ...] = ()
    """The workers that the controller may draw, by name. Empty: all of the pool that are no tools."""
    epochs: int = Field(default=EPOCHS, ge=1)
    """How often each question is answered."""
    per_usd: float = Field(default=0.0, ge=0)
    """Utility lost for each dollar of a question. A right answer brings 1."""

    @property
    def most(self) -> int:
        """How many epochs there are."""
        return self.epochs


class WorkflowSearch(SearchSettings):
    """How a worker searches for constant plans."""

    writer: str = ""
    """The worker of the pool that proposes workflows; it has to be a language model."""
    proposals: int = Field(default=20, ge=1)
    tried_on: int = Field(default=100, ge=1)
    """Questions on which each workflow is tried. If 100 or more are left over, the final choice is made on them."""
    questions: int = Field(default=200, ge=1)
    """The most questions of the split that are used."""
    max_steps: int = Field(default=5, ge=1)
    """The most steps of a workflow."""
    max_cost: float | None = Field(default=None, ge=0)
    """The most dollars that a question may cost. None sets no limit."""


AnySearch = HeadSearch | ControllerSearch | WorkflowSearch
"""The settings of one of the searches."""
