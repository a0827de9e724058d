"""Answers on disk. Each planner, with its settings and seed, has a file of JSON lines: one for each graded answer.

Lines are only added. A line that a killed process left incomplete is cut off before the next line is written.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from podium.calls import CallState
from podium.errors import RunMismatchError, StoreError
from podium.evals.evaluation import is_missing
from podium.evals.fingerprints import digest
from podium.planners.answer_matrix import AnswerMatrix, MeasuredAnswer
from podium.rollout import Rollout
from podium.rollout.run_folder import cut_torn_line
from podium.workers.vote import voted_answer

RESULTS = "results"


def answers_key(name: str, described: Any) -> str:
    """The name of a file of answers: the name of who answers, and a digest of everything on which the answers
    depend."""
    written = "".join(c if c.isalnum() or c in "-." else "_" for c in name)[:80]
    return f"{written}-{digest(described)}"


OnAnswer = Callable[[str, Rollout], None]
"""Called with (label of the row, answer) for each new answer."""
ShowProgress = Callable[[str, int, int], None]
"""Called with (what is done, how many, of how many)."""


class AnswerFiles:
    """The answers of the run in a folder."""

    def __init__(self, run: Path, on_answer: OnAnswer = lambda label, answer: None) -> None:
        self.folder = run / RESULTS
        self._on_answer = on_answer
        self._begun: set[str] = set()

    def add(self, key: str, label: str, answer: Rollout) -> None:
        """Write an answer before returning. It survives the end of this process, but not a crash of the machine.

        Raises:
            StoreError: the disk is full or not writable.
        """
        path = self._path(key)
        try:
            if key not in self._begun:
                self.folder.mkdir(parents=True, exist_ok=True)
                if path.is_file():
                    cut_torn_line(path)
                self._begun.add(key)
            with path.open("ab") as file:
                file.write(answer.to_json_line().encode() + b"\n")
        except OSError as error:
            raise StoreError.of_file(path, error) from None
        self._on_answer(label, answer)

    def lines(self, key: str) -> tuple[str, ...]:
        """The complete lines of a file. There are none if the file does not exist."""
        path = self._path(key)
        return tuple(path.read_text(encoding="utf-8").split("\n")[:-1]) if path.is_file() else ()

    def answers(self, key: str) -> Mapping[tuple[str, int], Rollout]:
        """The answers of a file by task and sample. They are sorted, so that the order of the lines does not count.

        Raises:
            RunMismatchError: a line is damaged.
        """
        answers = {}
        for number, line in enumerate(self.lines(key), 1):
            try:
                answer = Rollout.model_validate_json(line)
            except ValidationError:
                raise RunMismatchError(
                    f"{self._path(key)}, line {number}: this is no graded answer; restore the file, or delete it to "
                    "have its questions answered again."
                ) from None
            answers[answer.task, answer.sample] = answer
        return dict(sorted(answers.items()))

    def unfinished(self, key: str, answers: int) -> int:
        """How many answers or verdicts a file lacks. A grader that failed gave no verdict.

        Args:
            answers: how many answers the complete file has.
        """
        lines = self.lines(key)
        if not _names_a_failure(lines):
            return max(0, answers - len(lines))
        # An answer that was graded again has two lines.
        found = self.answers(key).values()
        return max(0, answers - len(found)) + sum(map(is_missing, found))

    def without_verdict(self, keys: Iterable[str]) -> frozenset[str]:
        """The ids of the tasks to which an answer in any of these files has no verdict.

        Raises:
            RunMismatchError: a line is damaged.
        """
        return frozenset(
            task
            for key in keys
            if _names_a_failure(self.lines(key))
            for (task, _), answer in self.answers(key).items()
            if answer.grade.failure is not None
        )

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}.jsonl"


def _names_a_failure(lines: Iterable[str]) -> bool:
    """Whether a verdict of these lines may be missing. Looking for it is faster than reading answers."""
    return any('"failure":' in line for line in lines)


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """Pause the garbage collector. Answers have no cycles, and the collector took longer than reading the answers."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def answer_matrix(answers_of: Mapping[str, Sequence[Sequence[Rollout]]]) -> AnswerMatrix:
    """The answers of each worker, by name, as a matrix. Each worker has one or more answers to each question, in the
    same order of questions."""
    measured = {
        name: [
            [
                MeasuredAnswer(
                    voted_answer(answer.trace.answer), float(answer.grade.correct), answer.trace.uncached_usd
                )
                for answer in answers
            ]
            for answers in row
        ]
        for name, row in answers_of.items()
    }
    first = next(iter(answers_of.values()))
    return AnswerMatrix.of([answers[0].trace.question.text for answers in first], measured)


def accuracy_so_far(show: ShowProgress, left: int, call_state: CallState | None = None) -> OnAnswer:
    """A listener that shows, after each of the `left` answers, the row, its accuracy so far and all dollars so far.

    Args:
        call_state: counts the paid dollars of the run, including judging. If it counts none, the dollars are those of
            the answers, as if nothing had been cached.
    """
    graded: dict[str, list[bool]] = {}
    count, dollars = 0, 0.0
    show("Asking", 0, left)

    def on_answer(label: str, answer: Rollout) -> None:
        nonlocal count, dollars
        count += 1
        dollars += answer.trace.uncached_usd
        verdicts = graded.setdefault(label, [])
        if answer.grade.failure is None:
            verdicts.append(answer.grade.correct)
        paid = None if call_state is None else call_state.run_spent_usd
        right = f"{sum(verdicts) / len(verdicts):.1%} right, " if verdicts else ""
        show(f"{label}: {right}${dollars if paid is None else paid:.4f} so far", count, left)

    return on_answer
