"""The library itself: makes the question that a draw names, and says whether an answer to it is right.

Runs in `child` alone. The library's settings are its own to check; its verdicts count where `strict` has nothing
against the answer.
"""

from __future__ import annotations

import decimal
import json
import random
from copy import deepcopy
from dataclasses import fields
from functools import lru_cache
from typing import Any

from podium.config import suggestion
from podium.errors import ConfigError, GraderError
from podium.tasks.gym.limits import SECONDS_TO_MAKE, apart
from podium.tasks.gym.order import Draw, Drawn, Variety, digest
from podium.tasks.gym.strict import admits

WITHOUT_GOLD = frozenset({"boxnet", "rush_hour"})
"""Generators that verify a solution by playing it and store none."""
_EXAMPLES = {
    "graph_color": "possible_answer",
    "propositional_logic": "example_answer",
    "rubiks_cube": "example_correct_answer",
}
"""Where a generator of which several answers are right keeps one."""
_OF_PROGRAMS = frozenset({"codeio"})
"""Generators that run programs, which change what they like in their process."""
_WHOLE = 1 - 1e-9
_NEAR = {"complex_arithmetic": 0.999, "polynomial_equations": 0.999}
"""What a right answer scores at least: less than all where the score falls with the distance from the exact number."""
_BLOCK = 64
"""Questions of one seed of the library's: to open some generators takes a third of a second."""
_OWN = ("seed", "size")
_LONGEST = 20_000
"""Characters of an answer that are looked at, unless the gold answer is half as long."""


class Library:
    """Everything that is asked of the library, with what was opened last kept open."""

    def __init__(self) -> None:
        from reasoning_gym import factory  # noqa: PLC0415 - an optional extra that takes two seconds

        self._factory = factory
        self._opened = lru_cache(maxsize=8)(self._open)
        # Their data is their class's, of the settings that were opened last.
        self._opened_last = lru_cache(maxsize=1)(self._open)
        self._made = lru_cache(maxsize=64)(self._make)

    @property
    def names(self) -> tuple[str, ...]:
        """The generators; `composite` is none, it mixes others."""
        return tuple(sorted(set(self._factory.DATASETS) - {"composite"}))

    def make(self, draw: Draw) -> Drawn:
        """The question of a draw.

        Raises:
            ConfigError: the generator does not take these settings.
        """
        dataset = self._dataset(draw)
        kind = {"category": dataset.category, "difficulty": self._difficulty(draw.variety)}
        try:
            entry = self._made(draw)
            sound = self._sound(draw, entry)
        # Whatever a generator fails with, it made no question; another draw is another chance.
        except Exception:
            return Drawn(question="", gold="", sound=False, **kind)
        return Drawn(
            question=str(entry["question"]), gold=_gold(draw.variety.generator, entry), sound=sound, **kind
        )

    def recall(self, draw: Draw) -> None:
        """Have the question of a draw at hand, so that judging does not begin with making it."""
        self._made(draw)

    def judge(self, draw: Draw, answer: str, of: str) -> float:
        """1 or 0 for an answer to the question of a draw.

        Args:
            of: the digest of the question that was answered.

        Raises:
            GraderError: the draw gives another question now.
        """
        entry = self._made(draw)
        if digest(str(entry["question"])) != of:
            raise GraderError(
                f"{draw.name} of reasoning-gym is another question than the one that was answered; "
                "grade with the version of the library that made it."
            )
        return self._score(draw, entry, answer)

    def _sound(self, draw: Draw, entry: dict[str, Any]) -> bool:
        generator = draw.variety.generator
        if generator in WITHOUT_GOLD:
            return True
        if generator in _OF_PROGRAMS and not self._certain(draw, entry):
            return False
        gold = _gold(generator, entry)
        return bool(gold) and self._score(draw, entry, gold) == 1.0

    def _certain(self, draw: Draw, entry: dict[str, Any]) -> bool:
        """Whether a program ran, and what it gave is no chance of its own and no reading of a clock."""
        again = self._make(draw, chance="again")
        said, repeated = ((each["question"], each["answer"]) for each in (entry, again))
        return bool(entry["metadata"]["input_data"]) and said == repeated

    def _score(self, draw: Draw, entry: dict[str, Any], answer: str) -> float:
        generator = draw.variety.generator
        if len(answer) > max(_LONGEST, 2 * len(_gold(generator, entry))):
            return 0.0
        dataset = self._dataset(draw)
        _begin_anew(draw.name)
        try:
            # A copy: some verifiers write into the question.
            admitted = admits(generator, answer, deepcopy(entry))
            score = float(dataset.score_answer(answer, deepcopy(entry))) if admitted else 0.0
        # Verifiers read answers with parsers of all kinds; what none of them can read is not right.
        except Exception:
            return 0.0
        return float(score >= _NEAR.get(generator, _WHOLE))

    def _make(self, draw: Draw, chance: str = "") -> dict[str, Any]:
        dataset = self._dataset(draw)

        def make() -> dict[str, Any]:
            _begin_anew(f"{draw.name}/{chance}")
            entry: dict[str, Any] = dataset[draw.number % _BLOCK]
            return entry

        return apart(make, SECONDS_TO_MAKE) if draw.variety.generator in _OF_PROGRAMS else make()

    def _dataset(self, draw: Draw) -> Any:
        opened = self._opened_last if draw.variety.generator in _OF_PROGRAMS else self._opened
        return opened(draw.variety, draw.seed, draw.number // _BLOCK)

    def _open(self, variety: Variety, seed: int, block: int) -> Any:
        dataset_class, config_class = self._factory.DATASETS[variety.generator]
        own = json.loads(variety.config)
        known = [field.name for field in fields(config_class) if field.name not in _OWN]
        for key in sorted(own.keys() - set(known)):
            raise ConfigError(
                f"{variety.generator} of reasoning-gym has no setting {key!r}; {suggestion(key, known)}"
            )
        named = {"seed": _seed(f"{variety.name}/{seed}/{block}"), "size": _BLOCK}
        try:
            return dataset_class(config_class(**{**self._of_level(variety), **own, **named}))
        # The library checks settings by assertions and by using them.
        except Exception as error:
            reason = str(error) or type(error).__name__
            raise ConfigError(
                f"reasoning-gym does not make {variety.name}: {reason}; take another level or setting."
            ) from error

    def _of_level(self, variety: Variety) -> dict[str, Any]:
        """Settings at a level of the curriculum, or at the highest that there is."""
        if variety.level is None or not self._factory.has_curriculum(variety.generator):
            return {}
        curriculum = self._factory.create_curriculum(variety.generator)
        curriculum.set_global_level(variety.level)
        made = curriculum.generate_configuration()
        return {field.name: getattr(made, field.name) for field in fields(made)}

    def _difficulty(self, variety: Variety) -> str:
        if variety.level is None or not self._factory.has_curriculum(variety.generator):
            return "default"
        attributes = self._factory.create_curriculum(variety.generator).attributes.values()
        highest = max((len(attribute.levels) - 1 for attribute in attributes), default=0)
        return f"level {min(variety.level, highest)}"


def _begin_anew(name: str) -> None:
    """What all of Python shares as it was, by name: generators draw from its chance, and set its decimal places."""
    import numpy as np  # noqa: PLC0415 - comes with the library

    random.seed(name)
    np.random.seed(_seed(name))
    decimal.setcontext(decimal.Context())


def _gold(generator: str, entry: dict[str, Any]) -> str:
    stored = entry["metadata"][_EXAMPLES[generator]] if generator in _EXAMPLES else entry["answer"]
    if stored is None:
        return ""
    return stored.strip() if isinstance(stored, str) else json.dumps(stored)


def _seed(name: str) -> int:
    """A seed that all of the library takes, by name: of 31 bits, for an index is added to it."""
    return int(digest(f"reasoning-gym/{name}")[:8], 16) >> 1
