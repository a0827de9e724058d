"""The program that runs reasoning-gym in a process of its own: it reads requests from its input and replies to each.

It makes the question that a request names, and says whether an answer to it is right. The kernel limits its time,
memory and files, whatever code it is in. It is no sandbox: what runs here is the library, with the programs that its
`codeio` ships; `answer_rules` lets no answer through that would be run as a program. `process_pool` starts it.
"""

from __future__ import annotations

import contextlib
import decimal
import json
import os
import random
import resource
import shutil
import sys
import time
from collections.abc import Callable
from copy import deepcopy
from dataclasses import fields
from functools import lru_cache
from multiprocessing import get_context
from typing import Any, TypeVar

from podium.config import suggestion
from podium.errors import ConfigError, GraderError
from podium.tasks.reasoning_gym.answer_rules import passes_rules
from podium.tasks.reasoning_gym.process_pool import (
    GeneratedSample,
    GeneratorConfig,
    ProcessReply,
    ProcessRequest,
    SampleId,
    text_digest,
)

T = TypeVar("T")

SECONDS_TO_MAKE = 30
"""Processor seconds for a question: rarely one takes ten, and a few would take for ever."""
SECONDS_TO_JUDGE = 3
"""Processor seconds for an answer: the slowest right ones, integrals, take a tenth of one."""
_MEMORY = 4 * 2**30
_FILE = 64 * 2**20


def limit_memory_and_files() -> None:
    """Limit memory and the size of files from now on, and leave no picture of the memory behind."""
    for limit, most in (
        (resource.RLIMIT_AS, _MEMORY),
        (resource.RLIMIT_FSIZE, _FILE),
        (resource.RLIMIT_CORE, 0),
    ):
        # Not every system knows every limit.
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(limit, (most, most))


def limit_cpu_seconds(seconds: int) -> None:
    """So many further processor seconds; then the process ends by SIGXCPU."""
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time()) + 1 + seconds, hard))


def run_in_fork(work: Callable[[], T], seconds: int) -> T:
    """Work that is done in a copy of this process, so that what it changes stays there.

    Raises:
        EOFError: the work failed, or took more than its processor seconds.
    """
    context = get_context("fork")
    ours, theirs = context.Pipe(duplex=False)

    def action() -> None:
        limit_cpu_seconds(seconds)
        theirs.send(work())

    copy = context.Process(target=action, daemon=True)
    copy.start()
    theirs.close()
    try:
        result: T = ours.recv()
        return result
    finally:
        copy.kill()
        copy.join()
        ours.close()


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


class GeneratorLibrary:
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

    def make(self, sample_id: SampleId) -> GeneratedSample:
        """The question of a draw.

        Raises:
            ConfigError: the generator does not take these settings.
        """
        dataset = self._dataset(sample_id)
        kind = {"category": dataset.category, "difficulty": self._difficulty(sample_id.generator_config)}
        try:
            entry = self._made(sample_id)
            valid = self._is_valid(sample_id, entry)
        # Whatever a generator fails with, it made no question; another draw is another chance.
        except Exception:
            return GeneratedSample(question="", gold="", valid=False, **kind)
        return GeneratedSample(
            question=str(entry["question"]),
            gold=_gold(sample_id.generator_config.generator, entry),
            valid=valid,
            **kind,
        )

    def prepare(self, sample_id: SampleId) -> None:
        """Have the question of a draw at hand, so that judging does not begin with making it."""
        self._made(sample_id)

    def judge(self, sample_id: SampleId, answer: str, of: str) -> float:
        """1 or 0 for an answer to the question of a draw.

        Args:
            of: the digest of the question that was answered.

        Raises:
            GraderError: the draw gives another question now.
        """
        entry = self._made(sample_id)
        if text_digest(str(entry["question"])) != of:
            raise GraderError(
                f"{sample_id.name} of reasoning-gym is another question than the one that was answered; "
                "grade with the version of the library that made it."
            )
        return self._score(sample_id, entry, answer)

    def _is_valid(self, sample_id: SampleId, entry: dict[str, Any]) -> bool:
        generator = sample_id.generator_config.generator
        if generator in WITHOUT_GOLD:
            return True
        if generator in _OF_PROGRAMS and not self._is_deterministic(sample_id, entry):
            return False
        gold = _gold(generator, entry)
        return bool(gold) and self._score(sample_id, entry, gold) == 1.0

    def _is_deterministic(self, sample_id: SampleId, entry: dict[str, Any]) -> bool:
        """Whether a program ran, and what it gave is no chance of its own and no reading of a clock."""
        again = self._make(sample_id, chance="again")
        said, repeated = ((each["question"], each["answer"]) for each in (entry, again))
        return bool(entry["metadata"]["input_data"]) and said == repeated

    def _score(self, sample_id: SampleId, entry: dict[str, Any], answer: str) -> float:
        generator = sample_id.generator_config.generator
        if len(answer) > max(_LONGEST, 2 * len(_gold(generator, entry))):
            return 0.0
        dataset = self._dataset(sample_id)
        _reset_global_state(sample_id.name)
        try:
            # A copy: some verifiers write into the question.
            admitted = passes_rules(generator, answer, deepcopy(entry))
            score = float(dataset.score_answer(answer, deepcopy(entry))) if admitted else 0.0
        # Verifiers read answers with parsers of all kinds; what none of them can read is not right.
        except Exception:
            return 0.0
        return float(score >= _NEAR.get(generator, _WHOLE))

    def _make(self, sample_id: SampleId, chance: str = "") -> dict[str, Any]:
        dataset = self._dataset(sample_id)

        def make() -> dict[str, Any]:
            _reset_global_state(f"{sample_id.name}/{chance}")
            entry: dict[str, Any] = dataset[sample_id.number % _BLOCK]
            return entry

        return (
            run_in_fork(make, SECONDS_TO_MAKE)
            if sample_id.generator_config.generator in _OF_PROGRAMS
            else make()
        )

    def _dataset(self, sample_id: SampleId) -> Any:
        opened = self._opened_last if sample_id.generator_config.generator in _OF_PROGRAMS else self._opened
        return opened(sample_id.generator_config, sample_id.seed, sample_id.number // _BLOCK)

    def _open(self, generator_config: GeneratorConfig, seed: int, block: int) -> Any:
        dataset_class, config_class = self._factory.DATASETS[generator_config.generator]
        own = json.loads(generator_config.config)
        known = [field.name for field in fields(config_class) if field.name not in _OWN]
        for key in sorted(own.keys() - set(known)):
            raise ConfigError(
                f"{generator_config.generator} of reasoning-gym has no setting {key!r}; {suggestion(key, known)}"
            )
        named = {"seed": _seed(f"{generator_config.name}/{seed}/{block}"), "size": _BLOCK}
        try:
            return dataset_class(config_class(**{**self._level_settings(generator_config), **own, **named}))
        # The library checks settings by assertions and by using them.
        except Exception as error:
            reason = str(error) or type(error).__name__
            raise ConfigError(
                f"reasoning-gym does not make {generator_config.name}: {reason}; take another level or setting."
            ) from error

    def _level_settings(self, generator_config: GeneratorConfig) -> dict[str, Any]:
        """Settings at a level of the curriculum, or at the highest that there is."""
        if generator_config.level is None or not self._factory.has_curriculum(generator_config.generator):
            return {}
        curriculum = self._factory.create_curriculum(generator_config.generator)
        curriculum.set_global_level(generator_config.level)
        made = curriculum.generate_configuration()
        return {field.name: getattr(made, field.name) for field in fields(made)}

    def _difficulty(self, generator_config: GeneratorConfig) -> str:
        if generator_config.level is None or not self._factory.has_curriculum(generator_config.generator):
            return "default"
        attributes = self._factory.create_curriculum(generator_config.generator).attributes.values()
        highest = max((len(attribute.levels) - 1 for attribute in attributes), default=0)
        return f"level {min(generator_config.level, highest)}"


def _reset_global_state(name: str) -> None:
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
    return int(text_digest(f"reasoning-gym/{name}")[:8], 16) >> 1


def main(folder: str) -> None:
    """Obey until the input ends.

    Args:
        folder: its own, where the library may leave what it likes.
    """
    orders = os.fdopen(os.dup(0), "r", encoding="utf-8")
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    _silence()
    limit_memory_and_files()
    library = GeneratorLibrary()
    for line in orders:
        replies.write(_serve(library, ProcessRequest.model_validate_json(line)).model_dump_json() + "\n")
        replies.flush()
    # Who started this process may be gone, and cannot.
    shutil.rmtree(folder, ignore_errors=True)


def _serve(library: GeneratorLibrary, request: ProcessRequest) -> ProcessReply:
    if request.sample_id is None:
        return ProcessReply(names=library.names)
    try:
        if request.action == "make":
            limit_cpu_seconds(SECONDS_TO_MAKE)
            return ProcessReply(sample=library.make(request.sample_id))
        # Apart and with patience: an answer is not charged for its question, which may have to be made again.
        limit_cpu_seconds(10 * SECONDS_TO_MAKE)
        library.prepare(request.sample_id)
        limit_cpu_seconds(SECONDS_TO_JUDGE)
        return ProcessReply(score=library.judge(request.sample_id, request.answer, request.text_digest))
    except (ConfigError, GraderError) as error:
        return ProcessReply(error=str(error))


def _silence() -> None:
    """Generators print; nothing of it may come between the replies."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)


if __name__ == "__main__":
    main(sys.argv[1])
