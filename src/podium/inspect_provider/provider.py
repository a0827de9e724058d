"""Inspect's model provider: takes a chat, returns the orchestrated answer with the id of its trace.

Inspect's concurrency limit applies first, then the workers' own. The executor retries, so Inspect never has to. There
are no tools, images or log-probabilities: an orchestrated pool cannot provide them.
"""

from __future__ import annotations

from collections.abc import Mapping
from secrets import token_hex
from typing import Any

from inspect_ai._util.error import PrerequisiteError
from inspect_ai.log._samples import sample_active
from inspect_ai.model import ChatMessage, GenerateConfig, ModelAPI, ModelOutput, ModelUsage
from inspect_ai.tool import ToolChoice, ToolInfo
from rich.markup import escape

from podium.config import to_overrides
from podium.errors import QuestionFailedError, UsageError
from podium.planners import baseline_syntaxes
from podium.tasks.sets.inspect_samples import to_question
from podium.team.settings import TeamSettings
from podium.team.team import Team
from podium.team.team_file import TeamReference
from podium.trace import Trace

_UNSUPPORTED = ("logprobs", "top_logprobs", "prompt_logprobs", "response_schema", "modalities")
"""Options of Inspect that a pool cannot follow; the provider refuses them."""
_IGNORED = (
    *("temperature", "top_p", "top_k", "max_tokens", "stop_seqs", "frequency_penalty", "presence_penalty"),
    *("logit_bias", "best_of", "effort", "verbosity", "reasoning_effort", "reasoning_tokens", "extra_body"),
)
"""Sampling options for one model. They are ignored: each worker samples as its team file says."""


class PodiumModelAPI(ModelAPI):
    """`podium/<team or planner>` (see `read_settings`), with keys of a team file, such as `budget.usd`. The config's
    seed (default 0) seeds all questions. Inspect shows a `PrerequisiteError` for unusable settings as one sentence."""

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
                    f"--model-base-url {base_url}: a team file says where each worker is; leave it out."
                )
            team = read_settings(model_name, settings)
            self._team = Team.from_settings(
                team, seed=str(config.seed or 0), for_evaluation=True, store=team.trace_store
            )
        except UsageError as error:
            raise PrerequisiteError(escape(str(error))) from None

    def connection_key(self) -> str:
        """Inspect limits concurrency by this key: questions of one pool do not wait for another's."""
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
            UsageError: an option cannot be honoured.
            QuestionFailedError: there is no answer, because workers or the planner's model failed, or the budget
                allowed no call.
        """
        _refuse(tools, config)
        active = sample_active()
        # With a response cache each epoch has its own answers. Podium counts epochs from 0.
        epoch = 0 if active is None else active.epoch - 1
        if active is not None:  # In the form of `podium eval`, so that both draw the same random numbers.
            seed = f"evaluation/{config.seed or 0}/{active.sample.id}/{epoch}"
        else:
            seed = token_hex(8) if config.seed is None else str(config.seed)
        trace = await self._team.ask(to_question(input), seed=seed, sample=epoch)
        if trace.answer is None and not _plan_was_invalid(trace):
            raise QuestionFailedError(f"{trace.error} (trace {trace.id})")
        return _output(trace, self.model_name, config)

    async def aclose(self) -> None:
        """Close the connections and the store of traces."""
        await self._team.close()


def read_settings(name: str, settings: Mapping[str, Any]) -> TeamSettings:
    """The settings of the model `podium/<name>`: a planner, and -M pool names the team; or a team file or the name of a
    team; or anything, where -M pool names the team."""
    planners = {form.partition(":")[0] for form in ("conductor", *baseline_syntaxes())}
    is_planner = name.partition(":")[0] in planners
    keys = {"plan.planner": name, **settings} if is_planner else settings
    return TeamReference(None if is_planner or "pool" in settings else name, to_overrides(keys)).read()


def _refuse(tools: list[ToolInfo], config: GenerateConfig) -> None:
    if tools:
        raise UsageError(
            f"The solver offers the tool {tools[0].name!r}, and Podium's workers use none; use a solver without tools."
        )
    for name in _UNSUPPORTED:
        if getattr(config, name):
            raise UsageError(f"{name} is set, and Podium cannot provide it; leave it out.")
    if (config.num_choices or 1) > 1:
        raise UsageError(
            f"num_choices {config.num_choices}: a question has one answer; use several epochs instead."
        )


def _plan_was_invalid(trace: Trace) -> bool:
    """Whether no worker was called because the plan was invalid: the answer is then wrong, and nothing failed."""
    return not trace.spans and all(
        round_.error_kind not in (None, "planner_failed", "budget_exceeded", "time_is_up")
        for round_ in trace.rounds
    )


def _output(trace: Trace, model: str, config: GenerateConfig) -> ModelOutput:
    """The answer as Inspect logs it; an empty one where there was no plan to run."""
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
        "not_passed_on": [name for name in _IGNORED if getattr(config, name) is not None],
    }
    return output
