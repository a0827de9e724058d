"""What later rounds do in the rows of a suite: how often they are planned, mend a wrong answer, and harm a right one;
and how many tokens the planner reads and writes for a question.

    python lab/runs/rounds.py RUN

RUN is the folder of a suite over task sets whose grader calls no model. The answer after each row's first round is
graded once more, and compared with the answer after its last.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from podium.evals.answer_files import AnswerFiles
from podium.evals.suite.comparisons import evaluations_of
from podium.evals.suite.manifest import SUITE, SuiteManifest
from podium.rollout import Rollout
from podium.tasks import open_tasks
from podium.tasks.task import Task


async def first_right(task: Task, rollout: Rollout) -> bool:
    """Whether the answer after the first round is right."""
    response = rollout.trace.rounds[0].response
    return response is not None and (await task.grade(response)).correct


async def show(run: Path) -> None:
    """A table for each table of the suite."""
    manifest = SuiteManifest.load(run / SUITE)
    for table in manifest.tables:
        print(f"{table.label}\n")
        print(
            "| planner | planned again | right after the first round | mended | harmed | right | planner's tokens |"
        )
        print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
        asked: dict[str, Task] = {}
        for label, evaluation in evaluations_of(table, AnswerFiles(run)).items():
            again = [r for r in evaluation.rollouts if any(x.workflow for x in r.trace.rounds[1:])]
            if not asked:
                count, of = len(evaluation.by_question) // manifest.settings.seeds, table.settings
                for seed in range(manifest.settings.seeds):
                    asked |= {t.id: t for t in open_tasks(of.tasks.name, of.split, size=count, seed=seed)}
            before = [await first_right(asked[rollout.task], rollout) for rollout in again]
            after = [rollout.correct for rollout in again]
            mended = sum(now and not then for then, now in zip(before, after, strict=True))
            harmed = sum(then and not now for then, now in zip(before, after, strict=True))
            total = len(evaluation.rollouts)
            right = sum(rollout.correct for rollout in evaluation.rollouts)
            shares = (len(again), right - mended + harmed, mended, harmed, right)
            cells = [f"{100 * share / total:.1f} %" for share in shares]
            usages = [x.plan.spent.usage for rollout in evaluation.rollouts for x in rollout.trace.rounds]
            tokens = sum(usage.input_tokens + usage.output_tokens for usage in usages) / total
            print(f"| {label} | {' | '.join(cells)} | {tokens:.0f} |")
        print()


if __name__ == "__main__":
    asyncio.run(show(Path(sys.argv[1])))
