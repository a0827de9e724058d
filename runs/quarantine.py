"""How fast a Conductor with plan.quarantine_failing leaves a worker that turns bad, and how often one that does not.

Simulated outcomes: each question has three of eight workers, and its answer is right with a given probability. From
some question on one worker's answers are all wrong, or its calls fail.

    python runs/quarantine.py
"""

from __future__ import annotations

from random import Random
from statistics import median

from podium.conductor import QuarantinePlanner
from podium.planners.planner import Planner, PlanRequest
from podium.trace import Plan

WORKERS = tuple("abcdefgh")
STREAMS, QUIET, BEFORE, AFTER = 200, 300, 100, 150
RATES = [(right, 0.0) for right in (0.95, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4)] + [
    (0.8, lost) for lost in (0.01, 0.05, 0.1)
]


class NoPlans(Planner):
    """Only outcomes count here."""

    name = "none"

    async def plan(self, request: PlanRequest) -> Plan:
        raise NotImplementedError


def ask(
    planner: QuarantinePlanner, rng: Random, right: float, lost: float, *, bad: str = "", fails: bool = False
) -> None:
    """One question with its outcome. A plan with a failed call is wrong, and so is every one with the bad worker."""
    shown = [name for name in WORKERS if name not in planner.quarantined] or WORKERS
    workers = rng.sample(shown, min(3, len(shown)))
    failed = {name for name in workers if rng.random() < lost or (fails and name == bad)}
    is_right = not failed and bad not in workers and rng.random() < right
    planner.update([name for name in workers if name not in failed], failed, float(is_right))


def is_kept(rng: Random, right: float, lost: float) -> bool:
    """Whether nobody is left while all stay as they are."""
    planner = QuarantinePlanner(NoPlans())
    for _ in range(QUIET):
        ask(planner, rng, right, lost)
        if planner.quarantined:
            return False
    return True


def questions_until_left(rng: Random, right: float, lost: float, fails: bool) -> int:
    """Questions from a worker's turn until it is left; `AFTER` + 1: it is not left."""
    planner = QuarantinePlanner(NoPlans())
    for _ in range(BEFORE):
        ask(planner, rng, right, lost)
    if "a" in planner.quarantined:  # It was left without need.
        return questions_until_left(rng, right, lost, fails)
    for number in range(1, AFTER + 1):
        ask(planner, rng, right, lost, bad="a", fails=fails)
        if "a" in planner.quarantined:
            return number
    return AFTER + 1


def main() -> None:
    print(f"Simulated outcomes, {STREAMS} streams each.\n")
    print(
        f"| answers right before | calls that fail before | somebody left in {QUIET} quiet questions "
        "| its answers are wrong: left within 50 | median | its calls fail: left within 50 | median |"
    )
    print("| ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for right, lost in RATES:
        quiet = [is_kept(Random(f"quiet/{right}/{k}"), right, lost) for k in range(STREAMS)]
        cells = [f"{right:.0%}", f"{lost:.0%}", f"{1 - sum(quiet) / STREAMS:.1%}"]
        for fails in (False, True):
            waits = [
                questions_until_left(Random(f"bad/{right}/{k}"), right, lost, fails) for k in range(STREAMS)
            ]
            cells += [f"{sum(wait <= 50 for wait in waits) / STREAMS:.0%}", f"{median(waits):.0f}"]
        print(f"| {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
