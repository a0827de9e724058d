"""Examples for the supervised stage: prompts as the policy will meet them, and plans that it should write.

Plans come from traces of any planner (distillation), from a file, or from a random generator that teaches the form
alone. Podium parses each plan as it parses a policy's own. It does not parse the completions of a file that gives its
own messages: they may be of another pool.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from pydantic import TypeAdapter, ValidationError

from podium.baselines.controls import random_workflow
from podium.conductor.prompt import build_prompt
from podium.errors import ConfigError, GraderError
from podium.planner import Outcome, PlanRequest
from podium.scoring import RolloutRequest, ScoringSession
from podium.tasks import Task
from podium.tasks.overlap import question_key
from podium.trace import Trace
from podium.trace.store import TraceStore
from podium.train.lm.settings import LMExperiment
from podium.types import Message, Question
from podium.workflow import PlanError, parse, render

_MESSAGES = TypeAdapter(tuple[Message, ...])


@dataclass(frozen=True, slots=True)
class Demonstration:
    """One prompt and the completion that is to be learned."""

    messages: tuple[Message, ...]
    completion: str


async def collect_demonstrations(
    experiment: LMExperiment, session: ScoringSession, on_warning: Callable[[str], None]
) -> list[Demonstration]:
    """The examples that the settings name, at most `sft.count`.

    Raises:
        ConfigError: the source cannot be read, or holds no example that the filters leave.
    """
    source = experiment.sft.examples
    if source == "random":
        examples = _random(experiment, session)
    elif source.endswith(".jsonl"):
        examples = _from_file(experiment, session, Path(source))
    elif source.endswith(".sqlite"):
        examples = _from_traces(experiment, session, Path(source), on_warning)
    else:
        raise ConfigError(
            f"sft.examples = {source!r}: give NAME.jsonl, a store of traces NAME.sqlite, or random.",
            ("sft", "examples"),
        )
    found = []
    async for example in examples:
        found.append(example)
        if len(found) == experiment.sft.count:
            break
    if not found:
        raise ConfigError(f"{source} holds no example that the filters under [sft] leave; widen them.")
    return found


async def _random(experiment: LMExperiment, session: ScoringSession) -> AsyncIterator[Demonstration]:
    """Random valid plans for the tasks in turn, each over a pool drawn for it: the form without the sense."""
    tasks = list(session.tasks)
    for number in range(experiment.sft.count):
        request = RolloutRequest(task=tasks[number % len(tasks)], seed=f"sft/{experiment.seed}/{number}")
        messages = await session.prompt(request)
        assert messages is not None, "a first round always has a prompt"
        workflow = random_workflow(
            Random(f"sft/{experiment.seed}/{number}/plan"),
            workers=len(session.pool_of(request)),
            max_steps=experiment.max_steps,
            access=experiment.prompt.access,
        )
        yield Demonstration(messages, render(workflow))


async def _from_file(
    experiment: LMExperiment, session: ScoringSession, path: Path
) -> AsyncIterator[Demonstration]:
    """Lines with "messages" and "completion", or with "question" and "plan" for the run's own pool."""
    for number, row in _lines(path):
        place = f"{path}, line {number}"
        if "question" in row and "plan" in row:
            messages = _prompt(experiment, session, Question(text=str(row["question"])))
            completion = str(row["plan"])
            if fault := _fault(completion, experiment, session):
                raise ConfigError(f"{place}: the plan cannot be run: {fault}")
        elif "messages" in row and "completion" in row:
            try:
                messages = _MESSAGES.validate_python(row["messages"])
            except ValidationError as error:
                raise ConfigError(f"{place}: messages: {error.errors()[0]['msg']}.") from None
            completion = str(row["completion"])
        else:
            raise ConfigError(f'{place}: give "messages" and "completion", or "question" and "plan".')
        yield Demonstration(messages, completion)


def _lines(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    try:
        lines = path.read_text(encoding="utf-8").split("\n")  # JSON strings may hold other line separators.
    except OSError as error:
        raise ConfigError(f"sft.examples: {path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise ConfigError(f"sft.examples: {path} is not UTF-8 text; save it as UTF-8.") from None
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                row = json.loads(line)
            except ValueError:
                row = None
            if not isinstance(row, dict):
                raise ConfigError(f"{path}, line {number}: is not a JSON object.")
            yield number, row


async def _from_traces(
    experiment: LMExperiment, session: ScoringSession, path: Path, on_warning: Callable[[str], None]
) -> AsyncIterator[Demonstration]:
    """The plans of traces whose answers are right by the task set's own grader; each round is an example."""
    settings = experiment.sft
    ids = {question_key(task.question.text): task.id for task in session.tasks.values()}
    foreign = 0
    with TraceStore(path, create=False) as store:
        for trace in store.iterate():
            task_id = ids.get(question_key(trace.question.text))
            if task_id is None:
                foreign += 1
            elif settings.max_cost_usd is not None and trace.uncached_usd > settings.max_cost_usd:
                continue
            elif await _score(session.task(task_id), trace) >= settings.min_score:
                for example in _rounds(experiment, session, trace):
                    yield example
    if foreign:
        on_warning(f"{path}: {foreign:,} traces are of other questions than those of {experiment.tasks}.")


async def _score(task: Task, trace: Trace) -> float:
    if trace.answer is None or trace.status != "ok":
        return 0.0
    try:
        return (await task.grade(trace.answer)).score
    except GraderError:
        return 0.0


def _rounds(experiment: LMExperiment, session: ScoringSession, trace: Trace) -> Iterator[Demonstration]:
    """An example for each round whose plan could be read, where the trace's pool is the run's."""
    if tuple(profile.name for profile in trace.pool) != session.pool.names:
        return
    outcomes: tuple[Outcome, ...] = ()
    for round_ in trace.rounds:
        if round_.plan_error is not None:
            return
        text = round_.plan_text
        # A planner that is a program writes no text of its own.
        completion = text if text.strip() or round_.workflow is None else render(round_.workflow)
        longest = experiment.sft.max_plan_chars
        fits = longest is None or len(completion) <= longest
        if fits and not _fault(completion, experiment, session, later_round=bool(outcomes)):
            yield Demonstration(_prompt(experiment, session, trace.question, outcomes), completion)
        if round_.workflow is not None:
            outcomes = (*outcomes, Outcome(round_.workflow, round_.response or ""))


def _fault(
    completion: str, experiment: LMExperiment, session: ScoringSession, *, later_round: bool = False
) -> str | None:
    """Why the policy could not be given credit for this completion; None: it is a plan."""
    plan = parse(
        completion,
        workers=len(session.pool),
        max_steps=experiment.max_steps,
        later_round=later_round,
        access=experiment.prompt.access,
    )
    return plan.message if isinstance(plan, PlanError) else None


def _prompt(
    experiment: LMExperiment,
    session: ScoringSession,
    question: Question,
    outcomes: tuple[Outcome, ...] = (),
) -> tuple[Message, ...]:
    request = PlanRequest(
        question=question,
        pool=session.pool.profiles_for(question.text),
        outcomes=outcomes,
        max_steps=experiment.max_steps,
        rounds=experiment.rounds - len(outcomes),
    )
    return build_prompt(request, experiment.prompt)
