"""Reasoning Gym: puzzles, algebra, logic, games and more, made on the spot by generators with verifiers.

Source: the library `reasoning-gym` (Stojanovski et al. 2025, arXiv 2505.24760), Apache-2.0. Splits: train, validation
and test, endless for most generators. Graded by the generator's own verifier (`tasks.graders.reasoning_gym`).
One (generator, level, config, seed, number) gives one question for ever, by one version of the library. A question
belongs to the split that its text says, whatever its name, so no two splits share one. Left out are questions whose
stored answer their own verifier refuses (of `intermediate_integration` a tenth, left as integrals; of
`propositional_logic` a few) and programs of `codeio` that give something else each time. `boxnet` and `rush_hour`
store no answer.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from itertools import count
from typing import Any, ClassVar, Literal

from pydantic import Field

from podium.config import suggestion
from podium.errors import ConfigError
from podium.lab import chance
from podium.tasks.graders.reasoning_gym import ReasoningGymVerifier
from podium.tasks.gym import Draw, Drawn, Variety, Workshop, digest
from podium.tasks.sets.base import Reading, RowTask, SetSpec
from podium.tasks.sets.splits import ORDER
from podium.types import Question

_PROMPT = (
    "{question}\n\nGive the answer alone, in the form that is asked for, between <answer> and </answer>."
)
_PATIENCE = 100
"""Draws in a row without a new question of a split, after which it has no more."""
_TRIES = 3
"""Draws in a row that take too long, after which all do."""

_SLOW = "{name} of reasoning-gym takes too long to make; take a lower level."
_EXHAUSTED = "{name} of reasoning-gym has no more different questions; ask for fewer."


class ReasoningGym(SetSpec):
    """The settings of the set."""

    source: ClassVar[str] = "made on the spot by the library reasoning-gym"
    licence: ClassVar[str] = "Apache-2.0"
    set: Literal["reasoning-gym"] = "reasoning-gym"
    generators: Literal["all"] | tuple[str, ...] = "all"
    """By the library's names, as in `["sudoku", "countdown"]`."""
    level: int | None = Field(default=None, ge=0)
    """Of each generator's curriculum, at most its highest; None: the settings that the library begins with."""
    config: Mapping[str, Mapping[str, Any]] = Field(default_factory=dict)
    """Further settings by generator, as in `config.sudoku.min_empty = 40`; they come before the level's."""
    size: int = Field(default=10, ge=1)
    """Questions of each generator in each split, or as many as it has: 100 generators take minutes for ten."""
    seed: int = 0

    @property
    def label(self) -> str:
        asked = () if self.generators == "all" else self.generators
        names = ("+".join(asked),) if 1 <= len(asked) <= 3 else (f"{len(asked)}-generators",) if asked else ()
        return "-".join(("reasoning-gym", *names, *(() if self.level is None else (f"level-{self.level}",))))

    @property
    def splits(self) -> tuple[str, ...]:
        return ORDER

    @cached_property
    def workshop(self) -> Workshop:
        """Where questions are made and answers judged."""
        return Workshop()

    def read(self, split: str) -> Reading:
        return self.readings((split,))[split]

    def readings(self, splits: Collection[str]) -> Mapping[str, Reading]:
        varieties = self._varieties(self.workshop.names())
        with ThreadPoolExecutor(self.workshop.places) as threads:
            parts = list(threads.map(lambda variety: self._gather(variety, splits), varieties))
        return {
            split: Reading(
                tuple(task for part in parts for task in part[split].tasks),
                {reason: missing for part in parts for reason, missing in part[split].skipped.items()},
            )
            for split in splits
        }

    def _varieties(self, known: tuple[str, ...]) -> list[Variety]:
        names = known if self.generators == "all" else tuple(dict.fromkeys(self.generators))
        for name in names:
            if name not in known:
                raise ConfigError(f"reasoning-gym has no generator {name!r}; {suggestion(name, known)}")
        for name in self.config:
            if name not in names:
                raise ConfigError(
                    f"config.{name} is for a generator that is not asked; {suggestion(name, names)}"
                )
        return [
            Variety(
                generator=name,
                level=self.level,
                config=json.dumps(self.config.get(name, {}), sort_keys=True),
            )
            for name in names
        ]

    def _gather(self, variety: Variety, splits: Collection[str]) -> dict[str, Reading]:
        """Of one generator the questions of some splits, each question once, from one sequence of draws."""
        tasks: dict[str, dict[str, RowTask]] = {split: {} for split in splits}
        vain = dict.fromkeys(splits, 0)
        slow, reason = 0, ""
        for number in count():
            wanted = [split for split in splits if len(tasks[split]) < self.size and vain[split] < _PATIENCE]
            if not wanted or reason:
                break
            draw = Draw(variety=variety, seed=self.seed, number=number)
            reply = self.workshop.make(draw)
            slow = slow + 1 if reply.spent else 0
            reason = _SLOW.format(name=variety.name) if slow == _TRIES else reply.refusal
            vain.update((split, vain[split] + 1) for split in wanted)
            if reply.drawn is not None and reply.drawn.sound:
                task = self._task(draw, reply.drawn)
                split = _split_of(task.folded)
                if split in wanted and task.folded not in tasks[split]:
                    tasks[split][task.folded] = task
                    vain[split] = 0
        return {split: self._reading(variety, tuple(tasks[split].values()), reason) for split in splits}

    def _reading(self, variety: Variety, tasks: tuple[RowTask, ...], reason: str) -> Reading:
        missing = self.size - len(tasks)
        if not missing:
            return Reading(tasks)
        reason = reason or _EXHAUSTED.format(name=variety.name)
        if not tasks and self.generators != "all":
            raise ConfigError(reason)
        return Reading(tasks, {reason: missing})

    def _task(self, draw: Draw, drawn: Drawn) -> RowTask:
        return RowTask(
            id=f"reasoning-gym/{draw.name}",
            question=Question(text=_PROMPT.format(question=drawn.question)),
            gold=drawn.gold,
            grader=ReasoningGymVerifier(self.workshop, draw, digest(drawn.question)),
            facts={
                "family": draw.variety.generator,
                "category": drawn.category,
                "difficulty": drawn.difficulty,
            },
            # Signs stay: a board or a formula is made of them.
            folded=" ".join(drawn.question.casefold().split()),
        )


def _split_of(folded: str) -> str:
    """The one split in which a question may be asked."""
    place = chance("reasoning-gym", folded)
    return "train" if place < 0.5 else "validation" if place < 0.75 else "test"
