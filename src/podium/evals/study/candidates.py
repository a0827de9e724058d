"""Chooses few of many candidates that cover the user's questions, by the online knapsack of arXiv 2510.16499 (NeurIPS
2025).

The questions are grouped into kinds. Each candidate is asked some questions of each kind, the cheapest candidate first.
The value of a candidate is the sum of the weights of the kinds that it passed and that no chosen worker covers yet. It
is chosen if its value per dollar reaches a threshold, which rises with the share of the budget that chosen candidates
take.

Answers are kept, and limits, retries and budgets hold. A candidate that gives no answer is broken, and is asked nothing
more.
"""

from __future__ import annotations

import asyncio
import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from pathlib import Path

from podium.calls import CallState
from podium.config.toml import toml_text
from podium.errors import BudgetExceededError, UsageError
from podium.evals.question_table import QuestionTable, answer_table, failure_of
from podium.evals.rating import find_clusters
from podium.evals.study.study_inputs import StudyInputs
from podium.evals.study.team_files import TEAM, worker_tables
from podium.files.atomic import replace_file
from podium.tasks import Task
from podium.types import FrozenModel
from podium.workers.pool import pool_file
from podium.workers.ratings import ClusterWords, Ratings, Tally

UNSORTED = "unsorted"
"""The shown name of the kind without a name: questions that share no words with a cluster, or all if there are no
clusters."""
_KINDS = 6
"""The most kinds of questions, as in the published method."""
_HEADER = "# Written by podium study --preset compose.\n"
OUT_OF_BUDGET = "the budget ended before its tests did"
TESTS = 3
_PASSED = 0.5
"""A candidate passes a kind if it answers more than this share of its tests rightly."""


@dataclass(frozen=True)
class QuestionKinds:
    """The kinds of the user's questions, and the questions that test each."""

    clusters: ClusterWords
    tests: Mapping[str, tuple[Task, ...]]
    """The tests of each kind, by name. If all questions are of one kind, its name is empty."""
    weights: Mapping[str, float]
    """For each kind, by name, its number of questions divided by that of the smallest kind."""

    @classmethod
    def of(cls, tasks: Sequence[Task], most: int) -> QuestionKinds:
        """Find at most `most` kinds by the questions' wording. Each has about `TESTS` questions or more."""
        limit = min(most, max(1, len(tasks) // TESTS))
        clusters, members = _group_by_cluster(tasks, limit)
        if len(members) > limit:  # Questions that share no words with a cluster are one more kind.
            clusters, members = _group_by_cluster(tasks, limit - 1)
        smallest = min(map(len, members.values()))
        return cls(
            clusters,
            tests={kind: tuple(questions[:TESTS]) for kind, questions in members.items()},
            weights={kind: len(questions) / smallest for kind, questions in members.items()},
        )


def _group_by_cluster(tasks: Sequence[Task], count: int) -> tuple[ClusterWords, Mapping[str, list[Task]]]:
    clusters = find_clusters([task.question.text for task in tasks], count)
    ratings = Ratings(clusters=clusters, workers={})
    members: defaultdict[str, list[Task]] = defaultdict(list)
    for task in tasks:
        members[ratings.cluster_of(task.question.text)].append(task)
    return clusters, members


class Candidate(FrozenModel):
    """One candidate with the verdicts of its tests, and whether it was chosen."""

    worker: str
    tallies: dict[str, Tally]
    """For each kind, the right answers, tests and dollars of answers with a verdict, as if nothing had been cached."""
    unjudged_usd: float = 0.0
    """Dollars of answers without a verdict, as if nothing had been cached."""
    complete: bool = True
    """Whether the candidate has answered all tests. It has not if it is broken, or a budget refused a call."""
    chosen: bool = False
    reason: str = ""
    """Why the candidate was chosen or not, in half a sentence."""

    @property
    def passed(self) -> frozenset[str]:
        tallies = self.tallies.items()
        return frozenset(kind for kind, tally in tallies if tally.right > _PASSED * tally.questions)

    @property
    def answered(self) -> int:
        return sum(tally.questions for tally in self.tallies.values())

    @property
    def cost_usd(self) -> float:
        """Dollars of the candidate's answers, as if nothing had been cached."""
        return self.unjudged_usd + sum(tally.cost_usd for tally in self.tallies.values())


async def ask_candidates(
    table: QuestionTable,
    kinds: QuestionKinds,
    call_state: CallState,
    *,
    on_tested: Callable[[int, int], None] = lambda done, total: None,
) -> tuple[Candidate, ...]:
    """Test all workers of the table except tools. Returns the results, the cheapest candidate first, by the sum of its
    prices of input and output.

    After the budget has refused a call, kept answers still count, but no other call is made.

    Args:
        table: a table whose questions include the tests. Its concurrency is the number of candidates that are tested at
            once. Each is asked one question after another.
        on_tested: called with (candidates done, all candidates) after each candidate.
    """
    prices = {name: table.pool.named(name).profile.price for name in table.pool.answering}
    order = sorted(prices, key=lambda name: prices[name].input + prices[name].output)
    places, done = asyncio.Semaphore(table.concurrency), count(1)

    async def test(name: str) -> Candidate:
        async with places:
            candidate = await _test(name, table, kinds, call_state)
        on_tested(next(done), len(order))
        return candidate

    async with asyncio.TaskGroup() as group:
        tests = [group.create_task(test(name)) for name in order]
    return tuple(test.result() for test in tests)


async def _test(name: str, table: QuestionTable, kinds: QuestionKinds, call_state: CallState) -> Candidate:
    graded = {task.id: task for task in table.questions}
    tallies: dict[str, Tally] = {}
    unjudged_usd, reason = 0.0, ""
    for kind, test in ((kind, test) for kind, tests in kinds.tests.items() for test in tests):
        alone = table.with_questions([graded[test.id]]).alone(name)
        try:
            await answer_table([alone], call_state)
        except BudgetExceededError:
            reason = OUT_OF_BUDGET
            break
        answer = alone.kept_answers()[test.id, 0]
        if answer.trace.answer is None:
            reason = f"broken: {failure_of(answer.trace).removeprefix(f'{name}: ')}"
            break
        cost_usd = answer.trace.uncached_usd
        if answer.grade.failure is not None:
            unjudged_usd += cost_usd
            continue
        tally = Tally(right=float(answer.grade.correct), questions=1, cost_usd=cost_usd)
        tallies[kind] = tallies[kind] + tally if kind in tallies else tally
    return Candidate(
        worker=name, tallies=tallies, unjudged_usd=unjudged_usd, complete=not reason, reason=reason
    )


def value_threshold(share: float, lowest: float, highest: float) -> float:
    """Psi(z): the least value per dollar of a candidate when `share` of the budget is used up.

    Args:
        share: from 0 to 1.
        lowest, highest: bounds L and U of the value per dollar of any useful candidate, both above 0.
    """
    return math.exp(share * math.log(highest * math.e / lowest)) * lowest / math.e


def choose(
    tested: Sequence[Candidate], weights: Mapping[str, float], budget_usd: float, most: int | None = None
) -> tuple[Candidate, ...]:
    """Choose from candidates that answered all tests, the cheapest first. Returns all of them, in this order.

    Args:
        weights: the weight of each kind, at least 1.
        budget_usd: the budget. Each chosen candidate takes the cost of its tests from it.
        most: the most workers. None sets no limit.
    """
    costs = [candidate.cost_usd for candidate in tested if candidate.cost_usd > 0 and candidate.passed]
    lowest, highest = (1 / max(costs), sum(weights.values()) / min(costs)) if costs else (1.0, 1.0)
    covered: set[str] = set()
    used_usd, chosen, choices = 0.0, 0, []
    for candidate in sorted(tested, key=lambda candidate: (candidate.cost_usd, candidate.worker)):
        new = sorted(candidate.passed - covered, key=lambda kind: (-weights[kind], kind))
        value = sum(weights[kind] for kind in new)
        kinds = ", ".join(kind or UNSORTED for kind in new)
        needed = value_threshold(min(1.0, used_usd / budget_usd), lowest, highest) * candidate.cost_usd
        if not new:
            reason = "passed nothing" if not candidate.passed else "cheaper workers cover what it passed"
        elif most is not None and chosen == most:
            reason = f"the pool has its {most}"
        elif value < needed:
            reason = f"too dear for {kinds}: worth {value:.3g}, and {needed:.3g} are needed"
        else:
            covered |= candidate.passed
            used_usd += candidate.cost_usd
            chosen += 1
            choices.append(candidate.model_copy(update={"chosen": True, "reason": f"covers {kinds}"}))
            continue
        choices.append(candidate.model_copy(update={"reason": reason}))
    return tuple(choices)


class CandidateChoice(FrozenModel):
    """The results of all candidates, and the choice among them."""

    kinds: dict[str, int]
    """The number of tests of each kind. If all questions are of one kind, its name is empty."""
    candidates: tuple[Candidate, ...]
    chosen: tuple[str, ...]
    uncovered: tuple[str, ...]
    spent_usd: float
    complete: bool
    """Whether the budget reached all tests."""

    @classmethod
    def of(
        cls,
        kinds: QuestionKinds,
        asked: Sequence[Candidate],
        budget_usd: float,
        most: int | None,
        spent_usd: float,
    ) -> CandidateChoice:
        """Choose among the candidates that answered all tests."""
        tested = choose(
            [candidate for candidate in asked if candidate.complete], kinds.weights, budget_usd, most
        )
        outcomes = {candidate.worker: candidate for candidate in (*asked, *tested)}
        covered = {kind for candidate in tested if candidate.chosen for kind in candidate.passed}
        return cls(
            kinds={kind: len(tests) for kind, tests in kinds.tests.items()},
            candidates=tuple(outcomes.values()),
            chosen=tuple(candidate.worker for candidate in tested if candidate.chosen),
            uncovered=tuple(kind for kind in kinds.tests if kind not in covered),
            spent_usd=spent_usd,
            complete=not any(candidate.reason == OUT_OF_BUDGET for candidate in asked),
        )


@dataclass(frozen=True)
class CompositionRun(StudyInputs):
    """Tests the candidates of a team on questions, and writes a team of few workers that cover the questions."""

    workers: int | None = None
    """The most workers of the team. Default: as many as the kinds of questions need."""

    @property
    def file(self) -> Path:
        return self.run / f"{TEAM}.toml"

    @cached_property
    def kinds(self) -> QuestionKinds:
        return QuestionKinds.of(self.questions.tasks, _KINDS)

    @property
    def budget_usd(self) -> float:
        """The dollars that the study may spend. `check` has to pass first."""
        return self.team.budget.run_usd or 0.0

    def check(self) -> None:
        """Check the team, the questions and the settings before anything is paid.

        Raises:
            UsageError: a team cannot be composed from them.
        """
        budget_usd, judge, file = self.team.budget.run_usd, self.settings.judge, self.file
        if budget_usd is None:
            raise UsageError(
                "--preset compose pays for tests; say with --run-budget-usd how much it may spend."
            )
        if not 0 < budget_usd < float("inf"):
            raise UsageError(f"--run-budget-usd {budget_usd:g}: give dollars above 0.")
        if not self.pool.answering:
            raise UsageError(
                f"{self.team.workers_file} has only tools; give candidates that answer questions."
            )
        if file.exists() and not file.read_bytes().startswith(_HEADER.encode()):
            raise UsageError(f"{file} exists, and no study composed it; give another --run.")
        if file.resolve() == pool_file(self.team.workers_file).resolve():
            raise UsageError(f"{file} is the file of the candidates; give another --run.")
        if judge is not None:
            self.pool.named(judge)
        elif self.questions.judged_by == "agreement":
            raise UsageError(
                f"{self.questions.name} has no column answer; add one, or name the candidate that judges answers with "
                "--judge."
            )

    async def measure(
        self, on_tested: Callable[[int, int], None] = lambda done, total: None
    ) -> CandidateChoice:
        """Test the candidates, the cheapest first, choose, and write the team. The workers are closed at the end."""
        kinds = self.kinds
        try:
            with self.open_call_state() as (call_state, questions):
                table = questions.table(self.run, self.team, self.pool, self.settings.concurrency)
                asked = await ask_candidates(table, kinds, call_state, on_tested=on_tested)
                spent_usd = call_state.run_spent_usd
                assert spent_usd is not None  # A run with a budget counts its dollars.
        finally:
            await self.pool.close()
        composed = CandidateChoice.of(kinds, asked, self.budget_usd, self.workers, spent_usd)
        if composed.chosen:
            tallies = {each.worker: each.tallies for each in asked if each.worker in composed.chosen}
            ratings = Ratings(clusters=kinds.clusters, workers=tallies)
            kept = [*composed.chosen, *self.pool.tools]
            tables = worker_tables(self.file, self.pool, ratings, kept=kept)
            replace_file(self.file, (_HEADER + toml_text(tables)).encode())
        return composed
