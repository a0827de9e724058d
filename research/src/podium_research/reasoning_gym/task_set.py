"""Reasoning Gym as a task set: questions that generators make, graded by the generators' own verifiers."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import Any, ClassVar, Literal

from pydantic import Field

from podium.config import suggestion
from podium.errors import ConfigError
from podium.plugin_api.tasks import Grade, Task, TaskSetSpec, extract
from podium.tasks.graders.extraction import AnswerPlace
from podium.tasks.sets.base import LoadedSplit
from podium.tasks.task import SPLITS, named_uniform
from podium.types import Question
from podium_research.reasoning_gym.process_pool import (
    GeneratedSample,
    GeneratorConfig,
    ReasoningGymPool,
    SampleId,
    text_digest,
)

_PROMPT = (
    "{question}\n\nGive the answer alone, in the form that is asked for, between <answer> and </answer>."
)
_MAX_REPEATS = 100
"""After this many ids in a row without a new question of a split, the split counts as exhausted."""
_MAX_TIMEOUTS = 3
"""After this many ids in a row that take too long, no more questions are requested from the generator."""

_SLOW = "{name} of reasoning-gym takes too long to make; take a lower level."
_EXHAUSTED = "{name} of reasoning-gym has no more different questions; ask for fewer."


class ReasoningGym(TaskSetSpec):
    """Puzzles, algebra, logic, games and more, made on the spot by generators with verifiers.

    Source: the library `reasoning-gym` (Stojanovski et al. 2025, arXiv 2505.24760), Apache-2.0. Splits: train,
    validation and test, endless for most generators. Graded by the generator's own verifier
    (`ReasoningGymVerifier`). With the same version of the library, (generator, level, config, seed, number) always
    gives the same question. A hash of a question's text decides its split, so no two splits share a question. Left
    out are questions whose own verifier refuses the stored answer (a tenth of `intermediate_integration`, whose
    answers are integrals that the library could not solve; a few of `propositional_logic`), and programs of `codeio`
    that give another result each time. `boxnet` and `rush_hour` store no answer.
    """

    source: ClassVar[str] = "made on the spot by the library reasoning-gym"
    licence: ClassVar[str] = "Apache-2.0"
    is_disjoint: ClassVar[bool] = True
    set: Literal["reasoning-gym"] = "reasoning-gym"
    generators: Literal["all"] | tuple[str, ...] = "all"
    """The library's names of the generators, as in `["sudoku", "countdown"]`, or all."""
    level: int | None = Field(default=None, ge=0)
    """The level of each generator's curriculum, at most its highest. Without it, the library's default settings
    hold."""
    config: Mapping[str, Mapping[str, Any]] = Field(default_factory=dict)
    """Further settings by generator, as in `config.sudoku.min_empty = 40`; they replace those of the level."""
    size: int = Field(default=10, ge=1)
    """Questions of each generator in each split, or as many as it has: 100 generators take minutes for ten."""
    seed: int = 0

    @property
    def label(self) -> str:
        chosen = () if self.generators == "all" else self.generators
        names = (
            ("+".join(chosen),) if 1 <= len(chosen) <= 3 else (f"{len(chosen)}-generators",) if chosen else ()
        )
        return "-".join(("reasoning-gym", *names, *(() if self.level is None else (f"level-{self.level}",))))

    @property
    def source_splits(self) -> tuple[str, ...]:
        return SPLITS

    @cached_property
    def pool(self) -> ReasoningGymPool:
        """The processes that make questions and grade answers."""
        return ReasoningGymPool()

    def read_splits(self, splits: Collection[str]) -> Mapping[str, LoadedSplit]:
        configs = self._generator_configs(self.pool.names())
        with ThreadPoolExecutor(self.pool.concurrency) as threads:
            parts = list(threads.map(lambda config: self._draw_questions(config, splits), configs))
        return {
            split: LoadedSplit(
                tuple(task for part in parts for task in part[split].tasks),
                {reason: missing for part in parts for reason, missing in part[split].skipped.items()},
            )
            for split in splits
        }

    def _generator_configs(self, known: tuple[str, ...]) -> list[GeneratorConfig]:
        names = known if self.generators == "all" else tuple(dict.fromkeys(self.generators))
        for name in names:
            if name not in known:
                raise ConfigError(f"reasoning-gym has no generator {name!r}; {suggestion(name, known)}")
        for name in self.config:
            if name not in names:
                raise ConfigError(
                    f"config.{name} is for a generator that `generators` leaves out; {suggestion(name, names)}"
                )
        return [
            GeneratorConfig(
                generator=name,
                level=self.level,
                settings=json.dumps(self.config.get(name, {}), sort_keys=True),
            )
            for name in names
        ]

    def _draw_questions(self, config: GeneratorConfig, splits: Collection[str]) -> dict[str, LoadedSplit]:
        """The questions of one generator for some splits, each question once, by one sequence of ids."""
        tasks: dict[str, dict[str, Task]] = {split: {} for split in splits}
        misses = dict.fromkeys(splits, 0)
        slow, reason = 0, ""
        for number in count():
            open_splits = [
                split for split in splits if len(tasks[split]) < self.size and misses[split] < _MAX_REPEATS
            ]
            if not open_splits or reason:
                break
            sample_id = SampleId(config=config, seed=self.seed, number=number)
            reply = self.pool.make(sample_id)
            slow = slow + 1 if reply.timed_out else 0
            reason = _SLOW.format(name=config.name) if slow == _MAX_TIMEOUTS else reply.error
            misses.update((split, misses[split] + 1) for split in open_splits)
            if reply.sample is not None and reply.sample.valid:
                task = self._task(sample_id, reply.sample)
                split = _split_of(task.key)
                if split in open_splits and task.key not in tasks[split]:
                    tasks[split][task.key] = task
                    misses[split] = 0
        return {split: self._loaded_split(config, tuple(tasks[split].values()), reason) for split in splits}

    def _loaded_split(self, config: GeneratorConfig, tasks: tuple[Task, ...], reason: str) -> LoadedSplit:
        missing = self.size - len(tasks)
        if not missing:
            return LoadedSplit(tasks)
        reason = reason or _EXHAUSTED.format(name=config.name)
        if not tasks and self.generators != "all":
            raise ConfigError(reason)
        return LoadedSplit(tasks, {reason: missing})

    def _task(self, sample_id: SampleId, sample: GeneratedSample) -> Task:
        return Task(
            id=f"reasoning-gym/{sample_id.name}",
            question=Question(text=_PROMPT.format(question=sample.question)),
            gold=sample.gold,
            grader=ReasoningGymVerifier(self.pool, sample_id, text_digest(sample.question)),
            facts={
                "family": sample_id.config.generator,
                "category": sample.category,
                "difficulty": sample.difficulty,
            },
            # Signs count here: boards and formulas are made of them.
            key=" ".join(sample.question.casefold().split()),
        )


def _split_of(key: str) -> str:
    """The one split to which a question belongs, by its text."""
    uniform = named_uniform("reasoning-gym", key)
    return "train" if uniform < 0.5 else "validation" if uniform < 0.75 else "test"


@dataclass(frozen=True, slots=True)
class ReasoningGymVerifier:
    """1 when the generator's verifier gives the answer its whole score, else 0.

    `extraction` finds the answer. An answer of several lines must stand inside `<answer>...</answer>`.
    Partial scores of the library (for coming near, or for naming the right answer among others) count as 0. So does
    an answer that a rule refuses (`podium_research.reasoning_gym.answer_rules`), that the verifier cannot read, or that
    takes it more than a few processor seconds.
    """

    pool: ReasoningGymPool
    sample_id: SampleId
    text_digest: str
    """Digest of the question, so that another version of the library does not grade answers to another question."""
    answer: AnswerPlace = "final"
    """Where the answer stands in the response."""

    async def __call__(self, response: str, gold: str) -> Grade:
        """Grade a response. The gold answer is not used: the library knows which answers are right.

        Raises:
            GraderError: the process that verifies ended, or knows another question by this name.
        """
        answer = extract(response, self.answer)
        if answer is None:
            return Grade(0.0)
        return Grade(await self.pool.judge(self.sample_id, answer, self.text_digest), answer)
