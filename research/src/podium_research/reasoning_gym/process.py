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
from podium_research.reasoning_gym.answer_rules import passes_rules
from podium_research.reasoning_gym.process_pool import (
    GeneratedSample,
    GeneratorConfig,
    ProcessReply,
    ProcessRequest,
    SampleId,
    text_digest,
)

T = TypeVar("T")

SECONDS_TO_MAKE = 30
"""Processor seconds to make a question. Hardly any takes ten; a few would never end."""
SECONDS_TO_JUDGE = 3
"""Processor seconds to grade an answer: the slowest right ones, integrals, take 0.1 s."""
_MEMORY = 4 * 2**30
_FILE = 64 * 2**20


WITHOUT_GOLD = frozenset({"boxnet", "rush_hour"})
"""Generators that verify a solution by playing it and store none."""
_EXAMPLES = {
    "graph_color": "possible_answer",
    "propositional_logic": "example_answer",
    "rubiks_cube": "example_correct_answer",
}
"""The metadata key of one right answer, for generators that accept several."""
_OF_PROGRAMS = frozenset({"codeio"})
"""Generators that run programs, which may change anything in their process."""
_WHOLE = 1 - 1e-9
_NEAR = {"complex_arithmetic": 0.999, "polynomial_equations": 0.999}
"""The least score of a right answer: below 1 where the score falls with the distance from the exact number."""
_BLOCK = 64
"""How many questions share one seed of the library, because opening some generators takes 0.3 s."""
_RESERVED = ("seed", "size")
_LONGEST = 20_000
"""Characters of an answer at most, unless the gold answer is more than half as long."""


def limit_memory_and_files() -> None:
    """Limit memory and the size of files from now on, and write no core dump."""
    for limit, most in (
        (resource.RLIMIT_AS, _MEMORY),
        (resource.RLIMIT_FSIZE, _FILE),
        (resource.RLIMIT_CORE, 0),
    ):
        # Some systems lack some of these limits.
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(limit, (most, most))


def limit_cpu_seconds(seconds: int) -> None:
    """Allow this many more processor seconds; then the kernel ends the process with SIGXCPU."""
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time()) + 1 + seconds, hard))


def run_in_fork(work: Callable[[], T], seconds: int) -> T:
    """Do work in a fork of this process, so that what it changes stays there.

    Raises:
        EOFError: the work failed, or used up its processor seconds.
    """
    context = get_context("fork")
    ours, theirs = context.Pipe(duplex=False)

    def send_result() -> None:
        limit_cpu_seconds(seconds)
        theirs.send(work())

    copy = context.Process(target=send_result, daemon=True)
    copy.start()
    theirs.close()
    try:
        result: T = ours.recv()
        return result
    finally:
        copy.kill()
        copy.join()
        ours.close()


class GeneratorLibrary:
    """Makes questions and grades answers with the library; keeps the generators that were used last."""

    def __init__(self) -> None:
        from reasoning_gym import factory  # noqa: PLC0415 - an optional extra that takes two seconds

        self._factory = factory
        self._open_cached = lru_cache(maxsize=8)(self._open)
        # Generators of programs keep data on their class, so only the settings opened last are usable.
        self._open_last = lru_cache(maxsize=1)(self._open)
        self._make_cached = lru_cache(maxsize=64)(self._make)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the generators, without `composite`, which mixes others."""
        return tuple(sorted(set(self._factory.DATASETS) - {"composite"}))

    def make(self, sample_id: SampleId) -> GeneratedSample:
        """Make a question.

        Raises:
            ConfigError: the generator does not take these settings.
        """
        dataset = self._dataset(sample_id)
        kind = {"category": dataset.category, "difficulty": self._difficulty(sample_id.config)}
        try:
            entry = self._make_cached(sample_id)
            valid = self._is_valid(sample_id, entry)
        # A generator may raise anything; the caller tries the next id.
        except Exception:
            return GeneratedSample(question="", gold="", valid=False, **kind)
        return GeneratedSample(
            question=str(entry["question"]),
            gold=_gold(sample_id.config.generator, entry),
            valid=valid,
            **kind,
        )

    def prepare(self, sample_id: SampleId) -> None:
        """Make the question of an id and keep it, so that the time of grading does not include making it."""
        self._make_cached(sample_id)

    def judge(self, sample_id: SampleId, answer: str, of: str) -> float:
        """Grade an answer to a question: 1 or 0.

        Args:
            of: the digest of the question that was answered.

        Raises:
            GraderError: the id gives another question now.
        """
        entry = self._make_cached(sample_id)
        if text_digest(str(entry["question"])) != of:
            raise GraderError(
                f"{sample_id.name} of reasoning-gym is another question than the one that was answered; "
                "grade with the version of the library that made it."
            )
        return self._score(sample_id, entry, answer)

    def _is_valid(self, sample_id: SampleId, entry: dict[str, Any]) -> bool:
        generator = sample_id.config.generator
        if generator in WITHOUT_GOLD:
            return True
        if generator in _OF_PROGRAMS and not self._is_deterministic(sample_id, entry):
            return False
        gold = _gold(generator, entry)
        return bool(gold) and self._score(sample_id, entry, gold) == 1.0

    def _is_deterministic(self, sample_id: SampleId, entry: dict[str, Any]) -> bool:
        """Whether a program ran, and prints the same in a second run: it uses no random numbers and no clock."""
        again = self._make(sample_id, chance="again")
        first, repeated = ((sample["question"], sample["answer"]) for sample in (entry, again))
        return bool(entry["metadata"]["input_data"]) and first == repeated

    def _score(self, sample_id: SampleId, entry: dict[str, Any], answer: str) -> float:
        generator = sample_id.config.generator
        if len(answer) > max(_LONGEST, 2 * len(_gold(generator, entry))):
            return 0.0
        dataset = self._dataset(sample_id)
        _reset_global_state(sample_id.name)
        try:
            # A copy, since some verifiers change the entry.
            admitted = passes_rules(generator, answer, deepcopy(entry))
            score = float(dataset.score_answer(answer, deepcopy(entry))) if admitted else 0.0
        # Verifiers parse answers and may raise anything; an answer that cannot be parsed is wrong.
        except Exception:
            return 0.0
        return float(score >= _NEAR.get(generator, _WHOLE))

    def _make(self, sample_id: SampleId, chance: str = "") -> dict[str, Any]:
        dataset = self._dataset(sample_id)

        def make() -> dict[str, Any]:
            _reset_global_state(f"{sample_id.name}/{chance}")
            entry: dict[str, Any] = dataset[sample_id.number % _BLOCK]
            return entry

        return run_in_fork(make, SECONDS_TO_MAKE) if sample_id.config.generator in _OF_PROGRAMS else make()

    def _dataset(self, sample_id: SampleId) -> Any:
        open_dataset = self._open_last if sample_id.config.generator in _OF_PROGRAMS else self._open_cached
        return open_dataset(sample_id.config, sample_id.seed, sample_id.number // _BLOCK)

    def _open(self, config: GeneratorConfig, seed: int, block: int) -> Any:
        dataset_class, config_class = self._factory.DATASETS[config.generator]
        settings = json.loads(config.settings)
        known = [field.name for field in fields(config_class) if field.name not in _RESERVED]
        for key in sorted(settings.keys() - set(known)):
            raise ConfigError(
                f"{config.generator} of reasoning-gym has no setting {key!r}; {suggestion(key, known)}"
            )
        reserved = {"seed": _seed(f"{config.name}/{seed}/{block}"), "size": _BLOCK}
        try:
            return dataset_class(config_class(**{**self._level_settings(config), **settings, **reserved}))
        # The library checks settings with assertions, or fails when it uses them.
        except Exception as error:
            reason = str(error) or type(error).__name__
            raise ConfigError(
                f"reasoning-gym does not make {config.name}: {reason}; take another level or setting."
            ) from error

    def _level_settings(self, config: GeneratorConfig) -> dict[str, Any]:
        """Settings at the level of the curriculum, or at its highest level if it has fewer."""
        if config.level is None or not self._factory.has_curriculum(config.generator):
            return {}
        curriculum = self._factory.create_curriculum(config.generator)
        curriculum.set_global_level(config.level)
        configuration = curriculum.generate_configuration()
        return {field.name: getattr(configuration, field.name) for field in fields(configuration)}

    def _difficulty(self, config: GeneratorConfig) -> str:
        if config.level is None or not self._factory.has_curriculum(config.generator):
            return "default"
        attributes = self._factory.create_curriculum(config.generator).attributes.values()
        highest = max((len(attribute.levels) - 1 for attribute in attributes), default=0)
        return f"level {min(config.level, highest)}"


def _reset_global_state(name: str) -> None:
    """Seed the global random generators by name and reset decimals: generators of questions use and change them."""
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
    """A seed for the library, by name: 31 bits, because the library adds an index to it."""
    return int(text_digest(f"reasoning-gym/{name}")[:8], 16) >> 1


def main(folder: str) -> None:
    """Serve requests until the input ends.

    Args:
        folder: the process's own folder, where the library may write; removed at the end.
    """
    requests = os.fdopen(os.dup(0), "r", encoding="utf-8")
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    _silence()
    limit_memory_and_files()
    library = GeneratorLibrary()
    for line in requests:
        replies.write(_serve(library, ProcessRequest.model_validate_json(line)).model_dump_json() + "\n")
        replies.flush()
    # The process that made the folder may be dead, and then cannot remove it.
    shutil.rmtree(folder, ignore_errors=True)


def _serve(library: GeneratorLibrary, request: ProcessRequest) -> ProcessReply:
    if request.sample_id is None:
        return ProcessReply(names=library.names)
    try:
        if request.action == "make":
            limit_cpu_seconds(SECONDS_TO_MAKE)
            return ProcessReply(sample=library.make(request.sample_id))
        # The question may have to be made again; that time does not count as time of grading.
        limit_cpu_seconds(10 * SECONDS_TO_MAKE)
        library.prepare(request.sample_id)
        limit_cpu_seconds(SECONDS_TO_JUDGE)
        return ProcessReply(score=library.judge(request.sample_id, request.answer, request.text_digest))
    except (ConfigError, GraderError) as error:
        return ProcessReply(error=str(error))


def _silence() -> None:
    """Redirect the standard streams: generators print, and nothing of it may come between the replies."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)


if __name__ == "__main__":
    main(sys.argv[1])
