"""Inspect's model provider: a chat in, an orchestrated answer out, with the id of its trace.

Inspect's limits on what is in flight come first, then the workers' own. Retries are the executor's: Inspect is never
asked for any. No tools, no images, no log probabilities: an orchestrated pool has none to give.
"""

from __future__ import annotations

from secrets import token_hex
from typing import Any

from inspect_ai._util.error import PrerequisiteError
from inspect_ai.log._samples import sample_active
from inspect_ai.model import ChatMessage, GenerateConfig, ModelAPI, ModelOutput, ModelUsage
from inspect_ai.tool import ToolChoice, ToolInfo
from rich.markup import escape

from podium.errors import QuestionFailedError, UsageError
from podium.inspection.team import open_team, read_settings
from podium.tasks.sets.inspect_samples import to_question
from podium.trace import Trace

_NOT_GIVEN = ("logprobs", "top_logprobs", "prompt_logprobs", "response_schema", "modalities")
"""What Inspect may ask for and no orchestrated pool has."""
_NOT_PASSED_ON = (
    *("temperature", "top_p", "top_k", "max_tokens", "stop_seqs", "frequency_penalty", "presence_penalty"),
    *("logit_bias", "best_of", "effort", "verbosity", "reasoning_effort", "reasoning_tokens", "extra_body"),
)
"""How one model is to sample: here each worker samples as its pool file says."""


class Podium(ModelAPI):
    """`podium/<pool or planner>`.

    Args:
        model_name: a planner's name, else a pool's (see `read_settings`).
        config: its seed, 0 if there is none, names the randomness of all questions.
        settings: `TeamSettings`, by name.

    Raises:
        PrerequisiteError: the settings cannot be used. Inspect shows it as one sentence.
    """

    def __init__(
        self,
        model_name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        config: GenerateConfig | None = None,
        **settings: Any,
    ) -> None:
        config = config or GenerateConfig()
        super().__init__(model_name, base_url, api_key, [], config)
        try:
            if base_url is not None:
                raise UsageError(
                    f"--model-base-url {base_url}: a pool file says where each worker is; leave it out."
                )
            self._team = open_team(read_settings(model_name, settings), seed=str(config.seed or 0))
        except UsageError as error:
            raise PrerequisiteError(escape(str(error))) from None

    def connection_key(self) -> str:
        """One pool's questions do not wait for another's."""
        return self.model_name

    async def generate(
        self,
        input: list[ChatMessage],
        tools: list[ToolInfo],
        tool_choice: ToolChoice,
        config: GenerateConfig,
    ) -> ModelOutput:
        """The answer to the last message of a chat.

        Raises:
            UsageError: what is asked for cannot be given.
            QuestionFailedError: there is no answer, because workers or the planner's own model failed, or the budget
                allowed no call.
        """
        _refuse(tools, config)
        trace = await self._team.answer(to_question(input), seed=_seed(config), sample=_epoch())
        if trace.answer is None and not _misplanned(trace):
            raise QuestionFailedError(f"{trace.error} (trace {trace.id})")
        return _output(trace, self.model_name, config)

    async def aclose(self) -> None:
        """Give back the connections and the store of traces."""
        await self._team.close()


def _refuse(tools: list[ToolInfo], config: GenerateConfig) -> None:
    if tools:
        raise UsageError(
            f"The tool {tools[0].name!r} was offered, and Podium's workers use none; run a solver without tools."
        )
    for name in _NOT_GIVEN:
        if getattr(config, name):
            raise UsageError(
                f"{name} was asked for, and an orchestrated pool has none to give; leave it out."
            )
    if (config.num_choices or 1) > 1:
        raise UsageError(
            f"num_choices {config.num_choices}: a question has one answer; ask in several epochs instead."
        )


def _seed(config: GenerateConfig) -> str:
    """Named as `podium eval` names the seeds of its questions: so both meet the same luck."""
    active = sample_active()
    if active is not None:
        return f"evaluation/{config.seed or 0}/{active.sample.id}/{active.epoch - 1}"
    return token_hex(8) if config.seed is None else str(config.seed)


def _epoch() -> int:
    """From 0: with a response cache each epoch has answers of its own."""
    active = sample_active()
    return 0 if active is None else active.epoch - 1


def _misplanned(trace: Trace) -> bool:
    """Whether no worker was asked because of what the planner wrote: such a question is wrong, not broken."""
    return not trace.spans and all(
        round_.plan_error_kind not in (None, "planner_failed", "time_is_up") for round_ in trace.rounds
    )


def _output(trace: Trace, model: str, config: GenerateConfig) -> ModelOutput:
    """An answer as Inspect logs it; an empty one where there was no plan to run."""
    output = ModelOutput.from_content(
        model,
        trace.answer or "",
        stop_reason="unknown" if trace.answer is None else "stop",
        error=trace.error if trace.answer is None else None,
    )
    output.response_id = trace.id
    output.usage = ModelUsage(
        input_tokens=trace.usage.input_tokens,
        output_tokens=trace.usage.output_tokens,
        total_tokens=trace.usage.tokens,
        total_cost=trace.uncached_usd,
    )
    output.metadata = {
        "trace_id": trace.id,
        "planner": trace.planner,
        "status": trace.status,
        "concern": trace.error,
        "calls": trace.calls,
        "cost_usd": trace.cost_usd,
        "uncached_usd": trace.uncached_usd,
        "usage_estimated": trace.usage.estimated,
        "not_passed_on": [name for name in _NOT_PASSED_ON if getattr(config, name) is not None],
    }
    return output
