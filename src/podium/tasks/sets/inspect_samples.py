"""Samples of an Inspect task, with the prompts of the task's solver and the grades of its scorer.

The solver runs twice for each sample: once up to its call of the model, which gives the question; and once with the
response in the model's place, which gives the state that the scorer judges. So whatever a solver does with an answer
(it marks the choice that a letter names, say) is done. Solvers that ask twice, use tools or need a sandbox are
refused, and a task's cleanup does not run.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from inspect_ai._util.registry import registry_params
from inspect_ai.model import ChatMessage, ChatMessageUser, ModelName, ModelOutput
from inspect_ai.model._model import init_model_roles
from inspect_ai.scorer import Score, Scorer, Target
from inspect_ai.solver import Generate, Solver, TaskState, chain, generate, multiple_choice
from inspect_ai.util import registry_info
from inspect_ai.util._store import init_subtask_store

from podium.errors import ConfigError, GraderError, UsageError
from podium.tasks.task import Grade
from podium.types import Message, Question

if TYPE_CHECKING:
    import inspect_ai
    from inspect_ai.dataset import Sample
    from inspect_ai.model import ChatMessage

T = TypeVar("T")

_ASK_PLAIN = 'set solver = "plain" to ask the input alone.'
_MAX_SECONDS = 600.0
"""Seconds for a solver, or for a solver and a scorer; a model that grades may be slow."""
_SCORE_OF_WORD = {"c": 1.0, "p": 0.5, "i": 0.0, "n": 0.0, "yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
"""Scores for the words of scorers: correct, partial, incorrect, no answer."""


class _ModelAskedError(Exception):
    """Stops a solver where it calls the model."""


@dataclass(frozen=True, slots=True)
class InspectSample:
    """One sample of an Inspect task, with the solver and the scorer of the task."""

    id: str
    """The id of the sample, unique within the set."""
    location: str
    """Where the sample stands, for messages, as in "theory.py@capitals, sample 3"."""
    sample: Sample
    solver: Solver
    scorer: Scorer
    roles: dict[str, Any]
    """The models that the task names for roles such as "grader"."""

    @property
    def gold(self) -> str:
        """The targets, one in each line; any of them is right."""
        target = self.sample.target
        return target if isinstance(target, str) else "\n".join(target)

    @property
    def text(self) -> str:
        """The input, or the text of its last message, before the solver changes it."""
        content = self.sample.input
        return content if isinstance(content, str) else content[-1].text

    async def question(self) -> Question:
        """The question that the solver sends to the model.

        Raises:
            UsageError: the solver sends nothing, more than text, tools, or something else the second time; or the
                sample lacks the target that its scorer needs.
            GraderError: the solver failed.
        """
        # A task's own scorer may know what is right without a target; Inspect's scorers do not.
        if not self.gold.strip() and registry_info(self.scorer).name.startswith("inspect_ai/"):
            raise UsageError("the target is empty; give the sample one.")
        first, second = await _in_own_task(self._asked_question()), await _in_own_task(self._asked_question())
        if first != second:
            raise UsageError(f"the solver sends another prompt each time (does it shuffle?); {_ASK_PLAIN}")
        if not first.text.strip():
            raise UsageError("the question is empty; give the sample an input.")
        return first

    async def _asked_question(self) -> Question:
        questions: list[Question] = []

        async def ask(state: TaskState, *args: Any, **config: Any) -> TaskState:
            if state.tools:
                raise UsageError(f"the solver gives tools, and Podium's workers use none; {_ASK_PLAIN}")
            questions.append(to_question(state.messages))
            raise _ModelAskedError

        await self.solve(ask)
        if not questions:
            raise UsageError(f"the solver does not call the model; {_ASK_PLAIN}")
        return questions[0]

    async def solve(self, ask: Generate) -> TaskState:
        """Run the solver on a new state of the sample, because solvers change their state."""
        state = _state(deepcopy(self.sample))
        init_subtask_store(state.store)
        init_model_roles(self.roles)
        try:
            return await self.solver(state, ask)
        except _ModelAskedError:
            return state
        except UsageError:
            raise
        except Exception as error:  # its author's code, which may raise anything
            raise GraderError(f"the solver failed: {_reason(error)}") from error


@dataclass(frozen=True, slots=True)
class InspectGrader:
    """Grades responses to a sample with the scorer of its task. The scorer reads the targets from the sample."""

    sample: InspectSample
    question: Question
    """The question that was sent."""

    @property
    def identity(self) -> Any:
        """What tells its verdicts from those of another scorer, as JSON: the scorer's name and arguments, the models of
        roles, and the sample."""
        sample, scorer = self.sample, self.sample.scorer
        judging = registry_info(scorer).name, _plain(registry_params(scorer)), _plain(sample.roles)
        return [*judging, sample.gold, sample.sample.choices, _plain(sample.sample.metadata)]

    async def __call__(self, response: str, gold: str) -> Grade:
        """Grade a response with the scorer.

        Raises:
            GraderError: solver or scorer failed, called the model again, or gave no single score.
        """
        try:
            return _verdict(await _in_own_task(self._score(response)))
        except (UsageError, GraderError) as error:
            raise GraderError(f"{self.sample.location}: {error}") from error

    async def _score(self, response: str) -> Score | None:
        responses = [response]

        async def answer(state: TaskState, *args: Any, **config: Any) -> TaskState:
            if not responses:
                raise UsageError(f"the solver calls the model again; {_ASK_PLAIN}")
            if to_question(state.messages) != self.question:
                raise UsageError(
                    f"the solver sends another prompt than before (does it shuffle?); {_ASK_PLAIN}"
                )
            state.output = ModelOutput.from_content("podium", responses.pop())
            state.messages.append(state.output.message)
            return state

        state = await self.sample.solve(answer)
        try:
            return await self.sample.scorer(state, Target(self.sample.sample.target))
        except Exception as error:  # its author's code, which may raise anything
            raise GraderError(f"the scorer failed: {_reason(error)}") from error


def _plain(value: Any) -> Any:
    """A value as JSON. An object of another kind is its name: its address would differ in each process."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, str | int | float):
        return value
    return getattr(value, "name", type(value).__qualname__)


async def _in_own_task(work: Coroutine[Any, Any, T]) -> T:
    """Run in an asyncio task of its own, so that what Inspect keeps in context variables ends with it."""
    try:
        async with asyncio.timeout(_MAX_SECONDS):
            return await asyncio.create_task(work)
    except TimeoutError:
        raise GraderError(f"it took more than {_MAX_SECONDS:g} s.") from None


def _verdict(score: Score | None) -> Grade:
    mark = None if score is None else score.value
    number = _SCORE_OF_WORD.get(mark.lower()) if isinstance(mark, str) else mark
    # Inspect marks an unscored sample with NaN, which fails this comparison, too.
    if score is None or not isinstance(number, int | float) or not 0 <= number <= 1:
        raise GraderError(f"the scorer's verdict is {mark!r}; a grade is C, P, I, N or a number from 0 to 1.")
    return Grade(float(number), score.answer)


def samples_of(task: inspect_ai.Task, name: str, *, plain: bool) -> Iterator[InspectSample]:
    """The samples of a task, in order, graded by the first scorer of the task.

    Args:
        name: the name by which the user calls the task.
        plain: whether the question is the input alone, without the task's solver.

    Raises:
        ConfigError: the task has no samples or no scorer, or it needs a sandbox, or a model that is not set.
    """
    if not task.scorer:
        raise ConfigError(f"The Inspect task {name!r} has no scorer, and is graded by nothing; give it one.")
    if not len(task.dataset):
        raise ConfigError(f"The Inspect task {name!r} has no samples; check its arguments.")
    scorer, roles = task.scorer[0], dict(task.model_roles or {})
    _check_grading_model(scorer, roles, name)
    for number, sample in enumerate(task.dataset, 1):
        own_id = number if sample.id is None else sample.id
        if task.sandbox or sample.sandbox:
            raise ConfigError(
                f"The Inspect task {name!r} works in a sandbox of Inspect's, which is not run here; leave it out."
            )
        plain_solver = multiple_choice() if sample.choices else generate()
        solver = plain_solver if plain else chain(task.setup or [], task.solver)
        yield InspectSample(
            id=f"inspect/{task.name}/{own_id}",
            location=f"{name}, sample {own_id}",
            sample=sample,
            solver=solver,
            scorer=scorer,
            roles=roles,
        )


def _check_grading_model(scorer: Scorer, roles: dict[str, Any], name: str) -> None:
    """Refuse a scorer that calls a model if no model is set, before any answer is paid for."""
    _, _, kind = registry_info(scorer).name.rpartition("/")
    if not kind.startswith("model_graded"):
        return
    if not (registry_params(scorer).get("model") or roles or os.environ.get("INSPECT_EVAL_MODEL")):
        raise ConfigError(
            f"The scorer {kind} of the Inspect task {name!r} calls a model; set INSPECT_EVAL_MODEL to one, "
            "as in openai/gpt-5."
        )


def _state(sample: Sample) -> TaskState:
    content = sample.input
    messages: list[ChatMessage] = (
        [ChatMessageUser(content=content)] if isinstance(content, str) else list(content)
    )
    return TaskState(
        model=ModelName("podium/response"),
        sample_id=sample.id or 0,
        epoch=1,
        input=content,
        messages=messages,
        target=Target(sample.target),
        choices=sample.choices,
        metadata=sample.metadata,
    )


def _reason(error: Exception) -> object:
    """The message of an exception. Inspect's exceptions keep it in an attribute."""
    return getattr(error, "message", error)


def to_question(messages: Sequence[ChatMessage]) -> Question:
    """The question of a chat: its last message; the others are the history, without the reasoning of models.

    Raises:
        UsageError: the last message is not a user's, or the chat holds more than text.
    """
    if not messages or messages[-1].role != "user":
        last = f"a message of the {messages[-1].role}" if messages else "nothing"
        raise UsageError(
            f"The chat ends with {last}; Podium answers a chat whose last message is the user's."
        )
    *past, question = [_message(message) for message in messages]
    return Question(text=question.content, history=tuple(past))


def _message(message: ChatMessage) -> Message:
    if message.role == "tool":
        raise UsageError("The chat holds a tool's message, and Podium's workers use none; leave tools out.")
    for content in message.content_list:
        if content.type not in ("text", "reasoning"):
            raise UsageError(f"The chat holds {content.type} content, and Podium's workers read text alone.")
    return Message(role=message.role, content=message.text)
