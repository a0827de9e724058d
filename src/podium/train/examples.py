"""Examples for the supervised stage: prompts as the policy will get them, and plans that the policy should write.

Plans come from traces of any planner (distillation), from a file, or from a random generator that teaches only the
form. Podium parses each plan as it parses a policy's own. It does not parse completions of a file that has its own
messages, since they may be for another pool.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError

from podium.conductor.prompt import renumber_workers
from podium.errors import ConfigError
from podium.files.tables import read_rows
from podium.planners.controls import random_workflow
from podium.planners.planner import EarlierRound
from podium.rollout.rollout import grade_answer
from podium.scoring import RolloutRequest, ScoringSession
from podium.store import TraceStore
from podium.tasks.overlap import question_key
from podium.trace import Trace
from podium.train.random_plans import random_plan, random_thought
from podium.train.settings import TrainSettings
from podium.types import Message, Question
from podium.workflow import Acceptance, PlanError, PlanForm, PlanRules, Workflow, parse, render
from podium.workflow.literal import Item
from podium.workflow.search import find_plan
from podium.workflow.structured import read_columns

_MESSAGES = TypeAdapter(Annotated[tuple[Message, ...], Field(min_length=1)])
_MAX_POOL_DRAWS = 64
"""The most pools that are drawn for an example, to find a pool with all workers of its plan."""


@dataclass(frozen=True, slots=True)
class TrainingExample:
    """One prompt and the completion to learn."""

    messages: tuple[Message, ...]
    completion: str


async def collect_examples(
    settings: TrainSettings, session: ScoringSession, on_warning: Callable[[str], None]
) -> list[TrainingExample]:
    """The examples that the settings name, at most `sft.count`.

    Raises:
        ConfigError: the source cannot be read, or no example passes the filters.
    """
    source = settings.sft.examples
    if source == "random":
        examples = _from_random(settings, session)
    elif source.endswith(".jsonl"):
        examples = _from_file(settings, session, Path(source))
    elif source.endswith(".sqlite"):
        examples = _from_traces(settings, session, Path(source), on_warning)
    else:
        raise ConfigError(
            f"sft.examples = {source!r}: give NAME.jsonl, a store of traces NAME.sqlite, or random.",
            ("sft", "examples"),
        )
    collected = []
    async for example in examples:
        collected.append(example)
        if len(collected) == settings.sft.count:
            break
    if not collected:
        raise ConfigError(f"{source} holds no example that the filters under [sft] leave; widen them.")
    return collected


async def _from_random(settings: TrainSettings, session: ScoringSession) -> AsyncIterator[TrainingExample]:
    """Random valid plans, which teach only the form: `sft.group` plans for each task in turn, over the pool of the
    task.

    The brief style gets the plans of the baseline `random`, whose few phrases tiny policies can learn.
    """
    prompt = settings.prompt
    tasks = list(session.tasks)
    for number in range(settings.sft.count):
        turn = number // settings.sft.group
        request = RolloutRequest(task=tasks[turn % len(tasks)], group=f"sft/{settings.seed}/{turn}")
        messages = await session.prompt(request)
        assert messages is not None, "a first round always has a prompt"
        random = Random(f"sft/{settings.seed}/{number}/plan")
        pool = session.pool_of(request).profiles_for("")
        if prompt.style == "brief":
            workflow = random_workflow(
                random, workers=len(pool), max_steps=settings.max_steps, access=prompt.access
            )
            yield TrainingExample(messages, render(workflow))
            continue
        workflow = random_plan(random, pool, max_steps=settings.max_steps, access=prompt.access)
        names = [profile.name for profile in pool] if prompt.pool == "described" else []
        takers = [names[step.worker] if names else f"model {step.worker}" for step in workflow.steps]
        thought = random_thought(random, takers)
        yield TrainingExample(messages, render(workflow, prompt.form, names=names, thought=thought))


async def _from_file(
    settings: TrainSettings, session: ScoringSession, path: Path
) -> AsyncIterator[TrainingExample]:
    """Lines with "messages" and "completion", or with "question" and "plan" for the run's own pool."""
    for read in read_rows(path):
        row, location = read.values, read.location
        if read.error:
            raise ConfigError(f"{location}: {read.error}.")
        if "question" in row and "plan" in row:
            written = _text_of(row, "plan", location)
            names = session.pool.names
            plan = _parse(written, settings, names)
            if not isinstance(plan, Workflow):
                raise ConfigError(
                    f"{location}: the plan cannot be run: {getattr(plan, 'message', 'it is empty.')}"
                )
            line = location.rpartition(" ")[2]
            request = _draw_request(session, f"sft/{settings.seed}/{line}", _worker_names([plan], names))
            if request is None:
                raise ConfigError(f"{location}: pool_sampling does not offer the plan's workers together.")
            messages = session.messages(Question(text=_text_of(row, "question", location)), request)
            completion = _as_shown(settings, written, plan, names, session.pool_of(request).names)
        elif "messages" in row and "completion" in row:
            try:
                messages = _MESSAGES.validate_python(row["messages"])
            except ValidationError as error:
                raise ConfigError(f"{location}: messages: {error.errors()[0]['msg']}.") from None
            completion = _text_of(row, "completion", location)
        else:
            raise ConfigError(f'{location}: give "messages" and "completion", or "question" and "plan".')
        yield TrainingExample(messages, completion)


def _text_of(row: Mapping[str, Any], key: str, location: str) -> str:
    value = row[key]
    if not isinstance(value, str) or not value.strip():
        raise ConfigError(f"{location}: {key} is no text; write it as one, or remove the line.")
    return value


async def _from_traces(
    settings: TrainSettings, session: ScoringSession, path: Path, on_warning: Callable[[str], None]
) -> AsyncIterator[TrainingExample]:
    """The plans of traces whose answers the task set's own grader judges right. Each round is an example."""
    ids = {question_key(task.question.text): task.id for task in session.tasks.values()}
    foreign = 0
    with TraceStore(path, create=False) as store:
        for trace in store.iterate():
            task_id = ids.get(question_key(trace.question.text))
            if task_id is None:
                foreign += 1
                continue
            answer = trace.answer if trace.status == "ok" else None
            grade = await grade_answer(session.task(task_id), answer, session.call_state)
            if grade.score >= settings.sft.min_score:
                for example in _examples_of_trace(settings, session, trace):
                    yield example
    if foreign:
        on_warning(f"{path}: {foreign:,} traces are of other questions than those of {settings.tasks}.")


def _examples_of_trace(
    settings: TrainSettings, session: ScoringSession, trace: Trace
) -> Iterator[TrainingExample]:
    """An example for each round whose plan could be read, over a pool that training may draw for a question."""
    names = tuple(profile.name for profile in trace.pool)
    request = _request_of_trace(settings, session, trace, names)
    if request is None:
        return
    shown_names = session.pool_of(request).names
    earlier_rounds: tuple[EarlierRound, ...] = ()
    for round_ in trace.rounds:
        if round_.error is not None or round_.plan.reason is not None or round_.plan.edited:
            return  # The plan that ran is not the plan that the planner wrote.
        decision = round_.workflow or Acceptance()
        completion = _as_shown(settings, round_.plan.text, decision, names, shown_names)
        plan = _parse(completion, settings, shown_names, later_round=bool(earlier_rounds))
        if not isinstance(plan, PlanError):
            yield TrainingExample(session.messages(trace.question, request, earlier_rounds), completion)
        if round_.workflow is not None:
            workflow = renumber_workers(round_.workflow, _shown_numbers(names, shown_names))
            earlier_rounds = (*earlier_rounds, EarlierRound(workflow, round_.response or ""))


def _parse(
    completion: str, settings: TrainSettings, names: Sequence[str], *, later_round: bool = False
) -> Workflow | Acceptance | PlanError:
    """The decision that this text would be if the policy had written it."""
    return parse(
        completion,
        PlanRules(
            workers=len(names),
            names=names if settings.prompt.pool == "described" else (),
            max_steps=settings.max_steps,
            later_round=later_round,
            access=settings.prompt.access,
        ),
    )


def _request_of_trace(
    settings: TrainSettings, session: ScoringSession, trace: Trace, names: tuple[str, ...]
) -> RolloutRequest | None:
    """The request that names the pool and the level of cost sensitivity for a trace. None if no fitting pool is drawn.

    A rollout of a run with the same pools keeps its pool. For any other trace, a pool is drawn that has the workers of
    all its plans.
    """
    task, group = trace.metadata.get("task"), trace.metadata.get("group")
    if task is not None and group is not None:
        own = RolloutRequest(task=task, group=group)
        if session.pool_of(own).names == names:
            return own
    draws = settings.pool_sampling.random and set(names) <= set(session.pool.names)
    if names != session.pool.names and not draws:
        return None
    plans = [round_.workflow for round_ in trace.rounds if round_.workflow is not None]
    return _draw_request(session, f"sft/{settings.seed}/{trace.id}", _worker_names(plans, names))


def _draw_request(session: ScoringSession, name: str, workers: Collection[str]) -> RolloutRequest | None:
    """A request whose pool has all of these workers. None if no pool of the first draws under this name has them."""
    requests = (RolloutRequest(task=name, group=f"draw {number}") for number in range(_MAX_POOL_DRAWS))
    return next(
        (request for request in requests if set(workers) <= set(session.pool_of(request).names)), None
    )


def _worker_names(plans: Iterable[Workflow], names: Sequence[str]) -> set[str]:
    """The names of the workers of some plans."""
    return {names[step.worker] for plan in plans for step in plan.steps}


def _as_shown(
    settings: TrainSettings,
    text: str,
    plan: Workflow | Acceptance,
    names: Sequence[str],
    shown_names: Sequence[str],
) -> str:
    """The completion for a plan over the workers `names`, if the prompt shows the workers `shown_names`.

    The text is kept if its form and its workers are right in this prompt; those of an acceptance always are. Else only
    the plan is kept, since the text around it uses other numbers, names or another form.
    """
    form: PlanForm = "lists" if settings.prompt.style == "brief" else settings.prompt.form
    shown_as = shown_names if settings.prompt.pool == "described" else ()
    found = find_plan(text)
    right_form = bool(text.strip()) and isinstance(found, Item) == (form == "structured")
    if isinstance(plan, Acceptance):
        return text if right_form else render(plan, form)
    shown = renumber_workers(plan, _shown_numbers(names, shown_names))
    if isinstance(found, Item) and shown_as:
        stays = _parse(text, settings, names, later_round=True) == plan and _names_only(
            text, found, [shown_as[step.worker] for step in shown.steps], set(names) - set(shown_names)
        )
    else:
        stays = tuple(names) == tuple(shown_names)
    return text if right_form and stays else render(shown, form, names=shown_as)


def _names_only(text: str, plan: Item, takers: Sequence[str], absent: Collection[str]) -> bool:
    """Whether a structured plan writes the names of these workers, step by step, and its text no name of `absent`."""
    columns = read_columns(plan, later_round=True)
    written = [] if columns is None else [item.value for item in columns.workers]
    return written == takers and not any(re.search(rf"\b{re.escape(name)}\b", text) for name in absent)


def _shown_numbers(names: Sequence[str], shown_names: Sequence[str]) -> dict[int, int]:
    """For the number of each worker in `names`, the number of this worker in `shown_names`."""
    return {number: shown_names.index(name) for number, name in enumerate(names) if name in shown_names}
