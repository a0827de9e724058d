"""How fast a Conductor with --leave-failing leaves a worker that turns bad, and how often one that does not.

Simulated outcomes: each question has three of eight workers, and its answer is right with a given probability. From
some question on no answer of one worker is right.

    python runs/leaving.py
"""

from __future__ import annotations

from random import Random
from statistics import median

from podium.conductor import LeavingPlanner
from podium.planner import Plan, PlanRequest

WORKERS = tuple("abcdefgh")
STREAMS, QUIET, BEFORE, AFTER = 200, 300, 100, 150


class NoPlans:
    """Only outcomes count here."""

    name = "none"

    async def plan(self, request: PlanRequest) -> Plan:
        raise NotImplementedError


def ask(planner: LeavingPlanner, rng: Random, right: float, bad: str = "") -> None:
    """One question with its outcome."""
    workers = rng.sample([name for name in WORKERS if name not in planner.left], 3)
    planner.take(workers, float(rng.random() < right and bad not in workers))


def is_kept(rng: Random, right: float) -> bool:
    """Whether nobody is left while all stay as they are."""
    planner = LeavingPlanner(NoPlans())
    for _ in range(QUIET):
        ask(planner, rng, right)
        if planner.left:
            return False
    return True


def questions_until_left(rng: Random, right: float) -> int | None:
    """Questions from a worker's turn until it is left; None: it is not left."""
    planner = LeavingPlanner(NoPlans())
    for _ in range(BEFORE):
        ask(planner, rng, right)
    if "a" in planner.left:  # It was left without need.
        return questions_until_left(rng, right)
    for number in range(1, AFTER + 1):
        ask(planner, rng, right, bad="a")
        if "a" in planner.left:
            return number
    return None


def main() -> None:
    print(f"Simulated outcomes, {STREAMS} streams each.\n")
    print(
        f"| answers right before | somebody left in {QUIET} quiet questions | left within 50 | within 100 | median |"
    )
    print("| ---: | ---: | ---: | ---: | ---: |")
    for right in (0.95, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4):
        quiet = [is_kept(Random(f"quiet/{right}/{k}"), right) for k in range(STREAMS)]
        waits = [questions_until_left(Random(f"bad/{right}/{k}"), right) or AFTER + 1 for k in range(STREAMS)]
        within = [sum(wait <= most for wait in waits) / STREAMS for most in (50, 100)]
        print(
            f"| {right:.0%} | {1 - sum(quiet) / STREAMS:.1%} | {within[0]:.0%} | {within[1]:.0%} "
            f"| {median(waits):.0f} |"
        )


if __name__ == "__main__":
    main()
