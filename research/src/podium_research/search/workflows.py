"""A model searches for constant plans: it reads an archive of workflows with their results, and proposes the next one.

This is the search of ADAS (Hu, Lu & Clune 2024, arXiv 2408.08435) over Podium's workflows in place of Python code, so
nothing that the model writes is executed as a program. A planner that uses the question must beat what it finds.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Container, Sequence
from dataclasses import dataclass, replace

from podium.calls import CallState
from podium.errors import BudgetExceededError, UsageError
from podium.evals.evaluation import evaluate
from podium.evals.json_file import JsonFile
from podium.executor import ExecutionSettings
from podium.planners import VOTE, Constant, Single, read_constant
from podium.planners.controls import CHECK
from podium.tasks.task import Task
from podium.team import Runner
from podium.types import ANSWER_WHOLE_QUESTION, FrozenModel, Message, Question
from podium.workers.pool import Pool
from podium.workflow import Access, PlanError, PlanRules, Step, Workflow, parse, render
from podium_research.search.settings import WorkflowSearch

FRESH = 100
"""If the search leaves at least this many questions unused, the final choice uses only these."""
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


class ConstantPlan(FrozenModel):
    """One workflow for all questions, with its accuracy and its cost."""

    plan: str
    """The workflow's text; its worker numbers are positions in `ConstantPlanFront.workers`."""
    accuracy: float
    cost_usd: float
    """Dollars a question, on average."""


class ConstantPlanFront(JsonFile):
    """The plans that no other plan beats in both accuracy and cost, cheapest first."""

    description = "constant plans"

    workers: tuple[str, ...]
    """The names of the pool's workers; worker k of a plan is the one at k."""
    plans: tuple[ConstantPlan, ...]
    max_steps: int
    """The most steps that a plan could have."""
    questions: int
    """How many questions the plans were compared on."""
    seed: str


class TriedWorkflow(FrozenModel):
    """One entry of the archive, or a proposal that could not be tried."""

    proposal: int
    """Its number, from 1 on. 0 if the archive begins with it."""
    tried: ConstantPlan | None
    """The workflow. Is None if the model wrote no new one in three tries."""


async def search_workflows(
    pool: Pool,
    tasks: Sequence[Task],
    settings: WorkflowSearch,
    *,
    resume_from: Sequence[TriedWorkflow] = (),
    call_state: CallState | None = None,
) -> AsyncIterator[TriedWorkflow]:
    """Try workflows, and yield each new entry. `choose` then finds the most accurate ones for each cost.

    The archive begins with each worker alone, an answer that the next worker checks, and a vote of all workers. A
    proposal that cannot be read or is known after three tries is left out. The writer's dollars go to the spend limits
    of `call_state`, and are not in the results.

    Args:
        tasks: questions to search on. Do not compare the workflows on them later.
        resume_from: what an earlier search with the same arguments has tried; it is not tried again.

    Raises:
        UsageError: there are no tasks, the writer did not answer, or workers or the grader failed on all questions of a
            workflow.
        ConfigError: the pool has no such writer.
        BudgetExceededError: a spend limit of the call state refused a call.
    """
    if not tasks:
        raise UsageError("There are no tasks to search workflows on: give at least one.")
    pool.named(settings.writer)
    tasks, max_steps = tasks[: settings.tried_on], settings.max_steps
    runner = _runner(pool, settings, call_state)
    writes = replace(runner, max_steps=5, settings=ExecutionSettings(layout="plain"))
    writer = _Writer(writes, max_steps, str(settings.seed))
    archive = {_read(old.tried, pool, max_steps): old.tried for old in resume_from if old.tried is not None}
    done = {old.proposal for old in resume_from}
    for workflow in beginnings(pool.names, max_steps):
        if workflow not in archive:
            archive[workflow] = await _try(runner, workflow, tasks, settings)
            yield TriedWorkflow(proposal=0, tried=archive[workflow])
    for number in range(1, settings.proposals + 1):
        if number not in done:
            prompt = _prompt(pool, tasks, archive, max_steps)
            proposal = await writer.propose(prompt, archive, number - 1)
            if proposal is not None:
                archive[proposal] = await _try(runner, proposal, tasks, settings)
            yield TriedWorkflow(proposal=number, tried=archive[proposal] if proposal else None)


async def choose(
    pool: Pool,
    tasks: Sequence[Task],
    settings: WorkflowSearch,
    archive: Sequence[TriedWorkflow],
    *,
    call_state: CallState | None = None,
) -> ConstantPlanFront:
    """The most accurate workflows of an archive, for each cost.

    Tasks that the search left unused make the choice, if there are 100 of them: a plan that won on few may have been
    lucky. Errors are as of `search_workflows`.
    """
    fresh = tasks[settings.tried_on :]
    if len(fresh) < FRESH:
        return front_of(archive, pool, settings, len(tasks) - len(fresh))
    runner = _runner(pool, settings, call_state)
    workflows = [_read(entry.tried, pool, settings.max_steps) for entry in archive if entry.tried is not None]
    tried = [await _try(runner, workflow, fresh, settings) for workflow in workflows]
    return front_of([TriedWorkflow(proposal=0, tried=plan) for plan in tried], pool, settings, len(fresh))


def front_of(
    archive: Sequence[TriedWorkflow], pool: Pool, settings: WorkflowSearch, questions: int
) -> ConstantPlanFront:
    """The most accurate workflows for each cost, by the results that an archive has on so many questions."""
    most = settings.max_cost
    results = [entry.tried for entry in archive if entry.tried is not None]
    return ConstantPlanFront(
        workers=pool.names,
        plans=undominated([plan for plan in results if most is None or plan.cost_usd <= most]),
        max_steps=settings.max_steps,
        questions=questions,
        seed=str(settings.seed),
    )


def _runner(pool: Pool, settings: WorkflowSearch, call_state: CallState | None) -> Runner:
    return Runner(
        Single(settings.writer),
        pool,
        max_steps=settings.max_steps,
        settings=ExecutionSettings(early_stop=settings.early_stop),
        call_state=call_state or CallState(),
    )


async def _try(
    runner: Runner, workflow: Workflow, tasks: Sequence[Task], settings: WorkflowSearch
) -> ConstantPlan:
    """The workflow with its means over the questions on which neither a worker nor the grader failed."""
    names = runner.pool.names
    evaluation = await evaluate(
        replace(runner, planner=Constant(workflow, names)),
        tasks,
        concurrency=settings.concurrency,
        seed=f"search-constant/{settings.seed}",
    )
    rollouts = [rollout for rollout in evaluation.rollouts if not rollout.infrastructure_failed]
    if not rollouts:
        workers = ", ".join(dict.fromkeys(names[step.worker] for step in workflow.steps))
        raise UsageError(
            f"Workers or the grader failed on all {len(tasks)} questions of a workflow of {workers}: run podium pool "
            "check, and then the same command again to continue."
        )
    return ConstantPlan(
        plan=render(workflow),
        accuracy=sum(rollout.correct for rollout in rollouts) / len(rollouts),
        cost_usd=sum(rollout.trace.uncached_usd for rollout in rollouts) / len(rollouts),
    )


def undominated(plans: Sequence[ConstantPlan]) -> tuple[ConstantPlan, ...]:
    """The Pareto front: the plans that no other beats in both accuracy and cost, cheapest first."""
    undominated_plans: list[ConstantPlan] = []
    for plan in sorted(plans, key=lambda plan: (plan.cost_usd, -plan.accuracy)):
        if not undominated_plans or plan.accuracy > undominated_plans[-1].accuracy:
            undominated_plans.append(plan)
    return tuple(undominated_plans)


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
                if refusal := self.runner.call_state.refusal:
                    raise BudgetExceededError(refusal)
                raise UsageError(
                    f"The search stopped, since the model that proposes did not answer. {trace.error}"
                )
            proposal = parse(trace.answer, PlanRules(workers=len(self.runner.pool), max_steps=self.max_steps))
            if isinstance(proposal, Workflow) and proposal not in archive:
                return proposal
            error = str(proposal) if isinstance(proposal, PlanError) else _KNOWN
            exchange = Message(role="user", content=text), Message(role="assistant", content=trace.answer)
            history, text = (*history, *exchange), _WRONG.format(error=error)
        return None
