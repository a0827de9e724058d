"""The scored answers from which a planner learns, of the workers that it may choose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from podium.errors import ConfigError
from podium.planners.answer_matrix import ARRAYS, AnswerMatrix, Floats, Members


def answers_of_workers(answers: AnswerMatrix, names: Sequence[str], planner: str) -> AnswerMatrix:
    """The answers of the workers among `names`; `ConfigError`, which names the planner, if there are none."""
    columns = [w for w, worker in enumerate(answers.workers) if worker in names]
    if not columns or not answers.texts:
        raise ConfigError(
            f"The planner {planner!r} learns from answers of the pool's workers, and there are none; "
            "give training questions that they answered."
        )
    if len(columns) == len(answers.workers):
        return answers
    return answers.cached(("workers", *columns), lambda: _select_workers(answers, columns))


def _select_workers(answers: AnswerMatrix, columns: list[int]) -> AnswerMatrix:
    price_of, own_QW = answers.price_of, answers.own_samples_QW

    def price_of_these(members: Members) -> Floats:
        assert price_of is not None
        return price_of(tuple(columns[member] for member in members))[:, columns]

    return replace(
        answers,
        **{name: getattr(answers, name)[:, columns] for name in ARRAYS},
        own_samples_QW=None if own_QW is None else own_QW[:, columns],
        workers=tuple(answers.workers[w] for w in columns),
        own_samples=tuple(answers.own_samples[w] for w in columns) if answers.own_samples else (),
        price_of=price_of and price_of_these,
    )


def fewest_samples(answers: AnswerMatrix) -> int:
    """How many responses every worker has to a question."""
    return min(map(answers.samples_of, range(len(answers.workers))))
