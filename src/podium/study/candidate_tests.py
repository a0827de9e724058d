"""Tests the candidates for a pool: groups the user's questions into kinds, and asks each candidate some of each kind.

Every call goes through the executor, so limits, retries, the response cache and budgets hold as everywhere. A candidate
that gives no answer is broken, and is asked nothing more. `composition` chooses from the results.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from podium.errors import BudgetError
from podium.executor import Dispatcher
from podium.planners import Single
from podium.ratings.rating import find_clusters
from podium.ratings.recorder import failure_of
from podium.rollout.rollout import roll
from podium.study.composition import Candidate
from podium.tasks import Task
from podium.team import Runner
from podium.workers.pool import Pool, is_tool
from podium.workers.ratings import ClusterWords, Ratings, Tally

TESTS = 3
"""The most tests of a kind."""
_PASSED = 0.5
"""A candidate passes a kind if it answers more than this share of its tests rightly."""


@dataclass(frozen=True)
class Kinds:
    """The kinds of the user's questions, and the questions that test each."""

    clusters: ClusterWords
    tests: Mapping[str, tuple[Task, ...]]
    """Name of a kind -> its tests. Where all questions are of one kind, its name is empty."""
    weights: Mapping[str, float]
    """Name of a kind -> how many times as many questions it has as the smallest kind."""

    @classmethod
    def of(cls, tasks: Sequence[Task], most: int) -> Kinds:
        """Find at most `most` kinds by the questions' wording. Each has about `TESTS` questions or more."""
        limit = min(most, max(1, len(tasks) // TESTS))
        clusters, members = _sorted(tasks, limit)
        if len(members) > limit:  # Questions that no cluster has words of are one more kind.
            clusters, members = _sorted(tasks, limit - 1)
        smallest = min(map(len, members.values()))
        return cls(
            clusters,
            tests={kind: tuple(found[:TESTS]) for kind, found in members.items()},
            weights={kind: len(found) / smallest for kind, found in members.items()},
        )

    def graded_by(self, tasks: Sequence[Task]) -> Kinds:
        """The same kinds; each test has the grader that it has among `tasks`."""
        known = {task.id: task for task in tasks}
        tests = {kind: tuple(known[task.id] for task in own) for kind, own in self.tests.items()}
        return replace(self, tests=tests)


def _sorted(tasks: Sequence[Task], count: int) -> tuple[ClusterWords, Mapping[str, list[Task]]]:
    """At most `count` clusters, and the tasks of each; those of no cluster have an empty name."""
    clusters = find_clusters([task.question.text for task in tasks], count)
    ratings = Ratings(clusters=clusters, workers={})
    members: defaultdict[str, list[Task]] = defaultdict(list)
    for task in tasks:
        members[ratings.cluster_of(task.question.text)].append(task)
    return clusters, members


@dataclass(frozen=True)
class CandidateAnswers:
    """One candidate with the verdicts of its tests."""

    worker: str
    tallies: Mapping[str, Tally]
    """Kind -> right answers, tests and dollars, as if nothing had been cached."""
    failure: str | None = None
    """Why it gave no answer; then it is broken."""
    refusal: str | None = None
    """The sentence of the budget that refused one of its calls."""

    @property
    def complete(self) -> bool:
        """Whether it has answered all tests."""
        return self.failure is None and self.refusal is None

    @property
    def answered(self) -> int:
        """Answers that have a verdict."""
        return sum(tally.questions for tally in self.tallies.values())

    @property
    def cost_usd(self) -> float:
        """Dollars of its answers, as if nothing had been cached."""
        return sum(tally.cost_usd for tally in self.tallies.values())

    @property
    def result(self) -> Candidate:
        """What the choice needs of a candidate that is complete."""
        passed = (kind for kind, tally in self.tallies.items() if tally.right > _PASSED * tally.questions)
        return Candidate(self.worker, frozenset(passed), self.cost_usd)


def cheapest_first(pool: Pool) -> tuple[int, ...]:
    """The numbers of the pool's workers without its tools, by the sum of the prices of input and output."""
    prices = {i: worker.profile.price for i, worker in enumerate(pool) if not is_tool(worker)}
    return tuple(sorted(prices, key=lambda i: (prices[i].input + prices[i].output, i)))


async def ask_candidates(
    pool: Pool,
    kinds: Kinds,
    dispatcher: Dispatcher,
    *,
    concurrency: int,
    on_tested: Callable[[], None] = lambda: None,
) -> tuple[CandidateAnswers, ...]:
    """Test all workers of `pool` that are no tools. Returns the results, the cheapest candidate first.

    After the budget has refused a call, answers that the response cache has still count; no other call is made.

    Args:
        concurrency: how many candidates are tested at a time. Each is asked one question after another.
        on_tested: called after each candidate.
    """
    order = cheapest_first(pool)
    waiting = iter(order)
    found: dict[int, CandidateAnswers] = {}

    async def work() -> None:
        for number in waiting:
            # A pool of its own has no fallback: a fallback's answer is not the candidate's own.
            found[number] = await _ask(pool.subset([number]), kinds, dispatcher)
            on_tested()

    async with asyncio.TaskGroup() as group:
        for _ in range(min(concurrency, len(order))):
            group.create_task(work())
    return tuple(found[number] for number in order)


async def _ask(alone: Pool, kinds: Kinds, dispatcher: Dispatcher) -> CandidateAnswers:
    name = alone.names[0]
    runner = Runner(Single(name), alone, dispatcher=dispatcher)
    tallies: dict[str, Tally] = {}
    for kind, tasks in kinds.tests.items():
        for task in tasks:
            try:
                rollout = await roll(runner, task, seed=f"compose/{task.id}/{name}")
            except BudgetError as error:
                return CandidateAnswers(name, tallies, refusal=str(error))
            if rollout.trace.answer is None:
                return CandidateAnswers(name, tallies, failure=failure_of(rollout.trace))
            one = Tally(
                right=float(rollout.correct),
                questions=int(rollout.grade.failure is None),
                cost_usd=rollout.trace.uncached_usd,
            )
            tallies[kind] = tallies[kind] + one if kind in tallies else one
    return CandidateAnswers(name, tallies)
