"""The harness: one chat completion for each prompt, asked for in this process.

verifiers' own chat harnesses send a turn with the whole conversation before it. A prompt of Podium already holds what
the policy has to know of the rounds before, so each is sent alone, and is a branch of the trace.
"""

from __future__ import annotations

from typing import Any

import verifiers.v1 as vf
from openai import AsyncOpenAI


class PodiumHarness(vf.Harness[vf.HarnessConfig]):
    """Sends the messages of a turn to the policy."""

    APPENDS_SYSTEM_PROMPT = True
    SUPPORTS_RESUME = True
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def launch(  # noqa: PLR0917 - verifiers calls it with these
        self,
        ctx: vf.ModelContext,
        trace: vf.Trace,
        runtime: vf.Runtime,
        endpoint: str,
        secret: str,
        mcp_urls: dict[str, str],
        data: vf.TaskData,
    ) -> vf.ProgramResult:
        """Ask for one completion. verifiers' interception server, at `endpoint`, passes it on and records it."""
        messages: Any = [{"role": message.role, "content": message.content} for message in data.prompt or []]
        async with AsyncOpenAI(base_url=endpoint, api_key=secret) as client:
            await client.chat.completions.create(model=ctx.model, messages=messages)
        return vf.ProgramResult(exit_code=0, stdout="", stderr="")

    async def resume(  # noqa: PLR0917
        self,
        ctx: vf.ModelContext,
        trace: vf.Trace,
        runtime: vf.Runtime,
        endpoint: str,
        secret: str,
        mcp_urls: dict[str, str],
        data: vf.TaskData,
        messages: vf.Messages,
        tool_interception_url: str | None = None,
    ) -> vf.ProgramResult:
        """The next round: its messages, without those of the rounds before."""
        prompt = data.model_copy(update={"prompt": messages})
        return await self.launch(ctx, trace, runtime, endpoint, secret, mcp_urls, prompt)
