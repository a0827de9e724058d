"""A model searches for constant plans: it reads an archive of workflows with their results, and proposes the next one.

This is the search of ADAS (Hu, Lu & Clune 2024, arXiv 2408.08435) over Podium's workflows in place of Python code, so
nothing that the model writes is executed as a program.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, replace

from podium.calls import Dispatcher
from podium.errors import BudgetError, UsageError
from podium.executor import ExecutionSettings
from podium.planners import VOTE, Single, read_constant
from podium.planners.phrases import CHECK
from podium.tasks.task import Task
from podium.team import Runner
from podium.types import ANSWER_WHOLE_QUESTION, Budget, FrozenModel, Message, Question
from podium.workers.pool import Pool
from podium.workflow import Access, PlanError, Step, Workflow, parse
from podium_research.search.constant import (
    FRESH,
    ConstantPlan,
    ConstantPlanFront,
    SearchProgress,
    Trials,
    undominated,
)

_MAX_TRIES = 3
"""How often the model may write one proposal."""
_EXAMPLES, _EXAMPLE_CHARS = 3, 1500
_PROMPT = """\
You design workflows for a team of models. One workflow is run on every question of a task set, so its subtasks must \
suit all of them. Each step gives one model a subtask. The model sees the question and the responses of the earlier \
steps on its access list. The response of the last step is the answer. A step that no later step reads is not run, \
unless it is the last.

The models, by number:
{pool}

Some of the questions:
{examples}

The archive: workflows that were tried, with the share of {questions} questions that they answered right, and the \
dollars that a question cost:
{archive}

Propose the next workflow. It should be more accurate than all of these, or as accurate and cheaper, and it must not \
be in the archive. First think briefly about what the results teach and what was not tried yet. Then write three \
Python lists of the same length, with at most {max_steps} entries, as in the archive: model_id, subtasks, access_list \
(positions of earlier steps counted from 0, or ["all"])."""
_WRONG = "That is no workflow that can be tried: {error}\n\nWrite it again, whole and corrected."
_KNOWN = "It is in the archive already."


class TriedWorkflow(FrozenModel):
    """One entry of the archive, or a proposal that could not be tried."""

    proposal: int
    """Its number, from 1 on. 0 if the archive begins with it."""
    tried: ConstantPlan | None
    """The workflow. Is None if the model wrote no new one in three tries."""


async def search_workflows(
    pool: Pool,
    tasks: Sequence[Task],
    writer: str,
    *,
    proposals: int = 20,
    questions: int = 100,
    max_steps: int = 5,
    max_cost: float | None = None,
    seed: str = "0",
    budget: Budget | None = None,
    execution: ExecutionSettings | None = None,
    dispatcher: Dispatcher | None = None,
    on_progress: SearchProgress | None = None,
    resume_from: Sequence[TriedWorkflow] = (),
    on_tried: Callable[[TriedWorkflow], None] | None = None,
) -> ConstantPlanFront:
    """The most accurate workflows that were found, for each cost.

    The archive begins with each worker alone, an answer that the next worker checks, and a vote of all workers. Tasks
    that the search leaves unused make the final choice, if there are 100 of them: a plan that won on few may have been
    lucky.

    Args:
        tasks: questions to search on. Do not compare the workflows on them later.
        writer: the worker that proposes. Its dollars go to the spend limits of `dispatcher`, and are not in the result.
        proposals: how many workflows it proposes. One that cannot be read or is known after three tries is left out.
        questions: how many questions each workflow is tried on.
        max_cost: dollars a question; workflows that cost more are in the archive but not in the result.
        budget, execution, dispatcher: as for `evaluate`.
        resume_from: what an earlier search with the same arguments has tried; it is not tried again.
        on_tried: called with each new entry.

    Raises:
        UsageError: there are no tasks, the pool has no such worker, it did not answer, or workers or the grader failed
            on all questions of a workflow.
        BudgetError: a spend limit of the dispatcher refused a call.
    """
    if not tasks:
        raise UsageError("There are no tasks to search workflows on: give at least one.")
    pool.named(writer)
    used = min(len(tasks), questions)
    runner = Runner(
        Single(writer),
        pool,
        budget=budget or Budget(),
        max_steps=max_steps,
        settings=execution or ExecutionSettings(),
        dispatcher=dispatcher or Dispatcher(),
    )
    trials = Trials(runner, tasks[:used], max_cost=max_cost, seed=seed)
    writes = replace(runner, budget=Budget(), max_steps=5, settings=ExecutionSettings(layout="plain"))
    asks = _Writer(writes, max_steps, seed)
    archive = {_read(old.tried, pool, max_steps): old.tried for old in resume_from if old.tried is not None}
    done = {old.proposal for old in resume_from}
    for number in range(proposals + 1):
        new_workflow: Workflow | None = None
        if number and number not in done:
            prompt = _prompt(pool, tasks[:used], archive, max_steps)
            new_workflow = await asks.propose(prompt, archive, number - 1)
        new = [new_workflow] if new_workflow else [] if number else beginnings(pool.names, max_steps)
        for workflow in new:
            if workflow in archive:
                continue
            await trials.best([workflow], [(1, used)])
            archive[workflow] = trials.result(workflow)
            if on_tried:
                on_tried(TriedWorkflow(proposal=number, tried=archive[workflow]))
        if not new and number not in done and on_tried:
            on_tried(TriedWorkflow(proposal=number, tried=None))
        if on_progress:
            on_progress(number, proposals)
    fresh = tasks[used:]
    results = list(archive.values())
    if len(fresh) >= FRESH:
        final = replace(trials, tasks=fresh, tallies={})
        results = [final.result(w) for w in await final.best(list(archive), [(len(archive), len(fresh))])]
    return ConstantPlanFront(
        workers=pool.names,
        plans=undominated([plan for plan in results if max_cost is None or plan.cost_usd <= max_cost]),
        max_steps=max_steps,
        questions=len(fresh) if len(fresh) >= FRESH else used,
        seed=seed,
    )


def _read(plan: ConstantPlan, pool: Pool, max_steps: int) -> Workflow:
    return read_constant(plan.plan, pool.names, name="an earlier search", max_steps=max_steps).workflow


def beginnings(names: Sequence[str], max_steps: int) -> list[Workflow]:
    """What the archive begins with."""
    workers = [number for number, name in enumerate(names) if name != VOTE]
    alone = [Workflow((Step(worker, ANSWER_WHOLE_QUESTION),)) for worker in workers]
    checked = [
        Workflow((Step(first, ANSWER_WHOLE_QUESTION), Step(second, CHECK, Access(all=True))))
        for first, second in zip(workers, [*workers[1:], *workers[:1]], strict=True)
        if max_steps > 1
    ]
    voters = workers[: max_steps - 1]
    if VOTE not in names or len(voters) < 2:
        return [*alone, *checked]
    vote = Step(names.index(VOTE), "Give the most frequent answer.", Access(all=True))
    return [*alone, *checked, Workflow((*(Step(worker, ANSWER_WHOLE_QUESTION) for worker in voters), vote))]


def _prompt(pool: Pool, tasks: Sequence[Task], archive: dict[Workflow, ConstantPlan], max_steps: int) -> str:
    """What the model is told; the best workflows come last."""
    best_last = sorted(archive.values(), key=lambda plan: (plan.accuracy, -plan.cost_usd))
    return _PROMPT.format(
        pool="\n".join(
            f"{k}: {worker.profile.name}. {worker.profile.description}" for k, worker in enumerate(pool)
        ),
        examples="\n\n".join(f"- {task.question.text[:_EXAMPLE_CHARS]}" for task in tasks[:_EXAMPLES]),
        questions=len(tasks),
        archive="\n\n".join(
            f"{plan.accuracy:.1%} right, ${plan.cost_usd:.6f} a question:\n{plan.plan}" for plan in best_last
        ),
        max_steps=max_steps,
    )


@dataclass(frozen=True, slots=True)
class _Writer:
    """The model that proposes."""

    runner: Runner
    max_steps: int
    seed: str

    async def propose(self, prompt: str, archive: Container[Workflow], number: int) -> Workflow | None:
        """A workflow that is not in the archive, or None if the model wrote none in three tries."""
        history: tuple[Message, ...] = ()
        text = prompt
        for attempt in range(_MAX_TRIES):
            trace = await self.runner.answer(
                Question(text=text, history=history), seed=f"search-workflows/{self.seed}/{number}/{attempt}"
            )
            if trace.answer is None:
                if refusal := self.runner.dispatcher.refusal:
                    raise BudgetError(refusal)
                raise UsageError(
                    f"The search stopped, since the model that proposes did not answer. {trace.error}"
                )
            proposal = parse(trace.answer, workers=len(self.runner.pool), max_steps=self.max_steps)
            if isinstance(proposal, Workflow) and proposal not in archive:
                return proposal
            error = str(proposal) if isinstance(proposal, PlanError) else _KNOWN
            exchange = Message(role="user", content=text), Message(role="assistant", content=trace.answer)
            history, text = (*history, *exchange), _WRONG.format(error=error)
        return None
